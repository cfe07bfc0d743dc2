"""Elements: structures of tensors. Tuples and mappings are structure, lists are tensors; batching and padding of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradtape.data import ragged
from gradtape.data.cursor import packer
from gradtape.errors import DataLossError, InvalidArgumentError, dims, message, shown
from gradtape.ops.ragged import RaggedTensor
from gradtape.values import dtypes, nest
from gradtape.values.convert import convert_to_tensor
from gradtape.values.shape import TensorShape
from gradtape.values.spec import TensorSpec, TypeSpec, type_spec_from_value
from gradtape.values.tensor import Tensor, wrap


class Opaque:
    """Base of our own values that are leaves of an element though they are no tensors: datasets, optionals."""

    __slots__ = ()


def normalize(value: Any) -> Any:
    """An element from what a user gives or returns: every leaf a tensor."""
    if type(value) is Tensor:
        return value
    if nest.is_nested(value) and not isinstance(value, list):
        return nest._like(value, {key: normalize(child) for key, child in nest._children(value)})
    if value is None or isinstance(value, Opaque) or _is_composite(value):
        return value
    return convert_to_tensor(value)


def _is_composite(value: Any) -> bool:
    return hasattr(value, "row_splits") or hasattr(value, "dense_shape")


def arguments(element: Any) -> tuple:
    """What a user function is called with: a tuple is several arguments."""
    return element if type(element) is tuple else (element,)


def returned(value: Any) -> Any:
    """What a user function gives as an element; a list of results is a tuple."""
    return normalize(tuple(value) if type(value) is list else value)


# Specs


def spec_of(element: Any) -> Any:
    """The specs of an element."""
    return nest.map_structure(lambda leaf: None if leaf is None else type_spec_from_value(leaf), element)


def sliced(spec: Any) -> Any:
    """The specs of the slices along the first axis."""
    return nest.map_structure(ragged.sliced_spec, spec)


def stacked(spec: Any, count: int | None) -> Any:
    """The specs of ``count`` elements stacked."""
    return nest.map_structure(lambda leaf: ragged.stacked_spec(leaf, count), spec)


def common(first: Any, second: Any) -> Any:
    """The specs that both fit; TypeError if there are none."""
    try:
        nest.assert_same_structure(first, second)
        return nest.map_structure(lambda a, b: a.most_specific_compatible_type(b), first, second)
    except (TypeError, ValueError):
        raise TypeError(
            message(
                f"Incompatible dataset elements:\n  {first} vs.   {second}",
                expected="the same structure and dtypes in both datasets",
            )
        ) from None


def check_specs(spec: Any) -> None:
    """Refuse what is not a structure of specs."""
    for leaf in nest.flatten(spec):
        if not isinstance(leaf, TypeSpec):
            text = (
                "`output_signature` must contain objects that are subclass of `tf.TypeSpec` but found "
                f"{type(leaf)} which is not."
            )
            raise TypeError(message(text, received=shown(leaf), fix="tf.TensorSpec(shape, dtype)"))


def specs_from(types: Any, shapes: Any) -> Any:
    """Specs from a structure of dtypes and one of shapes, which may be missing."""
    types = _listless(types)
    if shapes is None:
        return nest.map_structure(lambda dtype: TensorSpec(None, dtype), types)
    leaves = leaves_like(types, shapes, "output_shapes")
    return packer(types)([TensorSpec(shape, dtype) for shape, dtype in zip(leaves, nest.flatten(types))])


def _listless(structure: Any) -> Any:
    return tuple(structure) if isinstance(structure, list) else structure


def leaves_like(structure: Any, given: Any, what: str) -> list:
    """The parts of ``given`` for the leaves of ``structure``; each may itself be a list, a tuple or a shape."""
    if not nest.is_nested(structure):
        return [given]
    if isinstance(given, Mapping) != isinstance(structure, Mapping) or not isinstance(given, (Mapping, tuple)):
        raise TypeError(
            message(
                f"If shallow structure is a sequence, input must also be a sequence. Input has type: '{type(given).__name__}'.",
                received=f"{what}={given!r}",
                expected=f"a structure like {structure!r}",
            )
        )
    if len(given) != len(structure):
        text = f"The two structures don't have the same sequence length: {len(structure)} and {len(given)}."
        raise ValueError(message(text, received=f"{what} of length {len(given)}", expected=f"length {len(structure)}"))
    return [leaf for key, child in nest._children(structure) for leaf in leaves_like(child, given[key], what)]


# Batches


def _hosts(elements: Sequence[Any]) -> tuple[Any, list[list]]:
    """The structure of elements, and for every leaf of it the arrays of all of them, or the ragged tensors."""
    template = elements[0]
    if type(template) is Tensor:  # the frequent case
        return template, [[element._host() for element in elements]]
    for element in elements[1:]:
        nest.assert_same_structure(template, element)
    return template, [[_part(leaf) for leaf in leaves] for leaves in zip(*map(nest.flatten, elements))]


def _part(leaf: Any) -> Any:
    return leaf._host() if isinstance(leaf, Tensor) else leaf if isinstance(leaf, RaggedTensor) else _host(leaf)


def _host(leaf: Any) -> np.ndarray:
    if not isinstance(leaf, Tensor):
        raise TypeError(
            message(
                f"Cannot batch elements of type {type(leaf).__name__}.",
                expected="tensors",
                fix="windows and other datasets: dataset.flat_map(lambda window: window.batch(n))",
            )
        )
    return leaf._host()


def column(leaf: Any) -> Any:
    """A leaf as the array of its rows."""
    return ragged.RaggedColumn(leaf) if isinstance(leaf, RaggedTensor) else _host(leaf)


def stack(elements: Sequence[Any]) -> Any:
    """Elements as one, with a new first axis."""
    template, components = _hosts(elements)
    return packer(template)([
        ragged.stack(arrays) if isinstance(arrays[0], RaggedTensor) else wrap(_stacked(arrays, i))
        for i, arrays in enumerate(components)
    ])  # fmt: skip


def _stacked(arrays: list[np.ndarray], component: int) -> np.ndarray:
    first = arrays[0]
    out = np.empty((len(arrays), *first.shape), first.dtype)
    for position, array in enumerate(arrays):
        if array.shape != first.shape or array.dtype != first.dtype:
            raise _unlike(first, array, component, position)
        out[position, ...] = array
    return out


def _unlike(first: np.ndarray, array: np.ndarray, component: int, position: int) -> InvalidArgumentError:
    if array.dtype != first.dtype:
        return InvalidArgumentError(
            message(
                f"Cannot batch tensors with different types in component {component}. First element had type "
                f"{wrap(first).dtype.word} and element {position} had type {wrap(array).dtype.word}.",
                received=f"{first.dtype.name}, then {array.dtype.name}",
                fix="tf.cast in a map before batch",
            )
        )
    return InvalidArgumentError(
        message(
            f"Cannot batch tensors with different shapes in component {component}. First element had shape "
            f"{dims(first.shape)} and element {position} had shape {dims(array.shape)}.",
            received=f"{first.dtype.name} {first.shape}, then {array.shape}",
            fix="padded_batch pads them to one shape",
        )
    )


# Padding


def padded_spec(spec: Any, shapes: Any) -> Any:
    """The specs of single elements after padding to ``shapes``."""
    leaves = nest.flatten(spec)
    wanted = [leaf.shape for leaf in leaves] if shapes is None else _shapes(spec, shapes)
    for leaf, shape in zip(leaves, wanted):
        if leaf.shape.rank is None and shape.rank is None:
            raise ValueError(
                message(
                    "You must provide `padded_shapes` argument because component 0 has unknown rank.",
                    received=f"elements {spec!r}",
                    fix="padded_batch(n, padded_shapes=[None]) for vectors",
                )
            )
        if leaf.shape.rank is not None and shape.rank != leaf.shape.rank:
            raise ValueError(
                message(
                    f"The padded shape {shape} is not compatible with the shape {leaf.shape} of the corresponding input "
                    "component.",
                    received=f"padded shape {shape}",
                    expected=f"{leaf.shape.rank} lengths; None pads to the longest element",
                )
            )
    return packer(spec)([TensorSpec(shape, leaf.dtype) for leaf, shape in zip(leaves, wanted)])


def _shapes(spec: Any, shapes: Any) -> list[TensorShape]:
    return [_shape(part) for part in leaves_like(spec, shapes, "padded_shapes")]


def _shape(part: Any) -> TensorShape:
    if isinstance(part, (Tensor, np.ndarray)):
        part = np.asarray(part).tolist()
    lengths = TensorShape(part) if part is None or isinstance(part, TensorShape) else part
    return TensorShape([None if n in (-1, None) else n for n in (lengths if not isinstance(lengths, int) else [lengths])])


def padding_leaves(spec: Any, values: Any) -> list[np.ndarray]:
    """The number or string to pad each leaf with."""
    leaves = nest.flatten(spec)
    if values is None:
        parts: list[Any] = [None] * len(leaves)
    elif nest.is_nested(values) or not nest.is_nested(spec):
        parts = leaves_like(spec, values, "padding_values")
    else:
        parts = [values] * len(leaves)
    return [_padding(leaf, part) for leaf, part in zip(leaves, parts)]


def _padding(leaf: TensorSpec, value: Any) -> np.ndarray:
    if value is None:
        return np.array(b"" if leaf.dtype is dtypes.string else 0, leaf.dtype.numpy)
    tensor = convert_to_tensor(value)
    if tensor.dtype is not leaf.dtype:
        raise TypeError(
            message(
                f"Invalid `padding_values`. `padding_values` values type {tensor.dtype} does not match type {leaf.dtype} "
                "of the corresponding input component.",
                received=shown(value),
                expected=f"a {leaf.dtype.name}",
                fix=f"tf.constant({value!r}, {leaf.dtype!r})" if tensor.dtype.is_numeric and leaf.dtype.is_numeric else None,
            )
        )
    return tensor._host()


def pad_and_stack(elements: Sequence[Any], shapes: list[TensorShape], padding: list[np.ndarray]) -> Any:
    """Elements as one, each padded at the end to the given shape; unknown lengths are the longest of the batch."""
    template, components = _hosts(elements)
    for arrays in components:
        if isinstance(arrays[0], RaggedTensor):
            text = "Padded batching of components of type RaggedTensor is not supported."
            raise TypeError(message(text, fix="batch, or map(lambda x: x.to_tensor()) before"))
    return packer(template)([wrap(_padded(*parts)) for parts in zip(components, shapes, padding)])


def _padded(arrays: list[np.ndarray], shape: TensorShape, value: np.ndarray) -> np.ndarray:
    lengths = shape.as_list()
    for array in arrays:
        if array.ndim != len(lengths):
            text = (
                "All elements in a batch must have the same rank as the padded shape for component 0: "
                f"expected rank {len(lengths)} but got element with rank {array.ndim}"
            )
            raise InvalidArgumentError(
                message(text, received=f"an element of shape {array.shape}", expected=f"{len(lengths)} axes")
            )
        if any(n is not None and have > n for have, n in zip(array.shape, lengths)):
            raise DataLossError(
                message(
                    "Attempted to pad to a smaller size than the input element.",
                    received=f"an element of shape {array.shape}",
                    expected=f"at most {shape}",
                )
            )
    full = [max(a.shape[axis] for a in arrays) if n is None else n for axis, n in enumerate(lengths)]
    out = np.full((len(arrays), *full), value[()], arrays[0].dtype)
    for position, array in enumerate(arrays):
        inside: tuple[Any, ...] = (position, *map(slice, array.shape), ...)
        out[inside] = array
    return out
