"""From a Python function to XLA programs: run it once on tracers, and compile what jax wrote down.

The function's arguments are inputs. Variables and random numbers are found while it runs: a hole is made for each, which the
finished text (a jaxpr) names among its constants, and which becomes an input there. For a call under a tape the same run goes
on to pull gradients back; the text is then cut in two, and what the second half needs of the first is handed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import chain, starmap
from types import MappingProxyType
from typing import Any

import numpy as np

from gradtape.core.context import activate, thread
from gradtape.core.indexed_slices import IndexedSlices
from gradtape.core.tape import GradientTape, safety
from gradtape.core.variable import Variable
from gradtape.function.cache import compile_at_first_run
from gradtape.function.holding import LOCK, Holder
from gradtape.function.inputs import Inputs
from gradtape.function.journal import recorded_if_asked
from gradtape.function.ranges import on_host
from gradtape.function.results import Results, as_tensors
from gradtape.function.signature import Call
from gradtape.function.state import CHECKS, RANGES, VALUE, Snapshot, Tracing, held_by, hold_all
from gradtape.values.convert import NUMBER
from gradtape.values.placement import here
from gradtape.values.places import is_ours
from gradtape.values.tensor import Tensor, wrap

UNITS_FROM = 1 << 14
"""Bytes from which on it is worth to keep axes of length 1 out of a program's results."""


def is_tracer(array: Any) -> bool:
    """Whether this stands for a number that is not known yet."""
    return "Tracer" in type(array).__name__


class Piece:
    """A compiled stretch of the program, with the names of its inputs: first those that are ``assigned``, in that order.

    It writes over those that are ``donated``: their new values have the types that ``assigned`` has for them.
    """

    def __init__(
        self, text: Any, equations: list, inputs: dict, outputs: list, assigned: Any = MappingProxyType({}), donate: bool = True
    ) -> None:
        import jax
        from jax.extend import core

        from gradtape.xp.jax_devices import compiler_options

        used = {v for e in equations for v in e.invars if not isinstance(v, core.Literal)}
        used.update(v for v in outputs if not isinstance(v, core.Literal))
        wanted = {variable: name for variable, name in inputs.items() if variable in used}
        order = {name: i for i, name in enumerate(assigned)}
        wanted = dict(sorted(wanted.items(), key=lambda item: order.get(item[1], len(order))))
        self.names = list(wanted.values())
        self.effects = any(e.effects or "callback" in e.primitive.name for e in _all(equations))  # Python may run, and raise
        donate = donate and not self.effects
        self.donated = [name for v, name in wanted.items() if donate and assigned.get(name) == v.aval]
        short = _changed(text, constvars=[], invars=list(wanted), outvars=outputs, eqns=equations)
        self.text = core.jaxpr_as_fun(core.ClosedJaxpr(short, ()))  # for calls that become part of another program
        places = [self.names.index(name) for name in self.donated]
        self.compiled = jax.jit(self.text, donate_argnums=places, compiler_options=compiler_options())
        self.run: Callable = self.compiled
        self.size = sum(1 for _ in _all(equations))
        self.types = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in wanted]


def _changed(text: Any, **parts: Any) -> Any:
    """The text with other parts; its inputs and outputs have no names."""
    debug = text.debug_info.with_unknown_names() if hasattr(text.debug_info, "with_unknown_names") else text.debug_info
    return text.replace(**parts, debug_info=debug)


def _with_zero(equations: list, variable: Any) -> list:
    """The equations, with 0 for a variable."""
    from jax.extend import core

    zero = core.Literal(np.zeros((), np.int32), variable.aval)
    reads = lambda e: any(v is variable for v in e.invars)
    return [e.replace(invars=[zero if v is variable else v for v in e.invars]) if reads(e) else e for e in equations]


def _all(equations: list) -> Iterator[Any]:
    """The equations, and those inside of them: in loops, branches and functions."""
    for equation in equations:
        yield equation
        for value in equation.params.values():
            for part in value if isinstance(value, (list, tuple)) else (value,):
                yield from _all(getattr(getattr(part, "jaxpr", part), "eqns", ()))  # type: ignore[arg-type]


def _needed(equations: list, outputs: list) -> list:
    """The equations that the outputs depend on."""
    wanted = {id(v) for v in outputs}
    kept = []
    for equation in reversed(equations):
        if equation.effects or any(id(v) in wanted for v in equation.outvars):
            kept.append(equation)
            wanted.update(id(v) for v in equation.invars)
    return kept[::-1]


def _keys(records: Any) -> Any:
    return records if isinstance(records, dict) else ()


def _constants(records: dict) -> set:
    """The keys of what recorded operations read, and no operation made: should a tape watch one, it is not a constant."""
    used = {key for record in records.values() if record[0] is not None for key in record[2]}
    return used - records.keys() - {None, NUMBER}


class _Captured:
    """A recorder that records nothing, and notes the keys of values that the recorders around the call know."""

    limit = float("inf")

    def __init__(self, recorders: tuple) -> None:
        self.records: Any = self
        self.variables: Any = self
        self.keys: set = set()
        self._known = [recorder.records for recorder in recorders]
        self.safe = safety(recorders)

    def __contains__(self, key: Any) -> bool:
        if key is not None and any(key in known for known in self._known):
            self.keys.add(key)
        return False

    def accessed(self, variable: Variable) -> None:
        """Variables are lifted, not captured."""

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0


class Violated(Exception):
    """A condition that the program checks does not hold: the function as it is written tells which."""


class MoreSteps(Exception):
    """A loop took more steps than its program keeps: it has to be made with these bounds."""

    def __init__(self, bounds: dict) -> None:
        super().__init__(bounds)
        self.bounds = bounds


class Program:
    """One compiled signature of a function: inputs, state, results; and the gradients, if it was made under a tape."""

    def __init__(
        self, body: Callable, call: Call, *, may_create: bool, snapshot: Snapshot | None, taped: bool,
        bounds: dict | None = None, donate: bool = True, wait: bool = True, looks: bool = True,
    ) -> None:  # fmt: skip
        from jax import block_until_ready, default_backend, effects_barrier
        from jax.numpy import copy

        from gradtape.xp import jax as JAX
        from gradtape.xp import jax_devices

        self._scope, self._copy, self._devices = JAX.scope, copy, jax_devices
        self._block, self._barrier = block_until_ready, effects_barrier
        self.constants: set = set()
        self._restores = True  # variables are what they were if the call has to be run again
        self.broken: dict[int, tuple] | None = None  # if sources are without gradient: the reasons, as far as they are known
        self._holes: dict[int, tuple[Any, Any]] = {}  # by identity: name, array
        self.state: Any
        self.state = state = Tracing(may_create, snapshot, self._lift)
        state.bounds = self._bounds = dict(bounds or {})
        self._captured = _Captured(thread.recorders)
        self._looks = looks  # whether the host will see its arguments
        self._narrow = wait and default_backend() == "cpu"  # on other devices a reshape is a program of its own
        around = thread.recorders
        with JAX.scope(), state:
            try:
                activate((self._captured,) if taped else ())
                text, counts = self._trace(body, call, taped)
            finally:
                activate(around)
        self.created = bool(state.created) or state.made_outside
        self.draws = state.draws
        self.variables = list(state.lifted.values())
        self._changeable = {  # the shapes of those variables whose shape may change
            name[1]: hole.shape for name, hole in self._holes.values()
            if name[0] == "variable" and not state.lifted[name[1]].shape.is_fully_defined()
        }  # fmt: skip
        self.captures = bool(self._captured.keys - state.lifted.keys())
        with JAX.scope():
            self._compile(text, counts, donate)
        for piece in filter(None, (self.forward, self.backward)):
            compile_at_first_run(piece, getattr(body, "__name__", "a function"))
        self.stateful = bool(self.assigned or self.constant)
        # From when a call reads its variables to when it assigns them; not while the user's Python may be called.
        self.lock: Any = LOCK if self.assigned and not self.forward.effects else nullcontext()
        names = [("variable", v._key) for v in self.assigned]
        read, donated = ([name in part for name in names] for part in (self.forward.names, self.forward.donated))
        self.holder = Holder(self.assigned, read, donated, VALUE)
        self._by_key = {v._key: v for v in self.variables}
        self._inputs = Inputs(self.forward.names[sum(read) :], self._constants, self._by_key)
        self._direct: set[tuple] = set()  # the kinds of inputs for which jax calls the program without Python code of its own
        self.holds = not taped and snapshot is None and not self.forward.effects and self._restores
        self.always_fits = self.holds and not (self.captures or self._changeable or self._counted)
        self.floating = [t.dtype.is_trainable for t in self.results.tensors]
        self.results.tensors = []
        self.derivative: Any = None  # its gradient as a function, made when somebody differentiates that
        self._wait = wait
        self.host: Any = None  # whether results live in this machine's memory; known after the first run
        del self._holes, self._captured, self._narrow, self.state

    # Making it

    def _lift(self, name: Any, array: Any) -> Any:
        import jax
        import jax.numpy as jnp

        with jax.ensure_compile_time_eval():
            hole = jax.device_put(array, may_alias=False)
        self._holes[id(hole)] = name, hole
        return jnp.copy(hole)

    def _trace(self, body: Callable, call: Call, taped: bool) -> tuple[Any, tuple[int, int]]:
        import jax
        import jax.numpy as jnp

        counts: list[int] = []
        run = recorded_if_asked(body, self.state)

        def traced(*arrays: Any) -> list:
            tensors = [wrap(a) for a in arrays]
            args, kwargs = call.rebuild(tensors)
            self.state.trace = getattr(jnp.zeros(()), "_trace", None) if self._looks else None
            tape = GradientTape(safe=self._captured.safe)
            with tape if taped else nullcontext():
                if taped:
                    self.state.on_first_read = tape.accessed
                    tape.watch([t for t in tensors if t.dtype.is_trainable])
                result = as_tensors(run(*args, **kwargs), getattr(body, "__name__", "function"))
            self.results = Results(result)
            self._counted = list(self.state.needs)
            outs = [t._array for t in (*self.results.tensors, *self.state.needs.values())]
            outs, self._shapes = _without_units(outs) if self._narrow else (outs, None)
            changed = [(v, self.state.values[k]) for k, v in self.state.assigned.items()]
            self.constant = [(v, t._array) for v, t in changed if type(t) is Tensor]
            self.assigned = [v for v, t in changed if type(t) is not Tensor]
            new = [t._array for _, t in changed if type(t) is not Tensor]
            outs += new if taped else self._unless_failed(new)
            counts[:] = [len(self.results.tensors) + len(self._counted), len(outs)]
            outs += self._gradients(tape, tensors) if taped else []
            return outs + [indices.array for indices in self.state.ranges]

        shapes = [jax.ShapeDtypeStruct(t._array.shape, t._array.dtype) for t in call.tensors]
        return jax.make_jaxpr(traced)(*shapes), (counts[0], counts[1])

    def _unless_failed(self, new: list) -> list:
        """The new values of variables; the old ones if the call will be run again, for their memory is written over."""
        import jax.numpy as jnp

        needs = dict(self.state.needs)
        if not needs:
            return new
        none = wrap(jnp.zeros((), np.int32))
        failed = (needs.pop(CHECKS, none)._array > 0) | (needs.pop(RANGES, none)._array > 0)
        for place, count in needs.items():
            failed = failed | (count._array > self._bounds[place])
        old = [self.state.first(v) for v in self.assigned]
        self._restores = all((a.shape, a.dtype) == (b.shape, b.dtype) for a, b in zip(old, new))
        return [jnp.where(failed, a, b) for a, b in zip(old, new)] if self._restores else new

    def _gradients(self, tape: GradientTape, tensors: list[Tensor]) -> list:
        """The cotangents of all sources, sparse ones in their parts; ``self.connected``: which there are, or their shapes."""
        self.constants = _constants(tape.records)
        targets = [t for t in self.results.tensors if t.dtype.is_trainable]
        upstream = [wrap(self._lift(("upstream", i), np.zeros(t._array.shape, t._array.dtype))) for i, t in enumerate(targets)]
        sources = [t for t in tensors if t.dtype.is_trainable]
        sources += [v for v in self.state.lifted.values() if v._differentiable]  # type: ignore[misc]
        found = tape.gradient(targets, sources, upstream) if targets and sources else [None] * len(sources)
        self.connected = [None if g is None else getattr(g, "dense_shape", "dense") for g in found]
        missing = [i for i, g in enumerate(found) if g is None]
        if missing and targets:
            self.broken = _reasons(tape, targets, {i: sources[i] for i in missing})
        return [part._array for g in found if g is not None for part in _parts(g)]

    def _compile(self, closed: Any, counts: tuple[int, int], donate: bool) -> None:
        import jax

        text = closed.jaxpr
        inputs = {v: ("argument", i) for i, v in enumerate(text.invars)}
        self._constants = {}
        for i, (variable, value) in enumerate(zip(text.constvars, closed.consts)):
            name, _ = self._holes.get(id(value), (("constant", i), None))
            inputs[variable] = name
            if name[0] == "constant":
                self._constants[name] = jax.device_put(np.asarray(value))  # once, not at every call
        self.backward: Piece | None = None
        self._handed_over = 0
        self.outputs, changes = counts[0], counts[1] - counts[0]
        text = self._looked_at(text, inputs)
        end = self.outputs + changes
        equations = _needed(text.eqns, text.outvars[:end])
        outputs = list(text.outvars[:end])
        if len(text.outvars) > end:
            self.forward, self._handed_over, self.backward = _cut(text, equations, inputs, outputs, text.outvars[end:])
        else:
            types = [v.aval for v in outputs[self.outputs :]]
            assigned = {("variable", v._key): kind for v, kind in zip(self.assigned, types)}
            self.forward = Piece(text, equations, inputs, outputs, assigned, donate)

    def _looked_at(self, text: Any, inputs: dict) -> Any:
        """The text without what the host will have seen before it runs; ``self.checks``: how it looks."""
        ranges = self.state.ranges
        end = len(text.outvars) - len(ranges)
        outs, places = text.outvars[:end], text.outvars[end:]
        looks = [on_host(text.eqns, self._constants, inputs, v, indices.end) for v, indices in zip(places, ranges)]
        self.checks = list({look.key: look for look in looks if look is not None}.values())
        self._looks_at = sorted({which for look in self.checks for which in look.arguments})
        unseen = any(look is None and indices.always for look, indices in zip(looks, ranges))
        if RANGES not in self._counted or unseen:
            return _changed(text, outvars=outs)
        at = self.outputs - len(self._counted) + self._counted.index(RANGES)
        self._counted.remove(RANGES)
        if self._shapes is not None:
            del self._shapes[at]
        self.outputs -= 1
        return _changed(text, eqns=_with_zero(text.eqns, outs[at]), outvars=outs[:at] + outs[at + 1 :])

    # Running it

    def accepts(self, tensors: Any) -> bool:
        """Whether all indices are in range, as far as the host can tell from the arguments."""
        arrays: dict[int, np.ndarray] = {}
        for which in self._looks_at:
            array = tensors[which]._array
            if type(array) is not np.ndarray:
                if is_tracer(array) or not self._devices.on_host(array):
                    return True  # it would have to be waited for
                array = np.asarray(array)
            arrays[which] = array
        return all(check(arrays) for check in self.checks)

    def captures_tracked(self) -> bool:
        """Whether a recorder of this thread tracks a tensor that is a constant to the program."""
        return self.captures or any(not self.constants.isdisjoint(_keys(r.records)) for r in thread.recorders)

    def snapshot(self, given: Snapshot | None, draws: list) -> Snapshot:
        """What a call begins with: the variables as they are, or were, and these random numbers."""
        return Snapshot({**held_by(self.variables), **(given.values if given else {})}, draws)

    def fits(self, given: Snapshot | None) -> bool:
        """Whether variables still have the shapes that the program was made for."""
        if not self._changeable:
            return True
        values = {**held_by([self._by_key[key] for key in self._changeable]), **(given.values if given else {})}
        return all(values[key]._array.shape == shape for key, shape in self._changeable.items())

    def run(self, arrays: list, start: Snapshot, commit: bool) -> tuple[list[Tensor], list]:
        """The results of one call that begins with ``start``, and what its backward pass will need."""
        with self._scope():
            inputs = [self._input(name, arrays, start) for name in self.forward.names]
            for i, name in enumerate(self.forward.names):
                if name in self.forward.donated:
                    inputs[i] = self._copy(inputs[i])
            outs = self._called(self.forward, inputs)
            if self.forward.effects:  # Python may raise until the last of them is there
                outs = self._block(outs)
                self._barrier()
        tensors, end = self._complete(self._wrapped(outs[: self.outputs], self._shapes)), self.outputs + len(self.assigned)
        if commit:
            hold_all(
                [*self.assigned, *(variable for variable, _ in self.constant)],
                [*self._wrapped(outs[self.outputs : end]), *(wrap(value) for _, value in self.constant)],
            )
        return tensors, outs[end:]

    def _complete(self, tensors: list[Tensor]) -> list[Tensor]:
        """The results, if all steps of loops were kept that their gradients need."""
        if not self._counted:
            return tensors
        results = tensors[: -len(self._counted)]
        counts = {place: int(t) for place, t in zip(self._counted, tensors[len(results) :])}
        if counts.pop(CHECKS, 0) | counts.pop(RANGES, 0):
            raise Violated
        if any(count > self._bounds[place] for place, count in counts.items()):
            raise MoreSteps({p: max(b, 1 << (counts.get(p, 1) - 1).bit_length()) for p, b in self._bounds.items()})
        return results

    def step(self, tensors: Any, draws: list | None = None) -> Any:
        """The result of a call of which nobody wants a gradient; variables stay arrays of the program until they are read."""
        if draws is None:
            draws = [draw() for draw in self.draws] if self.draws else []
        outs: list = []
        with LOCK, self._scope():
            held, others = self.holder.begin(), self._inputs.now(tensors, draws)
            kinds = here.device, *map(type, others)
            spare = None if kinds in self._direct else self.holder.spare()
            inputs = self._together(held + others)
            try:  # An interruption is noticed when the call has returned: what it has written over must be replaced then.
                outs.extend(chain.from_iterable(starmap(self.forward.run, (inputs,))))
            finally:
                if outs:
                    self.holder.arrays = outs[self.outputs :]  # no call, at the beginning of which it would be noticed again
                elif spare is not None:
                    self.holder.restore(spare)
            self._direct.add(kinds)
        del inputs  # here, while the program still runs
        results = self._wrapped(outs[: self.outputs], self._shapes)
        if self._counted:
            results = self._complete(results)
        for variable, value in self.constant:
            variable._put(value)
        return self.results.assemble(results)

    def pull(self, arrays: list, start: Snapshot, handed_over: list, upstream: list) -> list:
        """The gradients of all sources."""
        if self.backward is None:
            return [None] * len(self.connected)
        with self._scope():
            inputs = [self._input(name, arrays, start, handed_over, upstream) for name in self.backward.names]
            found = iter(self._wrapped(self._called(self.backward, inputs)))
        return [_put_together(shape, found) for shape in self.connected]

    def _input(self, name: tuple, arrays: list, start: Snapshot, handed_over: Any = (), upstream: Any = ()) -> Any:
        kind, which = name
        if kind == "argument":
            return arrays[which]
        if kind == "variable":
            return self._inputs.on_device(start.values[which])
        if kind == "draw":
            return start.draws[which]
        if kind == "constant":
            return self._constants[name]
        return (handed_over if kind == "handed over" else upstream)[which]

    def _called(self, piece: Piece, inputs: list) -> Any:
        if any(map(is_tracer, inputs)):  # another program is being made
            return piece.text(*inputs)
        return piece.run(*self._together(inputs))

    def _together(self, inputs: list) -> list:
        """The inputs on one device: the one that this thread has chosen, if it has."""
        if here.device is None and not self._devices.several():
            return inputs
        return self._devices.together(inputs, here.device)

    def _wrapped(self, arrays: Any, shapes: list | None = None) -> list[Tensor]:
        """As tensors; those in this machine's memory as NumPy arrays, which share it."""
        if arrays and not is_tracer(arrays[0]):  # else called where another program is being made
            if self.host is None or here.device is not None or self._devices.several():
                self.host = self._wait and self._devices.on_host(arrays[0])
            if self.host:
                arrays = list(map(np.asarray, arrays))
        if shapes is not None:
            with self._scope():
                arrays = [array if shape is None else array.reshape(shape) for array, shape in zip(arrays, shapes)]
        return list(map(wrap, arrays))


def _without_units(arrays: list) -> tuple[list, list | None]:
    """The results of a program without axes of length 1 in large ones, and the shapes that they have to get back, if any.

    XLA takes such an axis for a change of layout, and copies the array.
    """
    shapes = [a.shape if a.nbytes >= UNITS_FROM and 1 in a.shape[1:] else None for a in arrays]
    if not any(shapes):
        return arrays, None
    return [a if shape is None else a.reshape([n for n in shape if n != 1]) for a, shape in zip(arrays, shapes)], shapes


def _reasons(tape: GradientTape, targets: list, sources: dict[int, Any]) -> dict[int, tuple]:
    """Cause, place and detail of each gradient that is None, for those who ask a tape around the call."""
    report = tape.explain(targets, list(sources.values()))  # type: ignore[attr-defined]
    known = {i: (why.cause, why.place, why.detail) for i, why in zip(sources, report)}
    return {i: why for i, why in known.items() if why[1] is not None and not is_ours(why[1].file)}  # the line of a user


def _parts(gradient: Any) -> list[Tensor]:
    return [gradient.values, gradient.indices] if isinstance(gradient, IndexedSlices) else [gradient]


def _put_together(shape: Any, parts: Iterator[Tensor]) -> Any:
    """A gradient from its parts: sparse if it has a shape; None if there is none."""
    if isinstance(shape, Tensor):
        return IndexedSlices(next(parts), next(parts), shape)
    return None if shape is None else next(parts)


def _cut(text: Any, forward: list, inputs: dict, outputs: list, gradients: list) -> tuple[Piece, int, Piece]:
    """The forward piece, how many values it hands over, and the backward piece.

    Neither writes over a variable: the backward piece may read what it held before.
    """
    from jax.extend import core

    done = {id(e) for e in forward}
    backward = [e for e in _needed(text.eqns, gradients) if id(e) not in done]
    made = {v for e in forward for v in e.outvars}
    read = [v for e in backward for v in e.invars] + list(gradients)
    shared = list(dict.fromkeys(v for v in read if not isinstance(v, core.Literal) and v in made))
    first = Piece(text, forward, inputs, outputs + shared)
    names = {**inputs, **{v: ("handed over", i) for i, v in enumerate(shared)}}
    return first, len(shared), Piece(text, backward, names, list(gradients))
