"""`IndexedSlices`: the gradient of a gather, kept as rows and their indices."""

from __future__ import annotations

from typing import Any

from gradtape.errors import message
from gradtape.values import dtypes
from gradtape.values.composite import Composite
from gradtape.values.convert import convert_to_tensor
from gradtape.values.shape import TensorShape
from gradtape.values.tensor import Tensor


class IndexedSlices(Composite):
    """Rows ``values[i]`` that stand at ``indices[i]`` of a tensor of shape ``dense_shape``; equal indices add up."""

    __slots__ = ("__weakref__", "_dense_shape", "_indices", "_values")
    __array_priority__ = 100

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self._values = convert_to_tensor(values)
        self._indices = convert_to_tensor(indices)
        self._dense_shape = None if dense_shape is None else convert_to_tensor(dense_shape)

    _values: Any
    _indices: Any
    _dense_shape: Any

    @classmethod
    def _of(cls, values: Any, indices: Any, dense_shape: Any) -> IndexedSlices:
        """Without conversion: inside a sweep the parts are raw arrays."""
        self = object.__new__(cls)
        self._values, self._indices, self._dense_shape = values, indices, dense_shape
        return self

    @classmethod
    def _combined(cls, xp: Any, x: Any, y: Any) -> Any:
        """The sum of two gradients of which at least one is sparse: sparse if both are, else dense."""
        if type(x) is type(y):
            ix, iy = x._indices, y._indices
            if xp.dtype(ix) != xp.dtype(iy):
                ix, iy = (xp.astype(i, dtype="int64") for i in (ix, iy))
            values = xp.concatenate(x._values, y._values, axis=0)
            return cls._of(values, xp.concatenate(ix, iy, axis=0), x._dense_shape)
        dense, sparse = (y, x) if type(x) is cls else (x, y)
        return xp.add(dense, sparse._dense(xp))

    def _dense(self, xp: Any) -> Any:
        return xp.take_transpose(self._values, self._indices, axis=0, shape=tuple(self._dense_shape), batch_dims=0)

    def _to_tensor(self, dtype: dtypes.DType | None = None) -> Tensor:
        from gradtape.values.recorded import RECORDED

        if self._dense_shape is None:
            raise ValueError(
                message(
                    f"Tensor conversion requested for IndexedSlices for argument `value` without dense_shape: {self}",
                    received=f"values of shape {self.values.shape} without dense_shape",
                    fix="tf.IndexedSlices(values, indices, dense_shape=[rows, columns])",
                )
            )
        if dtype is not None and dtype is not self.dtype:
            text = (
                f"Incompatible tensor conversion requested to `dtype` {dtype.name} for IndexedSlices ({self}) "
                f"with dtype {self.dtype.name}"
            )
            raise ValueError(message(text, fix=f"tf.cast(tf.convert_to_tensor(slices), {dtype!r})"))
        shape = tuple(int(n) for n in self._dense_shape.numpy())
        return RECORDED.take_transpose(self._values, self._indices, axis=0, shape=shape, batch_dims=0)

    def _components(self) -> list[Tensor]:
        return [part for part in (self._values, self._indices, self._dense_shape) if part is not None]

    def _from_components(self, components: list[Any]) -> IndexedSlices:
        return IndexedSlices(*components)

    def _differentiable_part(self) -> Tensor:
        return self._values

    @property
    def values(self) -> Tensor:
        return self._values

    @property
    def indices(self) -> Tensor:
        return self._indices

    @property
    def dense_shape(self) -> Tensor | None:
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        return TensorShape(None if self._dense_shape is None else self._dense_shape.numpy().tolist())

    @property
    def dtype(self) -> dtypes.DType:
        return self._values.dtype

    @property
    def device(self) -> str:
        return self._values.device

    @property
    def name(self) -> str:
        return self._values.name  # type: ignore[return-value]  # raises, as an eager tensor does

    @property
    def op(self) -> Any:
        return self._values.op

    @property
    def graph(self) -> Any:
        return self._values.graph

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices._of(-self._values, self._indices, self._dense_shape)  # type: ignore[operator]

    def _unsupported(self, other: Any) -> Any:
        raise TypeError(
            message(
                f"unsupported operand type(s): 'IndexedSlices' and '{type(other).__name__}'",
                received="a sparse gradient, as gather and embedding lookups give",
                fix="tf.convert_to_tensor(gradient) makes it dense; gradient.values holds its rows",
            )
        )

    __add__ = __sub__ = __mul__ = __truediv__ = __pow__ = __matmul__ = _unsupported

    def consumers(self) -> list:
        return self._values.consumers()

    def __repr__(self) -> str:
        shape = "" if self._dense_shape is None else f", dense_shape={self._dense_shape!s}"
        return f"IndexedSlices(indices={self._indices!s}, values={self._values!s}{shape})"

    __str__ = __repr__
