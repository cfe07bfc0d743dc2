"""From a Python loop over tensors to a `Loop`: what it carries, which variables it assigns, how often it runs.

The body runs once to find that out, and once more to be written down.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.context import thread
from gradtape.errors import InvalidArgumentError, message
from gradtape.function.leaves import Leaves, Mismatch, as_tensor, is_number, is_same, is_tensor, spec, tensor_of
from gradtape.function.loops import Loop, Steps
from gradtape.function.regions import Body, Discovery, Onlooker, Region, Text, depends, order, watched_by
from gradtape.function.state import Tracing, current
from gradtape.ops.execution import Unstageable
from gradtape.ops.tensor_array import TensorArray
from gradtape.values import dtypes, nest
from gradtape.values.convert import convert_to_tensor
from gradtape.values.recorded import RECORDED
from gradtape.values.tensor import Tensor, wrap

FIRST_BOUND = 32
"""How many steps of a loop of unknown length are kept for its gradient; a program that turns out to need more is made anew."""
_LONGEST = 10**7  # steps that are counted while a program is made


class Repeat:
    """A loop that is being made.

    ``body(row, *values)`` gives the next values and what to collect of this step. ``rows`` are tensors, of which
    ``row_of(parts)`` makes the row of one step; ``backwards``, the last row comes first. The loop ends when
    ``condition(*values)`` does not hold, or after ``length`` steps, or ``count``, a tensor.
    """

    def __init__(
        self, name: str, body: Callable, values: Any, *, condition: Callable | None = None, rows: Any = (),
        row_of: Callable = lambda parts: None, length: int | None = None, count: Tensor | None = None, backwards: bool = False,
    ) -> None:  # fmt: skip
        self._name = name
        self._body = body
        self._condition = condition
        self._rows = [tensor_of(as_tensor(row)) for row in rows]
        self._row_of = row_of
        self.length = length
        self._count = count
        self._backwards = backwards
        leaves = nest.flatten(values)
        carried = [i for i, leaf in enumerate(leaves) if is_tensor(leaf) or isinstance(leaf, TensorArray)]
        for i in carried:
            leaves[i] = leaves[i] if isinstance(leaves[i], TensorArray) else as_tensor(leaves[i])
        self._leaves = Leaves(values, carried, leaves)
        self._place = current().next_place()  # type: ignore[union-attr]
        self._discover()

    # The first run

    def _discover(self) -> None:
        """Run the body until it is known which leaves it changes: more of them at each run, so this ends."""
        while True:
            self._found = Discovery((*self._place, "body"))
            self._text, result = self._discovery()
            if not self._carry_more(result):
                break
        self._check(result)

    def _discovery(self) -> tuple[Text, list]:
        import jax

        leaves, kept = self._leaves, {}
        known = [i for i in leaves.carried if not _is_shapeless(leaves.leaves[i])]
        keys = [tensor_of(leaves.leaves[i])._key for i in known]

        def run(*arrays: Any) -> list:
            tensors = [wrap(a) for a in arrays]
            for tensor, key in zip(tensors, [*keys, *(row._key for row in self._rows)]):
                tensor._key = key
            tape = [Onlooker(thread.recorders)] if order() else []
            with watched_by(tape), self._found:
                values = Leaves(leaves.structure, known, _copies(leaves.leaves)).pack(tensors[: len(known)])
                pred = self._predicate(values)
                self._asks = bool(self._found.needs)  # the condition itself is checked
                result, kept["collected"] = self._body(self._row_of(tensors[len(known) :]), *values)
                kept["leaves"] = _same_structure(values, result)
            kept["differentiated"] = bool(tape) and depends(tape[0].records, kept["leaves"])
            return [pred, *(_array(kept["leaves"][i]) for i in known)]

        arrays = [jax.ShapeDtypeStruct(*spec(leaves.leaves[i])) for i in known]
        arrays += [jax.ShapeDtypeStruct(row._array.shape[1:], row._array.dtype) for row in self._rows]
        names = [*(("carry", i) for i in known), *(("row", i) for i in range(len(self._rows)))]
        closed = jax.make_jaxpr(run)(*arrays)
        self._differentiated = kept["differentiated"]
        self._known = known
        return Text(closed, names, self._found.holes), kept["leaves"]

    def _predicate(self, values: Any) -> Any:
        """The condition as an array."""
        import jax.numpy as jnp

        if self._condition is None:
            return jnp.asarray(True)
        array = convert_to_tensor(self._condition(*values))._array
        if array.dtype != np.bool_:
            raise InvalidArgumentError(
                message(
                    f"Input 'input' passed {dtypes.of(array.dtype).name} expected bool",  # type: ignore[union-attr]
                    received=f"the condition of {self._name} as a {array.dtype} tensor",
                    fix="compare it: tf.while_loop goes on while its condition is True",
                )
            )
        if array.size != 1:
            raise InvalidArgumentError(
                message("The condition of a loop must be a scalar.", received=f"shape {array.shape}", fix="tf.reduce_all(it)")
            )
        return jnp.reshape(array, ())

    def _carry_more(self, result: list) -> bool:
        """Carry the leaves that turned out to change; whether there were any."""
        leaves = self._leaves
        changed = []
        for i, (before, after) in enumerate(zip(leaves.leaves, result)):
            if i in leaves.carried or is_same(before, after):
                continue
            if not (is_number(before) or is_tensor(before)) or not (is_number(after) or is_tensor(after)):
                raise Mismatch(
                    message(
                        f"A variable of {self._name} cannot change from {type(before).__name__} to {type(after).__name__}.",
                        received=f"{before!r} before the loop, {after!r} after one step",
                        expected="tensors of one dtype and shape, or a value that stays the same",
                    ),
                    i,
                    (before, after),
                )
            leaves.leaves[i] = as_tensor(before, after.dtype if is_tensor(after) else None)
            changed.append(i)
        leaves.carried = sorted([*leaves.carried, *changed])
        return bool(changed)

    def _check(self, result: list) -> None:
        for i in self._leaves.carried:
            before, after = self._leaves.leaves[i], result[i]
            if isinstance(before, TensorArray):
                if isinstance(after, TensorArray):
                    before._learn(after)
                    continue
                raise Mismatch(f"A TensorArray became a {type(after).__name__} in {self._name}.", i, (before, after))
            check_carried(self._name, before, as_tensor(after, before.dtype))

    # How often it runs

    def trip_count(self) -> int | None:
        """How many steps the loop takes, if that does not depend on what only the running program knows."""
        if self._condition is None:
            return self.length if self._count is None else None
        outputs = dict(zip(self._known, self._text.outputs[1:]))
        needed: list[int] = []
        waiting = [self._text.outputs[0]]
        while waiting:
            variable = waiting.pop()
            names = self._text.reads([variable])
            if any(kind != "carry" or type(self._leaves.leaves[i]) is not Tensor for kind, i in names):
                return None
            new = [i for _, i in names if i not in needed]
            needed += new
            waiting += [outputs[i] for i in new]
        wanted = [self._text.outputs[0], *(outputs[i] for i in needed)]
        if any("Tracer" in type(value).__name__ for value in self._text.constants(wanted)):
            return None
        return self._counted(self._text.function(wanted, [("carry", i) for i in needed]), needed)

    def _counted(self, function: Callable, needed: list[int]) -> int | None:
        import jax
        import jax.numpy as jnp

        limit = _LONGEST if self.length is None else min(self.length, _LONGEST)
        start = [self._leaves.leaves[i]._array for i in needed]

        def goes_on(state: tuple) -> Any:
            return jnp.logical_and(state[0] < limit, function(*state[1:])[0])

        def advance(state: tuple) -> tuple:
            return state[0] + 1, *function(*state[1:])[1:]

        with jax.ensure_compile_time_eval():
            counted: Any = jax.lax.while_loop(goes_on, advance, (0, *map(jnp.asarray, start)))
        count = int(counted[0])
        return None if count == _LONGEST else count

    # The second run

    def run(self, count: int | None) -> tuple[Any, Any]:
        """The last values, and what was collected, stacked; ``count``: how many steps, if that is known."""
        import jax.numpy as jnp

        state: Any = current()
        self._found.settle()
        assigned = list(self._found.assigned.values())
        steps, going = self._steps(count)
        draws = self._drawn(state, steps, count)
        carry = [*self._leaves.tensors(), *(_of_variable(state, v) for v in assigned)]
        needs = list(self._found.needs)
        carry += [state.needs[place] if place in state.needs else wrap(jnp.zeros((), jnp.int32)) for place in needs]
        free = [t.dtype.is_trainable for t in carry[: len(self._leaves.carried)]] + [False] * (len(assigned) + len(needs))
        known = slice(0, count)  # a condition may end the loop before the last row
        rows = [*(self._rows if count is None else [RECORDED.getitem(row, index=(known,)) for row in self._rows]), *draws]
        write = lambda carry, rows: self._written(carry, rows, assigned, needs)
        shapes = [t._array for t in carry], [_row_shape(t) for t in rows]
        body = Body(write, *shapes, order() if self._differentiated else 0, free)
        going = self._going_text(shapes[0], assigned) if going else None
        loop = Loop(self._name, body, steps, going)
        last, collected = loop.run(carry, rows)
        count_of_leaves = len(self._leaves.carried)
        for variable, tensor in zip(assigned, last[count_of_leaves:]):
            _hand_back(state, variable, tensor)
        for place, tensor in zip(needs, last[count_of_leaves + len(assigned) :]):
            state.needs[place] = tensor
        if self._bounded and loop.count is not None:
            before = state.needs.get(self._place)
            state.needs[self._place] = wrap(loop.count if before is None else jnp.maximum(before._array, loop.count))
        values = self._leaves.pack(last[:count_of_leaves])
        if self._asks:
            self._predicate(values)
        return values, self._collected.pack(collected)

    def _steps(self, count: int | None) -> tuple[Steps, Any]:
        self._bounded = False
        if count is not None:
            return Steps(count, backwards=self._backwards), None
        going = self._condition is not None
        limit = None if self._count is None else self._count._array
        if self.length is not None:
            return Steps(self.length, self.length if limit is None else limit), going
        self._bounded = self._differentiated
        bound = current().bound(self._place, FIRST_BOUND) if self._differentiated else 0  # type: ignore[union-attr]
        return Steps(bound, limit), going

    def _drawn(self, state: Tracing, steps: Steps, count: int | None) -> list[Tensor]:
        """The random numbers of all steps, in rows: each step draws all of its numbers, then comes the next."""
        drawn = self._found.drawn
        if not drawn:
            return []
        if self.length is None and count is None:
            raise Unstageable("random numbers in a loop of unknown length")
        all_steps: list = []

        def draw(i: int) -> np.ndarray:
            if i == 0:
                all_steps[:] = [[np.asarray(thunk()) for thunk, _ in drawn] for _ in range(steps.length)]
            return np.stack([step[i] for step in all_steps])

        examples = [np.stack([example] * steps.length) for _, example in drawn]
        return [wrap(state.draw(functools.partial(draw, i), example)) for i, example in enumerate(examples)]

    def _written(self, carry: list[Tensor], rows: list[Tensor], assigned: list, needs: list) -> tuple[list, list]:
        """One step, for the text of the body."""
        leaves, count = self._leaves, len(self._leaves.carried)
        region = Region((*self._place, "body"), [t._array for t in rows[len(self._rows) :]])
        with region:
            region.hold(assigned, carry[count:])
            region.needs = dict(zip(needs, carry[count + len(assigned) :]))
            values = leaves.pack(carry[:count])
            if self._asks:  # once more than the loop does, where it can be carried on
                self._predicate(values)
            result, collected = self._body(self._row_of(rows[: len(self._rows)]), *values)
            after = _same_structure(values, result)
            out = [tensor_of(_like(self._name, leaves.leaves[i], after[i])) for i in leaves.carried]
            out += [region.values[v._key] for v in assigned] + [region.needs[place] for place in needs]
            if set(region.assigned) - {v._key for v in assigned}:
                raise Unstageable(f"{self._name}, whose body assigns other variables when it runs again")
        parts = [as_tensor(part) for part in nest.flatten(collected)]
        self._collected = Leaves(collected, list(range(len(parts))), list(parts))
        return out, parts

    def _going_text(self, carry: list, assigned: list) -> Callable:
        """The condition as a function of the carry."""
        count = len(self._leaves.carried)

        def write(carry: list[Tensor], rows: list[Tensor]) -> tuple[list, list]:
            region = Region((*self._place, "condition"), [])
            with region:
                region.hold(assigned, carry[count:])
                return [], [wrap(self._predicate(self._leaves.pack(carry[:count])))]

        text = Body(write, carry, [], 0, [])
        function = text.text.function(text.text.outputs, text.levels[0].carry, effects=True)
        return lambda arrays: function(*arrays)[0]


def _is_shapeless(leaf: Any) -> bool:
    return isinstance(leaf, TensorArray) and leaf._stacked_shape() is None


def _copies(leaves: list) -> list:
    """A body must not write into the arrays of tensors that surround it."""
    return [leaf._copy() if isinstance(leaf, TensorArray) else leaf for leaf in leaves]


def _array(leaf: Any) -> Any:
    import jax.numpy as jnp

    if isinstance(leaf, TensorArray):
        leaf = leaf._stacked_form()
    return jnp.asarray(as_tensor(leaf)._array)


def _same_structure(values: Any, result: Any) -> list:
    if len(values) == 1 and not isinstance(result, (list, tuple)):
        result = (result,)  # one loop variable need not be wrapped
    if not isinstance(result, (list, tuple)):
        raise TypeError(message(f"'body' must return a list or tuple of {len(values)} loop variables.", received=f"{result!r}"))
    nest.assert_same_structure(list(result), list(values))
    return nest.flatten(list(result))


def _like(name: str, before: Any, after: Any) -> Any:
    if isinstance(before, TensorArray):
        return after
    after = as_tensor(after, before.dtype)
    check_carried(name, before, after)
    return after


def check_carried(name: str, before: Tensor, after: Tensor) -> None:
    """Raise if a loop variable does not keep its dtype and shape."""
    if before.dtype is not after.dtype:
        raise DtypeChanges(
            message(
                f"Loop var enters the loop with type {before.dtype!r} but has type {after.dtype!r} after 1 iteration. Its type "
                "should remain constant.",
                received=f"{name}: {before.dtype.name} before, {after.dtype.name} after one step",
                fix=f"tf.cast(value, {before.dtype!r}) in the body",
            )
        )
    if before._array.shape != after._array.shape:
        raise ShapeChanges(
            message(
                f"Input tensor enters the loop with shape {before.shape}, but has shape {after.shape} after one iteration. To "
                "allow the shape to vary across iterations, use the `shape_invariants` argument of tf.while_loop to specify a "
                "less-specific shape.",
                received=f"{name}: {before.shape} before, {after.shape} after one step",
            )
        )


class Unfit(Exception):
    """A loop variable is not the same kind of value before and after a step."""


class ShapeChanges(Unfit, ValueError):
    """Its shape differs."""


class DtypeChanges(Unfit, TypeError):
    """Its dtype differs."""


def _of_variable(state: Tracing, variable: Any) -> Tensor:
    """What a variable holds, to be carried: a tensor of its own, for no gradient flows through an assignment."""
    import jax.numpy as jnp

    return wrap(jnp.asarray(state.read(variable)._array))


def _hand_back(state: Tracing, variable: Any, tensor: Tensor) -> None:
    new = wrap(tensor._array)
    new._key = variable._key
    state.write(variable, new)


def _row_shape(tensor: Tensor) -> Any:
    import jax

    return jax.ShapeDtypeStruct(tensor._array.shape[1:], tensor._array.dtype)
