"""`TensorArray`: a list of tensors of one element type, written and read by index; differentiable, as its elements are."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, OutOfRangeError, dims, message, shown
from gradtape.ops import arrays, shape
from gradtape.ops.arguments import integers
from gradtape.ops.execution import Unstageable, is_symbolic_tensor, staging
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.recorded import RECORDED
from gradtape.values.shape import TensorShape
from gradtape.values.spec import TypeSpec, describe
from gradtape.values.tensor import Tensor, wrap

_CLEARED = object()  # stands where an element was, once it has been read


class TensorArray:
    """Tensors written one at a time, to be stacked, concatenated or read again.

    >>> squares = TensorArray(dtypes.float32, size=3)
    >>> for n in range(3):
    ...     squares = squares.write(n, float(n * n))
    >>> squares.stack()
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([0., 1., 4.], dtype=float32)>

    Always go on with what `write` and its like return: compiled functions need it, for there an array that is written at an
    index which only the running program knows is a new one. Unless ``clear_after_read`` is False an
    element can be read once. Elements that were never written are zeros.
    """

    def __init__(
        self, dtype: Any, size: Any = None, dynamic_size: bool | None = None, clear_after_read: bool | None = None,
        tensor_array_name: str | None = None, handle: Any = None, flow: Any = None, infer_shape: bool = True,
        element_shape: Any = None, colocate_with_first_write_call: bool = True, name: str | None = None,
    ) -> None:  # fmt: skip
        if size is None:
            raise ValueError(
                message(
                    "Size must be declared for TensorArrays when eager execution is enabled.",
                    fix="give size=, and dynamic_size=True if it grows",
                )
            )
        count = _index(size, "size")
        if count < 0:
            raise InvalidArgumentError(message("Size should be >= 0.", received=f"size={count}", expected="0 or more"))
        self._dtype = dtypes.as_dtype(dtype)
        self._dynamic_size = bool(dynamic_size)
        self._clear_after_read = clear_after_read is not False
        self._infer_shape = infer_shape
        self._element_shape = TensorShape(element_shape)
        self._elements: list[Any] = [None] * count

    @property
    def dtype(self) -> dtypes.DType:
        return self._dtype

    @property
    def dynamic_size(self) -> bool:
        return self._dynamic_size

    @property
    def element_shape(self) -> TensorShape:
        return self._element_shape

    @property
    def handle(self) -> None:
        """None: there is no graph resource behind it."""
        return None

    @property
    def flow(self) -> Tensor:
        """Zero: what orders reads and writes is the program itself."""
        return convert_to_tensor(0)

    def size(self, name: str | None = None) -> Tensor:
        return convert_to_tensor(self._length())

    def _length(self) -> int:
        return len(self._elements)

    def identity(self) -> TensorArray:
        return self

    def close(self, name: str | None = None) -> None:
        """Forget the elements."""
        del self._elements[:]

    def grad(self, source: str, flow: Any = None, name: str | None = None) -> None:
        text = "TensorArray.grad is not supported when executing eagerly; a tape gives the gradients of what was written."
        raise NotImplementedError(message(text, fix="tape.gradient(y, x) for what was written"))

    def __repr__(self) -> str:
        return f"<tf.TensorArray: size={self._length()}, dtype={self._dtype.name}, element_shape={self._element_shape}>"

    # Writing

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with ``value`` at ``index``."""
        if is_symbolic_tensor(index):
            return self._stacked_with(value).write(index, value)
        at = index if type(index) is int else _index(index, "index")
        if at < 0:
            text = f"Writing to negative indices (index {at}) is not allowed."
            raise OutOfRangeError(message(text, received=f"index {at}", expected="0 or more"))
        if at >= len(self._elements):
            if not self._dynamic_size:
                raise OutOfRangeError(
                    message(
                        f"Tried to write to index {at} but array is not resizeable and size is: {len(self._elements)}",
                        fix="make it larger, or with dynamic_size=True",
                    )
                )
            self._elements.extend([None] * (at + 1 - len(self._elements)))
        self._elements[at] = self._checked(value)
        return self

    def _checked(self, value: Any) -> Tensor:
        tensor = value if isinstance(value, Tensor) else convert_to_tensor(value, dtype_hint=self._dtype)
        if tensor.dtype is not self._dtype:
            raise InvalidArgumentError(
                message(
                    f"TensorArray dtype is {self._dtype.name} but Op is trying to write dtype {tensor.dtype.name}",
                    fix=f"tf.cast(value, {self._dtype!r}), or make the array with dtype={tensor.dtype!r}",
                )
            )
        if self._infer_shape and self._element_shape != tensor.shape:
            if not self._element_shape.is_compatible_with(tensor.shape):
                raise ValueError(
                    message(
                        f"Incompatible shape for value ({tensor.shape}), expected ({self._element_shape})",
                        fix="give every element one shape, or make the array with infer_shape=False",
                    )
                )
            self._element_shape = tensor.shape
        return tensor

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """The array with the slices of ``value`` along its first axis."""
        tensor = convert_to_tensor(value, dtype_hint=self._dtype)
        if not tensor._array.ndim:
            text = "Argument `axis` = 0 not in range [0, 0)"
            raise ValueError(message(text, received="shape ()", expected="at least one axis: each row becomes an element"))
        count, size = tensor._array.shape[0], self._length()
        if count > size and not self._dynamic_size:
            raise ValueError(
                message(
                    f"Cannot unstack {count} tensors into a TensorArray of static size {size}",
                    received=f"{count} rows for size={size}",
                    fix=f"size={count}, or dynamic_size=True",
                )
            )
        if is_symbolic_tensor(tensor):
            return self._with_stack(tensor)
        self._elements = [self._checked(part) for part in arrays.unstack(tensor, axis=0)]
        return self

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with the slices of ``value`` at ``indices``."""
        if is_symbolic_tensor(indices):
            return self._stacked_with(convert_to_tensor(value, dtype_hint=self._dtype)[0]).scatter(indices, value)
        places = integers(indices)
        parts = arrays.unstack(convert_to_tensor(value, dtype_hint=self._dtype), axis=0)
        if len(places) != len(parts):
            text = "Expected number of indices to equal the first dimension of value."
            raise InvalidArgumentError(
                message(text, received=f"{len(places)} indices for {len(parts)} slices", expected="one index per slice")
            )
        for place, part in zip(places, parts):
            self.write(place, part)
        return self

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """The array with consecutive parts of ``value`` along its first axis."""
        tensor, sizes = convert_to_tensor(value, dtype_hint=self._dtype), convert_to_tensor(lengths)
        if sizes.dtype not in (dtypes.int32, dtypes.int64):
            text = f"Value for attr 'Tlen' of {sizes.dtype.word} is not in the list of allowed values: int8, int32, int64"
            raise InvalidArgumentError(message(text, received=f"lengths of {sizes.dtype!r}", fix="tf.cast(lengths, tf.int32)"))
        if sizes.ndim != 1:
            text = f"Expected lengths to be a vector, received shape: {dims(sizes._array.shape)}"
            raise InvalidArgumentError(message(text, expected="one length per element"))
        if not tensor._array.ndim:
            text = "Expected value to be at least a vector, but received shape: []"
            raise InvalidArgumentError(message(text, received="shape ()", expected="at least one axis"))
        counts = tuple(sizes._host().tolist())
        if sum(counts) != tensor._array.shape[0]:
            raise InvalidArgumentError(
                message(
                    "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is "
                    f"{sum(counts)} and value's shape is: {dims(tensor._array.shape)}",
                    received=f"lengths {counts} of shape {tensor._array.shape}",
                    expected=f"{tensor._array.shape[0]} in all",
                )
            )
        if len(counts) != len(self._elements) and not self._dynamic_size:
            raise InvalidArgumentError(
                message(
                    f"TensorArray's size is not equal to the size of lengths ({len(self._elements)} vs. {len(counts)}), "
                    "and the TensorArray is not marked as dynamically resizeable.",
                    received=f"{len(counts)} lengths for size={len(self._elements)}",
                    fix=f"size={len(counts)}, or dynamic_size=True",
                )
            )
        self._infer_shape = self._infer_shape and len(set(counts)) < 2
        self._elements = [self._checked(part) for part in arrays.split(tensor, sizes=counts, axis=0)]
        return self

    # Reading

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """The element at ``index``."""
        if is_symbolic_tensor(index):
            return self._stacked_with(None).read(index)
        at = operator.index(index)
        element = self._element(at)
        if self._clear_after_read:
            self._elements[at] = _CLEARED
        return element

    def stack(self, name: str | None = None) -> Tensor:
        """All elements along a new first axis."""
        return self._stacked(range(len(self._elements)))

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """The elements at ``indices`` along a new first axis."""
        if not hasattr(indices, "__len__"):
            text = "gather expects a list of indices."
            raise TypeError(message(text, received=shown(indices), fix="array.gather([0, 1]), or array.read(0) for one"))
        if is_symbolic_tensor(indices):
            return self._stacked_with(None).gather(indices)
        return self._stacked(integers(indices) if len(indices) else ())

    def _stacked(self, places: Any) -> Tensor:
        if not len(places):
            known = self._element_shape.is_fully_defined()
            return wrap(_zeros((0, *self._element_shape) if known else (0,), self._dtype))
        return arrays.stack([self._element(at) for at in places])

    def concat(self, name: str | None = None) -> Tensor:
        """The elements joined along their first axis."""
        elements = [self._element(at) for at in range(len(self._elements))]
        if not elements:
            text = "TensorArray has size zero, so there is nothing to concatenate."
            raise InvalidArgumentError(message(text, received="size=0", expected="at least one element"))
        for at, element in enumerate(elements):
            if not element._array.ndim:
                raise InvalidArgumentError(
                    message(
                        f"Concat saw a scalar shape at index {at} but requires at least vectors.",
                        received=f"{len(elements)} scalars",
                        fix="use stack()",
                    )
                )
        return shape.concatenate(*elements, axis=0)

    def _element(self, at: int) -> Tensor:
        if at < 0:
            text = f"Reading from negative indices (index {at}) is not allowed."
            raise OutOfRangeError(message(text, received=f"index {at}", expected="0 or more"))
        if at >= len(self._elements):
            text = f"Tried to read from index {at} but array size is: {len(self._elements)}"
            raise OutOfRangeError(message(text, received=f"index {at}", expected=f"0 to {len(self._elements) - 1}"))
        element = self._elements[at]
        if element is _CLEARED:
            raise InvalidArgumentError(
                message(
                    f"Could not read index {at} twice because it was cleared after a previous read "
                    "(perhaps try setting clear_after_read = false?)",
                    received=f"a second read of index {at}",
                    fix="tf.TensorArray(dtype, size, clear_after_read=False)",
                )
            )
        if element is None:
            if not self._element_shape.is_fully_defined():
                raise ValueError(
                    message(
                        f"Cannot convert a partially known TensorShape {self._element_shape} to a Tensor.",
                        received=f"{self!r}",
                        why=f"index {at} was never written, and the shape of its zeros is not known",
                        fix="write it first, or give element_shape=",
                    )
                )
            element = self._elements[at] = wrap(_zeros(tuple(self._element_shape), self._dtype))
        return element

    # As one tensor: what a compiled program carries through a loop, and indexes by what only it knows

    def _stacked_shape(self) -> tuple[int, ...] | None:
        """The shape of all elements as one tensor; None if it is not known yet."""
        known = self._element_shape.is_fully_defined()
        return (self._length(), *self._element_shape) if known else None

    def _stacked_form(self) -> Tensor:
        """All elements as one tensor."""
        if all(element is None for element in self._elements):
            return wrap(_zeros((len(self._elements), *self._element_shape), self._dtype))
        zeros = wrap(_zeros(tuple(self._element_shape), self._dtype))
        return arrays.stack([e if isinstance(e, Tensor) else zeros for e in self._elements])

    def _tensors(self) -> list[Tensor]:
        """What it is made of."""
        return [element for element in self._elements if isinstance(element, Tensor)]

    def _with_stack(self, stack: Tensor) -> TensorArray:
        return _Stacked(self, stack)

    def _stacked_with(self, value: Any) -> TensorArray:
        """This array as one tensor; if it is empty, with room for elements like ``value``."""
        if self._dynamic_size:
            raise Unstageable("a TensorArray that grows at an index which only the running program knows")
        copy = self._copy()
        if value is not None:
            copy._checked(value)
        if copy._stacked_shape() is None:
            raise Unstageable("reading from a TensorArray whose elements have no known shape")
        return copy._with_stack(copy._stacked_form())

    def _copy(self) -> TensorArray:
        new: TensorArray = object.__new__(TensorArray)
        for name in ("_dtype", "_dynamic_size", "_clear_after_read", "_infer_shape", "_element_shape"):
            setattr(new, name, getattr(self, name))
        new._elements = list(self._elements)
        return new

    def _learn(self, other: TensorArray) -> None:
        """Take over the shape of the elements from an array that was made of this one."""
        if not self._element_shape.is_fully_defined():
            self._element_shape = other._element_shape


def _index(value: Any, what: str) -> int:
    try:
        return operator.index(value)
    except TypeError as error:
        raise TypeError(message(str(error), received=f"{what}={shown(value)}", expected="one integer")) from None


class _Stacked(TensorArray):
    """An array inside a compiled program: one tensor with all elements. Writing gives a new array."""

    def __init__(self, like: TensorArray, stack: Tensor) -> None:
        self.__dict__.update(like._copy().__dict__)
        self._element_shape = TensorShape(stack._array.shape[1:])
        self._elements = []
        self._stack = stack

    def _copy(self) -> TensorArray:
        return self

    def _length(self) -> int:
        return self._stack._array.shape[0]

    def _stacked_form(self) -> Tensor:
        return self._stack

    def _tensors(self) -> list[Tensor]:
        return [self._stack]

    def _with_stack(self, stack: Tensor) -> TensorArray:
        return _Stacked(super()._copy(), stack)

    def close(self, name: str | None = None) -> None:
        """Nothing: it takes no room but that of its tensor."""

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        return self._with_stack(staging.control.put_row(self._stack, self._place(index), self._checked(value)))

    def _place(self, index: Any) -> Tensor:
        """The index, or indices, as a tensor, in range: one that is known is checked now, another when the program runs."""
        if is_symbolic_tensor(index):
            staging.control.require((index >= 0) & (index < self._length()))
            return index
        for at in integers(index) if np.ndim(index) else [operator.index(index)]:
            if not 0 <= at < self._length():
                text = f"Tried to access index {at} but array size is: {self._length()}"
                raise OutOfRangeError(message(text, received=f"index {at}", expected=f"0 to {self._length() - 1}"))
        return convert_to_tensor(index)

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        places = convert_to_tensor(indices)
        parts = arrays.unstack(convert_to_tensor(value, dtype_hint=self._dtype), axis=0)
        new: TensorArray = self
        for place, part in zip(arrays.unstack(places, axis=0), parts):
            new = new.write(place, part)
        return new

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        plain = super()._copy()
        plain._elements = [None] * self._length()
        return plain.split(value, lengths)

    def read(self, index: Any, name: str | None = None) -> Tensor:
        return staging.control.take_row(self._stack, self._place(index))

    def stack(self, name: str | None = None) -> Tensor:
        return self._stack

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        return RECORDED.take(self._stack, self._place(indices), axis=0, batch_dims=0)

    def concat(self, name: str | None = None) -> Tensor:
        count, *lengths = self._stack._array.shape
        if not count or not lengths:
            raise InvalidArgumentError(
                message("Concat needs elements that are at least vectors.", received=f"{self!r}", fix="use stack()")
            )
        return RECORDED.reshape(self._stack, shape=(count * lengths[0], *lengths[1:]))


def _zeros(lengths: tuple, dtype: dtypes.DType) -> np.ndarray:
    return np.full(lengths, b"", object) if dtype is dtypes.string else np.zeros(lengths, dtype.numpy)


class TensorArraySpec(TypeSpec):
    """The description of a `TensorArray`."""

    def __init__(
        self, element_shape: Any = None, dtype: Any = dtypes.float32, dynamic_size: bool = False, infer_shape: bool = True
    ) -> None:
        self._parts = TensorShape(element_shape), dtypes.as_dtype(dtype), dynamic_size, infer_shape

    @classmethod
    def from_value(cls, value: TensorArray) -> TensorArraySpec:
        """The description of this array."""
        return cls(value.element_shape, value.dtype, value.dynamic_size, value._infer_shape)

    @property
    def value_type(self) -> type:
        return TensorArray

    def _serialize(self) -> tuple:
        return self._parts


describe(TensorArray, TensorArraySpec.from_value)
