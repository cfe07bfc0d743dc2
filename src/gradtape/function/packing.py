"""Small variables travel as one array: taking each of them out of the program costs ten times as long as cutting a view.

Of a tiny step that is most of the time. Only where results are views of the program's own memory, which is on a CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.variable import Variable
from gradtape.function.state import Snapshot, hold
from gradtape.values.tensor import Tensor, wrap

LARGEST = 4096
"""The most elements of a variable that is packed: copying more costs more than it saves."""


class Pack:
    """Variables of one dtype, end to end in one array."""

    def __init__(self, variables: list[Variable], shapes: list[tuple[int, ...]]) -> None:
        self.variables = variables
        self._keys = [v._key for v in variables]
        self._shapes = shapes
        ends = np.cumsum([int(np.prod(s)) for s in shapes]).tolist()
        self._parts = [slice(start, end) for start, end in zip([0, *ends], ends)]
        self._tensors: list[Tensor] | None = None  # what the variables held after the last call
        self._array: Any = None  # of which they are views

    def gather(self, start: Snapshot) -> Any:
        """What the variables hold, as one array."""
        tensors = [start.values[key] for key in self._keys]
        if self._tensors is not None and all(a is b for a, b in zip(tensors, self._tensors)):
            return self._array
        return np.concatenate([t._array.reshape(-1) for t in tensors])

    def split(self, array: Any) -> list:
        """The parts, in the variables' shapes."""
        return [array[part].reshape(shape) for part, shape in zip(self._parts, self._shapes)]

    def hand_out(self, array: Any) -> None:
        """Give each variable its part of what the program computed."""
        self._array, self._tensors = array, [wrap(part) for part in self.split(np.asarray(array))]
        for variable, tensor in zip(self.variables, self._tensors):
            tensor._key = variable._key
            hold(variable, tensor)


def packs_of(variables: list[Variable], shapes: dict[Any, tuple[tuple[int, ...], np.dtype]]) -> list[Pack]:
    """The packs for those of these variables that are small, and not alone of their dtype."""
    groups: dict[np.dtype, list[Variable]] = {}
    for variable in variables:
        shape, dtype = shapes.get(variable._key, (None, None))
        if shape is not None and dtype is not None and np.prod(shape) <= LARGEST and variable.shape.is_fully_defined():
            groups.setdefault(dtype, []).append(variable)
    return [Pack(group, [shapes[v._key][0] for v in group]) for group in groups.values() if len(group) > 1]
