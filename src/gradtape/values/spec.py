"""Descriptions of values: `TensorSpec` says what shape and element type a tensor has, without being one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from gradtape.errors import message, shown
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.shape import TensorShape
from gradtape.values.tensor import Tensor


class TypeSpec(ABC):
    """What is known of a value before it is there; the parts that `_serialize` returns say all of it."""

    @property
    @abstractmethod
    def value_type(self) -> type:
        """The class of the values that this describes."""

    @abstractmethod
    def _serialize(self) -> tuple:
        """The arguments that would make this description again."""

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether some value fits both descriptions; a value stands for its own description."""
        other = self._as_spec(spec_or_value)
        return other is not None and all(map(_compatible, self._serialize(), other._serialize()))

    def is_subtype_of(self, other: Any) -> bool:
        """Whether everything that fits this fits ``other`` too."""
        return type(other) is type(self) and all(map(_within, self._serialize(), other._serialize()))

    def most_specific_common_supertype(self, others: Sequence[Any]) -> Any:
        """The narrowest description that this and all the others fit into; None if there is none."""
        parts = self._serialize()
        for other in others:
            if type(other) is not type(self):
                return None
            joined = [_joined(mine, theirs) for mine, theirs in zip(parts, other._serialize())]
            if any(part is _NONE for part in joined):
                return None
            parts = tuple(joined)
        return type(self)(*parts)

    def most_specific_compatible_type(self, other: TypeSpec) -> Any:
        """The same for one other description; where there is none, an error."""
        found = self.most_specific_common_supertype([other])
        if found is None:
            text = f"No TypeSpec is compatible with both {self} and {other}"
            raise ValueError(message(text, received=f"{self} and {other}", expected="two specs of one kind and one dtype"))
        return found

    def _as_spec(self, value: Any) -> TypeSpec | None:
        """A description of this same kind, from a description or a value; None if it is something else."""
        if isinstance(value, self.value_type):
            value = type_spec_from_value(value)
        return value if type(value) is type(self) else None

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._serialize() == other._serialize()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), *self._serialize()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._serialize()))})"

    def __reduce__(self) -> tuple:
        return type(self), self._serialize()


_NONE = object()


def _compatible(mine: Any, theirs: Any) -> bool:
    return mine.is_compatible_with(theirs) if isinstance(mine, (TensorShape, TypeSpec)) else mine == theirs


def _within(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, TensorShape):
        if theirs.rank is None or mine.rank is None:
            return theirs.rank is None
        return mine.rank == theirs.rank and all(b is None or a == b for a, b in zip(mine, theirs))
    return mine.is_subtype_of(theirs) if isinstance(mine, TypeSpec) else mine == theirs


def _joined(mine: Any, theirs: Any) -> Any:
    if isinstance(mine, TensorShape):
        return mine.most_specific_compatible_shape(theirs)
    if isinstance(mine, TypeSpec):
        found = mine.most_specific_common_supertype([theirs])
        return _NONE if found is None else found
    return mine if mine == theirs else _NONE


class TensorSpec(TypeSpec):
    """The shape and element type of a tensor, and a name for it as an argument.

    >>> TensorSpec([2, None]).is_compatible_with(convert_to_tensor([[1.0], [2.0]]))
    True
    """

    def __init__(self, shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> None:
        try:
            self._shape = TensorShape(shape)
        except TypeError as error:
            raise TypeError(
                message(
                    f"Failed to convert {shape!r} to a shape: {error}",
                    expected="one length (10), or lengths that may be None ([1, 10, None])",
                )
            ) from None
        self._dtype = dtypes.as_dtype(dtype)
        self._name = name

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """The description of a tensor."""
        if not isinstance(tensor, Tensor):
            raise ValueError(
                message(
                    f"`tensor` should be a tf.Tensor, but got type {type(tensor)}.",
                    fix="tf.type_spec_from_value(value) describes arrays, lists and variables too",
                )
            )
        return cls(tensor.shape, tensor.dtype, name)

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> TensorSpec:
        """The same shape and element type under another name."""
        return cls(spec.shape, spec.dtype, name or getattr(spec, "name", None))

    @property
    def shape(self) -> TensorShape:
        return self._shape

    @property
    def dtype(self) -> dtypes.DType:
        return self._dtype

    @property
    def name(self) -> str | None:
        return self._name

    @property
    def value_type(self) -> type:
        return Tensor

    def with_shape(self, shape: Any) -> TensorSpec:
        """The same with another shape."""
        return type(self)(shape, self._dtype, self._name)

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        other: Any = self._as_spec(spec_or_value)  # names do not matter
        return other is not None and self._dtype is other._dtype and self._shape.is_compatible_with(other._shape)

    def is_subtype_of(self, other: Any) -> bool:
        if type(other) is not type(self) or self._dtype is not other._dtype:
            return False
        return self._name in (None, other._name) and _within(self._shape, other._shape)

    def _serialize(self) -> tuple:
        return self._shape, self._dtype, self._name

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self._shape}, dtype={self._dtype!r}, name={self._name!r})"


_DESCRIBED: dict[type, Callable[[Any], TypeSpec]] = {}


def describe(kind: type, spec: Callable[[Any], TypeSpec]) -> None:
    """Declare how values of a class of our own are described: ``spec(value)`` returns the `TypeSpec`."""
    _DESCRIBED[kind] = spec


describe(Tensor, TensorSpec.from_tensor)


def is_described(value: Any) -> bool:
    """Whether a value belongs to one of our own classes, which say themselves how they are described."""
    return any(kind in _DESCRIBED for kind in type(value).__mro__)


def type_spec_from_value(value: Any) -> TypeSpec:
    """The description of a value; what is not a tensor is described as the tensor it would become.

    >>> type_spec_from_value([[1, 2, 3]])
    TensorSpec(shape=(1, 3), dtype=tf.int32, name=None)
    """
    for kind in type(value).__mro__:
        if kind in _DESCRIBED:
            return _DESCRIBED[kind](value)
    try:
        return TensorSpec.from_tensor(convert_to_tensor(value))
    except (TypeError, ValueError) as error:
        raise TypeError(
            message(
                f"Could not build a TypeSpec for {value!r} of unsupported type {type(value)}.",
                received=shown(value),
                expected="a tensor, a variable, a composite tensor, or what tf.convert_to_tensor takes",
            )
        ) from error
