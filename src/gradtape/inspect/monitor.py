"""`GradientMonitor`: what gradients and updates look like over the steps of a training run."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradtape.core.context import suspended
from gradtape.core.tape import GradientTape
from gradtape.core.variable import Variable, variable_of
from gradtape.errors import message
from gradtape.inspect import monitor_files
from gradtape.inspect.graph import legible
from gradtape.inspect.monitor_table import WIDTH, History, Live, table
from gradtape.inspect.statistics import Statistics, describe, is_tracer, numbers
from gradtape.optimizers.base import Optimizer
from gradtape.values import nest
from gradtape.values.convert import convert_to_tensor


@dataclass(frozen=True, slots=True)
class Row:
    """One variable at one step; of a Jacobian, ``norm`` is the mean over the examples."""

    step: int
    name: str
    shape: tuple[int, ...]
    norm: float | None  # of the gradient; None: it was not seen
    update_norm: float | None = None  # how far the variable moved
    value_norm: float | None = None
    gradient: Statistics | None = None
    kind: str = "gradient"


@dataclass(slots=True)
class _Pending:
    """A gradient that was computed, and the variable's value then; the update is not known yet."""

    variable: Any
    gradient: Any
    value: Any


class GradientMonitor:
    """Collects norms, histograms, zeros and non-finite values of gradients, and the norms of updates, every few steps.

    Inside its ``with`` block it sees what `GradientTape.gradient` computes and optimizers apply; the loop stays as it is.
    ``watched`` limits it to the variables of an optimizer, of a module, or of a list. A compiled step hides its gradients:
    return them from it and give them to `step`. The table appears on a terminal, or always with ``live=True``.

    >>> w = Variable([1.0, 2.0], name="w")
    >>> with GradientMonitor(live=False) as monitor:
    ...     for _ in range(3):
    ...         with GradientTape() as tape:
    ...             loss = w[0] * w[0]
    ...         _ = w.assign_sub(0.1 * tape.gradient(loss, w))
    >>> [round(row.norm, 2) for row in monitor.rows]
    [2.0, 1.6, 1.28]
    """

    def __init__(
        self,
        watched: Any = None,
        *,
        every: int = 1,
        bins: int = 30,
        live: bool | None = None,
        log_dir: Any = None,
        jacobian_of: tuple[Callable, Any] | None = None,
    ) -> None:
        if not isinstance(every, int) or every < 1:
            raise ValueError(message("A monitor looks at every n-th step.", received=f"every={every!r}", expected="1 or more"))
        self.rows: list[Row] = []
        self._recent: History = {}
        self.every = every
        self._bins = bins
        self._watched = watched
        self._names: dict[Any, str] = {}
        self._counts: dict[Any, int] = {}
        self._pending: dict[Any, _Pending] = {}
        self._applied: set = set()  # the variables that an optimizer updates
        self._by_hand = False  # steps are given, not observed
        self._live = Live(live)
        self._events = monitor_files.Events(log_dir) if log_dir is not None else None
        self._jacobian_of = jacobian_of

    # Observing

    def __enter__(self) -> GradientMonitor:
        _install(self)
        return self

    def __exit__(self, *_: object) -> None:
        _remove(self)
        if not self._by_hand:
            self._complete(list(self._pending))
        self._pending.clear()
        self._live.close()
        if self._events is not None:
            self._events.flush()

    def _is_due(self, key: Any) -> bool:
        return self._counts.get(key, 0) % self.every == 0

    def _chosen(self, pairs: Iterable[tuple]) -> list[tuple]:
        """Of pairs of gradient and variable those that it is to look at."""
        watched = self._watched
        if watched is None:
            return list(pairs)
        if isinstance(watched, Optimizer):
            watched = watched._trainable
        elif hasattr(watched, "trainable_variables"):
            watched = watched.trainable_variables
        wanted = {id(variable_of(v)) for v in nest.flatten(watched)}
        return [(g, v) for g, v in pairs if id(variable_of(v)) in wanted]

    def _seen(self, pairs: Iterable[tuple]) -> list[tuple]:
        """Those with numbers in them: there are none in a function that is being compiled."""
        chosen = ((g, variable_of(v)) for g, v in self._chosen(pairs))
        return [(g, v) for g, v in chosen if isinstance(v, Variable) and g is not None and not _is_tracer(g)]

    def _computed(self, sources: Any, gradients: Any) -> None:
        """A tape has computed gradients: a step without an optimizer, or the first half of one with it."""
        if self._by_hand:
            return
        found = self._seen(zip(nest.flatten(gradients), nest.flatten(sources)))
        new = [(g, v) for g, v in found if v._key not in self._applied]
        # A value that did not change since means that no step was made: gradients are being summed, say.
        self._complete([v._key for _, v in new if v._key in self._pending and v._tensor is not self._pending[v._key].value])
        for g, v in new:
            self._pending[v._key] = _Pending(v, g, v._tensor)

    def _complete(self, keys: Iterable[Any]) -> None:
        done = [self._pending.pop(key) for key in keys]
        self._note([(p.gradient, p.variable, p.value) for p in done])

    def _about_to_apply(self, pairs: list) -> list:
        """What to note once an optimizer has applied these gradients."""
        if self._by_hand:
            return []
        found = self._seen(pairs)
        for _, v in found:
            self._applied.add(v._key)
            self._pending.pop(v._key, None)
        # The value before is only held on to where it is needed: an optimizer updates in place what nobody else holds.
        return [(g, v, v._tensor if self._is_due(v._key) else None) for g, v in found]

    # Noting

    def step(self, gradients: Any, variables: Any = None) -> None:
        """Note the gradients of one step, as they were applied; from the first call on, nothing is observed by itself.

        Either pairs of gradient and variable, or gradients and their variables. The update is what the variable moved since
        the last call.
        """
        self._by_hand = True
        pairs = list(gradients) if variables is None else list(zip(nest.flatten(gradients), nest.flatten(variables)))
        if variables is None and not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs):
            raise ValueError(
                message(
                    "GradientMonitor.step takes pairs of gradient and variable, or gradients and variables.",
                    received=f"{len(pairs)} values and no variables",
                    fix="monitor.step(gradients, variables)",
                )
            )
        wanted = self._chosen(pairs)
        before = {_key(v): self._pending.pop(_key(v), None) for _, v in wanted}
        self._note([(g, v, p.value if (p := before[_key(v)]) is not None else None) for g, v in wanted])
        self._hold([v for _, v in wanted])

    def begin(self, variables: Iterable[Any]) -> None:
        """Remember the values from before the first step that `step` will be told of: its update is known then, too."""
        self._by_hand = True
        self._hold([v for _, v in self._chosen((None, v) for v in variables)])

    def _hold(self, variables: list) -> None:
        """Keep the values of variables whose next step is to be noted."""
        for v in variables:
            if self._is_due(_key(v)):
                self._pending[_key(v)] = _Pending(v, None, _snapshot(v))

    def _note(self, found: list[tuple[Any, Any, Any]]) -> None:
        """Gradients, their variables, and the values from before the update."""
        rows = []
        for gradient, variable, before in found:
            key = _key(variable)
            if self._is_due(key):
                rows.append(self._row(self._counts.get(key, 0), gradient, variable, before))
            self._counts[key] = self._counts.get(key, 0) + 1
        if not rows:
            return
        for row in rows:
            self._keep(row)
        if self._jacobian_of is not None:
            self.jacobian(*self._jacobian_of, step=max(row.step for row in rows))
        self._live.show(self._recent)

    def _keep(self, row: Row) -> None:
        self.rows.append(row)
        self._recent.setdefault(row.name, deque(maxlen=WIDTH)).append(row)

    def _row(self, step: int, gradient: Any, variable: Any, before: Any) -> Row:
        statistics = describe(gradient, self._bins)
        now = _snapshot(variable)
        value, old = numbers(now), numbers(before)
        moved = None if old is None or value is None else _length(_wide(now) - _wide(before))
        size = None if value is None else _length(_wide(now))
        norm = None if statistics is None else statistics.norm
        shape = tuple(variable.shape) if value is None else value.shape  # a variable's own may be unknown
        row = Row(step, self._name(variable), shape, norm, moved, size, statistics)
        if self._events is not None:
            self._events.write(row, gradient)
        return row

    def _name(self, variable: Any) -> str:
        """The variable's name, made unique."""
        key = _key(variable)
        if key not in self._names:
            name = legible(getattr(variable, "path", None) or variable.name.removesuffix(":0"))
            taken = set(self._names.values())
            numbered = (f"{name}_{i}" for i in itertools.count(1))
            self._names[key] = next(n for n in itertools.chain((name,), numbered) if n not in taken)
        return self._names[key]

    def jacobian(self, function: Callable, inputs: Any, step: int | None = None) -> Row:
        """Note the norms of ``∂function(inputs)/∂inputs``, example by example (Frobenius), for this step."""
        x = convert_to_tensor(inputs)
        with suspended(), GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(x)
            y = function(x)
        found: Any = numbers(tape.batch_jacobian(y, x))
        norm = float(np.linalg.norm(found.reshape(len(found), -1), axis=1).mean())
        step = max(self._counts.values(), default=0) if step is None else step
        row = Row(step, "jacobian", tuple(found.shape), norm, gradient=describe(found, self._bins), kind="jacobian")
        self._keep(row)
        if self._events is not None:
            self._events.write(row, found)
        return row

    # Showing

    def __str__(self) -> str:
        return table(self._recent)

    def to_csv(self, path: Any) -> None:
        """Save all rows, one per step and variable."""
        monitor_files.to_csv(self.rows, path)

    def to_png(self, path: Any) -> None:
        """Save curves of norms, updates and zeros, and the latest histograms, as a picture; needs matplotlib."""
        monitor_files.to_png(self.rows, path)

    def callback(self) -> Any:
        """This monitor as a callback for ``model.fit``."""
        from gradtape.inspect.monitor_keras import callback

        return callback(self)


def _key(variable: Any) -> Any:
    return getattr(variable, "_key", None) or id(variable)


def _snapshot(variable: Any) -> Any:
    """The value that a variable has now; later changes do not reach it."""
    return variable._tensor if isinstance(variable, Variable) else np.array(variable)


def _wide(value: Any) -> np.ndarray:
    """A value in double precision: the squares of large float32 numbers are infinite, differences of half types coarse."""
    array = np.asarray(value)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _length(array: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        return float(np.linalg.norm(array.ravel()))


def _is_tracer(gradient: Any) -> bool:
    return is_tracer(getattr(getattr(gradient, "_values", gradient), "_array", None))


# While a monitor is active, these two methods tell it what passes; otherwise they are untouched.

_active: list[GradientMonitor] = []
_lock = threading.Lock()
_original = GradientTape.gradient, Optimizer.apply_gradients


class _Depth(threading.local):
    inside = 0


_depth = _Depth()


def _gradient(self: GradientTape, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
    _depth.inside += 1
    try:
        found = _original[0](self, target, sources, *args, **kwargs)
    finally:
        _depth.inside -= 1
    if not _depth.inside:  # a gradient function may ask a tape of its own
        for monitor in _active:
            monitor._computed(sources, found)
    return found


def _apply_gradients(self: Optimizer, grads_and_vars: Any, name: str | None = None) -> Any:
    pairs = list(grads_and_vars)
    noted = [(monitor, monitor._about_to_apply(pairs)) for monitor in _active]
    result = _original[1](self, pairs, name)
    for monitor, found in noted:
        monitor._note(found)
    return result


def _install(monitor: GradientMonitor) -> None:
    with _lock:
        _active.append(monitor)
        GradientTape.gradient = _gradient  # type: ignore[method-assign, assignment]
        Optimizer.apply_gradients = _apply_gradients  # type: ignore[method-assign, assignment]


def _remove(monitor: GradientMonitor) -> None:
    with _lock:
        _active.remove(monitor)
        if not _active:
            GradientTape.gradient, Optimizer.apply_gradients = _original  # type: ignore[method-assign]
