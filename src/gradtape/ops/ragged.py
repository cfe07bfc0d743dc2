"""`RaggedTensor`: rows of different lengths, kept as one tensor of values and the places where the rows begin.

The places (splits) are NumPy arrays on the host; the values are an ordinary tensor, through which gradients flow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, message, shown
from gradtape.ops import elementwise, indexing, partition
from gradtape.ops.nondiff import host
from gradtape.values import dtypes
from gradtape.values.composite import Structured
from gradtape.values.convert import convert_to_tensor
from gradtape.values.shape import TensorShape
from gradtape.values.tensor import Tensor, wrap

_PRIVATE = (
    "RaggedTensor constructor is private; please use one of the factory methods instead "
    "(e.g., RaggedTensor.from_row_lengths())"
)


class RaggedTensor(Structured):
    """A tensor with rows of different lengths; row i is ``values[row_splits[i] : row_splits[i + 1]]``.

    >>> RaggedTensor.from_row_lengths([1, 2, 3], [2, 0, 1])
    <tf.RaggedTensor [[1, 2], [], [3]]>
    """

    __slots__ = ("__weakref__", "_splits", "_uniform", "_values")
    _values: Any
    _splits: np.ndarray
    _uniform: int | None  # the length that all rows have by construction

    def __init__(self, *_: object, **__: object) -> None:
        raise ValueError(
            message(_PRIVATE, fix="tf.ragged.constant([[1, 2], [3]]), or RaggedTensor.from_row_splits(values, splits)")
        )

    @classmethod
    def _of(cls, values: Any, splits: np.ndarray, uniform: int | None = None) -> RaggedTensor:
        """Without checks."""
        self = object.__new__(cls)
        self._values, self._splits, self._uniform = values, splits, uniform
        return self

    # Making one

    @classmethod
    def from_row_splits(cls, values: Any, row_splits: Any, name: str | None = None, validate: bool = True) -> RaggedTensor:
        """Rows from where they begin; the last split is where the last row ends."""
        if isinstance(row_splits, (list, tuple)) and not len(row_splits):
            text = "row_splits tensor may not be empty."
            raise ValueError(message(text, received="row_splits=[]", expected="one number more than rows, the first 0"))
        splits = _partition(row_splits, "row_splits")
        if not len(splits):
            text = "row_splits tensor may not be empty."
            raise ValueError(message(text, received="row_splits=[]", expected="one number more than rows, the first 0"))
        if validate:
            partition.check_splits(splits)
        return cls._checked(values, splits)

    @classmethod
    def from_row_lengths(cls, values: Any, row_lengths: Any, name: str | None = None, validate: bool = True) -> RaggedTensor:
        """Rows from their lengths."""
        lengths = _partition(row_lengths, "row_lengths")
        if validate and (lengths < 0).any():
            raise partition.invalid("from_row_lengths", f"\nrow_lengths = {lengths}", "lengths ≥ 0", "RowPartition")
        return cls._checked(values, partition.starting_at_zero(lengths))

    @classmethod
    def from_value_rowids(
        cls, values: Any, value_rowids: Any, nrows: Any = None, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Rows from the number of the row of each value; these numbers never fall."""
        ids, values = _partition(value_rowids, "value_rowids"), _values(values)
        if len(ids) != _length(values):
            text = f"Shapes ({_length(values)},) and ({len(ids)},) are incompatible"
            raise ValueError(
                message(text, received=f"{len(ids)} ids for {_length(values)} values", expected="one row id per value")
            )
        if (np.diff(ids) < 0).any() or (ids[:1] < 0).any():
            raise partition.invalid(
                "from_value_rowids", f"\nvalue_rowids = {ids}", "numbers ≥ 0 that never fall", "RowPartition"
            )
        last = int(ids[-1]) if len(ids) else -1
        count = last + 1 if nrows is None else int(host(nrows))
        if count < 0:
            raise ValueError(message(f"Expected nrows >= 0; got {count}", received=f"nrows={count}", expected="0 or more"))
        if count <= last:
            text = f"Expected nrows >= value_rowids[-1] + 1; got nrows={count}, value_rowids[-1]={last}"
            raise ValueError(message(text, received=f"nrows={count}, value_rowids up to {last}", fix=f"nrows={last + 1}"))
        return cls._of(values, partition.starting_at_zero(np.bincount(ids, minlength=count).astype(ids.dtype)))

    @classmethod
    def from_row_starts(cls, values: Any, row_starts: Any, name: str | None = None, validate: bool = True) -> RaggedTensor:
        """Rows from where they begin."""
        starts, values = _partition(row_starts, "row_starts"), _values(values)
        if len(starts) and (starts[0] or starts[-1] > _length(values) or (np.diff(starts) < 0).any()):
            expected = f"starts that rise from 0 to at most {_length(values)}"
            raise partition.invalid("from_row_starts", f"\nrow_starts = {starts}", expected)
        return cls._checked(values, np.append(starts, np.asarray(_length(values), starts.dtype)))

    @classmethod
    def from_row_limits(cls, values: Any, row_limits: Any, name: str | None = None, validate: bool = True) -> RaggedTensor:
        """Rows from where they end."""
        limits = _partition(row_limits, "row_limits")
        splits = np.append(np.zeros(1, limits.dtype), limits)
        if (np.diff(splits) < 0).any():
            raise partition.invalid("from_row_limits", f"\nrow_limits = {limits}", "limits ≥ 0 that never fall")
        return cls._checked(values, splits)

    @classmethod
    def from_uniform_row_length(
        cls, values: Any, uniform_row_length: Any, nrows: Any = None, validate: bool = True, name: str | None = None
    ) -> RaggedTensor:
        """Rows of one length."""
        values, length = _values(values), int(host(uniform_row_length))
        total = _length(values)
        if length < 0:
            text = "uniform_row_length must be >= 0."
            raise ValueError(message(text, received=f"uniform_row_length={length}", expected="0 or more"))
        count = (total // length if length else 0) if nrows is None else int(host(nrows))
        if count * length != total:
            raise ValueError(
                message(
                    f"uniform_row_length={length} times nrows={count} must equal nvals={total}",
                    received=f"{total} values",
                    expected=f"a multiple of {length} values" if length else "nrows= and no values, where rows are empty",
                )
            )
        return cls._of(values, np.arange(count + 1, dtype=np.int64) * length, length)

    @classmethod
    def _checked(cls, values: Any, splits: np.ndarray) -> RaggedTensor:
        values = _values(values)
        if splits[-1] != _length(values):
            raise partition.invalid(
                "_from_row_partition", f"\nthe rows hold {splits[-1]} values, and {_length(values)} are given",
                "as many values as the rows hold",
            )  # fmt: skip
        return cls._of(values, splits)

    @classmethod
    def from_nested_row_splits(
        cls, flat_values: Any, nested_row_splits: Sequence, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Several levels of rows, the outermost first."""
        return _nested(cls.from_row_splits, flat_values, nested_row_splits, "nested_row_splits")

    @classmethod
    def from_nested_row_lengths(
        cls, flat_values: Any, nested_row_lengths: Sequence, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Several levels of rows, the outermost first."""
        return _nested(cls.from_row_lengths, flat_values, nested_row_lengths, "nested_row_lengths")

    @classmethod
    def from_nested_value_rowids(
        cls, flat_values: Any, nested_value_rowids: Sequence, nested_nrows: Any = None, name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:  # fmt: skip
        """Several levels of rows, the outermost first."""
        counts = [None] * len(nested_value_rowids) if nested_nrows is None else list(nested_nrows)
        if len(counts) != len(nested_value_rowids):
            raise ValueError(
                message(
                    "`nested_nrows` must have the same length as `nested_value_rowids`",
                    received=f"{len(counts)} counts for {len(nested_value_rowids)} levels",
                    expected="one count per level",
                )
            )
        pairs = list(zip(nested_value_rowids, counts))
        return _nested(lambda values, level: cls.from_value_rowids(values, *level), flat_values, pairs, "nested_value_rowids")

    @classmethod
    def from_tensor(
        cls, tensor: Any, lengths: Any = None, padding: Any = None, ragged_rank: int = 1, name: str | None = None,
        row_splits_dtype: Any = dtypes.int64,
    ) -> RaggedTensor:  # fmt: skip
        """The rows of a dense tensor, cut to lengths, or without their padding."""
        from gradtape.ops import ragged_dense

        return ragged_dense.from_tensor(convert_to_tensor(tensor), lengths, padding, ragged_rank, row_splits_dtype)

    @classmethod
    def from_sparse(cls, st_input: Any, name: str | None = None, row_splits_dtype: Any = dtypes.int64) -> RaggedTensor:
        """The rows of a SparseTensor of two axes whose elements stand at the beginning of each row, in order."""
        from gradtape.ops import ragged_dense

        return ragged_dense.from_sparse(st_input, row_splits_dtype)

    # What it is

    @property
    def values(self) -> Any:
        """All rows joined: a tensor, or a ragged tensor of one level less."""
        return self._values

    @property
    def flat_values(self) -> Tensor:
        """All elements: the tensor under all levels of rows."""
        return self._values.flat_values if isinstance(self._values, RaggedTensor) else self._values

    @property
    def row_splits(self) -> Tensor:
        return wrap(self._splits)

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        return tuple([wrap(splits) for splits in self._nested()])

    def _nested(self) -> list[np.ndarray]:
        return [self._splits, *(self._values._nested() if isinstance(self._values, RaggedTensor) else ())]

    @property
    def ragged_rank(self) -> int:
        """The number of levels of rows."""
        return 1 + (self._values.ragged_rank if isinstance(self._values, RaggedTensor) else 0)

    @property
    def uniform_row_length(self) -> Tensor | None:
        """The length of all rows, if that is how this was made."""
        return None if self._uniform is None else wrap(np.asarray(self._uniform, self._splits.dtype))

    @property
    def shape(self) -> TensorShape:
        """None stands for lengths that differ."""
        return TensorShape([len(self._splits) - 1, self._uniform, *self._values.shape[1:]])

    def get_shape(self) -> TensorShape:
        return self.shape

    @property
    def _rank(self) -> int:
        return self.ragged_rank + self.flat_values._array.ndim

    @property
    def dtype(self) -> dtypes.DType:
        return self._values.dtype

    @property
    def device(self) -> str:
        return self.flat_values.device

    def consumers(self) -> list:
        return self.flat_values.consumers()

    def nrows(self, out_type: Any = None, name: str | None = None) -> Tensor:
        """The number of rows."""
        return wrap(np.asarray(len(self._splits) - 1, self._integers(out_type)))

    def row_starts(self, name: str | None = None) -> Tensor:
        return wrap(self._splits[:-1])

    def row_limits(self, name: str | None = None) -> Tensor:
        return wrap(self._splits[1:])

    def row_lengths(self, axis: Any = 1, name: str | None = None) -> Any:
        """The length of every row along an axis."""
        axis = self._axis(axis)
        if axis == 0:
            return self.nrows()
        if axis == 1:
            return wrap(np.diff(self._splits))
        if isinstance(self._values, RaggedTensor):
            return self.with_values(self._values.row_lengths(axis - 1))
        length = self._values._array.shape[axis - 1]
        return self.with_values(wrap(np.full(self._values._array.shape[: axis - 1], length, self._splits.dtype)))

    def value_rowids(self, name: str | None = None) -> Tensor:
        """The number of the row of each value."""
        return wrap(partition.row_ids(self._splits))

    def nested_row_lengths(self, name: str | None = None) -> tuple[Tensor, ...]:
        return tuple([wrap(np.diff(splits)) for splits in self._nested()])

    def nested_value_rowids(self, name: str | None = None) -> tuple[Tensor, ...]:
        return tuple([wrap(partition.row_ids(splits)) for splits in self._nested()])

    def bounding_shape(self, axis: Any = None, name: str | None = None, out_type: Any = None) -> Tensor:
        """The shape of the smallest dense tensor that holds this."""
        lengths = np.array(self._bounds(), self._integers(out_type))
        if axis is None:
            return wrap(lengths)
        where = host(axis)
        return wrap(np.asarray(lengths[[self._axis(a) for a in where.tolist()] if where.ndim else self._axis(where)]))

    def _bounds(self) -> tuple[int, ...]:
        nested = self._nested()
        return (len(self._splits) - 1, *map(partition.longest, nested), *self.flat_values._array.shape[1:])

    def _integers(self, out_type: Any) -> Any:
        return self._splits.dtype if out_type is None else dtypes.as_dtype(out_type).numpy

    def _axis(self, axis: Any, what: str = "axis") -> int:
        axis, rank = int(axis), self._rank
        if not -rank <= axis < rank:
            text = f"{what}={axis} out of bounds: expected {-rank}<={what}<{rank}"
            raise ValueError(message(text, received=f"{what}={axis}", expected=f"from {-rank} to {rank - 1}"))
        return axis % rank

    # The same rows around other values

    def with_values(self, new_values: Any) -> RaggedTensor:
        """The same rows of other values."""
        new_values = _values(new_values)
        if _length(new_values) != _length(self._values):
            raise ValueError(
                message(
                    f"Shapes ({_length(self._values)},) and ({_length(new_values)},) are incompatible",
                    received=f"{_length(new_values)} values",
                    expected=f"{_length(self._values)}, as many as there are",
                )
            )
        return RaggedTensor._of(new_values, self._splits, self._uniform)

    def with_flat_values(self, new_values: Any) -> RaggedTensor:
        """The same structure around other elements."""
        if isinstance(self._values, RaggedTensor):
            new_values = self._values.with_flat_values(new_values)
        return self.with_values(new_values)

    def with_row_splits_dtype(self, dtype: Any) -> RaggedTensor:
        """The same with splits of int32 or int64."""
        wanted = dtypes.as_dtype(dtype)
        if wanted not in (dtypes.int32, dtypes.int64):
            text = f"Argument `row_splits` dtype must be int32 or int64. Received {wanted!r}."
            raise ValueError(message(text, received=f"{wanted!r}", expected="tf.int32 or tf.int64"))
        values = self._values.with_row_splits_dtype(wanted) if isinstance(self._values, RaggedTensor) else self._values
        return RaggedTensor._of(values, self._splits.astype(wanted.numpy), self._uniform)

    def merge_dims(self, outer_axis: int, inner_axis: int) -> Any:
        """Axes from outer to inner as one."""
        from gradtape.ops import ragged_dense

        outer, inner = self._axis(outer_axis, "outer_axis"), self._axis(inner_axis, "inner_axis")
        if outer > inner:
            raise ValueError(
                message(
                    f"Expected outer_axis ({outer_axis}) to be less than or equal to inner_axis ({inner_axis}).",
                    received=f"outer_axis={outer_axis}, inner_axis={inner_axis}",
                    fix=f"merge_dims({inner_axis}, {outer_axis})",
                )
            )
        return ragged_dense.merged(self, outer, inner)

    # Leaving

    def to_tensor(self, default_value: Any = None, name: str | None = None, shape: Any = None) -> Tensor:
        """A dense tensor; where rows are too short stands ``default_value`` (zero), and what exceeds ``shape`` is cut.

        >>> RaggedTensor.from_row_lengths([1, 2, 3], [2, 1]).to_tensor().numpy().tolist()
        [[1, 2], [3, 0]]
        """
        from gradtape.ops import ragged_dense

        return ragged_dense.to_tensor(self, default_value, shape)

    def to_sparse(self, name: str | None = None) -> Any:
        """A SparseTensor of the elements."""
        from gradtape.ops import ragged_dense

        return ragged_dense.to_sparse(self)

    def to_list(self) -> list:
        """Nested Python lists."""
        values = self._values.to_list() if isinstance(self._values, RaggedTensor) else self._values._host().tolist()
        return [values[start:end] for start, end in zip(self._splits[:-1], self._splits[1:])]

    def numpy(self) -> np.ndarray:
        """An array of rows, which are arrays themselves; one plain array if all rows are alike."""
        values = self._values.numpy()
        rows = [values[start:end] for start, end in zip(self._splits[:-1], self._splits[1:])]
        if rows and len({row.shape for row in rows}) == 1:
            return np.stack(rows)
        found = np.empty(len(rows), object)
        found[:] = rows
        return found if rows else found.astype(self.dtype.numpy)

    # Python

    def __getitem__(self, key: Any) -> Any:
        from gradtape.ops import ragged_dense

        return ragged_dense.getitem(self, key if isinstance(key, (list, tuple)) else (key,))

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self._splits) - 1))

    def __bool__(self) -> bool:
        text = "RaggedTensor may not be used as a boolean."
        raise TypeError(message(text, received=f"shape {self.shape}", fix="tf.reduce_any(x) or tf.reduce_all(x)"))

    def __hash__(self) -> int:
        raise TypeError(message("RaggedTensor is unhashable.", received=f"shape {self.shape}", fix="use id(x) as the key"))

    def __repr__(self) -> str:
        if type(self.flat_values) is not Tensor:
            return f"<tf.RaggedTensor: shape={self.shape}, dtype={self.dtype.name}>"
        return f"<tf.RaggedTensor {_text(self.numpy())}>"

    # As a composite

    @classmethod
    def _call(cls, function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        from gradtape.ops import ragged_functions

        return ragged_functions.call(function, args, kwargs)

    def _components(self) -> list[Tensor]:
        return [self.flat_values, *self.nested_row_splits]

    def _from_components(self, components: list[Any]) -> RaggedTensor:
        values, *nested = components
        for splits in reversed(nested):
            values = RaggedTensor._of(values, host(splits))
        return values

    def _differentiable_part(self) -> Tensor:
        return self.flat_values

    def _with_differentiable_part(self, part: Any) -> RaggedTensor:
        return self.with_flat_values(part)


def _values(values: Any) -> Any:
    """What stands in the rows: ragged, or a tensor of at least one axis."""
    if isinstance(values, RaggedTensor):
        return values
    values = convert_to_tensor(values)
    if not values._array.ndim:
        text = "slice index 0 of dimension 0 out of bounds. [Op:StridedSlice]"
        raise InvalidArgumentError(
            message(text, received="a scalar as the values of rows", expected="values with at least one axis", fix="[value]")
        )
    return values


def _length(values: Any) -> int:
    return len(values._splits) - 1 if isinstance(values, RaggedTensor) else values._array.shape[0]


def _partition(value: Any, what: str) -> np.ndarray:
    """Splits, lengths or numbers of rows: a vector of int32 or int64."""
    if isinstance(value, (list, tuple)) and not len(value):
        return np.zeros(0, np.int64)
    tensor = convert_to_tensor(value, dtype_hint=None if hasattr(value, "dtype") else dtypes.int64)
    if tensor.dtype not in (dtypes.int32, dtypes.int64):
        text = f"{what} must have dtype int32 or int64"
        raise ValueError(message(text, received=f"{tensor.dtype!r}", fix=f"tf.cast({what}, tf.int64)"))
    if tensor._array.ndim != 1:
        text = f"Shape {tensor.shape} must have rank 1"
        raise ValueError(message(text, received=f"{what} of shape {tensor.shape}", expected="one axis"))
    return host(tensor)


def _nested(make: Callable, flat_values: Any, levels: Any, what: str) -> Any:
    if isinstance(levels, Tensor):
        text = f"Argument `{what}` must be a list of Tensors. Received {levels}."
        raise TypeError(message(text, received=shown(levels), fix=f"{what}=[levels]"))
    values = flat_values
    for level in reversed(list(levels)):
        values = make(values, level)
    return values


def _text(array: Any) -> str:
    """Rows as NumPy prints them, elements as Python does."""

    def element(value: Any) -> str:
        if isinstance(value, np.ndarray):
            return _text(value)
        return repr(value) if isinstance(value, bytes) else str(value)

    return np.array2string(array, formatter={"all": element}, separator=", ") if array.size else _empty(array.shape)


def _empty(lengths: tuple[int, ...]) -> str:
    if len(lengths) == 1 or not lengths[0]:
        return "[]"
    return "[" + ", ".join([_empty(lengths[1:])] * lengths[0]) + "]"


def gather_rows(values: Any, rows: np.ndarray) -> Any:
    """Rows of a tensor or ragged tensor by number."""
    if not isinstance(values, RaggedTensor):
        dense = elementwise.identity(values)  # a gather from the source itself would give IndexedSlices
        return indexing.take(dense, wrap(np.asarray(rows, np.int64)), axis=0, batch_dims=0)
    splits, elements = partition.pick(values._splits, rows)
    return RaggedTensor._of(gather_rows(values._values, elements), splits, values._uniform)


def row_range(values: Any, start: int, end: int) -> Any:
    """Neighbouring rows of a tensor or ragged tensor."""
    if isinstance(values, RaggedTensor):
        return gather_rows(values, np.arange(start, end))
    return indexing.getitem(values, index=(slice(start, end),))


# Operators

_BINARY = {
    "add": elementwise.add, "sub": elementwise.subtract, "mul": elementwise.multiply, "truediv": elementwise.true_divide,
    "floordiv": elementwise.floor_divide, "mod": elementwise.remainder, "pow": elementwise.power,
    "and": elementwise.logical_and, "or": elementwise.logical_or, "xor": elementwise.logical_xor,
}  # fmt: skip
_SINGLE = {
    "lt": elementwise.less, "le": elementwise.less_equal, "gt": elementwise.greater, "ge": elementwise.greater_equal,
    "neg": elementwise.negative, "abs": elementwise.abs, "invert": elementwise.logical_not,
}  # fmt: skip


def _each(function: Callable, *args: Any) -> RaggedTensor:
    from gradtape.ops import ragged_broadcast

    return ragged_broadcast.elementwise(function, args, {})


def _operator(function: Callable) -> Callable:
    return lambda self, *others: _each(function, self, *others)


def _reflected(function: Callable) -> Callable:
    return lambda self, other: _each(function, other, self)


def _equality(function: Callable, unlike: bool) -> Callable:
    return lambda self, other: unlike if other is None else _each(function, self, other)


for _symbol, _function in _BINARY.items():
    setattr(RaggedTensor, f"__r{_symbol}__", _reflected(_function))
for _symbol, _function in (_BINARY | _SINGLE).items():
    setattr(RaggedTensor, f"__{_symbol}__", _operator(_function))
RaggedTensor.__eq__ = _equality(elementwise.equal, False)  # type: ignore[method-assign,assignment]
RaggedTensor.__ne__ = _equality(elementwise.not_equal, True)  # type: ignore[method-assign,assignment]
