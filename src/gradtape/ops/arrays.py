"""Array functions with their argument checks, composed of the ops in shape, indexing and creation."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from gradtape.core.op import op
from gradtape.errors import InvalidArgumentError, dims, message
from gradtape.ops import elementwise, indexing, shape
from gradtape.ops.arguments import boolean, integer, integers, lengths, position
from gradtape.ops.arguments import indices as as_indices
from gradtape.values.convert import Convertible, convert_to_tensor
from gradtape.values.tensor import Tensor, wrap

# Several results at once: one record, whose rule joins the cotangents again


def _all(g: Any) -> tuple:
    return g if type(g) is tuple else (g,)


@op(label="Unpack")
def unstack(xp, x, *, axis):
    """The slices along an axis, without that axis."""
    before = (slice(None),) * axis
    # The ellipsis: a string element stays an array of rank 0.
    return tuple([xp.getitem(x, index=(*before, i, ...)) for i in range(xp.shape(x)[axis])])


unstack.vjp(lambda xp, g, *, axis: xp.stack(*_all(g), axis=axis))


@op(label="SplitV")
def split(xp, x, *, sizes, axis):
    """Consecutive parts of the given lengths along an axis."""
    before, parts, start = (slice(None),) * axis, [], 0
    for size in sizes:
        parts.append(xp.getitem(x, index=(*before, slice(start, start + size))))
        start += size
    return tuple(parts)


split.vjp(lambda xp, g, *, axis: xp.concatenate(*_all(g), axis=axis))


def split_sizes(parts: Any, length: int, axis: int) -> tuple[int, ...]:
    """The lengths of the parts, from their number or from their lengths (one may be -1)."""
    if np.ndim(getattr(parts, "_array", parts)) == 0:
        number = integer(parts)
        if number < 1:
            raise InvalidArgumentError(f"Value for attr 'num_split' of {number} must be at least minimum 1 [Op:Split]")
        if length % number:
            raise InvalidArgumentError(
                "Number of ways to split should evenly divide the split dimension, "
                f"but got split_dim {axis} (size = {length}) and num_split {number} [Op:Split]"
            )
        return (length // number,) * number
    sizes = integers(parts)
    if sizes.count(-1) > 1:
        raise InvalidArgumentError("There can only be one -1 in the input. [Op:SplitV]")
    known = sum(n for n in sizes if n != -1)
    if min(sizes, default=0) < -1 or known > length or (known != length and -1 not in sizes):
        raise InvalidArgumentError(
            message(
                "Determined shape must either match input shape along split_dim exactly if fully specified, or be less than "
                f"the size of the input along split_dim if not fully specified.  Got: {known} [Op:SplitV]",
                received=f"sizes {sizes} for an axis of length {length}",
            )
        )
    return tuple(length - known if n == -1 else n for n in sizes)


# Joining


def concatenate(values: Any, axis: Any) -> Tensor:
    """Tensors joined along an axis."""
    if type(values) is not list and type(values) is not tuple:
        alone = isinstance(values, (Tensor, Convertible, np.ndarray)) or not hasattr(values, "__iter__")
        values = [values] if alone else [*values]
    axis = axis if type(axis) is int else integer(axis)
    if len(values) < 2:
        if not values:
            raise InvalidArgumentError(message("tf.concat needs at least one tensor [Op:ConcatV2]", received="an empty list"))
        x = convert_to_tensor(values[0])
        _concatenation_error([x._array.shape], axis)
        return elementwise.identity(x)
    try:
        return shape.concatenate(*values, axis=axis)
    except InvalidArgumentError as error:
        if error.__cause__ is not None:  # the kernel's, not one about dtypes
            _concatenation_error([convert_to_tensor(v)._array.shape for v in values], axis)
        raise


_WRONG_AXIS = "ConcatOp : Expected concatenating dimensions in the range [{low}, {high}), but got {axis} [Op:ConcatV2]"


def _concatenation_error(shapes: list, axis: int) -> None:
    first = shapes[0]
    if not first:
        raise InvalidArgumentError("ConcatOp : Can't concatenate scalars (use tf.stack instead) [Op:ConcatV2]")
    position(axis, len(first), _WRONG_AXIS)
    for i, other in enumerate(shapes):
        pair = f"shape[0] = {dims(first)} vs. shape[{i}] = {dims(other)} [Op:ConcatV2]"
        if len(other) != len(first):
            raise InvalidArgumentError(f"ConcatOp : Ranks of all input tensors should match: {pair}")
        for d, (m, n) in enumerate(zip(first, other)):
            if m != n and d != axis % len(first):
                raise InvalidArgumentError(f"ConcatOp : Dimension {d} in both shapes must be equal: {pair}")


def stack(values: Any, axis: Any = 0) -> Tensor:
    """Tensors of one shape joined along a new axis."""
    axis = axis if type(axis) is int else integer(axis)
    if isinstance(values, (Tensor, Convertible)):
        x = convert_to_tensor(values)
        return x if axis == 0 else stack(list(unstack(x, axis=0)), axis)
    values = values if isinstance(values, (list, tuple)) else list(values)
    if not any(isinstance(v, (Tensor, Convertible)) for v in values):
        x = convert_to_tensor(values)
        return x if axis == 0 else stack(list(unstack(x, axis=0)), axis)
    try:
        return shape.stack(*values, axis=axis)
    except InvalidArgumentError as error:
        if error.__cause__ is not None:
            _stack_error([convert_to_tensor(v)._array.shape for v in values], axis)
        raise


def _stack_error(shapes: list, axis: int) -> None:
    rank = len(shapes[0]) + 1
    if not -rank <= axis < rank:
        raise ValueError(f"Argument `axis` = {axis} not in range [{-rank}, {rank})")
    for i, other in enumerate(shapes):
        if other != shapes[0]:
            raise InvalidArgumentError(
                f"Shapes of all inputs must match: values[0].shape = {dims(shapes[0])} != values[{i}].shape = {dims(other)} "
                "[Op:Pack]"
            )


# Moving elements


def requested_shape(target: Any) -> tuple[int, ...]:
    """The shape given to reshape: integers of which one may be -1."""
    try:
        found = integers(target, "Reshape")
    except TypeError as error:
        text = "Value for attr 'Tshape' is not in the list of allowed values: int32, int64 [Op:Reshape]"
        raise InvalidArgumentError(message(text, received=f"shape {target!r}")) from error
    if found and builtins.min(found) < 0:
        _check_unknown(found)
    return found


def _check_unknown(found: tuple[int, ...]) -> None:
    unknown = [i for i, n in enumerate(found) if n == -1]
    if len(unknown) > 1:
        raise InvalidArgumentError(f"Only one input size may be -1, not both {unknown[0]} and {unknown[1]} [Op:Reshape]")
    for i, n in enumerate(found):
        if n < -1:
            raise InvalidArgumentError(f"Size {i} must be non-negative, not {n} [Op:Reshape]")


def permutation_error(axes: tuple, rank: int) -> None:
    """Refuse a permutation that is none."""
    if len(axes) != rank:
        raise InvalidArgumentError(
            f"transpose expects a vector of size {rank}. But input(1) is a vector of size {len(axes)} [Op:Transpose]"
        )
    for a in axes:
        if not -rank <= a < rank:
            raise InvalidArgumentError(f"{a} is out of range [0 .. {rank}) [Op:Transpose]")
    for i in range(rank):
        if i not in [a % rank for a in axes]:
            raise InvalidArgumentError(f"{i} is missing from {{{','.join(map(str, axes))}}}. [Op:Transpose]")


def squeeze(x: Tensor, axis: Any = None) -> Tensor:
    """x without axes of length 1: all of them, or those given."""
    old = x._array.shape
    axes = () if axis is None else integers(axis)
    if not axes:
        return shape.squeeze(x, axis=tuple(i for i, n in enumerate(old) if n == 1))
    for a in axes:
        at = position(a, len(old), f"Tried to squeeze dim index {{axis}} for tensor with {len(old)} dimensions. [Op:Squeeze]")
        if old[at] != 1:
            raise InvalidArgumentError(f"Can not squeeze dim[{at}], expected a dimension of 1, got {old[at]} [Op:Squeeze]")
    return shape.squeeze(x, axis=axes)


def broadcast_to(x: Tensor, target: Any) -> Tensor:
    """x repeated along axes of length 1 to fill a shape."""
    target, old = lengths(target, "BroadcastTo"), x._array.shape
    if len(old) > len(target):
        raise InvalidArgumentError(
            f"Rank of input ({len(old)}) must be no greater than rank of output shape ({len(target)}). [Op:BroadcastTo]"
        )
    if any(m not in (1, n) for m, n in zip(reversed(old), reversed(target))):
        raise InvalidArgumentError(f"Incompatible shapes: {dims(old)} vs. {dims(target)} [Op:BroadcastTo]")
    return shape.broadcast_to(x, shape=target)


def tile(x: Tensor, repeats: Any) -> Tensor:
    """x repeated along each axis."""
    counts, rank = integers(repeats), x._array.ndim
    if len(counts) != rank:
        raise InvalidArgumentError(
            f"Expected multiples argument to be a vector of length {rank} but got length {len(counts)} [Op:Tile]"
        )
    for i, n in enumerate(counts):
        if n < 0:
            raise InvalidArgumentError(f"Expected multiples[{i}] >= 0, but got {n} [Op:Tile]")
    return shape.tile(x, repeats=counts)


def pad(x: Tensor, paddings: Any, mode: str = "CONSTANT", value: Any = 0) -> Tensor:
    """x surrounded by a constant, or by its own mirror image without (REFLECT) or with (SYMMETRIC) the edge."""
    table = np.asarray(convert_to_tensor(paddings)._host())
    rank, kind = x._array.ndim, mode.upper()
    if kind not in ("CONSTANT", "REFLECT", "SYMMETRIC"):
        raise ValueError(
            f'Value of argument `mode` expected to be one of "CONSTANT", "REFLECT", or "SYMMETRIC". Received `mode` = {mode}'
        )
    if table.shape != (rank, 2):
        raise InvalidArgumentError(
            f"The first dimension of paddings must be the rank of inputs{dims(table.shape)} {dims(x._array.shape)} [Op:Pad]"
        )
    widths = tuple((int(a), int(b)) for a, b in table)
    for a, b in widths:
        if a < 0 or b < 0:
            raise InvalidArgumentError(f"Paddings must be non-negative: {a} {b} [Op:Pad]")
    if kind == "CONSTANT":
        fill = convert_to_tensor(value, None if isinstance(value, Tensor) else x.dtype)
        return shape.pad(x, widths=widths, value=fill._host()[()])
    x = elementwise.identity(x)  # a gather from the source itself would give IndexedSlices
    for axis, (a, b) in enumerate(widths):
        if a or b:
            x = indexing.take(x, _mirror(x._array.shape[axis], a, b, kind), axis=axis)
    return x


def _mirror(length: int, before: int, after: int, kind: str) -> Tensor:
    """The indices that continue an axis by reflection at both ends."""
    edge = 1 if kind == "REFLECT" else 0
    if max(before, after) > length - edge:
        words = ("less than", "not less than") if edge else ("no greater than", "greater than")
        raise InvalidArgumentError(
            f"paddings must be {words[0]} the dimension size: {before}, {after} {words[1]} {length} [Op:MirrorPad]"
        )
    index = np.arange(length)
    return wrap(np.concatenate([index[edge : before + edge][::-1], index, index[length - after - edge : length - edge][::-1]]))


def flip(x: Tensor, axis: Any) -> Tensor:
    """Elements in reverse order along axes, which stand in a list."""
    if np.ndim(getattr(axis, "_array", axis)) != 1:
        raise InvalidArgumentError(message("'dims' must be 1-dimension, not 0 [Op:ReverseV2]", fix="tf.reverse(x, [axis])"))
    axes, rank = integers(axis), x._array.ndim
    for i, a in enumerate(axes):
        if not -rank <= a < rank:
            raise InvalidArgumentError(f"'axis'[{i}] = {a} is out of valid range [0, {rank - 1}] [Op:ReverseV2]")
        if a % rank in [b % rank for b in axes[:i]]:
            raise InvalidArgumentError(f"axis {a % rank} specified more than once. [Op:ReverseV2]")
    return shape.flip(x, axis=axes)


def roll(x: Tensor, shift: Any, axis: Any) -> Tensor:
    """Elements moved along axes, those pushed out entering at the other end."""
    shifts, axes = integers(shift), integers(axis)
    if len(shifts) != len(axes):
        raise InvalidArgumentError("shift and axis must have the same size [Op:Roll]")
    axes = tuple(position(a, x._array.ndim, "axis {axis} is out of range [Op:Roll]") for a in axes)
    return shape.roll(x, shift=shifts, axis=axes)


def repeat(x: Tensor, repeats: Any, axis: Any = None) -> Tensor:
    """Each element repeated: all equally often, or each as often as its count."""
    if axis is None:
        x, axis = shape.reshape(x, shape=(-1,)), 0
    axis, rank = integer(axis), x._array.ndim
    if not -rank <= axis < rank:
        raise ValueError(f"axis={axis} out of bounds: expected {-rank}<=axis<{rank}")
    if np.ndim(getattr(repeats, "_array", repeats)) > 1:
        raise ValueError(f"Shape {np.shape(getattr(repeats, '_array', repeats))} must have rank at most 1")
    counts, length = integers(repeats), x._array.shape[axis]
    if min(counts, default=0) < 0:
        raise InvalidArgumentError(f"Expected repeats >= 0, but got {min(counts)} [Op:Repeat]")
    if len(counts) not in (1, length):
        raise ValueError(f"Dimensions {length} and {len(counts)} are not compatible")
    return shape.repeat(x, repeats=counts[0] if len(counts) == 1 else counts, axis=axis % rank)


def reverse_sequence(x: Tensor, sizes: Any, seq_axis: int, batch_axis: int) -> Tensor:
    """The first ``sizes[i]`` elements along one axis reversed, for each index i of the other."""
    rank, counts = x._array.ndim, np.array(integers(sizes), np.int64)
    seq, batch = (position(a, rank, "axis {axis} is out of range [{low}, {high})") for a in (seq_axis, batch_axis))
    length, rows = x._array.shape[seq], x._array.shape[batch]
    if counts.shape != (rows,):
        text = f"Length of seq_lengths != input.dims({batch}), ({counts.size} vs. {rows}) [Op:ReverseSequence]"
        raise InvalidArgumentError(text)
    if (counts > length).any():
        at = int(np.argmax(counts > length))
        raise InvalidArgumentError(f"seq_lens({at}) > input.dims({seq}) [Op:ReverseSequence]")
    place = np.arange(length)
    order = np.where(place < counts[:, None], counts[:, None] - 1 - place, place)  # (batch, seq)
    order = order if batch < seq else order.T
    spread = order.reshape([n if i in (seq, batch) else 1 for i, n in enumerate(x._array.shape)])
    return indexing.take_along_axis(x, wrap(np.broadcast_to(spread, x._array.shape)), axis=seq)


# Reading by index


def basic_slice(x: Tensor, begin: Any, size: Any) -> Tensor:
    """``size`` elements from ``begin`` along every axis; size -1 means up to the end."""
    starts, sizes, old = integers(begin), integers(size), x._array.shape
    if len(starts) != len(old) or len(sizes) != len(old):
        raise InvalidArgumentError(
            f"Expected begin and size arguments to be 1-D tensors of size {len(old)}, "
            f"but got shapes [{len(starts)}] and [{len(sizes)}] instead. [Op:Slice]"
        )
    index = []
    for i, (start, count, length) in enumerate(zip(starts, sizes, old)):
        if not 0 <= start <= length:
            raise InvalidArgumentError(f"Expected begin[{i}] in [0, {length}], but got {start} [Op:Slice]")
        if not -1 <= count <= length - start:
            raise InvalidArgumentError(f"Expected size[{i}] in [0, {length - start}], but got {count} [Op:Slice]")
        index.append(slice(start, length if count == -1 else start + count))
    return indexing.getitem(x, index=tuple(index))


def strided_slice(x: Tensor, begin: Any, end: Any, strides: Any, masks: dict[str, int]) -> Tensor:
    """Slicing by three vectors; bit i of a mask changes what entry i means."""
    starts, stops = integers(begin), integers(end)
    steps = (1,) * len(starts) if strides is None else integers(strides)
    index: list = []
    for i, (start, stop, step) in enumerate(zip(starts, stops, steps)):
        bit = {name: bool(mask >> i & 1) for name, mask in masks.items()}
        if bit["ellipsis"]:
            index.append(Ellipsis)
        elif bit["new_axis"]:
            index.append(None)
        elif bit["shrink_axis"]:
            index.append(start)
        else:
            if step == 0:
                raise InvalidArgumentError(f"strides[{i}] must be non-zero [Op:StridedSlice]")
            index.append(slice(None if bit["begin"] else start, None if bit["end"] else stop, step))
    axis, rank = 0, x._array.ndim
    used = sum(k is not None and k is not Ellipsis for k in index)
    if used > rank:
        raise InvalidArgumentError(f"Index out of range using input dim {rank}; input has only {rank} dims [Op:StridedSlice]")
    for k in index:
        if k is Ellipsis:
            axis += rank - used
        elif k is not None:
            length = x._array.shape[axis]
            if not isinstance(k, slice) and not -length <= k < length:
                raise InvalidArgumentError(f"slice index {k} of dimension {axis} out of bounds. [Op:StridedSlice]")
            axis += 1
    return indexing.getitem(x, index=tuple(index))


def take(x: Any, indices: Any, axis: Any = None, batch_dims: Any = 0) -> Tensor:
    """Slices of x along an axis, one per index; the leading ``batch_dims`` axes of both are paired."""
    where = as_indices(indices, "GatherV2")
    x = x if isinstance(x, (Tensor, Convertible)) else convert_to_tensor(x)
    old = x._array.shape if isinstance(x, Tensor) else tuple(x.shape)
    batch = integer(batch_dims)
    axis = batch if axis is None else integer(axis)  # a negative batch_dims counts from the end of x here, of indices below
    batch += where._array.ndim if batch < 0 else 0
    rank = len(old)
    if not rank:
        raise InvalidArgumentError("params must be at least 1 dimensional [Op:GatherV2]")
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            message(
                f"Shape must be at least rank {axis + 1 if axis >= 0 else -axis} but is rank {rank} [Op:GatherV2]",
                received=f"axis {axis} for params of shape {old}",
            )
        )
    axis %= rank
    if not 0 <= batch <= builtins.min(axis, where._array.ndim):
        raise InvalidArgumentError(f"batch_dims ({batch}) must be less than or equal to axis ({axis}) [Op:GatherV2]")
    for i in range(batch):
        if old[i] != where._array.shape[i]:
            raise InvalidArgumentError(
                f"params.shape[{i}]: {old[i]} should be equal to indices.shape[{i}]: {where._array.shape[i]} [Op:GatherV2]"
            )
    return indexing.take(x, where, axis=axis, batch_dims=batch)


def gather_nd(x: Any, indices: Any, batch_dims: Any = 0) -> Tensor:
    """Slices of x at index vectors; the leading ``batch_dims`` axes of both are paired."""
    where = as_indices(indices, "GatherNd")
    if not where._array.ndim:
        raise InvalidArgumentError("indices must be at least a vector [Op:GatherNd]")
    batch = integer(batch_dims)
    if batch:
        x = convert_to_tensor(x)
        lead, shape_ = x._array.shape[:batch], where._array.shape
        if lead != shape_[:batch] or len(shape_) <= batch:
            raise InvalidArgumentError(
                f"params.shape[:{batch}] {dims(lead)} should be equal to indices.shape[:{batch}] {dims(shape_[:batch])} "
                "[Op:GatherNd]"
            )
        grid = np.indices(lead).reshape(batch, *lead, *[1] * (len(shape_) - 1 - batch))
        grid = np.broadcast_to(np.moveaxis(grid, 0, -1), (*shape_[:-1], batch)).astype(where._array.dtype)
        where = shape.concatenate(wrap(grid), where, axis=len(shape_) - 1)
    return indexing.gather_nd(x, where)


def boolean_mask(x: Tensor, mask: Any, axis: Any = None) -> Tensor:
    """The elements (or slices) where the mask holds. The mask must be known, not traced."""
    known = np.asarray(convert_to_tensor(mask)._host()).astype(bool)
    if not known.ndim:
        raise ValueError("mask cannot be scalar.")
    axis, old = 0 if axis is None else integer(axis), x._array.shape
    axis += len(old) if axis < 0 else 0
    if old[axis : axis + known.ndim] != known.shape:
        raise ValueError(f"Shapes {old[axis : axis + known.ndim]} and {known.shape} are incompatible")
    flat = shape.reshape(x, shape=(*old[:axis], known.size, *old[axis + known.ndim :]))
    return indexing.take(flat, wrap(np.flatnonzero(known)), axis=axis)


def dynamic_partition(x: Tensor, parts: Any, count: int) -> list[Tensor]:
    """The slices of x sorted into ``count`` tensors by the number that belongs to each."""
    known = np.asarray(as_indices(parts, "DynamicPartition")._host())
    if x._array.shape[: known.ndim] != known.shape:
        raise InvalidArgumentError(
            f"data.shape must start with partitions.shape, got data.shape = {dims(x._array.shape)}, "
            f"partitions.shape = {dims(known.shape)} [Op:DynamicPartition]"
        )
    indexing.check_range(known, count, "partitions")
    flat = shape.reshape(x, shape=(known.size, *x._array.shape[known.ndim :]))
    return [indexing.take(flat, wrap(np.flatnonzero(known == i)), axis=0) for i in range(count)]


def dynamic_stitch(indices: Any, data: Any) -> Tensor:
    """One tensor from slices and their positions; of slices for one position, the last counts."""
    places = [np.asarray(as_indices(i, "DynamicStitch")._host()) for i in indices]
    rows = []
    for place, value in zip(places, data):
        x = convert_to_tensor(value)
        rows.append(shape.reshape(x, shape=(place.size, *x._array.shape[place.ndim :])))
    flat = np.concatenate([p.ravel() for p in places])
    size = int(flat.max()) + 1 if flat.size else 0
    source = np.full(size, -1, np.int64)
    source[flat] = np.arange(flat.size)  # NumPy writes in order: the last one stays
    joined = rows[0] if len(rows) == 1 else shape.concatenate(*rows, axis=0)
    found = indexing.take(joined, wrap(np.maximum(source, 0)), axis=0)
    if (source >= 0).all():
        return found
    there = (source >= 0).reshape(-1, *[1] * (found._array.ndim - 1))
    return elementwise.where(wrap(there), found, elementwise.zeros_like(found))


# Selecting


def select(condition: Any, x: Any, y: Any) -> Tensor:
    """x where the condition holds, y elsewhere."""
    condition = boolean(elementwise.where.op, condition)
    try:
        return elementwise.where(condition, x, y)
    except InvalidArgumentError as error:
        if error.__cause__ is None:
            raise
        a, b, c = (dims(convert_to_tensor(v)._array.shape) for v in (condition, x, y))
        text = f"condition {a}, then {b}, and else {c} must be broadcastable [Op:SelectV2]"
        raise InvalidArgumentError(text) from error
