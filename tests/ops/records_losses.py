"""Records of gradtape/ops/losses.py, in its order."""

import functools
import itertools

import numpy as np
import scipy.special

from gradtape import errors
from gradtape.ops import losses as ops
from gradtape.testing import OpRecord

Invalid = errors.InvalidArgumentError
LABELS = np.array([[1], [2]])
SAMPLED = (np.array([1, 3]), np.array([[0.5], [0.25]]), np.array([0.4, 0.3]))


def sampled(function, remove):
    return lambda w, b, x: function(w, b, LABELS, x, 2, 5, 1, SAMPLED, remove, None)


def logits(w, b, x, remove):
    classes, true_count, other_count = SAMPLED
    true = np.sum(w[LABELS[:, 0]] * x, axis=1, keepdims=True) + b[LABELS] - np.log(true_count)
    others = x @ w[classes].T + b[classes]
    if remove:
        others = np.where(classes == LABELS, np.finfo(np.float32).min, others)
    return np.concatenate([true, others - np.log(other_count)], axis=1)


def contrast(w, b, x):
    found = logits(w, b, x, False)
    return -scipy.special.log_expit(found[:, 0]) - scipy.special.log_expit(-found[:, 1:]).sum(axis=1)


def weights(rng):
    return [(rng.normal(size=(5, 3)), rng.normal(size=5), rng.normal(size=(2, 3)))]


def alignments(labels, frames, classes, blank):
    """Every path of classes that becomes the labels once repetitions and blanks are dropped."""
    for path in itertools.product(range(classes), repeat=frames):
        if [c for c, _ in itertools.groupby(path) if c != blank] == list(labels):
            yield path


def all_alignments(scores, labels, lengths, frames, blank=0):
    scores = scipy.special.log_softmax(scores, axis=-1)
    found = []
    for i, (row, length, count) in enumerate(zip(labels, lengths, frames)):
        paths = alignments(row[:length], count, scores.shape[2], blank)
        found.append(-scipy.special.logsumexp([sum(scores[t, i, c] for t, c in enumerate(path)) for path in paths]))
    return np.array(found)


SEQUENCES = {"labels": [[1, 1], [2, 0]], "lengths": [2, 1], "frames": [4, 3]}


def ctc(scores, **options):
    return ops.ctc_loss(SEQUENCES["labels"], scores, SEQUENCES["lengths"], SEQUENCES["frames"], **options)


def refused(labels, lengths, frames, shape, text):
    def call():
        return np.zeros(shape), labels, lengths, frames

    return call, Invalid, text


RECORDS = [
    OpRecord("nce_loss", sampled(ops.nce_loss, False), weights, contrast, empties=list),
    OpRecord("sampled_softmax_loss", sampled(ops.sampled_softmax_loss, True), weights,
             lambda w, b, x: -scipy.special.log_softmax(logits(w, b, x, True), axis=1)[:, 0],
             dtypes=("float64", "float32"), empties=list),
    OpRecord("ctc_loss", ctc, lambda rng: [(rng.normal(size=(4, 2, 3)),)],
             functools.partial(all_alignments, **SEQUENCES), half_tolerance=4, empties=list),
    OpRecord("ctc_loss", functools.partial(ctc, blank=-3, time_major=False), lambda rng: [(rng.normal(size=(2, 4, 3)),)],
             lambda x: all_alignments(x.transpose(1, 0, 2), **SEQUENCES), half_tolerance=4, case="batch first", empties=list),
    OpRecord("ctc_loss", lambda x, *args: ops.ctc_loss(args[0], x, *args[1:]) if args else ctc(x),
             lambda rng: [(rng.normal(size=(4, 2, 3)),)], half_tolerance=4, case="bad input", empties=list,
             bad=[refused([[1, 9]], [2], [3], (3, 1, 4), "Received a label value of 9 which is outside the valid range"),
                  refused([[1, 2]], [2], [3], (3, 2, 4), "must have one row per example"),
                  refused([[1, 2]], [2], [3], (3, 4), "logits must be 3-dimensional: [3,4]"),
                  refused([[1, 2]], [2], [4], (3, 1, 4), "must not be longer than the sequences")]),
]  # fmt: skip
