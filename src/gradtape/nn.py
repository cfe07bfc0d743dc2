"""`tf.nn`: TensorFlow's names and arguments for the ops of neural networks. Convolution and pooling are not here yet."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from gradtape.math import in_top_k, top_k
from gradtape.ops import elementwise as _elementwise
from gradtape.ops import nn as _nn
from gradtape.ops import reduce as _reduce
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor

__all__ = [
    "batch_normalization", "bias_add", "compute_average_loss", "crelu", "dropout", "elu", "embedding_lookup",
    "experimental", "gelu", "in_top_k", "l2_loss", "l2_normalize", "leaky_relu", "log_poisson_loss", "log_softmax", "moments",
    "normalize_moments", "relu", "relu6", "scale_regularization_loss", "selu", "sigmoid",
    "sigmoid_cross_entropy_with_logits", "silu", "softmax", "softmax_cross_entropy_with_logits", "softplus", "softsign",
    "sparse_softmax_cross_entropy_with_logits", "sufficient_statistics", "swish", "tanh", "top_k",
    "weighted_cross_entropy_with_logits", "weighted_moments", "zero_fraction",
]  # fmt: skip

# Activations


def relu(features: Any, name: str | None = None) -> Tensor:
    """max(x, 0); the derivative at 0 is 0.

    >>> relu([-1.0, 2.0]).numpy().tolist()
    [0.0, 2.0]
    """
    return _nn.relu(features)


def relu6(features: Any, name: str | None = None) -> Tensor:
    """min(max(x, 0), 6); the derivative at 0 and 6 is 0."""
    return _nn.relu6(features)


def leaky_relu(features: Any, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """x where x > 0, else alpha · x."""
    return _nn.leaky_relu_any(features, alpha)


def elu(features: Any, name: str | None = None) -> Tensor:
    """x where x ≥ 0, else eˣ - 1."""
    return _nn.elu(features)


def selu(features: Any, name: str | None = None) -> Tensor:
    """1.0507 · (x where x ≥ 0, else 1.6733 · (eˣ - 1))."""
    return _nn.selu(features)


def crelu(features: Any, axis: int = -1, name: str | None = None) -> Tensor:
    """relu(x) and relu(-x), joined along an axis."""
    return _nn.crelu(features, axis)


def gelu(features: Any, approximate: bool = False, name: str | None = None) -> Tensor:
    """x · Φ(x), or its approximation by tanh."""
    features = convert_to_tensor(features)
    if not features.dtype.is_floating:
        raise ValueError(f"`features.dtype` must be a floating point tensor. Received: features.dtype={features.dtype}")
    return _nn.gelu_tanh(features) if approximate else _nn.gelu(features)


def silu(features: Any, beta: Any = 1.0) -> Tensor:
    """x · sigmoid(beta · x)"""
    return _nn.swish(features, beta)


swish = silu


def sigmoid(x: Any, name: str | None = None) -> Tensor:
    """1 / (1 + e⁻ˣ)"""
    return _elementwise.sigmoid(x)


def tanh(x: Any, name: str | None = None) -> Tensor:
    """Hyperbolic tangent."""
    return _elementwise.tanh(x)


def softplus(features: Any, name: str | None = None) -> Tensor:
    """log(1 + eˣ)"""
    return _elementwise.softplus(features)


def softsign(features: Any, name: str | None = None) -> Tensor:
    """x / (1 + |x|)"""
    return _nn.softsign(features)


def softmax(logits: Any, axis: int | None = None, name: str | None = None) -> Tensor:
    """eˣ / Σ eˣ along an axis, by default the last."""
    return _nn.softmax(logits, axis=-1 if axis is None else int(axis))


def log_softmax(logits: Any, axis: int | None = None, name: str | None = None) -> Tensor:
    """x - log Σ eˣ along an axis, by default the last."""
    return _nn.log_softmax(logits, axis=-1 if axis is None else int(axis))


# Losses


def softmax_cross_entropy_with_logits(labels: Any, logits: Any, axis: int = -1, name: str | None = None) -> Tensor:
    """-Σ labels · log_softmax(logits) along an axis; gradients flow to logits and labels.

    >>> float(softmax_cross_entropy_with_logits([0.0, 1.0], [0.0, 0.0]))
    0.6931471824645996
    """
    return _nn.softmax_cross_entropy(labels, logits, axis)


def sparse_softmax_cross_entropy_with_logits(labels: Any, logits: Any, name: str | None = None) -> Tensor:
    """-log_softmax(logits) at the class index in ``labels``."""
    return _nn.sparse_softmax_cross_entropy(labels, logits)


def _both(labels: Any, logits: Any, caller: str) -> tuple[Tensor, Tensor]:
    if labels is None or logits is None:
        raise ValueError(
            f"Both `labels` and `logits` must be provided for {caller}. Received: labels={labels} and logits={logits}"
        )
    logits = convert_to_tensor(logits)
    labels = labels if isinstance(labels, Tensor) else convert_to_tensor(labels, dtype_hint=logits.dtype)
    _nn.same_shape(logits, labels, "`logits` and `labels`")
    return labels, logits


def sigmoid_cross_entropy_with_logits(labels: Any = None, logits: Any = None, name: str | None = None) -> Tensor:
    """-labels · log sigmoid(logits) - (1 - labels) · log(1 - sigmoid(logits)), elementwise."""
    labels, logits = _both(labels, logits, "sigmoid_cross_entropy_with_logits")
    return _nn.sigmoid_cross_entropy(logits, labels)


def weighted_cross_entropy_with_logits(labels: Any, logits: Any, pos_weight: Any, name: str | None = None) -> Tensor:
    """The sigmoid cross-entropy with its positive part multiplied by pos_weight, elementwise."""
    labels, logits = _both(labels, logits, "weighted_cross_entropy_with_logits")
    return _nn.weighted_cross_entropy(logits, labels, pos_weight)


def log_poisson_loss(targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None) -> Tensor:
    """e^c - c · z for targets z and c = log_input; the full loss adds Stirling's log z!."""
    return _nn.log_poisson_loss(targets, log_input, compute_full_loss)


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """Σ t² / 2"""
    return _nn.l2_loss(t)


def compute_average_loss(per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None) -> Tensor:
    """Σ loss · weight / batch size."""
    return _nn.compute_average_loss(per_example_loss, sample_weight, global_batch_size)


def scale_regularization_loss(regularization_loss: Any) -> Tensor:
    """The sum, divided by the number of replicas, which is 1."""
    return _reduce.sum(regularization_loss)


# Moments and normalisation


def moments(
    x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance over axes; ``shift`` is accepted and ignored, as in TensorFlow."""
    return _nn.moments(x, axes, keepdims)


def weighted_moments(
    x: Any, axes: Any, frequency_weights: Any, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance over axes of values that count as often as their weights say."""
    return _nn.weighted_moments(x, axes, frequency_weights, keepdims)


def sufficient_statistics(x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None) -> tuple:
    """(count, sum, sum of squares, shift), from which `normalize_moments` makes mean and variance."""
    return _nn.sufficient_statistics(x, axes, shift, keepdims)


def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance from sufficient statistics."""
    return _nn.normalize_moments(counts, mean_ss, variance_ss, shift)


def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: float, name: str | None = None
) -> Tensor:
    """(x - mean) / √(variance + ε) · scale + offset"""
    return _nn.batch_normalization(x, mean, variance, offset, scale, variance_epsilon)


def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None) -> Tensor:
    """x / √max(Σ x², ε) along axes."""
    return _nn.l2_normalize(x, dim if axis is None else axis, epsilon)


def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Tensor:
    """value + bias along the channels: the last axis, or axis 1 if the data format starts with "NC"."""
    form = "N...C" if data_format is None else data_format
    if not (form.startswith("NC") or (form[:1] == "N" and form.endswith("C"))):
        raise ValueError(f"`data_format` must be of the form `N...C` or `NC...`. Received: data_format={data_format}")
    return _nn.bias_add(value, bias, channels_first=form.startswith("NC"))


def dropout(x: Any, rate: Any, noise_shape: Any = None, seed: int | None = None, name: str | None = None) -> Tensor:
    """Elements set to 0 with probability ``rate``, the others divided by 1 - rate."""
    return _nn.dropout(x, rate, noise_shape, seed)


def _stateless_dropout(
    x: Any, rate: Any, seed: Any, rng_alg: Any = None, noise_shape: Any = None, name: str | None = None
) -> Tensor:
    """`dropout` as a function of a seed of two integers."""
    return _nn.dropout(x, rate, noise_shape, seed, stateless=True)


experimental = SimpleNamespace(stateless_dropout=_stateless_dropout)


# The rest


def embedding_lookup(params: Any, ids: Any, max_norm: float | None = None, name: str | None = None) -> Tensor:
    """Rows of ``params`` by index; the gradient of a variable is IndexedSlices."""
    return _nn.embedding_lookup(params, ids, max_norm)


def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """The share of elements that are 0."""
    return _nn.zero_fraction(value)
