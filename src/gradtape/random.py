"""`tf.random`: TensorFlow's names and arguments for random numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from gradtape.ops import candidates as _candidates
from gradtape.ops import random as _random
from gradtape.ops import stateless as _stateless
from gradtape.ops.generator import (
    Algorithm,
    Generator,
    check_algorithm,
    create_rng_state,
    get_global_generator,
    set_global_generator,
)
from gradtape.ops.random import set_seed
from gradtape.scope import missing
from gradtape.values.dtypes import float32, int32, int64
from gradtape.values.tensor import Tensor

__all__ = [
    "Algorithm", "Generator", "all_candidate_sampler", "categorical", "create_rng_state", "experimental",
    "fixed_unigram_candidate_sampler", "fold_in", "gamma", "get_global_generator", "learned_unigram_candidate_sampler",
    "log_uniform_candidate_sampler", "normal", "poisson", "set_global_generator", "set_seed", "shuffle", "split",
    "stateless_binomial", "stateless_categorical", "stateless_gamma", "stateless_normal",
    "stateless_parameterized_truncated_normal", "stateless_poisson", "stateless_truncated_normal", "stateless_uniform",
    "truncated_normal", "uniform", "uniform_candidate_sampler",
]  # fmt: skip


def normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32, seed: int | None = None, name: str | None = None
) -> Tensor:
    """mean + stddev · z with z standard normal; gradients flow to mean and stddev."""
    return _random.normal(shape, mean, stddev, dtype, seed)


def truncated_normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Normal values within two standard deviations of the mean."""
    return _random.truncated_normal(shape, mean, stddev, dtype, seed)


def uniform(
    shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = float32, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Uniform in [minval, maxval); maxval is 1 for floating dtypes, and must be given for int32 and int64."""
    return _random.uniform(shape, minval, maxval, dtype, seed)


def categorical(
    logits: Any, num_samples: Any, dtype: Any = None, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Class indices (batch, num_samples) with probabilities softmax(logits)."""
    return _random.categorical(logits, num_samples, dtype, seed)


def shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """The slices along the first axis in random order."""
    return _random.shuffle(value, seed)


def gamma(
    shape: Any, alpha: Any, beta: Any = None, dtype: Any = float32, seed: int | None = None, name: str | None = None
) -> Tensor:
    """``shape`` samples of each Gamma(alpha, rate beta)."""
    return _random.gamma(shape, alpha, beta, dtype, seed)


def poisson(shape: Any, lam: Any, dtype: Any = float32, seed: int | None = None, name: str | None = None) -> Tensor:
    """``shape`` samples of each Poisson(lam)."""
    return _random.poisson(shape, lam, dtype, seed)


def stateless_normal(
    shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32, name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:  # fmt: skip
    """`normal` as a function of a seed of two integers."""
    check_algorithm(alg)
    return _stateless.stateless_normal(shape, seed, mean, stddev, dtype)


def stateless_truncated_normal(
    shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32, name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:  # fmt: skip
    """`truncated_normal` as a function of a seed of two integers."""
    check_algorithm(alg)
    return _stateless.stateless_truncated_normal(shape, seed, mean, stddev, dtype)


def stateless_uniform(
    shape: Any, seed: Any, minval: Any = 0, maxval: Any = None, dtype: Any = float32, name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:  # fmt: skip
    """`uniform` as a function of a seed of two integers."""
    check_algorithm(alg)
    return _stateless.stateless_uniform(shape, seed, minval, maxval, dtype)


def stateless_categorical(logits: Any, num_samples: Any, seed: Any, dtype: Any = int64, name: str | None = None) -> Tensor:
    """`categorical` as a function of a seed of two integers."""
    return _stateless.stateless_categorical(logits, num_samples, seed, dtype)


def stateless_gamma(
    shape: Any, seed: Any, alpha: Any, beta: Any = None, dtype: Any = float32, name: str | None = None
) -> Tensor:
    """Gamma samples of the full shape, as a function of a seed of two integers."""
    return _stateless.stateless_gamma(shape, seed, alpha, beta, dtype)


def stateless_poisson(shape: Any, seed: Any, lam: Any, dtype: Any = int32, name: str | None = None) -> Tensor:
    """Poisson samples of the full shape, as a function of a seed of two integers."""
    return _stateless.stateless_poisson(shape, seed, lam, dtype)


def stateless_binomial(
    shape: Any, seed: Any, counts: Any, probs: Any, output_dtype: Any = int32, name: str | None = None
) -> Tensor:
    """Binomial samples of the full shape, as a function of a seed of two integers."""
    return _stateless.stateless_binomial(shape, seed, counts, probs, output_dtype)


def split(seed: Any, num: int = 2, alg: Any = "auto_select") -> Tensor:
    """``num`` new seeds from one."""
    check_algorithm(alg)
    return _stateless.split(seed, num)


def fold_in(seed: Any, data: Any, alg: Any = "auto_select") -> Tensor:
    """A new seed from a seed and an integer."""
    check_algorithm(alg)
    return _stateless.fold_in(seed, data)


def _stateless_shuffle(value: Any, seed: Any, alg: Any = "auto_select", name: str | None = None) -> Tensor:
    """`shuffle` as a function of a seed of two integers."""
    check_algorithm(alg)
    return _stateless.stateless_shuffle(value, seed)


def stateless_parameterized_truncated_normal(
    shape: Any, seed: Any, means: Any = 0.0, stddevs: Any = 1.0, minvals: Any = -2.0, maxvals: Any = 2.0,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Normal values between minvals and maxvals; gradients flow to all four parameters."""
    return _stateless.stateless_parameterized_truncated_normal(shape, seed, means, stddevs, minvals, maxvals)


def _index_shuffle(index: Any, seed: Any, max_index: Any) -> Tensor:
    """Where ``index`` goes in a pseudo-random permutation of 0 … max_index."""
    return _stateless.index_shuffle(index, seed, max_index)


# Candidate samplers


def uniform_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: int | None = None,
    name: str | None = None,
) -> _candidates.Candidates:  # fmt: skip
    """Classes below range_max, all alike."""
    chances = _candidates.uniform(range_max)
    return _candidates.sample("uniform_candidates", true_classes, num_true, num_sampled, unique, chances, seed)


def log_uniform_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: int | None = None,
    name: str | None = None,
) -> _candidates.Candidates:  # fmt: skip
    """Classes below range_max by Zipf's law."""
    chances = _candidates.log_uniform(range_max)
    return _candidates.sample("log_uniform_candidates", true_classes, num_true, num_sampled, unique, chances, seed)


def learned_unigram_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: int | None = None,
    name: str | None = None,
) -> _candidates.Candidates:  # fmt: skip
    """Classes below range_max by how often they have been true so far."""
    chances = _candidates.learned(true_classes, range_max, seed)
    return _candidates.sample("learned_candidates", true_classes, num_true, num_sampled, unique, chances, seed)


def fixed_unigram_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int, vocab_file: str = "",
    distortion: float = 1.0, num_reserved_ids: int = 0, num_shards: int = 1, shard: int = 0, unigrams: Any = (),
    seed: int | None = None, name: str | None = None,
) -> _candidates.Candidates:  # fmt: skip
    """Classes by given weights to the power ``distortion``."""
    weights = _candidates.read_weights(vocab_file) if vocab_file else unigrams
    chances = _candidates.unigrams(weights, range_max, distortion, num_reserved_ids, num_shards, shard)
    return _candidates.sample("fixed_candidates", true_classes, num_true, num_sampled, unique, chances, seed)


def all_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, seed: int | None = None, name: str | None = None
) -> _candidates.Candidates:
    """All of the classes 0 … num_sampled - 1."""
    return _candidates.every(true_classes, num_true, num_sampled)


experimental = SimpleNamespace(
    Algorithm=Algorithm,
    Generator=Generator,
    create_rng_state=create_rng_state,
    get_global_generator=get_global_generator,
    index_shuffle=_index_shuffle,
    set_global_generator=set_global_generator,
    stateless_fold_in=fold_in,
    stateless_shuffle=_stateless_shuffle,
    stateless_split=split,
)

__getattr__ = missing(__name__, __all__)
