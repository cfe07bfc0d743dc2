"""Eager work on a device, in few programs: dispatching one costs as much as ten NumPy calls, however small it is.

A kernel that takes several steps is one program. The backward sweep of a tape is one, too: its records are described by
their structure alone (ops, attributes, shapes, which value is used where), and what was compiled for that structure once
serves every tape that has it, with other numbers.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.backprop import PAIR, Sweep
from gradtape.core.context import thread
from gradtape.core.indexed_slices import IndexedSlices
from gradtape.core.op import REGISTRY, RUN, Op
from gradtape.values.batched import Batched
from gradtape.values.placement import moved
from gradtape.values.tensor import Tensor, wrap
from gradtape.xp import dialect, jax_devices

JAX: Any = None  # the namespace; `install` sets it
ON_DEVICES: Any = None

_DIALECT = frozenset(dialect.NAMES)
_LARGEST_ATTRIBUTE = 4096  # bytes of an array that a program has as a constant


class Programs:
    """Compiled programs by what they were made for; the least recently used go first.

    Where nothing is asked for twice (shapes that change all the time), nothing is compiled after ``patience`` vain attempts.
    """

    def __init__(self, size: int, patience: int) -> None:
        self._size, self._patience = size, patience
        self._programs: OrderedDict[Any, Any] = OrderedDict()
        self._lock = threading.Lock()
        self._misses = 0
        self.made = 0

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        """The program for ``key``; None if there shall be none."""
        with self._lock:
            known = key in self._programs
            program = self._programs.pop(key, None)
            if program is None and (known or self._misses < self._patience):
                program = make()
                self.made += 1
            self._misses = 0 if known else self._misses + 1
            self._programs[key] = program
            if len(self._programs) > self._size:
                self._programs.popitem(last=False)
        return program

    def give_up(self, key: Any) -> None:
        """What was compiled for ``key`` does not work."""
        with self._lock:
            self._programs[key] = _useless

    def clear(self) -> None:
        with self._lock:
            self._programs.clear()


class Unfit(Exception):
    """Work that cannot be compiled, or not be recognised when it comes again."""


def _useless(*_: Any) -> Any:
    raise Unfit


KERNELS = Programs(size=1024, patience=64)
BACKWARD = Programs(size=256, patience=16)


def frozen(value: Any) -> Any:
    """An attribute as part of a key: equal only for what computes the same."""
    kind = type(value)
    if kind is float:
        return kind, value.hex()  # tells 0.0 from -0.0, and nan is itself
    if kind in (tuple, list):
        return kind, tuple(map(frozen, value))
    if kind is slice:
        return kind, frozen((value.start, value.stop, value.step))
    if kind is dict:
        return kind, tuple((name, frozen(item)) for name, item in value.items())
    if isinstance(value, (np.ndarray, np.generic)):
        if value.nbytes > _LARGEST_ATTRIBUTE or value.dtype.kind == "O":
            raise Unfit
        return kind, value.dtype.num, value.shape, value.tobytes()
    try:
        hash(value)
    except TypeError:
        raise Unfit from None
    return kind, value


def _is_tracer(kind: type) -> bool:
    return "Tracer" in kind.__name__


# Kernels


def run(spec: Op, tensors: list[Tensor], arrays: list, attributes: dict[str, Any]) -> Any:
    """The value of an op on jax arrays; where they are on several devices, all go to that of the first."""
    note(tensors)
    value = _kernel(spec, arrays, attributes)
    if spec.closed and len(arrays) == 1 and value.dtype != arrays[0].dtype:
        raise spec.not_allowed(arrays[0].dtype)
    return value


def note(tensors: list[Tensor]) -> None:
    """Let the tapes that track one of these know that there is work on a device among their records."""
    for recorder in thread.recorders:
        if any(isinstance(t, Tensor) and t._key in recorder.records for t in tensors):
            recorder.accelerated = ON_DEVICES


def _kernel(spec: Op, arrays: list, attributes: dict[str, Any]) -> Any:
    if any(_is_tracer(type(a)) for a in arrays):
        return spec.kernel(JAX, *arrays, **attributes)
    try:
        return _computed(spec, arrays, attributes)
    except ValueError as error:
        if "incompatible devices" not in str(error):
            raise
    return _computed(spec, jax_devices.together(arrays), attributes)


def _computed(spec: Op, arrays: list, attributes: dict[str, Any]) -> Any:
    if spec.name in _DIALECT or not spec.kernel.__code__.co_names:  # one step, or none
        return spec.kernel(JAX, *arrays, **attributes)
    try:
        key = spec, frozen(attributes) if attributes else None
    except Unfit:
        return spec.kernel(JAX, *arrays, **attributes)
    program = KERNELS.get(key, lambda: jax_devices.jit(lambda *given: spec.kernel(JAX, *given, **attributes)))
    if program is None or program is _useless:
        return spec.kernel(JAX, *arrays, **attributes)
    try:
        return program(*arrays)
    except Exception as error:
        if "incompatible devices" in str(error):
            raise
        KERNELS.give_up(key)
        return spec.kernel(JAX, *arrays, **attributes)  # which explains itself, if it was not the compilation


# The sweep


def sweep(backward: Sweep, records: dict, keep: Any) -> None:
    """`Sweep.run` in as few programs as possible: one, if nobody's Python function is among the rules."""
    tracing = any(_is_tracer(type(g)) for g in backward.cotangents.values())  # part of a program that is being made
    if tracing or not backward.raw or type(backward) is not Sweep:
        backward.run(records, keep)
        return
    stretch: list[tuple[Any, tuple]] = []  # latest first
    for key, record in reversed(records.items()):
        if record[0] is None:
            continue
        if record[1].rules and record[1].label not in REGISTRY:
            stretch.append((key, record))
        else:
            _pull(backward, stretch, keep)
            stretch = []
            _step_by_step(backward, [(key, record)], keep)
    _pull(backward, stretch, keep)
    records.clear()


def _pull(backward: Sweep, stretch: list, keep: Any) -> None:
    stretch = list(_reached(backward, stretch))
    if not stretch:
        return
    try:
        plan = Plan(backward, stretch, keep)
        program = BACKWARD.get(plan.key, plan.compiled)
        outs = _useless() if program is None else _called(program, plan)
    except Unfit:
        _step_by_step(backward, stretch, keep)
        return
    found, blocked = outs
    for key in plan.incoming:
        backward.cotangents.pop(key, None)
    backward.cotangents.update((plan.names[i], g) for i, g in found)
    backward.blocked.extend((op, plan.names[i], *rest) for op, i, *rest in blocked)


def _called(program: Any, plan: Plan) -> tuple[list, list]:
    try:
        return program(jax_devices.together(plan.arrays) if jax_devices.several() else plan.arrays, plan.numbers())
    except Unfit:
        raise
    except Exception:  # a rule that does not trace, or one that is wrong: step by step it says so
        BACKWARD.give_up(plan.key)
        raise Unfit from None


def _reached(backward: Sweep, stretch: list) -> Iterator[tuple[Any, tuple]]:
    """The records that a cotangent comes to."""
    live = set(backward.cotangents)
    for key, record in stretch:
        if key in live or (record[0] is not PAIR and not live.isdisjoint(record[7])):
            live.update(k for k in record[2] if k in backward.needed)
            yield key, record
        else:
            backward.unused.extend((k, record[1], record[2]) for k in ((key,) if record[0] is PAIR else record[7]))


def _step_by_step(backward: Sweep, stretch: list, keep: Any) -> None:
    if jax_devices.several():
        device = next(filter(None, (jax_devices.of(a) for _, record in stretch for a in _kept(record))), None)
        if device is not None:
            stretch = [(key, _on(record, device)) for key, record in stretch]
            for key, g in backward.cotangents.items():
                if jax_devices.of(g) is not None:
                    backward.cotangents[key] = jax_devices.put(g, device)
    backward.run(dict(reversed(stretch)), keep)


def _kept(record: tuple) -> Iterator[Any]:
    values = record[6:9] if record[0] is PAIR else record[5].values()
    for value in values:
        for tensor in value if type(value) is tuple else (value,):
            if tensor is not None:
                yield tensor._array


def _on(record: tuple, device: Any) -> tuple:
    """The record with what it keeps on a device."""

    def there(value: Any) -> Any:
        if type(value) is tuple:
            return tuple(map(there, value))
        return None if value is None else moved(value, device)

    if record[0] is PAIR:
        return (*record[:6], *map(there, record[6:]))
    return (*record[:5], {name: there(value) for name, value in record[5].items()}, *record[6:])


class Plan:
    """What a stretch of records does, apart from the numbers; they are its ``arrays``, each once.

    Numbers in NumPy's memory travel together, as one array of each dtype.
    """

    def __init__(self, backward: Sweep, stretch: list, keep: Any) -> None:
        self._sweep, self._stretch = backward, stretch
        self.arrays: list = []
        self._numbers: dict[int, list] = {}  # by the dtype's number
        self._slots: dict[int, Any] = {}
        self._ids: dict[Any, int] = {}
        entries = tuple([self._entry(key, record) for key, record in stretch])
        self.names: list = [None, *self._ids]
        self.incoming = [key for key in self._ids if key in backward.cotangents]
        self._given = [(self._ids[key], self._cotangent(backward.cotangents[key])) for key in self.incoming]
        sparse = [any(key in leaves for leaves in backward.sparse) for key in self._ids]
        self._needed = [key in backward.needed for key in self._ids]
        self._keep = [key in keep for key in self._ids]
        self._sparse = sparse
        marks = tuple(self._needed), tuple(self._keep), tuple(sparse)
        met, start, reach = backward.poles
        self._poles = [int(met[0] != start)], 0, reach
        self.key = entries, tuple(self._given), marks, backward.xp, len(thread.batch), met[0] != start, reach

    # Describing

    def _id(self, key: Any) -> int | None:
        if not key:  # a number, or nothing that is differentiated
            return None
        return self._ids.setdefault(key, len(self._ids) + 1)

    def _slot(self, array: Any) -> Any:
        """Where the program finds an array."""
        slot = self._slots.get(id(array))
        if slot is None:
            kind = type(array)
            if _is_tracer(kind) or not hasattr(array, "dtype") or kind is Batched:
                raise Unfit
            if kind is np.ndarray and not array.ndim:
                group = self._numbers.setdefault(array.dtype.num, [])
                slot = array.dtype.num, len(group)
                group.append(array)
            else:
                slot = len(self.arrays)
                self.arrays.append(array)
            self._slots[id(array)] = slot
        return slot

    def _value(self, tensor: Any) -> Any:
        if tensor is None:
            return None
        if type(tensor) is tuple:
            return ("several", *map(self._value, tensor))
        return self._slot(tensor._array)

    def _cotangent(self, g: Any) -> Any:
        if type(g) is IndexedSlices:
            if type(g._dense_shape) is not tuple:
                raise Unfit
            return "rows", self._slot(g._values), self._slot(g._indices), g._dense_shape
        if type(g) is Batched:
            return "batched", self._slot(g.value), g.level
        return self._slot(g)

    def _entry(self, key: Any, record: tuple) -> tuple:
        if record[0] is PAIR:
            _, op, (x, y), shape_x, shape_y, dtype, *values = record
            return self._id(key), op, self._id(x), self._id(y), shape_x, shape_y, dtype.num, *map(self._value, values)
        pull, op, keys, shapes, kinds, kept, attributes, outs, described = record
        return (
            pull, op, tuple(map(self._id, keys)), shapes, tuple(_number(d) for d in kinds),
            tuple((name, self._value(value)) for name, value in kept.items()), frozen(attributes),
            tuple(map(self._id, outs)), tuple((shape, _number(d)) for shape, d in described),
        )  # fmt: skip

    def numbers(self) -> list:
        return [np.array(group) for group in self._numbers.values()]

    # Compiling

    def compiled(self) -> Callable:
        """The program: from arrays to the cotangents that are left, and where a rule gave none, by id."""
        build, given, xp, poles = self._builder(), self._given, self._sweep.xp, self._poles
        groups = list(self._numbers)
        marked = [{i for i, mark in enumerate(marks, 1) if mark} for marks in (self._needed, self._keep, self._sparse)]
        needed, keep, sparse = marked
        described: list = []
        blocked: list = []

        def traced(arrays: list, numbers: list) -> list:
            by_group = dict(zip(groups, numbers))

            def find(slot: Any) -> Any:
                return arrays[slot] if type(slot) is int else by_group[slot[0]][slot[1]]

            backward = Sweep(xp, True, True, needed, (sparse,), poles)
            backward.cotangents = {i: _rebuilt(g, find) for i, g in given}
            backward.run(build(find), keep)
            leaves: list = []
            blocked[:] = backward.blocked
            described[:] = [(i, _taken_apart(g, leaves)) for i, g in backward.cotangents.items()]
            return leaves

        program = jax_devices.jit(traced)

        def call(arrays: list, numbers: list) -> tuple[list, list]:
            with JAX.scope():
                leaves = program(arrays, numbers)
            return [(i, _rebuilt(g, leaves.__getitem__)) for i, g in described], blocked

        return call

    def _builder(self) -> Callable:
        """From a function that finds arrays to records of them, in order; it holds no array."""
        bare: list[tuple] = []
        for key, record in reversed(self._stretch):
            if record[0] is PAIR:
                values: Any = [self._value(v) for v in record[6:]]
                bare.append((self._id(key), (PAIR, record[1], tuple(map(self._id, record[2])), *record[3:6]), values, ()))
            else:
                values = {name: self._value(v) for name, v in record[5].items()}
                head = (*record[:2], tuple(map(self._id, record[2])), *record[3:5])
                bare.append((self._id(key), head, values, (record[6], tuple(map(self._id, record[7])), record[8])))

        def build(find: Callable) -> dict:
            def tensor(slot: Any) -> Any:
                if slot is None:
                    return None
                if type(slot) is tuple and slot[0] == "several":
                    return tuple(map(tensor, slot[1:]))
                return wrap(find(slot))

            return {
                i: (*head, *map(tensor, values)) if head[0] is PAIR
                else (*head, {name: tensor(v) for name, v in values.items()}, *tail)
                for i, head, values, tail in bare
            }  # fmt: skip

        return build


def _number(dtype: Any) -> int | None:
    return None if dtype is None else dtype.num


def _rebuilt(described: Any, find: Callable) -> Any:
    if type(described) is tuple and described[0] == "rows":
        return IndexedSlices._of(find(described[1]), find(described[2]), described[3])
    if type(described) is tuple and described[0] == "batched":
        return Batched(find(described[1]), described[2])
    return find(described)


def _taken_apart(g: Any, leaves: list) -> Any:
    def leaf(array: Any) -> int:
        leaves.append(array)
        return len(leaves) - 1

    if type(g) is IndexedSlices:
        return "rows", leaf(g._values), leaf(g._indices), tuple(g._dense_shape)
    if type(g) is Batched:
        return "batched", leaf(g.value), g.level
    return leaf(g)


class Accelerated(NamedTuple):
    """How a tape sweeps that has recorded work on a device."""

    xp: Any
    sweep: Callable


def install(namespace: Any) -> None:
    """Called when the jax namespace has been loaded."""
    global JAX, ON_DEVICES
    JAX, ON_DEVICES = namespace, Accelerated(namespace, sweep)
    RUN[namespace] = run
