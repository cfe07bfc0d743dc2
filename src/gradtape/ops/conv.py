"""Convolution: three ops that are one another's derivatives, and what users call, which is made of them.

Inside, arrays are (examples, *space, channels) and filters (*size, channels of a group, outputs); other data formats are
transposed before and after. There are as many groups as the channels of the array hold those of the filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.op import op, pair
from gradtape.errors import InvalidArgumentError, UnimplementedError, dims, message
from gradtape.ops import arguments
from gradtape.ops import shape as shapes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor

_ALLOWED = "half, bfloat16, float, double, int32"


@op(label="Conv2D")
def conv(xp, x, w, *, strides, padding, dilations, groups):
    """y[n, p, o] = Σ over k, c of x[n, p · stride + k · dilation - before, c] · w[k, c, o]"""
    return xp.conv(x, w, strides=strides, padding=padding, dilations=dilations, groups=groups)


@op(label="Conv2DBackpropInput")
def conv_input(xp, y, w, *, strides, padding, dilations, groups, lengths):
    """The transpose of `conv` in x: each element of y spread over the window it stands for."""
    return xp.conv_input(y, w, strides=strides, padding=padding, dilations=dilations, groups=groups, lengths=lengths)


@op(label="Conv2DBackpropFilter")
def conv_filter(xp, x, y, *, strides, padding, dilations, groups, size):
    """The transpose of `conv` in w: for each element of the filter, what it met in x times y."""
    return xp.conv_filter(x, y, strides=strides, padding=padding, dilations=dilations, groups=groups, size=size)


# Σ x · w · y over everything is one form in three arguments; each op is its derivative by one of them, so each rule is the
# op for the argument that is missing.

conv.vjp(
    lambda xp, g, w, *, strides, padding, dilations, groups, x_shape: xp.conv_input(
        g, w, strides=strides, padding=padding, dilations=dilations, groups=groups, lengths=x_shape[1:-1]
    ),
    lambda xp, g, x, *, strides, padding, dilations, groups, w_shape: xp.conv_filter(
        x, g, strides=strides, padding=padding, dilations=dilations, groups=groups, size=w_shape[:-2]
    ),
)
conv_input.vjp(
    lambda xp, g, w, *, strides, padding, dilations, groups: xp.conv(
        g, w, strides=strides, padding=padding, dilations=dilations, groups=groups
    ),
    lambda xp, g, y, *, strides, padding, dilations, groups, w_shape: xp.conv_filter(
        g, y, strides=strides, padding=padding, dilations=dilations, groups=groups, size=w_shape[:-2]
    ),
)
conv_filter.vjp(
    lambda xp, g, y, *, strides, padding, dilations, groups, x_shape: xp.conv_input(
        y, g, strides=strides, padding=padding, dilations=dilations, groups=groups, lengths=x_shape[1:-1]
    ),
    lambda xp, g, x, *, strides, padding, dilations, groups: xp.conv(
        x, g, strides=strides, padding=padding, dilations=dilations, groups=groups
    ),
)

# Arguments


def channels_first(data_format: str | None, n: int) -> bool:
    """Whether a data format for ``n`` axes of space, such as "NHWC" or "NCHW", has the channels before them."""
    space = "DHW"[-n:]
    last, first = [f"N{space}C"], [f"NC{space}"]
    if n == 1:  # TensorFlow takes both words
        last, first = [*last, "NHWC"], [*first, "NCHW"]
    if data_format is None or data_format in last:
        return False
    if data_format not in first:
        text = (
            f'Value for attr \'data_format\' of "{data_format}" is not in the list of allowed values: "{last[0]}", '
            f'"{first[0]}"'
        )
        raise InvalidArgumentError(
            message(text, received=f"data_format={data_format!r}", expected=f"{last[0]!r} or {first[0]!r}")
        )
    return True


def per_axis(value: Any, n: int, first: bool, name: str) -> tuple[int, ...]:
    """Strides, dilations or window lengths, one per axis of space, from an int or a list of 1, n or n + 2 of them."""
    given = arguments.integers(value)
    if len(given) == n + 2:
        outside = (given[0], given[1 if first else -1])
        if outside != (1, 1):
            raise UnimplementedError(
                message(
                    f"Current implementation does not yet support {name} in the batch and depth dimensions.",
                    received=f"{name}={value}",
                    expected="1 there",
                )
            )
        given = given[2:] if first else given[1:-1]
    elif len(given) == 1:
        given *= n
    elif len(given) != n:
        lengths = f"1, {n} or {n + 2}" if n > 1 else f"1 or {n + 2}"
        text = f"{name} should be of length {lengths}. Received: {name}={value} of length {len(given)}"
        raise ValueError(message(text, expected=f"one number for all axes, or {n}, or {n + 2} with 1 for batch and channels"))
    if min(given) < 1:
        words = {"strides": f"Stride must be > 0, but got {min(given)}", "dilations": "Dilated rates should be larger than 0."}
        text = words.get(name, f"Sliding window {name} must be > 0, but got {min(given)}")
        raise InvalidArgumentError(message(text, received=f"{name}={value}", expected="1 or more"))
    return given


def pads(
    padding: Any, first: bool, lengths: Sequence[int], size: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """One pair (before, after) per axis of space, from "SAME", "VALID" or a list of pairs for all axes."""
    n = len(lengths)
    if isinstance(padding, str):
        if padding == "SAME":
            return _same(lengths, size, strides, dilations)
        if padding == "VALID":
            return ((0, 0),) * n
        text = f'Value for attr \'padding\' of "{padding}" is not in the list of allowed values: "SAME", "VALID", "EXPLICIT"'
        raise InvalidArgumentError(
            message(text, received=f"padding={padding!r}", expected="'SAME', 'VALID', or a list of pairs")
        )
    if len(padding) != n + 2:
        text = f"When padding is a list, it must be of size {n + 2}. Received: padding={padding} of size {len(padding)}"
        raise ValueError(message(text, expected=f"{n + 2} pairs, those of batch and channels [0, 0]"))
    pairs = []
    for given in padding:
        found = arguments.integers(given)
        if len(found) != 2:
            text = (
                f"When padding is a list, each element in padding must be a list of size 2. Received: padding={padding} with "
                f"element of size {len(found)}"
            )
            raise ValueError(message(text, expected="[before, after] for each axis"))
        pairs.append((found[0], found[1]))
    inner, outside = (pairs[2:], pairs[:2]) if first else (pairs[1:-1], [pairs[0], pairs[-1]])
    if min(map(min, pairs)) < 0 or any(map(any, outside)):
        text = "All elements of explicit_paddings must be nonnegative, and 0 for the batch and depth dimensions"
        raise InvalidArgumentError(
            message(text, received=f"padding={padding}", expected="0 or more, and [0, 0] for batch and channels")
        )
    return tuple(inner)


def _same(lengths: Sequence[int], size: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> tuple:
    """Padding for which there are ⌈length / stride⌉ windows; an odd element goes after."""
    pairs = []
    for n, k, s, d in zip(lengths, size, strides, dilations):
        total = max(0, (-(-n // s) - 1) * s + (k - 1) * d + 1 - n)
        pairs.append((total // 2, total - total // 2))
    return tuple(pairs)


def positions(
    lengths: Sequence[int], pairs: Sequence, size: Sequence[int], strides: Sequence[int], dilations: Sequence[int], label: str,
    empty: bool = True,
) -> tuple[int, ...]:  # fmt: skip
    """How many windows there are along each axis of space; ``empty``: none is an answer."""
    counts = []
    for n, (before, after), k, s, d in zip(lengths, pairs, size, strides, dilations):
        room = n + before + after - (k - 1) * d - 1
        if room < -s or (room < 0 and not empty):
            raise InvalidArgumentError(
                message(
                    f"Computed output size would be negative: {min(-1, room // s + 1)} [input_size: {n}, "
                    f"effective_filter_size: {(k - 1) * d + 1}, stride: {s}] [Op:{label}]",
                    fix='padding="SAME", or an input at least as long as the window',
                )
            )
        counts.append(room // s + 1)
    return tuple(counts)


def to_channels_last(x: Tensor, n: int, first: bool) -> Tensor:
    """(…, channels, *space) as (…, *space, channels)."""
    rank = x._array.ndim
    return shapes.transpose(x, axes=(*range(rank - n - 1), *range(rank - n, rank), rank - n - 1)) if first else x


def from_channels_last(x: Tensor, n: int, first: bool) -> Tensor:
    """(…, *space, channels) as (…, channels, *space)."""
    rank = x._array.ndim
    return shapes.transpose(x, axes=(*range(rank - n - 1), rank - 1, *range(rank - n - 1, rank - 1))) if first else x


def with_one_batch_axis(x: Tensor, n: int) -> tuple[Tensor, tuple[int, ...]]:
    """All axes before space as one, and what they were."""
    shape = x._array.shape
    batch = shape[: -n - 1]
    return (x, batch) if len(batch) == 1 else (shapes.reshape(x, shape=(int(np.prod(batch)), *shape[-n - 1 :])), batch)


def with_batch_axes(x: Tensor, batch: tuple[int, ...]) -> Tensor:
    """The axes that `with_one_batch_axis` joined."""
    return x if len(batch) == 1 else shapes.reshape(x, shape=(*batch, *x._array.shape[1:]))


def check_array(x: Tensor, n: int, label: str) -> None:
    """Refuse an array with too few axes."""
    shape = x._array.shape
    if len(shape) < n + 2:
        raise InvalidArgumentError(
            message(
                f"input must be {n + 2}-dimensional: {dims(shape)} [Op:{label}]",
                expected="(batch, " + "DHW"[-n:].lower().replace("", ", ").strip(", ") + ", channels)",
                fix="x[tf.newaxis] makes a batch of one",
            )
        )


def _check_filter(w: Tensor, n: int, label: str) -> None:
    shape = w._array.shape
    if len(shape) != n + 2:
        raise InvalidArgumentError(
            message(
                f"filter must be {n + 2}-dimensional: {dims(shape)} [Op:{label}]",
                received=f"filters of shape {shape}",
                expected=f"{n} lengths, the channels of the input, those of the output",
            )
        )
    if 0 in shape:
        text = f"filter must not have zero elements (i.e. all dimensions must be non-zero): {dims(shape)} [Op:{label}]"
        raise InvalidArgumentError(message(text, received=f"filters of shape {shape}", expected="lengths of 1 or more"))
    dtype = w._array.dtype
    if dtype.kind in "bcO" or (dtype.kind in "iu" and dtype != np.int32):
        raise arguments.not_allowed(label, dtype, _ALLOWED)


def _groups(channels: int, depth: int, outputs: int, label: str) -> int:
    if channels % depth:
        raise InvalidArgumentError(
            message(
                f"input and filter must have the same depth: {channels} vs {depth} [Op:{label}]"
                if label == "Conv3D"
                else f"input depth must be evenly divisible by filter depth: {channels} vs {depth} [Op:{label}]",
                received=f"{channels} channels of the input for filters of depth {depth}",
                expected=f"a multiple of {depth} channels",
                fix="data_format= says which axis holds the channels",
            )
        )
    groups = channels // depth
    if groups and outputs % groups:
        text = f"output depth must be evenly divisible by number of groups: {outputs} vs {groups} [Op:{label}]"
        raise InvalidArgumentError(
            message(text, received=f"{outputs} outputs in {groups} groups", expected=f"a multiple of {groups} outputs")
        )
    return groups


# What users call


def convolution(
    x: Any, filters: Any, n: int, *, strides: Any = 1, padding: Any = "VALID", dilations: Any = None,
    data_format: str | None = None, depthwise: bool = False,
) -> Tensor:  # fmt: skip
    """The convolution over ``n`` axes of space; depthwise filters are (*size, channels, outputs per channel)."""
    label = "DepthwiseConv2dNative" if depthwise else f"Conv{max(n, 2)}D"
    first = channels_first(data_format, n)
    x, w = pair(conv.op, x, filters)
    _check_filter(w, n, label)
    check_array(x, n, label)
    strides = per_axis(strides, n, first, "strides")
    dilations = per_axis(1 if dilations is None else dilations, n, first, "dilations")
    x, batch = with_one_batch_axis(to_channels_last(x, n, first), n)
    *size, depth, outputs = w._array.shape
    if depthwise:
        depth, outputs = 1, depth * outputs
        _groups(x._array.shape[-1], w._array.shape[-2], outputs, label)
        w = shapes.reshape(w, shape=(*size, depth, outputs))
    groups = _groups(x._array.shape[-1], depth, outputs, label)
    lengths = x._array.shape[1:-1]
    pairs = pads(padding, first, lengths, size, strides, dilations)
    positions(lengths, pairs, size, strides, dilations, label)
    out = conv(x, w, strides=strides, padding=pairs, dilations=dilations, groups=groups)
    return from_channels_last(with_batch_axes(out, batch), n, first)


def convolution_transpose(
    x: Any, filters: Any, output_shape: Any, n: int, *, strides: Any = 1, padding: Any = "SAME", dilations: Any = None,
    data_format: str | None = None,
) -> Tensor:  # fmt: skip
    """The transpose of `convolution`, from its result to its input of ``output_shape``; filters (*size, outputs, inputs)."""
    label = f"Conv{max(n, 2)}DBackpropInput"
    first = channels_first(data_format, n)
    y, w = pair(conv_input.op, x, filters)
    _check_filter(w, n, label)
    check_array(y, n, label)
    strides = per_axis(strides, n, first, "strides")
    dilations = per_axis(1 if dilations is None else dilations, n, first, "dilations")
    y, batch = with_one_batch_axis(to_channels_last(y, n, first), n)
    *size, depth, inputs = w._array.shape
    lengths, channels = _target(output_shape, batch, depth, n, first, label)
    if y._array.shape[-1] != inputs:
        raise InvalidArgumentError(
            message(
                f"input depth must be equal to the last dimension of the filter: {y._array.shape[-1]} vs {inputs} [Op:{label}]",
                received=f"an input of {y._array.shape[-1]} channels for filters of shape {w._array.shape}",
                expected=f"{inputs} channels",
                fix="filters of a transposed convolution are (…, outputs, inputs)",
            )
        )
    groups = _groups(channels, depth, inputs, label)
    pairs = pads(padding, first, lengths, size, strides, dilations)
    counts = positions(lengths, pairs, size, strides, dilations, label)
    for axis, (found, computed) in enumerate(zip(y._array.shape[1:], counts)):
        if found != computed:
            raise InvalidArgumentError(
                message(
                    f"{label}: Size of out_backprop doesn't match computed: actual = {found}, computed = {computed} "
                    f"spatial_dim: {axis + 1} input: {lengths[axis]} filter: {size[axis]} output: {found} "
                    f"stride: {strides[axis]} dilation: {dilations[axis]}",
                    fix='an output_shape from which convolving comes back: with "SAME", input · stride',
                )
            )
    out = conv_input(y, w, strides=strides, padding=pairs, dilations=dilations, groups=groups, lengths=lengths)
    return from_channels_last(with_batch_axes(out, batch), n, first)


def _target(
    output_shape: Any, batch: tuple[int, ...], depth: int, n: int, first: bool, label: str
) -> tuple[tuple[int, ...], int]:
    """Space and channels of a transpose's result; given for all axes, or for those of space alone."""
    shape = arguments.integers(output_shape)
    if len(shape) == n:
        return shape, depth
    if len(shape) != len(batch) + n + 1:
        text = (
            f"output_shape should be of length {n} or {len(batch) + n + 1}. Received: output_shape={output_shape} "
            f"of length {len(shape)}"
        )
        raise ValueError(message(text, expected=f"the whole shape, {len(batch) + n + 1} numbers"))
    if shape[: len(batch)] != batch:
        text = (
            f"{label}: input and out_backprop must have the same batch size. Input batch: {shape[: len(batch)]}, "
            f"out_backprop batch: {batch}"
        )
        raise InvalidArgumentError(message(text, received=f"output_shape={output_shape}", expected=f"a batch of {batch}"))
    rest = shape[len(batch) :]
    return (rest[1:], rest[0]) if first else (rest[:-1], rest[-1])


def rank_of_space(filters: Any) -> int:
    """How many axes of space filters are for."""
    return convert_to_tensor(filters)._array.ndim - 2


def separable(
    x: Any, depthwise_filter: Any, pointwise_filter: Any, *, strides: Any, padding: Any, dilations: Any,
    data_format: str | None,
) -> Tensor:  # fmt: skip
    """A depthwise convolution, then one of windows of a single element that mixes the channels."""
    mixing = convert_to_tensor(pointwise_filter)
    if mixing._array.ndim != 4 or mixing._array.shape[:2] != (1, 1):
        text = "Dimensions of the pointwise filter are not compatible with [1, 1, channels, outputs]"
        raise ValueError(message(text, received=f"{mixing._array.shape}", expected="(1, 1, channels, outputs)"))
    parts = convolution(
        x, depthwise_filter, 2, strides=strides, padding=padding, dilations=dilations, data_format=data_format, depthwise=True
    )
    return convolution(parts, mixing, 2, data_format=data_format)


def depthwise_input(
    input_shape: Any, filters: Any, y: Any, *, strides: Any, padding: Any, dilations: Any, data_format: str | None
) -> Tensor:
    """The transpose of the depthwise convolution in its input."""
    w = convert_to_tensor(filters)
    _check_filter(w, 2, "DepthwiseConv2dNativeBackpropInput")
    *size, channels, multiplier = w._array.shape
    w = shapes.reshape(w, shape=(*size, 1, channels * multiplier))
    return convolution_transpose(
        y, w, input_shape, 2, strides=strides, padding=padding, dilations=dilations, data_format=data_format
    )


def depthwise_filter(
    x: Any, filter_shape: Any, y: Any, *, strides: Any, padding: Any, dilations: Any, data_format: str | None
) -> Tensor:
    """The transpose of the depthwise convolution in its filter."""
    first = channels_first(data_format, 2)
    x, y = (to_channels_last(t, 2, first) for t in pair(conv_filter.op, x, y))
    label = "DepthwiseConv2dNativeBackpropFilter"
    check_array(x, 2, label)
    check_array(y, 2, label)
    *size, channels, multiplier = shape = arguments.integers(filter_shape)
    strides, dilations = per_axis(strides, 2, first, "strides"), per_axis(dilations, 2, first, "dilations")
    pairs = pads(padding, first, x._array.shape[1:-1], size, strides, dilations)
    expected = (*positions(x._array.shape[1:-1], pairs, size, strides, dilations, label), channels * multiplier)
    if y._array.shape[1:] != expected or x._array.shape[-1] != channels:
        raise InvalidArgumentError(
            message(
                f"{label}: filter_sizes, input and out_backprop do not fit one another",
                received=f"filter {shape}, input {x._array.shape}, out_backprop {y._array.shape}",
                expected=f"{channels} channels of input and out_backprop of (batch, {', '.join(map(str, expected))})",
            )
        )
    where = {"strides": strides, "padding": pairs, "dilations": dilations, "groups": channels}
    return shapes.reshape(conv_filter(x, y, size=tuple(size), **where), shape=shape)
