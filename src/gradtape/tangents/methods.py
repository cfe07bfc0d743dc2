"""`GradientTape.jacobian` and `batch_jacobian`: what is asked for, in which direction, and in what shape it comes back."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.asking import (
    UnconnectedGradients,
    differentiable,
    leading_to,
    leaves,
    shape_of,
    tensor_of,
    unconnected_option,
)
from gradtape.core.tape import JACOBIANS, USED, GradientTape
from gradtape.errors import message
from gradtape.tangents import jacobian as jacobians
from gradtape.values import nest
from gradtape.values.placement import beside
from gradtape.values.recorded import RECORDED
from gradtape.values.tensor import Tensor, wrap

_LOOP_NEEDS_PERSISTENT = (
    "GradientTape must be created with persistent=True to compute the {} with eager execution enabled and with  "
    "experimental_use_pfor set to False."
)


def _jacobian(
    self: GradientTape, target: Any, sources: Any, unconnected_gradients: Any, experimental_use_pfor: bool, mode: str,
    chunk_size: int | None, max_bytes: float | None,
) -> Any:  # fmt: skip
    if not experimental_use_pfor and not self._persistent and self.records is not None:
        text = _LOOP_NEEDS_PERSISTENT.format("jacobian")
        raise RuntimeError(message(text, received="persistent=False", fix="tf.GradientTape(persistent=True)"))
    jacobians.check_options(chunk_size, max_bytes, mode)
    self._begin("jacobian")
    if isinstance(target, (list, tuple, dict)):
        raise AttributeError(
            message(
                f"'{type(target).__name__}' object has no attribute 'shape'",
                received=f"a {type(target).__name__} as the target of jacobian",
                expected="one tensor",
                fix="ask for each target by itself, on a persistent tape",
            )
        )
    unconnected = unconnected_option(unconnected_gradients)
    flat = leaves(sources, "source")
    target = differentiable(self._dense(target), "target")
    chunks = jacobians.Chunks(chunk_size, max_bytes)
    results = _columns(self, target, flat, mode, chunks, experimental_use_pfor)
    rest = [i for i, found in enumerate(results) if found is None]
    if rest or not flat:
        rows = _rows(self, target, [flat[i] for i in rest], chunks, experimental_use_pfor)
        for i, found in zip(rest, rows):
            results[i] = found
    shape = shape_of(target)
    for i, source in enumerate(flat):
        if results[i] is None and unconnected is UnconnectedGradients.ZERO:
            results[i] = wrap(np.zeros(shape + shape_of(source), tensor_of(source)._array.dtype))
        if results[i] is not None:
            results[i] = beside(results[i], tensor_of(source))
    return nest.pack_sequence_as(sources, results)


def _columns(self: GradientTape, target: Any, sources: list, mode: str, chunks: Any, batched: bool) -> list:
    """The Jacobians that forward mode gives; None for those that are left to the rows."""
    by_rows = not batched or self.observers or mode == "reverse"
    if by_rows or (mode == "auto" and not jacobians.prefers_forward(self, target, sources)):
        return [None] * len(sources)
    found = jacobians.columns(self, target, sources, chunks)
    if not self._persistent and None not in found:
        self.records = None
    return found

def _rows(self: GradientTape, target: Any, sources: list, chunks: Any, batched: bool) -> list:
    shape, array = shape_of(target), tensor_of(target)._array
    size = int(np.prod(shape))
    records = self.records
    result = sum(size * array.dtype.itemsize * int(np.prod(shape_of(s))) for s in sources)
    path = leading_to({s._key for s in sources} - {None}, records)
    step = chunks.step(size, records, path, [target, *sources], result)
    found = jacobians.rows(self, target, jacobians.units(size, shape, array.dtype), size, sources, batched, step)
    return [
        None if rows is None else RECORDED.reshape(rows, shape=shape + shape_of(source))
        for source, rows in zip(sources, found)
    ]


def _batch_jacobian(
    self: GradientTape, target: Any, source: Any, unconnected_gradients: Any, parallel_iterations: int | None,
    experimental_use_pfor: bool, chunk_size: int | None, max_bytes: float | None,
) -> Tensor:  # fmt: skip
    if self.records is None:
        text = USED.replace("to compute", "tocompute")
        raise RuntimeError(message(text, received="a second call", fix="tf.GradientTape(persistent=True)"))
    if not experimental_use_pfor and not self._persistent:
        text = _LOOP_NEEDS_PERSISTENT.format("batch_jacobian").replace("enabled and with  ", "enabled and  with ")
        raise RuntimeError(message(text, received="persistent=False", fix="tf.GradientTape(persistent=True)"))
    jacobians.check_options(chunk_size, max_bytes, "reverse")
    self._begin("batch_jacobian")
    unconnected_option(unconnected_gradients)
    target, source = differentiable(self._dense(target), "target"), differentiable(source, "source")
    shape, inner = shape_of(target), shape_of(source)
    target.shape.with_rank_at_least(2)
    source.shape.with_rank_at_least(2)
    if shape[0] != inner[0]:
        text = f"Need first dimension of target shape ({shape}) and source shape ({inner}) to match."
        raise ValueError(message(text, expected="the batch along axis 0 of both"))
    size = int(np.prod(shape[1:]))
    if parallel_iterations is not None and parallel_iterations < size and not self._persistent:
        text = "GradientTape must be created with persistent=True to compute the batch_jacobian with parallel_iterations."
        raise RuntimeError(message(text, fix="tf.GradientTape(persistent=True)"))
    dtype = tensor_of(target)._array.dtype
    unit = jacobians.units(size, (1, *shape[1:]), dtype)
    result = size * int(np.prod(inner)) * dtype.itemsize
    path = leading_to({source._key} - {None}, self.records)
    step = jacobians.Chunks(chunk_size, max_bytes).step(size, self.records, path, [target, source], result)
    (rows,) = jacobians.rows(
        self, target, lambda i, j: np.broadcast_to(unit(i, j), (j - i, *shape)), size, [source],
        experimental_use_pfor, step,
    )  # fmt: skip
    if rows is None:
        return wrap(np.zeros(shape + inner[1:], dtype))
    rank = len(inner)
    swapped = RECORDED.transpose(rows, axes=(1, 0, *range(2, rank + 1)))
    return RECORDED.reshape(swapped, shape=shape + inner[1:])


JACOBIANS.update(jacobian=_jacobian, batch_jacobian=_batch_jacobian)
