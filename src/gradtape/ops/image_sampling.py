"""Grids at places between their points: interpolation, maps of the plane, smoothing, stretching.

Composed of recorded ops, so that gradients flow to the values and to the places. Point i of an axis is at place i, and
places are computed in float32 at least: half precision cannot number the pixels of a picture.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.ops import arrays, elementwise, indexing, reduce
from gradtape.ops import shape as shapes
from gradtape.ops.clip import clip
from gradtape.ops.contract import einsum
from gradtape.ops.conv import conv
from gradtape.ops.image_resize import KERNELS
from gradtape.ops.solvers import solve
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor, wrap


def working_dtype(*tensors: Tensor) -> dtypes.DType:
    """What places and weights are computed in."""
    return dtypes.float64 if any(x.dtype is dtypes.float64 for x in tensors) else dtypes.float32


def counting(count: int, dtype: dtypes.DType) -> Tensor:
    """The places of the points of an axis."""
    return wrap(np.arange(count, dtype=dtype.numpy))


# Beyond the edge: from the number of a point, which may lie outside, to the one whose value it has


def _mirrored(number: Tensor, size: int) -> Tensor:
    """c b | a b c | b a: mirrored at the centre of the last point."""
    last = max(size - 1, 1)
    return elementwise.abs(elementwise.remainder(number + last, 2.0 * last) - last) if size > 1 else number * 0


def _reflected(number: Tensor, size: int) -> Tensor:
    """b a | a b c | c b: mirrored behind the last point."""
    place = elementwise.remainder(number, 2.0 * size)
    return elementwise.minimum(place, 2.0 * size - 1 - place)


FILL_MODES: dict[str, Callable[[Tensor, int], Tensor]] = {
    "constant": lambda number, size: number,
    "nearest": lambda number, size: clip(number, 0.0, size - 1.0),
    "wrap": lambda number, size: elementwise.remainder(number, float(size)),
    "mirror": _mirrored,
    "reflect": _reflected,
}


# Interpolation


class _Neighbour(NamedTuple):
    """A point of one axis that a place reads: its number, whether it is on the axis, and its share."""

    number: Tensor
    inside: Tensor
    weight: Tensor


def _rises(x: Tensor, part: Tensor) -> Tensor:
    """Whether the nearest whole number is the one above; halves go away from zero."""
    return elementwise.where(elementwise.greater(x, 0), elementwise.greater_equal(part, 0.5), elementwise.greater(part, 0.5))


def round_half_away(x: Tensor) -> Tensor:
    """The nearest whole number, halves away from zero."""
    below = elementwise.floor(x)
    return below + elementwise.cast(_rises(x, x - below), x.dtype)


def _neighbours(place: Tensor, size: int, order: int, fill_mode: str) -> list[_Neighbour]:
    if fill_mode == "constant":  # far outside is no different from just outside, and this is finite
        place = clip(place, -2.0, size + 1.0)
    below = elementwise.floor(place)
    part = place - below
    if order == 0:
        return [_neighbour(below + elementwise.cast(_rises(place, part), place.dtype), part, size, fill_mode)]
    return [_neighbour(below, 1 - part, size, fill_mode), _neighbour(below + 1, part, size, fill_mode)]


def _neighbour(number: Tensor, weight: Tensor, size: int, fill_mode: str) -> _Neighbour:
    number = FILL_MODES[fill_mode](number, size)
    inside = elementwise.logical_and(elementwise.greater_equal(number, 0), elementwise.less(number, size))
    index = elementwise.where(inside, number, elementwise.zeros_like(number))  # nan is outside too
    return _Neighbour(elementwise.cast(index, dtypes.int64), inside, weight)


def interpolate(
    rows: Tensor, sizes: Sequence[int], places: Sequence[Tensor], *, order: int = 1, fill_mode: str = "constant",
    fill_value: Any = 0, start: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The values of a grid at ``places``, a tensor of positions for each of its axes, in the dtype of ``rows``.

    The first axis of ``rows`` has the points of the grid, the last axis of the grid running fastest; the others go
    along. Order 0 takes the nearest point, order 1 interpolates linearly. ``start`` is the row where the grid of each
    place begins, if there are several.

    >>> interpolate(wrap(np.array([0.0, 10.0, 20.0])), [3], [wrap(np.array([0.5, 1.0, 2.5]))], fill_value=100.0).numpy()
    array([ 5., 10., 60.])
    """
    work = working_dtype(rows, *places)
    fill = elementwise.cast(convert_to_tensor(fill_value), work if order else rows.dtype)
    axes = [_neighbours(elementwise.cast(p, work), n, order, fill_mode) for p, n in zip(places, sizes)]
    along = (1,) * (rows._array.ndim - 1)

    def value(corner: tuple[_Neighbour, ...]) -> Tensor:
        index, inside = _corner(corner, sizes)
        found = elementwise.cast(indexing.take(rows, index if start is None else index + start, axis=0), fill.dtype)
        if fill_mode != "constant":
            return found
        return elementwise.where(shapes.reshape(inside, shape=(*inside._array.shape, *along)), found, fill)

    def term(corner: tuple[_Neighbour, ...]) -> Tensor:
        weight = math.prod((point.weight for point in corner[1:]), start=corner[0].weight)
        return value(corner) * shapes.reshape(weight, shape=(*weight._array.shape, *along))

    first, *others = itertools.product(*axes)
    if order == 0:
        return value(first)
    total = sum(map(term, others), start=term(first))
    return elementwise.cast(round_half_away(total) if rows.dtype.is_integer else total, rows.dtype)


def _corner(points: tuple[_Neighbour, ...], sizes: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The number of a point in the grid from its numbers on the axes, and whether it is inside."""
    index, inside = points[0].number, points[0].inside
    for point, size in zip(points[1:], sizes[1:]):
        index = index * size + point.number
        inside = elementwise.logical_and(inside, point.inside)
    return index, inside


def sample_images(images: Tensor, places: Sequence[Tensor], **options: Any) -> Tensor:
    """Images (batch, height, width, channels) at places (batch, new height, new width): rows, then columns."""
    batch, height, width, channels = images._array.shape
    rows = elementwise.identity(shapes.reshape(images, shape=(batch * height * width, channels)))
    start = wrap(np.arange(batch)[:, None, None] * (height * width))
    return interpolate(rows, (height, width), places, start=start, **options)


# Maps of the plane

_FAR = -1e6  # in pixels: where points on the horizon of a projective map are, instead of at infinity


def projective_places(coefficients: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
    """Where the pixels (y, x) of new images lie in the old ones, by rows [a0, a1, a2, b0, b1, b2, c0, c1]:

    x' = (a0 x + a1 y + a2) / k and y' = (b0 x + b1 y + b2) / k, where k = c0 x + c1 y + 1; far outside where k is 0.
    """
    work = working_dtype(coefficients)
    columns = arrays.unstack(elementwise.cast(coefficients, work), axis=1)
    a0, a1, a2, b0, b1, b2, c0, c1 = (shapes.reshape(c, shape=(-1, 1, 1)) for c in columns)
    x = counting(width, work)
    y = shapes.reshape(counting(height, work), shape=(height, 1))
    k = c0 * x + c1 * y + 1
    horizon = elementwise.equal(k, 0)
    safe = elementwise.where(horizon, elementwise.ones_like(k), k)
    far = elementwise.cast(convert_to_tensor(_FAR), work)
    rows, columns = (b0 * x + b1 * y + b2) / safe, (a0 * x + a1 * y + a2) / safe
    return elementwise.where(horizon, far, rows), elementwise.where(horizon, far, columns)


def homography(start: Tensor, end: Tensor) -> Tensor:
    """The eight coefficients of the projective maps that take four points ``end`` to ``start``, (batch, 4, 2) each."""
    to_x, to_y = arrays.unstack(start, axis=2)
    x, y = arrays.unstack(end, axis=2)
    one, zero = elementwise.ones_like(x), elementwise.zeros_like(x)
    first = shapes.stack(x, y, one, zero, zero, zero, -to_x * x, -to_x * y, axis=-1)
    second = shapes.stack(zero, zero, zero, x, y, one, -to_y * x, -to_y * y, axis=-1)
    target = shapes.expand_dims(shapes.concatenate(to_x, to_y, axis=1), axis=2)
    return shapes.squeeze(solve(shapes.concatenate(first, second, axis=1), target), axis=2)


# Smoothing and stretching along an axis


def filter_axis(x: Tensor, weights: Tensor, axis: int) -> Tensor:
    """Each value the sum of its neighbours along an axis (not negative), times ``weights``; zeros beyond the edges."""
    shape, size = x._array.shape, weights._array.shape[0]
    before, after = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    flat = shapes.reshape(x, shape=(before, shape[axis], after, 1))
    window = shapes.reshape(weights, shape=(size, 1, 1, 1))
    padding = (((size - 1) // 2, size // 2), (0, 0))
    out = conv(flat, window, strides=(1, 1), padding=padding, dilations=(1, 1), groups=1)
    return shapes.reshape(out, shape=shape)


def bell(size: int, sigma: Tensor) -> Tensor:
    """``size`` weights in the form of a Gaussian of standard deviation ``sigma``, with sum 1."""
    place = counting(size, sigma.dtype) - (size - 1) / 2
    weights = elementwise.exp(-0.5 * elementwise.square(place / sigma))
    return weights / reduce.sum(weights)


def stretch(x: Tensor, axis: int, length: int, scale: Tensor, translation: Tensor, kernel: str, antialias: bool) -> Tensor:
    """x with an axis (not negative) of ``length`` on which place p + 1/2 stands for (p + 1/2) · scale + translation.

    The values around a place count by a kernel of `image_resize`; ``antialias`` widens it where the axis shrinks.
    """
    weights = _stretching(x._array.shape[axis], length, scale, translation, kernel, antialias)
    letters = "".join(chr(ord("a") + i) for i in range(x._array.ndim))
    out = letters.replace(letters[axis], "z")
    return einsum(x, elementwise.cast(weights, x.dtype), equation=f"{letters},z{letters[axis]}->{out}")


def _stretching(old: int, new: int, scale: Tensor, translation: Tensor, kernel: str, antialias: bool) -> Tensor:
    """The weights (new, old) of the old points for the new ones; those of a point beyond the edge are 0."""
    inverse = elementwise.reciprocal(scale)
    place = shapes.reshape((counting(new, scale.dtype) + 0.5 - translation) * inverse - 0.5, shape=(new, 1))
    width = elementwise.maximum(inverse, 1.0) if antialias else elementwise.ones_like(inverse)
    weights = convert_to_tensor(KERNELS[kernel][0](elementwise.abs(place - counting(old, scale.dtype)) / width))
    total = reduce.sum(weights, axis=1, keepdims=True)
    used = elementwise.greater(elementwise.abs(total), 1000 * float(np.finfo(np.float32).eps))
    inside = elementwise.logical_and(elementwise.greater_equal(place, -0.5), elementwise.less_equal(place, old - 0.5))
    safe = elementwise.where(used, total, elementwise.ones_like(total))
    return elementwise.where(elementwise.logical_and(used, inside), weights / safe, elementwise.zeros_like(weights))
