"""Keras's functions that move elements without computing: reshape, transpose, join, split, repeat, pad …

Axes are checked here, so that a wrong one is a ValueError as on Keras's other backends; the rest is `ops.numpy_functions`.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, message
from gradtape.keras_backend.numpy_promotion import in_dtype, result_type, tensor, together
from gradtape.ops import arrays, elementwise, indexing, reduce, special
from gradtape.ops import numpy_functions as functions
from gradtape.ops import shape as shapes
from gradtape.ops.arguments import integer, integers
from gradtape.ops.numpy_functions import all_axes, one_axis
from gradtape.values import dtypes
from gradtape.values.shape import refuse_open
from gradtape.values.tensor import Tensor

# One array in another shape


def reshape(x: Any, newshape: Any) -> Tensor:
    """The same elements in another shape; one length may be -1."""
    return shapes.reshape(tensor(x), shape=integers(newshape))


def ravel(x: Any) -> Tensor:
    """All elements on one axis."""
    return shapes.reshape(tensor(x), shape=(-1,))


def expand_dims(x: Any, axis: Any) -> Tensor:
    """New axes of length 1, at the places that they have in the result."""
    x = tensor(x)
    if type(axis) is int:
        return shapes.expand_dims(x, axis=one_axis(axis, x._array.ndim + 1))
    return functions.expand_dims(x, integers(axis))


def squeeze(x: Any, axis: Any = None) -> Tensor:
    """x without axes of length 1: all of them, or those given."""
    x = tensor(x)
    old = x._array.shape
    if axis is None:
        refuse_open(old, "which axes have the length 1")
    axes = [i for i, n in enumerate(old) if n == 1] if axis is None else all_axes(integers(axis), len(old))
    if builtins.any(old[a] != 1 for a in axes):
        text = "cannot select an axis to squeeze out which has size not equal to one"
        raise ValueError(message(text, received=f"axis={axis} of shape {old}", fix="x[:, 0] picks from an axis"))
    return shapes.reshape(x, shape=tuple([n for i, n in enumerate(old) if i not in axes]))


def broadcast_to(x: Any, shape: Any) -> Tensor:
    """x repeated along axes of length 1 to fill a shape."""
    x, target = tensor(x), integers(shape)
    np.broadcast_shapes(x._array.shape, target)  # refuses what does not fit
    return shapes.broadcast_to(x, shape=target)


def ndim(x: Any) -> int:
    """The number of axes."""
    return tensor(x)._array.ndim


def size(x: Any) -> int:
    """The number of elements."""
    return math.prod(tensor(x)._array.shape)


def view(x: Any, dtype: Any = None) -> Tensor:
    """The same bytes as another dtype; the last axis shrinks or grows where the sizes of the elements differ."""
    x = tensor(x)
    if dtype is None:
        return elementwise.identity(x)
    old, want = x._array.shape, dtypes.as_dtype(dtype).numpy
    have = x._array.dtype
    if have.itemsize == want.itemsize:
        return special.bitcast(x, dtype=want)
    if not old or old[-1] * have.itemsize % want.itemsize:
        text = f"A tensor of shape {old} and dtype {have} cannot be viewed as {want}."
        raise ValueError(
            message(text, received=f"a last axis of {old[-1:]} elements", expected=f"a multiple of {want.itemsize} bytes on it")
        )
    if have.itemsize < want.itemsize:
        x = shapes.reshape(x, shape=(*old[:-1], -1, want.itemsize // have.itemsize))
    return shapes.reshape(special.bitcast(x, dtype=want), shape=(*old[:-1], old[-1] * have.itemsize // want.itemsize))


# Axes in another order


def transpose(x: Any, axes: Any = None) -> Tensor:
    """Axes in another order, or reversed."""
    x = tensor(x)
    try:
        return shapes.transpose(x, axes=None if axes is None else integers(axes))
    except InvalidArgumentError as error:
        text = f"axes={axes} is not an order of the {x._array.ndim} axes of the tensor."
        raise ValueError(message(text, received=f"shape {x._array.shape}", expected="each axis once")) from error


def moveaxis(x: Any, source: Any, destination: Any) -> Tensor:
    """Axes moved to other places, the others in their order."""
    return functions.moveaxis(tensor(x), source, destination)


def swapaxes(x: Any, axis1: int, axis2: int) -> Tensor:
    """Two axes exchanged."""
    return functions.swapaxes(tensor(x), axis1, axis2)


def flip(x: Any, axis: Any = None) -> Tensor:
    """Elements in reverse order along all axes, or those given."""
    return functions.flip(tensor(x), None if axis is None else integers(axis))


def flipud(x: Any) -> Tensor:
    """Rows in reverse order."""
    return flip(x, 0)


def fliplr(x: Any) -> Tensor:
    """Columns in reverse order."""
    return flip(x, 1)


def rot90(array: Any, k: int = 1, axes: Any = (0, 1)) -> Tensor:
    """Turned by ``k`` right angles, from the first of two axes towards the second."""
    array = tensor(array)
    rank = array._array.ndim
    if rank < 2:
        text = f"Input array must have at least 2 dimensions. Received: array.ndim={rank}"
        raise ValueError(message(text, received=f"shape {array._array.shape}", expected="a matrix, or a stack of them"))
    if len(axes) != 2 or one_axis(axes[0], rank) == one_axis(axes[1], rank):
        text = f"Invalid axes: {axes}. Axes must be a tuple of two different dimensions."
        raise ValueError(message(text, expected="two axes, as (0, 1)"))
    return functions.rot90(array, k, all_axes(axes, rank))


def roll(x: Any, shift: Any, axis: Any = None) -> Tensor:
    """Elements moved along axes, those pushed out entering at the other end."""
    return functions.roll(tensor(x), shift, axis)


# Joining


def _alike(xs: Any) -> list[Tensor]:
    """The parts to be joined, in one dtype: that of all of them."""
    parts = [tensor(x) for x in xs]
    if not parts:
        raise ValueError(message("need at least one array to concatenate", received="an empty list"))
    first = parts[0]._array.dtype
    if builtins.all(x._array.dtype is first for x in parts):
        return parts
    target = result_type(*(x.dtype for x in parts))
    return [in_dtype(x, target) for x in parts]


def concatenate(xs: Any, axis: int | None = 0) -> Tensor:
    """Arrays joined along an axis (None: all their elements on one)."""
    parts = _alike(xs)
    if axis is None:
        return shapes.concatenate(*map(ravel, parts), axis=0)
    at = one_axis(axis, parts[0]._array.ndim)
    return shapes.concatenate(*parts, axis=at) if len(parts) > 1 else elementwise.identity(parts[0])


def stack(x: Any, axis: int = 0) -> Tensor:
    """Arrays of one shape joined along a new axis."""
    parts = _alike(x)
    different = {p._array.shape for p in parts}
    if len(different) > 1:
        raise ValueError(message("All arrays to be stacked must have one shape.", received=f"shapes {sorted(different)}"))
    return shapes.stack(*parts, axis=one_axis(axis, parts[0]._array.ndim + 1))


def hstack(xs: Any) -> Tensor:
    """Arrays side by side: joined along axis 1, vectors along axis 0."""
    return functions.hstack(_alike(xs))


def vstack(xs: Any) -> Tensor:
    """Arrays one below the other; a vector is a row."""
    return functions.vstack(_alike(xs))


def dstack(xs: Any) -> Tensor:
    """Arrays one behind the other: joined along a third axis."""
    return functions.dstack(_alike(xs))


def append(x1: Any, x2: Any, axis: int | None = None) -> Tensor:
    """x2 joined to the end of x1; without an axis, their elements."""
    return concatenate(together(x1, x2), axis)


# Splitting


def array_split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Parts along an axis: so many, whose lengths differ by one at most, or cut at indices."""
    x, cuts = tensor(x), _cuts(indices_or_sections)
    at = one_axis(axis, x._array.ndim)
    length = x._array.shape[at]
    if not isinstance(cuts, int):
        limits = (0, *(builtins.max(c + length, 0) if c < 0 else builtins.min(c, length) for c in cuts), length)
        sizes = tuple(stop - start for start, stop in pairwise(limits))
    elif cuts > 0:
        sizes = tuple(length // cuts + (i < length % cuts) for i in range(cuts))
    else:
        raise ValueError(message("number sections must be larger than 0.", received=f"{cuts} sections"))
    if builtins.min(sizes) < 0:  # indices that go back: the parts overlap
        return functions.array_split(x, cuts, at)
    return [*arrays.split(x, sizes=sizes, axis=at)]


def _cuts(indices_or_sections: Any) -> Any:
    """One number of parts, or the indices to cut at."""
    if type(indices_or_sections) is int:
        return indices_or_sections
    given = getattr(indices_or_sections, "_array", indices_or_sections)
    return integers(indices_or_sections) if np.ndim(given) else integer(indices_or_sections)


def split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Parts along an axis: so many of one length, or cut at indices."""
    x, cuts = tensor(x), _cuts(indices_or_sections)
    if isinstance(cuts, int) and cuts > 0:
        return functions.split(x, cuts, one_axis(axis, x._array.ndim))
    return array_split(x, cuts, axis)


def _splitting(name: str, doc: str, rank: int, axis: int) -> Callable:
    def call(x: Any, indices_or_sections: Any) -> list[Tensor]:
        x = tensor(x)
        if x._array.ndim < rank:
            text = f"{name} only works on arrays of {rank} or more dimensions"
            raise ValueError(message(text, received=f"shape {x._array.shape}"))
        return split(x, indices_or_sections, builtins.min(axis, x._array.ndim - 1))

    call.__name__, call.__doc__ = name, doc
    return call


hsplit = _splitting("hsplit", "Parts side by side: along axis 1, of a vector along axis 0.", 1, 1)
vsplit = _splitting("vsplit", "Parts one below the other: along axis 0.", 2, 0)
dsplit = _splitting("dsplit", "Parts one behind the other: along axis 2.", 3, 2)


# Repeating and padding


def tile(x: Any, repeats: Any) -> Tensor:
    """x repeated along each axis; missing counts and axes are 1, in front."""
    return functions.tile(tensor(x), integers(repeats))


def repeat(x: Any, repeats: Any, axis: int | None = None) -> Tensor:
    """Each element repeated: all equally often, or each as often as its count."""
    x = ravel(x) if axis is None else tensor(x)
    counts = integers(repeats)
    at = 0 if axis is None else one_axis(axis, x._array.ndim)
    if len(counts) not in (1, x._array.shape[at]) or builtins.min(counts) < 0:
        text = f"repeats={counts} does not fit an axis of length {x._array.shape[at]}."
        raise ValueError(message(text, expected="one count, or one per element along the axis; none negative"))
    return shapes.repeat(x, repeats=counts[0] if len(counts) == 1 else counts, axis=at)


def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: Any = None) -> Tensor:
    """x with a border: a constant, its own elements (edge, reflect, symmetric, wrap), or a statistic of each line."""
    x = tensor(x)
    if constant_values is not None and mode != "constant":
        text = f"Argument `constant_values` can only be provided when `mode == 'constant'`. Received: mode={mode}"
        raise ValueError(message(text, fix="leave it out"))
    table = np.broadcast_to(np.asarray(functions.as_numpy(pad_width)), (x._array.ndim, 2))
    widths = tuple((int(before), int(after)) for before, after in table)
    if mode in ("constant", "empty"):
        return _framed(x, widths, 0 if constant_values is None else constant_values)
    x = elementwise.identity(x)  # a gather from the source itself would give IndexedSlices
    for axis, (before, after) in enumerate(widths):
        if before or after:
            x = _continued(x, axis, before, after, mode)
    return x


def _framed(x: Tensor, widths: Sequence[tuple[int, int]], value: Any) -> Tensor:
    """A border of one value, which may be a tensor."""
    if isinstance(value, (int, float, complex)):
        return shapes.pad(x, widths=widths, value=value)
    value = in_dtype(value, x.dtype.name)
    if value._array.ndim:
        raise ValueError(message("A border has one value.", received=f"constant_values of shape {value._array.shape}"))
    inside = np.pad(np.ones(x._array.shape, bool), widths)
    return elementwise.where(inside, shapes.pad(x, widths=widths), value)


_STATISTICS: dict[str, Callable] = {"maximum": reduce.max, "minimum": reduce.min, "mean": reduce.mean}


def _continued(x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    """x with a border along one axis."""
    length = x._array.shape[axis]
    if mode in _STATISTICS:
        line = _STATISTICS[mode](x, axis=axis, keepdims=True)
        return shapes.concatenate(*[line] * before, x, *[line] * after, axis=axis)
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        text = f"Unknown mode of padding: {mode!r}."
        raise ValueError(message(text, expected=f"constant, edge, empty, reflect, symmetric, wrap, {', '.join(_STATISTICS)}"))
    index = np.pad(np.arange(length), (before, after), mode)  # type: ignore[call-overload]
    return indexing.take(x, index, axis=axis, batch_dims=0)
