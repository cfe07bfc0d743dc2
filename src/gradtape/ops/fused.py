"""Ops inside `vectorized_map`, seen by a tape outside it: one record each, with the op's own rules.

The batched kernel is composed of dialect functions. Recorded one by one, they would give the derivative of the kernel, which
is not the op's rule where that is chosen (a kink, a straight-through gradient) or more stable than the formula.
"""

from __future__ import annotations

from typing import Any

from gradtape.core.backprop import Sweep
from gradtape.core.context import thread
from gradtape.core.custom import lifted
from gradtape.core.op import Op, make_record
from gradtape.core.selection import ALWAYS
from gradtape.values.batched import BATCHED
from gradtape.values.recorded import RECORDED
from gradtape.values.tensor import BatchedTensor, Tensor, wrap
from gradtape.xp import dialect

_DIALECT = frozenset(dialect.NAMES)


def run(spec: Op, tensors: list[Tensor], arrays: list, attributes: dict[str, Any]) -> Any:
    """The batched value or values of an op; what a recorder outside the batch tracks is recorded there as one step."""
    if spec.name in _DIALECT or not spec.rules or not thread.recorders:
        return spec.kernel(BATCHED, *arrays, **attributes)
    top = max(t._array.level for t in tensors if type(t) is BatchedTensor)
    tracked = [_is_tracked(t, top) for t in tensors]
    if not any(tracked):
        return spec.kernel(BATCHED, *arrays, **attributes)
    value = spec.kernel(BATCHED, *(t._detached()._array for t in tensors), **attributes)
    record: tuple | None = None

    def grad_fn(*upstream: Tensor) -> list:
        return _pulled(record, upstream, tracked)  # type: ignore[arg-type]

    values = value if type(value) is tuple else (value,)
    outs = lifted(spec.name, grad_fn, tuple(map(wrap, values)), list(tensors), [], thread.batch[:top])
    record = make_record(spec, outs if type(value) is tuple else outs[0], tensors, attributes)
    return tuple(o._array for o in outs) if type(value) is tuple else outs[0]._array


def _is_tracked(t: Tensor, top: int) -> bool:
    """Whether a recorder knows the tensor as it is outside the batch."""
    inner = t._array.value if type(t) is BatchedTensor and t._array.level == top else t
    if type(inner) is BatchedTensor:
        return isinstance(inner._array.value, Tensor)
    return type(inner) is Tensor and any(inner._key in recorder.records for recorder in thread.recorders)


def _pulled(record: tuple, upstream: tuple, tracked: list[bool]) -> list:
    """The cotangents of the inputs, each position for itself even if two are the same tensor."""
    keys = tuple(object() if is_tracked else None for is_tracked in tracked)
    sweep = Sweep(RECORDED, False, False, {*keys} - {None}, poles=ALWAYS)
    several = len(record[7]) > 1
    record[1].pull((*record[:2], keys, *record[3:]), upstream if several else upstream[0], sweep)
    return [sweep.cotangents.get(key) for key in keys]
