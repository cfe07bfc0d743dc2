"""Where values are: in NumPy's memory, or on another device, as jax arrays.

A value that is copied to another device keeps its key: to tapes it is the same value, so gradients flow through copies
without a record of them.
"""

from __future__ import annotations

import threading
from typing import Any

from gradtape.values.tensor import JaxTensor, Tensor, wrap

HOST: Any = "host"
"""Stands for the CPU whose memory NumPy arrays are in, where somebody asks for it by name."""


class _Here(threading.local):
    """The device that this thread's operations shall run on; None: where their operands are."""

    device: Any = None


here = _Here()


def placed(tensor: Tensor) -> Tensor:
    """The tensor on the device that this thread has chosen, if it has."""
    return tensor if here.device is None else moved(tensor, here.device)


def moved(tensor: Tensor, device: Any) -> Tensor:
    """The tensor on a device; itself if it is there already, or has no numbers that could be moved."""
    if device is HOST:
        if type(tensor) is not JaxTensor or tensor._is_traced():
            return tensor
        return _same(tensor, tensor._host())
    if type(tensor) is Tensor:
        if tensor._array.dtype.kind == "O":  # strings stay where Python is
            return tensor
    elif type(tensor) is not JaxTensor or tensor._is_traced():
        return tensor
    from gradtape.xp import jax_devices

    array = jax_devices.put(tensor._array, device)
    return tensor if array is tensor._array else _same(tensor, array)


def _same(tensor: Tensor, array: Any) -> Tensor:
    if tensor._key is None:
        tensor._key = object()
    copy = wrap(array)
    copy._key = tensor._key
    return copy


def device_of(tensor: Tensor) -> Any:
    """The device that a tensor is on; None if it has no numbers."""
    if type(tensor) is Tensor:
        return HOST
    if type(tensor) is not JaxTensor or tensor._is_traced():
        return None
    from gradtape.xp import jax_devices

    return jax_devices.of(tensor._array)


def beside(tensor: Tensor, other: Tensor) -> Tensor:
    """The tensor where ``other`` is."""
    if type(tensor) is Tensor is type(other):
        return tensor
    device = device_of(other)
    return tensor if device is None else moved(tensor, device)
