"""What functions of tensors do with ragged ones, by the names under which users call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.ops import contract, elementwise, partition, ragged_reduce, ragged_shape, reduce, shape
from gradtape.ops.ragged import RaggedTensor, gather_rows
from gradtape.ops.ragged_broadcast import elementwise as map_flat
from gradtape.values.tensor import Tensor, wrap

_ELEMENTWISE_OPS = {"astype", "bitcast", "identity", "where", "clip", "leaky_relu", "silu", "polygamma", "zeta", "betainc"}
_OTHERS = {contract.matmul}


def call(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The function of arguments of which at least one is ragged."""
    own = FUNCTIONS.get(function.__name__)
    if own is not None and not (own is ragged_shape.where and len(args) + len(kwargs) > 1):
        return own(*args, **kwargs)
    if _is_elementwise(function):
        return map_flat(function, args, kwargs)
    ragged = next(value for value in (*args, *kwargs.values()) if isinstance(value, RaggedTensor))
    return ragged._to_tensor()  # says that this function does not take it


def _is_elementwise(function: Any) -> bool:
    op = getattr(function, "op", None)
    if op is None:
        return getattr(function, "elementwise", False)
    return (op.paired and function not in _OTHERS) or op.name in _ELEMENTWISE_OPS


def _rank(input: RaggedTensor, name: str | None = None) -> Tensor:
    return wrap(np.asarray(input._rank, np.int32))


def _stop_gradient(input: RaggedTensor, name: str | None = None) -> RaggedTensor:
    return input.with_flat_values(elementwise.stop_gradient(input.flat_values))


def _cumsum(
    x: RaggedTensor, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> RaggedTensor:
    """Sums along an axis: those of the dense tensor, read where the rows have elements."""
    dense = reduce.cumsum(x.to_tensor(), axis=x._axis(axis), exclusive=exclusive, reverse=reverse)
    levels = x.ragged_rank
    lengths = dense._array.shape[: levels + 1]
    place = partition.layout(x._nested(), lengths)
    rows = shape.reshape(dense, shape=(int(np.prod(lengths)), *dense._array.shape[levels + 1 :]))
    return x.with_flat_values(gather_rows(rows, np.flatnonzero(place >= 0)))


FUNCTIONS: dict[str, Callable] = {
    **{name: getattr(ragged_shape, name) for name in (
        "concat", "expand_dims", "gather", "reshape", "reverse", "split", "squeeze", "stack", "tile", "where",
    )},
    **{name: getattr(ragged_reduce, name) for name in (
        "add_n", "reduce_all", "reduce_any", "reduce_logsumexp", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod",
        "reduce_std", "reduce_sum", "reduce_variance", "size", "softmax",
    )},
    "cumsum": _cumsum,
    "rank": _rank,
    "stop_gradient": _stop_gradient,
}  # fmt: skip

