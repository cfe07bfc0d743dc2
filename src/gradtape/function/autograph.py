"""Python's control flow over tensors in compiled functions: what `function` and the user ask for.

A function is converted when it is first traced (`autograph_convert`); eager code always runs as it is written.
"""

from __future__ import annotations

import ast
import enum
import functools
import types
from collections.abc import Callable
from typing import Any

from gradtape.core.callsite import logger
from gradtape.errors import message, shown
from gradtape.function.autograph_blocks import set_loop_options
from gradtape.function.autograph_convert import UNCONVERTED

__all__ = ["Feature", "convert", "do_not_convert", "set_loop_options", "set_verbosity", "to_code", "to_graph"]


class Feature(enum.Enum):
    """Optional parts of TensorFlow's conversion; accepted, and without effect here."""

    ALL = "ALL"
    AUTO_CONTROL_DEPS = "AUTO_CONTROL_DEPS"
    ASSERT_STATEMENTS = "ASSERT_STATEMENTS"
    BUILTIN_FUNCTIONS = "BUILTIN_FUNCTIONS"
    EQUALITY_OPERATORS = "EQUALITY_OPERATORS"
    LISTS = "LISTS"
    NAME_SCOPES = "NAME_SCOPES"


def convert(function: Callable) -> Callable:
    """The function as it is traced: its control flow over tensors, and that of what it calls, becomes part of a program."""
    from gradtape.function.autograph_calls import converted_call

    def call(*args: Any, **kwargs: Any) -> Any:
        return converted_call(function, args, kwargs, None)

    return functools.update_wrapper(call, function)


def do_not_convert(func: Callable | None = None) -> Callable:
    """Decorator: leave the control flow of this function as it is."""
    if func is None:
        return do_not_convert
    if hasattr(func, "__dict__"):
        setattr(func, UNCONVERTED, True)
    return func


def to_graph(entity: Callable, recursive: bool = True, experimental_optional_features: Any = None) -> Callable:
    """The function with its control flow converted, which works on tensors inside and outside of compiled functions."""
    if not callable(entity):
        raise TypeError(message("to_graph expects a function.", received=shown(entity)))
    return convert(entity)


def to_code(entity: Callable, recursive: bool = True, experimental_optional_features: Any = None) -> str:
    """The source code that a function becomes when its control flow is converted; needs diastatic-malt."""
    from gradtape.function import autograph_convert

    function = getattr(entity, "python_function", entity)
    function = getattr(function, "__func__", function)
    if not isinstance(function, types.FunctionType):
        raise TypeError(message("to_code expects a function.", received=shown(entity)))
    if not autograph_convert.available():
        raise ImportError(
            message(
                "tf.autograph.to_code needs the package diastatic-malt, which converts control flow.",
                fix='pip install "gradtape[xla]"; inspect.getsource(function) shows what eager code runs',
            )
        )
    node, _, _ = autograph_convert.transformed(function)
    return ast.unparse(ast.fix_missing_locations(node))


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """From level 1 on, log every function that is converted; to standard output as well, if asked to."""
    from gradtape.function import autograph_convert

    autograph_convert.verbosity.level, autograph_convert.verbosity.also_print = level, alsologtostdout
    if level:
        logger.setLevel(min(logger.level or 20, 20))
