"""Keras's array functions: what Keras looks up as ``backend.numpy``, by the files that have them."""

# ruff: noqa: F401, I001 - names that Keras looks up, as a table

from gradtape.keras_backend.numpy_creation import (
    arange, array, bartlett, blackman, copy, empty, empty_like, eye, full, full_like, geomspace, hamming, hanning,
    identity, kaiser, linspace, logspace, meshgrid, ones, ones_like, tri, tril, triu, vander, zeros, zeros_like,
)  # fmt: skip
from gradtape.keras_backend.numpy_elementwise import (
    abs, absolute, add, angle, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, cbrt, ceil, clip, conj,
    conjugate, cos, cosh, deg2rad, divide, divide_no_nan, exp, exp2, expm1, fabs, floor, floor_divide, fmax, fmin, fmod,
    gcd, heaviside, hypot, i0, imag, lcm, ldexp, log, log10, log1p, log2, logaddexp, logaddexp2, maximum, minimum, mod,
    multiply, nan_to_num, negative, nextafter, power, rad2deg, real, reciprocal, round, sign, sin, sinc, sinh, sqrt,
    square, subtract, tan, tanh, true_divide, trunc,
)  # fmt: skip
from gradtape.keras_backend.numpy_index import (
    argpartition, argsort, bincount, diag, diagflat, diagonal, digitize, isin, nonzero, searchsorted, select, sort,
    take, take_along_axis, trace, unique, unravel_index,
)  # fmt: skip
from gradtape.keras_backend.numpy_logic import (
    allclose, bitwise_and, bitwise_invert, bitwise_left_shift, bitwise_not, bitwise_or, bitwise_right_shift,
    bitwise_xor, equal, greater, greater_equal, isclose, isfinite, isinf, isnan, isneginf, isposinf, isreal, left_shift,
    less, less_equal, logical_and, logical_not, logical_or, logical_xor, not_equal, right_shift, signbit, where,
)  # fmt: skip
from gradtape.keras_backend.numpy_products import (
    cross, dot, einsum, inner, kron, matmul, outer, slogdet, tensordot, vdot,
)  # fmt: skip
from gradtape.keras_backend.numpy_reduce import (
    all, amax, amin, any, argmax, argmin, average, count_nonzero, cumprod, cumsum, max, mean, min, nanargmax, nanargmin,
    nancumprod, nancumsum, nanmax, nanmean, nanmin, nanprod, nansum, prod, ptp, sum,
)  # fmt: skip
from gradtape.keras_backend.numpy_shape import (
    append, array_split, broadcast_to, concatenate, dsplit, dstack, expand_dims, flip, fliplr, flipud, hsplit, hstack,
    moveaxis, ndim, pad, ravel, repeat, reshape, roll, rot90, size, split, squeeze, stack, swapaxes, tile, transpose,
    view, vsplit, vstack,
)  # fmt: skip
from gradtape.keras_backend.numpy_statistics import (
    corrcoef, correlate, diff, histogram, median, nanmedian, nanpercentile, nanquantile, nanstd, nanvar, percentile,
    quantile, std, trapezoid, var, vectorize,
)  # fmt: skip
