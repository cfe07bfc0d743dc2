"""What converted code calls, under the names and with the arguments that diastatic-malt's converters write.

A block is a function of no arguments over variables that it shares with what surrounds it; ``get_state`` and ``set_state``
read and write them as a tuple. On known values everything is as in Python; traced ones go to `control`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from gradtape.errors import message
from gradtape.function.autograph_blocks import changes
from gradtape.function.autograph_branches import and_, assert_stmt, if_exp, if_stmt, not_, or_
from gradtape.function.autograph_calls import autograph_artifact, converted_call, traced
from gradtape.function.autograph_loops import for_stmt, while_stmt
from gradtape.function.autograph_values import Undefined, UndefinedReturnValue, ld, ldu

__all__ = [
    "FunctionScope", "Undefined", "UndefinedReturnValue", "and_", "assert_stmt", "autograph_artifact", "caught", "changes",
    "converted_call", "for_stmt", "if_exp", "if_stmt", "ld", "ldu", "not_", "or_", "while_stmt", "with_function_scope",
]  # fmt: skip


class FunctionScope:
    """Around the body of a converted function."""

    def __init__(self, function_name: str, name: str, options: Any) -> None:
        self.name = name

    def __enter__(self) -> FunctionScope:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to end."""

    def ret(self, value: Any, returned: Any) -> Any:
        """What the function returns."""
        if isinstance(value, UndefinedReturnValue):
            return None
        if traced(returned) and value is not None:
            raise ValueError(
                message(
                    "the else branch must also have a return statement.",
                    received="",
                    why="whether the function returns a value depends on the value of a tensor",
                    fix="end the function with a return statement",
                )
            )
        return value


def caught() -> BaseException | None:
    """The exception that is being handled."""
    return sys.exception()


def with_function_scope(thunk: Callable, name: str, options: Any) -> Any:
    """The body of a converted lambda."""
    return thunk(FunctionScope("lambda", name, options))
