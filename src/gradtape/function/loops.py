"""Loops in a program: a body that is repeated, and the loops that differentiate it.

One primitive does both. A loop takes a carry from step to step, reads a row of each of its inputs, gives a row of results,
and adds up sums. What pulls cotangents back through such a loop is again such a loop, in the other direction: its carry are
the cotangents of the carry, its rows what the carry was before each step, the rows and the cotangents of the results; its
sums are the gradients of what all steps share. So it can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape.function.regions import Body, Level, record, sealed, stub
from gradtape.values.tensor import Tensor, wrap


class Steps:
    """How often a loop runs: ``length`` times, or ``count`` times, an array, of which at most ``length`` are kept.

    With ``backwards`` it goes from the last row to the first.
    """

    def __init__(self, length: int, count: Any = None, backwards: bool = False) -> None:
        self.length = length
        self.count = count
        self.backwards = backwards


def iterate(
    step: Callable, carry: list, rows: list, steps: Steps, *, reverse: bool = False, going: Callable | None = None
) -> tuple[list, list, Any]:
    """The last carry, the results in rows, and how many steps there were; ``step(carry, row)`` gives the next of both."""
    from jax import lax

    if steps.count is None and going is None:
        last, outs = lax.scan(step, list(carry), list(rows), steps.length, reverse)
        return last, outs, None
    return _iterate_while(step, carry, rows, steps, reverse, going)


def _iterate_while(step: Callable, carry: list, rows: list, steps: Steps, reverse: bool, going: Callable | None) -> tuple:
    import jax
    import jax.numpy as jnp
    from jax import lax

    def at(i: Any) -> list:
        return [lax.dynamic_index_in_dim(row, i, keepdims=False) for row in rows]

    first = [jax.ShapeDtypeStruct(row.shape[1:], row.dtype) for row in rows]
    _, shapes = jax.eval_shape(step, list(carry), first)
    kept = [jnp.zeros((steps.length, *out.shape), out.dtype) for out in shapes]

    def goes_on(state: tuple) -> Any:
        i, carry, _ = state
        wanted = jnp.asarray(True) if going is None else going(list(carry))
        return wanted if steps.count is None else jnp.logical_and(i < steps.count, wanted)

    def advance(state: tuple) -> tuple:
        i, carry, kept = state
        place = steps.count - 1 - i if reverse else i
        carry, outs = step(list(carry), at(place))
        kept = [lax.dynamic_update_index_in_dim(all_, out, place, 0) for all_, out in zip(kept, outs)]
        return i + 1, tuple(carry), tuple(kept)

    start = jnp.zeros((), jnp.int32), tuple(carry), tuple(kept)
    count, last, results = lax.while_loop(goes_on, advance, start)
    return list(last), list(results), count


class Loop:
    """A body and how often it runs; `run` records what happened as one step of every tape."""

    def __init__(self, name: str, body: Body, steps: Steps, going: Callable | None = None) -> None:
        self._name = name
        self._body = body
        self._steps = steps
        self._going = going

    @property
    def count(self) -> Any:
        """How many steps there were, an array; None if that was known before."""
        return self._steps.count

    def run(self, carry: list[Tensor], rows: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """The last carry, and the results of all steps in rows."""
        if self._body.order == 1:
            outs = self._run_once(carry, rows)
        else:
            outs = self._run_level(0, carry, rows, [])
        return outs[: len(carry)], outs[len(carry) : len(carry) + len(self._body.levels[0].row_out)]

    # A loop of which somebody may want derivatives of derivatives: each level begins from what the carry was

    def _run_level(self, number: int, carry: list[Tensor], rows: list[Tensor], fixed: list[Tensor]) -> list[Tensor]:
        """All results of a level: the last carry, rows, sums, and what the carry was before each step."""
        level, keeps = self._body.levels[number], number < self._body.order
        names = [*level.carry, *level.rows, *level.fixed]
        outputs = [v for v in level.outputs() if v is not None]
        function = self._body.text.function(outputs, names, effects=number == 0)
        step = _stepper(function, level, [t._array for t in fixed], keeps)
        last, results = self._iterated(step, [t._array for t in carry], rows, level, number)
        row_count = _count(level.row_out)
        arrays = [*last[: len(carry)], *results[:row_count], *last[len(carry) :], *results[row_count:]]
        outs = [wrap(a) for a in arrays]
        if not keeps:
            return sealed(self._name, outs, [*carry, *rows, *fixed, *_stubs(level)])
        return self._recorded(number, carry, rows, fixed, outs)

    def _iterated(self, step: Callable, carry: list, rows: list[Tensor], level: Level, number: int) -> tuple[list, list]:
        import jax.numpy as jnp

        sums = [jnp.zeros(v.aval.shape, v.aval.dtype) for v in level.sums if v is not None]
        going = self._going if number == 0 else None
        last, results, count = iterate(
            step,
            [*carry, *sums],
            [t._array for t in rows],
            self._steps,
            reverse=self._steps.backwards != (number % 2 == 1),
            going=going,
        )
        if number == 0 and count is not None:
            self._steps = Steps(self._steps.length, count)
        return last, results

    def _recorded(
        self, number: int, carry: list[Tensor], rows: list[Tensor], fixed: list[Tensor], outs: list[Tensor]
    ) -> list[Tensor]:
        level, next_level = self._body.levels[number], self._body.levels[number + 1]
        free = self._body.free if number == 0 else [True] * len(carry)
        counts = len(carry), _count(level.row_out), _count(level.sums)
        before = _split(outs, counts)[3]

        def grad_fn(*upstream: Tensor) -> list:
            after, row_ups, sum_ups, links = _split(upstream, counts)
            links = _chosen(links, free) if number + 1 < self._body.order else []
            next_rows = [*before, *rows, *_floating(row_ups), *links]
            found = self._run_level(number + 1, _chosen(after, free), next_rows, [*fixed, *_floating(sum_ups)])
            return self._gradients(next_level, found, free)

        return record(self._name, grad_fn, outs, [*carry, *rows, *fixed, *_stubs(next_level)])

    def _gradients(self, level: Level, found: list[Tensor], free: list[bool]) -> list:
        """What a level found, for each input of the record that it differentiates."""
        rest = iter(found)
        carries = [next(rest) for _ in level.carry_out]
        by_row = [None if v is None else next(rest) for v in level.row_out]
        sums = [None if v is None else next(rest) for v in level.sums]
        by_carry = iter(carries)
        fixed, by_key = sums[: len(sums) - len(level.keys)], sums[len(sums) - len(level.keys) :]
        return [
            *(next(by_carry) if is_free else None for is_free in free), *by_row, *fixed, *(g for g in by_key if g is not None),
            *(None for _ in level.constants),
        ]  # fmt: skip

    # A loop that is differentiated once: the forward loop hands over what the backward one needs

    def _run_once(self, carry: list[Tensor], rows: list[Tensor]) -> list[Tensor]:
        level, gradient = self._body.levels
        back = [v for v in gradient.outputs() if v is not None]
        one, other, rest, shared = self._body.text.two_functions(level.outputs(), back, [*level.carry, *level.rows])
        kept = [i for i, name in enumerate(level.carry) if name in rest]
        counts = len(carry), len(level.row_out)

        def step(carry: list, row: list) -> tuple[list, list]:
            outs = one(*carry, *row)
            return outs[: counts[0]], [*outs[counts[0] :], *(carry[i] for i in kept)]

        last, results = self._iterated(step, [t._array for t in carry], rows, level, 0)
        outs = [wrap(a) for a in (*last, *results[: counts[1]])]
        free, handed_over = self._body.free, results[counts[1] :]
        inputs = [*carry, *rows, *_stubs(gradient)]
        names = [*(("handed over", i) for i in range(len(shared))), *(level.carry[i] for i in kept)]

        def grad_fn(*upstream: Tensor) -> list:
            after = [g._array for g in _chosen(upstream, free)]
            ups = _floating(upstream[counts[0] :])
            up_names = gradient.rows[len(carry) + len(rows) :]
            given = dict(zip(names, handed_over))
            given.update(zip([*level.rows, *up_names], [t._array for t in (*rows, *ups)]))
            read = [*names[: len(shared)], *(name for name in rest if name in given)]
            arguments = [*names[: len(shared)], *rest]

            def step(carry: list, row: list) -> tuple[list, list]:
                values = {**dict(zip(gradient.carry, carry)), **dict(zip(read, row))}
                return _added(other(*(values[name] for name in arguments)), carry, gradient)

            last, found = self._iterated(step, after, [wrap(given[name]) for name in read], gradient, 1)
            tensors = [wrap(a) for a in (*last[: len(after)], *found, *last[len(after) :])]
            return self._gradients(gradient, sealed(self._name, tensors, [*upstream, *inputs]), free)

        return record(self._name, grad_fn, outs, inputs)


def _count(outputs: list) -> int:
    return sum(v is not None for v in outputs)


def _split(values: Any, counts: tuple[int, ...]) -> list[list]:
    """The values in parts of these lengths, and the rest."""
    rest = iter(values)
    return [*([next(rest) for _ in range(count)] for count in counts), list(rest)]


def _chosen(values: Any, chosen: list[bool]) -> list:
    return [value for value, is_chosen in zip(values, chosen) if is_chosen]


def _floating(upstream: Any) -> list[Tensor]:
    """The cotangents that are any: those of integers stand for nothing."""
    return [g for g in upstream if g.dtype.is_trainable]


def _stubs(level: Level) -> list[Tensor]:
    """The inputs of a record for values from outside the body, by their keys."""
    sums = level.sums[len(level.sums) - len(level.keys) :]
    known = [stub(key, v.aval.shape, v.aval.dtype) for key, v in zip(level.keys, sums) if v is not None]
    return known + [stub(key, (), "float32") for key in level.constants]


def _stepper(function: Callable, level: Level, fixed: list, keeps: bool) -> Callable:
    count = len(level.carry)

    def step(carry: list, row: list) -> tuple[list, list]:
        last, results = _added(function(*carry[:count], *row, *fixed), carry, level)
        return last, [*results, *(carry[:count] if keeps else [])]

    return step


def _added(outs: list, carry: list, level: Level) -> tuple[list, list]:
    """What one step gives, with its sums added to those before."""
    count, row_count = len(level.carry), _count(level.row_out)
    sums = [before + new for before, new in zip(carry[count:], outs[count + row_count :])]
    return [*outs[:count], *sums], outs[count : count + row_count]
