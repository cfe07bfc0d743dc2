"""Records of gradtape/ops/special.py, in its order."""

import functools

import numpy as np
import scipy.special

import gradtape as tf
from gradtape.ops import special as ops
from gradtape.testing import OpRecord

INVALID = tf.errors.InvalidArgumentError
REFUSED = [
    (lambda: (tf.constant([1]),), INVALID, "is not in the list of allowed values"),
    (lambda: (tf.constant([1j]),), INVALID, "is not in the list of allowed values"),
    (lambda: (tf.constant([True]),), INVALID, ""),
]
PAIRS = [
    (lambda: (tf.constant([1]), tf.constant([2])), INVALID, "is not in the list of allowed values"),
    (lambda: (tf.constant([1.0]), tf.constant([1.0], tf.float64)), INVALID, "expected to be a float tensor"),
]


def between(low, high, count=1):
    return lambda rng: [tuple(rng.uniform(low, high, (2, 3)) for _ in range(count))]


def silent(function):
    def call(*arrays):
        with np.errstate(all="ignore"):
            return function(*arrays)

    return call


def unary(name, reference, low=-3.0, high=3.0, **options):
    options = {"extremes": True, "bad": REFUSED, **options}
    return OpRecord(name, getattr(ops, name), between(low, high), silent(reference), **options)


def fresnel(which):
    """SciPy answers nan where the square overflows."""
    return lambda x: scipy.special.fresnel(np.clip(x, -1e100, 1e100).astype(x.dtype))[which]


def tails(rng):
    """Far to the left and right of the middle, and shapes from 0.05 to 300."""
    return [(np.array([0.05, 0.4, 1.7, 8.0, 300.0, 2.0]), np.array([0.3, 3.0, 1.2, 2.0, 310.0, 0.02]))]


def incomplete(name, reference):
    samples = between(0.5, 4.0, 2)
    return [
        OpRecord(name, getattr(ops, name), samples, reference, broadcasting=True, bad=PAIRS),
        OpRecord(name, getattr(ops, name), tails, reference, case="tails", dtypes=("float64", "float32")),
    ]


def beta_samples(rng):
    return [(rng.uniform(0.1, 0.9, (2, 3)),)]


RECORDS = [
    unary("bessel_i0", scipy.special.i0),
    unary("bessel_i1", scipy.special.i1),
    unary("bessel_i0e", scipy.special.i0e),
    unary("bessel_i1e", scipy.special.i1e),
    unary("bessel_j0", scipy.special.j0),
    unary("bessel_j1", scipy.special.j1),
    unary("bessel_y0", scipy.special.y0, 0.5, 4),
    unary("bessel_y1", scipy.special.y1, 0.5, 4),
    unary("bessel_k0", scipy.special.k0, 0.5, 4),
    unary("bessel_k1", scipy.special.k1, 0.5, 4),
    unary("bessel_k0e", scipy.special.k0e, 0.5, 4),
    unary("bessel_k1e", scipy.special.k1e, 0.5, 4),
    unary("dawsn", scipy.special.dawsn),
    unary("expint", scipy.special.expi, 0.5, 4),
    unary("fresnel_sin", fresnel(0), -2, 2),
    unary("fresnel_cos", fresnel(1), -2, 2),
    unary("spence", scipy.special.spence, 0.2, 3),
    unary("ndtri", scipy.special.ndtri, 0.1, 0.9),
    unary("erfcinv", scipy.special.erfcinv, 0.2, 1.8),
    *incomplete("igamma", scipy.special.gammainc),
    *incomplete("igammac", scipy.special.gammaincc),
    OpRecord("betainc", lambda x: ops.betainc(2.5, 1.5, tf.convert_to_tensor(x)), beta_samples,
             functools.partial(scipy.special.betainc, 2.5, 1.5)),
    OpRecord("zeta", lambda q: ops.zeta(2.5, tf.convert_to_tensor(q)), between(0.5, 4.0),
             functools.partial(scipy.special.zeta, 2.5)),
    OpRecord("bitcast", functools.partial(ops.bitcast, dtype=np.dtype("uint8")), between(-1, 1),
             lambda x: x.view(np.uint8).reshape(*x.shape, 8), dtypes=("float64",), differentiable=False),
]  # fmt: skip
