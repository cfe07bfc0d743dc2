"""`enable_check_numerics`: the first op that makes an infinity or nan raises, and says where.

While it is off it costs nothing: switching it on replaces the kernels and rules of every op, in the op's own record and in the
variables that its fast path closed over, and switching it off puts them back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradtape.core.callsite import Place, place_of, site
from gradtape.core.op import MADE, OPS, Op
from gradtape.errors import InvalidArgumentError
from gradtape.values.tensor import Tensor

Look = Callable[[Op, str, list, list, Place], None]
"""Called with an op, "forward" or "backward", the arrays that went in and came out, and the place in the user's code."""

_undo: list[Callable[[], None]] = []


def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """From now on, an op whose result or gradient has an infinity or nan raises InvalidArgumentError.

    Compiled programs are not looked into. The limits, which shorten TensorFlow's message, are accepted.
    """
    if not _undo:
        _undo.append(_show_everything(refuse_nonfinite))


def disable_check_numerics() -> None:
    """Stop checking."""
    while _undo:
        _undo.pop()()


@contextmanager
def watched(look: Look) -> Iterator[None]:
    """Context manager: ``look`` sees every kernel and rule that runs on arrays of this machine, of whatever thread."""
    undo = _show_everything(look)
    try:
        yield
    finally:
        undo()


def refuse_nonfinite(op: Op, direction: str, given: list, made: list, place: Place) -> None:
    """Raise if a result is not finite."""
    for i, array in enumerate(made):
        if array.dtype.kind in "fcV" and not np.isfinite(array).all():
            what = "output" if direction == "forward" else "gradient"
            raise InvalidArgumentError(nonfinite_text(op, what, i, len(made), array, given, place))


def _show_everything(look: Look) -> Callable[[], None]:
    """Have ``look`` see every op, also those of modules that are loaded later; returns what ends it."""
    undo: list[Callable[[], None]] = []

    def show(call: Any) -> None:
        _show(call, look, undo)

    for call in OPS.values():
        show(call)
    MADE.append(show)

    def end() -> None:
        while undo:
            undo.pop()()
        MADE.remove(show)

    return end


def _show(call: Any, look: Look, undo: list) -> None:
    spec: Op = call.op
    closed_over = dict(zip(call.__code__.co_freevars, call.__closure__ or ()))
    for name in ("function", "kernel"):
        if name in closed_over:
            _replace(closed_over[name], "cell_contents", lambda kernel: _shown(spec, kernel, "forward", look), undo)
    _replace(spec, "kernel", lambda kernel: _shown(spec, kernel, "forward", look), undo)
    for name in ("rule_x", "rule_y"):
        _replace(spec, name, lambda rule: _shown(spec, rule, "backward", look), undo)
    if spec.rules:
        shown = tuple([r and (_shown(spec, r[0], "backward", look), *r[1:]) for r in spec.rules])
        _replace(spec, "rules", lambda _: shown, undo)


def _replace(owner: Any, name: str, change: Callable, undo: list) -> None:
    before = getattr(owner, name)
    after = change(before)
    setattr(owner, name, after)

    def back() -> None:
        if getattr(owner, name) is after:  # a rule that was given since then stays
            setattr(owner, name, before)

    undo.append(back)


def _shown(spec: Op, function: Callable, direction: str, look: Look) -> Callable:
    def run(*args: Any, **attributes: Any) -> Any:
        result = function(*args, **attributes)
        parts = result if isinstance(result, (list, tuple)) else (result,)
        look(spec, direction, _arrays(args), _arrays(parts), place_of(*site(2)))
        return result

    return run


def _arrays(values: Iterable) -> list[np.ndarray]:
    """The arrays of this machine among the values."""
    found = []
    for value in values:
        array = value._array if isinstance(value, Tensor) else value
        if isinstance(array, (list, tuple)):
            found += _arrays(array)
        elif isinstance(array, np.ndarray):
            found.append(array)
        elif isinstance(array, np.generic):
            found.append(np.asarray(array))
    return found


def nonfinite_text(op: Op, what: str, position: int, count: int, array: np.ndarray, given: list, place: Place) -> str:
    """TensorFlow's words for an op whose result is not finite, and where it was called."""
    nan, infinite = np.isnan(array), np.isinf(array)
    words = " and ".join(word for word, bad in (("Inf", infinite), ("NaN", nan)) if bad.any())
    return "\n".join(
        [
            f'!!! Detected Infinity or NaN in {what} {position} of eagerly-executing op "{op.label}" '
            f"(# of outputs: {count}) !!!",
            f"  dtype: {array.dtype.name}",
            f"  shape: {array.shape}",
            f"  # of Inf elements: {int(infinite.sum())}",
            f"  # of NaN elements: {int(nan.sum())}",
            *(f"  Input tensor: {x}" for x in given),
            f"  At: {place.file}:{place.line}",
            f" : Tensor had {words} values",
        ]
    )
