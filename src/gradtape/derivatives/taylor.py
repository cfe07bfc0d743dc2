"""Derivatives of any order along one direction, by arithmetic on truncated power series.

A `Series` holds the coefficients of ``x(t) = Σ cₖ tᵏ``. The namespace `TAYLOR` runs every kernel on them: linear functions
coefficient by coefficient, products by Cauchy's rule, and whatever has a derivative rule by integrating it:
``y' = J(x) x'`` gives each coefficient of ``y`` from lower ones, with the very rules that the tape uses. So the cost grows
polynomially with the order, where nested tapes grow exponentially.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.context import suspended, thread
from gradtape.core.custom import make_custom_record
from gradtape.core.op import OPS, REGISTRY, RUN, Op, make_record
from gradtape.core.variable import Variable
from gradtape.derivatives.functional import along, point
from gradtape.derivatives.namespaces import Namespace
from gradtape.errors import message
from gradtape.tangents.forward import ForwardAccumulator, push
from gradtape.values import dtypes, nest
from gradtape.values.batched import BATCHED, Batched
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor, store, wrap
from gradtape.xp import dialect
from gradtape.xp import numpy as NUMPY


class Series:
    """Coefficients along axis 0 of ``value``; to kernels and rules it is an array of the shape of one of them."""

    __slots__ = ("value",)
    __array_priority__ = 200
    __array_ufunc__ = None

    def __init__(self, value: np.ndarray) -> None:
        self.value = value

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape[1:]

    @property
    def ndim(self) -> int:
        return self.value.ndim - 1

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype:
        return self.value.dtype

    @property
    def itemsize(self) -> int:
        return self.value.itemsize

    def cut(self, count: int) -> Series:
        """The first ``count`` coefficients."""
        return Series(self.value[:count])

    def derivative(self) -> Series:
        """x'(t), one coefficient shorter."""
        factors = np.arange(1, len(self.value)).reshape(-1, *[1] * self.ndim).astype(self.value.real.dtype)
        return Series(self.value[1:] * factors)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.value[0], dtype)


class SeriesTensor(Tensor):
    """A tensor whose array is a `Series`; for Python and NumPy it has the value at t = 0."""

    __slots__ = ()

    def _host(self) -> np.ndarray:
        return self._array.value[0]

    def _detached(self) -> Tensor:
        return wrap(self._array.value[0])

    @staticmethod
    def carry(name: str, grad_fn: Callable, outs: tuple, inputs: list, variables: list) -> tuple:
        """The series of results whose derivative is ``grad_fn``, whatever computed their values."""
        series = [x for x in inputs if type(x) is SeriesTensor]
        count = min(len(x._array.value) for x in series) - 1
        if not count:
            return outs
        with suspended():
            sources = [x for x in (*inputs, *variables) if isinstance(x, (Tensor, Variable))]
            record = make_custom_record(name, grad_fn, outs, inputs, variables, sources)
            slopes = _pushed(record, outs, {x._key: _velocity(x._array, count) for x in series})
        return tuple(wrap(Series(_integrated(o._array, s, count, o._array.dtype))) for o, s in zip(outs, slopes))


store(Series, SeriesTensor)


class _Local(threading.local):
    kinks = 0


_local = _Local()
_kinked: set[Op] = set()  # composed ops whose kernels met a kink
_DIALECT = frozenset(dialect.NAMES)


def _run(op: Op, tensors: Any, arrays: list, attributes: dict[str, Any]) -> Any:
    """An op by its kernel; by its rules if the kernel has kinks, of which the rules know which side counts."""
    if not op.differentiable:
        return op.kernel(NUMPY, *map(_constant_term, arrays), **attributes)
    if op not in _kinked and op.label not in REGISTRY:
        before, _local.kinks = _local.kinks, 0
        value = op.kernel(TAYLOR, *arrays, **attributes)
        met, _local.kinks = _local.kinks, before
        if not met or op.name in _DIALECT or not op.rules:
            return value
        _kinked.add(op)
    count = min(len(x.value) for x in arrays if type(x) is Series)
    return _follow(op, op.kernel(NUMPY, *map(_constant_term, arrays), **attributes), count, arrays, attributes)


LINEAR = (
    "negative conj real imag add subtract sum cumsum flip roll repeat reshape transpose matrix_transpose adjoint expand_dims "
    "squeeze broadcast_to concatenate stack tile getitem put_slice take take_transpose take_along_axis along_axis_transpose "
    "gather_nd scatter_nd astype complex where"
).split()
BILINEAR = "multiply matmul adjoint_matmul matmul_adjoint".split()
AT_ZERO = (
    "sign floor ceil rint floor_divide isnan isinf isfinite logical_not bitwise_not zeros_like ones_like equal not_equal less "
    "less_equal greater greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift "
    "right_shift any all argmax argmin argsort one_hot"
).split()
KINKS = {*AT_ZERO, *"where abs maximum minimum max min sort remainder".split()} - {"zeros_like", "ones_like", "one_hot"}
INDEX = {"take": 1, "take_transpose": 1, "take_along_axis": 1, "along_axis_transpose": 1, "gather_nd": 1, "scatter_nd": 1}


def _entry(name: str, rule: Callable) -> Callable:
    def call(*args: Any, **attributes: Any) -> Any:
        if not any(type(x) is Series for x in args):
            return getattr(NUMPY, name)(*args, **attributes)
        _local.kinks += name in KINKS
        count = min(len(x.value) for x in args if type(x) is Series)
        return rule(name, count, *(x.cut(count) if type(x) is Series else np.asarray(x) for x in args), **attributes)

    return call


def _linear(name: str, count: int, *args: Any, **attributes: Any) -> Series:
    """Coefficient by coefficient; a constant has none but the first."""
    fixed = {0} if name == "where" else {INDEX[name]} if name in INDEX else set()
    values: list[Any] = []
    for i, x in enumerate(args):
        if i in fixed:
            values.append(_constant_term(x))
        else:
            values.append(Batched(x.value if type(x) is Series else _extended(x, count)))
    return Series(_whole(getattr(BATCHED, name)(*values, **attributes), count))


def _constant_term(x: Any) -> np.ndarray:
    return x.value[0] if type(x) is Series else x


def _extended(x: np.ndarray, count: int) -> np.ndarray:
    value = np.zeros((count, *x.shape), x.dtype)
    value[0] = x
    return value


def _whole(result: Any, count: int) -> np.ndarray:
    return result.value if type(result) is Batched else _extended(result, count)


def _product(name: str, count: int, x: Any, y: Any) -> Series:
    """Cauchy's rule: cₖ = Σ aⱼ·bₖ₋ⱼ."""
    function = getattr(NUMPY, name)
    if type(x) is not Series or type(y) is not Series:
        values = (Batched(a.value) if type(a) is Series else a for a in (x, y))
        return Series(getattr(BATCHED, name)(*values).value)
    terms = [
        sum((function(x.value[j], y.value[k - j]) for j in range(1, k + 1)), function(x.value[0], y.value[k]))
        for k in range(count)
    ]
    return Series(np.stack(terms))


def _quotient(name: str, count: int, x: Any, y: Any) -> Series:
    """q·y = x, solved for one coefficient of q after the other."""
    if type(y) is not Series:
        return Series(BATCHED.divide(Batched(x.value), y).value)
    x = x if type(x) is Series else Series(_extended(x, count))
    terms: list = []
    for k in range(count):
        rest = x.value[k] - sum((y.value[j] * terms[k - j] for j in range(1, k + 1)), np.zeros((), x.dtype))
        terms.append(NUMPY.divide(rest, y.value[0]))
    return Series(np.stack(terms))


def _at_zero(name: str, count: int, *args: Any, **attributes: Any) -> Any:
    """Piecewise constant, or not a number at all: the value at t = 0."""
    return getattr(NUMPY, name)(*map(_constant_term, args), **attributes)


def _pad(name: str, count: int, x: Series, *, widths: Any, value: Any = 0) -> Series:
    inner = BATCHED.pad(Batched(x.value), widths=widths, value=0).value
    inner[0] = NUMPY.pad(x.value[0], widths=widths, value=value)
    return Series(inner)


def _einsum(name: str, count: int, *xs: Any, equation: str) -> Series:
    """Cauchy's rule for any number of factors."""
    series = [i for i, x in enumerate(xs) if type(x) is Series]
    if len(series) == 1:
        batched = [Batched(x.value) if type(x) is Series else x for x in xs]
        return Series(BATCHED.einsum(*batched, equation=equation).value)
    terms = []
    for k in range(count):
        total: Any = 0
        for split in _compositions(k, len(series)):
            factors = list(xs)
            for i, j in zip(series, split):
                factors[i] = xs[i].value[j]
            total = total + NUMPY.einsum(*factors, equation=equation)
        terms.append(total)
    return Series(np.stack(terms))


def _compositions(total: int, parts: int) -> list[tuple[int, ...]]:
    """Every way to write ``total`` as an ordered sum of ``parts`` numbers from 0 on."""
    if parts == 1:
        return [(total,)]
    return [(j, *rest) for j in range(total + 1) for rest in _compositions(total - j, parts - 1)]


def _by_rule(name: str, count: int, *args: Any, **attributes: Any) -> Any:
    first = getattr(NUMPY, name)(*map(_constant_term, args), **attributes)
    return _follow(OPS[name].op, first, count, args, attributes)  # type: ignore[attr-defined]


def _follow(op: Op, first: Any, count: int, args: Any, attributes: dict[str, Any]) -> Any:
    """From y₀ on, yₖ = [J(x) x']ₖ₋₁ / k, where the rule runs on what is known so far of x and y."""
    several = type(first) is tuple
    known = [np.asarray(y)[None] for y in (first if several else (first,))]
    reads_out = "out" in op.keeps
    for k in range(1, count) if reads_out else range(count - 1, count):
        if not k:
            break
        tensors = [wrap(x.cut(k)) if type(x) is Series else wrap(x) for x in args]
        outs = tuple(wrap(Series(y if reads_out else _extended(y[0], k))) for y in known)
        for t in (*tensors, *outs):
            t._key = object()
        slopes = _slopes(op, outs if several else outs[0], tensors, [_velocity(x, k) for x in args], attributes)
        for i, slope in enumerate(slopes):
            known[i] = _integrated(known[i][0], slope, k, known[i].dtype)
    found = tuple(Series(y) for y in known)
    return found if several else found[0]


def _velocity(x: Any, count: int) -> Series | None:
    """The first coefficients of x'; None for a constant."""
    return x.derivative().cut(count) if type(x) is Series and x.dtype in dtypes.TRAINABLE else None


def _slopes(op: Op, out: Any, tensors: list, velocities: list, attributes: dict) -> list:
    """y' for each output, as a Series or array; None where nothing arrives."""
    with suspended():
        record = make_record(op, out, tensors, attributes)
        outs = out if type(out) is tuple else (out,)
        return _pushed(record, outs, {t._key: v for t, v in zip(tensors, velocities)})


def _pushed(record: tuple | None, outs: tuple, velocities: dict) -> list:
    if record is None:
        return [None] * len(outs)
    tangents = {key: wrap(v) for key, v in velocities.items() if v is not None}
    push(record[7][0], record, tangents)
    return [tangents[o._key]._array if o._key in tangents else None for o in outs]


def _integrated(first: np.ndarray, slope: Any, count: int, dtype: Any) -> np.ndarray:
    """y from y₀ and the first ``count`` coefficients of y'."""
    if slope is None:
        slope = np.zeros((count, *first.shape), dtype)
    elif type(slope) is Series:
        slope = slope.value
    else:
        slope = _extended(slope, count)
    factors = np.arange(1, count + 1).reshape(-1, *[1] * first.ndim).astype(slope.real.dtype)
    return np.concatenate([first[None], (slope / factors).astype(dtype)])


TAYLOR: Any = Namespace(_entry, _by_rule)  # a function without an entry follows its derivative rule
for _names, _function in (
    (LINEAR, _linear), (BILINEAR, _product), (AT_ZERO, _at_zero), (("divide",), _quotient), (("pad",), _pad),
    (("einsum",), _einsum),
):  # fmt: skip
    TAYLOR.give(_names, _function)
TAYLOR.operators(Series)
Series.xp = SeriesTensor.xp = TAYLOR  # type: ignore[attr-defined]
RUN[TAYLOR] = _run


def taylor(f: Callable, x: Any, direction: Any, order: int) -> list:
    """``[f(x), f', f'', …]``: the derivatives of ``t ↦ f(x + t·direction)`` at 0 up to ``order``, in the structure of ``f(x)``.

    The cost grows with the square of the order. If a tape or accumulator around it tracks what ``f`` uses, or inside
    `vectorized_map`, nested accumulators compute the same numbers, at a cost that doubles with each order.

    >>> [float(d) for d in taylor(lambda x: x * x * x, 2.0, 1.0, order=4)]
    [8.0, 12.0, 12.0, 6.0, 0.0]
    """
    if not isinstance(order, (int, np.integer)) or isinstance(order, bool) or order < 0:
        raise ValueError(message("taylor needs an order from 0 on.", received=repr(order), expected="an integer"))
    x = nest.map_structure(convert_to_tensor, point(x))
    direction = along(x, direction)
    if not _is_plain(x, Tensor):
        return _nested(f, x, direction, order)
    y = nest.map_structure(convert_to_tensor, f(nest.map_structure(lambda p, v: _moving(p, v, order), x, direction)))
    if not _is_plain(y, Tensor, SeriesTensor):
        return _nested(f, x, direction, order)
    y = nest.map_structure(lambda part: _coefficients(part, order), y)
    return [nest.map_structure(lambda c, k=k: _derivative(c, k), y) for k in range(order + 1)]


def _is_plain(values: Any, *kinds: type) -> bool:
    """Whether the tensors are of these very kinds, and nobody records them."""
    recorders = thread.recorders
    return all(
        type(t) in kinds and not any(t._key in r.records for r in recorders if t._key is not None)
        for t in nest.flatten(values)
    )


def _nested(f: Callable, x: Any, v: Any, order: int) -> list:
    if not order:
        return [nest.map_structure(convert_to_tensor, f(x))]
    with ForwardAccumulator(x, v) as accumulator:
        lower = _nested(f, x, v, order - 1)
    return [*lower, accumulator.jvp(lower[-1], unconnected_gradients="zero")]


def _derivative(y: Series, k: int) -> Tensor:
    return wrap(y.value[k] * np.asarray(math.factorial(k), y.dtype))


def _moving(x: Tensor, v: Tensor, order: int) -> Tensor:
    """x + t·v"""
    value = _extended(x._array, order + 1)
    value[1:2] = v._array
    return wrap(Series(value))


def _coefficients(y: Tensor, order: int) -> Series:
    return y._array if type(y) is SeriesTensor else Series(_extended(np.asarray(y._array), order + 1))
