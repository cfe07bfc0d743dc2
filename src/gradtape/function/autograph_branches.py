"""`if`, `and`, `or`, `not`, `assert` and conditional expressions in converted code: Python's own, until a tensor decides."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any

from gradtape.function.autograph_blocks import Block
from gradtape.function.autograph_calls import condition, traced
from gradtape.function.autograph_values import check_branches, has_returned_in_one, with_return_value
from gradtape.function.control import require
from gradtape.function.messages import is_due_to_tracing
from gradtape.function.state import current
from gradtape.ops.execution import Unstageable
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def if_stmt(
    test: Any, body: Callable, orelse: Callable, get_state: Callable, set_state: Callable, names: tuple, outputs: int
) -> None:
    """An ``if`` statement; of its variables the first ``outputs`` are read after it."""
    decider = condition(test)
    if not traced(decider):
        (body if decider else orelse)()
        return
    before = get_state()

    def branch(block: Callable, holds: bool) -> Callable:
        def run() -> tuple:
            set_state(tuple(_decided(value, decider, holds) for value in before))
            block()
            return get_state()[:outputs]

        return run

    try:
        result = _branches(decider, names, branch(body, True), branch(orelse, False))
    except BaseException:
        set_state(before)
        raise
    set_state((*result, *before[outputs:]))


def if_exp(test: Any, then: Callable, otherwise: Callable, text: str) -> Any:
    """``then() if test else otherwise()``."""
    decider = condition(test)
    if not traced(decider):
        return then() if decider else otherwise()
    return _branches(decider, (text,), lambda: (then(),), lambda: (otherwise(),))[0]


def _decided(value: Any, decider: Tensor, holds: bool) -> Any:
    """What a variable is in a branch: of the condition itself, and of what it negates, the value is known there."""
    if value is decider:
        return holds
    _, negated = _negations.get(id(decider), (None, None))
    return not holds if value is negated and negated is not None else value


def _branches(decider: Tensor, names: tuple, then: Callable, otherwise: Callable) -> tuple:
    """The results of one of two functions, as part of the program."""
    from gradtape.function.control import Mismatch

    branches = _Branches(names)
    try:
        try:
            return branches.chosen(decider, then, otherwise)
        except _Returned:
            return branches.chosen(decider, then, otherwise)
    except Mismatch as error:
        raise Unstageable("an `if` over a tensor that chooses between Python objects") from error


class _Returned(Exception):
    """One of two branches returned from the function: they have to be staged anew, now that it is known what."""


class _Branches:
    """The results of two branches, to be compared."""

    def __init__(self, names: tuple) -> None:
        self._names = names
        self._results: dict[bool, tuple] = {}
        self._returned: dict[bool, tuple] = {}  # what the other branch gave, if one of them returned

    def chosen(self, decider: Tensor, then: Callable, otherwise: Callable) -> tuple:
        from gradtape.function import control

        self._results = {}
        return control.cond(decider, lambda: self._run(then, True), lambda: self._run(otherwise, False))

    def _run(self, function: Callable, holds: bool) -> tuple:
        result = once(function, Block())
        if self._returned:
            result = with_return_value(self._names, result, self._returned[holds])
        self._results[holds] = result
        if len(self._results) == 2:
            main, other = self._results[True], self._results[False]
            if has_returned_in_one(self._names, main, other):
                self._returned = {True: other, False: main}
                raise _Returned
            check_branches(self._names, main, other)
        return result


def once(function: Callable, block: Block) -> tuple:
    """The variables after a block that runs once for all its steps. An error in it need not happen when the program runs."""
    with block:
        try:
            results = function()
        except Exception as error:
            if is_due_to_tracing(error) or _is_ours(error):
                raise
            raise Unstageable(f"{type(error).__name__} in a loop or branch over tensors") from error
        block.check(results)
    return results


def _is_ours(error: Exception) -> bool:
    """Whether the error says, in TensorFlow's words, that control flow cannot be staged."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename.startswith(_HERE)


# Logic

_negations: dict[int, tuple[Any, Tensor]] = {}  # by identity of a tensor: a reference to it, and what it is the negation of


def not_(value: Any) -> Any:
    """``not value``."""
    decider = condition(value, "not")
    if not traced(decider):
        return not decider
    result = ~decider
    key = id(result)
    _negations[key] = weakref.ref(result, lambda _: _negations.pop(key, None)), decider
    return result


def and_(first: Callable, second: Callable) -> Any:
    """``first() and second()``."""
    value = first()
    decider = condition(value, "and")
    if not traced(decider):
        return second() if decider else value
    both = _joined(value, decider, second, lambda a, b: a & b)
    return if_exp(decider, second, lambda: value, "and") if both is None else both


def or_(first: Callable, second: Callable) -> Any:
    """``first() or second()``."""
    value = first()
    decider = condition(value, "or")
    if not traced(decider):
        return value if decider else second()
    both = _joined(value, decider, second, lambda a, b: a | b)
    return if_exp(decider, lambda: value, second, "or") if both is None else both


def _joined(value: Any, decider: Tensor, second: Callable, joined: Callable) -> Tensor | None:
    """Of two truth values their combination, which needs no branch; None for other values."""
    if value is not decider:
        return None
    state: Any = current()
    before, needs = {key: state.values[key] for key in state.assigned}, dict(state.needs)
    other = second()
    if any(state.values[key] is not before.get(key) for key in state.assigned):
        raise Unstageable("an `and` or `or` over tensors whose second part assigns a variable")
    if any(needs.get(place) is not need for place, need in state.needs.items()):
        state.needs = needs  # what is checked there may hold only if Python gets there
        return None
    is_truth = isinstance(other, bool) or (isinstance(other, Tensor) and other.dtype is dtypes.bool_ and not other.ndim)
    return joined(decider, convert_to_tensor(other)) if is_truth else None


def assert_stmt(test: Any, text: Callable | None = None) -> None:
    """``assert test, text``; of a tensor, the program tells after it ran whether that was so."""
    decider = condition(test, "assert statement")
    if traced(decider):
        require(decider)
    elif not decider:
        raise AssertionError(*([] if text is None else [text()]))
