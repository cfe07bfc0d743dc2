"""Candidate samplers: a few classes out of many, with how often each was to be expected, for sampled losses."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradtape.core.context import thread
from gradtape.errors import InvalidArgumentError, dims, message
from gradtape.ops import random
from gradtape.ops.arguments import integer
from gradtape.values import dtypes
from gradtape.values.batched import Batched
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import BatchedTensor, Tensor, wrap


class Candidates(NamedTuple):
    """What a sampler answers."""

    sampled_candidates: Tensor
    true_expected_count: Tensor
    sampled_expected_count: Tensor


def sample(
    kind: str, true_classes: Any, num_true: Any, num_sampled: Any, unique: bool, probabilities: np.ndarray, seed: Any = None
) -> Candidates:
    """``num_sampled`` classes by their probabilities; ``unique``: drawn again while they were drawn before.

    Expected counts are p · num_sampled, or the chance 1 - (1 - p)^tries to be among the unique ones.
    """
    if thread.batch:
        return _each(kind, true_classes, num_true, num_sampled, unique, probabilities, seed)
    true, number = _true(true_classes, num_true), integer(num_sampled)
    possible = np.count_nonzero(probabilities)
    if number < 1 or (unique and number > possible):
        raise InvalidArgumentError(
            message(
                "Sampler's range is too small.",
                received=f"num_sampled {number}",
                expected=f"1 to {possible} unique candidates" if unique else "num_sampled >= 1",
            )
        )
    if true.size and not (true.min() >= 0 and true.max() < len(probabilities)):
        raise InvalidArgumentError(
            message("true_classes out of range", received=f"{true}", expected=f"classes from 0 to {len(probabilities) - 1}")
        )
    running = np.cumsum(probabilities)
    drawn, tries = random.numpy_source(kind, seed)(lambda generator: _draw(generator, running, number, unique))
    expected = -np.expm1(tries * np.log1p(-np.minimum(probabilities, 1 - 1e-12))) if unique else probabilities * number
    counts = expected.astype(np.float32)
    return Candidates(wrap(drawn), wrap(counts[true]), wrap(counts[drawn]))


def _each(kind: str, true_classes: Any, *rest: Any) -> Candidates:
    """Inside a batch: candidates for each of its elements, in the order in which a loop would draw."""
    true = convert_to_tensor(true_classes, dtype_hint=dtypes.int64)
    sizes = thread.batch
    inside = true._array.value if type(true) is BatchedTensor else None
    if len(sizes) > 1 or isinstance(inside, Tensor):
        random.one_at_a_time("Sampling candidates")
    rows = [true if inside is None else wrap(row) for row in (inside if inside is not None else range(sizes[0]))]
    thread.batch = ()
    try:
        found = [sample(kind, row, *rest) for row in rows]
    finally:
        thread.batch = sizes
    return Candidates(*(wrap(Batched(np.stack([t._array for t in column]))) for column in zip(*found)))


def _draw(generator: Any, running: np.ndarray, number: int, unique: bool) -> tuple[np.ndarray, int]:
    """Classes, and how many draws it took."""
    def more(count: int) -> np.ndarray:
        return np.searchsorted(running, generator.random(count) * running[-1], side="right").astype(np.int64)

    drawn = more(number)
    if not unique:
        return drawn, number
    while True:
        classes, first = np.unique(drawn, return_index=True)
        if len(classes) >= number:
            places = np.sort(first)[:number]
            return drawn[places], int(places[-1]) + 1
        drawn = np.concatenate([drawn, more(len(drawn))])


def _true(true_classes: Any, num_true: Any) -> np.ndarray:
    classes = np.asarray(convert_to_tensor(true_classes, dtype_hint=dtypes.int64))
    if classes.dtype != np.int64 and isinstance(true_classes, Tensor):
        word = dtypes.of(classes.dtype).word  # type: ignore[union-attr]
        text = f"cannot compute a candidate sampler as input #0 was expected to be a int64 tensor but is a {word} tensor"
        raise InvalidArgumentError(message(text, fix="tf.cast(true_classes, tf.int64)"))
    if classes.ndim != 2:
        text = "true_classes must be a matrix"
        raise InvalidArgumentError(message(text, received=f"shape {dims(classes.shape)}", expected="(batch, num_true)"))
    if classes.shape[1] != integer(num_true):
        raise InvalidArgumentError(
            message("true_classes must have num_true columns, expected: "
                    f"{classes.shape[1]} was: {integer(num_true)}", fix="num_true is the second length of true_classes")
        )  # fmt: skip
    return classes.astype(np.int64)


def log_uniform(range_max: int) -> np.ndarray:
    """(log(k + 2) - log(k + 1)) / log(range_max + 1): Zipf's law for classes in order of falling frequency."""
    classes = np.arange(range_max)
    return np.log1p(1 / (classes + 1)) / np.log1p(range_max)


def uniform(range_max: int) -> np.ndarray:
    """Every class alike."""
    return np.full(range_max, 1 / range_max)


def unigrams(
    weights: Any, range_max: int, distortion: float = 1.0, num_reserved_ids: int = 0, num_shards: int = 1, shard: int = 0
) -> np.ndarray:
    """Weights to the power ``distortion``, normalised; reserved ids come first and are never drawn, nor are other shards'."""
    weights = np.concatenate([np.zeros(num_reserved_ids), np.asarray(weights, np.float64) ** distortion])
    if len(weights) != range_max:
        text = f"range_max is {range_max}, but there are {len(weights)} weights, reserved ids included"
        raise InvalidArgumentError(
            message(text, received=f"{len(weights)} weights for range_max={range_max}", expected=f"{range_max} weights")
        )
    weights[np.arange(range_max) % num_shards != shard] = 0
    return weights / weights.sum()


def read_weights(vocab_file: str) -> list[float]:
    """The last of the comma-separated fields of each line."""
    with open(vocab_file, "rb") as lines:
        fields = [line.rsplit(b",", 1)[-1].strip() for line in lines if line.strip()]
    try:
        return [float(field) for field in fields]
    except ValueError as error:
        text = f"{vocab_file}: {error}"
        raise InvalidArgumentError(message(text, expected="lines that end with a comma and a weight")) from None


def every(true_classes: Any, num_true: Any, num_sampled: Any) -> Candidates:
    """All classes, each expected once."""
    true, number = _true(true_classes, num_true), integer(num_sampled)
    once = [wrap(np.ones(shape, np.float32)) for shape in (true.shape, (number,))]
    return Candidates(wrap(np.arange(number)), *once)


_learned: dict[tuple[int, Any], np.ndarray] = {}


def learned(true_classes: Any, range_max: int, seed: Any) -> np.ndarray:
    """One plus how often each class has been true so far, normalised: a distribution per range and seed.

    The classes of this call are counted after it, as in TensorFlow.
    """
    counts = _learned.setdefault((range_max, seed), np.ones(range_max))
    probabilities = counts / counts.sum()
    classes = np.asarray(convert_to_tensor(true_classes, dtype_hint=dtypes.int64)).reshape(-1)
    np.add.at(counts, classes[(classes >= 0) & (classes < range_max)], 1)
    return probabilities
