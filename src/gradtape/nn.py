"""`tf.nn`: TensorFlow's names and arguments for the ops of neural networks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from gradtape.errors import message
from gradtape.math import in_top_k, top_k
from gradtape.ops import arguments as _arguments
from gradtape.ops import conv as _conv
from gradtape.ops import elementwise as _elementwise
from gradtape.ops import losses as _losses
from gradtape.ops import nn as _nn
from gradtape.ops import normalization as _normalization
from gradtape.ops import pool as _pool
from gradtape.ops import reduce as _reduce
from gradtape.ops import spatial as _spatial
from gradtape.ops.attention import dot_product_attention
from gradtape.random import (
    all_candidate_sampler,
    fixed_unigram_candidate_sampler,
    learned_unigram_candidate_sampler,
)
from gradtape.scope import missing
from gradtape.values import dtypes as _dtypes
from gradtape.values.composite import take_composites
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor

__all__ = [
    "all_candidate_sampler", "atrous_conv2d", "atrous_conv2d_transpose", "avg_pool", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "batch_norm_with_global_normalization", "batch_normalization", "bias_add", "collapse_repeated", "compute_accidental_hits",
    "compute_average_loss", "conv1d", "conv1d_transpose", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose",
    "conv_transpose", "convolution", "crelu", "ctc_beam_search_decoder", "ctc_greedy_decoder", "ctc_loss",
    "ctc_unique_labels", "depth_to_space", "depthwise_conv2d", "depthwise_conv2d_backprop_filter",
    "depthwise_conv2d_backprop_input", "dilation2d", "dot_product_attention", "dropout",
    "elu", "embedding_lookup", "embedding_lookup_sparse", "erosion2d", "experimental", "fixed_unigram_candidate_sampler",
    "gelu", "in_top_k", "l2_loss", "l2_normalize", "leaky_relu", "learned_unigram_candidate_sampler",
    "local_response_normalization", "log_poisson_loss", "log_softmax", "lrn", "max_pool", "max_pool1d", "max_pool2d",
    "max_pool3d", "max_pool_with_argmax", "moments", "nce_loss", "normalize_moments", "pool", "relu", "relu6",
    "sampled_softmax_loss", "scale_regularization_loss", "selu", "separable_conv2d", "sigmoid",
    "sigmoid_cross_entropy_with_logits", "silu", "softmax", "softmax_cross_entropy_with_logits", "softplus", "softsign",
    "space_to_batch", "space_to_depth", "sparse_softmax_cross_entropy_with_logits", "sufficient_statistics", "swish", "tanh",
    "top_k", "weighted_cross_entropy_with_logits", "weighted_moments", "zero_fraction",
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
        text = f"`features.dtype` must be a floating point tensor. Received: features.dtype={features.dtype}"
        raise ValueError(message(text, fix="tf.cast(features, tf.float32)"))
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


# Convolution. Strides and dilations are an int, or a list with an entry per axis of space or per axis; padding is "SAME",
# "VALID" or a list of pairs per axis.


def convolution(
    input: Any, filters: Any, strides: Any = None, padding: Any = "VALID", data_format: str | None = None,
    dilations: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Convolution over as many axes of space as the filters have."""
    n = _conv.rank_of_space(filters)
    where = {"padding": padding, "data_format": data_format, "dilations": dilations}
    return _conv.convolution(input, filters, n, strides=1 if strides is None else strides, **where)


def conv1d(
    input: Any, filters: Any, stride: Any, padding: Any, data_format: str | None = "NWC", dilations: Any = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Convolution of (batch, width, channels) with filters (width, channels, outputs)."""
    where = {"padding": padding, "data_format": data_format, "dilations": dilations}
    return _conv.convolution(input, filters, 1, strides=stride, **where)


def conv2d(
    input: Any, filters: Any, strides: Any, padding: Any, data_format: str | None = "NHWC", dilations: Any = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Convolution of (batch, height, width, channels) with filters (height, width, channels, outputs).

    >>> import gradtape as tf
    >>> conv2d(tf.ones([1, 3, 3, 1]), tf.ones([2, 2, 1, 1]), strides=1, padding="VALID").numpy().ravel().tolist()
    [4.0, 4.0, 4.0, 4.0]
    """
    where = {"padding": padding, "data_format": data_format, "dilations": dilations}
    return _conv.convolution(input, filters, 2, strides=strides, **where)


def conv3d(
    input: Any, filters: Any, strides: Any, padding: Any, data_format: str | None = "NDHWC", dilations: Any = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Convolution of (batch, depth, height, width, channels)."""
    where = {"padding": padding, "data_format": data_format, "dilations": dilations}
    return _conv.convolution(input, filters, 3, strides=strides, **where)


def conv_transpose(
    input: Any, filters: Any, output_shape: Any, strides: Any, padding: Any = "SAME", data_format: str | None = None,
    dilations: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The transpose of `convolution`, over as many axes of space as ``output_shape`` has."""
    n = len(_arguments.integers(output_shape)) - 2
    if n not in (1, 2, 3):
        text = f"`output_shape` must be of length 3, 4 or 5. Received: output_shape={output_shape} of length {n + 2}."
        raise ValueError(message(text, expected="the whole shape: [batch, …, channels]"))
    where = {"padding": padding, "data_format": data_format, "dilations": dilations}
    return _conv.convolution_transpose(input, filters, output_shape, n, strides=strides, **where)


def conv1d_transpose(
    input: Any, filters: Any, output_shape: Any, strides: Any, padding: Any = "SAME", data_format: str | None = "NWC",
    dilations: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The transpose of `conv1d`; filters (width, outputs, channels)."""
    where = {"padding": padding, "data_format": data_format, "dilations": dilations}
    return _conv.convolution_transpose(input, filters, output_shape, 1, strides=strides, **where)


def conv2d_transpose(
    input: Any, filters: Any, output_shape: Any, strides: Any, padding: Any = "SAME", data_format: str | None = "NHWC",
    dilations: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The transpose of `conv2d`; filters (height, width, outputs, channels)."""
    where = {"padding": padding, "data_format": data_format, "dilations": dilations}
    return _conv.convolution_transpose(input, filters, output_shape, 2, strides=strides, **where)


def conv3d_transpose(
    input: Any, filters: Any, output_shape: Any, strides: Any, padding: Any = "SAME", data_format: str | None = "NDHWC",
    dilations: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The transpose of `conv3d`; filters (depth, height, width, outputs, channels)."""
    where = {"padding": padding, "data_format": data_format, "dilations": dilations}
    return _conv.convolution_transpose(input, filters, output_shape, 3, strides=strides, **where)


def atrous_conv2d(value: Any, filters: Any, rate: int, padding: Any, name: str | None = None) -> Tensor:
    """`conv2d` with ``rate`` - 1 holes between the elements of the filter."""
    return _conv.convolution(value, filters, 2, padding=padding, dilations=rate)


def atrous_conv2d_transpose(
    value: Any, filters: Any, output_shape: Any, rate: int, padding: Any, name: str | None = None
) -> Tensor:
    """The transpose of `atrous_conv2d`."""
    return _conv.convolution_transpose(value, filters, output_shape, 2, padding=padding, dilations=rate)


def depthwise_conv2d(
    input: Any, filter: Any, strides: Any, padding: Any, data_format: str | None = None, dilations: Any = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Each channel with its own filters: (height, width, channels, outputs per channel)."""
    where = {"padding": padding, "data_format": data_format, "dilations": dilations}
    return _conv.convolution(input, filter, 2, strides=strides, depthwise=True, **where)


def depthwise_conv2d_backprop_input(
    input_sizes: Any, filter: Any, out_backprop: Any, strides: Any, padding: Any, data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1), name: str | None = None,
) -> Tensor:  # fmt: skip
    """The gradient of `depthwise_conv2d` by its input."""
    where = {"strides": strides, "padding": padding, "data_format": data_format, "dilations": dilations}
    return _conv.depthwise_input(input_sizes, filter, out_backprop, **where)


def depthwise_conv2d_backprop_filter(
    input: Any, filter_sizes: Any, out_backprop: Any, strides: Any, padding: Any, data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1), name: str | None = None,
) -> Tensor:  # fmt: skip
    """The gradient of `depthwise_conv2d` by its filter."""
    where = {"strides": strides, "padding": padding, "data_format": data_format, "dilations": dilations}
    return _conv.depthwise_filter(input, filter_sizes, out_backprop, **where)


def separable_conv2d(
    input: Any, depthwise_filter: Any, pointwise_filter: Any, strides: Any, padding: Any, data_format: str | None = None,
    dilations: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """`depthwise_conv2d`, then a mixture of its outputs pixel by pixel."""
    where = {"strides": strides, "padding": padding, "data_format": data_format, "dilations": dilations}
    return _conv.separable(input, depthwise_filter, pointwise_filter, **where)


# Pooling


def _space(input: Any) -> int:
    shape = convert_to_tensor(input).shape
    if len(shape) not in (3, 4, 5):
        raise ValueError(
            message(
                f"`input.shape.rank` must be 3, 4 or 5. Received: input.shape={shape} of rank {len(shape)}.",
                expected="[batch, …, channels] with 1, 2 or 3 axes in between",
                fix="add a batch axis: input[tf.newaxis]",
            )
        )
    return len(shape) - 2


def max_pool(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """The largest element of each window; the gradient goes to the first of several."""
    n = _space(input)
    return _pool.pool(input, "MAX", n, size=ksize, strides=strides, padding=padding, data_format=data_format)


def max_pool1d(input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NWC", name: str | None = None) -> Tensor:
    """`max_pool` over (batch, width, channels)."""
    return _pool.pool(input, "MAX", 1, size=ksize, strides=strides, padding=padding, data_format=data_format)


def max_pool2d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """`max_pool` over (batch, height, width, channels)."""
    return _pool.pool(input, "MAX", 2, size=ksize, strides=strides, padding=padding, data_format=data_format)


def max_pool3d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NDHWC", name: str | None = None
) -> Tensor:
    """`max_pool` over (batch, depth, height, width, channels)."""
    return _pool.pool(input, "MAX", 3, size=ksize, strides=strides, padding=padding, data_format=data_format)


def avg_pool(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """The mean of each window, without what lies outside."""
    n = _space(input)
    return _pool.pool(input, "AVG", n, size=ksize, strides=strides, padding=padding, data_format=data_format)


def avg_pool1d(input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NWC", name: str | None = None) -> Tensor:
    """`avg_pool` over (batch, width, channels)."""
    return _pool.pool(input, "AVG", 1, size=ksize, strides=strides, padding=padding, data_format=data_format)


def avg_pool2d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """`avg_pool` over (batch, height, width, channels)."""
    return _pool.pool(input, "AVG", 2, size=ksize, strides=strides, padding=padding, data_format=data_format)


def avg_pool3d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NDHWC", name: str | None = None
) -> Tensor:
    """`avg_pool` over (batch, depth, height, width, channels)."""
    return _pool.pool(input, "AVG", 3, size=ksize, strides=strides, padding=padding, data_format=data_format)


def pool(
    input: Any, window_shape: Any, pooling_type: str, strides: Any = None, padding: Any = "VALID",
    data_format: str | None = None, dilations: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Pooling of type "MAX" or "AVG" over as many axes of space as the window has."""
    n = len(_arguments.integers(window_shape))
    if pooling_type not in ("MAX", "AVG"):
        raise ValueError(message(f"{n}-D {pooling_type} pooling is not supported.", expected="pooling_type='MAX' or 'AVG'"))
    where = {"padding": padding, "data_format": data_format, "dilations": 1 if dilations is None else dilations}
    return _pool.pool(input, pooling_type, n, size=window_shape, strides=1 if strides is None else strides, **where)


def max_pool_with_argmax(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", output_dtype: Any = _dtypes.int64,
    include_batch_in_index: bool = False, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`max_pool2d`, and where each largest element is among those of its example, or of all."""
    where = {"size": ksize, "strides": strides, "padding": padding, "data_format": data_format}
    return _pool.max_pool_with_argmax(input, dtype=output_dtype, include_batch=include_batch_in_index, **where)


def dilation2d(
    input: Any, filters: Any, strides: Any, padding: str, data_format: str, dilations: Any, name: str | None = None
) -> Tensor:
    """max over the window of input + filter, channel by channel."""
    where = {"strides": strides, "padding": padding, "data_format": data_format, "dilations": dilations}
    return _pool.dilation(input, filters, **where)


def erosion2d(
    value: Any, filters: Any, strides: Any, padding: str, data_format: str, dilations: Any, name: str | None = None
) -> Tensor:
    """min over the window of value - filter, channel by channel."""
    where = {"strides": strides, "padding": padding, "data_format": data_format, "dilations": dilations}
    return _pool.erosion(value, filters, **where)


# Blocks of space


def space_to_depth(input: Any, block_size: int, data_format: str = "NHWC", name: str | None = None) -> Tensor:
    """Each block of pixels as the channels of one."""
    return _spatial.space_to_depth(input, block_size, data_format)


def depth_to_space(input: Any, block_size: int, data_format: str = "NHWC", name: str | None = None) -> Tensor:
    """Channels as a block of pixels each."""
    return _spatial.depth_to_space(input, block_size, data_format)


def space_to_batch(input: Any, block_shape: Any, paddings: Any, name: str | None = None) -> Tensor:
    """The pixels of each block to different examples, after zero padding."""
    return _spatial.space_to_batch(input, block_shape, paddings)


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
        text = f"Both `labels` and `logits` must be provided for {caller}. Received: labels={labels} and logits={logits}"
        raise ValueError(message(text, fix="labels=labels, logits=logits"))
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


def nce_loss(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int, num_classes: int, num_true: int = 1,
    sampled_values: Any = None, remove_accidental_hits: bool = False, name: str = "nce_loss",
) -> Tensor:  # fmt: skip
    """Noise-contrastive estimation of a softmax over many classes; one loss per example."""
    return _losses.nce_loss(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, remove_accidental_hits, None
    )


def sampled_softmax_loss(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int, num_classes: int, num_true: int = 1,
    sampled_values: Any = None, remove_accidental_hits: bool = True, seed: Any = None, name: str = "sampled_softmax_loss",
) -> Tensor:  # fmt: skip
    """The softmax cross-entropy with a sample of the other classes; one loss per example."""
    return _losses.sampled_softmax_loss(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, remove_accidental_hits, seed
    )


def compute_accidental_hits(
    true_classes: Any, sampled_candidates: Any, num_true: int, seed: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """(rows, columns, weights) of the sampled classes that are true ones."""
    return _losses.accidental_hits(true_classes, sampled_candidates, num_true)


def ctc_loss(
    labels: Any, logits: Any, label_length: Any, logit_length: Any, logits_time_major: bool = True, unique: Any = None,
    blank_index: int | None = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """-log of the probability of all alignments of label sequences with logits; one loss per example."""
    return _losses.ctc_loss(labels, logits, label_length, logit_length, time_major=logits_time_major, blank=blank_index)


def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: bool = True, blank_index: int | None = None
) -> tuple[list, Tensor]:
    """The labels of the best class of each frame, as sparse matrices in a list, and minus the sum of their logits."""
    from gradtape.ops import ctc_decoders

    return ctc_decoders.greedy(inputs, sequence_length, merge_repeated, blank_index)


def ctc_beam_search_decoder(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1
) -> tuple[list, Tensor]:
    """The likeliest label sequences, one sparse matrix per place, and log of their probabilities; the last class is blank."""
    from gradtape.ops import ctc_decoders

    return ctc_decoders.beam_search(inputs, sequence_length, beam_width, top_paths)


def ctc_unique_labels(labels: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """The distinct labels of each row, and where each label is among them."""
    return _losses.unique_labels(labels)


def collapse_repeated(labels: Any, seq_length: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Runs of equal labels as one, and the new lengths."""
    return _losses.collapse_repeated(labels, seq_length)


# Moments and normalisation


def moments(x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Mean and variance over axes; ``shift`` is accepted and ignored, as in TensorFlow."""
    return _normalization.moments(x, axes, keepdims)


def weighted_moments(
    x: Any, axes: Any, frequency_weights: Any, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance over axes of values that count as often as their weights say."""
    return _normalization.weighted_moments(x, axes, frequency_weights, keepdims)


def sufficient_statistics(x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None) -> tuple:
    """(count, sum, sum of squares, shift), from which `normalize_moments` makes mean and variance."""
    return _normalization.sufficient_statistics(x, axes, shift, keepdims)


def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance from sufficient statistics."""
    return _normalization.normalize_moments(counts, mean_ss, variance_ss, shift)


def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: float, name: str | None = None
) -> Tensor:
    """(x - mean) / √(variance + ε) · scale + offset"""
    return _normalization.batch_normalization(x, mean, variance, offset, scale, variance_epsilon)


def batch_norm_with_global_normalization(
    input: Any, mean: Any, variance: Any, beta: Any, gamma: Any, variance_epsilon: float, scale_after_normalization: bool,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """`batch_normalization` by another spelling; gamma counts if ``scale_after_normalization``."""
    scale = gamma if scale_after_normalization else None
    return _normalization.batch_normalization(input, mean, variance, beta, scale, variance_epsilon)


def local_response_normalization(
    input: Any, depth_radius: int = 5, bias: float = 1, alpha: float = 1, beta: float = 0.5, name: str | None = None
) -> Tensor:
    """x / (bias + alpha · Σ x² over neighbouring channels) ** beta"""
    return _normalization.local_response_normalization(input, depth_radius, bias, alpha, beta)


lrn = local_response_normalization


def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None) -> Tensor:
    """x / √max(Σ x², ε) along axes."""
    return _normalization.l2_normalize(x, dim if axis is None else axis, epsilon)


def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Tensor:
    """value + bias along the channels: the last axis, or axis 1 if the data format starts with "NC"."""
    form = "N...C" if data_format is None else data_format
    if not (form.startswith("NC") or (form[:1] == "N" and form.endswith("C"))):
        text = f"`data_format` must be of the form `N...C` or `NC...`. Received: data_format={data_format}"
        raise ValueError(message(text, expected="'N...C', the channels last, or 'NC...'"))
    return _normalization.bias_add(value, bias, channels_first=form.startswith("NC"))


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


def embedding_lookup_sparse(
    params: Any, sp_ids: Any, sp_weights: Any, combiner: str | None = None, max_norm: Any = None, name: str | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:  # fmt: skip
    """For each row of sparse or ragged ids the mean (sum, mean by √n) of their embeddings, weighted."""
    from gradtape.ops import sparse_segments

    return sparse_segments.embedding_lookup(params, sp_ids, sp_weights, combiner, max_norm)


take_composites(
    globals(),
    elementwise="dropout gelu leaky_relu sigmoid_cross_entropy_with_logits silu swish",
    others="embedding_lookup softmax",
)

__getattr__ = missing(__name__, __all__)
