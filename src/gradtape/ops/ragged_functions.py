"""What functions of tensors do with ragged ones, by the names under which users call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, message
from gradtape.ops import elementwise, nn, partition, ragged_reduce, ragged_shape, reduce, shape
from gradtape.ops.described import RaggedTensorSpec
from gradtape.ops.nondiff import counted, counts_by_row, host
from gradtape.ops.ragged import RaggedTensor, gather_rows
from gradtape.ops.ragged_broadcast import elementwise as map_flat
from gradtape.values import dtypes
from gradtape.values.composite import structured_in
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor, wrap
from gradtape.xp import dialect

_ELEMENTWISE_OPS = frozenset(
    "astype betainc bitcast clip divide_no_nan identity leaky_relu multiply_no_nan polygamma silu where xdivy xlog1py xlogy "
    "zeta".split()
)
"""Those that are not of one or two arrays without attributes; of these all but the matrix products are elementwise."""


def call(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The function of arguments of which at least one is ragged."""
    op = getattr(function, "op", None)
    if op is None:
        own = FUNCTIONS.get(function.__name__)
        if own is not None:
            return own(*args, **kwargs)
        is_elementwise = getattr(function, "elementwise", False)
    else:
        is_elementwise = (op.paired and op.name not in dialect.CONTRACTIONS) or op.name in _ELEMENTWISE_OPS
    if is_elementwise:
        return map_flat(function, args, kwargs)
    return structured_in((*args, *kwargs.values()))._to_tensor()  # type: ignore[union-attr]  # says that it is refused


def _where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """A choice between x and y, or the index vectors of the true elements."""
    if x is None and y is None:
        return ragged_shape.nonzero(condition)
    return map_flat(elementwise.where, (condition, x, y), {})


def _rank(input: RaggedTensor, name: str | None = None) -> Tensor:
    return wrap(np.asarray(input._rank, np.int32))


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


def _bincount(
    arr: RaggedTensor, weights: Any = None, minlength: Any = None, maxlength: Any = None, dtype: Any = dtypes.int32,
    name: str | None = None, axis: Any = None, binary_output: bool = False,
) -> Tensor:  # fmt: skip
    """How often each number occurs, in everything or in each row."""
    rows = host(arr.value_rowids()) if counts_by_row(axis) else None
    loads = None if weights is None else host(weights.flat_values)
    count = len(host(arr.row_lengths()))
    return counted(host(arr.flat_values), rows, count, loads, minlength, maxlength, dtype, binary_output)


def _map_fn(fn: Callable, elems: RaggedTensor, signature: Any) -> Any:
    """The results for the rows: as ragged as ``elems``, unless a signature tells that they are tensors of one shape."""
    rows = [fn(elems[at]) for at in range(len(host(elems.row_lengths())))]
    if signature is not None and not isinstance(signature, RaggedTensorSpec):
        return shape.stack(*map(convert_to_tensor, rows), axis=0)
    if not rows:
        return elems
    for at, row in enumerate(rows):
        if not isinstance(row, RaggedTensor) and not convert_to_tensor(row)._array.ndim:
            text = f"Ragged values must have rank >= 1; encoded scalar element at index {at} [Op:RaggedTensorFromVariant]"
            raise InvalidArgumentError(message(text, fix="fn_output_signature=tf.float32 (the dtype of the results)"))
    return ragged_shape.stack(rows).with_row_splits_dtype(elems.row_splits.dtype)


def _embedding_lookup(params: Any, ids: RaggedTensor, max_norm: float | None = None, name: str | None = None) -> RaggedTensor:
    return ids.with_flat_values(nn.embedding_lookup(params, ids.flat_values, max_norm))


FUNCTIONS: dict[str, Callable] = {
    **{name: getattr(ragged_shape, name) for name in (
        "concat", "expand_dims", "gather", "reshape", "reverse", "split", "squeeze", "stack", "tile",
    )},
    **{name: getattr(ragged_reduce, name) for name in (
        "add_n", "reduce_all", "reduce_any", "reduce_logsumexp", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod",
        "reduce_std", "reduce_sum", "reduce_variance", "size", "softmax",
    )},
    "bincount": _bincount,
    "cumsum": _cumsum,
    "embedding_lookup": _embedding_lookup,
    "map_fn": _map_fn,
    "rank": _rank,
    "where": _where,
}  # fmt: skip
