"""Array functions with their argument checks, composed of the ops in shape, indexing and creation."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from gradtape.core.cuts import NONDIFFERENTIABLE, sever
from gradtape.core.op import op
from gradtape.errors import InvalidArgumentError, dims, message, shown
from gradtape.ops import elementwise, indexing, shape
from gradtape.ops.arguments import boolean, integer, integers, lengths, position
from gradtape.ops.arguments import indices as as_indices
from gradtape.values.convert import Convertible, convert_to_tensor
from gradtape.values.shape import refuse_open
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
            text = f"Value for attr 'num_split' of {number} must be at least minimum 1 [Op:Split]"
            raise InvalidArgumentError(message(text, expected="one part or more"))
        if length % number:
            raise InvalidArgumentError(
                message(
                    "Number of ways to split should evenly divide the split dimension, "
                    f"but got split_dim {axis} (size = {length}) and num_split {number} [Op:Split]",
                    fix=f"give the sizes instead: tf.split(x, [{', '.join(['…'] * 2)}]), which add up to {length}",
                )
            )
        return (length // number,) * number
    sizes = integers(parts)
    if sizes.count(-1) > 1:
        text = "There can only be one -1 in the input. [Op:SplitV]"
        raise InvalidArgumentError(message(text, received=f"sizes {sizes}", fix="leave at most one size open"))
    known = sum(n for n in sizes if n != -1)
    if min(sizes, default=0) < -1 or known > length or (known != length and -1 not in sizes):
        raise InvalidArgumentError(
            message(
                "Determined shape must either match input shape along split_dim exactly if fully specified, or be less than "
                f"the size of the input along split_dim if not fully specified.  Got: {known} [Op:SplitV]",
                received=f"sizes {sizes} for an axis of length {length}",
                expected=f"sizes that add up to {length}, one of which may be -1",
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
            text = "tf.concat needs at least one tensor [Op:ConcatV2]"
            raise InvalidArgumentError(
                message(text, received="an empty list", fix="give one tensor or more: tf.concat([x, y], axis=0)")
            )
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
        text = "ConcatOp : Can't concatenate scalars (use tf.stack instead) [Op:ConcatV2]"
        raise InvalidArgumentError(message(text, fix="tf.stack([x, y])"))
    position(axis, len(first), _WRONG_AXIS)
    for i, other in enumerate(shapes):
        pair = f"shape[0] = {dims(first)} vs. shape[{i}] = {dims(other)} [Op:ConcatV2]"
        if len(other) != len(first):
            text = f"ConcatOp : Ranks of all input tensors should match: {pair}"
            raise InvalidArgumentError(
                message(text, received=f"shapes {shapes}", fix="give the others an axis: tf.expand_dims(x, 0)")
            )
        for d, (m, n) in enumerate(zip(first, other)):
            if m != n and d != axis % len(first):
                raise InvalidArgumentError(
                    message(
                        f"ConcatOp : Dimension {d} in both shapes must be equal: {pair}",
                        received=f"shapes {shapes} along axis {axis}",
                        expected=f"the same lengths but along axis {axis}",
                    )
                )


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
        raise ValueError(
            message(
                f"Argument `axis` = {axis} not in range [{-rank}, {rank})",
                received=f"axis={axis} for {len(shapes)} tensors of rank {rank - 1}",
                expected=f"an axis from {-rank} to {rank - 1}",
            )
        )
    for i, other in enumerate(shapes):
        if other != shapes[0]:
            raise InvalidArgumentError(
                message(
                    f"Shapes of all inputs must match: values[0].shape = {dims(shapes[0])} != "
                    f"values[{i}].shape = {dims(other)} [Op:Pack]",
                    received=f"shapes {shapes}",
                    expected="one shape for all",
                    fix="tf.concat joins tensors of different lengths, tf.ragged.stack keeps their rows apart",
                )
            )


# Moving elements


def requested_shape(target: Any) -> tuple[int, ...]:
    """The shape given to reshape: integers of which one may be -1."""
    try:
        found = integers(target, "Reshape")
    except TypeError as error:
        text = "Value for attr 'Tshape' is not in the list of allowed values: int32, int64 [Op:Reshape]"
        raise InvalidArgumentError(
            message(text, received=f"shape {target!r}", expected="integers: tf.reshape(x, [2, -1])")
        ) from error
    if found and builtins.min(found) < 0:
        _check_unknown(found)
    return found


def _check_unknown(found: tuple[int, ...]) -> None:
    unknown = [i for i, n in enumerate(found) if n == -1]
    if len(unknown) > 1:
        text = f"Only one input size may be -1, not both {unknown[0]} and {unknown[1]} [Op:Reshape]"
        raise InvalidArgumentError(message(text, received=f"shape {found}", fix="leave at most one length open"))
    for i, n in enumerate(found):
        if n < -1:
            text = f"Size {i} must be non-negative, not {n} [Op:Reshape]"
            raise InvalidArgumentError(message(text, received=f"shape {found}", expected="lengths of 0 or more, or one -1"))


def permutation_error(axes: tuple, rank: int) -> None:
    """Refuse a permutation that is none."""
    if len(axes) != rank:
        text = f"transpose expects a vector of size {rank}. But input(1) is a vector of size {len(axes)} [Op:Transpose]"
        raise InvalidArgumentError(
            message(text, received=f"perm={list(axes)} for an input of rank {rank}", expected=f"each of 0 to {rank - 1} once")
        )
    for a in axes:
        if not -rank <= a < rank:
            text = f"{a} is out of range [0 .. {rank}) [Op:Transpose]"
            raise InvalidArgumentError(message(text, received=f"perm={list(axes)}", expected=f"each of 0 to {rank - 1} once"))
    for i in range(rank):
        if i not in [a % rank for a in axes]:
            text = f"{i} is missing from {{{','.join(map(str, axes))}}}. [Op:Transpose]"
            raise InvalidArgumentError(message(text, received=f"perm={list(axes)}", expected=f"each of 0 to {rank - 1} once"))


def squeeze(x: Tensor, axis: Any = None) -> Tensor:
    """x without axes of length 1: all of them, or those given."""
    old = x._array.shape
    axes = () if axis is None else integers(axis)
    if not axes:
        refuse_open(old, "which axes have the length 1")
        return shape.squeeze(x, axis=tuple(i for i, n in enumerate(old) if n == 1))
    for a in axes:
        at = position(a, len(old), f"Tried to squeeze dim index {{axis}} for tensor with {len(old)} dimensions. [Op:Squeeze]")
        if old[at] != 1:
            raise InvalidArgumentError(
                message(
                    f"Can not squeeze dim[{at}], expected a dimension of 1, got {old[at]} [Op:Squeeze]",
                    received=f"shape {old}, axis {at}",
                    expected="an axis of length 1",
                    fix="tf.reshape joins axes, x[:, 0] picks from one",
                )
            )
    return shape.squeeze(x, axis=axes)


def broadcast_to(x: Tensor, target: Any) -> Tensor:
    """x repeated along axes of length 1 to fill a shape."""
    target, old = lengths(target, "BroadcastTo"), x._array.shape
    if len(old) > len(target):
        text = f"Rank of input ({len(old)}) must be no greater than rank of output shape ({len(target)}). [Op:BroadcastTo]"
        raise InvalidArgumentError(message(text, received=f"shape {old} to {target}", expected=f"at least {len(old)} lengths"))
    if any(m not in (1, n) for m, n in zip(reversed(old), reversed(target))):
        raise InvalidArgumentError(
            message(
                f"Incompatible shapes: {dims(old)} vs. {dims(target)} [Op:BroadcastTo]",
                received=f"shape {old} to {target}",
                expected="lengths that are equal, or 1 in the input, from the last axis backwards",
            )
        )
    return shape.broadcast_to(x, shape=target)


def tile(x: Tensor, repeats: Any) -> Tensor:
    """x repeated along each axis."""
    counts, rank = integers(repeats), x._array.ndim
    if len(counts) != rank:
        text = f"Expected multiples argument to be a vector of length {rank} but got length {len(counts)} [Op:Tile]"
        raise InvalidArgumentError(
            message(text, received=f"multiples {counts} for an input of rank {rank}", expected="one count per axis")
        )
    for i, n in enumerate(counts):
        if n < 0:
            text = f"Expected multiples[{i}] >= 0, but got {n} [Op:Tile]"
            raise InvalidArgumentError(message(text, received=f"multiples {counts}", expected="counts of 0 or more"))
    return shape.tile(x, repeats=counts)


def pad(x: Tensor, paddings: Any, mode: str = "CONSTANT", value: Any = 0) -> Tensor:
    """x surrounded by a constant, or by its own mirror image without (REFLECT) or with (SYMMETRIC) the edge."""
    table = np.asarray(convert_to_tensor(paddings)._host())
    rank, kind = x._array.ndim, mode.upper()
    if kind not in ("CONSTANT", "REFLECT", "SYMMETRIC"):
        text = f'Value of argument `mode` expected to be one of "CONSTANT", "REFLECT", or "SYMMETRIC". Received `mode` = {mode}'
        raise ValueError(message(text, expected="'CONSTANT', 'REFLECT' or 'SYMMETRIC'"))
    if table.shape != (rank, 2):
        raise InvalidArgumentError(
            message(
                f"The first dimension of paddings must be the rank of inputs{dims(table.shape)} {dims(x._array.shape)} "
                "[Op:Pad]",
                received=f"paddings of shape {table.shape} for an input of rank {rank}",
                expected=f"shape {(rank, 2)}: before and after each axis",
            )
        )
    widths = tuple((int(a), int(b)) for a, b in table)
    for a, b in widths:
        if a < 0 or b < 0:
            raise InvalidArgumentError(
                message(
                    f"Paddings must be non-negative: {a} {b} [Op:Pad]",
                    received=f"paddings {table.tolist()}",
                    expected="widths of 0 or more",
                    fix="slice to make a tensor smaller: x[1:]",
                )
            )
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
            message(
                f"paddings must be {words[0]} the dimension size: {before}, {after} {words[1]} {length} [Op:MirrorPad]",
                received=f"paddings {before} and {after} of an axis of length {length}",
                expected=f"at most {length - edge} of them in mode {kind}",
            )
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
            text = f"'axis'[{i}] = {a} is out of valid range [0, {rank - 1}] [Op:ReverseV2]"
            raise InvalidArgumentError(
                message(text, received=f"axis {axes} of an input of rank {rank}", expected=f"axes from {-rank} to {rank - 1}")
            )
        if a % rank in [b % rank for b in axes[:i]]:
            text = f"axis {a % rank} specified more than once. [Op:ReverseV2]"
            raise InvalidArgumentError(message(text, received=f"axis {axes}", expected="each axis once"))
    return shape.flip(x, axis=axes)


def roll(x: Tensor, shift: Any, axis: Any) -> Tensor:
    """Elements moved along axes, those pushed out entering at the other end."""
    shifts, axes = integers(shift), integers(axis)
    if len(shifts) != len(axes):
        text = "shift and axis must have the same size [Op:Roll]"
        raise InvalidArgumentError(
            message(text, received=f"{len(shifts)} shifts for {len(axes)} axes", expected="one shift per axis")
        )
    axes = tuple(position(a, x._array.ndim, "axis {axis} is out of range [Op:Roll]") for a in axes)
    return shape.roll(x, shift=shifts, axis=axes)


def repeat(x: Tensor, repeats: Any, axis: Any = None) -> Tensor:
    """Each element repeated: all equally often, or each as often as its count."""
    if axis is None:
        x, axis = shape.reshape(x, shape=(-1,)), 0
    axis, rank = integer(axis), x._array.ndim
    if not -rank <= axis < rank:
        text = f"axis={axis} out of bounds: expected {-rank}<=axis<{rank}"
        raise ValueError(
            message(text, received=f"axis={axis} of an input of rank {rank}", expected=f"an axis from {-rank} to {rank - 1}")
        )
    if np.ndim(getattr(repeats, "_array", repeats)) > 1:
        text = f"Shape {np.shape(getattr(repeats, '_array', repeats))} must have rank at most 1"
        raise ValueError(message(text, received=shown(repeats), expected="one count, or one per element along the axis"))
    counts, length = integers(repeats), x._array.shape[axis]
    if min(counts, default=0) < 0:
        text = f"Expected repeats >= 0, but got {min(counts)} [Op:Repeat]"
        raise InvalidArgumentError(message(text, received=f"repeats {counts}", expected="counts of 0 or more"))
    if len(counts) not in (1, length):
        text = f"Dimensions {length} and {len(counts)} are not compatible"
        raise ValueError(
            message(text, received=f"{len(counts)} counts for an axis of length {length}", expected=f"one count, or {length}")
        )
    return shape.repeat(x, repeats=counts[0] if len(counts) == 1 else counts, axis=axis % rank)


def reverse_sequence(x: Tensor, sizes: Any, seq_axis: int, batch_axis: int) -> Tensor:
    """The first ``sizes[i]`` elements along one axis reversed, for each index i of the other."""
    rank, counts = x._array.ndim, np.array(integers(sizes), np.int64)
    seq, batch = (position(a, rank, "axis {axis} is out of range [{low}, {high})") for a in (seq_axis, batch_axis))
    length, rows = x._array.shape[seq], x._array.shape[batch]
    if counts.shape != (rows,):
        text = f"Length of seq_lengths != input.dims({batch}), ({counts.size} vs. {rows}) [Op:ReverseSequence]"
        raise InvalidArgumentError(
            message(text, received=f"seq_lengths of shape {counts.shape}", expected=f"one length for each of the {rows} rows")
        )
    if (counts > length).any():
        at = int(np.argmax(counts > length))
        raise InvalidArgumentError(
            message(
                f"seq_lens({at}) > input.dims({seq}) [Op:ReverseSequence]",
                received=f"seq_lengths up to {counts.max()} for an axis of length {length}",
                expected=f"at most {length}",
            )
        )
    if (counts < 0).any():
        text = f"seq_lens({int(np.argmax(counts < 0))}) < 0 [Op:ReverseSequence]"
        raise InvalidArgumentError(message(text, received=f"seq_lengths {counts.tolist()}", expected="lengths of 0 or more"))
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
        text = (
            f"Expected begin and size arguments to be 1-D tensors of size {len(old)}, "
            f"but got shapes [{len(starts)}] and [{len(sizes)}] instead. [Op:Slice]"
        )
        raise InvalidArgumentError(
            message(text, received=f"begin {starts} and size {sizes} for shape {old}", expected=f"{len(old)} numbers in each")
        )
    index = []
    for i, (start, count, length) in enumerate(zip(starts, sizes, old)):
        if not 0 <= start <= length:
            text = f"Expected begin[{i}] in [0, {length}], but got {start} [Op:Slice]"
            raise InvalidArgumentError(
                message(text, received=f"begin {starts} and size {sizes} for shape {old}", expected="a slice inside the input")
            )
        if not -1 <= count <= length - start:
            raise InvalidArgumentError(
                message(
                    f"Expected size[{i}] in [0, {length - start}], but got {count} [Op:Slice]",
                    received=f"begin {starts} and size {sizes} for shape {old}",
                    expected="a slice inside the input",
                    fix="-1 as a size takes the rest",
                )
            )
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
                text = f"strides[{i}] must be non-zero [Op:StridedSlice]"
                raise InvalidArgumentError(
                    message(text, received="a stride of 0", fix="1 takes every element, -1 goes backwards")
                )
            index.append(slice(None if bit["begin"] else start, None if bit["end"] else stop, step))
    axis, rank = 0, x._array.ndim
    used = sum(k is not None and k is not Ellipsis for k in index)
    if used > rank:
        text = f"Index out of range using input dim {rank}; input has only {rank} dims [Op:StridedSlice]"
        raise InvalidArgumentError(
            message(text, received=f"{used} indices for shape {x._array.shape}", expected=f"at most {rank}")
        )
    for k in index:
        if k is Ellipsis:
            axis += rank - used
        elif k is not None:
            length = x._array.shape[axis]
            if not isinstance(k, slice) and not -length <= k < length:
                raise InvalidArgumentError(
                    message(
                        f"slice index {k} of dimension {axis} out of bounds. [Op:StridedSlice]",
                        received=f"{k} for axis {axis} of shape {x._array.shape}",
                        expected=f"an index from {-length} to {length - 1}",
                    )
                )
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
        text = "params must be at least 1 dimensional [Op:GatherV2]"
        raise InvalidArgumentError(message(text, received="params of shape ()", expected="at least one axis"))
    if not -rank <= axis < rank:
        text = f"Shape must be at least rank {axis + 1 if axis >= 0 else -axis} but is rank {rank} [Op:GatherV2]"
        raise InvalidArgumentError(
            message(text, received=f"axis {axis} for params of shape {old}", expected=f"an axis from {-rank} to {rank - 1}")
        )
    axis %= rank
    if not 0 <= batch <= builtins.min(axis, where._array.ndim):
        raise InvalidArgumentError(
            message(
                f"batch_dims ({batch}) must be less than or equal to axis ({axis}) [Op:GatherV2]",
                received=f"batch_dims={batch}, axis={axis}, indices of rank {where._array.ndim}",
                expected="0 <= batch_dims <= axis, and no more than the rank of the indices",
            )
        )
    for i in range(batch):
        if old[i] != where._array.shape[i]:
            raise InvalidArgumentError(
                message(
                    f"params.shape[{i}]: {old[i]} should be equal to indices.shape[{i}]: {where._array.shape[i]} [Op:GatherV2]",
                    received=f"params {old} and indices {where._array.shape}",
                    expected=f"the same first {batch} lengths, for batch_dims={batch}",
                )
            )
    return indexing.take(x, where, axis=axis, batch_dims=batch)


def gather_nd(x: Any, indices: Any, batch_dims: Any = 0) -> Tensor:
    """Slices of x at index vectors; the leading ``batch_dims`` axes of both are paired."""
    where = as_indices(indices, "GatherNd")
    if not where._array.ndim:
        text = "indices must be at least a vector [Op:GatherNd]"
        raise InvalidArgumentError(
            message(text, received="indices of shape ()", fix="give them an axis: [[0], [2]] picks two rows")
        )
    batch = integer(batch_dims)
    if batch:
        x = convert_to_tensor(x)
        lead, shape_ = x._array.shape[:batch], where._array.shape
        if lead != shape_[:batch] or len(shape_) <= batch:
            raise InvalidArgumentError(
                message(
                    f"params.shape[:{batch}] {dims(lead)} should be equal to indices.shape[:{batch}] {dims(shape_[:batch])} "
                    "[Op:GatherNd]",
                    received=f"params {x.shape} and indices {shape_}",
                    expected=f"the same first {batch} lengths, for batch_dims={batch}",
                )
            )
        grid = np.indices(lead).reshape(batch, *lead, *[1] * (len(shape_) - 1 - batch))
        grid = np.broadcast_to(np.moveaxis(grid, 0, -1), (*shape_[:-1], batch)).astype(where._array.dtype)
        where = shape.concatenate(wrap(grid), where, axis=len(shape_) - 1)
    return indexing.gather_nd(x, where)


def boolean_mask(x: Tensor, mask: Any, axis: Any = None) -> Tensor:
    """The elements (or slices) where the mask holds. The mask must be known, not traced."""
    given = convert_to_tensor(mask)
    known = np.asarray(given._host()).astype(bool)
    if not known.ndim:
        text = "mask cannot be scalar."
        raise ValueError(message(text, received=shown(mask), expected="a mask of the shape of the first axes of the tensor"))
    axis, old = 0 if axis is None else integer(axis), x._array.shape
    axis += len(old) if axis < 0 else 0
    if old[axis : axis + known.ndim] != known.shape:
        raise ValueError(
            message(
                f"Shapes {old[axis : axis + known.ndim]} and {known.shape} are incompatible",
                received=f"a mask of shape {known.shape} at axis {axis} of shape {old}",
                expected=f"a mask of shape {old[axis : axis + known.ndim]}",
            )
        )
    flat = shape.reshape(x, shape=(*old[:axis], known.size, *old[axis + known.ndim :]))
    return indexing.take(flat, _places(known, given), axis=axis)


def _places(mask: np.ndarray, source: Tensor) -> Tensor:
    """Where the mask holds; tapes can tell that this came from ``source``."""
    places = wrap(np.flatnonzero(mask))
    sever(NONDIFFERENTIABLE, "a mask", places, (source,))
    return places


def dynamic_partition(x: Tensor, parts: Any, count: int) -> list[Tensor]:
    """The slices of x sorted into ``count`` tensors by the number that belongs to each."""
    given = as_indices(parts, "DynamicPartition")
    known = np.asarray(given._host())
    if x._array.shape[: known.ndim] != known.shape:
        raise InvalidArgumentError(
            message(
                f"data.shape must start with partitions.shape, got data.shape = {dims(x._array.shape)}, "
                f"partitions.shape = {dims(known.shape)} [Op:DynamicPartition]",
                received=f"data {x._array.shape}, partitions {known.shape}",
                expected="one partition number per element, or per row, of the data",
            )
        )
    indexing.check_range(known, count, "partitions")
    flat = shape.reshape(x, shape=(known.size, *x._array.shape[known.ndim :]))
    return [indexing.take(flat, _places(known == i, given), axis=0) for i in range(count)]


def dynamic_stitch(indices: Any, data: Any) -> Tensor:
    """One tensor from slices and their positions; of slices for one position, the last counts."""
    places = [np.asarray(as_indices(i, "DynamicStitch")._host()) for i in indices]
    rows = []
    for place, value in zip(places, data):
        x = convert_to_tensor(value)
        rows.append(shape.reshape(x, shape=(place.size, *x._array.shape[place.ndim :])))
    flat = np.concatenate([p.ravel() for p in places])
    if flat.size and flat.min() < 0:
        which = next(i for i, place in enumerate(places) if (place < 0).any())
        at = int(np.argmax(places[which].ravel() < 0))
        text = f"indices[{at}] is out of range [Op:DynamicStitch]"
        raise InvalidArgumentError(
            message(text, received=f"{places[which].flat[at]} in indices[{which}]", expected="positions, counted from 0")
        )
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
        raise InvalidArgumentError(
            message(text, expected="shapes that broadcast: equal, or 1, from the last axis backwards")
        ) from error
