"""Class numbers as vectors."""

from __future__ import annotations

from typing import Any

from keras.src.backend import config, standardize_dtype
from keras.src.backend.common.backend_utils import canonicalize_axes

from gradtape.errors import message
from gradtape.keras_backend.numpy_promotion import in_dtype, tensor
from gradtape.ops import indexing, reduce
from gradtape.ops import shape as shapes
from gradtape.values import dtypes
from gradtape.values.tensor import Tensor

__all__ = ["multi_hot", "one_hot"]


def one_hot(x: Any, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False) -> Tensor:
    """A new axis with 1 at the class and 0 elsewhere; a number that is no class gives zeros."""
    if sparse:
        text = "Unsupported value `sparse=True` with gradtape backend"
        raise ValueError(message(text, fix="sparse=False"))
    x = tensor(x)
    if x._array.dtype.kind not in "iu":
        x = in_dtype(x, "int32")
    kind = dtypes.as_dtype(config.floatx() if dtype is None else standardize_dtype(dtype))
    out = indexing.one_hot(x, depth=int(num_classes), dtype=kind.as_numpy_dtype)
    rank = out._array.ndim
    (axis,) = canonicalize_axes(axis, rank)
    return out if axis == rank - 1 else shapes.transpose(out, axes=(*range(axis), rank - 1, *range(axis, rank - 1)))


def multi_hot(x: Any, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False) -> Tensor:
    """1 at every class that an example has, 0 elsewhere."""
    x = tensor(x)
    present = one_hot(x, num_classes, axis, "bool", sparse)
    kind = config.floatx() if dtype is None else standardize_dtype(dtype)
    return in_dtype(reduce.any(present, axis=1 if x._array.ndim > 1 else 0), kind)
