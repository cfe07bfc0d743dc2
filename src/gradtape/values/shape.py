"""`TensorShape`: a shape that may be partly or wholly unknown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gradtape.errors import message, shown


class TensorShape:
    """The shape of a tensor: ints, None for an unknown length, or unknown altogether.

    >>> TensorShape([2, None]).is_compatible_with([2, 5])
    True
    """

    __slots__ = ("_dims",)

    def __init__(self, dims: Any) -> None:
        if dims is None:
            self._dims: tuple[int | None, ...] | None = None
        elif isinstance(dims, TensorShape):
            self._dims = dims._dims
        elif isinstance(dims, Iterable):
            self._dims = tuple(None if d is None else _length(d) for d in dims)
        else:
            self._dims = (_length(dims),)

    @property
    def rank(self) -> int | None:
        return None if self._dims is None else len(self._dims)

    ndims = rank

    @property
    def dims(self) -> list[int | None] | None:
        return None if self._dims is None else list(self._dims)

    def as_list(self) -> list[int | None]:
        if self._dims is None:
            text = "as_list() is not defined on an unknown TensorShape."
            raise ValueError(message(text, received=f"{self}", expected="a shape of known rank"))
        return list(self._dims)

    def is_fully_defined(self) -> bool:
        return self._dims is not None and None not in self._dims

    def num_elements(self) -> int | None:
        if not self.is_fully_defined():
            return None
        count = 1
        for d in self._dims:  # type: ignore[union-attr]
            count *= d  # type: ignore[operator]
        return count

    def is_compatible_with(self, other: Any) -> bool:
        """Whether some concrete shape fits both."""
        other = TensorShape(other)
        if self._dims is None or other._dims is None:
            return True
        return len(self._dims) == len(other._dims) and all(
            a is None or b is None or a == b for a, b in zip(self._dims, other._dims)
        )

    def assert_is_compatible_with(self, other: Any) -> None:
        if not self.is_compatible_with(other):
            raise ValueError(
                message(
                    f"Shapes {self} and {TensorShape(other)} are incompatible",
                    received=f"{self} and {TensorShape(other)}",
                    expected="the same rank, and equal lengths wherever both are known",
                )
            )

    def assert_has_rank(self, rank: int) -> None:
        if self.rank not in (None, rank):
            raise ValueError(
                message(f"Shape {self} must have rank {rank}", received=f"rank {self.rank}", expected=f"rank {rank}")
            )

    def assert_is_fully_defined(self) -> None:
        if not self.is_fully_defined():
            raise ValueError(message(f"Shape {self} is not fully defined", received=f"{self}", expected="every length known"))

    def merge_with(self, other: Any) -> TensorShape:
        """The shape that knows what either knows."""
        other = TensorShape(other)
        if self._dims is None:
            return other
        if other._dims is None:
            return self
        self.assert_is_compatible_with(other)
        return TensorShape([b if a is None else a for a, b in zip(self._dims, other._dims)])

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """The narrowest shape that both fit into."""
        other = TensorShape(other)
        if self._dims is None or other._dims is None or len(self._dims) != len(other._dims):
            return TensorShape(None)
        return TensorShape([a if a == b else None for a, b in zip(self._dims, other._dims)])

    def concatenate(self, other: Any) -> TensorShape:
        other = TensorShape(other)
        if self._dims is None or other._dims is None:
            return TensorShape(None)
        return TensorShape(self._dims + other._dims)

    def with_rank(self, rank: int) -> TensorShape:
        return self.merge_with([None] * rank)

    def with_rank_at_least(self, rank: int) -> TensorShape:
        if self.rank is not None and self.rank < rank:
            text = f"Shape {self} must have rank at least {rank}"
            raise ValueError(message(text, received=f"rank {self.rank}", expected=f"rank {rank} or more"))
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        if self.rank is not None and self.rank > rank:
            text = f"Shape {self} must have rank at most {rank}"
            raise ValueError(message(text, received=f"rank {self.rank}", expected=f"rank {rank} or less"))
        return self

    def __len__(self) -> int:
        if self._dims is None:
            text = "Cannot take the length of shape with unknown rank."
            raise ValueError(message(text, received=f"{self}", expected="a shape of known rank"))
        return len(self._dims)

    def __iter__(self) -> Iterator[int | None]:
        if self._dims is None:
            raise ValueError(
                message("Cannot iterate over a shape with unknown rank.", received=f"{self}", expected="a shape of known rank")
            )
        return iter(self._dims)

    def __getitem__(self, index: int | slice) -> Any:
        if self._dims is None:
            return TensorShape(None) if isinstance(index, slice) else None
        found = self._dims[index]
        return TensorShape(found) if isinstance(index, slice) else found

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return TensorShape(other).concatenate(self)

    def __bool__(self) -> bool:
        return self._dims is not None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TensorShape):
            return self._dims == other._dims
        if other is None or isinstance(other, (int, list, tuple)):
            try:
                return self._dims == TensorShape(other)._dims
            except (TypeError, ValueError):
                return False
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._dims)

    def __repr__(self) -> str:
        return f"TensorShape({None if self._dims is None else list(self._dims)})"

    def __str__(self) -> str:
        return "<unknown>" if self._dims is None else str(self._dims)

    def __reduce__(self) -> tuple:
        return TensorShape, (self._dims,)


def is_open(length: Any) -> bool:
    """Whether this is a length that a program to be saved leaves open: a symbol of jax, in the shape of a raw array."""
    return type(length).__name__ == "_DimExpr"


def has_open(shape: Any) -> bool:
    """Whether a raw shape has such a length; a loop, for every eager ``tf.zeros`` asks: 0.3 µs, 1.1 by ``any(map(…))``."""
    for length in shape:  # noqa: SIM110
        if type(length) is not int and is_open(length):
            return True
    return False


def refuse_open(shape: Any, what: str) -> None:
    """Raise if a shape has a length that is open, where ``what`` depends on it."""
    if has_open(shape):
        text = f"{what} depends on a length that the signature leaves open."
        raise ValueError(message(text, received=f"shape {tuple(shape)}", fix="give all lengths in the signature"))


def _length(value: Any) -> int | None:
    if type(value) is int and value >= 0:
        return value
    value = getattr(value, "value", value)  # a Dimension-like object
    if value is None or is_open(value):
        return None
    length = value.__index__() if hasattr(value, "__index__") else None
    if length is None:
        raise TypeError(
            message(
                f"Dimension value must be integer or None or have an __index__ method, got value '{value!r}'",
                received=f"{shown(value)} of type {type(value).__name__}",
                expected="an integer, or None for a length that is not known",
            )
        )
    if length < 0:
        text = f"Dimension {length} must be >= 0"
        raise ValueError(
            message(text, received=f"{value!r}", expected="a length of 0 or more, or None for one that is not known")
        )
    return length


def as_tuple(shape: Any) -> tuple[int, ...]:
    """A concrete shape from a tuple, list, int, tensor, array or TensorShape."""
    if type(shape) is tuple and all(type(d) is int for d in shape):
        return shape
    if hasattr(shape, "numpy") and not isinstance(shape, TensorShape):
        shape = shape.numpy().tolist()
    elif hasattr(shape, "tolist"):
        shape = shape.tolist()
    if not isinstance(shape, Iterable):
        shape = (shape,)
    dims = []
    for d in shape:
        if d is None:
            text = f"Cannot use the partly unknown shape {tuple(shape)} here."
            raise ValueError(message(text, received=f"{tuple(shape)}", expected="every length known"))
        if not hasattr(d, "__index__"):
            raise TypeError(message(f"Cannot use {d!r} as a length.", received=f"shape {tuple(shape)}", expected="integers"))
        dims.append(d.__index__())
    return tuple(dims)
