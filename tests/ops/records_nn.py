"""Records of gradtape/ops/nn.py, in its order."""

import functools

import numpy as np
import scipy.special

from gradtape import errors
from gradtape.ops import nn as ops
from gradtape.testing import OpRecord

Invalid = errors.InvalidArgumentError
NOT_ALLOWED = "is not in the list of allowed values"


def away_from(*kinks):
    """Samples of several shapes whose elements are at least 0.05 away from where a derivative jumps."""

    def samples(rng):
        x = rng.normal(size=(2, 3)) * 3
        for kink in kinks:
            x = np.where(np.abs(x - kink) < 0.05, kink + 0.3, x)
        return [(x,), (np.array(-0.7),), (np.array([0.4]),)]

    return samples


def refuses(*values):
    return [((lambda value=value: (np.array(value),)), Invalid, NOT_ALLOWED) for value in values]


def activation(name, reference, *kinks, bad=([1], [True], [1j]), case="", function=None, **options):
    return OpRecord(
        name, function or getattr(ops, name), away_from(*kinks), reference, case=case, bad=refuses(*bad),
        **{"extremes": True, **options},
    )  # fmt: skip


def selu(x):
    scale = 1.0507009873554805
    return np.where(x < 0, scale * 1.6732632423543772 * np.expm1(x), scale * x).astype(x.dtype)


def gelu(x):
    return x * scipy.special.ndtr(x)


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def silu(x, beta):
    return x / (1 + np.exp(-beta * x))


def vectors(*shapes):
    return lambda rng: [tuple(rng.normal(size=shape) for shape in shapes)]


# The relu family and smooth activations

ACTIVATIONS = [
    activation("relu", lambda x: np.maximum(x, 0), 0, bad=([True], [1j])),
    activation("relu6", lambda x: np.minimum(np.maximum(x, 0), 6), 0, 6, bad=([True], [1j])),
    activation("leaky_relu", lambda x: np.where(x > 0, x, np.asarray(0.2, x.dtype) * x), 0),
    OpRecord("leaky_relu", functools.partial(ops.leaky_relu_any, alpha=1.5), away_from(0),
             lambda x: np.where(x > 0, x, 1.5 * x), case="alpha=1.5"),
    OpRecord("leaky_relu", functools.partial(ops.leaky_relu_any, alpha=-0.5), away_from(0),
             lambda x: np.where(x > 0, x, -0.5 * x), case="alpha=-0.5"),
    activation("elu", lambda x: np.maximum(x, 0) + np.expm1(np.minimum(x, 0)), 0),
    activation("selu", selu, 0),
    OpRecord("relu", ops.crelu, lambda rng: [(away_from(0)(rng)[0][0],)],
             lambda x: np.maximum(np.concatenate([x, -x], axis=-1), 0), case="crelu"),
    activation("gelu", gelu, extremes=False),
    activation("gelu_tanh", gelu_tanh, extremes=False),
    OpRecord("silu", ops.silu, vectors((2, 3), ()), silu, bad=[(lambda: (np.array([1]), 1), Invalid, NOT_ALLOWED)],
             complex=True),
    OpRecord("silu", ops.silu, vectors((2, 3), (2, 3)), silu, case="beta per element", broadcasting=True),
    activation("softsign", lambda x: x / (1 + np.abs(x)), 0),
]  # fmt: skip

# Softmax

SCALAR = (lambda: (np.array(1.0),), Invalid, "logits must have >= 1 dimension, got []")
FAR = (lambda: (np.ones((2, 3)),), Invalid, "`dim` must be in the range [-2, 2)")


def over_axes(name, reference):
    function = getattr(ops, name)
    return [
        OpRecord(name, function, lambda rng: [(rng.normal(size=s) * 3,) for s in [(2, 3), (4,), (1,)]],
                 functools.partial(reference, axis=-1), bad=[*refuses([1], [True], [1j]), SCALAR]),
        OpRecord(name, functools.partial(function, axis=0), vectors((2, 3, 2)), functools.partial(reference, axis=0),
                 case="axis=0"),
        OpRecord(name, functools.partial(function, axis=2), vectors((2, 3, 2)), functools.partial(reference, axis=2), bad=[FAR],
                 case="axis=2"),
    ]  # fmt: skip


SOFTMAX = [*over_axes("softmax", scipy.special.softmax), *over_axes("log_softmax", scipy.special.log_softmax)]

# Cross-entropies


def probabilities(rng, shape):
    return rng.uniform(0.1, 1, shape)


def dense(labels, logits, axis=-1):
    return -np.sum(labels * scipy.special.log_softmax(logits, axis=axis), axis=axis)


def sparse(labels, logits):
    return -np.take_along_axis(scipy.special.log_softmax(logits, axis=-1), labels[..., None], axis=-1)[..., 0]


def sigmoid_loss(logits, labels):
    return -labels * scipy.special.log_expit(logits) - (1 - labels) * scipy.special.log_expit(-logits)


def weighted_loss(logits, labels, weight):
    return -weight * labels * scipy.special.log_expit(logits) - (1 - labels) * scipy.special.log_expit(-logits)


LABELS = np.array([[0, 2], [1, 1], [2, 0]])
ENTROPIES = [
    OpRecord("cross_entropy", ops.cross_entropy, vectors((2, 3), (2, 3)), lambda x, z: -np.sum(x * z, axis=-1)),
    OpRecord("cross_entropy", ops.softmax_cross_entropy,
             lambda rng: [(probabilities(rng, s), rng.normal(size=s)) for s in [(2, 3), (3,), (2, 2, 3)]], dense,
             case="softmax", also=("log_softmax",),
             bad=[(lambda: (np.ones((1, 2)), np.ones((1, 3))), Invalid,
                   "logits and labels must be broadcastable: logits_size=[1,3] labels_size=[1,2]"),
                  (lambda: (np.ones((1, 3)), np.ones((1, 3), int)), Invalid, NOT_ALLOWED)]),
    OpRecord("cross_entropy", functools.partial(ops.softmax_cross_entropy, axis=0),
             lambda rng: [(probabilities(rng, (3, 2)), rng.normal(size=(3, 2)))], functools.partial(dense, axis=0),
             case="softmax, axis=0"),
    OpRecord("cross_entropy", ops.softmax_cross_entropy,
             lambda rng: [(probabilities(rng, (1, 3)), rng.normal(size=(2, 3)))], dense, case="softmax, one row of labels"),
    OpRecord("sparse_cross_entropy", ops.sparse_cross_entropy, lambda rng: [(rng.normal(size=(3, 2, 3)), LABELS)],
             lambda x, labels: -np.take_along_axis(x, labels[..., None], -1)[..., 0]),
    OpRecord("sparse_cross_entropy", ops.sparse_softmax_cross_entropy,
             lambda rng: [(LABELS, rng.normal(size=(3, 2, 3))), (np.array(1), rng.normal(size=3))], sparse, case="softmax",
             bad=[(lambda: (np.array([0, 5]), np.ones((2, 3))), Invalid,
                   "Received a label value of 5 which is outside the valid range of [0, 3)."),
                  (lambda: (np.array([-1, 0]), np.ones((2, 3))), Invalid, "Received a label value of -1 which"),
                  (lambda: (np.array([0.0, 1.0]), np.ones((2, 3))), Invalid,
                   "'Tlabels' of double is not in the list of allowed values: int32, int64"),
                  (lambda: (np.array([0, 1, 2]), np.ones((2, 3))), ValueError,
                   "`labels.shape` must equal `logits.shape` except"),
                  (lambda: (np.array([[0, 1]]), np.ones((2, 3))), ValueError,
                   "`labels.shape.rank` must equal `logits.shape.rank - 1`"),
                  (lambda: (np.array(0), np.array(1.0)), ValueError, "`logits` cannot be a scalar"),
                  (lambda: (np.array([0]), np.ones((1, 0))), Invalid, "Must have at least one class")]),
    OpRecord("sigmoid_cross_entropy", ops.sigmoid_cross_entropy,
             lambda rng: [(rng.normal(size=s) * 3, rng.uniform(size=s)) for s in [(2, 3), ()]], sigmoid_loss,
             bad=[(lambda: (np.array([1]), np.array([1])), Invalid, NOT_ALLOWED)]),
    OpRecord("weighted_cross_entropy", ops.weighted_cross_entropy,
             lambda rng: [(rng.normal(size=(2, 3)), rng.uniform(size=(2, 3)), np.array(2.5)),
                          (rng.normal(size=(2, 3)), rng.uniform(size=(2, 3)), rng.uniform(1, 3, 3))], weighted_loss),
    OpRecord("log_poisson_loss", functools.partial(ops.log_poisson_loss, full=True),
             lambda rng: [(np.array([0.4, 1.5, 2.5, 0.2]), rng.normal(size=4))],
             lambda z, c: np.exp(c) - c * z + np.where(z > 1, z * np.log(z) - z + 0.5 * np.log(2 * np.pi * z), 0)),
    OpRecord("l2_loss", ops.l2_loss, lambda rng: [(rng.normal(size=s),) for s in [(2, 3), (), (4,)]],
             lambda x: np.sum(x * x) / 2, bad=refuses([1], [True], [1j])),
]  # fmt: skip

# Dropout and embeddings

KEEP = np.array([[True, False, True]])
DROPOUT = [
    OpRecord("masked_scale", functools.partial(ops.masked_scale, keep=KEEP, scale=1.25), vectors((2, 3)),
             lambda x: np.where(KEEP, x * 1.25, 0)),
    OpRecord("embedding_lookup", functools.partial(ops.embedding_lookup, ids=np.array([[1, 0], [1, 1]])), vectors((3, 2)),
             lambda x: x[np.array([[1, 0], [1, 1]])], empties=list),
    OpRecord("embedding_lookup", functools.partial(ops.embedding_lookup, ids=np.array([1, 0, 1]), max_norm=1.0),
             lambda rng: [(np.array([[0.3, 0.2], [3.0, 4.0]]),)],
             lambda x: np.stack([x[1] / np.linalg.norm(x[1]), x[0]])[[0, 1, 0]],
             case="max_norm", empties=list),
]  # fmt: skip

RECORDS = [*ACTIVATIONS, *SOFTMAX, *ENTROPIES, *DROPOUT]
