"""What a function returns: tensors in a nest, with None and composites among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.indexed_slices import IndexedSlices
from gradtape.core.variable import Variable, variable_of
from gradtape.errors import message
from gradtape.ops.execution import Unstageable
from gradtape.values import nest
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor, wrap

_RETURNED = (
    "To be compatible with tf.function, Python functions must return zero or more Tensors or ExtensionTypes or None values; "
    "in compilation of {}, found return value of type {}, which is not a Tensor or ExtensionType."
)
_VALUES = (bool, int, float, complex, str, bytes, np.ndarray, np.generic)


def as_tensors(result: Any, name: str) -> Any:
    """A result with numbers, arrays and variables as tensors, as a compiled function returns it."""
    if type(result) is Tensor:
        return result
    return nest.pack_sequence_as(result, [_leaf(leaf, name) for leaf in nest.flatten(result)])


def _leaf(leaf: Any, name: str) -> Any:
    if isinstance(variable_of(leaf), Variable):
        return convert_to_tensor(leaf)
    if isinstance(leaf, _VALUES):
        return convert_to_tensor(leaf)
    if leaf is None or isinstance(leaf, (Tensor, IndexedSlices)) or hasattr(leaf, "_components") or hasattr(leaf, "stack"):
        return leaf
    raise TypeError(
        message(
            _RETURNED.format(name, type(leaf)),
            fix="return tensors; keep Python objects outside, or assign them to an attribute",
        )
    )


def expanded(result: Any) -> list:
    """The leaves of a result, composites in their parts."""
    leaves: list = []
    for leaf in nest.flatten(result):
        leaves += [leaf.values, leaf.indices, leaf.dense_shape] if isinstance(leaf, IndexedSlices) else [leaf]
    return leaves


class Results:
    """A result taken apart: the tensors that the program computes, and how to put a result together from new ones."""

    def __init__(self, result: Any) -> None:
        for leaf in nest.flatten(result):
            if leaf is not None and not isinstance(leaf, (Tensor, IndexedSlices)):
                raise Unstageable(f"a result of type {type(leaf).__name__}")
        self._structure = nest.map_structure(lambda leaf: isinstance(leaf, IndexedSlices), result)
        self._leaves = expanded(result)
        # What is in NumPy memory was known while the program was made: it is the same at every call.
        self.places = [i for i, leaf in enumerate(self._leaves) if isinstance(leaf, Tensor) and type(leaf) is not Tensor]
        self.tensors = [self._leaves[i] for i in self.places]
        self._plain = len(self.places) == len(self._leaves) and not any(nest.flatten(self._structure))
        self._packed = _packing(self._structure)
        for i in self.places:
            self._leaves[i] = None

    def assemble(self, tensors: list[Tensor]) -> Any:
        """The result with these tensors in the places of `tensors`."""
        if self._plain:
            return self._packed(tensors)
        leaves = [wrap(leaf._array) if type(leaf) is Tensor else leaf for leaf in self._leaves]
        for i, tensor in zip(self.places, tensors):
            leaves[i] = tensor
        rest = iter(leaves)
        sparse = nest.flatten(self._structure)
        found = [IndexedSlices._of(next(rest), next(rest), next(rest)) if composite else next(rest) for composite in sparse]
        return self._packed(found)


def _packing(structure: Any) -> Callable[[list], Any]:
    """What puts leaves into a structure; without a look at it for the most frequent ones."""
    kind = type(structure)
    if not nest.is_nested(structure):
        return lambda leaves: leaves[0]
    if kind not in (dict, tuple, list) or any(map(nest.is_nested, structure.values() if kind is dict else structure)):
        return lambda leaves: nest.pack_sequence_as(structure, leaves)
    if kind is not dict:
        return kind
    places = {key: i for i, key in enumerate(sorted(structure))}
    order = [(key, places[key]) for key in structure]
    return lambda leaves: {key: leaves[i] for key, i in order}
