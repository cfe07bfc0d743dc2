"""Random numbers: streams that `set_seed` makes reproducible, stateless draws, and the explicit `Generator`.

Everything is drawn from NumPy's Philox bit generator. The same seed and the same sequence of calls give the same numbers
in every process; they are not TensorFlow's numbers for that seed, because those follow from its kernels' internals.

Samples are constants to a tape. Location and scale are ordinary arithmetic on them (``mean + stddev · z``), so gradients
flow to ``mean``, ``stddev``, ``minval`` and ``maxval``.
"""

from __future__ import annotations

import operator
import threading
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.custom import record_custom
from gradtape.core.variable import Variable
from gradtape.errors import InvalidArgumentError, dims, message
from gradtape.ops import elementwise
from gradtape.ops import shape as shapes
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.shape import TensorShape, as_tuple
from gradtape.values.tensor import Tensor, wrap

Sample = Callable[[Any], np.ndarray]
Source = Callable[[Sample], np.ndarray]
"""Where numbers come from: it runs ``sample(numpy_generator)`` on the right generator, and moves on."""

_FLOATING = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
_SAMPLED = (*_FLOATING, dtypes.int32, dtypes.int64)
_WORD = 2**64
_DEFAULT_SEED = 87654321  # stands in for the global seed when only an op has one
_GLOBAL, _OPERATION, _STATELESS, _GENERATOR = range(4)  # the first seed word: the four families never share a stream


def _philox(*words: int) -> Any:
    """A NumPy generator whose stream is a hash of the words, each taken as 64 bits."""
    from numpy.random import Generator, Philox, SeedSequence  # loaded at the first draw

    # As uint32, so that no two tuples of words run together into the same entropy.
    entropy = np.array([word % _WORD for word in words], np.uint64).view(np.uint32)
    return Generator(Philox(SeedSequence(entropy)))


class _Streams:
    """The process's streams: one shared by all calls without a seed of their own, and one per op and op seed.

    | global seed | op seed | stream |
    |---|---|---|
    | none | none | unpredictable |
    | set | none | the shared one: the n-th call since `set_seed` always gives the same |
    | none | set | the op's own, under a default global seed |
    | set | set | the op's own, from both seeds |
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.reset(None)

    def reset(self, seed: int | None) -> None:
        with self.lock:
            self.seed = seed
            self.open: dict[Any, Any] = {}

    def source(self, kind: str, dtype: dtypes.DType, seed: Any) -> Source:
        key = None if seed is None else (kind, dtype.name, _index(seed, "seed"))

        def draw(sample: Sample) -> np.ndarray:
            with self.lock:
                stream = self.open.get(key)
                if stream is None:
                    stream = self.open[key] = self._start(key)
                return sample(stream)

        return draw

    def _start(self, key: tuple | None) -> Any:
        if key is None:
            return _entropy() if self.seed is None else _philox(_GLOBAL, self.seed)
        kind, dtype, seed = key
        seeds = (_DEFAULT_SEED if self.seed is None else self.seed, seed)
        return _philox(_OPERATION, *seeds, zlib.crc32(f"{kind}/{dtype}".encode()))


def _entropy() -> Any:
    from numpy.random import Generator, Philox

    return Generator(Philox())


_streams = _Streams()


def set_seed(seed: int | None) -> None:
    """Start every stream anew from this seed; None makes them unpredictable again."""
    _streams.reset(None if seed is None else _index(seed, "seed"))


def _index(value: Any, what: str) -> int:
    try:
        return operator.index(value)
    except TypeError as error:
        raise TypeError(
            message(f"The {what} must be an integer.", received=f"{value!r} of type {type(value).__name__}")
        ) from error


# Arguments


def _shape(shape: Any) -> tuple[int, ...]:
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
        raise InvalidArgumentError(message(f"Dimension {min(lengths)} must be >= 0", received=f"shape {lengths}"))
    return lengths


def _floating(dtype: Any) -> dtypes.DType:
    dtype = dtypes.as_dtype(dtype)
    if dtype not in _FLOATING:
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
        raise ValueError(f"{name}: {error}") from None


def _accepted(dtype: dtypes.DType, accepted: tuple[dtypes.DType, ...]) -> ValueError:
    return ValueError(
        f"Argument `dtype` got invalid value {dtype}. Accepted dtypes are ({', '.join(map(repr, accepted))})."
    )


# Samples of the standard distributions, as raw arrays


def _unit(generator: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Uniform in [0, 1), a multiple of the distance between the largest numbers below 1."""
    if dtype.itemsize > 2:
        return np.asarray(generator.random(shape, dtype))
    digits = 11 if dtype == np.float16 else 8  # rounding a float32 to a half type could give 1
    return (np.asarray(generator.integers(0, 2**digits, shape)) * 2.0**-digits).astype(dtype)


def _bell(generator: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    wide = dtype if dtype.itemsize > 2 else np.dtype(np.float32)
    return np.asarray(generator.standard_normal(shape, wide)).astype(dtype, copy=False)


def _cut_bell(generator: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Standard normal, drawn again where it is more than 2 away from 0 (4.6 % of the draws)."""
    wide = dtype if dtype.itemsize > 2 else np.dtype(np.float32)
    out = np.asarray(generator.standard_normal(shape, wide)).reshape(-1)
    outside = np.flatnonzero(np.abs(out) > 2)
    while outside.size:
        again = generator.standard_normal(outside.size, wide)
        out[outside] = again
        outside = outside[np.abs(again) > 2]
    return out.reshape(shape).astype(dtype, copy=False)


def _whole(generator: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Every bit pattern of an integer dtype, equally likely."""
    limits = np.iinfo(dtype)
    return np.asarray(generator.integers(limits.min, limits.max, shape, dtype, endpoint=True))


# Distributions over any source


def _normal(source: Source, sample: Any, shape: Any, mean: Any, stddev: Any, dtype: Any) -> Tensor:
    shape, dtype = _shape(shape), dtypes.as_dtype(dtype)
    mean, stddev = _parameter(mean, dtype, "mean"), _parameter(stddev, dtype, "stddev")
    z = wrap(source(lambda generator: sample(generator, shape, _floating(dtype).numpy)))
    return elementwise.add(elementwise.multiply(z, stddev), mean)


def _uniform(source: Source, shape: Any, minval: Any, maxval: Any, dtype: dtypes.DType) -> Tensor:
    shape = _shape(shape)
    if dtype.is_integer:
        return wrap(_integers(source, shape, minval, maxval, dtype))
    unit = source(lambda generator: _unit(generator, shape, _floating(dtype).numpy))
    if isinstance(minval, (int, float)) and minval == 0 and maxval in (None, 1):
        return wrap(unit)
    low = _parameter(minval, dtype, "min")
    high = _parameter(1 if maxval is None else maxval, dtype, "max")
    out = _between(unit, low, high)
    reached = (out._array >= high._array) & (low._array < high._array)
    if reached.any():  # rounding: the interval is open above
        out = _between(np.where(reached, np.zeros((), unit.dtype), unit), low, high)
    return out


def _between(unit: np.ndarray, low: Tensor, high: Tensor) -> Tensor:
    return elementwise.add(elementwise.multiply(wrap(unit), elementwise.subtract(high, low)), low)


def _integers(source: Source, shape: tuple[int, ...], minval: Any, maxval: Any, dtype: dtypes.DType) -> np.ndarray:
    low = convert_to_tensor(minval, dtype)._array
    high = convert_to_tensor(maxval, dtype)._array
    for bound, name in ((low, "minval"), (high, "maxval")):
        if bound.ndim:
            raise InvalidArgumentError(f"{name} must be 0-D, got shape {dims(bound.shape)}")
    if low >= high:
        raise InvalidArgumentError(
            message(f"Need minval < maxval, got {low} >= {high}", expected="integers from minval up to, not including, maxval")
        )
    return source(lambda generator: np.asarray(generator.integers(low, high, shape, dtype.numpy)))


def _full_range(source: Source, shape: Any, dtype: dtypes.DType) -> Tensor:
    lengths = _shape(shape)
    return wrap(source(lambda generator: _whole(generator, lengths, dtype.numpy)))


def _categorical(source: Source, logits: Any, num_samples: Any, dtype: Any) -> Tensor:
    kind = dtypes.int64 if dtype is None else dtypes.as_dtype(dtype)
    if kind not in (dtypes.int32, dtypes.int64):
        raise _accepted(kind, (dtypes.int32, dtypes.int64))
    scores = convert_to_tensor(logits)
    number = convert_to_tensor(num_samples, dtypes.int32)._array
    if number.ndim:
        raise InvalidArgumentError(f"num_samples should be a scalar, got shape {dims(number.shape)}")
    if number < 0:
        raise InvalidArgumentError(f"num_samples should be non-negative, got {number}")
    running = _running_weights(scores)

    def sample(generator: Any) -> np.ndarray:
        heights = generator.random((len(running), int(number))) * running[:, -1:]
        return _first_above(running, heights).astype(kind.numpy)

    return wrap(source(sample))


def _running_weights(logits: Tensor) -> np.ndarray:
    """Cumulative weights per row. A row without a distribution is an error; TensorFlow would answer an index out of range."""
    array = logits._array
    if array.ndim != 2:
        raise InvalidArgumentError(
            message(f"logits should be a matrix, got shape {dims(array.shape)}", fix="add a batch axis: logits[None, :]")
        )
    if not logits.dtype.is_floating:
        raise InvalidArgumentError(
            f"Value for attr 'T' of {logits.dtype.word} is not in the list of allowed values: half, bfloat16, float, double"
        )
    if not array.shape[1]:
        raise InvalidArgumentError("num_classes should be positive, got 0")
    wide = array.astype(np.float64)
    top = wide.max(axis=1, keepdims=True)
    if not np.isfinite(top).all():
        raise InvalidArgumentError(
            message(
                "logits must be finite or -inf, with at least one finite value per row",
                received=f"a row whose largest logit is {top[~np.isfinite(top)][0]}",
            )
        )
    return np.exp(wide - top).cumsum(axis=1)


def _first_above(running: np.ndarray, heights: np.ndarray) -> np.ndarray:
    """Per row, the first class whose running weight exceeds each height; loops over the shorter of rows and samples."""
    if len(running) <= heights.shape[1]:
        rows = [np.searchsorted(weights, row, side="right") for weights, row in zip(running, heights)]
        return np.array(rows, np.int64).reshape(heights.shape)
    columns = [(running <= column[:, None]).sum(axis=1) for column in heights.T]
    return np.array(columns, np.int64).reshape(heights.T.shape).T


# Gamma and Poisson: samples are not differentiable in their parameters yet. Asking is an error, never a silent None.


def _drawn(label: str, sample: np.ndarray, parameter: Tensor) -> Tensor:
    """Samples drawn with a parameter, recorded so that a gradient with respect to it is refused."""

    def refuse(*_: Tensor) -> Any:
        raise LookupError(
            message(
                f"gradient registry has no entry for: {label}",
                received="a path from the target to a source through the parameter of random samples",
                fix="tf.stop_gradient(parameter), or a distribution that is arithmetic on its samples, such as normal",
            )
        )

    return record_custom(label, refuse, wrap(sample), [parameter], [])


def _positive(array: np.ndarray, name: str) -> None:
    if not (array >= 0).all():
        raise InvalidArgumentError(
            message(f"{name} must not be negative", received=f"{array.min()}", expected=f"{name} >= 0 everywhere")
        )


def _gamma(source: Source, shape: Any, alpha: Any, beta: Any, dtype: Any) -> Tensor:
    leading, kind = _shape(shape), dtypes.as_dtype(dtype)
    shape_parameter = _parameter(alpha, kind, "alpha")
    rate = _parameter(1.0 if beta is None else beta, kind, "beta")
    _floating(kind)
    _positive(shape_parameter._array, "alpha")
    size = (*leading, *np.broadcast_shapes(shape_parameter._array.shape, rate._array.shape))
    wide = shape_parameter._array.astype(np.float64)
    drawn = source(lambda generator: np.asarray(generator.standard_gamma(wide, size)).astype(kind.numpy))
    samples = elementwise.divide(_drawn("RandomGamma", drawn, shape_parameter), rate)
    return elementwise.maximum(wrap(np.asarray(kind._limits.tiny, kind.numpy)), samples)  # 0 has density 0, and no logarithm


def _poisson(source: Source, shape: Any, lam: Any, dtype: Any) -> Tensor:
    leading, kind = _shape(shape), dtypes.as_dtype(dtype)
    if kind not in _SAMPLED:
        raise _accepted(kind, _SAMPLED)
    rate = lam if isinstance(lam, (Tensor, Variable)) else convert_to_tensor(lam, kind if kind.is_floating else dtypes.float32)
    rate = convert_to_tensor(rate)
    _positive(rate._array, "lam")
    size = (*leading, *rate._array.shape)
    drawn = source(lambda generator: np.asarray(generator.poisson(rate._array.astype(np.float64), size)).astype(kind.numpy))
    return _drawn("RandomPoissonV2", drawn, rate)


def _binomial(source: Source, shape: Any, counts: Any, probs: Any, dtype: Any) -> Tensor:
    size, kind = _shape(shape), dtypes.as_dtype(dtype)
    trials = np.asarray(convert_to_tensor(counts))
    chance = np.asarray(convert_to_tensor(probs)).astype(np.float64)
    _positive(trials, "counts")
    if not ((chance >= 0) & (chance <= 1)).all():
        raise InvalidArgumentError(message("probs must lie in [0, 1]", received=f"{chance.min()} to {chance.max()}"))
    return wrap(source(lambda g: np.asarray(g.binomial(trials.astype(np.int64), chance, size)).astype(kind.numpy)))


def _shuffled(source: Source, value: Any) -> Tensor:
    array = convert_to_tensor(value)._array
    if not array.ndim:
        return wrap(array)
    return wrap(source(lambda generator: array[generator.permutation(len(array))]))


# Functions with the process's streams


def normal(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, seed: Any = None) -> Tensor:
    """mean + stddev · z with z standard normal.

    >>> set_seed(1)
    >>> normal([2, 3]).shape
    TensorShape([2, 3])
    """
    return _normal(_streams.source("normal", dtypes.as_dtype(dtype), seed), _bell, shape, mean, stddev, dtype)


def truncated_normal(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, seed: Any = None) -> Tensor:
    """Normal values, drawn again where they are more than two standard deviations from the mean."""
    source = _streams.source("truncated_normal", dtypes.as_dtype(dtype), seed)
    return _normal(source, _cut_bell, shape, mean, stddev, dtype)


def uniform(shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dtypes.float32, seed: Any = None) -> Tensor:
    """Uniform in [minval, maxval); integers need a maxval."""
    kind = dtypes.as_dtype(dtype)
    if kind not in _SAMPLED:
        raise _accepted(kind, _SAMPLED)
    if maxval is None and kind.is_integer:
        raise ValueError(f"Must specify maxval for integer dtype {kind!r}")
    return _uniform(_streams.source("uniform", kind, seed), shape, minval, maxval, kind)


def categorical(logits: Any, num_samples: Any, dtype: Any = None, seed: Any = None) -> Tensor:
    """Class indices (batch, num_samples), drawn with probabilities softmax(logits) per row."""
    return _categorical(_streams.source("categorical", dtypes.int64, seed), logits, num_samples, dtype)


def shuffle(value: Any, seed: Any = None) -> Tensor:
    """The slices along the first axis in random order; no gradient flows, as in TensorFlow."""
    return _shuffled(_streams.source("shuffle", dtypes.int64, seed), value)


def gamma(shape: Any, alpha: Any, beta: Any = None, dtype: Any = dtypes.float32, seed: Any = None) -> Tensor:
    """``shape`` samples of each Gamma(alpha, rate beta); differentiable in beta."""
    return _gamma(_streams.source("gamma", dtypes.as_dtype(dtype), seed), shape, alpha, beta, dtype)


def poisson(shape: Any, lam: Any, dtype: Any = dtypes.float32, seed: Any = None) -> Tensor:
    """``shape`` samples of each Poisson(lam)."""
    return _poisson(_streams.source("poisson", dtypes.as_dtype(dtype), seed), shape, lam, dtype)


def keep_mask(shape: tuple[int, ...], rate: Any, seed: Any = None, *, stateless: bool = False) -> np.ndarray:
    """True with probability 1 - rate, for dropout."""
    source = _stateless(seed) if stateless else _streams.source("dropout", dtypes.float32, seed)
    return source(lambda generator: np.asarray(generator.random(shape, np.float32) >= rate))


# Stateless functions: the same seed gives the same numbers, always


def _stateless(seed: Any) -> Source:
    words = _seed_pair(seed)
    return lambda sample: sample(_philox(_STATELESS, *map(int, words)))


def _seed_pair(seed: Any) -> np.ndarray:
    array = np.asarray(convert_to_tensor(seed))
    if array.dtype.kind not in "iu":
        raise InvalidArgumentError(
            f"Value for attr 'Tseed' of {dtypes.of(array.dtype).word} is not in the list of allowed values: int32, int64"  # type: ignore[union-attr]
        )
    if array.shape != (2,):
        raise InvalidArgumentError(message(f"seed must have shape [2], not {dims(array.shape)}", fix="seed=[7, 11]"))
    return array


def stateless_normal(shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32) -> Tensor:
    """`normal` as a function of its seed."""
    return _normal(_stateless(seed), _bell, shape, mean, stddev, dtype)


def stateless_truncated_normal(
    shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32
) -> Tensor:
    """`truncated_normal` as a function of its seed."""
    return _normal(_stateless(seed), _cut_bell, shape, mean, stddev, dtype)


def stateless_uniform(shape: Any, seed: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dtypes.float32) -> Tensor:
    """`uniform` as a function of its seed; with minval and maxval None, any integer of the dtype."""
    kind = dtypes.as_dtype(dtype)
    if kind.is_integer and (minval is None) != (maxval is None):
        raise ValueError(
            f"For integer `dtype` argument {kind}, argument `minval` and `maxval` must be both None or not None. "
            f"Got `minval`={minval} and `maxval`={maxval}."
        )
    return _any_uniform(_stateless(seed), shape, minval, maxval, kind)


def _any_uniform(source: Source, shape: Any, minval: Any, maxval: Any, dtype: dtypes.DType) -> Tensor:
    if dtype.is_integer and minval is None:
        return _full_range(source, shape, dtype)
    if dtype.is_unsigned:
        raise ValueError(
            f"Argument `dtype` got invalid value {dtype} when argument `minval` is not None. "
            "Please don't use unsigned integers in this case."
        )
    if dtype not in _SAMPLED:
        raise _accepted(dtype, _SAMPLED)
    return _uniform(source, shape, 0 if minval is None else minval, maxval, dtype)


def stateless_categorical(logits: Any, num_samples: Any, seed: Any, dtype: Any = dtypes.int64) -> Tensor:
    """`categorical` as a function of its seed."""
    return _categorical(_stateless(seed), logits, num_samples, dtype)


def stateless_gamma(shape: Any, seed: Any, alpha: Any, beta: Any = None, dtype: Any = dtypes.float32) -> Tensor:
    """Samples of Gamma(alpha, rate beta) whose shape is ``shape``, as a function of the seed."""
    size = _shape(shape)
    parts = [np.shape(np.asarray(convert_to_tensor(p))) for p in (alpha, beta) if p is not None]
    tail = np.broadcast_shapes(*parts)
    return _fill(lambda lead: _gamma(_stateless(seed), lead, alpha, beta, dtype), size, tail)


def stateless_poisson(shape: Any, seed: Any, lam: Any, dtype: Any = dtypes.int32) -> Tensor:
    """Samples of Poisson(lam) whose shape is ``shape``, as a function of the seed."""
    size = _shape(shape)
    return _fill(lambda lead: _poisson(_stateless(seed), lead, lam, dtype), size, np.shape(np.asarray(convert_to_tensor(lam))))


def _fill(draw: Callable[[tuple[int, ...]], Tensor], size: tuple[int, ...], tail: tuple[int, ...]) -> Tensor:
    """Samples of shape ``size``, whose end must be the parameters' shape."""
    lead = len(size) - len(tail)
    if lead < 0 or size[lead:] != tail:
        raise InvalidArgumentError(
            message(f"Shape passed in must end with broadcasted shape: {list(tail)} vs {list(size)}", fix="end shape with it")
        )
    return draw(size[:lead])


def stateless_binomial(shape: Any, seed: Any, counts: Any, probs: Any, output_dtype: Any = dtypes.int32) -> Tensor:
    """Numbers of successes in ``counts`` trials, as a function of the seed."""
    return _binomial(_stateless(seed), shape, counts, probs, output_dtype)


def stateless_shuffle(value: Any, seed: Any) -> Tensor:
    """`shuffle` as a function of its seed."""
    return _shuffled(_stateless(seed), value)


def split(seed: Any, num: int = 2) -> Tensor:
    """``num`` new stateless seeds (num, 2) from one."""
    words = _seed_pair(seed)
    return wrap(_stateless(seed)(lambda generator: _whole(generator, (_index(num, "number"), 2), words.dtype)))


def fold_in(seed: Any, data: Any) -> Tensor:
    """A new stateless seed from a seed and an integer, such as a step number."""
    words = _seed_pair(seed)
    first = _stateless(seed)(lambda generator: _whole(generator, (), words.dtype))
    number = elementwise.cast(convert_to_tensor(data), dtypes.of(words.dtype))
    return shapes.stack(wrap(first), number, axis=0)
