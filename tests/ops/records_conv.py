"""Records of gradtape/ops/conv.py, in its order."""

import functools
import itertools

import numpy as np

from gradtape import errors
from gradtape.ops import conv as ops
from gradtape.testing import OpRecord

Invalid = errors.InvalidArgumentError


def arrays(*shapes):
    return lambda rng: [tuple(rng.normal(size=shape) for shape in shapes)]


# The definition, element by element


def terms(x, w, strides, padding, dilations, groups):
    """(index of x, index of w, index of y) of every product in the sum."""
    *size, depth, outputs = w
    n = len(size)
    counts = [(m + a + b - (k - 1) * d - 1) // s + 1
              for m, (a, b), k, d, s in zip(x[1:], padding, size, dilations, strides)]  # fmt: skip
    for example, p, k, c, o in itertools.product(
        range(x[0]), np.ndindex(*counts), np.ndindex(*size), range(depth), range(outputs)
    ):
        at = [p[i] * strides[i] + k[i] * dilations[i] - padding[i][0] for i in range(n)]
        if all(0 <= at[i] < x[1 + i] for i in range(n)):
            group = o // (outputs // groups)
            yield (example, *at, group * depth + c), (*k, c, o), (example, *p, o)


def summed(products, first, second, shape, order):
    out = np.zeros(shape)
    for found in products:
        a, b, c = (found[i] for i in order)
        out[c] += first[a] * second[b]
    return out


def forms():
    """(name, shape of x, shape of w, shape of y, attributes)"""
    yield "2d", (2, 4, 3, 2), (2, 3, 2, 3), (2, 4, 3, 3), {
        "strides": (1, 1), "padding": ((1, 0), (1, 1)), "dilations": (1, 1), "groups": 1}
    yield "strides", (1, 5, 4, 2), (3, 2, 2, 2), (1, 2, 2, 2), {
        "strides": (2, 2), "padding": ((0, 0), (0, 0)), "dilations": (1, 1), "groups": 1}
    yield "dilations", (1, 5, 4, 1), (2, 2, 1, 2), (1, 3, 3, 2), {
        "strides": (1, 1), "padding": ((0, 0), (1, 0)), "dilations": (2, 2), "groups": 1}
    yield "groups", (1, 3, 3, 4), (2, 2, 2, 4), (1, 2, 2, 4), {
        "strides": (1, 1), "padding": ((0, 0), (0, 0)), "dilations": (1, 1), "groups": 2}
    yield "depthwise", (1, 3, 3, 2), (2, 2, 1, 4), (1, 2, 2, 4), {
        "strides": (1, 1), "padding": ((0, 0), (0, 0)), "dilations": (1, 1), "groups": 2}
    yield "1d", (2, 5, 2), (3, 2, 2), (2, 3, 2), {"strides": (2,), "padding": ((1, 1),), "dilations": (1,), "groups": 1}
    yield "3d", (1, 3, 2, 3, 1), (2, 2, 1, 1, 2), (1, 2, 1, 3, 2), {
        "strides": (1, 1, 1), "padding": ((0, 0),) * 3, "dilations": (1, 1, 1), "groups": 1}


def three_faces(name, x, w, y, attributes):
    products = list(terms(x, w, **attributes))

    def record(op, shapes, result, order, **more):
        return OpRecord(
            op, functools.partial(getattr(ops, op), **attributes, **more), arrays(*shapes),
            lambda a, b: summed(products, a, b, result, order), case=name, empties=list,
        )  # fmt: skip

    return [
        record("conv", (x, w), y, (0, 1, 2)),
        record("conv_input", (y, w), x, (2, 1, 0), lengths=x[1:-1]),
        record("conv_filter", (x, y), w, (0, 2, 1), size=w[:-2]),
    ]


def bad(*cases):
    return [((lambda shapes=shapes: tuple(map(np.ones, shapes))), error, text) for shapes, error, text in cases]


def convolution(x, w, **attributes):
    return ops.convolution(x, w, 2, **attributes)


def transposed(x, order):
    return np.transpose(x, order)


RECORDS = [
    *(record for form in forms() for record in three_faces(*form)),
    OpRecord(
        "convolution", functools.partial(convolution, padding="SAME"), arrays((1, 3, 3, 2), (2, 2, 2, 2)),
        lambda x, w: np.einsum("nhwijc,ijco->nhwo", np.lib.stride_tricks.sliding_window_view(
            np.pad(x, ((0, 0), (0, 1), (0, 1), (0, 0))), (2, 2), (1, 2)).transpose(0, 1, 2, 4, 5, 3), w),
        bad=bad(
            (((1, 5, 5, 2), (3, 3, 3, 4)), Invalid, "input depth must be evenly divisible by filter depth: 2 vs 3"),
            (((1, 5, 5, 4), (3, 3, 2, 3)), Invalid, "output depth must be evenly divisible by number of groups: 3 vs 2"),
            (((5, 5, 4), (3, 3, 4, 3)), Invalid, "input must be 4-dimensional: [5,5,4]"),
            (((1, 5, 5, 4), (3, 4, 3)), Invalid, "filter must be 4-dimensional: [3,4,3]"),
            (((1, 5, 5, 4), (0, 3, 4, 3)), Invalid, "filter must not have zero elements"),
        ), empties=lambda: [(np.ones((0, 3, 3, 2)), np.ones((2, 2, 2, 2)))],
    ),
    OpRecord(
        "convolution", functools.partial(convolution, data_format="NCHW"), arrays((2, 1, 2, 3, 3), (2, 2, 2, 2)),
        lambda x, w: np.einsum("abcijhw,hwco->abijo", np.lib.stride_tricks.sliding_window_view(x, (2, 2), (3, 4))
                               .transpose(0, 1, 2, 3, 4, 5, 6), w).transpose(0, 1, 4, 2, 3),
        case="channels first, two batch axes",
        bad=bad((((1, 2, 1, 1), (3, 3, 2, 2)), Invalid, "output size would be negative")),
        empties=list,
    ),
    OpRecord(
        "convolution_transpose", functools.partial(ops.convolution_transpose, output_shape=(1, 4, 4, 2), n=2, strides=2),
        arrays((1, 2, 2, 3), (2, 2, 2, 3)),
        lambda y, w: np.einsum("nijo,hwco->nihjwc", y, w).reshape(1, 4, 4, 2), empties=list,
        bad=bad(
            (((1, 3, 2, 3), (2, 2, 2, 3)), Invalid, "Size of out_backprop doesn't match computed: actual = 3, computed = 2"),
            (((2, 2, 2, 3), (2, 2, 2, 3)), Invalid, "must have the same batch size"),
            (((1, 2, 2, 4), (2, 2, 2, 3)), Invalid, "input depth must be equal to the last dimension of the filter: 4 vs 3"),
        ),
    ),
    OpRecord(
        "convolution", functools.partial(ops.separable, strides=1, padding="VALID", dilations=None, data_format=None),
        arrays((1, 3, 3, 2), (2, 2, 2, 2), (1, 1, 4, 3)),
        lambda x, d, p: np.einsum(
            "nhwcij,ijcm,cmo->nhwo", np.lib.stride_tricks.sliding_window_view(x, (2, 2), (1, 2)), d, p[0, 0].reshape(2, 2, 3)),
        case="separable", empties=list,
        bad=bad((((1, 3, 3, 2), (2, 2, 2, 2), (1, 2, 4, 3)), ValueError, "not compatible with [1, 1, channels, outputs]")),
    ),
]  # fmt: skip
