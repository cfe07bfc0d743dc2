"""Arguments that are not differentiated: axes, shapes, counts. They may come as Python numbers, lists, arrays or tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, dims, message, shown
from gradtape.values import dtypes
from gradtape.values.convert import Convertible, convert_to_tensor, wrong_dtype
from gradtape.values.shape import is_open
from gradtape.values.tensor import Tensor

_BOOL = np.dtype(bool)


def integer(value: Any) -> int:
    """A Python int from anything that stands for one integer."""
    if type(value) is int:
        return value
    if hasattr(value, "__index__"):
        return value.__index__()
    found = integers(value)
    if len(found) != 1:
        text = "Expected a single integer."
        raise InvalidArgumentError(
            message(text, received=f"{value!r}", expected="one integer: a Python int, or a tensor of one element")
        )
    return found[0]


def integers(value: Any, label: str = "", what: str = "sizes") -> tuple[int, ...]:
    """A tuple of Python ints from one integer, a sequence of integers (which may be tensors), or an integer tensor."""
    if type(value) is not list and type(value) is not tuple:
        if type(value) is int:
            return (value,)
        array = np.asarray(convert_to_tensor(value)._host())
        if array.dtype.kind not in "iu" and array.size:
            text = f"Cannot convert {value!r} to EagerTensor of dtype int32"
            raise TypeError(
                message(text, received=shown(value), expected="integers", fix="tf.cast(value, tf.int32), or int(value)")
            )
        if array.ndim > 1:
            text = f"{what} input must be 1-D, not {dims(array.shape)} [Op:{label}]"
            raise InvalidArgumentError(message(text, received=f"shape {array.shape}", expected="one integer per axis: [2, 3]"))
        return tuple(array.ravel().astype(np.int64).tolist())
    try:
        return tuple([n if type(n) is int or is_open(n) else n.__index__() for n in value])
    except (AttributeError, TypeError):
        if any(isinstance(n, Convertible) for n in value):  # variables have no __index__
            return integers([n._to_tensor() if isinstance(n, Convertible) else n for n in value], label, what)
        if any(isinstance(n, (list, tuple)) for n in value):
            text = f"{what} input must be 1-D, not {dims(np.shape(value))} [Op:{label}]"
            raise InvalidArgumentError(message(text, received=shown(value), expected="one integer per axis: [2, 3]")) from None
        if any(n is None for n in value):
            raise ValueError(
                message(
                    "Can't convert Python sequence with mixed types to Tensor.",
                    received=shown(value),
                    expected="integers only",
                    fix="write -1 for a length to be found, where one may be left open",
                )
            ) from None
        raise TypeError(
            message(f"Cannot convert {value!r} to EagerTensor of dtype int32", received=shown(value), expected="integers")
        ) from None


def lengths(shape: Any, label: str = "Fill") -> tuple[int, ...]:
    """A concrete shape: integers, none of them negative."""
    found = integers(shape, label)
    for n in found:
        if n < 0:
            raise InvalidArgumentError(
                message(f"Dimension {n} must be >= 0 [Op:{label}]", received=f"shape {found}", expected="lengths of 0 or more")
            )
    return found


def axes(axis: Any) -> int | tuple[int, ...] | None:
    """A reduction axis: None, one int, or a tuple of ints."""
    if axis is None or type(axis) is int:
        return axis
    if hasattr(axis, "__index__") and not np.ndim(getattr(axis, "_array", axis)):
        return axis.__index__()
    return integers(axis)


def check_axes(label: str, ndim: int, axis: Any) -> None:
    """Refuse reduction axes that are out of range or repeated."""
    seen = set()
    for a in axis if isinstance(axis, tuple) else () if axis is None else (axis,):
        if not -ndim <= a < ndim:
            raise InvalidArgumentError(
                message(
                    f"Invalid reduction dimension ({a} for input with {ndim} dimension(s)) [Op:{label}]",
                    expected=f"axes from {-ndim} to {ndim - 1}" if ndim else "an input of at least one axis",
                )
            )
        if a % ndim in seen:
            text = f"Invalid reduction arguments: Axes contains duplicate dimension: {a % ndim} [Op:{label}]"
            raise InvalidArgumentError(
                message(
                    text,
                    received=f"axis={axis} of an input of rank {ndim}",
                    expected="each axis once, counted from either end",
                )
            )
        seen.add(a % ndim)


def position(axis: Any, ndim: int, text: str) -> int:
    """One axis as a number from 0; ``text`` is the error for one out of range, with {axis}, {low} and {high} to fill in."""
    axis = integer(axis)
    if not -ndim <= axis < ndim:
        raise InvalidArgumentError(
            message(
                text.format(axis=axis, low=-ndim, high=ndim),
                received=f"axis {axis} of an input of rank {ndim}",
                expected=f"an axis from {-ndim} to {ndim - 1}" if ndim else "an input of at least one axis",
            )
        )
    return axis % ndim


_FLOATING = "bfloat16, half, float, double, complex64, complex128"
REAL = "float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64"
NUMERIC = "float, double, int32, uint8, int16, int8, complex64, int64, bfloat16, uint16, complex128, half, uint32, uint64"


def _castable(words: str) -> str:
    """One of the allowed element types: the most usual of them."""
    return next((f"tf.{name}" for word, name in _USUAL.items() if word in words.split(", ")), "dtype")


_USUAL = {"float": "float32", "int32": "int32", "complex64": "complex64", "uint8": "uint8"}


def not_allowed(label: str, dtype: np.dtype, expected: str = _FLOATING) -> InvalidArgumentError:
    """The error for an element type that an op does not work on."""
    word = dtypes.of(dtype).word  # type: ignore[union-attr]
    return InvalidArgumentError(
        message(
            f"Value for attr 'T' of {word} is not in the list of allowed values: {expected} [Op:{label}]",
            fix="tf.strings.to_number(x) first" if word == "string" else f"tf.cast(x, {_castable(expected)}) first",
        )
    )


def numeric(label: str, x: Tensor) -> None:
    """Refuse booleans and strings, whose sums NumPy would compute."""
    if x._array.dtype.kind in "bO":
        raise not_allowed(label, x._array.dtype, NUMERIC)


def floating(label: str, *tensors: Tensor) -> None:
    """Refuse integers, booleans and strings."""
    for x in tensors:
        if x._array.dtype.kind in "biuO":
            raise not_allowed(label, x._array.dtype)


def real_floating(label: str, x: Tensor) -> None:
    """Refuse complex numbers too."""
    if x._array.dtype.kind in "biuOc":
        raise not_allowed(label, x._array.dtype, "bfloat16, half, float, double")


def boolean(op: Any, value: Any, at: int = 0) -> Tensor:
    """A boolean tensor; numbers are not taken for truth values."""
    if not isinstance(value, Tensor):
        value = convert_to_tensor(value, dtypes.bool_) if not hasattr(value, "_operand") else value._operand()
    if value._array.dtype != _BOOL:
        raise wrong_dtype(op, at, _BOOL, value._array.dtype)
    return value


def indices(value: Any, label: str) -> Tensor:
    """An integer tensor."""
    tensor = convert_to_tensor(value)
    if tensor._array.dtype.kind not in "iu":
        word = tensor.dtype.word
        raise InvalidArgumentError(
            message(
                f"Value for attr 'Tindices' of {word} is not in the list of allowed values: int16, int32, int64 [Op:{label}]",
                fix="tf.cast(indices, tf.int32) first",
            )
        )
    return tensor
