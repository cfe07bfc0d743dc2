"""Branches and loops over traced values, as parts of a compiled program.

What `ops.control_flow` calls while a function is being made, and what converted Python code calls. Where a predicate or a
count is known, code runs plainly; where it is not, both branches, or the body of the loop, become pieces of the program.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.context import thread
from gradtape.core.cuts import CONDITION, leave
from gradtape.core.variable import Variable, variable_of
from gradtape.errors import message
from gradtape.function.branches import choose
from gradtape.function.journal import gradients, hessians
from gradtape.function.leaves import Mismatch, as_tensor
from gradtape.function.messages import is_due_to_tracing
from gradtape.function.ranges import has_numbers
from gradtape.function.regions import record
from gradtape.function.repeats import Repeat, Unfit
from gradtape.function.state import Tracing, current
from gradtape.ops import execution
from gradtape.values import nest
from gradtape.values.batched import Batched
from gradtape.values.convert import convert_to_tensor
from gradtape.values.recorded import RECORDED
from gradtape.values.shape import is_open
from gradtape.values.tensor import Tensor, wrap

__all__ = [
    "UNROLL", "Count", "Mismatch", "branch", "cond", "for_each", "gradients", "hessians", "put_row", "require", "scan",
    "take_row", "traced", "while_loop", "within",
]  # fmt: skip

UNROLL = 16
"""A loop of at most this many steps is written out; a longer one stays a loop, so that it takes no longer to compile."""
_LONGEST_UNROLLED = 10_000


def traced(value: Any) -> bool:
    """Whether this stands for a number that only the running program knows."""
    if isinstance(variable_of(value), Variable):
        return execution.staging.inside
    return isinstance(value, Tensor) and value._is_traced()


def require(holds: Tensor) -> None:
    """Check a traced condition when the program has run: it has to hold everywhere."""
    current().require(holds._array)  # type: ignore[union-attr]


def within(indices: Any, end: int | tuple[int, ...], *, always: bool = False) -> None:
    """Check that traced indices, as an array, are in a range from 0: if a call's arguments decide them, or ``always``."""
    state = current()
    while isinstance(indices, Batched):  # of a `vectorized_map`: those of all its elements
        indices = getattr(indices.value, "_array", indices.value)
    if isinstance(state, Tracing) and has_numbers(indices, end):
        state.within(indices, end, always)


# Branches


def cond(pred: Any, true_fn: Callable, false_fn: Callable) -> Any:
    """``true_fn()`` if ``pred`` holds, else ``false_fn()``."""
    if not traced(pred):
        return true_fn() if pred else false_fn()
    array = _deciding("tf.cond", as_tensor(pred))._array
    if array.dtype != np.bool_:
        array = array != 0
    index = wrap(1 - array.reshape(()).astype(np.int32))
    return choose("cond", index, [true_fn, false_fn], ["true_fn", "false_fn"])


def branch(index: Any, functions: list[Callable]) -> Any:
    """The function at ``index``, called; out of range: the last one."""
    if not traced(index):
        known = int(index)
        return functions[known if 0 <= known < len(functions) else -1]()
    import jax.numpy as jnp

    array, last = _deciding("tf.switch_case", as_tensor(index))._array, len(functions) - 1
    at = jnp.where((array < 0) | (array > last), last, array).astype(np.int32)
    return choose("switch_case", wrap(at), functions, [f"branches[{i}]" for i in range(len(functions))])


def _deciding(name: str, value: Any) -> Any:
    """A value that decides what runs: a tape that follows it is told, for no gradient flows back from there."""
    if isinstance(value, Tensor) and value._key is not None:
        leave(value, name, CONDITION)
    return value


# Loops


def while_loop(condition: Callable, body: Callable, values: Any, *, maximum_iterations: Any = None) -> Any:
    """``values = body(*values)`` while ``condition(*values)``; the last ones."""
    most = None if maximum_iterations is None or traced(maximum_iterations) else max(0, int(maximum_iterations))
    if traced(maximum_iterations):
        return _while_at_most(condition, body, values, as_tensor(maximum_iterations))
    step = lambda row, *values: (body(*values), ())
    if most == 0:
        return values
    asked = lambda *values: _deciding("while_loop", condition(*values))
    return _repeated("while_loop", step, values, condition=asked, length=most)[0]


def _while_at_most(condition: Callable, body: Callable, values: Any, most: Tensor) -> Any:
    """A loop with a limit that only the program knows: the steps are counted."""
    count = convert_to_tensor(0, most.dtype)
    both = while_loop(
        lambda n, values: RECORDED.logical_and(RECORDED.less(n, most), convert_to_tensor(condition(*values))),
        lambda n, values: (n + 1, body(*values)),
        (count, values),
    )
    return both[1]


class Count:
    """As the rows of `for_each`: ``n`` numbers ``start``, ``start + step`` …, where only the program knows ``n``."""

    def __init__(self, n: Any, start: Any = 0, step: Any = 1, dtype: Any = "int32") -> None:
        self.n, self.start, self.step, self.dtype = n, start, step, dtype

    def row(self, i: Tensor) -> Tensor:
        """The number of step ``i``."""
        i = RECORDED.astype(i, dtype=np.dtype(self.dtype))
        return i * as_tensor(self.step, i.dtype) + as_tensor(self.start, i.dtype)


def for_each(rows: Any, body: Callable, values: Any, *, going: Callable | None = None) -> Any:
    """``values = body(row, *values)`` for each row, while ``going(*values)``; the last values."""
    step = lambda row, *values: (body(row, *values), ())
    if isinstance(rows, Count):
        return _counted(rows, step, values, going)
    if isinstance(rows, range):
        rows = convert_to_tensor(np.arange(rows.start, rows.stop, rows.step, dtype=np.int32))
    return _over_rows("for", step, rows, values, going)[0]


def _counted(rows: Count, step: Callable, values: Any, going: Callable | None) -> Any:
    """A loop over numbers of which only the program knows how many: the number of the step is one more value."""
    import jax.numpy as jnp

    def numbered(row: Any, i: Tensor, *values: Any) -> tuple:
        after, collected = step(rows.row(i), *values)
        return (i + 1, *_wrapped(after, len(values))), collected

    more = None if going is None else lambda i, *values: going(*values)
    first = wrap(jnp.zeros((), np.int32))
    count = as_tensor(rows.n)
    last, _ = Repeat("for", numbered, (first, *values), condition=more, count=count).run(None)
    return tuple(last[1:])


def _wrapped(result: Any, count: int) -> Any:
    return result if isinstance(result, (list, tuple)) or count != 1 else (result,)


def scan(
    name: str, body: Callable, rows: Any, values: Any, *, reverse: bool = False, unroll: int = UNROLL
) -> tuple[Any, Any] | None:
    """The last of ``values, out = body(row, *values)``, and all ``out`` stacked; None if it is better run plainly.

    ``rows`` is a nest of tensors of one length; up to ``unroll`` of them are better run plainly.
    """
    if thread.batch:
        return None
    leaves = [as_tensor(leaf) for leaf in nest.flatten(rows)]
    length = leaves[0]._array.shape[0]
    if (not is_open(length) and length <= unroll) or not any(map(traced, [*leaves, *nest.flatten(values)])):
        return None
    return _staged_rows(name, body, rows, leaves, values, backwards=reverse)


def _staged_rows(
    name: str, body: Callable, structure: Any, leaves: list, values: Any, going: Any = None, backwards: bool = False
) -> Any:
    """A loop over rows as part of the program; None if it can only be written out."""
    count = leaves[0]._array.shape[0]
    row_of = lambda parts: nest.pack_sequence_as(structure, parts)
    try:
        repeat = Repeat(name, body, values, condition=going, rows=leaves, row_of=row_of, length=count, backwards=backwards)
        return repeat.run(repeat.trip_count())
    except Exception as error:
        if going is None and _may_unroll(error, count):
            return None
        raise


def _over_rows(name: str, step: Callable, rows: Any, values: Any, going: Callable | None) -> tuple:
    leaves = [convert_to_tensor(leaf) for leaf in nest.flatten(rows)]
    count = leaves[0]._array.shape[0]
    if count > UNROLL and not thread.batch:
        found = _staged_rows(name, step, rows, leaves, values, going)
        if found is not None:
            return found
    return _plain_rows(name, step, rows, leaves, values, going), None


def _plain_rows(name: str, step: Callable, rows: Any, leaves: list, values: Any, going: Callable | None) -> Any:
    """The steps one after the other; if it depends on the program where they end, as a loop after all."""
    for i in range(leaves[0]._array.shape[0]):
        if going is not None:
            more = going(*values)
            if traced(more):
                rest = [RECORDED.getitem(leaf, index=(slice(i, None),)) for leaf in leaves]
                return _staged_rows(name, step, rows, rest, values, going)[0]
            if not more:
                break
        row = nest.pack_sequence_as(rows, [RECORDED.getitem(leaf, index=(i,)) for leaf in leaves])
        values = _wrapped(step(row, *values)[0], len(values))
    return values


def _repeated(name: str, step: Callable, values: Any, *, condition: Callable, length: int | None) -> tuple:
    """A loop while a condition holds: written out if it is short, and the condition known."""
    count = None
    try:
        repeat = Repeat(name, step, values, condition=condition, length=length)
        count = repeat.trip_count()
        if count is None or count > UNROLL:
            return repeat.run(count)
    except Exception as error:
        if traced(condition(*values)) or not _may_unroll(error, count or 0):
            raise
    return _plain_while(name, step, values, condition, length), None


def _plain_while(name: str, step: Callable, values: Any, condition: Callable, length: int | None) -> Any:
    left = -1 if length is None else length
    while left != 0:
        more = condition(*values)
        if traced(more):
            return _repeated(name, step, values, condition=condition, length=None if left < 0 else left)[0]
        if not more:
            break
        result = step(None, *values)[0]
        after = _wrapped(result, len(values))
        nest.assert_same_structure(list(values), list(after))
        values = after
        left -= 1
    return values


def _may_unroll(error: Exception, count: int) -> bool:
    """Whether a loop whose body does not run on tracers, or changes what it carries, is to be written out."""
    if is_open(count) or count > _LONGEST_UNROLLED:
        return False
    return is_due_to_tracing(error) or isinstance(error, (Unfit, Mismatch))


# Rows of a tensor, at an index that only the program knows


def put_row(stack: Tensor, index: Tensor, row: Tensor) -> Tensor:
    """The tensor with another row at ``index``, which is in range."""
    import jax.numpy as jnp
    from jax import lax

    if stack._array.shape[1:] != row._array.shape:
        raise ValueError(
            message(f"Incompatible shape for value ({row.shape}), expected ({stack.shape[1:]})", fix="use one shape for all")
        )
    array = lax.dynamic_update_index_in_dim(jnp.asarray(stack._array), jnp.asarray(row._array), index._array, 0)

    def grad_fn(g: Tensor) -> list:
        zeros = wrap(jnp.zeros(row._array.shape, row._array.dtype))
        return [put_row(g, index, zeros), None, take_row(g, index)]

    return record("put_row", grad_fn, [wrap(array)], [stack, index, row])[0]


def take_row(stack: Tensor, index: Tensor) -> Tensor:
    """The row at ``index``, which is in range."""
    import jax.numpy as jnp
    from jax import lax

    array = lax.dynamic_index_in_dim(jnp.asarray(stack._array), index._array, 0, keepdims=False)
    shape, dtype = stack._array.shape, stack._array.dtype

    def grad_fn(g: Tensor) -> list:
        return [put_row(wrap(jnp.zeros(shape, dtype)), index, g), None]

    return record("take_row", grad_fn, [wrap(array)], [stack, index])[0]


execution._Staging.control = sys.modules[__name__]
