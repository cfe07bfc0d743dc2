"""Nested structures: lists, tuples, namedtuples, mappings and attrs classes with leaves in them.

Mappings are visited in the order of their sorted keys; None, strings, arrays, sets and generators are leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MappingView
from typing import Any

from gradtape.errors import message, shown

_STRUCTURES = "The two structures don't have the same nested structure."


_NESTED: dict[type, bool] = {list: True, tuple: True, dict: True}  # by type: the abstract classes are slow to ask


def is_nested(value: Any) -> bool:
    """Whether a value has parts that `flatten` would visit."""
    kind = type(value)
    nested = _NESTED.get(kind)
    if nested is None:
        nested = issubclass(kind, (list, tuple, Mapping, MappingView)) or hasattr(kind, "__attrs_attrs__")
        if len(_NESTED) > 1000:  # a program that makes classes as it runs; they are held here
            _NESTED.clear()
        _NESTED[kind] = nested
    return nested


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The leaves of a structure, in order.

    >>> flatten({"b": 2, "a": [1, (0,)]})
    [1, 0, 2]
    """
    if not is_nested(structure):
        return _expanded([structure]) if expand_composites else [structure]
    leaves: list[Any] = []
    _collect(structure, leaves)
    return _expanded(leaves) if expand_composites else leaves


def _expanded(leaves: list[Any]) -> list[Any]:
    """With the tensors that composite values are made of in their place."""
    return [part for leaf in leaves for part in (leaf._components() if hasattr(leaf, "_components") else (leaf,))]


def _collect(structure: Any, leaves: list[Any]) -> None:
    children = structure if type(structure) in (list, tuple) else [child for _, child in _children(structure)]
    for child in children:
        if is_nested(child):
            _collect(child, leaves)
        else:
            leaves.append(child)


def _children(structure: Any) -> Iterator[tuple[Any, Any]]:
    """(key, child) pairs in the order of flattening."""
    if isinstance(structure, Mapping):
        for key in _sorted(structure):
            yield key, structure[key]
    elif isinstance(structure, (list, tuple, MappingView)):
        yield from enumerate(structure)  # type: ignore[arg-type]  # every view of a mapping is iterable
    else:
        for field in type(structure).__attrs_attrs__:
            yield field.name, getattr(structure, field.name)


def _sorted(mapping: Mapping) -> list[Any]:
    try:
        return sorted(mapping)
    except TypeError as error:
        text = "nest only supports dicts with sortable keys."
        raise TypeError(message(text, received=f"keys {list(mapping)}", expected="one type of key")) from error


def pack_sequence_as(structure: Any, flat_sequence: Any, expand_composites: bool = False) -> Any:
    """The flat leaves arranged in the shape and container types of ``structure``.

    >>> pack_sequence_as({"b": 0, "a": (0, 0)}, [1, 2, 3])
    {'b': 3, 'a': (1, 2)}
    """
    if isinstance(flat_sequence, (str, bytes)) or not hasattr(flat_sequence, "__iter__"):
        text = f"Attempted to pack value:\n  {flat_sequence}\ninto a structure, but found incompatible type."
        raise TypeError(message(text, received=shown(flat_sequence), expected="a list or tuple of leaves"))
    leaves = _collected(flatten(structure), flat_sequence) if expand_composites else list(flat_sequence)
    if type(structure) is list and len(structure) == len(leaves) and not any(map(is_nested, structure)):
        return leaves  # by far the most frequent case
    count = len(flatten(structure))
    if not is_nested(structure) and len(leaves) != 1:
        text = f"The target structure is of type `{type(structure)}`, but {len(leaves)} leaves were given."
        raise ValueError(
            message(text, received=f"{len(leaves)} leaves", expected="one leaf for a structure that is no container")
        )
    if count != len(leaves):
        text = f"Could not pack sequence. Structure had {count} atoms, but flat_sequence had {len(leaves)} items."
        raise ValueError(
            message(text, received=f"structure {shown(structure)}, flat sequence {shown(leaves)}", expected=f"{count} leaves")
        )
    return _build(structure, iter(leaves))


def _collected(like: list[Any], parts: Any) -> list[Any]:
    """Composite values from the tensors that they are made of; the inverse of `_expanded`."""
    parts = list(parts)
    leaves: list[Any] = []
    for leaf in like:
        count = len(leaf._components()) if hasattr(leaf, "_components") else 1
        taken, parts = parts[:count], parts[count:]
        leaves += taken if count == 1 or len(taken) < count else [leaf._from_components(taken)]
    return leaves + parts


def _build(structure: Any, leaves: Iterator[Any]) -> Any:
    if not is_nested(structure):
        return next(leaves)
    parts = {key: _build(child, leaves) for key, child in _children(structure)}
    return _like(structure, parts)


def _like(structure: Any, parts: dict[Any, Any]) -> Any:
    """A container of the structure's type with these parts by key."""
    kind = type(structure)
    if isinstance(structure, Mapping):
        items = [(key, parts[key]) for key in structure]  # the original order of the keys
        if hasattr(structure, "default_factory"):
            return kind(structure.default_factory, items)
        return kind(items)  # type: ignore[call-arg]
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return kind(*parts.values())
    if isinstance(structure, (list, tuple)):
        return kind(parts.values())
    if isinstance(structure, MappingView):
        return list(parts.values())
    return kind(**{name.lstrip("_"): part for name, part in parts.items()})


def map_structure(func: Callable, *structure: Any, check_types: bool = True, expand_composites: bool = False) -> Any:
    """Apply a function to the corresponding leaves of structures.

    >>> map_structure(lambda x, y: x + y, [1, (2,)], [10, (20,)])
    [11, (22,)]
    """
    if not callable(func):
        text = f"func must be callable, got: {func}"
        raise TypeError(
            message(text, received=shown(func), fix="the function comes first: tf.nest.map_structure(func, structure)")
        )
    if not structure:
        text = "Must provide at least one structure"
        raise ValueError(message(text, received="the function alone", fix="tf.nest.map_structure(func, structure)"))
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types=check_types)
    results = [func(*leaves) for leaves in zip(*[flatten(part, expand_composites) for part in structure])]
    return pack_sequence_as(structure[0], results, expand_composites)


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    """Raise unless both have the same nesting (ValueError) and container types (TypeError)."""
    first, second = is_nested(nest1), is_nested(nest2)
    if first != second:
        text = f"{_STRUCTURES}\n\nFirst structure: {nest1!r}\n\nSecond structure: {nest2!r}"
        raise ValueError(message(text, received=_both(nest1, nest2), expected="a container in both, or a leaf in both"))
    if not first:
        return
    if check_types and _kind(nest1) is not _kind(nest2):
        raise TypeError(
            message(
                f"{_STRUCTURES}\n  They don't have the same sequence type. "
                f"First structure has type {type(nest1)}, while second structure has type {type(nest2)}.",
                received=_both(nest1, nest2),
                expected="the same type of container in both",
                fix=f"make the second a {type(nest1).__name__}, or pass check_types=False",
            )
        )
    children1, children2 = list(_children(nest1)), list(_children(nest2))
    if [k for k, _ in children1] != [k for k, _ in children2]:
        text = f"{_STRUCTURES}\n\nFirst structure: {nest1!r}\n\nSecond structure: {nest2!r}"
        raise ValueError(message(text, received=_both(nest1, nest2), expected="as many parts in both, with the same keys"))
    for (_, child1), (_, child2) in zip(children1, children2):
        assert_same_structure(child1, child2, check_types)


def _both(first: Any, second: Any) -> str:
    return f"{shown(first)} and {shown(second)}"


def flatten_up_to(shallow_tree: Any, input_tree: Any) -> list[Any]:
    """The parts of ``input_tree`` at the leaves of ``shallow_tree``; what is nested deeper stays together."""
    if not is_nested(shallow_tree):
        return [input_tree]
    if not is_nested(input_tree):
        assert_same_structure(shallow_tree, input_tree, check_types=False)
    inner, outer = dict(_children(input_tree)), dict(_children(shallow_tree))
    if inner.keys() != outer.keys():
        text = f"{_STRUCTURES}\n\nFirst structure: {shallow_tree!r}\n\nSecond structure: {input_tree!r}"
        raise ValueError(message(text, received=_both(shallow_tree, input_tree), expected=f"the keys {list(outer)}"))
    return [leaf for key, child in outer.items() for leaf in flatten_up_to(child, inner[key])]


def _kind(structure: Any) -> type:
    """dict, OrderedDict and defaultdict count as one kind; everything else is its own."""
    return Mapping if isinstance(structure, Mapping) else type(structure)  # type: ignore[type-abstract]
