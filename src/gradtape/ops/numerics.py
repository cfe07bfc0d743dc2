"""`enable_check_numerics`: the first op that makes an infinity or nan raises, and says where.

While it is off it costs nothing: switching it on replaces the kernels and rules of every op, in the op's own record and in the
variables that its fast path closed over, and switching it off puts them back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.callsite import user_site
from gradtape.core.op import MADE, OPS, Op
from gradtape.errors import InvalidArgumentError
from gradtape.values.tensor import Tensor

_undo: list[Callable[[], None]] = []


def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """From now on, an op whose result or gradient has an infinity or nan raises InvalidArgumentError.

    Compiled programs are not looked into. The limits, which shorten TensorFlow's message, are accepted.
    """
    if _undo:
        return
    for call in OPS.values():
        _watch(call)
    MADE.append(_watch)  # ops of modules that are loaded later


def disable_check_numerics() -> None:
    """Stop checking."""
    while _undo:
        _undo.pop()()
    if _watch in MADE:
        MADE.remove(_watch)


def _watch(call: Any) -> None:
    spec: Op = call.op
    closed_over = dict(zip(call.__code__.co_freevars, call.__closure__ or ()))
    for name in ("function", "kernel"):
        if name in closed_over:
            _replace(closed_over[name], "cell_contents", lambda kernel: _checked(spec, kernel, "output"))
    _replace(spec, "kernel", lambda kernel: _checked(spec, kernel, "output"))
    for name in ("rule_x", "rule_y"):
        _replace(spec, name, lambda rule: _checked(spec, rule, "gradient"))
    if spec.rules:
        _replace(spec, "rules", lambda rules: tuple([r and (_checked(spec, r[0], "gradient"), *r[1:]) for r in rules]))


def _replace(owner: Any, name: str, change: Callable) -> None:
    before = getattr(owner, name)
    after = change(before)
    setattr(owner, name, after)

    def undo() -> None:
        if getattr(owner, name) is after:  # a rule that was given since then stays
            setattr(owner, name, before)

    _undo.append(undo)


def _checked(spec: Op, function: Callable, what: str) -> Callable:
    def run(*args: Any, **attributes: Any) -> Any:
        result = function(*args, **attributes)
        parts = result if isinstance(result, (list, tuple)) else (result,)
        for i, part in enumerate(parts):
            array = part._array if isinstance(part, Tensor) else part
            if isinstance(array, (np.ndarray, np.generic)) and array.dtype.kind in "fcV" and not np.isfinite(array).all():
                raise InvalidArgumentError(_found(spec, what, i, len(parts), np.asarray(array), args))
        return result

    return run


def _found(spec: Op, what: str, position: int, count: int, array: np.ndarray, args: tuple) -> str:
    nan, infinite = np.isnan(array), np.isinf(array)
    words = " and ".join(word for word, bad in (("Inf", infinite), ("NaN", nan)) if bad.any())
    file, line = user_site()
    shown = [a for a in args if isinstance(a, (np.ndarray, np.generic))]
    return "\n".join(
        [
            f'!!! Detected Infinity or NaN in {what} {position} of eagerly-executing op "{spec.label}" '
            f"(# of outputs: {count}) !!!",
            f"  dtype: {array.dtype.name}",
            f"  shape: {array.shape}",
            f"  # of Inf elements: {int(infinite.sum())}",
            f"  # of NaN elements: {int(nan.sum())}",
            *(f"  Input tensor: {x}" for x in shown),
            f"  At: {file}:{line}",
            f" : Tensor had {words} values",
        ]
    )
