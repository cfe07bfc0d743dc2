"""Element types: `DType` and the named instances (`float32`, `int64`, `string`, …)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import message

_EXTENDED = {"bfloat16", "float8_e4m3fn", "float8_e5m2"}  # in ml_dtypes, which is loaded on first use
_WORDS = {"float16": "half", "float32": "float", "float64": "double"}  # as TensorFlow's kernels name them


class DType:
    """An element type. Compares equal to its name and to the NumPy type of the same name.

    >>> float32 == "float32", float32.size, float32.is_floating
    (True, 4, True)
    """

    __slots__ = ("_numpy", "name")

    def __init__(self, name: str, numpy_type: Any = None) -> None:
        self.name = name
        self._numpy = None if numpy_type is None else np.dtype(numpy_type)

    @property
    def numpy(self) -> np.dtype:
        """The NumPy dtype behind this type."""
        if self._numpy is None:
            import ml_dtypes

            self._numpy = np.dtype(getattr(ml_dtypes, self.name))
            _BY_NUMPY[self._numpy] = self
            if self.name == "bfloat16":
                TRAINABLE.add(self._numpy)
        return self._numpy

    @property
    def as_numpy_dtype(self) -> type:
        return self.numpy.type

    @property
    def is_floating(self) -> bool:
        return self.name in _EXTENDED or self.numpy.kind == "f"

    @property
    def is_integer(self) -> bool:
        return self.name not in _EXTENDED and self.numpy.kind in "iu"

    @property
    def is_unsigned(self) -> bool:
        return self.name not in _EXTENDED and self.numpy.kind == "u"

    @property
    def is_complex(self) -> bool:
        return self.name not in _EXTENDED and self.numpy.kind == "c"

    @property
    def is_bool(self) -> bool:
        return self.name == "bool"

    @property
    def is_numeric(self) -> bool:
        return self.name not in ("bool", "string")

    @property
    def is_trainable(self) -> bool:
        """Whether gradients flow through values of this type (float8 types: no, as in TensorFlow)."""
        return self.numpy in TRAINABLE

    @property
    def size(self) -> int:
        return 1 if self.name == "string" else self.numpy.itemsize

    @property
    def _limits(self) -> Any:
        if self.is_integer:
            return np.iinfo(self.numpy)
        if self.name in _EXTENDED:
            import ml_dtypes

            return ml_dtypes.finfo(self.numpy)
        if self.is_floating:
            return np.finfo(self.numpy)
        raise TypeError(
            message(f"Cannot find the limits of {self!r}.", received=f"{self!r}", expected="an integer or floating type")
        )

    @property
    def min(self) -> Any:
        return False if self.is_bool else self._limits.min

    @property
    def max(self) -> Any:
        return True if self.is_bool else self._limits.max

    @property
    def limits(self) -> tuple:
        return self.min, self.max

    @property
    def real_dtype(self) -> DType:
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    @property
    def base_dtype(self) -> DType:
        return self

    @property
    def word(self) -> str:
        """The name in kernel errors: half, float, double, and otherwise the type's own."""
        return _WORDS.get(self.name, self.name)

    def is_compatible_with(self, other: Any) -> bool:
        return self == as_dtype(other)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other is None or isinstance(other, DType):
            return False
        try:
            return as_dtype(other) is self
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return f"<dtype: {self.name!r}>"

    def __reduce__(self) -> tuple:
        return as_dtype, (self.name,)


float16 = DType("float16", np.float16)
float32 = DType("float32", np.float32)
float64 = DType("float64", np.float64)
bfloat16 = DType("bfloat16")
float8_e4m3fn = DType("float8_e4m3fn")
float8_e5m2 = DType("float8_e5m2")
int8 = DType("int8", np.int8)
int16 = DType("int16", np.int16)
int32 = DType("int32", np.int32)
int64 = DType("int64", np.int64)
uint8 = DType("uint8", np.uint8)
uint16 = DType("uint16", np.uint16)
uint32 = DType("uint32", np.uint32)
uint64 = DType("uint64", np.uint64)
complex64 = DType("complex64", np.complex64)
complex128 = DType("complex128", np.complex128)
bool_ = DType("bool", np.bool_)
string = DType("string", np.object_)

half, double = float16, float64  # TensorFlow's other names

_ALL = [
    float16, float32, float64, bfloat16, float8_e4m3fn, float8_e5m2, int8, int16, int32, int64,
    uint8, uint16, uint32, uint64, complex64, complex128, bool_, string,
]  # fmt: skip
_BY_NAME: dict[str, DType] = {d.name: d for d in _ALL} | {"half": float16, "float": float32, "double": float64}
_BY_NUMPY: dict[np.dtype, DType] = {d._numpy: d for d in _ALL if d._numpy is not None}
_BY_PYTHON: dict[Any, DType] = {float: float32, bool: bool_, complex: complex128, str: string, bytes: string}

# The NumPy dtypes that gradients flow through; bfloat16 joins when it is first met.
TRAINABLE: set[np.dtype] = {d.numpy for d in (float16, float32, float64, complex64, complex128)}


def as_dtype(value: Any) -> DType:
    """The `DType` for a name, a NumPy type, a Python type or a DType.

    >>> as_dtype("float64"), as_dtype(float)
    (tf.float64, tf.float32)
    """
    if isinstance(value, DType):
        return value
    try:
        found = _BY_NAME.get(value) if isinstance(value, str) else _BY_PYTHON.get(value)
    except TypeError:  # unhashable
        found = None
    if found is None and value is not None and value is not int:
        found = _from_numpy_like(value)
    if found is None:
        raise TypeError(
            message(
                f"Cannot convert the argument `type_value`: {value!r} to a TensorFlow DType.",
                expected="a gradtape dtype, its name, or a NumPy type",
                fix="for Python's int name the width: tf.int32 or tf.int64" if value is int else None,
            )
        )
    return found


def _from_numpy_like(value: Any) -> DType | None:
    try:
        dtype = np.dtype(value)
    except TypeError:
        return None
    if dtype.kind in "SU":
        return string
    return of(dtype) if dtype.kind != "O" else None


def of(dtype: np.dtype) -> DType | None:
    """The `DType` of a NumPy dtype, or None if there is none."""
    found = _BY_NUMPY.get(dtype)
    if found is None and dtype.name in _EXTENDED:
        found = _BY_NAME[dtype.name]
        found.numpy  # noqa: B018 - registers it
    return found


def joins_trainable(dtype: np.dtype) -> bool:
    """Whether a NumPy dtype that is not in `TRAINABLE` joins it now: bfloat16, when it is first met."""
    return dtype.isbuiltin == 2 and of(dtype) is bfloat16  # 2: a type that NumPy did not bring


def numpy_dtype(value: Any) -> np.dtype:
    """The NumPy dtype for whatever names an element type."""
    return as_dtype(value).numpy
