"""From a Python function to XLA programs: run it once on tracers, and compile what jax wrote down.

The function's arguments are inputs. Variables and random numbers are found while it runs: a hole is made for each, which the
finished text (a jaxpr) names among its constants, and which becomes an input there. For a call under a tape the same run goes
on to pull gradients back; the text is then cut in two, and what the second half needs of the first is handed over.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from gradtape.core.context import activate, thread
from gradtape.core.indexed_slices import IndexedSlices
from gradtape.core.tape import GradientTape
from gradtape.core.variable import Variable
from gradtape.function.packing import packs_of
from gradtape.function.results import Results, as_tensors
from gradtape.function.signature import Call
from gradtape.function.state import Snapshot, Tracing, held_by, hold
from gradtape.values.convert import NUMBER, convert_to_tensor
from gradtape.values.tensor import Tensor, wrap


def is_tracer(array: Any) -> bool:
    """Whether this stands for a number that is not known yet."""
    return "Tracer" in type(array).__name__


class Piece:
    """A compiled stretch of the program, with the names of its inputs.

    ``packs`` come before all other inputs and outputs; ``packed`` are the positions of their parts among the outputs.
    """

    def __init__(
        self, text: Any, equations: list, inputs: dict[Any, Any], outputs: list, packs: Any = (), packed: Any = ()
    ) -> None:
        import jax
        from jax.extend import core

        used = {v for e in equations for v in e.invars if not isinstance(v, core.Literal)}
        used.update(v for v in outputs if not isinstance(v, core.Literal))
        wanted = {variable: name for variable, name in inputs.items() if variable in used}
        names = list(wanted.values())
        inside = {("variable", v._key) for pack in packs for v in pack.variables}
        self.names = [name for name in names if name not in inside]
        debug = text.debug_info.with_unknown_names() if hasattr(text.debug_info, "with_unknown_names") else text.debug_info
        short = text.replace(constvars=[], invars=list(wanted), outvars=outputs, eqns=equations, debug_info=debug)
        program = core.jaxpr_as_fun(core.ClosedJaxpr(short, ()))

        def unpacked(*given: Any) -> list:
            values = dict(zip(self.names, given[len(packs) :]))
            for pack, array in zip(packs, given):
                values.update((("variable", v._key), part) for v, part in zip(pack.variables, pack.split(array)))
            outs = program(*[values[name] for name in names])
            taken = {i for positions in packed for i in positions}
            joined = [jax.numpy.concatenate([outs[i].reshape(-1) for i in positions]) for positions in packed]
            return joined + [out for i, out in enumerate(outs) if i not in taken]

        self.run = jax.jit(unpacked if packs else program)


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


class Program:
    """One compiled signature of a function: inputs, state, results; and the gradients, if it was made under a tape."""

    def __init__(self, body: Callable, call: Call, *, may_create: bool, snapshot: Snapshot | None, taped: bool) -> None:
        from jax import device_put

        from gradtape.xp import jax as JAX

        self._scope, self._put = JAX.scope, device_put
        self.constants: set = set()
        self._holes: dict[int, tuple[Any, Any]] = {}  # by identity: name, array
        self.state: Any
        self.state = state = Tracing(may_create, snapshot, self._lift)
        self._captured = _Captured(thread.recorders)
        around = thread.recorders
        with JAX.scope(), state:
            activate((self._captured,) if taped else ())
            try:
                text, counts = self._trace(body, call, taped)
            finally:
                activate(around)
        self.created = bool(state.created)
        self.draws = state.draws
        self.variables = list(state.lifted.values())
        self._changeable = {  # the shapes of those variables whose shape may change
            name[1]: hole.shape for name, hole in self._holes.values()
            if name[0] == "variable" and not state.lifted[name[1]].shape.is_fully_defined()
        }  # fmt: skip
        self.captures = bool(self._captured.keys - state.lifted.keys())
        self._last: dict[Any, tuple[Tensor, Any]] = {}  # by variable: a tensor that it held, and the same on the device
        with JAX.scope():
            self._compile(text, counts, commit=snapshot is None)
        self.stateful = bool(self.assigned or self.constant)
        self.floating = [t.dtype.is_trainable for t in self.results.tensors]
        self.results.tensors = []
        self.derivative: Any = None  # its gradient as a function, made when somebody differentiates that
        self.host: Any = None  # whether results live in this machine's memory; known after the first run
        del self._holes, self._captured, self.state

    # Making it

    def _lift(self, name: Any, array: Any) -> Any:
        import jax
        import jax.numpy as jnp

        with jax.ensure_compile_time_eval():
            hole = jnp.array(array, copy=True)
        self._holes[id(hole)] = name, hole
        return jnp.copy(hole)

    def _trace(self, body: Callable, call: Call, taped: bool) -> tuple[Any, tuple[int, int]]:
        import jax

        counts: list[int] = []

        def traced(*arrays: Any) -> list:
            tensors = [wrap(a) for a in arrays]
            args, kwargs = call.rebuild(tensors)
            tape = GradientTape()
            with tape if taped else nullcontext():
                if taped:
                    self.state.on_first_read = tape.accessed
                    tape.watch([t for t in tensors if t.dtype.is_trainable])
                result = as_tensors(body(*args, **kwargs), getattr(body, "__name__", "function"))
            self.results = Results(result)
            outs = [t._array for t in self.results.tensors]
            changed = [(v, self.state.values[k]) for k, v in self.state.assigned.items()]
            self.constant = [(v, t._array) for v, t in changed if type(t) is Tensor]
            self.assigned = [v for v, t in changed if type(t) is not Tensor]
            outs += [t._array for _, t in changed if type(t) is not Tensor]
            counts[:] = [len(self.results.tensors), len(outs)]
            return outs + (self._gradients(tape, tensors) if taped else [])

        shapes = [jax.ShapeDtypeStruct(t._array.shape, t._array.dtype) for t in call.tensors]
        return jax.make_jaxpr(traced)(*shapes), (counts[0], counts[1])

    def _gradients(self, tape: GradientTape, tensors: list[Tensor]) -> list:
        """The cotangents of all sources, which exist for those where ``self.connected``."""
        self.constants = _constants(tape.records)
        targets = [t for t in self.results.tensors if t.dtype.is_trainable]
        upstream = [wrap(self._lift(("upstream", i), np.zeros(t._array.shape, t._array.dtype))) for i, t in enumerate(targets)]
        sources = [t for t in tensors if t.dtype.is_trainable]
        sources += [v for v in self.state.lifted.values() if v._differentiable]  # type: ignore[misc]
        found = tape.gradient(targets, sources, upstream) if targets and sources else [None] * len(sources)
        dense = [convert_to_tensor(g) if isinstance(g, IndexedSlices) else g for g in found]
        self.connected = [g is not None for g in dense]
        return [g._array for g in dense if g is not None]

    def _compile(self, closed: Any, counts: tuple[int, int], commit: bool) -> None:
        import jax

        text = closed.jaxpr
        shapes = {name[1]: (hole.shape, hole.dtype) for name, hole in self._holes.values() if name[0] == "variable"}
        self.packs = packs_of(self.assigned, shapes) if commit and jax.default_backend() == "cpu" else []
        place = {v._key: counts[0] + i for i, v in enumerate(self.assigned)}
        packed = [[place[v._key] for v in pack.variables] for pack in self.packs]
        self.alone = [v for v in self.assigned if not any(place[v._key] in positions for positions in packed)]
        inputs = {v: ("argument", i) for i, v in enumerate(text.invars)}
        self._constants = {}
        for i, (variable, value) in enumerate(zip(text.constvars, closed.consts)):
            name, _ = self._holes.get(id(value), (("constant", i), None))
            inputs[variable] = name
            if name[0] == "constant":
                self._constants[name] = jax.device_put(np.asarray(value))  # once, not at every call
        self.backward: Piece | None = None
        self._handed_over = 0
        self.outputs, end = counts
        equations = _needed(text.eqns, text.outvars[:end])
        outputs = list(text.outvars[:end])
        if len(text.outvars) > end:
            pieces = _cut(text, equations, inputs, outputs, text.outvars[end:], self.packs, packed)
            self.forward, self._handed_over, self.backward = pieces
        else:
            self.forward = Piece(text, equations, inputs, outputs, self.packs, packed)

    # Running it

    def captures_tracked(self) -> bool:
        """Whether a recorder of this thread tracks a tensor that is a constant to the program."""
        return self.captures or any(not self.constants.isdisjoint(_keys(r.records)) for r in thread.recorders)

    def snapshot(self, given: Snapshot | None) -> Snapshot:
        """What a call begins with: the variables as they are, and new random numbers."""
        if given is None:
            return Snapshot(held_by(self.variables), [draw() for draw in self.draws])
        return Snapshot({**held_by(self.variables), **given.values}, given.draws)

    def fits(self, start: Snapshot) -> bool:
        """Whether variables still have the shapes that the program was made for."""
        return all(start.values[key]._array.shape == shape for key, shape in self._changeable.items())

    def run(self, arrays: list, start: Snapshot, commit: bool) -> tuple[list[Tensor], list]:
        """The results of one call, and what its backward pass will need."""
        with self._scope():
            packs = [pack.gather(start) for pack in self.packs]
            outs = self.forward.run(*packs, *[self._input(name, arrays, start) for name in self.forward.names])
        packs, outs = outs[: len(packs)], outs[len(packs) :]
        tensors = self._wrapped(outs[: self.outputs])
        if commit:
            for pack, array in zip(self.packs, packs):
                pack.hand_out(array)
            end = self.outputs + len(self.alone)
            for variable, array in zip(self.alone, outs[self.outputs : end]):
                (tensor,) = self._wrapped([array])
                tensor._key = variable._key
                self._last[variable._key] = tensor, array
                hold(variable, tensor)
            for variable, array in self.constant:
                variable._put(array)
        return tensors, outs[len(outs) - self._handed_over :]

    def pull(self, arrays: list, start: Snapshot, handed_over: list, upstream: list) -> list[Tensor | None]:
        """The gradients of all sources."""
        if self.backward is None:
            return [None] * len(self.connected)
        with self._scope():
            inputs = [self._input(name, arrays, start, handed_over, upstream) for name in self.backward.names]
            found = iter(self._wrapped(self.backward.run(*inputs)))
        return [next(found) if connected else None for connected in self.connected]

    def _input(self, name: tuple, arrays: list, start: Snapshot, handed_over: Any = (), upstream: Any = ()) -> Any:
        kind, which = name
        if kind == "argument":
            return arrays[which]
        if kind == "variable":
            tensor = start.values[which]
            known = self._last.get(which)
            if known is None or known[0] is not tensor:
                known = self._last[which] = tensor, self._put(tensor._array)
            return known[1]
        if kind == "draw":
            return start.draws[which]
        if kind == "constant":
            return self._constants[name]
        return (handed_over if kind == "handed over" else upstream)[which]

    def _wrapped(self, arrays: Any) -> list[Tensor]:
        """As tensors; those in this machine's memory as NumPy arrays, which share it."""
        if not arrays or is_tracer(arrays[0]):  # called where another program is being made
            return [wrap(a) for a in arrays]
        if self.host is None:
            self.host = all(device.platform == "cpu" for a in arrays for device in a.devices())
        return [wrap(np.asarray(a)) for a in arrays] if self.host else [wrap(a) for a in arrays]


def _cut(
    text: Any, forward: list, inputs: dict, outputs: list, gradients: list, packs: list, packed: list
) -> tuple[Piece, int, Piece]:
    """The forward piece, how many values it hands over, and the backward piece."""
    from jax.extend import core

    done = {id(e) for e in forward}
    backward = [e for e in _needed(text.eqns, gradients) if id(e) not in done]
    made = {v for e in forward for v in e.outvars}
    read = [v for e in backward for v in e.invars] + list(gradients)
    shared = list(dict.fromkeys(v for v in read if not isinstance(v, core.Literal) and v in made))
    first = Piece(text, forward, inputs, outputs + shared, packs, packed)
    names = {**inputs, **{v: ("handed over", i) for i, v in enumerate(shared)}}
    return first, len(shared), Piece(text, backward, names, list(gradients))
