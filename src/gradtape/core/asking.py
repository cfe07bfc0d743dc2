"""What a caller of `gradient` passes, as the sweep needs it, and what the sweep found, as the caller gets it."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from gradtape.core.backprop import pull_several
from gradtape.core.context import thread
from gradtape.core.indexed_slices import IndexedSlices
from gradtape.core.op import select
from gradtape.core.variable import Variable, variable_of
from gradtape.errors import InvalidArgumentError, dims, message
from gradtape.values import dtypes, nest
from gradtape.values.batched import Batched
from gradtape.values.composite import Structured
from gradtape.values.convert import Convertible, convert_to_tensor
from gradtape.values.placement import beside
from gradtape.values.recorded import RECORDED
from gradtape.values.tensor import JaxTensor, Tensor, wrap


class UnconnectedGradients(enum.Enum):
    """What `gradient` gives for a source that the target does not depend on."""

    NONE = "none"
    ZERO = "zero"


def leading_to(wanted: set, records: dict) -> set:
    """The keys from which a source can be reached."""
    needed = {key for key in wanted if key in records}  # a constant that was merely used is no source (A7.16)
    for key, record in records.items():
        if record[0] is not None and not needed.isdisjoint(record[2]):
            needed.update(record[7] if record[0] is pull_several else (key,))
    needed.discard(None)
    return needed


_PLAIN = frozenset({Tensor, Variable})
_ndarray = np.ndarray


def leaves(structure: Any, role: str) -> list[Any]:
    """The tensors and variables in a nest; a plain list of them, by far the most frequent case, is returned itself."""
    if type(structure) is list and _PLAIN.issuperset(map(type, structure)):
        return structure
    return [differentiable(value, role) for value in nest.flatten(structure)]


def differentiable(value: Any, role: str) -> Any:
    """A target or source as Tensor or Variable."""
    value = variable_of(value)
    if isinstance(value, (Tensor, Variable)):
        return value
    if isinstance(value, Structured):
        return value._differentiable_part()
    if isinstance(value, IndexedSlices):
        raise AttributeError(
            message(
                "'IndexedSlices' object has no attribute '_id'",
                received=f"a sparse gradient as {role}",
                fix="tf.convert_to_tensor(it) first",
            )
        )
    raise TypeError(
        message(
            f"Cannot use {value!r} as a {role} of GradientTape.gradient.",
            received=f"{type(value).__name__}",
            expected=f"{role}s are tensors or variables, or nests of them",
            fix="a plain number or array carries no history: compute with tf.constant or tf.Variable, and tape.watch it",
        )
    )


def in_structure(sources: Any, results: list) -> Any:
    """Gradients in the structure of the sources; that of a ragged or sparse tensor is one, too."""
    for i, source in enumerate(nest.flatten(sources)):
        if isinstance(source, Structured) and results[i] is not None:
            results[i] = source._with_differentiable_part(convert_to_tensor(results[i]))
    return nest.pack_sequence_as(sources, results)


def tensor_of(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else value._tensor


def shape_of(value: Any) -> tuple[int, ...]:
    return tensor_of(value)._array.shape


def unconnected_option(value: Any) -> UnconnectedGradients:
    if type(value) is UnconnectedGradients:
        return value
    try:
        return UnconnectedGradients(value)
    except ValueError:
        text = f"Unknown value for unconnected_gradients: {value!r}"
        raise ValueError(message(text, received=f"{value!r}", expected="'none' or 'zero'")) from None


def seeds_of(targets: list, output_gradients: Any) -> list[Tensor]:
    """The cotangent that each target starts with: what the caller gives, or ones."""
    given = nest.flatten(output_gradients)
    if len(given) < len(targets):
        raise ValueError(
            message(
                "output_gradients has too few entries.",
                received=f"{len(given)} for {len(targets)} targets",
                expected="one per target; None stands for ones",
            )
        )
    if len(given) > len(targets) and all(isinstance(g, (int, float, complex)) for g in given):
        if len(targets) != 1:
            raise ValueError(
                message(
                    "output_gradients has too many entries.",
                    received=f"{len(given)} numbers for {len(targets)} targets",
                    fix="give tensors or arrays: lists are structure, so each number would stand for one target",
                )
            )
        given = [output_gradients]  # one target: the numbers are its gradient, not one entry per target
    return [_seed(target, g) for target, g in zip(targets, given)]


_ONES: dict[int, Tensor] = {}  # the seed of scalar floating targets, by size: a dtype takes long to hash


def ones_of(target: Any) -> Tensor:
    """The cotangent of a target for which none was given."""
    array = (target if type(target) is Tensor else tensor_of(target))._array
    if type(array) is _ndarray and array.dtype.kind == "f":
        if array.ndim or thread.recorders:  # a sweep on tensors may return the seed itself: it must be a new one
            return wrap(np.ones(array.shape, array.dtype))
        if array.itemsize not in _ONES:
            _ONES[array.itemsize] = wrap(np.ones((), array.dtype))
        return _ONES[array.itemsize]
    if array.dtype.kind == "O":
        return wrap(np.zeros(array.shape, np.float32))
    scalar = array.dtype.kind == "f" and not array.shape and type(tensor_of(target)) is JaxTensor
    known = _ONES.get(-array.itemsize) if scalar and not thread.recorders else None
    if known is not None and type(known._array) is type(array):  # not if this is a tracer
        return known
    xp = select((tensor_of(target),))
    with xp.scope():
        ones = wrap(xp.ones(shape=array.shape, dtype=array.dtype))
    if scalar and not ones._is_traced():
        _ONES[-array.itemsize] = ones
    return ones


def _seed(target: Any, g: Any) -> Tensor:
    """The cotangent of a target as the caller gives it; None stands for ones."""
    if g is None:
        return ones_of(target)
    array = tensor_of(target)._array
    if isinstance(g, Structured):
        g = g._differentiable_part()
    g = g._operand() if isinstance(g, Convertible) else convert_to_tensor(g)
    if g._array.dtype != array.dtype:
        words = g.dtype.word, dtypes.of(array.dtype).word  # type: ignore[union-attr]  # the rule computes g · x
        raise InvalidArgumentError(
            message(
                f"cannot compute Mul as input #1(zero-based) was expected to be a {words[0]} tensor but is a {words[1]} tensor",
                received=f"an output gradient of {g.dtype!r} for a target of {dtypes.of(array.dtype)!r}",
                fix="give the output gradient in the target's dtype",
            )
        )
    if g._array.shape == array.shape:
        return g
    try:
        if np.broadcast_shapes(g._array.shape, array.shape) == array.shape:
            return RECORDED.broadcast_to(g, shape=array.shape)
    except ValueError:
        pass
    given, wanted = g._array.shape, array.shape
    text = f"Incompatible shapes: {dims(given)} vs. {dims(wanted)}"
    raise InvalidArgumentError(message(text, received=f"output_gradients {given}", expected=f"what broadcasts to {wanted}"))


def once(g: Any) -> Any:
    """A raw cotangent as the tensor that every position of its source shares."""
    return g if type(g) is Batched or isinstance(g, Tensor) else finished(g, None, UnconnectedGradients.NONE)


def finished(g: Any, source: Any, unconnected: UnconnectedGradients) -> Any:
    """A cotangent as the user gets it."""
    if g is None:
        if unconnected is UnconnectedGradients.NONE:
            return None
        array = tensor_of(source)._array
        zeros = wrap(np.full(array.shape, b"", object) if array.dtype.kind == "O" else np.zeros(array.shape, array.dtype))
        return beside(zeros, tensor_of(source))
    if isinstance(g, Tensor):
        return g if type(g) is Tensor or source is None else beside(g, tensor_of(source))
    if type(g) is IndexedSlices:
        if isinstance(g._dense_shape, Tensor):
            return g
        shape = wrap(np.array(g._dense_shape, np.int32))
        values, indices = (v if isinstance(v, Tensor) else wrap(v) for v in (g._values, g._indices))
        if source is not None:
            values, indices = beside(values, tensor_of(source)), beside(indices, tensor_of(source))
        return IndexedSlices._of(values, indices, shape)
    return wrap(g) if source is None else beside(wrap(g), tensor_of(source))
