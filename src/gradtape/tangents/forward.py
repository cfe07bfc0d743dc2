"""Forward mode: `ForwardAccumulator`, and how a tangent passes one record.

There is no second set of rules. A record that a tape would keep for its reverse rule is what a tangent is pushed through:

- ``diagonal``: elementwise ops. Their Jacobian is its own transpose, so the reverse rule, given the tangent, answers.
- ``linear``: no rule reads a differentiable input or the output, so the op is linear: the tangent goes through its kernel.
- ``multilinear``: each rule reads all inputs but its own (matmul, convolution): the kernel, once per input that has a tangent.
- ``transposed``: whatever is left. The reverse rule is linear in its cotangent; recording it and pulling the tangents back
  through that recording gives its transpose, which is the forward rule.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.backprop import PAIR, Sweep, unregistered
from gradtape.core.callsite import Listening, warn_at_site
from gradtape.core.context import activate, level, thread
from gradtape.core.op import OUTPUT, Op, apply
from gradtape.core.selection import ALWAYS, settled_tangent
from gradtape.core.variable import Variable, variable_of
from gradtape.errors import message
from gradtape.values import nest
from gradtape.values.batched import Batched
from gradtape.values.convert import convert_to_tensor
from gradtape.values.recorded import RECORDED
from gradtape.values.tensor import BatchedTensor, Tensor, wrap
from gradtape.xp import dialect
from gradtape.xp import numpy as NUMPY
from gradtape.xp.poles import met

# Not sign: the transpose of its rule, which ignores g, is None (B16). Not complex: its rules drop half of g.
_ELEMENTWISE = frozenset(dialect.ELEMENTWISE) - {"sign", "complex"}
_PRODUCTS = {"matmul": (-2, -1), "adjoint_matmul": (-1, -1), "matmul_adjoint": (-2, -2)}  # what remains of x, and of y


class Listener:
    """A recorder that keeps every record: the least that a tape can be."""

    limit = sys.maxsize

    def __init__(self) -> None:
        self.records: dict = {}
        self.variables: dict = {}

    def accessed(self, variable: Variable) -> None:
        """Variables are constants here."""


def push(key: Any, record: tuple, tangents: dict) -> None:
    """Put the tangents of the record's outputs into ``tangents``, computed on tensors from those of its inputs."""
    op = record[1]
    if op.rules is None:
        raise unregistered(op)
    if op.forward is None:
        op.forward = _way(op)
    if record[0] is PAIR:
        if not thread.recorders and op.forward is not _transposed and _push_arrays(key, record, tangents):
            return
        record = as_general(record, key)
    found = op.forward(record, tangents)
    for k, t, (shape, dtype) in zip(record[7], found, record[8]):
        if t is not None and k is not None:
            if t._array.shape != shape:
                t = RECORDED.broadcast_to(t, shape=shape)
            dict.__setitem__(tangents, k, t if t._array.dtype == dtype else RECORDED.astype(t, dtype=dtype))


def _push_arrays(key: Any, record: tuple, tangents: dict) -> bool:
    """The most frequent case on raw arrays: ops of one or two real NumPy tensors that nobody else follows. False: it is not."""
    _, op, (key_x, key_y), shape_x, shape_y, dtype, out, x, y = record
    tangent_x, tangent_y = tangents.get(key_x), tangents.get(key_y)
    for value in (tangent_x, tangent_y, out, x, y):
        if value is not None and type(value) is not Tensor:
            return False
    if op.forward is _diagonal:
        suited = op.closed
    else:
        suited = op.forward is _multilinear and x is not None and y is not None
    if not suited or dtype.kind == "c":
        return False
    out, x, y = (v if v is None else v._array for v in (out, x, y))
    total = part = None
    before = met[0]
    if tangent_x is not None:
        t = tangent_x._array
        total = op.rule_x(NUMPY, t, out, x, y) if op.forward is _diagonal else op.kernel(NUMPY, t, y)
    if tangent_y is not None:
        t = tangent_y._array
        part = op.rule_y(NUMPY, t, out, x, y) if op.forward is _diagonal else op.kernel(NUMPY, x, t)
    if total is None or part is not None:
        total = part if total is None else total + part
    if total is None:
        return True
    if op.forward is _diagonal:
        if met[0] != before:  # a pole
            return False
        shape = shape_x if shape_y is None or shape_x == shape_y else np.broadcast_shapes(shape_x, shape_y)
        total = total if total.shape == shape else np.broadcast_to(total, shape)
    dict.__setitem__(tangents, key, wrap(total if total.dtype == dtype else total.astype(dtype)))
    return True


def as_general(record: tuple, key: Any) -> tuple:
    """A PAIR in the layout of all other records; its output's shape and dtype are found by running the kernel on ones."""
    _, op, keys, shape_x, shape_y, dtype, out, x, y = record
    count = len(op.inputs)
    shapes = (shape_x, shape_y)[:count]
    kept = {name: value for name, value in zip(("out", *op.inputs), (out, x, y)) if value is not None}
    if out is not None:
        output = out._array.shape, out._array.dtype
    elif op.closed and op.name in _ELEMENTWISE:
        output = shape_x if count == 1 or shape_x == shape_y else np.broadcast_shapes(*shapes), dtype
    elif op.name in _PRODUCTS:
        rows, columns = _PRODUCTS[op.name]
        output = (*np.broadcast_shapes(shape_x[:-2], shape_y[:-2]), shape_x[rows], shape_y[columns]), dtype
    else:
        like = op.kernel(NUMPY, *(np.ones(shape, dtype) for shape in shapes))
        output = like.shape, like.dtype
    return PAIR, op, keys[:count], shapes, (dtype,) * count, kept, {}, (key,), (output,)


def _way(op: Op) -> Callable:
    """How tangents pass an op, from what its rules read."""
    if op.paired and not op.joint and op.name in _ELEMENTWISE:
        return _diagonal
    rules = op.rules or ()
    if op.joint or not rules:
        return _linear if rules and op.variadic and not rules[0][1] else _transposed
    free = {name for name, rule in zip(op.inputs, rules) if rule is not None}
    reads = [set(rule[1]) & {*free, "out"} for rule in rules if rule is not None]
    if not {*op.inputs} - free <= {*op.keeps}:
        return _transposed  # the kernel needs an input that no record keeps
    if not any(reads):
        return _linear
    names = [name for name, rule in zip(op.inputs, rules) if rule is not None]
    return _multilinear if all(r == free - {name} for r, name in zip(reads, names)) else _transposed


def _diagonal(record: tuple, tangents: dict) -> list:
    _, op, keys, _, kinds, kept, _, _, _ = record
    if kinds[0].kind == "c" and not op.closed:  # abs, angle, real: not holomorphic
        return _transposed(record, tangents)
    conj = RECORDED.conj if kinds[0].kind == "c" else _same  # rules multiply by the conjugate (A7.29), tangents do not (B27)
    x, y = (*op.inputs, "")[:2]
    values = a, b, c = kept.get("out"), kept.get(x), kept.get(y)
    plain = not thread.recorders and conj is _same and type(a) in _PLAIN and type(b) in _PLAIN and type(c) in _PLAIN
    total, before = None, met[0]
    for key, rule in zip(keys, (op.rule_x, op.rule_y)):
        t = tangents.get(key)
        if t is None:
            continue
        if plain and type(t) is Tensor:
            arrays = [v if v is None else v._array for v in values]
            part: Any = rule(NUMPY, t._array, *arrays)
            if met[0] != before:
                part = settled_tangent(NUMPY, rule, t._array, part, arrays)
            part = None if part is None else wrap(part)
        else:
            t = conj(t)
            part = rule(RECORDED, t, *values)
            if met[0] != before or type(t) is not Tensor:  # only NumPy tells whether there was a pole
                part = settled_tangent(RECORDED, rule, t, part, values)
            part = None if part is None else conj(part)
        if part is not None:
            total = part if total is None else RECORDED.add(total, part)
    return [total]


_PLAIN = (Tensor, type(None))


def _same(x: Any) -> Any:
    return x


def _zeros(shape: tuple, dtype: Any) -> Tensor:
    return wrap(np.zeros(shape, dtype))


def _linear(record: tuple, tangents: dict) -> list:
    _, op, keys, shapes, kinds, kept, attributes, _, _ = record
    if op.affine and attributes[op.affine]:
        attributes = {**attributes, op.affine: 0}
    arguments = []
    for i, key in enumerate(keys):
        name = op.inputs[0 if op.variadic else i]
        t = tangents.get(key)
        constant = not op.variadic and op.rules[i] is None  # type: ignore[index]
        arguments.append(kept[name] if constant else _zeros(shapes[i], kinds[i]) if t is None else t)
    return _as_list(apply(op, tuple(arguments), attributes))


def _multilinear(record: tuple, tangents: dict) -> list:
    _, op, keys, _, _, kept, attributes, _, _ = record
    total: list | None = None
    for i, key in enumerate(keys):
        t = tangents.get(key)
        if t is not None and op.rules[i] is not None:  # type: ignore[index]
            arguments = [t if j == i else kept[name] for j, name in enumerate(op.inputs)]
            parts = _as_list(apply(op, tuple(arguments), attributes))
            total = parts if total is None else [RECORDED.add(a, b) for a, b in zip(total, parts)]
    return total or [None]


def _as_list(out: Any) -> list:
    return list(out) if type(out) is tuple else [out]


def _transposed(record: tuple, tangents: dict) -> list:
    outer = thread.recorders
    listener = Listener()
    if record[0] is PAIR:  # pulled as a general record
        record = (record[1].pull, *record[1:])
    keys, outputs = record[7], record[8]
    # Ones, not zeros: some rules look whether the cotangent is zero before they divide.
    seeds = {k: wrap(np.ones(shape, dtype)) for k, (shape, dtype) in zip(keys, outputs) if k is not None}
    for seed in seeds.values():
        seed._key = object()
        listener.records[seed._key] = OUTPUT
    recorded = Sweep(RECORDED, False, False, tangents, ())
    recorded.cotangents = dict(seeds)
    activate((*outer, listener))
    try:
        with RECORDED.scope():
            recorded.run({keys[0] if keys[0] is not None else next(iter(seeds)): record}, ())
    finally:
        activate(outer)
    back = Sweep(RECORDED, False, False, listener.records, (), ALWAYS)
    for key, cotangent in recorded.cotangents.items():
        if key in tangents and cotangent._key in listener.records:
            back.add(record[1], cotangent._key, tangents[key], cotangent._array.shape, cotangent._array.dtype)
    with RECORDED.scope():
        back.run(dict(listener.records), {seed._key for seed in seeds.values()})
    return [back.cotangents.get(seeds[k]._key) if k in seeds else None for k in keys]


class _Tangents(dict):
    """Tangents by the key of their primal. To the ops it is a tape's dict: storing a record pushes the tangents through."""

    def __init__(self, owner: ForwardAccumulator) -> None:
        super().__init__()
        self._owner = owner

    def __setitem__(self, key: Any, record: Any) -> None:
        if record is OUTPUT:  # a further output of the record that came before
            return
        active = thread.recorders
        activate(active[: active.index(self._owner)])  # what is outside sees how tangents are computed (B25)
        try:
            with RECORDED.scope():  # infinities and NaN are answers
                push(key, record, self)
        finally:
            activate(active)


class ForwardAccumulator(Listening):
    """Compute Jacobian-vector products while the operations run.

    >>> x = Variable([2.0, 3.0])
    >>> with ForwardAccumulator(x, convert_to_tensor([1.0, 0.0])) as accumulator:
    ...     y = x * x
    >>> accumulator.jvp(y).numpy().tolist()
    [4.0, 0.0]

    Accumulators and tapes nest in any order; the outer ones see how the inner ones compute.
    """

    variables: dict = {}

    def __init__(self, primals: Any, tangents: Any) -> None:
        self.records = _Tangents(self)
        self.limit = 1024
        self._others: dict[int, tuple[Any, Tensor]] = {}  # primals that nothing differentiable can come of, by identity
        self._recording = False
        self._batch = 0  # the level of batched tangents; 0: each tangent is one
        nest.assert_same_structure(primals, tangents)
        flat = nest.flatten(primals)
        seen = {id(x) for x in flat}
        if len(seen) < len(flat):
            double = next(x for i, x in enumerate(flat) if any(x is y for y in flat[:i]))
            text = (
                f"Tensor {double} was specified as a primal multiple times. This may indicate an error. "
                "If it was intended, please sum the corresponding tangents."
            )
            raise ValueError(message(text, fix="give it once, with the sum of its tangents"))
        for primal, tangent in zip(flat, nest.flatten(tangents)):
            self._watch(primal, tangent)

    @classmethod
    def _batch_accumulator(cls, primals: Any, tangents: Any) -> ForwardAccumulator:
        """Tangents with one more leading axis; so have the results of `jvp`."""
        self = cls((), ())
        nest.assert_same_structure(primals, tangents)
        self._batch = level() + 1
        for primal, tangent in zip(nest.flatten(primals), nest.flatten(tangents)):
            self._watch(primal, tangent)
        return self

    def _watch(self, primal: Any, tangent: Any) -> None:
        """Attach a tangent to a primal; a second one is added to the first."""
        primal = variable_of(primal)
        if not isinstance(primal, (Tensor, Variable)):
            raise AttributeError(
                message(
                    f"'{type(primal).__name__}' object has no attribute '_id'",
                    received=f"{primal!r} as a primal of ForwardAccumulator",
                    expected="tensors or variables, or a nest of them",
                    fix="tf.constant(value) or tf.Variable(value), used in the computation",
                )
            )
        tangent = convert_to_tensor(tangent, primal.dtype)
        self._check_shape(primal, tangent)
        if not primal.dtype.is_floating:
            warn_at_site(f"The dtype of the watched primal must be floating (e.g. tf.float32), got {primal.dtype!r}", times=5)
        if not primal.dtype.is_trainable:
            self._others[id(primal)] = primal, tangent
            return
        if primal._key is None:
            primal._key = object()
        if self._batch:
            tangent = wrap(Batched(tangent, self._batch))
        present = self.records.get(primal._key)
        dict.__setitem__(self.records, primal._key, tangent if present is None else RECORDED.add(present, tangent))

    def _check_shape(self, primal: Any, tangent: Tensor) -> None:
        shape, expected = tangent._array.shape, tuple(primal.shape)
        if shape[1:] != expected if self._batch else shape != expected:
            wanted = (None, *expected) if self._batch else expected
            raise ValueError(
                message(
                    f"Shapes {shape} and {wanted} are incompatible",
                    received=f"a tangent of shape {shape} for a primal of shape {expected}",
                    expected="one number per element of the primal" + (", behind the batch axis" if self._batch else ""),
                )
            )

    def __enter__(self) -> ForwardAccumulator:
        if self._recording:
            raise ValueError(
                message(
                    "Accumulator is already recording.",
                    received="an accumulator inside its own with block",
                    fix="make a second one: with tf.autodiff.ForwardAccumulator(primals, tangents) as inner",
                )
            )
        self._recording = True
        activate((*thread.recorders, self))
        return self

    def __exit__(self, *_: object) -> None:
        if not self._recording:
            text = "Accumulator is not recording."
            raise ValueError(message(text, received="an accumulator that was left already", fix="leave its with block once"))
        self._recording = False
        activate(tuple(r for r in thread.recorders if r is not self))

    def jvp(self, primals: Any, unconnected_gradients: Any = "none") -> Any:
        """The tangent of each tensor or variable in a nest: its Jacobian times the tangents of the primals.

        None for what does not depend on the primals, or was computed outside the ``with`` block; zeros with
        ``unconnected_gradients='zero'``.
        """
        word = getattr(unconnected_gradients, "value", unconnected_gradients)
        if word not in ("none", "zero"):
            text = f"{unconnected_gradients!r} is not a valid UnconnectedGradients"
            raise ValueError(message(text, received=f"{unconnected_gradients!r}", expected="'none' or 'zero'"))
        return nest.map_structure(lambda x: self._tangent(x, word == "zero"), primals)

    def _tangent(self, primal: Any, zero: bool) -> Tensor | None:
        primal = variable_of(primal)
        if not isinstance(primal, (Tensor, Variable)):
            raise AttributeError(
                message(
                    f"'{type(primal).__name__}' object has no attribute '_id'",
                    received=f"{primal!r} in ForwardAccumulator.jvp",
                    expected="tensors or variables, or a nest of them",
                )
            )
        found = self.records.get(primal._key)
        if found is None:
            found = self._others.get(id(primal), (None, None))[1]
        if found is None and zero:
            return wrap(np.zeros(tuple(primal.shape), primal.dtype.numpy))
        if self._batch and type(found) is BatchedTensor and found._array.level == self._batch:
            value = found._array.value
            return value if isinstance(value, Tensor) else wrap(value)
        return found

    def accessed(self, variable: Variable) -> None:
        """A variable's tangent is found by its key, whenever it is read."""

    def grown(self, note: tuple) -> None:
        """Drop the tangents of tensors that nobody can reach any more."""
        others = [r.records for r in thread.recorders if r is not self]
        for key in list(self.records):
            # Held by the dict, the list, this loop and the call.
            if sys.getrefcount(key) == 4 + sum([key in known for known in others]):
                del self.records[key]
        self.limit = max(1024, 2 * len(self.records))
