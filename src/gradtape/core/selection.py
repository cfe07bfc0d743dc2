"""Safe selection: nan does not leak back from what was not selected.

``where(x > 0, sqrt(x), 0)`` at x = 0 sends a cotangent of exactly 0 into sqrt, whose derivative there is infinite: 0 · inf is
nan, though the branch was not taken. A sweep gives 0 in such places. It does so after the rule, in whatever namespace the rule
computed, so rules are written as if there were no poles, and what is recorded for a second derivative is settled too.

On NumPy the processor's own note says whether any pole was met since the tape began (`xp.poles`): if not, nothing is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.xp import dialect
from gradtape.xp import numpy as NUMPY
from gradtape.xp.poles import met

# A sweep looks if the counter differs from the number, and then at ops as far as it reaches.
AS_TENSORFLOW, AT_POLES, EVERYWHERE = range(3)
Watch = tuple[list[int], int, int]
NEVER: Watch = [0], 0, AS_TENSORFLOW
ALWAYS: Watch = [1], 0, AT_POLES

_MATRICES = frozenset(dialect.LINALG) | {"det"}
_SHIELDED = frozenset({"sqrt", "rsqrt"})  # TensorFlow's two


def watch(safe: bool | None, xp: Any, start: int) -> Watch:
    """When a sweep on values of namespace ``xp`` looks, for a tape's option and the poles that were met before it began."""
    if safe is not None:
        return [1], 0, EVERYWHERE if safe else AS_TENSORFLOW
    return (met, start, AT_POLES) if xp is NUMPY else ALWAYS


def settled(xp: Any, op: Any, g: Any, h: Any, rule: Callable | None, kept: tuple, reach: int) -> Any:
    """The cotangent ``h = rule(xp, g, *kept)``, with 0 for nan where only cotangents of 0 contribute.

    Elementwise ops are settled element by element, those of matrices matrix by matrix. All others only `EVERYWHERE`: if no
    cotangent flows at all; and what their rule gives, whatever stands in place of the infinities and nan that it reads, holds.
    """
    local = op.elementwise or op.name in _MATRICES
    linear = rule is not None and not op.keeps  # of a user's own rule nothing is known
    if h is None or linear or not (op.name in _SHIELDED, local, True)[reach] or _is_clean(h):
        return h
    recorded = hasattr(getattr(h, "value", h), "_array")  # a tensor, or a batch that holds one
    if op.elementwise and not recorded and xp.shape(g) == xp.shape(h):
        # 0 times something is 0 or nan, so one comparison is enough: unless it is recorded, and the something counts, too
        return xp.where(xp.equal(g, xp.zeros_like(g)), xp.zeros_like(h), h)
    nan = xp.isnan(h)
    h = xp.where(xp.logical_and(nan, _unflowing(xp, op, g, h)), xp.zeros_like(h), h)
    if local or rule is None or _is_clean(h):
        return h
    first, second = (rule(xp, g, *[_filled(xp, value, fill) for value in kept]) for fill in (0.5, 2.0))
    return xp.where(xp.logical_and(nan, xp.equal(first, second)), first, h)


def settled_tangent(xp: Any, rule: Callable, t: Any, part: Any, kept: Any) -> Any:
    """The tangent ``part = rule(xp, t, *kept)`` of an elementwise op, with 0 for nan where ``t`` or the derivative is 0."""
    if part is None or _is_clean(part):
        return part
    zero = xp.zeros_like(t)
    still = xp.logical_or(xp.equal(t, zero), xp.equal(rule(xp, xp.ones_like(t), *kept), zero))
    return xp.where(xp.logical_and(xp.isnan(part), still), zero, part)


def _is_clean(h: Any) -> bool:
    """Whether a value known to this machine has no nan."""
    while type(h) is not np.ndarray:
        inner = getattr(h, "_array", None)
        h = getattr(h, "value", None) if inner is None else inner
        if h is None:
            return False
    total = np.add.reduce(h, None)
    return bool(total == total)


def _unflowing(xp: Any, op: Any, g: Any, h: Any) -> Any:
    """Where the cotangents that an element of ``h`` is made of are all 0."""
    gs = g if type(g) is tuple else (g,)
    zero = [xp.equal(part, xp.zeros_like(part)) for part in gs]
    shape, shapes = xp.shape(h), [xp.shape(part) for part in gs]
    if op.elementwise and shapes == [shape]:
        return zero[0]
    batch = max(len(shape) - 2, 0) if op.name in _MATRICES else 0
    if any(s[:batch] != shape[:batch] for s in shapes):
        batch = 0
    everywhere = [xp.all(z, axis=tuple(range(batch, len(s)))) for z, s in zip(zero, shapes)]
    total = everywhere[0]
    for other in everywhere[1:]:
        total = xp.logical_and(total, other)
    return xp.reshape(total, shape=(*shape[:batch], *[1] * (len(shape) - batch)))


def _filled(xp: Any, value: Any, fill: float) -> Any:
    """A value that a record keeps, with a number in place of infinities and nan."""
    if type(value) is tuple:
        return tuple([_filled(xp, v, fill) for v in value])
    if value is None or type(value) is int or xp.dtype(value).kind in "biuO":
        return value
    return xp.where(xp.isfinite(value), value, xp.full(shape=xp.shape(value), value=fill, dtype=xp.dtype(value)))
