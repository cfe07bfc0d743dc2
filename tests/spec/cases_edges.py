"""Golden cases of C10: what common derivative rules give at edges. The rows of its table are counted row by row."""

from __future__ import annotations

import numpy as np

from spec.cases import case


def gradients(tf, f, *values, dtype="float32", upstream=None):
    xs = [tf.constant(v, dtype) for v in values]
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    found = tape.gradient(y, xs, output_gradients=upstream)
    return found if len(found) > 1 else found[0]


@case("C10.1")
def ties_of_two(tf):
    return gradients(tf, tf.maximum, [1.0, 2.0], [1.0, 3.0]), gradients(tf, tf.minimum, [1.0, 2.0], [1.0, 3.0])


@case("C10.2")
def ties_of_many(tf):
    x = [[2.0, 1.0, 2.0], [1.0, 1.0, 1.0]]
    return gradients(tf, tf.reduce_max, x), gradients(tf, lambda x: tf.reduce_min(x, axis=1), x)


@case("C10.3")
def abs_and_sign(tf):
    return gradients(tf, tf.abs, [0.0, -2.0, 3.0]), gradients(tf, tf.sign, [0.0, -2.0])


@case("C10.4")
def relu(tf):
    return gradients(tf, tf.nn.relu, [0.0, -1.0, 1.0])


@case("C10.5")
def leaky_relu(tf):
    return gradients(tf, tf.nn.leaky_relu, [0.0, -1.0, 1.0])


@case("C10.6")
def relu6(tf):
    return gradients(tf, tf.nn.relu6, [0.0, 6.0, 3.0, 7.0])


@case("C10.7")
def elu(tf):
    return gradients(tf, tf.nn.elu, [0.0, -1.0, 1.0])


@case("C10.8")
def selu(tf):
    return gradients(tf, tf.nn.selu, [0.0, -1.0, 1.0])


@case("C10.9 C10.10")
def sqrt_at_zero(tf):
    zero = tf.constant(0.0)
    return [
        gradients(tf, tf.sqrt, 0.0),
        gradients(tf, tf.sqrt, 0.0, upstream=zero),
        gradients(tf, tf.math.rsqrt, 0.0, upstream=zero),
        gradients(tf, tf.math.rsqrt, 0.0),
    ]


@case("C10.11", differs="0 where the cotangent is 0; GradientTape(safe=False) gives NaN")
def log_at_zero(tf):
    return gradients(tf, tf.math.log, 0.0), gradients(tf, tf.math.log, 0.0, upstream=tf.constant(0.0))


@case("C10.12", differs="0 from the branch not taken; GradientTape(safe=False) gives NaN")
def where_does_not_shield(tf):
    zero = tf.constant(0.0)
    functions = [tf.math.log, lambda x: 1.0 / x, lambda x: x**0.5]
    return [gradients(tf, lambda x, f=f: tf.where(x > 0.0, f(x), zero), 0.0) for f in functions]


@case("C10.13")
def where_shields_sqrt(tf):
    return gradients(tf, lambda x: tf.where(x > 0.0, tf.sqrt(x), tf.constant(0.0)), 0.0)


@case("C10.14")
def norm_at_zero(tf):
    return gradients(tf, tf.norm, [0.0, 0.0])


@case("C10.15")
def clip_at_the_edges(tf):
    return gradients(tf, lambda x: tf.clip_by_value(x, -1.0, 1.0), [-2.0, -1.0, 0.0, 1.0, 2.0])


@case("C10.16")
def clip_bounds(tf):
    return gradients(tf, tf.clip_by_value, [-2.0, -1.0, 0.0, 1.0, 2.0, 3.0], -1.0, 1.0)


@case("C10.17")
def power_zero_two(tf):
    return gradients(tf, tf.pow, 0.0, 2.0)


@case("C10.18")
def power_zero_zero(tf):
    return gradients(tf, tf.pow, 0.0, 0.0)


@case("C10.19")
def power_of_a_negative(tf):
    return gradients(tf, tf.pow, -1.0, 2.0)


@case("C10.20")
def power_zero_half(tf):
    return gradients(tf, tf.pow, 0.0, 0.5)


@case("C10.21")
def power_constant_zero(tf):
    return gradients(tf, lambda x: x**0, [0.0, 2.0]), gradients(tf, lambda x: x**0.0, [0.0, 2.0])


@case("C10.22")
def product_with_a_zero(tf):
    return [gradients(tf, tf.reduce_prod, x) for x in ([0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [[1.0, 2.0], [0.0, 4.0]])]


@case("C10.23")
def divide_no_nan(tf):
    return gradients(tf, tf.math.divide_no_nan, [1.0, 1.0], [0.0, 2.0])


@case("C10.24")
def multiply_no_nan(tf):
    return gradients(tf, tf.math.multiply_no_nan, [2.0, np.nan], [0.0, 0.0])


@case("C10.25")
def xlogy(tf):
    return gradients(tf, tf.math.xlogy, [0.0, 2.0], [0.0, 3.0])


@case("C10.26")
def atan2(tf):
    return gradients(tf, tf.math.atan2, [0.0, 1.0], [0.0, 2.0])


@case("C10.27")
def floormod(tf):
    return gradients(tf, tf.math.floormod, [7.0, -7.0], [2.0, 3.0])


@case("C10.28")
def floordiv(tf):
    return gradients(tf, tf.math.floordiv, [7.0, -7.0], [2.0, 3.0])


@case("C10.29")
def arcs_at_one(tf):
    return gradients(tf, tf.acos, 1.0), gradients(tf, tf.asin, 1.0), gradients(tf, tf.math.atanh, 1.0)


@case("C10.30")
def deviation_of_equals(tf):
    return gradients(tf, tf.math.reduce_std, [2.0, 2.0])


@case("C10.31")
def logsumexp(tf):
    return [gradients(tf, tf.reduce_logsumexp, x) for x in ([-np.inf, 0.0], [1000.0, 1000.0], [-1000.0, 0.0])]


@case("C10.32")
def top_k(tf):
    return gradients(tf, lambda x: tf.math.top_k(x, k=1).values, [2.0, 5.0, 5.0])


@case("C10.33", differs="the exact derivative of the cumulative product")
def cumprod(tf):
    return gradients(tf, lambda x: tf.math.cumprod(x), [2.0, 0.0, 3.0])


@case("C10.34")
def unsorted_segment_max(tf):
    return gradients(tf, lambda x: tf.math.unsorted_segment_max(x, tf.constant([0, 0, 1]), 2), [2.0, 2.0, 1.0])


@case("C10.35")
def l2_normalize(tf):
    return gradients(tf, tf.math.l2_normalize, [0.0, 0.0]), gradients(tf, tf.math.l2_normalize, [3.0, 4.0])


@case("C10.36")
def mean_of_empty(tf):
    return gradients(tf, tf.reduce_mean, np.zeros((0,), np.float32))


# Beyond the table: rules at extremes that a stable implementation keeps finite


@case("C10 extremes")
def stable_at_extremes(tf):
    x = [-1000.0, -88.0, 0.0, 88.0, 1000.0]
    functions = [
        tf.sigmoid,
        tf.tanh,
        tf.nn.softplus,
        tf.math.log_sigmoid,
        tf.nn.softmax,
        tf.nn.log_softmax,
        tf.math.erf,
        tf.math.expm1,
    ]
    return [gradients(tf, f, x) for f in functions[:-1]] + [gradients(tf, functions[-1], [-100.0, 0.0, 1e-6])]


@case("C10 extremes")
def cross_entropies(tf):
    logits = [[1000.0, -1000.0, 0.0], [0.0, 0.0, 0.0]]
    dense = gradients(tf, lambda x: tf.nn.softmax_cross_entropy_with_logits(tf.constant([[1.0, 0.0, 0.0]] * 2), x), logits)
    sparse = gradients(tf, lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(tf.constant([1, 2]), x), logits)
    binary = gradients(tf, lambda x: tf.nn.sigmoid_cross_entropy_with_logits(tf.constant([[1.0, 0.0, 1.0]] * 2), x), logits)
    return dense, sparse, binary


@case("C10 extremes")
def nan_and_inf_inputs(tf):
    x = [np.nan, np.inf, -np.inf]
    return [gradients(tf, f, x) for f in (tf.exp, tf.tanh, tf.sigmoid, lambda x: tf.maximum(x, 0.0), tf.abs, tf.square)]


@case("C10.4", differs="a NaN goes on as a NaN")
def relu_of_nan(tf):
    return gradients(tf, tf.nn.relu, [np.nan, 1.0])


@case("C10 shapes")
def shape_ops(tf):
    x = np.arange(6.0).reshape(2, 3)
    functions = [
        lambda x: tf.transpose(x)[0] * 2.0,
        lambda x: tf.tile(x, [2, 2]) * 2.0,
        lambda x: tf.pad(x, [[1, 0], [0, 2]]) * 3.0,
        lambda x: tf.expand_dims(x, 1) * tf.ones((2, 4, 3)),
        lambda x: tf.concat([x, 2.0 * x], axis=1) ** 2,
        lambda x: tf.stack([x, x * x], axis=-1),
        lambda x: tf.unstack(x, axis=1)[1] ** 2,
        lambda x: tf.squeeze(x[:1]) ** 2,
        lambda x: tf.reverse(x, [1]) * tf.constant([1.0, 2.0, 3.0]),
        lambda x: tf.roll(x, 1, 0) * tf.constant([[1.0], [2.0]]),
        lambda x: tf.cumsum(x, axis=1, reverse=True) ** 2,
        lambda x: tf.linalg.diag_part(x) ** 2,
        lambda x: x[::-1, 1:] ** 2,
        lambda x: tf.boolean_mask(x, x > 2.0) ** 2,
        lambda x: tf.sort(x, axis=1, direction="DESCENDING") * tf.constant([1.0, 2.0, 3.0]),
        lambda x: tf.linalg.band_part(x, 0, 0) ** 2,
        lambda x: tf.einsum("ij,kj->ik", x, x),
        lambda x: tf.tensordot(x, x, [[1], [1]]),
        lambda x: tf.repeat(x, [1, 2], axis=0) ** 2,
        lambda x: tf.slice(x, [0, 1], [2, 2]) ** 2,
        lambda x: tf.strided_slice(x, [0, 0], [2, 3], [1, 2]) ** 2,
        lambda x: tf.broadcast_to(x, (4, 2, 3)) ** 2,
    ]
    return [gradients(tf, f, x) for f in functions]


@case("C10 elementwise")
def elementwise_ops(tf):
    x = [-0.7, 0.3, 0.9]
    names = [
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
        "tanh",
        "asin",
        "acos",
        "atan",
        "asinh",
        "exp",
        "expm1",
        "sigmoid",
        "softplus",
        "erf",
        "square",
        "negative",
        "softsign",
    ]
    positive = ["log", "log1p", "sqrt", "rsqrt", "lgamma", "digamma", "reciprocal", "acosh"]
    return {
        **{n: gradients(tf, getattr(tf.math, n), x, dtype="float64") for n in names},
        **{n: gradients(tf, getattr(tf.math, n), [1.2, 2.5], dtype="float64") for n in positive},
    }


@case("C10 elementwise")
def binary_ops_and_broadcasting(tf):
    x, y = [[1.5], [-2.0]], [0.5, 2.0, 3.0]
    names = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "squared_difference", "atan2"]
    return {n: gradients(tf, getattr(tf.math, n), x, y, dtype="float64") for n in names}


@case("C10 reductions")
def reductions(tf):
    x = [[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]]
    names = [
        "reduce_sum",
        "reduce_mean",
        "reduce_prod",
        "reduce_max",
        "reduce_min",
        "reduce_logsumexp",
        "reduce_std",
        "reduce_variance",
        "reduce_euclidean_norm",
    ]
    return {
        n: [
            gradients(tf, lambda x, n=n, k=k: getattr(tf.math, n)(x, **k) ** 2, x, dtype="float64")
            for k in ({}, {"axis": 0}, {"axis": [-1], "keepdims": True}, {"axis": (0, 1)})
        ]
        for n in names
    }
