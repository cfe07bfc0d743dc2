"""`GradientTape`: records what happens in its ``with`` block and differentiates it."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

import numpy as np

from gradtape.core.asking import (
    UnconnectedGradients,
    finished,
    in_structure,
    leading_to,
    leaves,
    once,
    ones_of,
    seeds_of,
    unconnected_option,
)
from gradtape.core.backprop import Sweep, pull_general, pull_several
from gradtape.core.callsite import Listening, site, warn_at_site
from gradtape.core.context import activate, thread
from gradtape.core.cuts import WITNESS
from gradtape.core.indexed_slices import IndexedSlices
from gradtape.core.observed import UNANSWERED, ObservedSweep, Observer, Remains
from gradtape.core.op import REGISTRY, select
from gradtape.core.selection import AT_POLES, watch
from gradtape.core.trace import CHECKS, Trace
from gradtape.core.variable import Variable, variable_of
from gradtape.errors import message
from gradtape.values import dtypes, nest
from gradtape.values.batched import BATCHED, Batched
from gradtape.values.composite import Composite
from gradtape.values.convert import convert_to_tensor
from gradtape.values.recorded import RECORDED
from gradtape.values.tensor import Tensor
from gradtape.xp import numpy as NUMPY
from gradtape.xp.poles import met

_new = object.__new__
_ndarray = np.ndarray
_getframe = sys._getframe

JACOBIANS: dict[str, Callable] = {}
"""How `GradientTape.jacobian` and `batch_jacobian` are computed: `tangents` says so."""

LEAF = (None,)
"""Stands in a tape for a watched value, which no record produced."""

USED = "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)"
_PERSISTENT_INSIDE = (
    "Calling GradientTape.{} on a persistent tape inside its context is significantly less efficient than calling it "
    "outside the context (it causes the gradient ops to be recorded on the tape, leading to increased CPU and memory "
    "usage). Only call GradientTape.{} inside the context if you actually want to trace the gradient in order to compute "
    "higher order derivatives."
)


def _with_values(trace: bool | str) -> bool:
    if isinstance(trace, str) and trace != "values":
        text = f"Unknown value for trace: {trace!r}"
        raise ValueError(message(text, expected="True for the line of every op, 'values' for lines and values, or False"))
    return trace == "values"


class GradientTape(Listening):
    """Record operations, then differentiate them.

    Trainable variables are tracked by themselves, tensors after `watch`. A tape that is not ``persistent`` can be asked
    once, and frees its records while it answers. With ``trace`` it also notes where each op was called, with
    ``trace="values"`` all values too.

    >>> x = Variable(3.0)
    >>> with GradientTape() as tape:
    ...     y = x * x
    >>> tape.gradient(y, x)
    <tf.Tensor: shape=(), dtype=float32, numpy=6.0>
    """

    _stopped = False  # inside `stop_recording`
    _entered: Any = None  # the place of the `with`
    _used: Any = None  # and of the call that used the records up
    _remains: Remains | None = None  # what an explanation needs, if a gradient was None
    _lost: Any = None  # keys that were known before `reset`, and its place

    def __init__(
        self,
        persistent: bool = False,
        watch_accessed_variables: bool = True,
        *,
        trace: bool | str = False,
        check_numerics: bool = False,
        safe: bool | None = None,
    ) -> None:
        self._persistent = persistent
        self._watch_accessed = watch_accessed_variables
        self._safe = safe
        self._recording = False
        self.accelerated: Any = None  # once work on a device was recorded: the namespace there, how to sweep (`ops.compiled`)
        self.trace: Trace | None = None  # with ``trace``: what happened, where, with which values
        self.observers: tuple[Observer, ...] = ()  # of its sweeps
        self.limit = 1024  # the number of records at which to look for unreachable ones
        self.records: Any = None  # a dict from key to record while there is something to differentiate
        self.variables: dict[Any, Variable] = {}
        if trace or check_numerics:
            self.trace = Trace(CHECKS["numerics"] if check_numerics else None)
            self.line = None if check_numerics or _with_values(trace) else self.trace.notes.append
            self.limit = -1  # every record is beyond it
            self.grown = self.trace.note if check_numerics else self.trace.notes.append  # type: ignore[method-assign, assignment]
        if check_numerics:
            self.observers = (CHECKS["sweep"](self.trace),)

    def _clear(self) -> None:
        self.records = {}
        self.variables = {}
        if self.trace is not None:
            self.trace.clear(self.records, self.variables)
        self._leaves: set = set()  # the keys that `watch` was given
        self._late = False  # a value was watched after it had been used
        self.exits: dict = {}  # where values left
        if self._used is not None:
            self._used = self._remains = None
        self._start = met[0]  # poles that were met before

    # Recording

    def __enter__(self) -> GradientTape:
        if self._recording:
            text = "Tape is still recording, This can happen if you try to re-enter an already-active tape."
            raise ValueError(message(text, received="an entered tape", fix="leave its with block first, or open another tape"))
        if self.records is None:
            self._clear()
        self._resume()
        caller = _getframe(1)
        self._entered = caller.f_code, caller.f_lasti
        self._thread = get_ident()
        WITNESS.attend(self)
        return self

    def __exit__(self, *_: object) -> None:
        if self._recording:
            self._pause()

    def _resume(self) -> None:
        self._recording = True
        activate((*thread.recorders, self))

    def _pause(self) -> None:
        recorders = thread.recorders
        if self not in recorders:
            raise RuntimeError(
                message(
                    "This GradientTape is recording in another thread.",
                    received="a call that would end the recording from outside",
                    fix="leave its `with` block first; then any thread may ask it",
                )
            )
        self._recording = False
        activate(recorders[:-1] if recorders[-1] is self else tuple(r for r in recorders if r is not self))

    def watch(self, tensor: Any) -> None:
        """Track a tensor, a variable, or every one in a nest of them."""
        for leaf in nest.flatten(tensor):
            if isinstance(leaf, Composite):
                self.watch([leaf._differentiable_part()])
                continue
            leaf = variable_of(leaf)
            if not isinstance(leaf, (Tensor, Variable)):
                kind = type(leaf).__name__
                text = f"Passed in object {leaf} of type '{kind}', not tf.Tensor or tf.Variable or ExtensionType."
                raise ValueError(message(text, fix="tf.convert_to_tensor(value), and use that tensor afterwards"))
            if self.records is None:
                raise RuntimeError(
                    message(
                        "GradientTape.watch was called on a tape that holds no recording.",
                        received="a tape that was never entered, or that a gradient call has used up",
                        fix="call watch inside `with tape:`",
                    )
                )
            if not leaf.dtype.is_trainable:
                text = f"The dtype of the watched tensor must be floating (e.g. tf.float32), got {leaf.dtype!r}"
                warn_at_site(text, times=5)
            if isinstance(leaf, Variable):
                leaf._notify_watchers()
                self._watch_variable(leaf)
            else:
                self._watch_key(leaf)
            if self.trace is not None:
                self.trace.watch(leaf)

    def _watch_key(self, leaf: Any) -> None:
        key = leaf._key
        if key is None:
            key = leaf._key = object()
        elif self.records:
            self._late = True
        if key not in self.records and leaf._array.dtype in dtypes.TRAINABLE:
            self.records[key] = LEAF
            self._leaves.add(key)

    def _watch_variable(self, variable: Variable) -> None:
        self.variables[variable._key] = variable
        self._watch_key(variable._tensor)

    def accessed(self, variable: Variable) -> None:
        """Called when a trainable variable is first read while this tape records."""
        if self._watch_accessed:
            key = variable._key
            self.variables[key] = variable
            if variable._differentiable:
                self.records[key] = LEAF

    def watched_variables(self) -> tuple[Variable, ...]:
        """The variables this tape tracks, in the order of their construction."""
        return tuple(sorted(self.variables.values(), key=lambda v: v._number))

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Do not record what happens in this ``with`` block; other tapes go on."""
        if self.records is None:
            text = "Trying to stop recording a tape which is not recording."
            raise RuntimeError(message(text, received="a tape that was used", fix="tf.GradientTape(persistent=True)"))
        if not self._recording:
            raise ValueError(message("Tape is not recording.", received="a tape outside its with block", fix="call it inside"))
        self._pause()
        self._stopped = True
        WITNESS.attend(self)
        try:
            yield
        finally:
            self._stopped = False
            if not self._recording:
                if self.records is None:  # a gradient call inside the block used the recording up
                    self._clear()
                self._resume()

    def reset(self) -> None:
        """Forget all records and watches, and go on recording."""
        if not self._recording:
            raise ValueError(message("Tape is not recording.", received="a tape outside its with block", fix="call it inside"))
        lost = frozenset(self.records) | frozenset(self.variables)
        self._clear()
        self._lost = lost, site()

    def grown(self, note: tuple) -> None:
        """Called after a record beyond the limit: drops those whose results nobody can reach any more."""
        records = self.records
        others = [r.records for r in thread.recorders if r is not self]  # they hold the keys they know, too
        for key in reversed(list(records)):
            record = records.get(key, LEAF)
            if record[0] is None:
                continue
            shared = sum([key in known for known in others]) if others else 0
            if record[0] is not pull_several:
                # Held by the dict, the list, this loop and the call; a general record also lists its output.
                if sys.getrefcount(key) == 4 + shared + (record[0] is pull_general):
                    del records[key]
            elif all(k is None or sys.getrefcount(k) == 5 + shared + (k is key) for k in record[7]):
                for k in record[7]:
                    records.pop(k, None)
        self.limit = max(1024, 2 * len(records))

    # Differentiating

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
    ) -> Any:
        """The gradient of the sum of all target elements with respect to each source, in the structure of ``sources``.

        ``output_gradients`` are the factors of the targets (default: ones). A source that the target does not depend on
        gives None, or zeros with ``unconnected_gradients='zero'``.
        """
        if self.records is None or self._recording:
            self._begin("gradient")
        if target is None:
            text = (
                "Argument `target` should be a list or nested structure of Tensors, Variables or CompositeTensors to be "
                "differentiated, but received None."
            )
            raise TypeError(message(text, fix="return the loss from the function that computes it"))
        unconnected = unconnected_gradients
        if type(unconnected) is not UnconnectedGradients:
            unconnected = unconnected_option(unconnected)
        flat = leaves(sources, "source")
        targets = [target] if type(target) is Tensor else leaves(target, "target")
        seeds = list(map(ones_of, targets)) if output_gradients is None else seeds_of(targets, output_gradients)
        results = self._pull_back(targets, seeds, flat)
        for i, g in enumerate(results):
            if type(g) is _ndarray:  # what `wrap` would do
                results[i] = tensor = _new(Tensor)
                tensor._array = g
                tensor._key = None
            else:
                results[i] = finished(g, flat[i], unconnected)
        return results if flat is sources else in_structure(sources, results)

    def _begin(self, method: str) -> None:
        if self.records is None:
            fix = "tf.GradientTape(persistent=True), or one call for all sources"
            raise RuntimeError(message(USED, received=f"a second call, of {method}", fix=fix))
        if self._recording:
            if self._persistent:
                warn_at_site(_PERSISTENT_INSIDE.format(method, method))
            else:
                self._pause()

    def _pull_back(self, targets: list, seeds: list, sources: list, last: bool = True, sparse: bool = True) -> list:
        """The cotangent of each source, or None; seeds are tensors or Batched values. Frees a one-shot tape if ``last``."""
        records, observers, accelerated = self.records, self.observers, self.accelerated
        consume = last and not self._persistent
        raw = not thread.recorders or not (
            any(observer.changes for observer in observers) or self._is_recorded_elsewhere([*targets, *seeds])
        )
        if seeds and type(seeds[0]) is Batched:
            xp = BATCHED
        else:
            xp = select(targets) if raw else RECORDED
            if accelerated is not None:
                if xp is BATCHED:  # inside vectorized_map: a batch knows where its values are
                    accelerated = None
                elif raw:
                    xp = accelerated.xp
        keys = [source._key for source in sources]
        wanted = set(keys)
        unknown = None in wanted
        wanted.discard(None)
        everything = self.variables.keys() <= wanted and self._leaves <= wanted and not self._late
        needed = records if everything else leading_to(wanted, records)
        if self._safe is None and xp is NUMPY:  # what `watch` would say
            poles: Any = met, self._start, AT_POLES
        else:
            poles = watch(self._safe, xp if raw and xp is not BATCHED else select(targets), self._start)
        kind = ObservedSweep if observers else Sweep
        sweep = kind(xp, raw, raw or xp is BATCHED, needed, (self.variables, self._leaves) if sparse else (), poles)
        if observers:
            sweep.observers = observers  # type: ignore[attr-defined]
        cotangents = sweep.cotangents
        for target, seed in zip(targets, seeds):
            key = target._key
            if key not in records or records[key] is LEAF:  # counts only if it is itself a source, watched or not
                if not any(target is s for s in sources) or target.dtype is dtypes.string:
                    continue
                if key is None:
                    key = target._key = object()
                    keys = [source._key for source in sources]
                    wanted.add(key)
            seed = seed._array if raw and isinstance(seed, Tensor) else seed
            cotangents[key] = xp.add(cotangents[key], seed) if key in cotangents else seed
        run = kind.run if accelerated is None else accelerated.sweep
        try:
            with xp.scope():
                run(sweep, records if consume and self.trace is None else records.copy(), wanted)
        finally:
            if consume:
                self.records = None
        if self.trace is not None:
            self.trace.asked = targets, seeds, sources
        if consume:
            caller = _getframe(2)
            self._used = caller.f_code, caller.f_lasti
        if unknown or not cotangents.keys() >= wanted:
            self._remains = Remains(targets, set(keys) - cotangents.keys(), sweep.unused, sweep.blocked)
            UNANSWERED[0] = weakref.ref(self)
        if len(wanted) < len(keys):  # a source that is given twice gets the very same gradient (A7.15)
            cotangents = {k: once(cotangents[k]) for k in wanted if k in cotangents}
        return list(map(cotangents.get, keys))

    def _is_recorded_elsewhere(self, involved: list) -> bool:
        """Whether a recorder other than this finished tape tracks a value that the sweep reads.

        Reads of a variable share its key, but those of before a recorder began are constants to it (A12.3): a variable
        that both know does not count by itself, for then some result of it is known to both as well.
        """
        variables = self.variables
        for recorder in thread.recorders:
            known = recorder.records
            if known is self.records:
                return True
            for key, record in self.records.items():
                if key in known and key not in variables:
                    return True
                if record[0] is not None:
                    if not record[1].rules or record[1].label in REGISTRY:  # a user's function may read whatever it likes
                        return True
                    if any(k in known and k not in variables for k in record[2]):
                        return True  # a constant of this tape
            if any(isinstance(t, (Tensor, Variable)) and t._key in known for t in involved):
                return True
        return False

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
        *,
        mode: str = "auto",
        chunk_size: int | None = None,
        max_bytes: float | None = None,
    ) -> Any:
        """The derivative of every target element: for each source a tensor of shape ``target.shape + source.shape``.

        ``mode``: ``'reverse'`` computes rows, ``'forward'`` columns, ``'auto'`` whichever are fewer. ``chunk_size`` of them
        are computed at once, by default as many as fit ``max_bytes`` (256 MiB), the result included if it is given.
        """
        options = unconnected_gradients, experimental_use_pfor, mode, chunk_size, max_bytes
        return JACOBIANS["jacobian"](self, target, sources, *options)

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
        *,
        chunk_size: int | None = None,
        max_bytes: float | None = None,
    ) -> Tensor:
        """The Jacobian of each row: from target ``[b, y…]`` and source ``[b, x…]`` a tensor ``[b, y…, x…]``.

        Row i of the target must depend on row i of the source alone. ``chunk_size`` and ``max_bytes`` as in `jacobian`.
        """
        options = unconnected_gradients, parallel_iterations, experimental_use_pfor, chunk_size, max_bytes
        return JACOBIANS["batch_jacobian"](self, target, source, *options)

    def _dense(self, target: Any) -> Any:
        """A target; a sparse one as the tensor it stands for, which this tape records (A8.10)."""
        if not isinstance(target, IndexedSlices):
            return target
        if self._recording:
            return convert_to_tensor(target)
        self._resume()
        try:
            return convert_to_tensor(target)
        finally:
            self._pause()


def safety(recorders: tuple) -> bool | None:
    """What the innermost tape was told about nan from what was not selected, for those who differentiate on its behalf."""
    return next((recorder._safe for recorder in reversed(recorders) if isinstance(recorder, GradientTape)), None)
