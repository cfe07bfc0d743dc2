"""Keras's variables, what Keras takes for a tensor, and conversions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from keras.src import tree
from keras.src.backend.common import KerasVariable, global_state, standardize_dtype
from keras.src.backend.common.dtypes import result_type
from keras.src.backend.common.stateless_scope import get_stateless_scope
from keras.src.backend.config import floatx

from gradtape import toplevel
from gradtape.core.variable import Variable as Cell
from gradtape.errors import message
from gradtape.ops import creation
from gradtape.ops.execution import init_scope
from gradtape.values import convert, dtypes
from gradtape.values.composite import Structured
from gradtape.values.recorded import RECORDED
from gradtape.values.shape import TensorShape, is_open
from gradtape.values.tensor import Tensor


class Variable(KerasVariable, convert.Convertible):
    """Keras's variable; the value is in one of ours, which tapes and optimizers reach as ``__gradtape_variable__``."""

    _value: Cell | None

    @property
    def __gradtape_variable__(self) -> Cell:
        if self._value is None:
            raise ValueError(
                message(
                    f"The variable {self.path} has no value yet.",
                    fix="build the layer first: call it on data, or layer.build(input_shape)",
                )
            )
        return self._value

    def _initialize(self, value: Any) -> None:
        self._shape = self._validate_shape(value.shape)
        self._value = Cell(value, trainable=self._trainable, name=self._path)

    def _initialize_with_initializer(self, initializer: Callable) -> None:
        with init_scope():  # created while a function is traced, it begins with a value all the same
            self._initialize(convert_to_tensor(initializer(self._shape, dtype=self._dtype), self._dtype))

    def _direct_assign(self, value: Tensor) -> None:
        self.__gradtape_variable__.assign(value)

    def _convert_to_tensor(self, value: Any, dtype: Any = None) -> Tensor:
        return convert_to_tensor(value, dtype)

    @property
    def shape(self) -> TensorShape:
        return TensorShape(self._shape) if self._value is None else self._value.shape

    @property
    def trainable(self) -> bool:
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = bool(value)
        if self._value is not None:
            self._value._trainable = self._trainable

    # Reading

    def _operand(self) -> Tensor:
        state = global_state.GLOBAL_STATE_TRACKER.__dict__  # looked up anew: clear_session replaces it
        if self._value is None or state.get("stateless_scope") is not None:
            return _tensor(self._held())
        tensor = self._value._operand()
        scope = state.get("autocast_scope")
        return tensor if scope is None or not self._autocast else scope.maybe_cast(tensor)

    def _held(self) -> Any:
        """What the variable holds, in a stateless scope what it holds there; zeros while its shape is all that it is asked for.

        Keras would call the initializer at each reading: for a recurrent kernel that is a QR decomposition per time step.
        """
        if self._value is not None:
            return super().value
        scope = get_stateless_scope()
        held = None if scope is None else scope.get_current_value(self)
        return self._maybe_autocast(toplevel.zeros(self._shape, self._dtype) if held is None else held)

    def _to_tensor(self, dtype: dtypes.DType | None = None) -> Tensor:
        return convert.convert_to_tensor(_tensor(self._held()), dtype)

    @property
    def value(self) -> Tensor:
        """A tensor with the value that the variable has now, and the variable itself to tapes: as a source, or watched."""
        return self._operand()

    def numpy(self) -> np.ndarray:
        return np.array(self._operand())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self._operand().__array__(dtype, copy)


def _tensor(value: Any) -> Tensor:
    return value._operand() if isinstance(value, Cell) else value


# Conversions


def is_tensor(x: Any) -> bool:
    return isinstance(x, Tensor)


def convert_to_tensor(x: Any, dtype: Any = None, sparse: bool | None = None, ragged: bool | None = None) -> Tensor:
    """The tensor for a value, in the dtype asked for, or else in the one that Keras gives it."""
    if sparse or ragged:
        kind = "sparse" if sparse else "ragged"
        text = f"`{kind}=True` is not supported by Keras on gradtape."
        raise ValueError(message(text, fix=f"make a tf.{kind} tensor, and its dense form where Keras needs it"))
    if isinstance(x, Tensor):
        return x if dtype is None else cast(x, dtype)
    if isinstance(x, KerasVariable):
        return x._operand() if dtype is None else cast(x._operand(), dtype)
    if dtype is None and (type(x) is float or type(x) is int):
        return convert.convert_to_tensor(x, floatx() if type(x) is float else "int32")
    if isinstance(x, Structured):
        x = x.to_tensor() if hasattr(x, "to_tensor") else toplevel.convert_to_tensor(x)
        return convert_to_tensor(x, dtype)
    return _from_values(x, None if dtype is None else standardize_dtype(dtype))


_VALUES = (list, tuple, bool, int, float, complex, str, bytes, np.ndarray, np.generic)


def _from_values(x: Any, dtype: str | None) -> Tensor:
    """From Python and NumPy values, and from the arrays of other libraries."""
    if isinstance(x, convert.Convertible):
        return convert_to_tensor(x._to_tensor(), dtype)
    if isinstance(x, TensorShape):
        x = x.as_list()
    if not isinstance(x, _VALUES) and hasattr(x, "__array__"):
        x = np.asarray(x)
    if isinstance(x, (np.ndarray, np.generic)):
        if x.dtype.kind in "OSU" or dtype == "string":
            return convert.convert_to_tensor(x, None if dtype != "string" else dtypes.as_dtype("string"))
        tensor = convert.convert_to_tensor(x)
        return tensor if dtype is None else cast(tensor, dtype)
    leaves = tree.flatten(x)
    if dtype is None:
        dtype = result_type(*(getattr(leaf, "dtype", type(leaf)) for leaf in leaves))
    if dtype == "string" or not any(isinstance(leaf, (Tensor, convert.Convertible)) for leaf in leaves):
        return _from_python(x, dtype)
    return toplevel.stack([convert_to_tensor(part, dtype) for part in x])


def _from_python(x: Any, dtype: str) -> Tensor:
    wanted = dtypes.as_dtype(dtype)
    if is_open(x):
        return creation.open_lengths(x, wanted.as_numpy_dtype)
    if wanted.is_integer or wanted.is_bool:  # Keras takes [1.5] for int32, as NumPy does: by cutting it
        array = np.asarray(x)
        if array.dtype.kind in "bfc" or (wanted.is_bool and array.dtype.kind in "iu"):
            return cast(convert.convert_to_tensor(array), dtype)
    return convert.convert_to_tensor(x, wanted)


def convert_to_numpy(x: Any) -> np.ndarray:
    if isinstance(x, KerasVariable):
        x = x._operand()
    elif isinstance(x, (list, tuple)):
        x = [convert_to_numpy(part) if isinstance(part, (Tensor, KerasVariable)) else part for part in x]
    return np.array(x)


def cast(x: Any, dtype: Any) -> Tensor:
    if not isinstance(x, Tensor):
        return convert_to_tensor(x, dtype)
    if x.dtype.name == dtype:
        return x
    wanted = dtypes.as_dtype(standardize_dtype(dtype))
    return x if x.dtype is wanted else RECORDED.astype(x, dtype=wanted.as_numpy_dtype)


def shape(x: Any) -> tuple:
    return tuple(x._array.shape if isinstance(x, Tensor) else x.shape)
