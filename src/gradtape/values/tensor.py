"""`Tensor`: an immutable value around one raw array.

`Tensor` itself always holds a NumPy array, so that ``type(x) is Tensor`` is all that the fast paths ask. Other storage
(jax arrays and tracers, batched values) lives in subclasses. Operators and array methods are installed by `ops.methods`.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gradtape.errors import message, shown
from gradtape.values import dtypes
from gradtape.values.shape import TensorShape

if TYPE_CHECKING:
    from gradtape.values.operators import ArrayMethods
else:
    ArrayMethods = object

_NOT_EAGER = "Tensor.{} is undefined when eager execution is enabled."
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_AMBIGUOUS = "The truth value of an array with more than one element is ambiguous. Use tf.reduce_any or tf.reduce_all."
_DEVICE = "/job:localhost/replica:0/task:0/device:{}:{}"
_CPU = _DEVICE.format("CPU", 0)


_leaving: list[Callable[[Any, str], None]] = [lambda tensor, how: None]


def on_leaving(function: Callable[[Any, str], None]) -> None:
    """Have ``function`` called with each tensor that some recorder may know, when its value leaves, and how."""
    _leaving[0] = function


class Reference:
    """A hashable handle on a tensor or variable, which are unhashable because ``==`` is elementwise."""

    __slots__ = ("_target",)

    def __init__(self, target: Any) -> None:
        self._target = target

    def deref(self) -> Any:
        return self._target

    def __hash__(self) -> int:
        return id(self._target)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._target is other._target

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._target!r}>"


class VariableKey:
    """By what tapes know a variable, and the tensor that it holds: the only one whose array may be written over."""

    __slots__ = ()


class Tensor(ArrayMethods):
    """An immutable array value; make one with `constant` or `convert_to_tensor`."""

    # _key: None, or the bare object() by which tapes know this value. Records hold keys, not tensors.
    # _source: set only on what ``variable[index]`` returns: (variable, index), for ``variable[index].assign(value)``.
    __slots__ = ("__weakref__", "_array", "_key", "_source")
    __array_priority__ = 100
    _array: Any
    _key: Any
    _source: Any

    def __init__(self, *_: object, **__: object) -> None:
        raise TypeError(message("tf.Tensor is not constructible.", fix="use tf.constant(value) or tf.convert_to_tensor(value)"))

    # What it is

    @property
    def shape(self) -> TensorShape:
        return TensorShape(self._array.shape)

    def get_shape(self) -> TensorShape:
        return self.shape

    def set_shape(self, shape: Any) -> None:
        if not self.shape.is_compatible_with(shape):
            raise ValueError(
                message(
                    f"Tensor's shape {self.shape} is not compatible with supplied shape {TensorShape(shape)}.",
                    received=f"{TensorShape(shape)}",
                    expected=f"{self.shape}, or None where a length is not known",
                    fix="tf.reshape changes a shape; set_shape only checks it",
                )
            )

    @property
    def dtype(self) -> dtypes.DType:
        return dtypes.of(self._array.dtype)  # type: ignore[return-value]

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def device(self) -> str:
        return _CPU

    backing_device = device

    @property
    def is_packed(self) -> bool:
        return False

    def cpu(self) -> Tensor:
        return self

    def consumers(self) -> list:
        text = "Tensor.consumers is undefined when eager execution is enabled."
        raise NotImplementedError(message(text, fix="print(tape) shows what a tape recorded"))

    def eval(self, *_: object, **__: object) -> None:
        text = "eval is not supported when eager execution is enabled, is .numpy() what you're looking for?"
        raise NotImplementedError(message(text, fix="x.numpy()"))

    @property
    def op(self) -> None:
        raise AttributeError(
            message(_NOT_EAGER.format("op"), fix="print(tape) shows the ops that a tape recorded")
        )

    @property
    def name(self) -> None:
        raise AttributeError(
            message(_NOT_EAGER.format("name"), fix="keep the name beside it: {'loss': x}; variables have names")
        )

    @property
    def graph(self) -> None:
        raise AttributeError(
            message(_NOT_EAGER.format("graph"), fix="use the tensor itself; inside tf.function nothing needs its graph")
        )

    @property
    def value_index(self) -> None:
        raise AttributeError(message(_NOT_EAGER.format("value_index"), fix="take the output by its place: outputs[0]"))

    # Leaving for Python and NumPy

    def numpy(self) -> Any:
        """A copy that the caller owns; a NumPy scalar for rank 0, bytes for a scalar string."""
        self._given_away(".numpy()")
        return self._copied()

    def _copied(self) -> Any:
        array = self._host()
        return array.copy() if array.ndim else array[()]

    def _host(self) -> np.ndarray:
        return self._array

    def _is_traced(self) -> bool:
        """Whether it stands for numbers that exist only when a compiled program runs."""
        return False

    def _detached(self) -> Tensor:
        """The same value, which no recorder knows; storage that carries derivatives inside drops them."""
        return wrap(self._array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self._given_away("np.asarray")
        if isinstance(dtype, dtypes.DType):
            dtype = dtype.numpy
        if dtype is not None and np.dtype(dtype) != array.dtype:
            return array.astype(dtype)
        if copy:
            return array.copy()
        # Freeze the owner of the buffer, not only the view that is handed out: a view could be made writeable again.
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        owner.setflags(write=False)
        array.setflags(write=False)
        return array

    def __bool__(self) -> bool:
        array = self._given_away("bool()")
        if array.size > 1:
            raise ValueError(message(_AMBIGUOUS, received=f"shape {array.shape}", fix="tf.reduce_any(x) or tf.reduce_all(x)"))
        return bool(array.size and array.reshape(())[()])

    def __float__(self) -> float:
        return float(self._given_away("float()"))

    def __int__(self) -> int:
        return int(self._given_away("int()"))

    def __complex__(self) -> complex:
        return complex(self._given_away("complex()"))

    def __index__(self) -> int:
        return self._given_away("int()").__index__()

    def _given_away(self, how: str) -> np.ndarray:
        """The array, for somebody who may compute with it what no tape sees."""
        if self._key is not None:
            _leaving[0](self, how)
        return self._host()

    def __len__(self) -> int:
        if not self._array.ndim:
            text = "Scalar tensor has no `len()`"
            raise TypeError(message(text, received="shape ()", expected="at least one axis", fix="tf.size(x) counts elements"))
        return self._array.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self._array.ndim:
            text = "Cannot iterate over a scalar tensor."
            raise TypeError(message(text, received="shape ()", expected="at least one axis", fix="tf.reshape(x, [-1])"))
        return (self[i] for i in range(self._array.shape[0]))

    # Identity

    __hash__ = None  # type: ignore[assignment]  # replaced below: the message names ref()

    def ref(self) -> Reference:
        return Reference(self)

    experimental_ref = ref

    def __copy__(self) -> Tensor:
        return self

    def __deepcopy__(self, memo: dict) -> Tensor:
        return self

    def __reduce__(self) -> tuple:
        return _unpickle, (self._host(),)

    # Text

    def __repr__(self) -> str:
        return f"<tf.Tensor: shape={self._array.shape}, dtype={self.dtype.name}, numpy={self._text(repr)}>"

    def __str__(self) -> str:
        return f"tf.Tensor({self._text(str)}, shape={self._array.shape}, dtype={self.dtype.name})"

    def __format__(self, spec: str) -> str:
        if self._key is not None:
            _leaving[0](self, "format()")
        return format(self._copied(), spec)

    def _text(self, form: Any) -> str:
        value = self._copied()
        if isinstance(value, np.ndarray):
            text = form(value)
            return "\n" + text if "\n" in text else text  # rows line up below one another
        return repr(value) if isinstance(value, bytes) else str(value)


def _unhashable(self: Any) -> int:
    kind = "Variable" if type(self).__name__ == "Variable" else "Tensor"
    text = f"{kind} is unhashable. Instead, use {kind.lower()}.ref() as the key."
    text += f" (Variable: {self!r})" if kind == "Variable" else ""
    raise TypeError(message(text, received=shown(self), fix="x.ref(), which gives it back by deref()"))


Tensor.__hash__ = _unhashable  # type: ignore[assignment,method-assign]


class JaxTensor(Tensor):
    """A tensor whose array is a jax array or tracer."""

    __slots__ = ()

    def _host(self) -> np.ndarray:
        if self._is_traced():
            try:
                return np.asarray(self._array)
            except Exception as error:
                raise out_of_scope(self._array) from error
        return np.asarray(self._array)

    @property
    def device(self) -> str:
        from gradtape.xp import jax_devices

        found = jax_devices.of(self._array)
        return _CPU if found is None else _DEVICE.format(*jax_devices.name_of(found))

    backing_device = device

    def _is_traced(self) -> bool:
        return type(self._array).__name__.endswith("Tracer")

    def __repr__(self) -> str:
        return self._symbol() if self._is_traced() else super().__repr__()

    def __str__(self) -> str:
        return self._symbol() if self._is_traced() else super().__str__()

    def _symbol(self) -> str:
        return f"<tf.Tensor: shape={self._array.shape}, dtype={self.dtype.name}, traced>"


def out_of_scope(array: Any) -> TypeError:
    """The error for the number of a traced tensor, which exists only when the compiled program runs."""
    where = _made_at(array)
    made = f"it was made inside a tf.function (at {where})" if where else "it was made inside a tf.function"
    return TypeError(
        message(
            f"<tf.Tensor: shape={array.shape}, dtype={array.dtype}, traced> is out of scope and cannot be used here.",
            why=f"{made}, where it stands for numbers that exist only when the compiled program runs",
            fix="return it from the function, or assign it to a tf.Variable; inside, compute with tensors",
        )
    )


def _made_at(array: Any) -> str | None:
    """The line of the user's code that made a traced array, as far as jax remembers."""
    traceback = getattr(getattr(array, "_line_info", None), "traceback", None)
    for frame in getattr(traceback, "frames", ()):  # the innermost first
        ours = frame.file_name.startswith(_PACKAGE) or f"{os.sep}jax{os.sep}" in frame.file_name
        if not ours and not frame.file_name.startswith("<frozen"):
            return f"{frame.file_name}:{frame.line_num}"
    return None


class BatchedTensor(Tensor):
    """A tensor whose array is a `batched.Batched`: one value per element of a hidden leading axis."""

    __slots__ = ()
    xp: ClassVar[Any]  # the namespace for such values, set by `batched`


_new = object.__new__
_NUMPY = np.generic, np.ndarray  # a number, or a subclass of arrays
_ndarray, _asarray = np.ndarray, np.asarray


def wrap(array: Any) -> Tensor:
    """A Tensor around a raw array that nobody else will change."""
    kind = type(array)
    if kind is _ndarray:
        tensor = _new(Tensor)
    elif isinstance(array, _NUMPY):
        tensor = _new(Tensor)
        array = _asarray(array)
    else:
        tensor = _new(storage(kind))
    tensor._array = array
    tensor._key = None
    return tensor


_STORAGE: weakref.WeakKeyDictionary[type, type[Tensor]] = weakref.WeakKeyDictionary()


def storage(kind: type) -> type[Tensor]:
    """The Tensor class that holds raw arrays of type ``kind``."""
    return _STORAGE.get(kind, JaxTensor)


def store(kind: type, tensor_class: type[Tensor]) -> None:
    """Declare that arrays of type ``kind`` live in ``tensor_class``."""
    _STORAGE[kind] = tensor_class


def _unpickle(array: np.ndarray) -> Tensor:
    return wrap(array.astype(dtypes.of(array.dtype).numpy))  # type: ignore[union-attr]  # a pickle brings a dtype object of its own
