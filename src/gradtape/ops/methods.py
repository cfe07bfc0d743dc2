"""What Python syntax does to Tensor and Variable: operators, indexing, and (on Tensor) ndarray's harmless methods.

``Tensor.__add__`` and its like are the op functions themselves: a Python layer between them would cost as much as a
small addition.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.op import pair
from gradtape.core.variable import Variable
from gradtape.errors import InvalidArgumentError, message
from gradtape.ops import arrays, contract, elementwise, indexing, numpy_functions, numpy_protocol, shape
from gradtape.ops.execution import staging
from gradtape.values import dtypes
from gradtape.values.composite import outranked
from gradtape.values.convert import Convertible
from gradtape.values.shape import refuse_open
from gradtape.values.tensor import Tensor, wrap
from gradtape.xp import WHEN_JAX_LOADS

_INTEGERS = "int8, int16, int32, int64, uint8, uint16, uint32, uint64"

# Arithmetic


def _reflected(function: Callable) -> Callable:
    return lambda self, other: function(other, self)


def _power(self: Any, other: Any) -> Tensor:
    """Two arguments only: the op's third is a name, and ``pow(x, y, modulus)`` must not be taken for it."""
    return elementwise.power(self, other)


_ARITHMETIC = {
    "add": elementwise.add, "sub": elementwise.subtract, "mul": elementwise.multiply, "truediv": elementwise.true_divide,
    "floordiv": elementwise.floor_divide, "mod": elementwise.remainder, "pow": _power, "matmul": contract.matmul,
}  # fmt: skip

# Comparison


def _equality(function: Any, unlike: bool) -> Callable:
    """``==`` and ``!=``: shapes that do not broadcast are unlike as a whole, and so are a tensor and None."""

    def call(self: Any, other: Any) -> Any:
        if other is None and isinstance(self, Tensor):
            return unlike
        if outranked(function.op.name, self, other):
            return NotImplemented
        x, y = pair(function.op, self, other)
        if x._array.dtype == y._array.dtype and not _broadcastable(x._array.shape, y._array.shape):
            refuse_open((*x._array.shape, *y._array.shape), "whether two tensors can be compared")
            return wrap(np.asarray(unlike))
        return function(x, y)

    return call


def _broadcastable(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(m == n or m == 1 or n == 1 for m, n in zip(reversed(a), reversed(b)))


_COMPARISONS = {
    "eq": _equality(elementwise.equal, False), "ne": _equality(elementwise.not_equal, True),
    "lt": elementwise.less, "le": elementwise.less_equal,
    "gt": elementwise.greater, "ge": elementwise.greater_equal,
}  # fmt: skip

# Logic on booleans, bits on integers


def _bits(logical: Any, bitwise: Any) -> Callable:
    def call(self: Any, other: Any) -> Any:
        if outranked(bitwise.op.name, self, other):
            return NotImplemented
        x, y = pair(bitwise.op, self, other)
        _no_floats(bitwise, x)
        return (logical if x._array.dtype.kind == "b" else bitwise)(x, y)

    return call


def _invert(self: Any) -> Tensor:
    x = self._operand() if isinstance(self, Convertible) else self
    _no_floats(elementwise.bitwise_not, x)
    return (elementwise.logical_not if x._array.dtype.kind == "b" else elementwise.bitwise_not)(x)


def _no_floats(function: Any, x: Tensor) -> None:
    if x._array.dtype.kind not in "biu":
        op = function.op
        raise InvalidArgumentError(
            message(
                f"Value for attr 'T' of {x.dtype.word} is not in the list of allowed values: {_INTEGERS} [Op:{op.label}]",
                received=f"{op.name} of {x.dtype!r}",
                expected="bool (logical) or integers (bitwise)",
            )
        )


_BITS = {
    "and": _bits(elementwise.logical_and, elementwise.bitwise_and),
    "or": _bits(elementwise.logical_or, elementwise.bitwise_or),
    "xor": _bits(elementwise.logical_xor, elementwise.bitwise_xor),
}

_UNARY = {"neg": elementwise.negative, "abs": elementwise.abs, "invert": _invert}

for _class in (Tensor, Variable):
    for _symbol, _function in (_ARITHMETIC | _BITS).items():
        setattr(_class, f"__{_symbol}__", _function)
        setattr(_class, f"__r{_symbol}__", _reflected(_function))
    for _symbol, _function in (_COMPARISONS | _UNARY).items():
        setattr(_class, f"__{_symbol}__", _function)


# Indexing

_NOT_AN_INDEX = (
    "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors are valid "
    "indices, got {!r}"
)


def _getitem(self: Tensor, index: Any) -> Tensor:
    """``x[index]``: integers, slices, None and Ellipsis, or one boolean mask."""
    if _is_mask(index):
        return arrays.boolean_mask(self, index)
    plain = plain_index(index, self._array.shape)
    if self._array.dtype.kind == "O" and Ellipsis not in plain:
        plain += (Ellipsis,)  # an array of rank 0, where NumPy would give the bare string
    return _picked(self, plain) if staging.inside else indexing.getitem(self, index=plain)


def _picked(x: Tensor, index: tuple) -> Tensor:
    """``x[index]`` where a number of the index may be traced: those axes are taken last."""
    out = indexing.getitem(x, index=tuple(slice(None) if isinstance(item, Tensor) else item for item in index))
    axis = out._array.ndim
    rest = x._array.ndim - sum(item is not None and item is not Ellipsis for item in index)
    if not any(item is Ellipsis for item in index):
        axis -= rest
    for item in reversed(index):
        axis -= rest if item is Ellipsis else type(item) is not int
        if isinstance(item, Tensor):  # below an axis of its own, so that the gradient is dense, as that of a known index
            place = elementwise.where(item < 0, item + out._array.shape[axis], item)
            out = indexing.take(shape.expand_dims(out, axis=0), place, axis=axis + 1, batch_dims=0)
            out = shape.squeeze(out, axis=0)
    return out


def _variable_getitem(self: Variable, index: Any) -> Tensor:
    """``v[index]``, which also has ``assign``."""
    x = self._operand()
    if _is_mask(index):
        return arrays.boolean_mask(x, index)
    plain = plain_index(index, x._array.shape)
    out = _picked(x, plain) if staging.inside else indexing.getitem(x, index=plain)
    out._source = (self, plain)
    return out


def _assign(self: Tensor) -> Callable:
    """``v[index].assign(value)``: only what was read from a variable by an index has it."""
    try:
        variable, index = self._source
    except AttributeError:
        text = "'Tensor' object has no attribute 'assign'. Tensors are immutable; use a tf.Variable."
        raise AttributeError(message(text, fix="x = tf.Variable(x)")) from None

    def assign(value: Any, name: str | None = None) -> Variable:
        return variable._assign_slice(index, value)

    return assign


def _no_item_assignment(self: Tensor, index: Any, value: Any) -> None:
    raise TypeError(
        message(
            "'Tensor' object does not support item assignment",
            fix="tf.tensor_scatter_nd_update(x, indices, values), tf.where, or a tf.Variable: v[index].assign(value)",
        )
    )


def plain_index(index: Any, lengths: tuple[int, ...]) -> tuple:
    """An index as a tuple of Python ints (and traced ones), slices, None and Ellipsis, checked against the shape."""
    if type(index) is int:
        items: list = [index]
    else:
        items = [_plain(item) for item in (index if isinstance(index, (tuple, list)) else (index,))]
    rank = len(lengths)
    used = sum([item is not None and item is not Ellipsis for item in items])
    if used > rank:
        if not rank:
            text = "Attempting to slice scalar input. [Op:StridedSlice]"
            raise InvalidArgumentError(
                message(text, received=f"{used} indices for shape ()", expected="none: a scalar has no axes")
            )
        text = f"Index out of range using input dim {rank}; input has only {rank} dims [Op:StridedSlice]"
        raise InvalidArgumentError(message(text, received=f"{used} indices for shape {lengths}", expected=f"at most {rank}"))
    axis = 0
    ellipses = 0
    for item in items:
        if item is Ellipsis:
            ellipses += 1
            axis += rank - used
        elif item is not None:
            _check_bounds(item, axis, lengths[axis])
            axis += 1
    if ellipses > 1:
        text = "Multiple ellipses in slice spec not allowed [Op:StridedSlice]"
        raise InvalidArgumentError(message(text, received=f"{index}", fix="keep one ... ; write : for the other axes"))
    return tuple(items)


def _check_bounds(item: Any, axis: int, length: int) -> None:
    if type(item) is slice:
        if item.step == 0:
            text = f"strides[{axis}] must be non-zero [Op:StridedSlice]"
            raise InvalidArgumentError(message(text, received=f"{item}", fix="1 takes every element, -1 goes backwards"))
    elif type(item) is int and not -length <= item < length:
        raise InvalidArgumentError(
            message(
                f"slice index {item} of dimension {axis} out of bounds. [Op:StridedSlice]",
                expected=f"an index from {-length} to {length - 1}" if length else "no index: this axis is empty",
            )
        )


def _plain(item: Any) -> Any:
    if item is None or item is Ellipsis or type(item) is int:
        return item
    if isinstance(item, slice):
        return slice(*(part if part is None else int(_integer(part)) for part in (item.start, item.stop, item.step)))
    return _integer(item)


def _integer(value: Any) -> Any:
    if isinstance(value, Convertible):
        value = value._operand()
    if isinstance(value, Tensor):
        if not value._array.shape and value._array.dtype in (np.int32, np.int64):
            return value if value._is_traced() else int(value._host())
    elif isinstance(value, bool):
        raise InvalidArgumentError(
            message(
                "Value for attr 'Index' of bool is not in the list of allowed values: int16, int32, int64 [Op:StridedSlice]",
                fix="for a mask use a boolean tensor or array: x[tf.constant([True, False])]",
            )
        )
    elif not isinstance(value, (np.ndarray, np.bool_)) or (value.ndim == 0 and value.dtype.kind in "iu"):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise TypeError(
        message(_NOT_AN_INDEX.format(value), fix="to pick several rows use tf.gather(x, indices), or a boolean mask: x[x > 0]")
    )


# Boolean masks


def _is_mask(index: Any) -> bool:
    if type(index) is int or type(index) is slice or type(index) is tuple:
        return False
    if isinstance(index, Convertible):
        index = index._operand()
    array = index._array if isinstance(index, Tensor) else index
    return isinstance(index, bool) or (isinstance(index, (Tensor, np.ndarray)) and array.dtype.kind == "b")


Tensor.__getitem__ = _getitem  # type: ignore[method-assign,assignment]
Tensor.__setitem__ = _no_item_assignment  # type: ignore[index]
Tensor.assign = property(_assign)  # type: ignore[method-assign,assignment]
Variable.__getitem__ = _variable_getitem  # type: ignore[method-assign,assignment]


# ndarray's methods: a NumPy function on a tracked tensor answers with a Tensor, and the code around it goes on


def _method(name: str, function: Any) -> Callable:
    """An array method that is recorded; integers and booleans are computed by NumPy, with NumPy's dtypes."""
    recorded = numpy_functions.FUNCTIONS[function]

    def call(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if self._array.dtype in dtypes.TRAINABLE or type(self) is not Tensor:
            return recorded(self, *args, **kwargs)
        return wrap(np.asarray(getattr(self._array, name)(*args, **kwargs)))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"``ndarray.{name}`` on a tensor, recorded; the result is a Tensor."
    return call


for _name, _function in {
    "sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min, "std": np.std, "var": np.var,
    "cumsum": np.cumsum, "cumprod": np.cumprod, "clip": np.clip, "ravel": np.ravel, "squeeze": np.squeeze,
    "swapaxes": np.swapaxes, "take": np.take, "repeat": np.repeat, "dot": np.dot, "trace": np.trace,
    "diagonal": np.diagonal,
}.items():  # fmt: skip
    setattr(Tensor, _name, _method(_name, _function))


def _spread(args: tuple) -> Any:
    """``x.reshape(2, 3)`` and ``x.reshape((2, 3))`` mean the same."""
    return args[0] if len(args) == 1 else args


def _reshape(self: Tensor, *shape_: Any) -> Tensor:
    """The same elements in another shape."""
    return numpy_functions.reshape(self, _spread(shape_))


def _transpose(self: Tensor, *axes: Any) -> Tensor:
    """Axes in another order, reversed by default."""
    return numpy_functions.transpose(self, _spread(axes) if axes else None)


def _astype(self: Tensor, dtype: Any) -> Tensor:
    """A tensor of another dtype."""
    return elementwise.cast(self, numpy_functions.our_dtype(dtype))


def _flatten(self: Tensor) -> Tensor:
    """All elements in one axis."""
    return shape.reshape(self, shape=(-1,))


def _round(self: Tensor, decimals: int = 0) -> Tensor:
    """Rounded to decimals, halves to even; not differentiable."""
    return wrap(np.round(self._host(), decimals))


def _sorted(self: Tensor, axis: int | None = -1) -> None:
    raise TypeError(message("A Tensor is immutable, and ndarray.sort works in place.", fix="np.sort(x), or tf.sort(x)"))


def _nondifferentiable(name: str) -> Callable:
    def call(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return wrap(np.asarray(getattr(self._host(), name)(*args, **kwargs)))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"``ndarray.{name}`` on a tensor; the result is a Tensor, and no gradient flows through it."
    return call


for _name in ("any", "all", "argmax", "argmin", "argsort", "searchsorted"):
    setattr(Tensor, _name, _nondifferentiable(_name))

_OTHERS: dict[str, Any] = {
    "reshape": _reshape,
    "transpose": _transpose,
    "astype": _astype,
    "flatten": _flatten,
    "round": _round,
    "sort": _sorted,
    "item": lambda self, *index: self._given_away(".item()").item(*index),
    "tolist": lambda self: self._given_away(".tolist()").tolist(),
    "copy": lambda self, order="C": elementwise.identity(self),
    "conj": lambda self: elementwise.conj(self),
    "conjugate": lambda self: elementwise.conj(self),
    "T": property(lambda self: shape.transpose(self, axes=None)),
    "mT": property(lambda self: shape.matrix_transpose(self)),
    "real": property(lambda self: elementwise.real(self) if self.dtype.is_complex else self),
    "imag": property(lambda self: elementwise.imag(self) if self.dtype.is_complex else elementwise.zeros_like(self)),
    "size": property(lambda self: self._array.size),
    "itemsize": property(lambda self: self._array.dtype.itemsize),
    "nbytes": property(lambda self: self._array.size * self._array.dtype.itemsize),
}
for _name, _value in _OTHERS.items():
    setattr(Tensor, _name, _value)


def _copy(name: str, doc: str) -> Callable:
    """A method of the module `devices`, which is loaded when somebody asks for a copy."""

    def call(self: Tensor, *args: Any) -> Tensor:
        from gradtape.ops import devices

        return getattr(devices, name)(self, *args)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


Tensor.cpu = _copy("cpu", "The tensor in the memory of the CPU; itself if it is there.")  # type: ignore[method-assign]
Tensor.gpu = _copy("gpu", "The tensor on a GPU.")  # type: ignore[attr-defined]
numpy_protocol.install(Tensor, Variable)
WHEN_JAX_LOADS.append(lambda namespace: importlib.import_module("gradtape.ops.compiled").install(namespace))
