"""The core of the backend, as Keras looks it up: variables, conversions, control flow, scattering and slicing."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from keras.src import tree
from keras.src.backend.common import KerasVariable

from gradtape import toplevel
from gradtape.core import custom
from gradtape.errors import message
from gradtape.keras_backend.control import associative_scan, cond, fori_loop, map, scan, switch, vectorized_map, while_loop
from gradtape.keras_backend.specs import compute_output_spec
from gradtape.keras_backend.variables import Variable, cast, convert_to_numpy, convert_to_tensor, is_tensor, shape
from gradtape.math import reduce_sum, unsorted_segment_prod
from gradtape.ops import elementwise, indexing
from gradtape.ops.devices import device
from gradtape.values.tensor import Tensor

__all__ = [
    "IS_THREAD_SAFE", "SUPPORTS_COMPLEX_DTYPES", "SUPPORTS_RAGGED_TENSORS", "SUPPORTS_SPARSE_TENSORS", "Variable",
    "associative_scan", "cast", "compute_output_spec", "cond", "convert_to_numpy", "convert_to_tensor",
    "custom_gradient", "device_scope", "fori_loop", "is_tensor", "map", "random_seed_dtype", "remat", "scan", "scatter",
    "scatter_update", "shape", "slice", "slice_update", "stop_gradient", "switch", "unstack", "vectorized_map",
    "while_loop",
]  # fmt: skip

SUPPORTS_SPARSE_TENSORS = False
SUPPORTS_RAGGED_TENSORS = False
SUPPORTS_COMPLEX_DTYPES = True
IS_THREAD_SAFE = True


def random_seed_dtype() -> str:
    return "uint32"


# Scattering and slicing


def scatter(indices: Any, values: Any, shape: Sequence[int]) -> Tensor:
    """Zeros of a shape, with ``values`` added at ``indices``."""
    return toplevel.scatter_nd(convert_to_tensor(indices), convert_to_tensor(values), tuple(shape))


def scatter_update(inputs: Any, indices: Any, updates: Any, reduction: str | None = None) -> Tensor:
    inputs = convert_to_tensor(inputs)
    indices, updates = convert_to_tensor(indices), convert_to_tensor(updates, inputs.dtype)
    if reduction == "mul":
        return inputs * _factors(inputs, indices, updates)
    if reduction not in _SCATTERED:
        text = f"Unsupported reduction: {reduction}"
        raise ValueError(message(text, received=f"{reduction!r}", expected="None, 'add', 'max', 'min' or 'mul'"))
    outer = indices._array.shape[:-1] + inputs._array.shape[indices._array.shape[-1] :]
    return _SCATTERED[reduction](inputs, indices, toplevel.broadcast_to(updates, outer))


_SCATTERED: dict[str | None, Callable] = {
    None: toplevel.tensor_scatter_nd_update, "add": toplevel.tensor_scatter_nd_add,
    "max": toplevel.tensor_scatter_nd_max, "min": toplevel.tensor_scatter_nd_min,
}  # fmt: skip


def _factors(inputs: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """What each element of ``inputs`` is multiplied by: the product of its updates, or one."""
    lengths = inputs._array.shape
    depth = indices._array.shape[-1]
    outer, inner = lengths[:depth], lengths[depth:]
    weights = np.cumprod((1, *outer[:0:-1]))[::-1].astype(indices._array.dtype)
    rows = toplevel.reshape(reduce_sum(indices * weights, -1), (-1,))
    updates = toplevel.reshape(toplevel.broadcast_to(updates, indices._array.shape[:-1] + inner), (-1, *inner))
    return toplevel.reshape(unsorted_segment_prod(updates, rows, int(np.prod(outer))), lengths)


def _starts(inputs: Tensor, start_indices: Any, lengths: Sequence[int]) -> list:
    """Where a slice begins in each axis: moved inside where it would reach over the end."""
    if isinstance(start_indices, Tensor):
        start_indices = toplevel.unstack(start_indices)
    found = []
    for start, length, size in zip(start_indices, lengths, inputs._array.shape, strict=True):
        if not 0 <= length <= size:
            text = f"A slice of shape {tuple(lengths)} does not fit in a tensor of shape {inputs._array.shape}."
            raise ValueError(message(text, received=f"{length} elements of an axis of {size}"))
        start = start if isinstance(start, (int, np.integer)) else convert_to_tensor(start, "int32")
        if isinstance(start, Tensor) and type(start) is not Tensor:  # not known yet, or one for each element of a batch
            start = elementwise.where(start < 0, start + size, start)
            found.append(toplevel.clip_by_value(start, 0, size - length))
        else:
            start = int(start) + size if start < 0 else int(start)
            found.append(max(0, min(start, size - length)))
    return found


def slice(inputs: Any, start_indices: Any, shape: Sequence[int]) -> Tensor:
    """``shape`` elements from ``start_indices`` on; -1 takes the rest of an axis."""
    inputs = convert_to_tensor(inputs)
    lengths = [
        size - int(start) if length == -1 else int(length)
        for start, length, size in zip(start_indices, shape, inputs._array.shape, strict=True)
    ]
    for axis, (start, length) in enumerate(zip(_starts(inputs, start_indices, lengths), lengths)):
        if isinstance(start, int):
            cut = (builtins.slice(None),) * axis + (builtins.slice(start, start + length),)
            inputs = inputs[cut]
        else:
            inputs = elementwise.identity(inputs)  # a gather from the source itself would give IndexedSlices
            inputs = toplevel.gather(inputs, start + np.arange(length, dtype=np.int32), axis=axis)
    return inputs


def slice_update(inputs: Any, start_indices: Any, updates: Any) -> Tensor:
    """``inputs`` with ``updates`` from ``start_indices`` on."""
    inputs = convert_to_tensor(inputs)
    updates = convert_to_tensor(updates, inputs.dtype)
    lengths = updates._array.shape
    if not lengths:
        return updates
    starts = _starts(inputs, start_indices, lengths)
    if all(isinstance(start, int) for start in starts):
        index = tuple(builtins.slice(start, start + length) for start, length in zip(starts, lengths))
        there = np.zeros(inputs._array.shape, bool)
        there[index] = True
        return elementwise.where(there, indexing.put_slice(updates, index=index, shape=there.shape), inputs)
    grid = np.moveaxis(np.indices(lengths, dtype=np.int32), 0, -1)
    places = toplevel.stack([convert_to_tensor(start, "int32") for start in starts]) + grid
    return toplevel.tensor_scatter_nd_update(inputs, places, updates)


def unstack(x: Any, num: int | None = None, axis: int = 0) -> list[Tensor]:
    return list(toplevel.unstack(convert_to_tensor(x), num, axis))


# Gradients


def stop_gradient(variable: Any) -> Tensor:
    return elementwise.stop_gradient(convert_to_tensor(variable))


def custom_gradient(fun: Callable) -> Callable:
    """``fun`` returns its results and the function that takes their gradients to those of its arguments."""
    recorded = custom.custom_gradient(fun)

    def called(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree.map_structure(lambda x: x._operand() if isinstance(x, KerasVariable) else x, (args, kwargs))
        return recorded(*args, **kwargs)

    return called


def remat(f: Callable) -> Callable:
    """``f``, whose intermediate values are computed again when gradients need them."""
    return custom.recompute_grad(f)


def device_scope(device_name: str) -> Any:
    return device(device_name)
