"""Branches in a program: several bodies of which one runs. Pulling cotangents back is again a choice between bodies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape.core.context import thread
from gradtape.errors import message
from gradtape.function.leaves import Leaves, Mismatch, as_tensor, is_number, is_same, is_tensor, tensor_of
from gradtape.function.regions import Body, Discovery, Onlooker, Region, depends, order, record, sealed, stub, watched_by
from gradtape.function.state import current
from gradtape.ops.execution import Unstageable
from gradtape.ops.tensor_array import TensorArray
from gradtape.values import nest
from gradtape.values.tensor import Tensor, wrap


def choose(name: str, index: Tensor, functions: list[Callable], words: list[str]) -> Any:
    """The result of the function at ``index``, a traced int32 tensor in range; ``words`` are what to call the functions."""
    import jax.numpy as jnp

    state: Any = current()
    place = state.next_place()
    found = [_Found(function, (*place, i)) for i, function in enumerate(functions)]
    results = _Results(name, found, words)
    for branch in found:
        branch.state.settle()
    assigned = list({v._key: v for branch in found for v in branch.state.assigned.values()}.values())
    needs = list(dict.fromkeys(p for branch in found for p in branch.state.needs))
    before = {p: state.needs[p] if p in state.needs else wrap(jnp.zeros((), jnp.int32)) for p in needs}
    times = order() if any(branch.differentiated for branch in found) else 0
    bodies = []
    for i, (function, branch) in enumerate(zip(functions, found)):
        draws = [state.draw(*drawn) for drawn in branch.state.drawn]
        write = _writer(function, Region((*place, i), draws), results, assigned, before)
        bodies.append(Body(write, [], [], times, []))
    outs = _Choice(name, index, bodies).run()
    count = len(results.leaves.carried)
    for variable, tensor in zip(assigned, outs[count:]):
        new = wrap(tensor._array)
        new._key = variable._key
        state.write(variable, new)
    state.needs.update(zip(needs, outs[count + len(assigned) :]))
    return results.leaves.pack(outs[:count])


def _writer(function: Callable, region: Region, results: _Results, assigned: list, needs: dict) -> Callable:
    def write(carry: list, rows: list) -> tuple[list, list]:
        with region:
            region.needs = dict(needs)
            outs = results.tensors(function())
            outs += [wrap(region.read(v)._array) for v in assigned]
            outs += [region.needs[p] for p in needs]
        return [], outs

    return write


class _Found:
    """What a first run of a branch tells."""

    def __init__(self, function: Callable, place: tuple) -> None:
        import jax

        self.state = Discovery(place)

        def run() -> list:
            tape = [Onlooker(thread.recorders)] if order() else []
            with watched_by(tape), self.state:
                self.result = function()
                self.leaves = [leaf.value() if hasattr(leaf, "assign") else leaf for leaf in nest.flatten(self.result)]
            self.differentiated = bool(tape) and depends(tape[0].records, self.leaves)
            return []

        jax.make_jaxpr(run)()


class _Results:
    """What the branches return, which must agree."""

    def __init__(self, name: str, found: list[_Found], words: list[str]) -> None:
        self._name, self._words = name, words
        first, *others = found
        for other, word in zip(others, words[1:]):
            try:
                nest.assert_same_structure(first.result, other.result)
            except (TypeError, ValueError) as error:
                raise self._differ(type(error), first.result, other.result, str(error), word) from error
        columns = list(zip(*(branch.leaves for branch in found)))
        leaves = [self._merged(i, column) for i, column in enumerate(columns)]
        carried = [i for i, column in enumerate(columns) if not all(is_same(column[0], leaf) for leaf in column[1:])]
        carried = sorted({*carried, *(i for i, leaf in enumerate(leaves) if _is_carried(leaf))})
        self.leaves = Leaves(first.result, carried, leaves)

    def _merged(self, position: int, column: tuple) -> Any:
        """What stands for a leaf that the branches give."""
        first = column[0]
        if all(is_same(first, leaf) for leaf in column[1:]) and not _is_carried(first):
            return first
        arrays = [leaf for leaf in column if isinstance(leaf, TensorArray)]
        if arrays:
            return self._merged_arrays(position, column)
        if not all(is_number(leaf) or is_tensor(leaf) for leaf in column):
            raise Mismatch(
                message(
                    f"{self._words[0]} and {self._words[-1]} arguments to tf.{self._name} must have the same number, type, and "
                    "overall structure of return values.",
                    received=" and ".join(map(repr, column)),
                    expected="tensors of one dtype and shape, or the same value in all of them",
                ),
                position,
                column,
            )
        like = next((leaf.dtype for leaf in column if is_tensor(leaf)), None)
        tensors = [as_tensor(leaf, like) for leaf in column]
        for tensor, word in zip(tensors[1:], self._words[1:]):
            if tensor.dtype is not tensors[0].dtype:
                details = f"{tensors[0]!r} and {tensor!r} have different types"
                raise self._differ(TypeError, tensors[0], tensor, details, word)
            if tensor._array.shape != tensors[0]._array.shape:
                raise Unstageable(f"{self._name} with results of the shapes {tensors[0].shape} and {tensor.shape}")
        return tensors[0]

    def _merged_arrays(self, position: int, column: tuple) -> TensorArray:
        if not all(isinstance(leaf, TensorArray) for leaf in column):
            raise Mismatch(f"Only some of the branches of tf.{self._name} return a TensorArray.", position, column)
        known = [leaf for leaf in column if leaf._stacked_shape() is not None]
        if len({leaf._stacked_shape() for leaf in known}) > 1:
            raise Unstageable(f"{self._name} with TensorArrays of different sizes")
        if not known:
            raise Unstageable(f"{self._name} with TensorArrays whose elements have no known shape")
        return known[0]

    def _differ(self, kind: type, first: Any, other: Any, details: str, word: str) -> Exception:
        return kind(
            f"{self._words[0]} and {word} arguments to tf.{self._name} must have the same number, type, and overall structure "
            f"of return values.\n\n{self._words[0]} output: {first!r}\n{word} output: {other!r}\n\nError details:\n{details}"
        )

    def tensors(self, result: Any) -> list[Tensor]:
        """The result of one branch, for the text."""
        leaves, outs = nest.flatten(result), []
        for i in self.leaves.carried:
            like, leaf = self.leaves.leaves[i], leaves[i]
            if isinstance(like, TensorArray):
                leaf = leaf._copy()
                leaf._learn(like)
                outs.append(tensor_of(leaf))
            else:
                outs.append(as_tensor(leaf, like.dtype))
        return outs


def _is_carried(leaf: Any) -> bool:
    return isinstance(leaf, TensorArray) or (isinstance(leaf, Tensor) and leaf._is_traced())


class _Choice:
    """Bodies of which one runs; what is done with them is recorded as one step of every tape."""

    def __init__(self, name: str, index: Tensor, bodies: list[Body]) -> None:
        self._name, self._index, self._bodies = name, index, bodies
        self._order = bodies[0].order

    def run(self) -> list[Tensor]:
        return self._run_level(0, {})

    def _outputs(self, number: int) -> dict[Any, Any]:
        """What a level gives in any of the branches: by label, shape and dtype."""
        found: dict[Any, Any] = {}
        for body in self._bodies:
            level = body.levels[number]
            for label, v in zip((*level.row_labels, *level.sum_labels), (*level.row_out, *level.sums)):
                if v is not None:
                    found.setdefault(label, v.aval)
        return found

    def _run_level(self, number: int, given: dict[Any, Tensor]) -> list[Tensor]:
        """All outputs of a level, from its inputs by name."""
        from jax import lax

        outputs = self._outputs(number)
        branches = [self._branch(body, number, outputs, list(given)) for body in self._bodies]
        arrays = lax.switch(self._index._array, branches, *(t._array for t in given.values()))
        outs = [wrap(a) for a in arrays]
        if number == self._order:
            return sealed(self._name, outs, [*given.values(), *self._stubs(number)])
        return self._recorded(number, given, list(outputs), outs)

    def _branch(self, body: Body, number: int, outputs: dict[Any, Any], names: list) -> Callable:
        """The level of one branch as a function that gives the outputs of all: zeros for those that it does not have."""
        import jax.numpy as jnp

        level = body.levels[number]
        own = dict(zip((*level.row_labels, *level.sum_labels), (*level.row_out, *level.sums)))
        own = {label: v for label, v in own.items() if v is not None}
        function = body.text.function(list(own.values()), names, effects=number == 0)

        def run(*arrays: Any) -> tuple:
            found = dict(zip(own, function(*arrays)))
            return tuple(found[x] if x in found else jnp.zeros(aval.shape, aval.dtype) for x, aval in outputs.items())

        return run

    def _stubs(self, number: int) -> list[Tensor]:
        """The inputs of a record for values from outside the bodies, by their keys."""
        levels, outputs = [body.levels[number] for body in self._bodies], self._outputs(number)
        keys = dict.fromkeys(key for level in levels for key in level.keys if key in outputs)
        constants = dict.fromkeys(key for level in levels for key in level.constants if key not in keys)
        known = [stub(key, outputs[key].shape, outputs[key].dtype) for key in keys]
        return known + [stub(key, (), "float32") for key in constants]

    def _recorded(self, number: int, given: dict[Any, Tensor], labels: list, outs: list[Tensor]) -> list[Tensor]:
        after = self._outputs(number + 1)
        stubs = self._stubs(number + 1)

        def grad_fn(*upstream: Tensor) -> list:
            ups = {(number + 1, label): g for label, g in zip(labels, upstream) if g.dtype.is_trainable}
            found = dict(zip(after, self._run_level(number + 1, {**given, **ups})))
            return [*(found.get(name) for name in given), *(found.get(t._key) for t in stubs)]

        return record(self._name, grad_fn, outs, [*given.values(), *stubs])
