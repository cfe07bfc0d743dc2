"""`tf.gradients` inside a function: gradients of what has happened, without a tape that the user began.

Nothing is recorded until somebody asks. Then the function is run once more, under a tape of its own: its *journal*.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape.core.backprop import pull_several
from gradtape.core.tape import LEAF, GradientTape
from gradtape.function.regions import Region
from gradtape.function.state import Tracing, current
from gradtape.ops.execution import Unstageable
from gradtape.values import nest
from gradtape.values.convert import convert_to_tensor
from gradtape.values.recorded import RECORDED
from gradtape.values.tensor import Tensor


class NotRecorded(BaseException):
    """Somebody asked for gradients; not an Exception, so that no handler of the body stops it."""


def recorded_if_asked(body: Callable, state: Tracing) -> Callable:
    """The body of a function; if it asks for gradients, it is run again, from where it began, with a journal."""

    def run(*args: Any, **kwargs: Any) -> Any:
        start = dict(state.values), dict(state.assigned), list(state.draws)
        try:
            return body(*args, **kwargs)
        except NotRecorded:
            state.values, state.assigned, state.draws[:] = start[0], start[1], start[2]
        with GradientTape(persistent=True) as journal:
            journal.watch([t for t in nest.flatten([args, kwargs]) if isinstance(t, Tensor) and t.dtype.is_trainable])
            state.journal = journal
            return body(*args, **kwargs)

    return run


def gradients(ys: Any, xs: Any, grad_ys: Any, stop_gradients: Any, unconnected_gradients: Any) -> list:
    """The gradients of the sum of ``ys`` with respect to each of ``xs``; ``stop_gradients`` count as constants."""
    state: Any = current()
    if isinstance(state, Region):
        raise Unstageable("tf.gradients inside a loop or a branch")
    if state.journal is None:
        raise NotRecorded
    sources = nest.flatten(xs)
    tape = GradientTape()
    tape._clear()
    tape._late = True  # values that were used before somebody asked about them
    tape.variables = state.journal.variables
    stopped = {x._key for x in nest.flatten(stop_gradients) if x is not None}
    records = _without(state.journal.records, stopped)
    tape.records = {**{x._key: LEAF for x in sources if x._key is not None and x._key not in records}, **records}
    return tape.gradient(nest.flatten(ys), sources, grad_ys, unconnected_gradients)


def _without(records: dict, stopped: set) -> dict:
    """The records, less those that made these values."""
    kept: dict[Any, tuple] = {}
    for key, record in records.items():
        if record[0] is pull_several and not stopped.isdisjoint(record[7]):
            outputs = tuple(None if k in stopped else k for k in record[7])
            kept.update((k, LEAF) for k in record[7] if k in stopped)
            first = next((k for k in outputs if k is not None), None)
            if first is not None:
                kept[first] = (*record[:7], outputs, *record[8:])
        else:
            kept.setdefault(key, LEAF if key in stopped else record)
    return kept


def hessians(ys: Any, xs: Any) -> list:
    """For each of ``xs`` the second derivatives of ``ys``, of shape ``x.shape + x.shape``."""
    found = []
    for x in nest.flatten(xs):
        shape = tuple(convert_to_tensor(x)._array.shape)
        (slope,) = gradients(ys, [x], None, None, "zero")
        flat = RECORDED.reshape(slope, shape=(-1,))
        rows = [gradients([flat[i]], [x], None, None, "zero")[0] for i in range(flat._array.shape[0])]
        found.append(RECORDED.reshape(RECORDED.stack(*rows, axis=0), shape=shape + shape))
    return found
