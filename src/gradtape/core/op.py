"""Ops: a kernel and its derivative rules in one block, and the path that every call takes.

A call takes raw arrays, picks the namespace, runs the kernel, wraps the result, and lets every recorder that tracks an
input append a record. Ops of one and two arrays get a closure of their own, because this path is the heartbeat of eager
mode: a generic ``op(*args, **attrs)`` costs 5.5 times the NumPy call, these closures about 2.4 times.

Rules read ``rule(xp, g, …)`` and name, after the cotangent ``g``, just what they read: ``out``, the kernel's arguments
(in the kernel's order), and as keywords the attributes and ``<argument>_shape``. A record keeps alive only those. A rule of
an op of one or two arrays may also be written in full, with an underscore before what it does not read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gradtape.core.backprop import PAIR, pull_general, pull_several, unregistered
from gradtape.core.callsite import report_growth
from gradtape.core.context import thread
from gradtape.core.cuts import NONDIFFERENTIABLE, passed_by, sever
from gradtape.core.rules import canonical, reads_of, spread
from gradtape.errors import InvalidArgumentError, OpError, advice, dims, message
from gradtape.values import dtypes
from gradtape.values.composite import Structured, hand_over, outranked, reflected
from gradtape.values.convert import NUMBER, Convertible, convert_to_tensor, operand, string_scalar, wrong_dtype
from gradtape.values.recorded import RECORDED
from gradtape.values.tensor import BatchedTensor, Tensor, out_of_scope, wrap
from gradtape.xp import dialect
from gradtape.xp import numpy as NUMPY

_fast: Any = Tensor  # what calls take without asking; while some thread places its work elsewhere, nothing (`ops.placing`)
_new = object.__new__
_ndarray = np.ndarray
_asarray = np.asarray
_getframe = sys._getframe
_BOOL = np.dtype(bool)
_ALLOWED = "bfloat16, half, float, double, complex64, complex128"

OPS: dict[str, Callable] = {}
"""Every op by name, as the function that users call; the `Op` behind it is its attribute ``op``."""


MADE: list[Callable] = []
"""Called with every op that is made from now on."""


REGISTRY: dict[str, Callable | None] = {}
"""Gradient functions that users registered, by the label of the op; None: declared to have none."""


RUN: dict[Any, Callable] = {}
"""How to run an op in a namespace whose values carry derivatives, if not by its kernel: its rules may count more."""


class Op:
    """A kernel with its derivative rules."""

    __slots__ = (
        "affine", "alone", "closed", "defaults", "differentiable", "doc", "elementwise", "forward", "inputs",
        "joint", "keep_out", "keep_x", "keep_y", "keeps", "kernel", "label", "name", "paired", "pull", "rule_x",
        "rule_y", "rules", "same", "sparse", "variadic",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        kernel: Callable,
        inputs: tuple[str, ...],
        *,
        defaults: dict[str, Any] | None = None,
        label: str | None = None,
        same: tuple[int, ...] | None = None,
        closed: bool = False,
        elementwise: bool = False,
        variadic: bool = False,
    ) -> None:
        self.name = name
        self.doc = ""
        self.label = label or "".join(part.capitalize() for part in name.split("_"))
        self.kernel = kernel
        self.inputs = inputs
        self.defaults = defaults or {}
        self.same = same  # positions that must share a dtype; None: all
        self.closed = closed  # the result has the operands' dtype, and booleans are refused
        self.elementwise = elementwise or name in dialect.ELEMENTWISE  # elements depend on one of each input
        self.variadic = variadic
        self.rules: tuple | None = None  # None: differentiating it is a LookupError
        self.paired = False  # an op of one or two arrays without attributes, recorded as a PAIR
        self.rule_x: Callable = _nothing  # its rules as the sweep calls them
        self.rule_y: Callable = _nothing
        self.differentiable = True
        self.sparse: Callable | None = None  # gather's cotangent as (values, indices)
        self.joint = variadic  # one rule returns the cotangents of all inputs
        self.keeps: tuple[str, ...] = ()  # of "out" and the inputs, those that a rule reads
        self.keep_out = self.keep_x = self.keep_y = False  # the same, for ops of one or two arrays
        self.alone: tuple = ()  # and for the rule of each input alone
        self.pull: Callable = pull_general
        self.forward: Callable | None = None  # how tangents pass it; found at the first one
        self.affine = ""  # the attribute by which the kernel adds a constant, though no rule reads a value

    def __repr__(self) -> str:
        return f"<op {self.name}({', '.join(self.inputs)})>"

    def set_rules(self, rules: tuple[Callable | None, ...]) -> None:
        if not self.variadic and len(rules) != len(self.inputs):
            text = f"Op {self.name} has {len(self.inputs)} inputs but {len(rules)} rules."
            raise TypeError(message(text, fix="one rule per input, in order; None where no gradient flows"))
        reads = [reads_of(self, rule) if rule is not None else None for rule in rules]
        self.keeps = tuple(n for n in ("out", *self.inputs) if any(r is not None and n in r.values for r in reads))
        self.rules = tuple(r and (rule, r.values, r.call) for rule, r in zip(rules, reads))
        if self.paired:
            self.keep_out, self.keep_x, self.keep_y = canonical(self, self.keeps)
            self.alone = tuple(canonical(self, r.values if r is not None else ()) for r in reads)
            adapted = [_nothing if r is None or rule is None else spread(self, rule, r) for rule, r in zip(rules, reads)]
            self.rule_x, self.rule_y = (*adapted, _nothing)[:2]

    def refuse(self, error: Exception, arrays: list) -> Exception:
        """The error to raise for one that the kernel met."""
        if isinstance(error, OpError):
            raise error  # as it is: returned, it would become its own cause
        if type(error).__name__ == "UnexpectedTracerError":
            return out_of_scope(next(a for a in arrays if type(a).__name__.endswith("Tracer")))
        shapes = [a.shape for a in arrays]
        if "broadcast" in str(error) and len(arrays) >= 2:
            return InvalidArgumentError(
                message(
                    f"Incompatible shapes: {' vs. '.join(dims(s) for s in shapes)} [Op:{self.label}]",
                    fix="shapes must be equal, or 1, from the last axis backwards",
                )
            )
        return InvalidArgumentError(message(f"{self.name}: {error} [Op:{self.label}]", fix=advice(str(error))))

    def not_allowed(self, dtype: np.dtype) -> InvalidArgumentError:
        word = dtypes.of(dtype).word  # type: ignore[union-attr]
        return InvalidArgumentError(
            message(
                f"Value for attr 'T' of {word} is not in the list of allowed values: {_ALLOWED} [Op:{self.label}]",
                fix="tf.strings.to_number(x) first" if word == "string" else "tf.cast(x, tf.float32) first",
            )
        )


def _nothing(xp: Any, g: Any, out: Any, x: Any, y: Any) -> None:
    """The rule of an input that no gradient flows to."""


# Defining ops


def unary(
    name: str, doc: str, vjp: Any = None, *, derivative: Any = None, kernel: Callable | None = None, **options: Any
) -> Any:
    """An op of one array whose kernel is the dialect function of the same name, or ``kernel(xp, x)``.

    ``derivative(xp, out, x)`` is for elementwise functions: the rule is ``g`` times its conjugate.
    """
    options = {"closed": True, "elementwise": derivative is not None, **options}
    spec = Op(name, kernel or _dialect_kernel(name), ("x",), **options)
    _pair_up(spec)
    function = partial(kernel, NUMPY) if kernel else getattr(NUMPY, name)
    rule = vjp if derivative is None else _diagonal(derivative)
    return _finish(spec, _unary_call(spec, function), doc, None if rule is None else (rule,))


def binary(name: str, doc: str, x: Any = None, y: Any = None, **options: Any) -> Any:
    """An op of two arrays whose kernel is the dialect function of the same name; ``x`` and ``y`` are their rules."""
    spec = Op(name, _dialect_kernel(name), ("x", "y"), **{"closed": True, **options})
    _pair_up(spec)
    return _finish(spec, _binary_call(spec, getattr(NUMPY, name)), doc, None if x is None and y is None else (x, y))


def op(kernel: Callable | None = None, **options: Any) -> Any:
    """Decorator: an op from a kernel ``kernel(xp, *arrays, *, attributes…)``.

    Give its rules with ``name.vjp(rule, …)``, one per array in order (None: no gradient flows there), or declare it with
    ``name.nondifferentiable()``. A kernel of ``*xs`` has one rule, which returns the list of cotangents.
    """
    if kernel is None:
        return lambda function: op(function, **options)
    code = kernel.__code__
    variadic = bool(code.co_flags & 0x04)
    inputs = code.co_varnames[1 : code.co_argcount]
    if variadic:
        inputs = (code.co_varnames[code.co_argcount + code.co_kwonlyargcount],)
    name = kernel.__name__
    spec = Op(name, kernel, inputs, defaults=kernel.__kwdefaults__, variadic=variadic, **options)

    def call(*arrays: Any, **attributes: Any) -> Any:
        return apply(spec, arrays, attributes)

    single = len(inputs) == 1 and not variadic
    return _finish(spec, _single_call(spec) if single else call, kernel.__doc__ or "", None)


def _pair_up(spec: Op) -> None:
    """Record the op as a PAIR; until it gets rules, differentiating it is an error."""

    def missing(xp: Any, g: Any, out: Any, x: Any, y: Any) -> None:
        raise unregistered(spec)

    spec.paired = True
    spec.rule_x = spec.rule_y = missing


def _dialect_kernel(name: str) -> Callable:
    return lambda xp, *arrays: getattr(xp, name)(*arrays)


def _diagonal(derivative: Callable) -> Callable:
    """The rule ``g · conj(d)`` from ``derivative(xp, out, x)``, naming what that reads."""
    names = derivative.__code__.co_varnames[1 : derivative.__code__.co_argcount]
    forms: dict[tuple[str, ...], Callable] = {
        ("out",): lambda xp, g, out: g * xp.conj(derivative(xp, out)),
        ("x",): lambda xp, g, x: g * xp.conj(derivative(xp, x)),
        ("out", "x"): lambda xp, g, out, x: g * xp.conj(derivative(xp, out, x)),
    }
    return forms[names]


def _finish(spec: Op, call: Any, doc: str, rules: tuple | None) -> Callable:
    call.__name__ = call.__qualname__ = spec.name
    call.__doc__ = spec.doc = doc
    call.op = spec

    def vjp(*rules: Callable | None, sparse: Callable | None = None, affine: str = "") -> Callable:
        spec.set_rules(rules)
        spec.sparse = sparse
        spec.affine = affine
        return call

    def nondifferentiable() -> Callable:
        spec.differentiable = False
        return call

    call.vjp, call.nondifferentiable = vjp, nondifferentiable
    if rules is not None:
        spec.set_rules(rules)
    OPS[spec.name] = call
    for observer in MADE:
        observer(call)
    if spec.name in _DIALECT:
        setattr(RECORDED, spec.name, call)
    return call


_DIALECT = frozenset(dialect.NAMES)


# Calling ops


def _unary_call(spec: Op, function: Callable) -> Callable:
    closed = spec.closed

    def call(x: Any, name: str | None = None) -> Tensor:
        if type(x) is not _fast:
            x = x._operand() if isinstance(x, Convertible) else convert_to_tensor(x)
            if type(x) is not _fast:
                return apply(spec, (x,), {})
        a = x._array
        dtype = a.dtype
        try:
            c = function(a)
        except (RuntimeWarning, FloatingPointError):  # somebody makes warnings errors; here inf and nan are answers
            with NUMPY.scope():
                c = function(a)
        except Exception as error:
            raise spec.refuse(error, [a]) from error
        if closed and c.dtype is not dtype and c.dtype != dtype:
            raise spec.not_allowed(dtype)
        if type(c) is not _ndarray:
            c = _asarray(c)
        out = _new(Tensor)
        out._array = c
        out._key = None
        key = x._key
        if key is not None:
            recorder = thread.sole
            if recorder is None:
                _record_pair(spec, out, x, x, key, None)
            else:
                known = recorder.records
                if known and key in known and spec.differentiable:
                    new = out._key = object()
                    known[new] = (
                        PAIR, spec, (key, None), a.shape, None, dtype,
                        out if spec.keep_out else None, x if spec.keep_x else None, None,
                    )  # fmt: skip
                    if len(known) > recorder.limit:
                        report_growth(recorder, out, (x,))
                elif known:
                    passed_by(recorder, spec, out, (x,))
        return out

    return call


def _single_call(spec: Op) -> Callable:
    """The call of an op of one array with attributes; whatever is out of the ordinary goes through `apply`."""
    kernel, closed = spec.kernel, spec.closed

    def call(x: Any, **attributes: Any) -> Any:
        if type(x) is not _fast or (closed and x._array.dtype.kind in "bO"):
            return apply(spec, (x,), attributes)
        try:
            c = kernel(NUMPY, x._array, **attributes)
        except Exception:
            return apply(spec, (x,), attributes)  # the same again, with the error explained
        if type(c) is _ndarray:
            out: Any = _new(Tensor)
            out._array = c
            out._key = None
        else:
            out = tuple([wrap(v) for v in c]) if type(c) is tuple else wrap(c)
        key = x._key
        if key is not None:
            recorder = thread.sole
            if recorder is None or type(out) is not Tensor or not spec.differentiable:
                _record(thread.recorders, spec, out, (x,), attributes)
            elif key in recorder.records and (record := make_record(spec, out, (x,), attributes)) is not None:
                recorder.records[out._key] = record
                if len(recorder.records) > recorder.limit:
                    report_growth(recorder, out, (x,))
            elif recorder.records:
                passed_by(recorder, spec, out, (x,))
        return out

    return call


def _binary_call(spec: Op, function: Callable) -> Callable:
    def call(x: Any, y: Any, name: str | None = None) -> Tensor:
        if type(y) is not _fast or type(x) is not _fast:
            if type(x) is _fast and isinstance(y, Convertible):
                y = y._operand()
                if type(y) is not _fast:
                    return apply(spec, (x, y), {})
            else:
                if outranked(spec.name, x, y):
                    return reflected(spec.name, x, y)
                x, y = pair(spec, x, y)
                if type(x) is not _fast or type(y) is not _fast:
                    return apply(spec, (x, y), {})
        a = x._array
        b = y._array
        dtype = a.dtype
        if b.dtype is not dtype or dtype is _BOOL:
            _check_dtypes(spec, (x, y))
        try:
            c = function(a, b)
        except (RuntimeWarning, FloatingPointError):
            with NUMPY.scope():
                c = function(a, b)
        except Exception as error:
            raise spec.refuse(error, [a, b]) from error
        if type(c) is not _ndarray:
            c = _asarray(c) if type(c) is not bytes else string_scalar(c)
        out = _new(Tensor)
        out._array = c
        out._key = None
        kx, ky = x._key, y._key
        if kx is not None or ky is not None:
            recorder = thread.sole
            if recorder is None:
                _record_pair(spec, out, x, y, kx, ky)
            else:
                known = recorder.records
                if known and (kx in known or ky in known) and spec.differentiable:
                    if kx and ky:
                        new = out._key = object()
                        known[new] = (
                            PAIR, spec, (kx, ky), a.shape, b.shape, dtype,
                            out if spec.keep_out else None, x if spec.keep_x else None, y if spec.keep_y else None,
                        )  # fmt: skip
                    else:  # a constant, or a number
                        known[out._key] = _pair_record(spec, out, x, y, kx, ky)
                    if len(known) > recorder.limit:
                        site = _getframe(1)
                        code = site.f_code
                        if code is not recorder.code:
                            site, code = recorder.moved(site)
                        line = recorder.line
                        line((out._key, code, site.f_lasti)) if line else recorder.grown((out, x, y, code, site.f_lasti))
                elif known:
                    passed_by(recorder, spec, out, (x, y))
        return out

    return call


def _record_pair(spec: Op, out: Tensor, x: Tensor, y: Tensor, kx: Any, ky: Any) -> None:
    """Append the record of an op of one or two arrays to each of several recorders that tracks an input."""
    record = None
    for recorder in thread.recorders:
        known = recorder.records
        if (kx in known or ky in known) and spec.differentiable:
            if record is None:
                record = _pair_record(spec, out, x, y, kx, ky)
            known[out._key] = record
            if len(known) > recorder.limit:
                report_growth(recorder, out, (x, y)[: len(spec.inputs)])
    if record is None:
        sever(NONDIFFERENTIABLE, spec.name, out, (x, y))


def _pair_record(spec: Op, out: Tensor, x: Tensor, y: Tensor, kx: Any, ky: Any) -> tuple:
    """The record of an op of one array (then ``y`` is ``x`` again) or two, whatever their keys are."""
    out._key = object()
    keep_out, keep_x, keep_y = spec.keep_out, spec.keep_x, spec.keep_y
    if len(spec.inputs) == 1:
        y_shape = None
    else:
        y_shape = y._array.shape
        if kx is NUMBER or ky is NUMBER:  # only one rule will run: keep what that one reads
            keep_out, keep_x, keep_y = spec.alone[kx is NUMBER] if spec.alone else (False, False, False)
        # A number is kept even if no rule reads it: it takes no room, and a record that has it says what was computed.
        keep_x = keep_x or (not kx and not x._array.shape)
        keep_y = keep_y or (not ky and not y._array.shape)
        # A constant gets a key too: it may be watched later, and this use of it must count.
        if kx is None:
            kx = x._key = object()
        if ky is None:
            ky = y._key = object()
    return (
        PAIR, spec, (kx, ky), x._array.shape, y_shape, x._array.dtype,
        out if keep_out else None, x if keep_x else None, y if keep_y else None,
    )  # fmt: skip


def pair(spec: Op, x: Any, y: Any) -> Any:
    """The operands as tensors; a Python or NumPy value takes the dtype of the tensor it meets."""
    if type(x) is not Tensor and isinstance(x, Convertible):
        x = x._operand()
    if type(y) is not Tensor and isinstance(y, Convertible):
        y = y._operand()
    if isinstance(x, Tensor):
        if isinstance(y, Tensor):
            return x, y
        return x, operand(y, x._array.dtype, right=spec)
    if isinstance(y, Tensor):
        return operand(x, y._array.dtype), y
    if isinstance(x, Structured) or isinstance(y, Structured):
        return x, y  # `apply` hands the call over
    x = convert_to_tensor(x)
    return x, operand(y, x._array.dtype, right=spec)


def _check_dtypes(spec: Op, tensors: Any) -> None:
    positions = range(len(tensors)) if spec.same is None else spec.same
    first: np.dtype | None = None
    for i in positions:
        dtype = tensors[i]._array.dtype
        if first is None:
            first = dtype
            if spec.closed and (dtype == _BOOL or (dtype.kind == "O" and spec.name != "add")):
                raise spec.not_allowed(dtype)
        elif dtype != first:
            raise wrong_dtype(spec, i, first, dtype)


def apply(spec: Op, args: tuple, attributes: dict[str, Any]) -> Any:
    """Run an op on any operands: the path for attributes, three arrays and more, and storage other than NumPy."""
    tensors: Any = args
    xp = NUMPY
    for x in args:
        if type(x) is not Tensor:
            tensors = _operands(spec, args)
            if tensors is None:
                return hand_over(OPS[spec.name], args, attributes)
            xp = select(tensors)
            break
    arrays = [t._array for t in tensors]
    if xp is not NUMPY and thread.recorders:
        arrays = _inside(tensors, arrays)
    if len(arrays) > 1 or (spec.closed and tensors[0]._array.dtype.kind in ("bO" if xp is NUMPY else "O")):
        _check_dtypes(spec, tensors)
    try:
        if xp is NUMPY:
            value = spec.kernel(NUMPY, *arrays, **attributes)
        else:
            with xp.scope():
                value = _run(spec, xp, tensors, arrays, attributes)
    except (RuntimeWarning, FloatingPointError):
        with NUMPY.scope(), xp.scope():
            value = _run(spec, xp, tensors, arrays, attributes)
    except Exception as error:
        raise spec.refuse(error, arrays) from error
    value = string_scalar(value) if type(value) is bytes else value
    out = tuple([wrap(v) for v in value]) if type(value) is tuple else wrap(value)
    for x in tensors:
        if x._key is not None:
            if thread.recorders:
                _record(thread.recorders, spec, out, tensors, attributes)
            break
    return out


def _run(spec: Op, xp: Any, tensors: Any, arrays: list, attributes: dict[str, Any]) -> Any:
    run = RUN.get(xp)
    return spec.kernel(xp, *arrays, **attributes) if run is None else run(spec, tensors, arrays, attributes)


def _operands(spec: Op, args: tuple) -> list[Tensor] | None:
    """The arguments as tensors; Python and NumPy values among those that must agree take the first tensor's dtype.

    None if one is ragged or sparse.
    """
    group = range(len(args)) if spec.same is None else spec.same
    args = [x._operand() if isinstance(x, Convertible) else x for x in args]  # type: ignore[assignment]
    dtype = next((args[i]._array.dtype for i in group if isinstance(args[i], Tensor)), None)
    tensors: list[Tensor] = []
    for i, x in enumerate(args):
        if isinstance(x, Tensor):
            tensors.append(x)
        elif isinstance(x, Structured):
            return None
        elif i in group and dtype is not None:
            tensors.append(operand(x, dtype))
        else:
            tensors.append(convert_to_tensor(x))
            if i in group:
                dtype = tensors[-1]._array.dtype
    return tensors


def select(tensors: Any) -> Any:
    """The namespace that computes on these tensors (or variables)."""
    xp: Any = NUMPY
    for x in tensors:
        if type(x) is not Tensor:
            x = getattr(x, "_tensor", x)  # a target may be a variable
            if type(x) is Tensor:
                continue
            if type(x) is BatchedTensor:
                return BatchedTensor.xp
            if hasattr(type(x), "xp"):  # storage that brings its own namespace
                xp = type(x).xp
            elif xp is NUMPY:
                from gradtape.xp import jax as JAX

                xp = JAX
    return xp


def _inside(tensors: Any, arrays: list) -> list:
    """The operands of a batched op. A tensor that is not batched stays one, so that the work inside the batch is recorded."""
    if not any(type(t) is BatchedTensor for t in tensors):
        return arrays
    known = [recorder.records for recorder in thread.recorders]
    return [
        t if type(t) is not BatchedTensor and any(t._key in records for records in known) else a
        for t, a in zip(tensors, arrays)
    ]


def _record(recorders: tuple, spec: Op, out: Any, tensors: Any, attributes: dict[str, Any]) -> None:
    make = partial(make_record, spec, out, tensors, attributes)
    if not spec.differentiable or not append_record(recorders, tensors, make, out, tensors):
        for recorder in recorders:
            passed_by(recorder, spec, out, tensors)


def append_record(recorders: tuple, sources: Any, make: Callable[[], tuple | None], out: Any, inputs: Any) -> bool:
    """Append a record to every recorder that tracks one of the sources; whether there is one.

    ``make`` answers None if nothing differentiable came out. ``inputs`` are the values that the record's keys belong to.
    """
    record = None
    for recorder in recorders:
        known = recorder.records
        if not any(x._key in known for x in sources):
            continue
        if record is None:
            record = make()
            if record is None:
                return False
        stored = record
        for key in record[7]:
            if key is not None:
                known[key] = stored
                stored = OUTPUT
        if len(known) > recorder.limit:
            report_growth(recorder, out, inputs)
    return record is not None


OUTPUT = (None,)
"""Stands in a tape for the second and later outputs of a record; the record itself is under the first."""


def make_record(spec: Op, out: Any, tensors: Any, attributes: dict[str, Any]) -> tuple | None:
    """(pull, op, keys, shapes, dtypes, kept values, attributes, output keys, output shapes and dtypes)"""
    if spec.defaults:
        attributes = spec.defaults | attributes
    kept = {}
    for name in spec.keeps:
        if name == "out":
            kept[name] = out
        else:
            kept[name] = tuple(tensors) if spec.variadic else tensors[spec.inputs.index(name)]
    if type(out) is Tensor and len(tensors) == 1:
        (x,) = tensors
        a = x._array
        dtype = out._array.dtype
        if dtype is not a.dtype and dtype not in dtypes.TRAINABLE and not dtypes.joins_trainable(dtype):
            return None
        key = out._key = object()
        return pull_general, spec, (x._key,), (a.shape,), (a.dtype,), kept, attributes, (key,), (
            (out._array.shape, out._array.dtype),
        )
    trainable = dtypes.TRAINABLE
    outs = out if type(out) is tuple else (out,)
    for o in outs:
        if o._array.dtype in trainable or dtypes.joins_trainable(o._array.dtype):
            o._key = object()
    keys = tuple([o._key for o in outs])
    if keys.count(None) == len(keys):
        return None
    for i, x in enumerate(tensors):
        if not x._key:
            if not x._array.shape and not spec.variadic:  # a number, as in `_pair_record`
                kept.setdefault(spec.inputs[i], x)
            if x._key is None and x._array.dtype in trainable:  # a constant gets a key, as there
                x._key = object()
    arrays = [x._array for x in tensors]
    return (
        pull_several if len(outs) > 1 else pull_general,
        spec,
        tuple([x._key for x in tensors]),
        tuple([a.shape for a in arrays]),
        tuple([a.dtype for a in arrays]),
        kept,
        attributes,
        keys,
        [(o._array.shape, o._array.dtype) for o in outs],
    )
