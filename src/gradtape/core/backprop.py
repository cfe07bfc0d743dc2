"""The reverse sweep: walk the records backwards, call the rules, sum what they give.

The sweep is the same for raw NumPy arrays (first order), tensors (recorded by an outer tape), jax tracers (compiled) and
batched values (Jacobians): only the namespace ``xp`` and the kind of values differ.
"""

from __future__ import annotations

from typing import Any

from numpy import ndarray

from gradtape.core.indexed_slices import IndexedSlices
from gradtape.core.rules import unchanged
from gradtape.core.selection import NEVER, Watch, settled
from gradtape.errors import InternalError, message, shown


class Sweep:
    """One walk over the records of a tape."""

    __slots__ = ("blocked", "cotangents", "needed", "plain", "poles", "raw", "sparse", "unused", "xp")

    def __init__(self, xp: Any, raw: bool, plain: bool, needed: Any, sparse: Any = (), poles: Watch = NEVER) -> None:
        self.xp = xp
        self.raw = raw  # rules get arrays; otherwise tensors, so that what they do is recorded
        self.plain = plain  # cotangents are arrays or batched values; otherwise tensors
        self.needed = needed  # the keys that lead to a source
        self.sparse = sparse  # sets of the keys whose gradient a gather may give as IndexedSlices
        self.poles = poles  # when to look for nan that leaks from what was not selected
        self.cotangents: dict[Any, Any] = {}
        self.unused: list[tuple] = []  # (output key, op, input keys) of records that the target does not depend on
        self.blocked: list[tuple] = []  # (op, input key, place or None) where a rule gave nothing

    def run(self, records: dict, keep: Any) -> None:
        """Pull the cotangents back through ``records``, latest first, dropping each record as it is passed.

        The cotangents of the keys in ``keep`` stay. Records of ops of one or two arrays are pulled here, not in a function:
        there are many of them, and a call costs as much as a rule.
        """
        xp, raw, plain, needed, cotangents = self.xp, self.raw, self.plain, self.needed, self.cotangents
        met, start, reach = self.poles
        while records:
            key, record = records.popitem()
            pull = record[0]
            if pull is not PAIR:
                if pull is not None:
                    self._pull(pull, key, record, keep)
                continue
            g = cotangents.pop(key, None)
            if g is None:
                self.unused.append((key, record[1], record[2]))
                continue
            if key in keep:
                cotangents[key] = g
            _, op, (key_x, key_y), shape_x, shape_y, dtype, out, x, y = record
            if raw:
                if out is not None:
                    out = out._array
                if x is not None:
                    x = x._array
                y = shape_y if y is None else y._array
            elif y is None:
                y = shape_y
            if key_x in needed:
                rule = op.rule_x  # a name of its own: Python calls what it takes for a method more slowly
                h = g
                if rule is not unchanged:
                    h = rule(xp, g, out, x, y)
                    if met[0] != start:
                        h = settled(xp, op, g, h, rule, (out, x, y), reach)
                if plain and key_x not in cotangents and h is not None:  # what `add` would do
                    cotangents[key_x] = h if h.shape == shape_x and h.dtype is dtype else fit(xp, op, h, shape_x, dtype)
                else:
                    self.add(op, key_x, h, shape_x, dtype)
            if key_y in needed:
                rule = op.rule_y
                h = g
                if rule is not unchanged:
                    h = rule(xp, g, out, x, y)
                    if met[0] != start:
                        h = settled(xp, op, g, h, rule, (out, x, y), reach)
                if plain and key_y not in cotangents and h is not None:
                    cotangents[key_y] = h if h.shape == shape_y and h.dtype is dtype else fit(xp, op, h, shape_y, dtype)
                else:
                    self.add(op, key_y, h, shape_y, dtype)

    def _pull(self, pull: Any, key: Any, record: tuple, keep: Any) -> None:
        cotangents = self.cotangents
        if pull is pull_several:
            gs = [cotangents.get(k) if k in keep else cotangents.pop(k, None) for k in record[7]]
            if all(g is None for g in gs):
                self.unused.extend((k, record[1], record[2]) for k in record[7])
            else:
                pull(record, gs, self)
            return
        g = cotangents.get(key) if key in keep else cotangents.pop(key, None)
        if g is None:
            self.unused.append((key, record[1], record[2]))
        else:
            pull(record, g, self)

    def add(self, op: Any, key: Any, g: Any, shape: tuple[int, ...], dtype: Any) -> None:
        """Sum ``g`` into the cotangent of ``key``, in the shape and dtype of the value it belongs to."""
        if g is None:
            self.blocked.append((op, key, None))
            return
        if type(g) is not IndexedSlices:
            value = g if self.plain else g._array
            if value.shape != shape or value.dtype is not dtype:
                g = fit(self.xp, op, g, shape, dtype)
        known = self.cotangents.get(key)
        self.cotangents[key] = g if known is None else _sum(self.xp, known, g)


def fit(xp: Any, op: Any, g: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """``g`` summed over the axes that broadcasting added, and only those: any other difference is a wrong rule."""
    received = g.shape if type(g) is ndarray else xp.shape(g)
    if received != shape:
        if received[1:] == shape:  # a bias
            g = xp.sum(g, axis=0)
            return g if type(g) is ndarray and g.dtype is dtype else _typed(xp, g, dtype)
        extra = len(received) - len(shape)
        spread = [i for i, (m, n) in enumerate(zip(received[extra:], shape), extra) if m != n]
        if extra < 0 or {n for m, n in zip(received[extra:], shape) if m != n} - {1}:
            raise InternalError(
                message(
                    f"The derivative rule of {op.name} returned a gradient of the wrong shape.",
                    received=f"{received}",
                    expected=f"{shape}, or a shape that broadcasting made of it",
                    fix=f"correct the rule of {op.name}",
                )
            )
        g = xp.reshape(xp.sum(g, axis=(*range(extra), *spread)), shape=shape)
    return _typed(xp, g, dtype)


def _typed(xp: Any, g: Any, dtype: Any) -> Any:
    """A half type times a Python number is float32 in NumPy, and a real input of a complex op has a real gradient."""
    return g if xp.dtype(g) == dtype else xp.astype(g, dtype=dtype)


def _sum(xp: Any, x: Any, y: Any) -> Any:
    if type(x) is IndexedSlices or type(y) is IndexedSlices:
        return IndexedSlices._combined(xp, x, y)
    return xp.add(x, y)


# Record layouts. A value that a record does not keep is None; rules of pairs get the shape of y then.
#   ops of one or two arrays:  (PAIR, op, (key_x, key_y), shape_x, shape_y, dtype, out, x, y)
#   all others:  (pull, op, keys, shapes, dtypes, kept values, attributes, output keys, output shapes and dtypes)

PAIR = "pair"


def pull_several(record: tuple, gs: list, sweep: Sweep) -> None:
    """A record with several outputs: one that nothing used contributes zeros."""
    zeros = sweep.xp.zeros
    outputs = record[8]
    filled = tuple([zeros(shape=s, dtype=d) if g is None else g for g, (s, d) in zip(gs, outputs)])
    record[1].pull(record, filled, sweep)


def pull_general(record: tuple, g: Any, sweep: Sweep) -> None:
    _, op, keys, shapes, dtypes, kept, attributes, _, _ = record
    if op.rules is None:
        raise unregistered(op)
    if kept and sweep.raw:
        kept = {name: _raw(value) for name, value in kept.items()}
    if op.joint:
        _pull_jointly(record, g, kept, sweep)
        return
    xp, needed, (met, start, _) = sweep.xp, sweep.needed, sweep.poles
    for i, rule in enumerate(op.rules):
        key = keys[i]
        if key not in needed:
            continue
        if rule is None:
            part = None
        elif op.sparse is not None and any(key in leaves for leaves in sweep.sparse):
            part = op.sparse(xp, g, kept, attributes, shapes)
        else:
            function, _, call = rule
            part = call(function, xp, g, kept, attributes, shapes)
            if met[0] != start:
                part = _settled(part, rule, record, g, kept, sweep)
        sweep.add(op, key, part, shapes[i], dtypes[i])


def _pull_jointly(record: tuple, g: Any, kept: dict, sweep: Sweep) -> None:
    """The same where one rule gives the cotangents of all inputs."""
    _, op, keys, shapes, dtypes, _, attributes, _, _ = record
    function, _, call = op.rules[0]
    parts = call(function, sweep.xp, g, kept, attributes, shapes)
    if not isinstance(parts, (list, tuple)):
        text = f"expected a sequence of gradients, got {type(parts).__name__} from the rule of {op.name}"
        raise TypeError(message(text, received=shown(parts), expected="a list or tuple, one gradient per input"))
    if len(parts) != len(keys):
        raise miscounted(op, len(keys), len(parts))
    met, start, _ = sweep.poles
    for i, (key, part) in enumerate(zip(keys, parts)):
        if key in sweep.needed:
            part = part if met[0] == start else _settled(part, op.rules[0], record, g, kept, sweep, i)
            sweep.add(op, key, part, shapes[i], dtypes[i])


def _settled(part: Any, rule: tuple, record: tuple, g: Any, kept: dict, sweep: Sweep, i: int | None = None) -> Any:
    """What a rule gave, or the i-th that it gave, without nan that leaks from what was not selected."""

    def again(xp: Any, g: Any, *values: Any) -> Any:
        function, _, call = rule
        parts = call(function, xp, g, dict(zip(kept, values)), record[6], record[3])
        return parts if i is None else parts[i]

    return settled(sweep.xp, record[1], g, part, again, tuple(kept.values()), sweep.poles[2])


def _raw(value: Any) -> Any:
    return tuple(v._array for v in value) if type(value) is tuple else value._array


def unregistered(op: Any) -> LookupError:
    return LookupError(
        message(
            f"gradient registry has no entry for: {op.label}",
            received=f"a path from the target to a source through {op.name}",
            fix=f"give the op a rule with gradtape.extend, or cut the path with tf.stop_gradient before {op.name}",
        )
    )


def miscounted(op: Any, expected: int, received: int) -> InternalError:
    few = "few" if received < expected else "many"
    return InternalError(
        message(
            f"Recorded operation '{op.label}' returned too {few} gradients. Expected {expected} but received {received}",
            received=f"{received} gradients",
            expected=f"{expected}: one per input, None where none flows",
        )
    )
