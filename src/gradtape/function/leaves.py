"""Loop variables and results of branches: nests of tensors, arrays of tensors, and whatever else Python has."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.ops.execution import Unstageable
from gradtape.ops.tensor_array import TensorArray
from gradtape.values import dtypes, nest
from gradtape.values.convert import Convertible, convert_to_tensor
from gradtape.values.tensor import BatchedTensor, Tensor, wrap

_NUMBERS = (bool, int, float, complex, np.ndarray, np.generic)


class Mismatch(TypeError):
    """A value that a program cannot choose or carry differs: ``position`` among the leaves, and the ``values``."""

    def __init__(self, text: str, position: int, values: tuple) -> None:
        super().__init__(text)
        self.position = position
        self.values = values


def is_number(leaf: Any) -> bool:
    """Whether a leaf is a value that can become a tensor, but is none."""
    return isinstance(leaf, _NUMBERS)


def is_tensor(leaf: Any) -> bool:
    """Whether a leaf is a tensor that holds numbers, or stands for one."""
    if not isinstance(leaf, (Tensor, Convertible)) or hasattr(leaf, "_components"):
        return False
    return getattr(leaf, "dtype", None) is not dtypes.string


def is_same(before: Any, after: Any) -> bool:
    """Whether two leaves are one value, known while the program is made."""
    if before is after:
        return True
    if isinstance(before, (Tensor, Convertible, np.ndarray, TensorArray)) or type(before) is not type(after):
        return False
    try:
        return bool(before == after)
    except Exception:
        return False


def as_tensor(leaf: Any, dtype: Any = None) -> Tensor:
    """A leaf as a tensor; a number in ``dtype``, if it has one."""
    if isinstance(leaf, Convertible):
        leaf = leaf._to_tensor()
    if isinstance(leaf, Tensor):
        if type(leaf) is BatchedTensor:
            raise Unstageable("a batched tensor")
        return leaf
    return convert_to_tensor(leaf, dtype_hint=dtype)


def array_of(leaf: Any) -> Any:
    """The array that a program carries for a leaf."""
    import jax.numpy as jnp

    tensor = leaf._stacked_form() if isinstance(leaf, TensorArray) else leaf
    return jnp.asarray(tensor._array)


def tensor_of(leaf: Any) -> Tensor:
    """The tensor that a program carries for a leaf, on the device, known to tapes as the leaf is."""
    tensor = leaf._stacked_form() if isinstance(leaf, TensorArray) else leaf
    if type(tensor) is Tensor:
        key, tensor = tensor._key, wrap(array_of(tensor))
        tensor._key = key
    return tensor


def rebuilt(leaf: Any, tensor: Tensor) -> Any:
    """A leaf like this one, with another tensor in it."""
    return leaf._with_stack(tensor) if isinstance(leaf, TensorArray) else tensor


def spec(leaf: Any) -> tuple:
    """Shape and dtype of the array of a leaf."""
    if isinstance(leaf, TensorArray):
        return leaf._stacked_shape(), leaf.dtype.numpy
    return tuple(leaf._array.shape), leaf._array.dtype


class Leaves:
    """A nest taken apart: some leaves are carried as arrays, the others stay what they are."""

    def __init__(self, structure: Any, carried: list[int], leaves: list[Any]) -> None:
        self.structure = structure
        self.carried = carried
        self.leaves = leaves

    def pack(self, tensors: list[Tensor]) -> Any:
        """The nest with these tensors in the carried leaves."""
        leaves = list(self.leaves)
        for i, tensor in zip(self.carried, tensors):
            leaves[i] = rebuilt(leaves[i], tensor)
        return nest.pack_sequence_as(self.structure, leaves)

    def tensors(self) -> list[Tensor]:
        return [tensor_of(self.leaves[i]) for i in self.carried]
