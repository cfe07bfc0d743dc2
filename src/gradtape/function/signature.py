"""What a call is to the cache of programs: tensors by dtype and shape, variables by identity, Python values by value."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradtape.core.indexed_slices import IndexedSlices
from gradtape.core.variable import Variable, variable_of
from gradtape.errors import message
from gradtape.values import nest
from gradtape.values.convert import convert_to_tensor, is_jax
from gradtape.values.spec import TensorSpec
from gradtape.values.tensor import JaxTensor, Tensor

_STATIC = frozenset((int, float, bool, complex, str, bytes, type(None)))
_ARRAYS = (np.ndarray, np.generic)


class Call:
    """The arguments of one call, flat: tensors apart, and a key that two calls share if one program serves both."""

    __slots__ = ("key", "kinds", "leaves", "plain", "structure", "tensors")

    def __init__(self, args: tuple, kwargs: dict) -> None:
        self.structure = (args, kwargs) if kwargs else (args, None)
        leaves = nest.flatten(args)
        if kwargs:
            leaves += nest.flatten(kwargs)
        self.tensors: list[Tensor] = []
        self.plain = True  # every tensor holds numbers, in one array
        self.leaves = leaves
        kinds = [self._kind(i, leaf) for i, leaf in enumerate(leaves)]
        self.kinds = tuple(kinds)
        nested = kwargs or any(map(nest.is_nested, args))
        self.key: Any = (self.kinds, _shape_of(self.structure) if nested else len(args))

    def _kind(self, i: int, leaf: Any) -> Any:
        if type(leaf) is Tensor or type(leaf) is JaxTensor:
            array = leaf._array
            self.tensors.append(leaf)
            if array.dtype.kind == "O" or (type(leaf) is JaxTensor and leaf._is_traced()):
                self.plain = False
            return array.dtype, array.shape
        kind = type(leaf)
        if kind in _STATIC:
            return kind, leaf if leaf == leaf else "nan"
        if isinstance(variable_of(leaf), Variable):
            return Variable, variable_of(leaf)._key
        if isinstance(leaf, _ARRAYS) or is_jax(kind):
            self.leaves[i] = convert_to_tensor(leaf)
            return self._kind(i, self.leaves[i])
        if isinstance(leaf, (Tensor, IndexedSlices)) or hasattr(leaf, "_components"):
            self.plain = False
        return _by_value(leaf)

    def rebuild(self, tensors: list) -> tuple[tuple, dict]:
        """The arguments with other tensors in the places of these."""
        rest = iter(tensors)
        leaves = [next(rest) if isinstance(leaf, Tensor) else leaf for leaf in self.leaves]
        args, kwargs = self.structure
        if kwargs is None:
            return nest.pack_sequence_as(args, leaves), {}
        return nest.pack_sequence_as((args, kwargs), leaves)

    def described(self) -> Any:
        """[args, kwargs] with a description for each tensor; None if there are objects in it, which would be kept alive."""
        args, kwargs = self.rebuild([TensorSpec(t._array.shape, t.dtype) for t in self.tensors])
        return [list(args), kwargs] if is_plain([args, kwargs]) else None


def is_plain(specs: Any) -> bool:
    """Whether there are only descriptions of tensors and Python's values in it."""
    return all(type(leaf) in _STATIC or isinstance(leaf, TensorSpec) for leaf in nest.flatten(specs))


NO_ARGUMENTS = Call((), {})
"""The call without arguments, which is always the same one."""


class _Identity:
    """Stands in a key for an object that cannot be compared by value; it dies with the object where that is possible."""

    __slots__ = ("__weakref__", "_number", "_target")

    def __init__(self, target: Any) -> None:
        self._number = id(target)
        self._target: Callable[[], Any]
        try:
            self._target = weakref.ref(target)
        except TypeError:
            self._target = lambda: target

    def __hash__(self) -> int:
        return hash(self._number)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Identity):
            return NotImplemented
        target = self._target()
        return target is not None and target is other._target()


def _by_value(leaf: Any) -> Any:
    """Enums, dtypes, frozen dataclasses and the like are values; anything else counts by identity."""
    kind = type(leaf)
    valued = kind.__hash__ not in (None, object.__hash__) and kind.__eq__ is not object.__eq__
    return (kind, leaf) if valued else (kind, _Identity(leaf))


def _shape_of(structure: Any) -> Any:
    """A nest without its leaves, hashable."""
    if not nest.is_nested(structure):
        return None
    return type(structure), tuple((key, _shape_of(child)) for key, child in nest._children(structure))


# What the signature that the user gave demands


def fitted(args: tuple, specs: Any) -> tuple:
    """The arguments as tensors of the given descriptions."""
    try:
        given = nest.flatten_up_to(specs, args)
    except ValueError as error:
        raise TypeError(
            message("The arguments do not match input_signature.", received=f"{args}", expected=f"{specs}")
        ) from error
    return nest.pack_sequence_as(specs, [fit(value, spec) for value, spec in zip(given, nest.flatten(specs))])


def fit(value: Any, spec: Any) -> Any:
    """One argument as a tensor of its description."""
    if not isinstance(spec, TensorSpec):
        return value
    if isinstance(value, Variable):
        tensor = value.value()
    elif isinstance(value, Tensor):
        tensor = value
    else:
        tensor = convert_to_tensor(value, spec.dtype)
    if tensor.dtype is not spec.dtype or not spec.shape.is_compatible_with(tensor._array.shape):
        raise TypeError(
            message(
                f"Binding inputs to tf.function failed: can not cast {TensorSpec.from_tensor(tensor)!r} to {spec!r}",
                received=f"a tensor of shape {tensor._array.shape} and dtype {tensor.dtype.name}",
                expected=f"shape {spec.shape} and dtype {spec.dtype.name}",
            )
        )
    return tensor


# What changed


def difference(new: Call, old: tuple, name: Callable[[tuple], str]) -> str:
    """In words, the first thing in which a call differs from that of a key; ``name`` gives an argument's, from its path."""
    kinds, structure = old
    if len(new.kinds) != len(kinds) or new.key[1] != structure:
        return "the structure of the arguments changed"
    for path, now, before in zip(_paths(new.structure), new.kinds, kinds):
        if now != before:
            other = now[0] is before[0] is Variable
            return name(path[1:]) + (" is another variable" if other else f" changed from {_words(before)} to {_words(now)}")
    return "the context of the call changed"


def _paths(structure: Any) -> Iterator[tuple]:
    """The keys that lead to each leaf."""
    if not nest.is_nested(structure):
        yield ()
        return
    for key, child in nest._children(structure):
        yield from ((key, *rest) for rest in _paths(child))


def _words(kind: Any) -> str:
    what, detail = kind
    if isinstance(what, np.dtype):
        return f"a {what.name} tensor of shape {detail}"
    if what is Variable:
        return "a variable"
    return f"{what.__name__} {detail!r}" if not isinstance(detail, _Identity) else f"an object of {what.__name__}"
