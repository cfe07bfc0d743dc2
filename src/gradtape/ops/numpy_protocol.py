"""NumPy functions on tensors: recorded when some tape tracks an operand, NumPy's own answer otherwise.

TensorFlow converts to an array here, and the gradient is silently lost. The rules:

1. An ndarray or NumPy scalar on the left of an operator, and a tensor on the right (``array + t``, ``np.float64(2) * t``,
   ``array < t``): the tensor's reflected operator, always; the result is a Tensor in the tensor's dtype. NumPy does not tell
   ``array * t`` from ``np.multiply(array, t)``, so the latter gives a Tensor too. ``np.multiply(t, array)`` does not.
2. A function of the tables below on an operand that an active tape of this thread tracks: recorded, the result is a Tensor.
   NumPy arrays and Python numbers take the tensor's dtype; tensors of different dtypes are promoted.
3. Any other function on such an operand: NumPy's answer, and one warning per place, for the result leaves the tape.
   Functions that have no derivative (comparisons, argmax, floor, shape …) do not warn.
4. No operand is tracked: NumPy's answer.
5. After `gradtape.install_as_tensorflow()`: NumPy's answer for 2 and 3 too, without a warning. Scripts that were written for
   TensorFlow go on with an array: ``np.random.choice(n, p=np.squeeze(probabilities))``.

``np.array(x)``, ``np.asarray(x)`` and ``out=`` arrays are conversions that the user asked for: they leave the tape.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.callsite import warn_at_site
from gradtape.core.context import thread
from gradtape.core.cuts import leave
from gradtape.core.variable import Variable
from gradtape.errors import message
from gradtape.ops import elementwise
from gradtape.ops.execution import settings, staging
from gradtape.ops.numpy_functions import FUNCTIONS, Leaves, as_numpy, astype, common, leaves, one, our_dtype
from gradtape.ops.numpy_products import matmul
from gradtape.values.convert import Convertible
from gradtape.values.tensor import Tensor, wrap

UFUNCS: dict[np.ufunc, Callable] = {}
"""The same for ufuncs, which take arrays only."""


# Is it tracked?


def _tracked(value: Any) -> bool:
    """Whether some recorder of this thread tracks a value, so that what is computed from it must be recorded."""
    if isinstance(value, Variable):
        value = value._operand()
    if not isinstance(value, Tensor):
        return False
    if type(value) is not Tensor:  # NumPy cannot compute on other storage
        return True
    key = value._key
    if key is None:
        return False
    return any(key in recorder.records for recorder in thread.recorders)


# The protocols


def _array_ufunc(self: Any, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    outs = kwargs.get("out") or ()
    if any(isinstance(o, (Tensor, Variable)) for o in outs) or (method == "at" and isinstance(inputs[0], (Tensor, Variable))):
        text = f"np.{ufunc.__name__} cannot write into a tensor, which is immutable."
        raise TypeError(message(text, received="a tensor to write into", fix="give out= an array"))
    if ufunc in _OPERATORS and method == "__call__" and not kwargs and isinstance(inputs[0], (np.ndarray, np.generic)):
        return getattr(inputs[1], _OPERATORS[ufunc])(inputs[0])
    if any(_tracked(x) for x in inputs):
        try:
            _refuse_as_tensorflow()
            return _recorded_ufunc(ufunc, method, inputs, kwargs)
        except Leaves:
            name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
            for x in inputs:
                _leave(x, name)
            if ufunc not in _CONSTANT and settings.records_numpy:
                _warn(name)
    return getattr(ufunc, method)(*[_read(x) for x in inputs], **{k: as_numpy(v) for k, v in kwargs.items()})


def _refuse_as_tensorflow() -> None:
    """Leave the tape where TensorFlow does; tracers and batches are not NumPy's to compute."""
    if not (settings.records_numpy or staging.inside or thread.batch):
        raise Leaves


def _read(value: Any) -> Any:
    """The raw array of an operand. A ufunc's result shares no memory with it, so it need not be frozen."""
    if isinstance(value, Variable):
        value = value._operand()
    return value._array if type(value) is Tensor else as_numpy(value)


def _recorded_ufunc(ufunc: np.ufunc, method: str, inputs: tuple, kwargs: dict) -> Any:
    if method != "__call__":
        function = _METHODS.get((ufunc, method))
        if function is None:
            raise Leaves
        return _call(function, inputs, kwargs)
    function = UFUNCS.get(ufunc)
    if function is None:
        raise Leaves
    inputs = tuple(common(inputs))
    if kwargs:
        kwargs = dict(kwargs)
        inputs = _in_dtype(inputs, kwargs)
        _only_defaults(kwargs)
    return function(*inputs)


def _array_function(self: Any, function: Callable, types: Any, args: tuple, kwargs: dict) -> Any:
    if any(_tracked(leaf) for leaf in leaves((*args, *kwargs.values()))):
        ours = FUNCTIONS.get(function)
        try:
            _refuse_as_tensorflow()
            if ours is not None:
                return _call(ours, args, kwargs)
            raise Leaves
        except Leaves:
            for x in leaves((*args, *kwargs.values())):
                _leave(x, _name(function))
            if function not in _CONSTANT and settings.records_numpy:
                _warn(_name(function))
    return function(*[as_numpy(x) for x in args], **{k: as_numpy(v) for k, v in kwargs.items()})


def _call(function: Callable, args: tuple, kwargs: dict) -> Any:
    """Call one of our functions; arguments that it does not have may only have their defaults."""
    kwargs = dict(kwargs)
    if "dtype" in kwargs and function is not astype:
        args = _in_dtype(args, kwargs)
    known = _signature(function).parameters
    _only_defaults({name: kwargs.pop(name) for name in list(kwargs) if name not in known})
    try:
        _signature(function).bind(*args, **kwargs)
    except TypeError:
        raise Leaves from None
    return function(*args, **kwargs)


_signature = functools.cache(inspect.signature)


def _in_dtype(args: tuple, kwargs: dict) -> tuple:
    """The arguments with every tensor cast to what ``dtype=`` asks for; an integer type has no gradient."""
    dtype = kwargs.pop("dtype", None)
    if dtype is None:
        return args
    wanted = our_dtype(dtype)
    if not wanted.is_trainable:
        raise Leaves

    def cast(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)([cast(v) for v in value])
        return elementwise.cast(one(value), wanted) if isinstance(value, (Tensor, Convertible)) else value

    return tuple([cast(arg) for arg in args])


_DEFAULTS: dict[str, tuple] = {
    "out": (None,), "where": (True,), "initial": (None,), "casting": ("same_kind",), "order": ("C", "K"),
    "subok": (True, False), "copy": (True, None, False), "like": (None,),
    "optimize": (True, False, "greedy", "optimal"), "signature": (None,), "mode": ("raise",),
    "kind": (None,), "stable": (None,),
}  # fmt: skip


def _only_defaults(kwargs: dict) -> None:
    """Refuse keywords that change the answer."""
    for name, value in kwargs.items():
        allowed = _DEFAULTS.get(name, ())
        if value is not np._NoValue and not any(value is a or (isinstance(a, str) and value == a) for a in allowed):
            raise Leaves


def _name(function: Callable) -> str:
    module = getattr(function, "__module__", "numpy") or "numpy"
    return f"{module.removeprefix('numpy').removeprefix('.') + '.' if module != 'numpy' else ''}{function.__name__}"


def _leave(value: Any, name: str) -> None:
    if isinstance(value, (Tensor, Variable)):
        leave(value, f"np.{name}")


def _warn(name: str) -> None:
    warn_at_site(
        f"np.{name} leaves the tape: this call is computed by NumPy and not recorded, so no gradient flows through it. "
        "Use a tf function, or np.asarray(x) to say that this is meant."
    )


def install(*classes: Any) -> None:
    """Give classes the two protocols."""
    for kind in classes:
        kind.__array_ufunc__ = _array_ufunc
        kind.__array_function__ = _array_function


# Ufuncs

_OPERATORS: dict[np.ufunc, str] = {
    np.add: "__radd__", np.subtract: "__rsub__", np.multiply: "__rmul__", np.true_divide: "__rtruediv__",
    np.floor_divide: "__rfloordiv__", np.remainder: "__rmod__", np.power: "__rpow__", np.matmul: "__rmatmul__",
    np.equal: "__eq__", np.not_equal: "__ne__", np.less: "__gt__", np.less_equal: "__ge__", np.greater: "__lt__",
    np.greater_equal: "__le__", np.bitwise_and: "__rand__", np.bitwise_or: "__ror__", np.bitwise_xor: "__rxor__",
}  # fmt: skip

_SAME_NAME = (
    "negative sign exp expm1 log log1p sqrt square reciprocal sin cos tan sinh cosh tanh add subtract multiply divide "
    "remainder power maximum minimum"
)
UFUNCS |= {getattr(np, name): getattr(elementwise, name) for name in _SAME_NAME.split()}
UFUNCS |= {
    np.absolute: elementwise.abs, np.fabs: elementwise.abs, np.conjugate: elementwise.conj, np.positive: elementwise.identity,
    np.arcsin: elementwise.asin, np.arccos: elementwise.acos, np.arctan: elementwise.atan, np.arcsinh: elementwise.asinh,
    np.arccosh: elementwise.acosh, np.arctanh: elementwise.atanh, np.arctan2: elementwise.atan2,
    np.float_power: elementwise.power, np.fmax: elementwise.maximum, np.fmin: elementwise.minimum,
}  # fmt: skip


def _scaled(factor: float) -> Callable:
    return lambda x: elementwise.multiply(x, factor)


UFUNCS |= {
    np.exp2: lambda x: elementwise.power(2.0, x),
    np.log2: lambda x: elementwise.log(x) / math.log(2),
    np.log10: lambda x: elementwise.log(x) / math.log(10),
    np.deg2rad: _scaled(math.pi / 180), np.radians: _scaled(math.pi / 180),
    np.rad2deg: _scaled(180 / math.pi), np.degrees: _scaled(180 / math.pi),
    np.logaddexp: elementwise.logaddexp,
    np.logaddexp2: lambda x, y: elementwise.logaddexp(x * math.log(2), y * math.log(2)) / math.log(2),
    np.hypot: elementwise.hypot, np.cbrt: elementwise.cbrt, np.matmul: matmul,
    np.fmod: lambda x, y: x - y * wrap(np.trunc(as_numpy(x / y))),
    np.copysign: lambda x, y: elementwise.abs(x) * wrap(np.copysign(np.ones((), y._array.dtype), as_numpy(y))),
}  # fmt: skip

_CONSTANT: set = {
    np.floor, np.ceil, np.rint, np.trunc, np.floor_divide, np.isnan, np.isinf, np.isfinite, np.signbit, np.equal,
    np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.logical_and, np.logical_or, np.logical_xor,
    np.logical_not, np.heaviside, np.spacing, np.frexp, np.nextafter, np.round, np.around, np.fix, np.argmax, np.argmin,
    np.nanargmax, np.nanargmin, np.argsort, np.argwhere, np.argpartition, np.nonzero, np.flatnonzero, np.count_nonzero,
    np.searchsorted, np.digitize, np.any, np.all, np.allclose, np.isclose, np.array_equal, np.array_equiv, np.shape,
    np.ndim, np.size, np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.iscomplex, np.isreal, np.iscomplexobj,
    np.isrealobj, np.isposinf, np.isneginf, np.array_repr, np.array_str, np.array2string, np.result_type, np.can_cast,
    np.common_type, np.min_scalar_type, np.may_share_memory, np.shares_memory, np.save, np.savez, np.savez_compressed,
    np.savetxt, np.histogram, np.histogram_bin_edges, np.bincount, np.isin, np.lexsort, np.linalg.matrix_rank, np.copyto,
    np.put, np.place, np.putmask,
}  # fmt: skip
"""Functions that have no derivative, or whose answer is no array of the operands' values: nothing to warn about."""

_METHODS: dict[tuple[np.ufunc, str], Callable] = {
    (np.add, "reduce"): lambda a, axis=0, *, keepdims=False: FUNCTIONS[np.sum](a, axis, keepdims=keepdims),
    (np.multiply, "reduce"): lambda a, axis=0, *, keepdims=False: FUNCTIONS[np.prod](a, axis, keepdims=keepdims),
    (np.maximum, "reduce"): lambda a, axis=0, *, keepdims=False: FUNCTIONS[np.max](a, axis, keepdims=keepdims),
    (np.minimum, "reduce"): lambda a, axis=0, *, keepdims=False: FUNCTIONS[np.min](a, axis, keepdims=keepdims),
    (np.add, "accumulate"): lambda a, axis=0: FUNCTIONS[np.cumsum](a, axis),
    (np.multiply, "accumulate"): lambda a, axis=0: FUNCTIONS[np.cumprod](a, axis),
}
"""Methods of ufuncs."""


def _outer(ufunc: np.ufunc) -> Callable:
    def call(x: Any, y: Any) -> Tensor:
        x, y = common((x, y))
        return UFUNCS[ufunc](FUNCTIONS[np.reshape](x, x._array.shape + (1,) * y.ndim), y)

    return call


for _ufunc in (np.add, np.subtract, np.multiply, np.divide, np.power, np.maximum, np.minimum):
    _METHODS[_ufunc, "outer"] = _outer(_ufunc)
