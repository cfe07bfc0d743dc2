"""Branches and loop bodies: a piece of Python run on tracers of its own, with its derivatives, as pieces of program text.

A body is run under as many tapes as its results could be differentiated times. Each tape gives one more *level*: level 0 is
the body itself, level 1 pulls cotangents back through it, level 2 does so through level 1. All levels come from one run of
the Python code and stand in one text (a jaxpr), out of which `Text.function` cuts what is asked for. Values from outside the
body are constants of the text; those that a tape outside knows by their key are sources of the tapes inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradtape.core.context import activate, thread
from gradtape.core.context import level as batch_level
from gradtape.core.custom import make_custom_record, pull_custom
from gradtape.core.indexed_slices import IndexedSlices
from gradtape.core.op import OPS, append_record
from gradtape.core.tape import LEAF, GradientTape
from gradtape.core.variable import Variable
from gradtape.function.holding import settled
from gradtape.function.ranges import Range
from gradtape.function.state import CHECKS, State, Tracing, current, waits_anyway
from gradtape.ops.execution import Unstageable, staging
from gradtape.ops.tensor_array import TensorArray
from gradtape.tangents.forward import ForwardAccumulator, Listener
from gradtape.values.batched import Batched
from gradtape.values.convert import NUMBER, convert_to_tensor
from gradtape.values.shape import is_open
from gradtape.values.tensor import Tensor, wrap

# What variables and random numbers are inside a body


class Region(Tracing):
    """What variables hold inside a body, while its text is written down."""

    def __init__(self, place: tuple, draws: list[Any] | None = None) -> None:
        super().__init__(True, None, _cannot_lift)
        self.place = place
        self.drawn: list[tuple[Callable[[], Any], np.ndarray]] = []  # what to draw, and an example of it
        self._given = draws
        self._outer_draw: Any = None

    def __enter__(self) -> State:
        self._outer_draw = staging.draw
        State.__enter__(self)
        staging.draw = self.draw
        return self

    def __exit__(self, *_: object) -> None:
        staging.draw = self._outer_draw
        State.__exit__(self)

    def begin(self, variable: Variable) -> Tensor:
        return self.outside(variable)

    def draw(self, thunk: Callable[[], Any], example: Any) -> Any:
        """Random numbers: an input of the body."""
        if not isinstance(example, (np.ndarray, list)):
            raise Unstageable("this kind of random number")
        self.drawn.append((thunk, np.asarray(example)))
        return np.asarray(example) if self._given is None else self._given[len(self.drawn) - 1]

    def hold(self, variables: list[Variable], tensors: list[Tensor]) -> None:
        """Begin with these values of variables."""
        for variable, tensor in zip(variables, tensors):
            key = variable._key
            self.values[key] = wrap(tensor._array)
            self.values[key]._key = key
            self.lifted[key] = variable

    def bound(self, place: tuple, first: int) -> int:
        return self._outer.bound(place, first)  # type: ignore[union-attr]

    def within(self, array: Any, end: int | tuple[int, ...], always: bool) -> None:
        if always and waits_anyway():
            self._require(CHECKS, Range(array, end, always).failed())

    def _create(self, variable: Variable, tensor: Tensor) -> None:
        self._outer._create(variable, tensor)  # type: ignore[union-attr]


def _cannot_lift(name: Any, array: Any) -> Any:
    raise Unstageable(f"a new input ({name[0]}) inside a loop or branch")


class Discovery(Region):
    """A first run of a body: which variables it reads and assigns, what it draws. Nothing of it reaches the program."""

    def __init__(self, place: tuple) -> None:
        super().__init__(place)
        self.holes: dict[int, tuple[Any, Any]] = {}  # by identity: name, array

    def begin(self, variable: Variable) -> Tensor:
        array = self._peek(variable)._array
        if array.dtype.kind == "O":
            raise Unstageable(f"the string variable {variable.name!r}")
        tensor = wrap(hole(("variable", variable._key), array, self.holes))
        tensor._key = variable._key
        return tensor

    def _peek(self, variable: Variable) -> Tensor:
        """The value that surrounds the body, without making it an input of the program yet."""
        state, key = self._outer, variable._key
        while state is not None:
            if key in state.values:
                return state.values[key]
            if state.snapshot is not None and key in state.snapshot.values:
                return state.snapshot.values[key]
            state = state._outer
        return settled(variable)

    def draw(self, thunk: Callable[[], Any], example: Any) -> Any:
        return hole(("draw", len(self.drawn)), super().draw(thunk, example), self.holes)

    def settle(self) -> None:
        """Make what was read an input of what surrounds the body."""
        surrounding = current()
        for variable in self.lifted.values():
            surrounding.read(variable)  # type: ignore[union-attr]


def hole(name: Any, array: Any, holes: dict[int, tuple[Any, Any]]) -> Any:
    """A tracer for any array like this one: the text that is being written names it among its constants."""
    import jax
    import jax.numpy as jnp

    if "Tracer" not in type(array).__name__:
        with jax.ensure_compile_time_eval():
            array = jnp.array(array, copy=True)
    holes[id(array)] = name, array
    return jnp.copy(array)


# Who looks on


class _Known(dict):
    """The records of a tape that knows what the recorders around it know."""

    def __init__(self, around: tuple) -> None:
        super().__init__()
        self.outside: dict = {}  # the keys that it has from there
        self._around = [recorder.records for recorder in around]

    def __contains__(self, key: Any) -> bool:
        if super().__contains__(key):
            return True
        if key is None or key is NUMBER or not any(key in records for records in self._around):
            return False
        self[key] = self.outside[key] = LEAF
        return True


class Onlooker(GradientTape):
    """A tape inside a body, for the recorders around it: what they know are its sources."""

    def __init__(self, around: tuple) -> None:
        super().__init__()
        self._around = around

    def _clear(self) -> None:
        super()._clear()
        self.records = _Known(self._around)
        self.records[self] = LEAF  # so that it counts as true: an op does not ask a tape that knows nothing

    def accessed(self, variable: Variable) -> None:
        for recorder in self._around:
            if variable._key not in recorder.variables:
                recorder.accessed(variable)

    def read(self) -> tuple[list, list]:
        """The keys of what was read from outside: those that somebody there knows, and constants."""
        records = list(self.records.values())
        used = dict.fromkeys(key for record in records if record[0] is not None for key in record[2] if key)
        constants = [key for key in used if key not in self.records]
        return [key for key in used if key in self.records.outside], constants


def order() -> int:
    """How many times what happens now may be differentiated: a tape once, forward mode twice, as it transposes rules."""
    return sum(_TIMES[kind] for recorder in thread.recorders for kind in _TIMES if isinstance(recorder, kind))


_TIMES: dict[type, int] = {GradientTape: 1, ForwardAccumulator: 2, Listener: 1}


def is_known(tensor: Tensor) -> bool:
    """Whether a recorder of this thread tracks the tensor."""
    key = tensor._key
    return key is not None and key is not NUMBER and any(key in recorder.records for recorder in thread.recorders)


def depends(records: dict, leaves: list) -> bool:
    """Whether a first run of a body did, or gave back, something that the recorders around it know."""
    did = any(record[0] is not None for record in records.values())
    parts = [part for leaf in leaves for part in (leaf._tensors() if isinstance(leaf, TensorArray) else [leaf])]
    return did or any(isinstance(part, Tensor) and part._key in records for part in parts)


@contextmanager
def watched_by(tapes: list[Onlooker]) -> Iterator[None]:
    """Context manager: these are the only recorders, the first of them innermost."""
    around = thread.recorders
    try:
        activate(())
        for tape in reversed(tapes):
            tape.__enter__()
        yield
    finally:
        activate(around)


def record(name: str, grad_fn: Callable, outs: list[Tensor], inputs: list[Tensor]) -> list[Tensor]:
    """The results, new tensors, whose producer on every tape is ``grad_fn``; forward mode calls it at once."""

    def make() -> tuple | None:
        made = make_custom_record(name, grad_fn, tuple(outs), inputs, [], inputs)
        if made is not None:
            made[1].pull = _pull
        return made

    append_record(thread.recorders, inputs, make, tuple(outs), tuple(inputs))
    return outs


def sealed(name: str, outs: list[Tensor], inputs: list[Tensor]) -> list[Tensor]:
    """The results of a last derivative: to differentiate them is to ask for more than the tapes around the body announced."""

    def refuse(*upstream: Tensor) -> list:
        raise Unstageable(f"a derivative of {name} for a tape that began after it")

    return record(name, refuse, outs, inputs)


def _pull(record: tuple, gs: tuple, sweep: Any) -> None:
    """Pull cotangents back through a record of ours; the rows of a Jacobian all at once."""
    import jax

    rows = [type(g) is Batched and g.level > batch_level() for g in gs]
    values = [g.value for g, is_row in zip(gs, rows) if is_row]
    if not values or any(isinstance(value, Tensor) for value in values):
        pull_custom(record, gs, sweep)
        return
    _, op, keys, shapes, kinds, _, attributes, _, _ = record
    connected: list[int] = []

    def run(*arrays: Any) -> list:
        rest = iter(arrays)
        found = attributes["grad_fn"](*(wrap(next(rest)) if is_row else _tensor(g) for g, is_row in zip(gs, rows)))
        connected[:] = [i for i, g in enumerate(found) if g is not None]
        return [found[i]._array for i in connected]

    top = max(g.level for g, is_row in zip(gs, rows) if is_row)
    with _unchecked():
        arrays = jax.vmap(run)(*values)
    for i, array in zip(connected, arrays):
        if keys[i] in sweep.needed:
            sweep.add(op, keys[i], Batched(array, top), shapes[i], kinds[i])


@contextmanager
def _unchecked() -> Iterator[None]:
    """Context manager: derivatives of a body are written down here, and what they would check is unknown outside of it."""
    state: Any = current()
    needs = dict(state.needs)
    try:
        yield
    finally:
        state.needs = needs


def _tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else wrap(value)


def stub(key: Any, shape: tuple[int, ...], dtype: Any) -> Tensor:
    """A tensor for a record's input of which only the key, shape and dtype matter."""
    import jax

    tensor = wrap(jax.ShapeDtypeStruct(shape, dtype))
    tensor._key = key
    return tensor


# Program text


class Text:
    """What jax wrote down of one run: names of its inputs, and functions that compute some of its values.

    The last outputs are inputs too, under the names ``opened``: the run made something up for them.
    """

    def __init__(self, closed: Any, inputs: list[Any], holes: dict[int, tuple[Any, Any]], opened: Any = ()) -> None:
        text = self._text = closed.jaxpr
        end = len(text.outvars) - len(opened)
        self._variables = {**dict(zip(inputs, text.invars)), **dict(zip(opened, text.outvars[end:]))}  # by name
        self._equations = [e for e in text.eqns if not set(text.outvars[end:]) & set(e.outvars)] if opened else text.eqns
        self._constants = {}
        for variable, value in zip(text.constvars, closed.consts):
            if id(value) in holes:
                self._variables[holes[id(value)][0]] = variable
            else:
                self._constants[variable] = value
        self.outputs = list(text.outvars[:end])

    def constants(self, outputs: list) -> list:
        """The values from outside that these outputs depend on."""
        used = self._used(self._needed(outputs), outputs)
        return [value for variable, value in self._constants.items() if variable in used]

    def reads(self, outputs: list) -> set:
        """The names of the inputs that these outputs depend on."""
        used = self._used(self._needed(outputs), outputs)
        return {name for name, variable in self._variables.items() if variable in used}

    def function(self, outputs: list, names: list, effects: bool = False) -> Callable[..., list]:
        """From arrays in the order of ``names`` to these outputs; with ``effects``, it also prints what the body prints."""
        return self._cut(self._needed(outputs, effects), outputs, [self._variables.get(name) for name in names])

    def two_functions(self, first: list, second: list, names: list) -> tuple[Callable, Callable, list, list[int]]:
        """``first`` as a function that also gives what ``second`` needs of it, and ``second`` as a function of that.

        Also the names that the second function reads behind it, and the shapes and dtypes of what is handed over. What does
        not depend on ``names`` is computed on both sides rather than handed over.
        """
        inputs = {self._variables[name] for name in names if name in self._variables}
        forward = self._needed(first, effects=True)
        varying = set(inputs)
        for equation in forward:
            if not varying.isdisjoint(v for v in equation.invars if not _is_literal(v)):
                varying.update(equation.outvars)
        made = {v for e in forward for v in e.outvars if v in varying}
        done = {id(e) for e in forward if not made.isdisjoint(e.outvars)}
        backward = [e for e in self._needed(second) if id(e) not in done]
        used = self._used(backward, second)
        shared = [v for v in dict.fromkeys(v for e in forward for v in e.outvars) if v in made and v in used]
        rest = [name for name, variable in self._variables.items() if variable in used]
        one = self._cut(forward, [*first, *shared], [self._variables.get(name) for name in names])
        other = self._cut(backward, second, [*shared, *(self._variables[name] for name in rest)])
        return one, other, rest, [v.aval for v in shared]

    def _needed(self, outputs: list, effects: bool = False) -> list:
        """The equations that the outputs depend on, and those with effects."""
        wanted = {v for v in outputs if not _is_literal(v)}
        kept = []
        for equation in reversed(self._equations):
            if (effects and equation.effects) or not wanted.isdisjoint(equation.outvars):
                kept.append(equation)
                wanted.update(v for v in equation.invars if not _is_literal(v))
        return kept[::-1]

    def _used(self, equations: list, outputs: list) -> set:
        return {v for e in equations for v in e.invars if not _is_literal(v)} | {v for v in outputs if not _is_literal(v)}

    def _cut(self, equations: list, outputs: list, inputs: list) -> Callable[..., list]:
        from jax import lax
        from jax.extend import core

        used = self._used(equations, outputs)
        constants = {v: value for v, value in self._constants.items() if v in used}
        places = [i for i, variable in enumerate(inputs) if variable in used]
        debug = self._text.debug_info
        debug = debug.with_unknown_names() if hasattr(debug, "with_unknown_names") else debug
        invars = [*constants, *(inputs[i] for i in places)]
        short = self._text.replace(constvars=[], invars=invars, outvars=list(outputs), eqns=equations, debug_info=debug)
        program = core.jaxpr_as_fun(core.ClosedJaxpr(short, ()))
        kinds = [v.aval.dtype for v in outputs]

        def run(*arrays: Any) -> list:
            outs = program(*constants.values(), *(arrays[i] for i in places))
            return [lax.convert_element_type(out, kind) for out, kind in zip(outs, kinds)]  # not weak any more

        return run


def _is_literal(variable: Any) -> bool:
    from jax.extend import core

    return isinstance(variable, core.Literal)


# Bodies


class Level:
    """One derivative of a body: the names of its inputs and the variables of its outputs, by what they are in a loop.

    ``carry`` goes from step to step, ``rows`` are there anew in each step, ``fixed`` are the same in all. Of the outputs,
    ``sums`` are added up over the steps; those at the end belong to ``keys``, which are those of values from outside.
    """

    def __init__(self, carry: list, rows: list, fixed: list) -> None:
        self.carry, self.rows, self.fixed = carry, rows, fixed  # lists of (name, tensor)
        self.carry_out: list = []  # tensors while the text is being made, then its variables; None: no gradient
        self.row_out: list = []
        self.sums: list = []
        self.row_labels: list = []  # what they are: the number of a result, the name of the input whose gradient it is
        self.sum_labels: list = []  # the same; at the end come the keys
        self.keys: list = []
        self.constants: list = []

    def outputs(self) -> list:
        return [*self.carry_out, *self.row_out, *self.sums]


class Body:
    """A function of a carry and a row of arrays, as text, with ``order`` derivatives.

    ``run(carry, rows)`` gives the next carry and a row of results, as lists of tensors. ``free`` says for each part of the
    carry whether gradients flow through it; those of variables do not.
    """

    def __init__(self, run: Callable, carry: list, rows: list, order: int, free: list[bool]) -> None:
        import jax

        self.order = order
        self.free = free
        self._run = run
        self._holes: dict[int, tuple[Any, Any]] = {}
        self._open: list[tuple[Any, Any]] = []  # names and arrays of those that have an open length
        self._counts = len(carry), len(rows)
        names = [*(("carry", i) for i in range(len(carry))), *(("row", i) for i in range(len(rows)))]
        closed = jax.make_jaxpr(self._trace)(*carry, *rows)
        self.text = Text(closed, names, self._holes, [name for name, _ in self._open])
        self._fill(self.text.outputs)
        del self._run, self._holes, self._open

    def _trace(self, *arrays: Any) -> list:
        count = self._counts[0]
        carry, rows = [wrap(a) for a in arrays[:count]], [wrap(a) for a in arrays[count:]]
        around = thread.recorders
        tapes = [Onlooker(around) for _ in range(self.order)]
        with watched_by(tapes):
            sources = [t for t, is_free in zip(carry, self.free) if is_free] + [t for t in rows if t.dtype.is_trainable]
            for tape in tapes:
                tape.watch(sources)
            level = Level(_named("carry", carry), _named("row", rows), [])
            carry_out, row_out = self._run(carry, rows)
            level.carry_out, level.row_out = [_result(t) for t in carry_out], [_result(t) for t in row_out]
            level.row_labels = list(range(len(row_out)))
            self.levels = [level]
            with _unchecked():
                for number, tape in enumerate(tapes, 1):
                    tape.__exit__(None, None, None)
                    free = self.free if number == 1 else [True] * len(level.carry)
                    level = self._derived(number, level, tape, tapes[number:], free)
                    self.levels.append(level)
        outs = [t._array for level in self.levels for t in level.outputs() if t is not None]
        return outs + [array for _, array in self._open]

    def _derived(self, number: int, level: Level, tape: Onlooker, others: list[Onlooker], free: list[bool]) -> Level:
        """The level that pulls cotangents back through ``level``."""

        def upstream(labels: Any, tensors: list) -> list:
            wanted = [((number, label), t) for label, t in zip(labels, tensors) if t is not None and t.dtype.is_trainable]
            return [(name, self._hole(name, t, others)) for name, t in wanted]

        keys, constants = tape.read()
        flowing = [t if is_free else None for t, is_free in zip(level.carry_out, free)]
        after = upstream([("after", i) for i in range(len(flowing))], flowing)
        row_ups, sum_ups = upstream(level.row_labels, level.row_out), upstream(level.sum_labels, level.sums)
        before = [named for named, is_free in zip(level.carry, free) if is_free]
        derived = Level(after, [*level.carry, *level.rows, *row_ups], [*level.fixed, *sum_ups])
        outs = [t for t in (*flowing, *level.row_out, *level.sums) if t is not None and t.dtype.is_trainable]
        sources = [t for _, t in (*before, *level.rows, *level.fixed)]
        stubs = [stub(key, (), np.dtype(np.float32)) for key in keys]
        seeds = [t for _, t in (*after, *row_ups, *sum_ups)]
        found = tape.gradient(outs, [*sources, *stubs], seeds) if outs and (sources or stubs) else []
        found = [convert_to_tensor(g) if isinstance(g, IndexedSlices) else g for g in found] or [None] * len(sources + stubs)
        ends = len(before), len(before) + len(level.rows)
        derived.carry_out = [_or_zeros(g, t) for g, (_, t) in zip(found, before)]
        if others:  # somebody may differentiate by what the carry was before each step
            names = [(number, ("link", i)) for i in range(len(before))]
            links = [(name, self._hole(name, t, others)) for name, (_, t) in zip(names, before)]
            derived.rows += links
            derived.carry_out = [OPS["add"](g, link) for g, (_, link) in zip(derived.carry_out, links)]
        derived.row_out, derived.sums = found[ends[0] : ends[1]], found[ends[1] :]
        derived.row_labels = [name for name, _ in level.rows]
        derived.sum_labels = [*(name for name, _ in level.fixed), *keys]
        derived.keys, derived.constants = keys, constants
        return derived

    def _hole(self, name: Any, like: Tensor, watchers: list[Onlooker]) -> Tensor:
        """A new input, named among the constants of the text; with an open length, which none has, among the outputs."""
        import jax.numpy as jnp

        shape, dtype = like._array.shape, like._array.dtype
        if any(map(is_open, shape)):
            tensor = wrap(jnp.zeros(shape, dtype))
            self._open.append((name, tensor._array))
        else:
            tensor = wrap(hole(name, np.zeros(shape, dtype), self._holes))
        for tape in watchers:
            tape.watch(tensor)
        return tensor

    def _fill(self, variables: list) -> None:
        """Variables of the text instead of tensors."""
        rest = iter(variables)
        for level in self.levels:
            for kind in ("carry_out", "row_out", "sums"):
                setattr(level, kind, [None if t is None else next(rest) for t in getattr(level, kind)])
            for kind in ("carry", "rows", "fixed"):
                setattr(level, kind, [name for name, _ in getattr(level, kind)])


def _named(kind: str, tensors: list[Tensor]) -> list:
    return [((kind, i), t) for i, t in enumerate(tensors)]


def _result(value: Tensor) -> Tensor:
    """A result of a body, with a key of its own."""
    import jax.numpy as jnp

    out = OPS["identity"](value)
    if type(out) is Tensor:
        key, out = out._key, wrap(jnp.asarray(out._array))
        out._key = key
    return out


def _or_zeros(g: Tensor | None, like: Tensor) -> Tensor:
    import jax.numpy as jnp

    return wrap(jnp.zeros(like._array.shape, like._array.dtype)) if g is None else g
