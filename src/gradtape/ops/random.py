"""Random numbers: streams that `set_seed` makes reproducible, and the distributions over any source of them.

The same seed and the same sequence of calls give the same numbers in every process, and the numbers that TensorFlow's eager
mode gives on a CPU, normal values up to rounding; binomial samples and candidate samplers have numbers of their own.

Location and scale are ordinary arithmetic on samples (``mean + stddev · z``), so gradients flow to ``mean``, ``stddev``,
``minval`` and ``maxval``; those of gamma samples flow to ``alpha`` by implicit reparameterisation.
"""

from __future__ import annotations

import math
import operator
import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.context import thread
from gradtape.core.custom import record_custom
from gradtape.core.variable import Variable
from gradtape.errors import InvalidArgumentError, dims, message
from gradtape.ops import elementwise, indexing, philox, reduce, rejection
from gradtape.ops.cutting import cutting
from gradtape.ops.execution import staging
from gradtape.ops.reparameterized import gamma_sample
from gradtape.values import dtypes
from gradtape.values.batched import Batched, NotVectorizable
from gradtape.values.convert import convert_to_tensor
from gradtape.values.placement import placed
from gradtape.values.shape import TensorShape, as_tuple
from gradtape.values.tensor import BatchedTensor, Tensor, wrap

Sample = Callable[[int, int], Any]
Source = Callable[[Sample, int], Any]
"""Where numbers come from: ``source(sample, blocks)`` runs ``sample(key, counter)`` and moves on by that many blocks."""

FLOATING = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
SAMPLED = (*FLOATING, dtypes.int32, dtypes.int64)
_WHOLE = (dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64)
_DEFAULT_SEED = 87654321  # stands in for the global seed when only an op has one


class _Streams:
    """The process's streams.

    | global seed | op seed | stream |
    |---|---|---|
    | none | none | an unpredictable one that all such calls share |
    | set | none | a new one per call: the n-th call since `set_seed` always gives the same |
    | none | set | the op's own, under a default global seed |
    | set | set | the op's own, from both seeds |
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.reset(None)

    def reset(self, seed: int | None) -> None:
        with self.lock:
            self.seed = seed
            self.op_seeds: Any = None if seed is None else _seed_sequence(seed)
            self.open: dict[Any, tuple[int, int]] = {}

    def source(self, kind: str, dtype: dtypes.DType, seed: Any) -> Source:
        name = None if seed is None else (kind, dtype.name, index(seed, "seed"))

        def draw(sample: Sample, blocks: int) -> Any:
            with self.lock:
                key, counter = self._next(name)
                if name is not None or self.seed is None:
                    self.open[name] = key, counter + blocks
            return sample(key, counter)

        return per_element(draw)

    def _next(self, name: tuple | None) -> tuple[int, int]:
        if name in self.open:
            return self.open[name]
        if name is None and self.seed is None:
            return entropy(), entropy() << 64
        op_seed = self.op_seeds.randint(0, philox.LIMIT) if name is None else name[-1]
        seeds = [n % philox.LIMIT for n in (_DEFAULT_SEED if self.seed is None else self.seed, op_seed)]
        return seeds[0], (seeds[1] if any(seeds) else philox.LIMIT) << 64


def _seed_sequence(seed: int) -> Any:
    """Where calls without a seed of their own get one; Python's generator, as in TensorFlow."""
    from random import Random

    return Random(seed)


def entropy() -> int:
    """64 unpredictable bits."""
    return int.from_bytes(os.urandom(8), "little")


_streams = _Streams()


def set_seed(seed: int | None) -> None:
    """Start every stream anew from this seed; None makes them unpredictable again."""
    _streams.reset(None if seed is None else index(seed, "seed"))


def index(value: Any, what: str) -> int:
    try:
        return operator.index(value)
    except TypeError as error:
        text = f"The {what} must be an integer."
        raise TypeError(message(text, received=f"{value!r} of type {type(value).__name__}", fix="int(value)")) from error


# Inside vectorized_map


def per_element(draw: Source) -> Source:
    """A source that obeys its surroundings: in a compiled function it draws at each call, in a batch for each element."""

    def drawn(sample: Sample, blocks: int) -> Any:
        if not thread.batch:
            return _now(lambda: draw(sample, blocks), sample)
        size = math.prod(thread.batch)  # in the order in which a loop would draw
        rows = _now(lambda: np.stack([draw(sample, blocks) for _ in range(size)]), lambda *at: np.stack([sample(*at)] * size))
        value: Any = rows.reshape(*thread.batch, *rows.shape[1:])
        for level in range(1, len(thread.batch) + 1):
            value = Batched(value if level == 1 else wrap(value), level)
        return value

    return drawn


def _now(draw: Callable[[], Any], sample: Sample) -> Any:
    """What is drawn; while a function is compiled, what each of its calls will draw, of which ``sample`` shows the kind."""
    return staging.draw(draw, sample(0, 0)) if staging.inside else draw()


def one_at_a_time(what: str) -> None:
    """Refuse to draw for all elements of a batch at once; `vectorized_map` then loops."""
    if thread.batch:
        raise NotVectorizable(f"{what} is done one element at a time.")


# Arguments


def lengths_of(shape: Any) -> tuple[int, ...]:
    """A shape from a tuple, list, tensor, array or TensorShape; a bare number is refused, as in TensorFlow."""
    if isinstance(shape, TensorShape):
        return as_tuple(shape)
    array = np.asarray(convert_to_tensor(shape)) if not isinstance(shape, np.ndarray) else shape
    if array.ndim != 1:
        raise InvalidArgumentError(
            message(
                f"shape must be a vector of {{int32,int64}}, got shape {dims(array.shape)}",
                fix="write a scalar result as shape [], and one axis as [n]",
            )
        )
    if array.size and array.dtype.kind not in "iu":
        own = dtypes.of(array.dtype)
        raise InvalidArgumentError(
            message(
                f"Value for attr 'T' of {own.word if own else array.dtype} is not in the list of allowed values: int32, int64",
                received=f"shape {shape!r}",
                expected="integers",
            )
        )
    lengths = tuple(int(n) for n in array)
    if any(n < 0 for n in lengths):
        text = f"Dimension {min(lengths)} must be >= 0"
        raise InvalidArgumentError(message(text, received=f"shape {lengths}", expected="lengths of 0 or more"))
    return lengths


def _floating(dtype: Any) -> dtypes.DType:
    dtype = dtypes.as_dtype(dtype)
    if dtype not in FLOATING:
        raise InvalidArgumentError(
            message(
                f"Value for attr 'dtype' of {dtype.word} is not in the list of allowed values: half, bfloat16, float, double",
                expected="a floating dtype",
            )
        )
    return dtype


def _parameter(value: Any, dtype: dtypes.DType, name: str) -> Tensor:
    try:
        return convert_to_tensor(value, dtype)
    except ValueError as error:
        raise ValueError(message(f"{name}: {error}", fix=f"tf.cast({name}, {dtype!r})")) from None


def accepted(dtype: dtypes.DType, accepted: tuple[dtypes.DType, ...]) -> ValueError:
    return ValueError(
        message(
            f"Argument `dtype` got invalid value {dtype}. Accepted dtypes are ({', '.join(map(repr, accepted))}).",
            received=f"dtype={dtype!r}",
            expected=f"one of {', '.join(map(repr, accepted))}",
        )
    )


# Distributions over any source


def _reserved(shape: tuple[int, ...]) -> int:
    return philox.RESERVED * math.prod(shape)


def normal_from(source: Source, sample: Any, shape: Any, mean: Any, stddev: Any, dtype: Any) -> Tensor:
    """``mean + stddev · z`` with z from ``sample``, a function of `philox`."""
    size, kind = lengths_of(shape), dtypes.as_dtype(dtype)
    mean, stddev = _parameter(mean, kind, "mean"), _parameter(stddev, kind, "stddev")
    numpy = _floating(kind).numpy
    z = wrap(source(lambda key, counter: sample(key, counter, size, numpy), _reserved(size)))
    return elementwise.add(elementwise.multiply(z, stddev), mean)


def uniform_from(source: Source, shape: Any, minval: Any, maxval: Any, dtype: dtypes.DType) -> Tensor:
    """Uniform in [minval, maxval), integers too."""
    size = lengths_of(shape)
    if dtype.is_integer:
        return placed(wrap(_integers(source, size, minval, maxval, dtype)))
    numpy = _floating(dtype).numpy
    unit = source(lambda key, counter: philox.uniform(key, counter, size, numpy), _reserved(size))
    if isinstance(minval, (int, float)) and minval == 0 and maxval in (None, 1):
        return placed(wrap(unit))
    low = _parameter(minval, dtype, "min")
    high = _parameter(1 if maxval is None else maxval, dtype, "max")
    out = _between(unit, low, high)
    reached = (out._array >= high._array) & (low._array < high._array)
    if type(out) is not Tensor or reached.any():  # rounding: the interval is open above
        out = _between(elementwise.where(wrap(reached), wrap(np.zeros((), unit.dtype)), wrap(unit))._array, low, high)
    return out


def _between(unit: Any, low: Tensor, high: Tensor) -> Tensor:
    return elementwise.add(elementwise.multiply(wrap(unit), elementwise.subtract(high, low)), low)


def _integers(source: Source, shape: tuple[int, ...], minval: Any, maxval: Any, dtype: dtypes.DType) -> np.ndarray:
    low = convert_to_tensor(minval, dtype)._array
    high = convert_to_tensor(maxval, dtype)._array
    for bound, name in ((low, "minval"), (high, "maxval")):
        if bound.ndim:
            text = f"{name} must be 0-D, got shape {dims(bound.shape)}"
            raise InvalidArgumentError(message(text, received=f"{name} of shape {bound.shape}", expected="one number"))
    if low >= high:
        raise InvalidArgumentError(
            message(f"Need minval < maxval, got {low} >= {high}", expected="integers from minval up to, not including, maxval")
        )
    span = int(high) - int(low)
    unsigned = np.dtype(f"u{dtype.numpy}")

    def sample(key: int, counter: int) -> np.ndarray:
        return (philox.integers(key, counter, shape, unsigned) % unsigned.type(span)).view(dtype.numpy) + low

    return source(sample, _reserved(shape))


def full_range(source: Source, shape: Any, dtype: dtypes.DType) -> Tensor:
    """Every bit pattern of an integer dtype, equally likely."""
    if dtype not in _WHOLE:
        words = ", ".join(kind.name for kind in _WHOLE)
        text = f"Value for attr 'dtype' of {dtype.word} is not in the list of allowed values: {words}"
        raise InvalidArgumentError(
            message(text, received=f"dtype={dtype!r}", expected="an integer type: tf.int32, tf.int64, tf.uint32 or tf.uint64")
        )
    size = lengths_of(shape)
    return placed(wrap(source(lambda key, counter: philox.integers(key, counter, size, dtype.numpy), _reserved(size))))


def categorical_from(source: Source, logits: Any, num_samples: Any, dtype: dtypes.DType) -> Tensor:
    """Class indices (batch, num_samples), drawn with probabilities softmax(logits) per row."""
    if dtype not in (dtypes.int32, dtypes.int64):
        raise accepted(dtype, (dtypes.int32, dtypes.int64))
    scores = convert_to_tensor(logits)
    number = convert_to_tensor(num_samples, dtypes.int32)._array
    if number.ndim:
        text = f"num_samples should be a scalar, got shape {dims(number.shape)}"
        raise InvalidArgumentError(message(text, received=f"num_samples of shape {number.shape}", expected="one number"))
    if number < 0:
        text = f"num_samples should be non-negative, got {number}"
        raise InvalidArgumentError(message(text, received=f"num_samples={number}", expected="0 or more"))
    if type(scores) is BatchedTensor or scores._is_traced():
        return _categorical_of_unknown(source, scores, int(number), dtype)
    running = _running_weights(scores)
    size = len(running), int(number)

    def sample(key: int, counter: int) -> np.ndarray:
        heights = philox.uniform(key, counter, size, np.dtype(np.float64)) * running[:, -1:]
        return _first_above(running, heights).astype(dtype.numpy)

    return placed(wrap(source(sample, _categorical_blocks(*size))))


def _categorical_blocks(rows: int, number: int) -> int:
    return philox.RESERVED * rows * 2 * (-(-number // 4) * 4)


def _categorical_of_unknown(source: Source, scores: Tensor, number: int, dtype: dtypes.DType) -> Tensor:
    """The same of logits that are traced, or differ between elements of a batch: a class is the number of weights below."""
    _check_logits(scores)
    rows = scores._array.shape[0]
    wide = elementwise.stop_gradient(elementwise.cast(scores, dtypes.float64))
    running = reduce.cumsum(elementwise.exp(wide - reduce.max(wide, axis=1, keepdims=True)), axis=1)
    drawn = source(
        lambda key, counter: philox.uniform(key, counter, (rows, number), np.dtype(np.float64)),
        _categorical_blocks(rows, number),
    )
    heights = wrap(drawn) * indexing.getitem(running, index=(slice(None), slice(-1, None)))
    below = indexing.getitem(running, index=(slice(None), None)) <= indexing.getitem(heights, index=(..., None))
    return reduce.sum(elementwise.cast(below, dtype), axis=2)


def _check_logits(logits: Tensor) -> None:
    array = logits._array
    if array.ndim != 2:
        raise InvalidArgumentError(
            message(f"logits should be a matrix, got shape {dims(array.shape)}", fix="add a batch axis: logits[None, :]")
        )
    if not logits.dtype.is_floating:
        text = f"Value for attr 'T' of {logits.dtype.word} is not in the list of allowed values: half, bfloat16, float, double"
        raise InvalidArgumentError(message(text, fix="tf.cast(logits, tf.float32)"))
    if not array.shape[1]:
        text = "num_classes should be positive, got 0"
        raise InvalidArgumentError(
            message(text, received=f"logits of shape {array.shape}", expected="(batch, classes) with at least one class")
        )


def _running_weights(logits: Tensor) -> np.ndarray:
    """Cumulative weights per row. A row without a distribution is an error; TensorFlow would answer an index out of range."""
    _check_logits(logits)
    wide = logits._array.astype(np.float64)
    top = wide.max(axis=1, keepdims=True)
    if not np.isfinite(top).all():
        raise InvalidArgumentError(
            message(
                "logits must be finite or -inf, with at least one finite value per row",
                received=f"a row whose largest logit is {top[~np.isfinite(top)][0]}",
                fix="mask classes with -inf, and leave one in each row",
            )
        )
    return np.exp(wide - top).cumsum(axis=1)


def _first_above(running: np.ndarray, heights: np.ndarray) -> np.ndarray:
    """Per row, the first class whose running weight exceeds each height; loops over the shorter of rows and samples."""
    if not isinstance(heights, np.ndarray):  # known to the running program alone
        return (running[:, None] <= heights[:, :, None]).sum(axis=2)
    if len(running) <= heights.shape[1]:
        rows = [np.searchsorted(weights, row, side="right") for weights, row in zip(running, heights)]
        return np.array(rows, np.int64).reshape(heights.shape)
    columns = [(running <= column[:, None]).sum(axis=1) for column in heights.T]
    return np.array(columns, np.int64).reshape(heights.T.shape).T


# Gamma, Poisson, binomial


def _refused(label: str, sample: np.ndarray, parameter: Tensor) -> Tensor:
    """Samples drawn with a parameter, recorded so that a gradient with respect to it is refused, never a silent None."""

    def refuse(*_: Tensor) -> Any:
        raise LookupError(
            message(
                f"gradient registry has no entry for: {label}",
                received="a path from the target to a source through the parameter of random samples",
                fix="tf.stop_gradient(parameter), or a distribution that is arithmetic on its samples, such as normal",
            )
        )

    return record_custom(label, refuse, placed(wrap(sample)), [parameter], [])


def _per_parameter(sample: Any, source: Source, leading: tuple[int, ...], parameter: Any, name: str) -> Any:
    """``leading`` samples for each element of a parameter array, all samples of one element in a row of the stream."""
    number, wide = math.prod(leading), parameter.astype(np.float64).reshape(-1)

    def draw(key: int, counter: int, each: np.ndarray) -> np.ndarray:
        _positive(each, name)
        return sample(key, counter, np.repeat(each, number))

    drawn = source(_by_python(draw, wide), _reserved((number, wide.size)))
    return drawn.reshape(wide.size, number).T.reshape((*leading, *parameter.shape))


def _positive(array: np.ndarray, name: str) -> None:
    if not (array >= 0).all():
        raise InvalidArgumentError(
            message(f"{name} must not be negative", received=f"{array.min()}", expected=f"{name} >= 0 everywhere")
        )


def gamma_from(source: Source, shape: Any, alpha: Any, beta: Any, dtype: Any) -> Tensor:
    """``shape`` samples of each Gamma(alpha, rate beta)."""
    one_at_a_time("Drawing gamma samples")
    leading, kind = lengths_of(shape), dtypes.as_dtype(dtype)
    concentration = _parameter(alpha, kind, "alpha")
    rate = _parameter(1.0 if beta is None else beta, kind, "beta")
    _floating(kind)
    size, array = np.broadcast_shapes(concentration._array.shape, rate._array.shape), concentration._array
    full = philox.namespace(array).broadcast_to(array, shape=size)
    drawn = _per_parameter(rejection.gamma, source, leading, full, "alpha").astype(kind.numpy)
    samples = elementwise.divide(gamma_sample(concentration, wrap(drawn)), rate)
    return elementwise.maximum(samples, wrap(np.asarray(kind._limits.tiny, kind.numpy)))  # 0 has density 0, and no logarithm


def poisson_from(source: Source, shape: Any, lam: Any, dtype: Any) -> tuple[np.ndarray, Tensor]:
    """``shape`` samples of each Poisson(lam), and lam as a tensor."""
    one_at_a_time("Drawing Poisson samples")
    leading, kind = lengths_of(shape), dtypes.as_dtype(dtype)
    if kind not in SAMPLED:
        raise accepted(kind, SAMPLED)
    rate = lam if isinstance(lam, (Tensor, Variable)) else convert_to_tensor(lam, kind if kind.is_floating else dtypes.float32)
    rate = convert_to_tensor(rate)
    return _per_parameter(rejection.poisson, source, leading, rate._array, "lam").astype(kind.numpy), rate


def binomial_from(source: Source, shape: Any, counts: Any, probs: Any, dtype: Any) -> Tensor:
    """Numbers of successes in ``counts`` trials of probability ``probs``."""
    one_at_a_time("Drawing binomial samples")
    size, kind = lengths_of(shape), dtypes.as_dtype(dtype)
    trials = np.asarray(convert_to_tensor(counts))
    chance = np.asarray(convert_to_tensor(probs)).astype(np.float64)
    _positive(trials, "counts")
    if not ((chance >= 0) & (chance <= 1)).all():
        text = "probs must lie in [0, 1]"
        raise InvalidArgumentError(
            message(text, received=f"{chance.min()} to {chance.max()}", expected="probabilities, from 0 to 1")
        )

    def sample(key: int, counter: int) -> np.ndarray:
        drawn = philox.numpy_generator(key, counter).binomial(trials.astype(np.int64), chance, size)
        return np.asarray(drawn).astype(kind.numpy)

    return placed(wrap(source(_by_python(sample), _reserved(size))))


def shuffled_from(source: Source, value: Any) -> Tensor:
    """The slices along the first axis in random order."""
    tensor = convert_to_tensor(value)
    array = tensor._array
    if not array.ndim:
        return wrap(array)
    length = array.shape[0]
    permuted = _by_python(lambda key, counter: np.asarray(philox.permutation(key, counter, length), np.int64))
    order = source(permuted, -(-(length - 1) // 4))
    if thread.batch or staging.inside:  # another order for each element, or at each call
        return elementwise.stop_gradient(indexing.take(tensor, wrap(order), axis=0, batch_dims=0))
    return placed(wrap(array[order]))


# Functions with the process's streams


def normal(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, seed: Any = None) -> Tensor:
    """mean + stddev · z with z standard normal.

    >>> set_seed(1)
    >>> normal([2, 3]).shape
    TensorShape([2, 3])
    """
    return normal_from(_streams.source("normal", dtypes.as_dtype(dtype), seed), philox.normal, shape, mean, stddev, dtype)


def truncated_normal(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, seed: Any = None) -> Tensor:
    """Normal values, drawn again where they are more than two standard deviations from the mean."""
    source = _streams.source("truncated_normal", dtypes.as_dtype(dtype), seed)
    return normal_from(source, philox.truncated_normal, shape, mean, stddev, dtype)


def uniform(shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dtypes.float32, seed: Any = None) -> Tensor:
    """Uniform in [minval, maxval); integers need a maxval."""
    kind = dtypes.as_dtype(dtype)
    if kind not in SAMPLED:
        raise accepted(kind, SAMPLED)
    if maxval is None and kind.is_integer:
        text = f"Must specify maxval for integer dtype {kind!r}"
        raise ValueError(message(text, received="maxval=None", fix="maxval=10 draws from minval to 9"))
    return uniform_from(_streams.source("uniform", kind, seed), shape, minval, maxval, kind)


@cutting
def categorical(logits: Any, num_samples: Any, dtype: Any = None, seed: Any = None) -> Tensor:
    """Class indices (batch, num_samples), drawn with probabilities softmax(logits) per row."""
    kind = dtypes.int64 if dtype is None else dtypes.as_dtype(dtype)
    return categorical_from(_streams.source("categorical", kind, seed), logits, num_samples, kind)


@cutting
def shuffle(value: Any, seed: Any = None) -> Tensor:
    """The slices along the first axis in random order; no gradient flows, as in TensorFlow."""
    return shuffled_from(_streams.source("shuffle", dtypes.int64, seed), value)


def gamma(shape: Any, alpha: Any, beta: Any = None, dtype: Any = dtypes.float32, seed: Any = None) -> Tensor:
    """``shape`` samples of each Gamma(alpha, rate beta); differentiable in alpha and beta."""
    return gamma_from(_streams.source("gamma", dtypes.as_dtype(dtype), seed), shape, alpha, beta, dtype)


def poisson(shape: Any, lam: Any, dtype: Any = dtypes.float32, seed: Any = None) -> Tensor:
    """``shape`` samples of each Poisson(lam)."""
    source = _streams.source("poisson", dtypes.as_dtype(dtype), seed)
    return _refused("RandomPoissonV2", *poisson_from(source, shape, lam, dtype))


def keep_mask(
    shape: tuple[int, ...], rate: Any, seed: Any = None, *, stateless: bool = False, dtype: dtypes.DType = dtypes.float32
) -> np.ndarray:
    """True with probability 1 - rate, for dropout of values of this dtype."""
    source = stateless_source(seed) if stateless else _streams.source("uniform", dtype, seed)
    return source(lambda key, counter: philox.uniform(key, counter, shape, dtype.numpy), _reserved(shape)) >= rate


def numpy_source(kind: str, seed: Any) -> Callable[[Callable[[Any], Any]], Any]:
    """A stream of the process as NumPy generators: ``source(sample)`` runs ``sample(generator)``."""
    source = _streams.source(kind, dtypes.int64, seed)
    return lambda sample: source(lambda key, counter: sample(philox.numpy_generator(key, counter)), 2**32)


# Stateless seeds: the same seed gives the same numbers, always


def stateless_source(seed: Any) -> Source:
    """The stream of a seed of two integers, which may be known to the running program alone."""
    tensor = convert_to_tensor(seed)
    stream: Any
    if tensor._is_traced():
        stream = philox.Traced(_pair(tensor._array)), 0
    else:
        stream = philox.scrambled(*map(int, seed_pair(tensor)))
    return lambda sample, blocks: sample(*stream)


def _by_python(sample: Callable, *parameters: Any) -> Sample:
    """``sample(key, counter, *parameters)``, which needs the numbers: where it is not known yet, a program asks Python."""

    def draw(key: Any, counter: int) -> Any:
        traced = isinstance(key, philox.Traced)
        if not traced and all(isinstance(p, np.ndarray) for p in parameters):
            return sample(key, counter, *parameters)
        seed = key.seed if traced else np.zeros(2, np.uint32)
        stream = lambda words: philox.scrambled(*map(int, words)) if traced else (key, counter)
        example = sample(0, 0, *(np.ones(p.shape, p.dtype) for p in parameters))
        return staging.ask(lambda words, *known: sample(*stream(words), *known), example, [seed, *parameters])

    return draw


def seed_pair(seed: Any) -> np.ndarray:
    """A seed of two integers as an array."""
    return _pair(np.asarray(convert_to_tensor(seed)))


def _pair(array: Any) -> Any:
    if array.dtype.kind not in "iu":
        word = dtypes.of(array.dtype).word  # type: ignore[union-attr]
        text = f"Value for attr 'Tseed' of {word} is not in the list of allowed values: int32, int64"
        raise InvalidArgumentError(message(text, fix="seed=[1, 2], two integers"))
    if array.shape != (2,):
        raise InvalidArgumentError(message(f"seed must have shape [2], not {dims(array.shape)}", fix="seed=[7, 11]"))
    return array
