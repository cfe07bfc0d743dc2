"""From Python and NumPy values to tensors: `convert_to_tensor`, `constant`, and operands of an op."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, message, shown
from gradtape.values import dtypes
from gradtape.values.placement import placed
from gradtape.values.shape import as_tuple
from gradtape.values.tensor import Tensor, wrap

_new = object.__new__
_INT32, _INT64 = np.iinfo(np.int32), np.iinfo(np.int64)


NUMBER = False
"""The key of a tensor that stands for a Python or NumPy number in an op: nobody else sees it, so nobody can watch it.

False, so that ``kx and ky`` tells two tracked operands from one that is a number or has no key yet.
"""


class Convertible:
    """Base of our own classes that stand for a tensor (Variable, IndexedSlices): they say how to become one."""

    __slots__ = ()

    def _to_tensor(self, dtype: dtypes.DType | None = None) -> Tensor:
        """A tensor that the user may hold, and ask gradients for by itself."""
        raise NotImplementedError

    def _operand(self) -> Tensor:
        """A tensor that only the running op will see."""
        return self._to_tensor()


def convert_to_tensor(value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None) -> Tensor:
    """The tensor for a value; a tensor is returned as it is.

    >>> convert_to_tensor([1, 2.5])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1. , 2.5], dtype=float32)>
    """
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    if isinstance(value, Tensor):
        if wanted is not None and value.dtype is not wanted:
            text = f"Tensor conversion requested dtype {wanted.name} for Tensor with dtype {value.dtype.name}: {value!r}"
            raise ValueError(message(text, fix=f"tf.cast(value, {wanted!r})"))
        return value
    if isinstance(value, Convertible):
        return value._to_tensor(wanted)
    if wanted is None and dtype_hint is not None:
        try:
            return convert_to_tensor(value, dtype_hint)
        except (TypeError, ValueError):
            pass
    return from_python(value, wanted)


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const") -> Tensor:
    """A constant tensor from a Python or NumPy value.

    >>> constant(3.0, shape=(2,))
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([3., 3.], dtype=float32)>
    """
    if isinstance(value, Tensor):
        if dtype is not None and value.dtype != dtypes.as_dtype(dtype):
            text = f"Expected tensor {value} with dtype {dtypes.as_dtype(dtype)!r}, but got dtype {value.dtype!r}."
            raise TypeError(message(text, fix=f"tf.cast(value, {dtypes.as_dtype(dtype)!r})"))
        tensor = value
    elif isinstance(value, (list, tuple)) and any(isinstance(leaf, Tensor) for leaf in _leaves(value)):
        raise ValueError(
            message(
                "tf.constant does not take a list that contains tensors.",
                fix="use tf.stack or tf.convert_to_tensor, which are differentiable",
            )
        )
    else:
        tensor = convert_to_tensor(value, dtype)
    tensor = tensor if shape is None else _filled(tensor, as_tuple(shape))
    return tensor if isinstance(value, Tensor) else placed(tensor)


def _filled(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    array = tensor._array
    if array.size == int(np.prod(shape)):
        return wrap(array.reshape(shape))
    if array.size == 1:
        return wrap(np.full(shape, array.reshape(()), array.dtype))
    raise TypeError(
        message(
            f"Eager execution of tf.constant with unsupported shape. Tensor {array} (converted from the value) has "
            f"{array.size} elements, but got `shape` {shape} with {int(np.prod(shape))} elements).",
            received=f"{array.size} elements for shape {shape}",
            expected="one element, or as many as the shape holds",
        )
    )


def operand(value: Any, dtype: np.dtype, *, right: Any = None) -> Tensor:
    """The other operand of a binary op, in its tensor's dtype: Python and NumPy values bend, tensors do not.

    ``right`` is the op, given when the value stands on its right side: there TensorFlow's error is the kernel's.
    """
    kind = type(value)
    if (kind is float and dtype.kind in "fc") or (kind is int and dtype.kind == "f"):
        tensor = _new(Tensor)
        try:
            tensor._array = np.asarray(value, dtype)
        except (RuntimeWarning, OverflowError):  # a warning as an error: inf is the answer. An error: it says what fits
            tensor._array = _array(value, dtype, None)
        tensor._key = NUMBER
        return tensor
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Convertible):
        return value._operand()
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind not in "OSUMm":
        tensor = wrap(_cast(value, dtype))
        tensor._key = NUMBER
        return tensor
    try:
        return from_python(value, dtypes.of(dtype))
    except TypeError:
        if right is None or right.name not in ("add", "matmul"):
            raise
    raise wrong_dtype(right, 1, dtype, from_python(value, None)._array.dtype)


def wrong_dtype(op: Any, position: int, expected: np.dtype, received: np.dtype) -> InvalidArgumentError:
    """The error for two tensors of different dtypes in one op."""
    want: Any = dtypes.of(expected)
    have: Any = dtypes.of(received)
    name = op.inputs[position] if position < len(op.inputs) else "x"
    return InvalidArgumentError(
        message(
            f"cannot compute {op.label} as input #{position}(zero-based) was expected to be a {want.word} tensor "
            f"but is a {have.word} tensor [Op:{op.label}]",
            fix=f"tf.cast({name}, {want!r}); tensors of different dtypes are not promoted",
        )
    )


def _cast(array: Any, dtype: np.dtype) -> np.ndarray:
    """A copy of a NumPy value in another dtype, without warnings (complex to real drops the imaginary part)."""
    array = np.asarray(array)
    if array.dtype.kind == "c" and dtype.kind not in "cb":
        array = array.real
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def from_python(value: Any, dtype: dtypes.DType | None) -> Tensor:
    """A new tensor from anything that is not one of ours."""
    if isinstance(value, (np.ndarray, np.generic)):
        return _from_numpy(value, dtype)
    kind = type(value)
    if kind in (bool, int, float, complex, str, bytes):
        return _from_leaves(value, {kind}, dtype)
    if isinstance(value, (list, tuple)):
        return _from_sequence(value, dtype)
    if hasattr(value, "__gradtape_tensor__"):
        return convert_to_tensor(value.__gradtape_tensor__(), dtype)
    if is_jax(kind):
        return _from_jax(value, dtype)
    if hasattr(value, "__array__") or isinstance(value, (memoryview, bytearray)):
        return _from_numpy(np.asarray(value), dtype)
    if isinstance(value, range) or hasattr(value, "_dims"):  # a TensorShape
        return _from_sequence(list(value), dtype)
    if isinstance(value, (bool, int, float, complex, str, bytes)):  # subclasses: enums and the like
        return _from_leaves(value, {next(k for k in type(value).__mro__ if k in _RANKS or k in (str, bytes))}, dtype)
    raise ValueError(
        message(
            f"Attempt to convert a value ({value!r}) with an unsupported type ({type(value)}) to a Tensor.",
            expected="a number, string, array, tensor, variable, or a nested list of them",
        )
    )


def _from_numpy(value: Any, dtype: dtypes.DType | None) -> Tensor:
    array = np.asarray(value)
    if array.dtype.kind in "SU":
        array = np.array([_bytes(s) for s in array.ravel().tolist()], object).reshape(array.shape)
    if array.dtype.kind == "O":
        if not all(isinstance(leaf, (str, bytes)) for leaf in array.ravel()):
            return _from_sequence(array.tolist(), dtype)
        array = np.array([_bytes(s) for s in array.ravel()], object).reshape(array.shape)
    own = dtypes.of(array.dtype.newbyteorder("=") if array.dtype.kind != "V" else array.dtype)
    if own is None:
        raise ValueError(
            message(
                f"Failed to convert a NumPy array to a Tensor (Unsupported object type {array.dtype}).",
                received=f"an array of dtype {array.dtype} and shape {array.shape}",
                expected="numbers, booleans or strings",
            )
        )
    if dtype is None or dtype is own:
        # A copy with our own dtype object, by which fast paths compare; pickles bring others.
        return wrap(array.astype(own.numpy))
    if dtypes.string in (own, dtype):
        raise TypeError(
            message(
                f"Cannot convert an array of {own.name} to EagerTensor of dtype {dtype.name}",
                received=f"an array of dtype {own.name} and shape {array.shape}",
                fix="tf.strings.as_string(x) or tf.strings.to_number(x)",
            )
        )
    return wrap(_cast(array, dtype.numpy))


def is_jax(kind: type) -> bool:
    """Whether this is the type of jax's arrays or tracers; asked by name, for jax may not be loaded."""
    return kind.__module__.partition(".")[0] in ("jax", "jaxlib") and hasattr(kind, "aval")


def _from_jax(value: Any, dtype: dtypes.DType | None) -> Tensor:
    own = dtypes.as_dtype(value.dtype)
    if dtype is None or dtype is own:
        return wrap(value)
    if dtype is dtypes.string:
        text = f"Cannot convert an array of {own.name} to EagerTensor of dtype {dtype.name}"
        raise TypeError(
            message(text, received=f"an array of dtype {own.name} and shape {value.shape}", fix="tf.strings.as_string(x)")
        )
    from gradtape.xp import jax as JAX

    with JAX.scope():
        return wrap(JAX.astype(value, dtype=dtype.numpy))


def _is_tensor_like(kind: type) -> bool:
    return issubclass(kind, (Tensor, Convertible)) or is_jax(kind)


def _from_sequence(value: Any, dtype: dtypes.DType | None) -> Tensor:
    leaves = list(_leaves(value))
    kinds = set(map(type, leaves))
    if any(map(_is_tensor_like, kinds)):
        return _packed(value, dtype, leaves)
    if any(issubclass(kind, (np.ndarray, np.generic)) for kind in kinds):
        return _from_numpy_leaves(value, leaves, dtype)
    return _from_leaves(value, kinds, dtype)


_PYTHON: dict[str, type] = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


def _kind(leaf: Any) -> type:
    """The Python type that a leaf counts as."""
    return _PYTHON.get(leaf.dtype.kind, type(leaf)) if isinstance(leaf, (np.ndarray, np.generic)) else type(leaf)


def _from_numpy_leaves(value: Any, leaves: list, dtype: dtypes.DType | None) -> Tensor:
    """A list is read number by number: NumPy's count as Python's, but a float that comes first gives its dtype to all."""
    own = [leaf for leaf in leaves if isinstance(leaf, (np.ndarray, np.generic))]
    if not all(leaf.dtype.kind in _PYTHON for leaf in own):  # strings, objects, bfloat16
        try:
            return _from_numpy(np.array(value, np.result_type(*own)), dtype)
        except ValueError as error:
            raise _ragged(value) from error
    kinds = set(map(_kind, leaves))
    if any(leaf.dtype.kind == "b" for leaf in own):
        if len(kinds) > 1:
            text = "Can't convert Python sequence with mixed types to Tensor."
            raise ValueError(
                message(text, received=shown(value), expected="one type: all booleans, all numbers, or all strings")
            )
        if dtype not in (None, dtypes.bool_):
            text = f"Cannot convert {value!r} to EagerTensor of dtype {dtype.name}"
            raise TypeError(message(text, received=shown(value), expected="numbers", fix=f"tf.cast(value, {dtype!r})"))
    if dtype is None and any(leaf.dtype == np.uint64 and leaf.size and leaf.max() > _INT64.max for leaf in own):
        text = f"Can't convert Python sequence with out-of-range integer to Tensor: {value!r}"
        raise ValueError(
            message(text, received=shown(value), expected="integers that fit int64", fix="tf.constant(value, tf.uint64)")
        )
    if dtype is None and own[0] is leaves[0] and own[0].dtype.kind == "f":
        dtype = dtypes.as_dtype(own[0].dtype)
    return _from_leaves(value, kinds, dtype)


_ops: dict[str, Any] = {}


def pack_with(**ops: Any) -> None:
    """Declare the ops that join the tensors in a list, stack and cast (ops know values, not the other way round)."""
    _ops.update(ops)


def _packed(value: Any, dtype: dtypes.DType | None, leaves: list) -> Tensor:
    """A list that contains tensors is stacked, and the stack is recorded; they are cast if the first has another dtype."""
    first = dtypes.as_dtype(next(leaf.dtype for leaf in leaves if _is_tensor_like(type(leaf))))
    dtype = dtype or first
    cast = dtype != first
    parts = [_ops["cast"](v, dtype) if cast and _is_tensor_like(type(v)) else convert_to_tensor(v, dtype) for v in value]
    if len({p._array.shape for p in parts}) > 1:
        raise InvalidArgumentError(
            message(
                f"Shapes of all inputs must match: {' vs. '.join(str(list(p._array.shape)) for p in parts)} [Op:Pack]",
                received=f"{len(parts)} tensors in a list",
                expected="the same shape in all of them",
                fix="tf.concat(list, 0), or tf.ragged.stack(list)",
            )
        )
    return _ops["stack"](*parts, axis=0)


_RANKS = {bool: 0, int: 1, float: 2, complex: 3}


def _from_leaves(value: Any, kinds: set[type], dtype: dtypes.DType | None) -> Tensor:
    """A tensor from Python numbers or strings of the given types, nested in lists or alone."""
    if kinds <= {str, bytes} and kinds:
        if dtype not in (None, dtypes.string):
            text = f"Cannot convert {value!r} to EagerTensor of dtype {dtype.name}"
            raise TypeError(
                message(text, received=shown(value), fix=f"tf.strings.to_number(value, {dtype!r}), or leave the dtype out")
            )
        return wrap(_strings(value))
    # A bool first wants only bools; after a number it counts as one.
    if not kinds <= _RANKS.keys() or (bool in kinds and len(kinds) > 1 and _kind(next(_leaves(value))) is bool):
        bad = next((leaf for leaf in _leaves(value) if _kind(leaf) not in _RANKS), "")  # None may be the bad leaf
        if isinstance(bad, (str, bytes)):
            text = "Can't convert Python sequence with mixed types to Tensor."
            raise ValueError(
                message(text, received=shown(value), expected="one type: all booleans, all numbers, or all strings")
            )
        text = f"Attempt to convert a value ({bad!r}) with an unsupported type ({type(bad)}) to a Tensor."
        raise ValueError(
            message(text, received=shown(value), expected="numbers, booleans or strings, alone or in nested lists")
        )
    highest = max(kinds, key=_RANKS.__getitem__, default=float)
    if dtype is None:
        return wrap(_array(value, *_default(highest)))
    kind = dtype.numpy.kind if dtype is not dtypes.bfloat16 else "f"
    if kinds and (dtype is dtypes.string or not _fits(highest, kind)):
        first = value if not isinstance(value, (list, tuple)) else next(v for v in _leaves(value) if _kind(v) is highest)
        text = f"Cannot convert {first!r} to EagerTensor of dtype {dtype.name}"
        way = "tf.strings.as_string(value)" if dtype is dtypes.string else f"tf.cast(value, {dtype!r})"
        raise TypeError(message(text, received=shown(value), fix=way))
    return wrap(_array(value, dtype.numpy, None))


def _fits(python: type, kind: str) -> bool:
    if kind == "b":
        return python is bool
    if kind in "iu":
        return python in (int, bool)
    if kind == "c":
        return True
    return python is not complex


def _default(python: type) -> tuple[np.dtype, np.dtype | None]:
    """The dtype for a Python type, and the wider one to take when a value does not fit."""
    if python is int:
        return np.dtype(np.int32), np.dtype(np.int64)
    return {bool: dtypes.bool_, float: dtypes.float32, complex: dtypes.complex128}[python].numpy, None


def _array(value: Any, dtype: np.dtype, wider: np.dtype | None) -> np.ndarray:
    try:
        if dtype.kind in "iu":
            array = np.array(value, np.int64 if wider is not None else dtype)
            if wider is not None and not (array.size and (array.max() > _INT32.max or array.min() < _INT32.min)):
                array = array.astype(dtype)
            return array
        with np.errstate(all="ignore"):
            return np.array(value, dtype)
    except OverflowError as error:
        raise ValueError(
            message(
                f"Can't convert Python sequence with out-of-range integer to Tensor: {value!r}",
                expected=f"integers that fit {(wider or dtype).name}",
            )
        ) from error
    except ValueError as error:
        raise _ragged(value) from error


def _ragged(value: Any) -> ValueError:
    return ValueError(
        message(
            "Can't convert non-rectangular Python sequence to Tensor.",
            received=f"rows of lengths {[len(v) if hasattr(v, '__len__') else 'scalar' for v in value][:8]}",
            expected="the same length in every row",
        )
    )


def _strings(value: Any) -> np.ndarray:
    if isinstance(value, (str, bytes)):
        return string_scalar(_bytes(value))
    shape: list[int] = []
    probe = value
    while isinstance(probe, (list, tuple)):
        shape.append(len(probe))
        probe = probe[0] if probe else None
    leaves = [_bytes(s) for s in _leaves(value)]
    if len(leaves) != int(np.prod(shape)):
        raise _ragged(value)
    array = np.empty(len(leaves), object)
    array[:] = leaves
    return array.reshape(shape)


def string_scalar(text: bytes) -> np.ndarray:
    """An array of rank 0; ``np.asarray(text)`` would cut zeros off its end."""
    array = np.empty((), object)
    array[()] = text
    return array


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _leaves(value: Any):
    if isinstance(value, (list, tuple)):
        for v in value:
            yield from _leaves(v)
    else:
        yield value
