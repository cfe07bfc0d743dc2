"""`Variable`: a named cell. Reading gives a tensor, assigning replaces the value.

All implicit reads of a variable (as an operand of an op) share the variable's key, so the gradient with respect to the
variable is the sum over its reads, before and after assignments, without a record per read.
"""

from __future__ import annotations

import copy
import enum
import itertools
import operator
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from gradtape.core.context import thread
from gradtape.core.cuts import ASSIGNED, leave
from gradtape.core.indexed_slices import IndexedSlices
from gradtape.core.op import OPS, select
from gradtape.errors import InvalidArgumentError, dims, message, shown
from gradtape.values import dtypes
from gradtape.values.convert import Convertible, convert_to_tensor
from gradtape.values.graph_variable import GraphVariable
from gradtape.values.naming import scoped
from gradtape.values.placement import beside, placed
from gradtape.values.recorded import RECORDED
from gradtape.values.shape import TensorShape
from gradtape.values.sharing import WRITING, new_lock
from gradtape.values.tensor import Reference, Tensor, VariableKey, _unhashable, wrap
from gradtape.xp import numpy as NUMPY

if TYPE_CHECKING:
    from gradtape.values.operators import Operators
else:
    Operators = object

_numbers = itertools.count()


def new_number() -> int:
    """A number that no variable has: smaller than those of all variables that are made from now on."""
    return next(_numbers)


def variable_of(value: Any) -> Any:
    """The variable inside an object of another library (a Keras variable exposes it so), or the value itself."""
    return getattr(value, "__gradtape_variable__", value)


class VariableSynchronization(enum.Enum):
    AUTO, NONE, ON_WRITE, ON_READ = range(4)


class VariableAggregation(enum.Enum):
    NONE, SUM, MEAN, ONLY_FIRST_REPLICA = range(4)


class Variable(Convertible, GraphVariable, Operators):
    """A value that can be assigned, and that tapes track by themselves.

    >>> v = Variable([1.0, 2.0])
    >>> v.assign_add([1.0, 1.0])
    <tf.Variable 'Variable:0' shape=(2,) dtype=float32, numpy=array([2., 3.], dtype=float32)>
    """

    __slots__ = (
        "__dict__", "__weakref__", "_constraint", "_differentiable", "_held", "_key", "_lock", "_name", "_number", "_static",
        "_tensor", "_trainable", "aggregation", "synchronization",
    )  # fmt: skip
    __array_priority__ = 100
    _held: Any  # by a compiled program, which has the value then

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        import_scope: Any = None,
        constraint: Callable | None = None,
        synchronization: Any = VariableSynchronization.AUTO,
        aggregation: Any = VariableAggregation.NONE,
        shape: Any = None,
        experimental_enable_variable_lifting: bool = True,
    ) -> None:
        if initial_value is None:
            text = (
                "The `initial_value` arg to `tf.Variable` must be specified except when you are not providing a "
                "`variable_def`. You provided neither."
            )
            raise ValueError(message(text, received="initial_value=None", fix="tf.Variable(tf.zeros(shape))"))
        if constraint is not None and not callable(constraint):
            text = f"Argument `constraint` must be None or a callable. a callable. Got: {constraint}"
            raise ValueError(message(text, expected="a function of the new value, or None"))
        value = initial_value() if callable(initial_value) else initial_value
        try:
            tensor = convert_to_tensor(value, dtype)
        except ValueError as error:
            if isinstance(value, Tensor):
                raise ValueError(message(f"initial_value: {error}", fix="tf.cast(initial_value, dtype)")) from None
            raise
        static = TensorShape(tensor._array.shape if shape is None else shape)
        if not static.is_compatible_with(tensor._array.shape):
            raise ValueError(
                message(
                    f"In this `tf.Variable` creation, the initial value's shape ({tensor._array.shape}) is not compatible with "
                    f"the explicitly supplied `shape` argument ({shape}).",
                    fix="reshape the initial value, or leave lengths open: shape=tf.TensorShape([None])",
                )
            )
        if trainable is None:
            trainable = synchronization is not VariableSynchronization.ON_READ
        self._set_up(placed(tensor)._array, bool(trainable), scoped(name or "Variable"), static)
        if tensor._key is not None:
            leave(tensor, "tf.Variable", ASSIGNED, self._key)
        self._constraint = constraint
        self.synchronization = synchronization
        self.aggregation = aggregation

    def _set_up(self, array: Any, trainable: bool, name: str, static: TensorShape) -> None:
        self._number = new_number()
        self._key = VariableKey()
        self._trainable = trainable
        self._differentiable = array.dtype in dtypes.TRAINABLE
        self._name = name
        self._static = static
        self._lock: Any = None  # made when it is first needed
        self._put(array)

    def _put(self, array: Any) -> None:
        """Replace the value by a raw array that nobody else will change."""
        tensor = wrap(array)
        tensor._key = self._key
        self._tensor = tensor

    # Reading

    def _operand(self) -> Tensor:
        recorder = thread.sole
        if recorder is not None:
            if self._key not in recorder.variables and self._trainable:
                recorder.accessed(self)
        elif self._trainable:
            for recorder in thread.recorders:
                if self._key not in recorder.variables:
                    recorder.accessed(self)
        return self._tensor

    def _to_tensor(self, dtype: dtypes.DType | None = None) -> Tensor:
        if dtype is not None and dtype is not self.dtype:
            text = (
                f"Incompatible type conversion requested to type {dtype.name} for `tf.Variable of type {self.dtype.name}`. "
                f"(Variable: {self!r})"
            )
            raise ValueError(message(text, fix=f"tf.cast(variable, {dtype!r})"))
        return self.value()

    def _notify_watchers(self) -> None:
        """Tell variable watchers (not tapes) that this variable is in use."""
        for recorder in thread.recorders:
            if not hasattr(recorder, "gradient"):
                recorder.accessed(self)

    def snapshot(self) -> Tensor:
        """What it holds now, untouched by later assignments: for those who look without computing. No tape notices."""
        thread.presence  # noqa: B018 - this thread reads from now on
        return self._tensor

    def value(self) -> Tensor:
        """A snapshot of the value; a source of its own for tapes."""
        return OPS["identity"](self._operand())

    def read_value(self) -> Tensor:
        return self.value()

    read_value_no_copy = read_value

    def numpy(self) -> Any:
        return self._operand().numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self._operand().__array__(dtype, copy)

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        return RECORDED.take(self, indices, axis=0, batch_dims=0)

    def gather_nd(self, indices: Any, name: str | None = None) -> Tensor:
        return RECORDED.gather_nd(self, indices)

    # What it is

    @property
    def shape(self) -> TensorShape:
        return self._static

    def get_shape(self) -> TensorShape:
        return self._static

    def set_shape(self, shape: Any) -> None:
        self._static = self._static.merge_with(shape)

    @property
    def dtype(self) -> dtypes.DType:
        return self._tensor.dtype

    @property
    def name(self) -> str:
        return self._name + ":0"

    @property
    def trainable(self) -> bool:
        return self._trainable

    @property
    def constraint(self) -> Callable | None:
        return self._constraint

    @property
    def device(self) -> str:
        return self._tensor.device

    # Assigning

    def assign(self, value: Any, use_locking: Any = None, name: str | None = None, read_value: bool = True) -> Any:
        """Replace the value."""
        array = self._converted(value)
        if not self._static.is_compatible_with(array.shape):
            raise ValueError(
                message(
                    f"Cannot assign value to variable ' {self.name}': Shape mismatch."
                    f"The variable shape {self._static}, and the "
                    f"assigned value shape {array.shape} are incompatible.",
                    received=f"{array.dtype.name} {array.shape}",
                    expected=f"{self.dtype.name} {self._static}",
                    fix="to let the shape change, make it with tf.Variable(value, shape=tf.TensorShape(None))",
                )
            )
        self.atomically(self._replace, array)
        return self._answer(read_value)

    def assign_add(self, delta: Any, use_locking: Any = None, name: str | None = None, read_value: bool = True) -> Any:
        """Add to the value."""
        return self._update(operator.add, delta, read_value)

    def assign_sub(self, delta: Any, use_locking: Any = None, name: str | None = None, read_value: bool = True) -> Any:
        """Subtract from the value."""
        return self._update(operator.sub, delta, read_value)

    def count_up_to(self, limit: int) -> Tensor:
        def count() -> Tensor:
            if int(self._tensor) >= limit:
                text = f"Reached limit of {limit}"
                raise InvalidArgumentError(message(text, received=f"{int(self._tensor)}", expected=f"a count below {limit}"))
            before = self.value()
            self.assign_add(1)
            return before

        return self.atomically(count)

    def _converted(self, value: Any) -> Any:
        if isinstance(value, Convertible):
            value = value._operand()
        value = convert_to_tensor(value, self.dtype)
        if value._key is not None:
            leave(value, "assign", ASSIGNED, self._key)
        return value._array

    def atomically(self, change: Callable, *args: Any) -> Any:
        """Call a function that reads this variable and assigns it; no other thread assigns it meanwhile."""
        thread.presence  # noqa: B018 - this thread reads from now on
        if self._lock is None:
            with WRITING:
                self._lock = self._lock or new_lock()
        while True:
            lock = self._lock
            with lock:
                if lock is self._lock:  # else `assign_under` was faster
                    return change(*args)

    def assign_under(self, lock: Any) -> None:
        """Let this variable change under a lock that it shares with others."""
        if self._lock is not lock:
            self.atomically(lambda: setattr(self, "_lock", lock))

    def _update(self, function: Callable, delta: Any, read_value: bool) -> Any:
        delta = self._converted(delta)
        self.atomically(self._updated, function, delta)
        return self._answer(read_value)

    def _updated(self, function: Callable, delta: Any) -> None:
        array = self._tensor._array
        if delta.shape != array.shape:
            raise InvalidArgumentError(
                message(
                    f"Cannot update variable with shape {dims(array.shape)} using a Tensor with shape {dims(delta.shape)}, "
                    "shapes must be equal.",
                    received=f"variable {self.name!r}",
                    fix="broadcast the update first",
                )
            )
        if type(array) is np.ndarray is type(delta):
            scope = NUMPY.scope()
        else:
            delta = beside(wrap(delta), self._tensor)._array
            scope = select((wrap(array), wrap(delta))).scope()
        with scope:
            self._replace(function(array, delta))

    def exclusive(self) -> np.ndarray | None:
        """The buffer, if nobody but this variable can see it: a thread that is `alone` may write over it, with `WRITING`."""
        tensor = self._tensor
        array = tensor._array
        # Held by: the variable, the local name and the call; the tensor, the local name and the call.
        unseen = type(tensor) is Tensor and sys.getrefcount(tensor) == 3 and sys.getrefcount(array) == 3
        return array if unseen and array.base is None and array.flags.carray else None

    def _replace(self, array: Any) -> None:
        present = self._tensor
        if type(array) is not np.ndarray or type(present) is not Tensor:  # a variable stays on its device
            array = beside(wrap(array), present)._array
        if array is not present._array:
            self._put(array)

    def _answer(self, read_value: bool) -> Any:
        """What an assignment returns: this counts as a read (A4.2)."""
        if not read_value:
            return None
        self._operand()
        return self

    # Sparse updates

    def _scattered(self, change: str, sparse_delta: Any, axis: int = 0) -> Variable:
        if not isinstance(sparse_delta, IndexedSlices):
            text = f"Argument `sparse_delta` must be a `tf.IndexedSlices`. Received arg: {sparse_delta}"
            raise TypeError(message(text, received=f"{shown(sparse_delta)}", fix="tf.IndexedSlices(values, indices)"))
        indices = _known(sparse_delta.indices)
        self._check_range(indices, self._tensor._array.shape[axis])
        batch = tuple(np.indices((*indices.shape[:axis], 1), sparse=True)[:-1])
        return self._changed(change, (*batch, indices), convert_to_tensor(sparse_delta.values, self.dtype)._array)

    def _changed(self, change: str, index: tuple, value: Any) -> Variable:
        """Assign the old value, changed at an index; where that is out of range and traced, nothing changes."""

        def changed() -> None:
            array = self._tensor._array
            with select((wrap(array), wrap(value))).scope():
                if type(array) is np.ndarray:
                    array = array.copy()
                    _CHANGES[change](array, index, value)
                else:
                    array = getattr(array.at[index], change)(value)
            self._replace(array)

        self.atomically(changed)
        return self._answer(True)

    def _check_range(self, indices: np.ndarray, length: int) -> None:
        bad = np.argwhere((indices < 0) | (indices >= length)) if type(indices) is np.ndarray else np.empty(0)
        if bad.size:
            at = tuple(bad[0].tolist())
            text = f"indices[{','.join(map(str, at))}] = {indices[at]} is not in [0, {length})"
            raise InvalidArgumentError(
                message(text, received=f"indices of shape {indices.shape}", expected=f"row numbers from 0 to {length - 1}")
            )

    def scatter_add(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Variable:
        return self._scattered("add", sparse_delta)

    def scatter_sub(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Variable:
        return self._scattered("subtract", sparse_delta)

    def scatter_mul(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Variable:
        return self._scattered("multiply", sparse_delta)

    def scatter_div(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Variable:
        return self._scattered("divide", sparse_delta)

    def scatter_max(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Variable:
        return self._scattered("max", sparse_delta)

    def scatter_min(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Variable:
        return self._scattered("min", sparse_delta)

    def scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Variable:
        return self._scattered("set", sparse_delta)

    def batch_scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Variable:
        """Row ``indices[…, i]`` of each batch entry becomes ``values[…, i]``."""
        axis = sparse_delta.indices.ndim - 1 if isinstance(sparse_delta, IndexedSlices) else 0
        return self._scattered("set", sparse_delta, axis)

    def _scattered_nd(self, change: str, indices: Any, updates: Any) -> Variable:
        array, where = self._tensor._array, _known(convert_to_tensor(indices))
        for position, length in enumerate(array.shape[: where.shape[-1]] if type(where) is np.ndarray else ()):
            bad = (where[..., position] < 0) | (where[..., position] >= length)
            if bad.any():
                at = tuple(int(i) for i in np.argwhere(bad)[0])
                text = f"indices{list(at)} = {where[at].tolist()} does not index into shape {dims(array.shape)}"
                raise InvalidArgumentError(
                    message(text, received=f"indices of shape {where.shape}", expected=f"places inside {array.shape}")
                )
        return self._changed(change, tuple(where[..., i] for i in range(where.shape[-1])), self._converted(updates))

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        return self._scattered_nd("add", indices, updates)

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        return self._scattered_nd("subtract", indices, updates)

    def scatter_nd_max(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        return self._scattered_nd("max", indices, updates)

    def scatter_nd_min(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        return self._scattered_nd("min", indices, updates)

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        return self._scattered_nd("set", indices, updates)

    def _assign_slice(self, index: tuple, value: Any) -> Variable:
        value = self._converted(value)
        index = tuple(item._array if isinstance(item, Tensor) else item for item in index)
        try:
            return self._changed("set", index, value)
        except ValueError:
            part = self._tensor._array[index].shape
            text = f"Cannot broadcast input shape {dims(value.shape)} into final shape {list(part)}"
            raise InvalidArgumentError(message(text, expected=f"a value that broadcasts to {part}")) from None

    # Python protocol (operators come from ops.methods)

    def _not_in_place(self, other: Any) -> Any:
        text = (
            "`var *= value`, `var /= value` and `var **= value` with `tf.Variable`s are not supported. "
            "Use `var.assign(var * value)` to modify the variable or `var = var * value` to get a new tensor object."
        )
        raise RuntimeError(message(text, fix="variable.assign(variable * value)"))

    __imul__ = __itruediv__ = __ipow__ = _not_in_place

    def __iadd__(self, other: Any) -> Any:
        raise RuntimeError(_in_place("+", "add"))

    def __isub__(self, other: Any) -> Any:
        raise RuntimeError(_in_place("-", "sub"))

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError(
            message("'ResourceVariable' object does not support item assignment.", fix="variable[index].assign(value)")
        )

    def __bool__(self) -> bool:
        return bool(self._operand())

    def __float__(self) -> float:
        return float(self._operand())

    def __int__(self) -> int:
        return int(self._operand())

    def __complex__(self) -> complex:
        return complex(self._operand())

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.value())

    def ref(self) -> Reference:
        return Reference(self)

    experimental_ref = ref

    __hash__ = _unhashable  # type: ignore[assignment]

    def __copy__(self) -> Variable:
        return self

    def __deepcopy__(self, memo: dict) -> Variable:
        other = _rebuild(*self.__reduce__()[1])
        other.__dict__.update(copy.deepcopy(self.__dict__, memo))
        memo[id(self)] = other
        return other

    def __reduce__(self) -> tuple:
        array = self.snapshot()._host().copy()
        parts = (type(self), array, self._trainable, self._name, self._static)
        return _rebuild, (*parts, self._constraint, self.synchronization, self.aggregation)

    def __repr__(self) -> str:
        value = self._operand()
        known = "" if value._is_traced() else f", numpy={value._text(repr)}"
        return f"<tf.Variable {self.name!r} shape={self._static} dtype={self.dtype.name}{known}>"

    __str__ = __repr__


def _in_place(sign: str, word: str) -> str:
    text = (
        f"`variable {sign}= value` with `tf.Variable`s is not supported. Use `variable.assign_{word}(value)` to modify the "
        f"variable, or `out = variable {sign} value` if you need to get a new output Tensor."
    )
    return message(text, fix=f"variable.assign_{word}(value)")


def _rebuild(
    kind: type[Variable],
    array: Any,
    trainable: bool,
    name: str,
    static: TensorShape,
    constraint: Any,
    synchronization: Any,
    aggregation: Any,
) -> Variable:
    variable = object.__new__(kind)
    array = array.astype(dtypes.of(array.dtype).numpy)  # type: ignore[union-attr]  # a pickle brings a dtype object of its own
    variable._set_up(array, trainable, name, static)
    variable._constraint = constraint
    variable.synchronization = synchronization
    variable.aggregation = aggregation
    return variable


_CHANGES: dict[str, Callable] = {
    "set": operator.setitem, "add": np.add.at, "subtract": np.subtract.at, "multiply": np.multiply.at, "divide": np.divide.at,
    "max": np.maximum.at, "min": np.minimum.at,
}  # fmt: skip
"""How a NumPy array is changed at an index, by the names that jax has for it."""


def _known(indices: Tensor) -> Any:
    """Row numbers as a NumPy array, unless they are traced."""
    return indices._array if indices._is_traced() else indices._host()
