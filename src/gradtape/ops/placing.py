"""Operations on the device that a thread has chosen (`devices.device`).

The calls of `core.op` take tensors in NumPy's memory without asking where they should be. While some thread is inside a
`device` block these calls are diverted, in all threads, to an `apply` that asks; so eager code pays nothing otherwise.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from gradtape.core import op
from gradtape.core.op import Op
from gradtape.values import convert
from gradtape.values.convert import Convertible
from gradtape.values.placement import HOST, here, moved, placed
from gradtape.values.tensor import JaxTensor, Tensor, wrap

_apply = op.apply
_lock = threading.Lock()
_asking = 0  # threads in a block of any device
_elsewhere = 0  # those among them whose device is not the host


class _Nothing:
    """The class of no tensor."""


def change(before: Any, after: Any) -> None:
    """This thread leaves a device for another; None stands for no choice."""
    global _asking, _elsewhere
    with _lock:
        _asking += (after is not None) - (before is not None)
        _elsewhere += (after not in (None, HOST)) - (before not in (None, HOST))
        op.apply = apply if _asking else _apply
        op._fast = _Nothing if _elsewhere else Tensor
    here.device = after


def apply(spec: Op, args: tuple, attributes: dict[str, Any]) -> Any:
    """`core.op.apply` on this thread's device: the operands go there first."""
    device = here.device
    if device is None:
        return _apply(spec, args, attributes)
    if not args and device is not HOST:
        return _made(spec, attributes, device)
    tensors = [x._operand() if isinstance(x, Convertible) else x for x in args]
    if JaxTensor in map(type, tensors):
        from gradtape.ops.compiled import note  # loaded with jax

        note(tensors)
    if any(isinstance(x, Tensor) and x._array.dtype.kind == "O" for x in tensors):
        device = HOST
    out = _apply(spec, tuple(moved(x, device) if isinstance(x, Tensor) else x for x in tensors), attributes)
    return tuple(map(placed, out)) if type(out) is tuple else placed(out) if isinstance(out, Tensor) else out


def _made(spec: Op, attributes: dict[str, Any], device: Any) -> Tensor:
    """The value of an op without operands, made on the device."""
    if np.dtype(attributes["dtype"]).kind == "O":
        return _apply(spec, (), attributes)
    from gradtape.xp import jax_devices

    with jax_devices.creating(device) as namespace:
        value = spec.kernel(namespace, **attributes)
    return moved(wrap(value), device)


def convert_to_tensor(value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None) -> Tensor:
    """The tensor for a value; a tensor is returned as it is.

    >>> convert_to_tensor([1, 2.5])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1. , 2.5], dtype=float32)>
    """
    tensor = convert.convert_to_tensor(value, dtype, dtype_hint)
    return tensor if here.device is None or isinstance(value, (Tensor, Convertible)) else placed(tensor)
