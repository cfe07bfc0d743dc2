"""Reductions of ragged tensors. Rows that fall together are merged: the one idea behind every axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.ops import elementwise, indexing, partition, reduce, segments, shape
from gradtape.ops.arguments import integers
from gradtape.ops.ragged import RaggedTensor
from gradtape.ops.ragged_broadcast import elementwise as map_flat
from gradtape.ops.ragged_shape import expand_dims
from gradtape.values import dtypes
from gradtape.values.tensor import Tensor, wrap


def merge(value: Any, ids: np.ndarray, count: int, reduction: Callable) -> Any:
    """Rows with the same id as one; a ragged row becomes as long as the longest that falls into it."""
    if not isinstance(value, RaggedTensor):
        return reduction(value, wrap(np.asarray(ids, np.int64)), count)
    lengths = np.zeros(count, value._splits.dtype)
    np.maximum.at(lengths, ids, np.diff(value._splits))
    splits = partition.starting_at_zero(lengths)
    inner = splits[:-1][ids[partition.row_ids(value._splits)]] + partition.columns(value._splits)
    return RaggedTensor._of(merge(value._values, inner, int(splits[-1]), reduction), splits)


def along(value: Any, axis: int, reduction: Callable, dense: Callable) -> Any:
    """One axis away."""
    if not isinstance(value, RaggedTensor):
        return dense(value, axis=axis)
    if axis == 0:
        rows = len(value._splits) - 1
        return merge(value, np.zeros(rows, np.int64), 1, reduction)._values
    if axis == 1:
        return merge(value._values, partition.row_ids(value._splits), len(value._splits) - 1, reduction)
    return value.with_values(along(value._values, axis - 1, reduction, dense))


def reducer(segment: Callable, dense: Callable) -> Callable:
    """A reduction over any axes, from one over segments and one of dense tensors."""

    def call(input_tensor: RaggedTensor, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
        if axis is None:
            out: Any = dense(input_tensor.flat_values)
            return shape.reshape(out, shape=(1,) * input_tensor._rank) if keepdims else out
        found = sorted({input_tensor._axis(a) for a in integers(axis)}, reverse=True)
        out = input_tensor
        for at in found:
            out = along(out, at, segment, dense)
        for at in reversed(found) if keepdims else ():
            out = expand_dims(out, at)
        return out

    return call


def _truth(function: Callable) -> Callable:
    """A reduction of truth values by one of integers; nothing is False for any, True for all."""
    return lambda x, ids, count: elementwise.cast(function(elementwise.cast(x, "int32"), ids, count), "bool")


def _log_sum_exp(x: Tensor, ids: Tensor, count: int) -> Tensor:
    """log Σ eˣ, without overflow; -inf where there is nothing."""
    largest = elementwise.stop_gradient(segments._max(x, ids, count))
    total = segments._sum(elementwise.exp(elementwise.subtract(x, indexing.take(largest, ids, axis=0))), ids, count)
    return elementwise.add(elementwise.log(total), largest)


reduce_sum = reducer(segments._sum, reduce.sum)
reduce_prod = reducer(segments._prod, reduce.prod)
reduce_max = reducer(segments._max, reduce.max)
reduce_min = reducer(segments._min, reduce.min)
reduce_logsumexp = reducer(_log_sum_exp, reduce.logsumexp)
reduce_any = reducer(_truth(segments._sum), reduce.any)
reduce_all = reducer(_truth(segments._prod), reduce.all)


def reduce_mean(input_tensor: RaggedTensor, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """Sum over count; nan where there is nothing."""
    ones = input_tensor.with_flat_values(elementwise.ones_like(input_tensor.flat_values))
    total, count = (reduce_sum(x, axis, keepdims) for x in (input_tensor, ones))
    return _each(elementwise.true_divide, total, count)


def reduce_variance(input_tensor: RaggedTensor, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """The mean of x² minus the square of the mean, around the mean of everything, so that no digits are lost."""
    x = elementwise.cast(input_tensor, "float64") if input_tensor.dtype.is_integer else input_tensor
    x = _each(elementwise.subtract, x, elementwise.stop_gradient(reduce_mean(x)))
    square = _each(elementwise.square, reduce_mean(x, axis, keepdims))
    return _each(elementwise.subtract, reduce_mean(_each(elementwise.square, x), axis, keepdims), square)


def reduce_std(input_tensor: RaggedTensor, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """√variance."""
    return _each(elementwise.sqrt, reduce_variance(input_tensor, axis, keepdims))


def _each(function: Callable, *args: Any) -> Any:
    """An elementwise function of tensors or ragged tensors."""
    return map_flat(function, args, {}) if any(isinstance(x, RaggedTensor) for x in args) else function(*args)


def softmax(logits: RaggedTensor, axis: Any = None, name: str | None = None) -> RaggedTensor:
    """eˣ / Σ eˣ along an axis."""
    at = logits._axis(-1 if axis is None else axis)
    largest = _each(elementwise.stop_gradient, reduce_max(logits, at, True))
    weights = _each(elementwise.exp, _each(elementwise.subtract, logits, largest))
    return _each(elementwise.divide, weights, reduce_sum(weights, at, True))


def add_n(inputs: list, name: str | None = None) -> Any:
    """The sum of ragged tensors."""
    total = inputs[0]
    for term in inputs[1:]:
        total = _each(elementwise.add, total, term)
    return total


def size(input: RaggedTensor, out_type: Any = None, name: str | None = None) -> Tensor:
    """The number of elements."""
    wanted = dtypes.int32 if out_type is None else dtypes.as_dtype(out_type)
    return wrap(np.asarray(input.flat_values._array.size, wanted.numpy))
