"""Ops of neural networks: activations, softmax, cross-entropies, dropout, embeddings.

The relu family, softmax and the losses are ops of their own, because their composition would keep more in memory or lose
digits. Kernels compute half precision in float32.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.core.op import op, unary
from gradtape.core.variable import Variable
from gradtape.errors import InvalidArgumentError, dims, message, shown
from gradtape.ops import elementwise, indexing, random, reduce
from gradtape.ops import shape as shapes
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor, wrap

_FLOATS = "half, bfloat16, float, double"
_NUMBERS = "float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64"


def _refused(dtype: Any, label: str, allowed: str = _FLOATS, attribute: str = "T") -> InvalidArgumentError:
    found = dtypes.of(dtype)
    return InvalidArgumentError(
        message(
            f"Value for attr '{attribute}' of {found.word} is not in the list of allowed values: {allowed} [Op:{label}]",  # type: ignore[union-attr]
            fix="tf.cast(x, tf.float32) first" if allowed == _FLOATS else None,
        )
    )


def _floating(xp, x, label):
    """Refuse what is not a real floating array."""
    dtype = xp.dtype(x)
    if dtype.kind != "f" and not dtypes.of(dtype).is_floating:
        raise _refused(dtype, label)
    return dtype


def _wide(xp, x):
    """A half type in float32."""
    return xp.astype(x, dtype=np.dtype(np.float32)) if xp.dtype(x).itemsize == 2 else x


def _like(xp, value, x):
    """``value`` in the dtype of ``x``."""
    return value if xp.dtype(value) == xp.dtype(x) else xp.astype(value, dtype=xp.dtype(x))


def _constant(xp, value, x):
    return xp.full(shape=(), value=value, dtype=xp.dtype(x))


def _zero(xp, x):
    return xp.zeros(shape=(), dtype=xp.dtype(x))


# The relu family: each rule reads the output only, which the next layer keeps anyway. Slopes come from sign, not from a
# comparison: multiplying is five times faster than NumPy's where on a random mask, and sign has a derivative (0), so that
# the second derivative of a piecewise linear net is zeros, as in TensorFlow, instead of None.


def _relu(xp, x):
    if xp.dtype(x).kind in "bcO":
        raise _refused(xp.dtype(x), "Relu", _NUMBERS)
    return xp.maximum(x, _zero(xp, x))


relu = unary("relu", "max(x, 0)", lambda xp, g, out: g * xp.sign(out), kernel=_relu, elementwise=True)  # 0 at 0


def _relu6(xp, x):
    if xp.dtype(x).kind in "bcO":
        raise _refused(xp.dtype(x), "Relu6", _NUMBERS)
    return xp.minimum(xp.maximum(x, _zero(xp, x)), _constant(xp, 6, x))


relu6 = unary(
    "relu6", "min(max(x, 0), 6)", lambda xp, g, out: g * xp.sign(out * (6 - out)), kernel=_relu6, elementwise=True
)  # 0 at 0 and 6


@op(label="LeakyRelu", elementwise=True)
def leaky_relu(xp, x, *, alpha=0.2):
    """x where x > 0, else alpha · x, for 0 ≤ alpha ≤ 1."""
    _floating(xp, x, "LeakyRelu")
    with xp.scope():
        return xp.maximum(x, xp.multiply(x, _constant(xp, alpha, x)))


leaky_relu.vjp(lambda xp, g, out, *, alpha: g * xp.maximum(xp.sign(out), _constant(xp, alpha, out)))  # alpha at 0


def leaky_relu_any(x: Any, alpha: float = 0.2) -> Tensor:
    """`leaky_relu` for any slope and for integers, which become float32."""
    x = convert_to_tensor(x)
    if x.dtype.is_integer:
        x = elementwise.cast(x, dtypes.float32)
    if isinstance(alpha, (Tensor, Variable)):
        raise TypeError(message(f"Expected float for argument 'alpha' not {alpha!r}.", fix="float(alpha)"))
    if 0 <= alpha <= 1:
        return leaky_relu(x, alpha=float(alpha))
    return elementwise.where(elementwise.greater(x, 0), x, elementwise.multiply(x, float(alpha)))


def _elu(xp, x):
    _floating(xp, x, "Elu")
    zero = _zero(xp, x)
    return xp.maximum(x, zero) + xp.expm1(xp.minimum(x, zero))


elu = unary(
    "elu", "x where x ≥ 0, else eˣ - 1", lambda xp, g, out: g * (xp.minimum(_zero(xp, out), out) + 1), kernel=_elu,
    elementwise=True,
)  # fmt: skip  # 1 at 0

_SELU_SCALE, _SELU_ALPHA = 1.0507009873554805, 1.6732632423543772


def _selu(xp, x):
    _floating(xp, x, "Selu")
    wide = _wide(xp, x)
    negative = (_SELU_SCALE * _SELU_ALPHA) * xp.expm1(wide)
    return _like(xp, xp.where(xp.less(wide, _zero(xp, wide)), negative, _SELU_SCALE * wide), x)


def _selu_rule(xp, g, out):
    return xp.where(xp.less(out, _zero(xp, out)), g * (out + _SELU_SCALE * _SELU_ALPHA), g * _SELU_SCALE)  # 1.0507 at 0


selu = unary("selu", "1.0507 · (x where x ≥ 0, else 1.6733 · (eˣ - 1))", _selu_rule, kernel=_selu, elementwise=True)


def crelu(x: Any, axis: int = -1) -> Tensor:
    """relu(x) and relu(-x), joined along an axis."""
    x = convert_to_tensor(x)
    return relu(shapes.concatenate(x, elementwise.negative(x), axis=axis))


# Smooth activations


def _gelu(xp, x):
    _floating(xp, x, "Gelu")
    wide = _wide(xp, x)
    with xp.scope():
        return _like(xp, 0.5 * wide * xp.erfc(wide * -math.sqrt(0.5)), x)  # erfc: exact far below 0, where 1 + erf is 0


gelu = unary(
    "gelu", "x · Φ(x) with the standard normal distribution Φ",
    derivative=lambda xp, x: 0.5 * xp.erfc(x * -math.sqrt(0.5)) + x * xp.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi)),
    kernel=_gelu,
)  # fmt: skip

_GELU_SCALE, _GELU_CUBIC = math.sqrt(2 / math.pi), 0.044715


def _gelu_tanh(xp, x):
    _floating(xp, x, "Gelu")
    wide = _wide(xp, x)
    with xp.scope():
        return _like(xp, 0.5 * wide * (1 + xp.tanh(_GELU_SCALE * (wide + _GELU_CUBIC * wide * wide * wide))), x)


def _gelu_tanh_derivative(xp, x):
    t = xp.tanh(_GELU_SCALE * (x + _GELU_CUBIC * x * x * x))
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * (_GELU_SCALE * (1 + 3 * _GELU_CUBIC * x * x))


gelu_tanh = unary(
    "gelu_tanh", "0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³)))", derivative=_gelu_tanh_derivative, kernel=_gelu_tanh
)


@op(label="Sigmoid", closed=True, elementwise=True)
def silu(xp, x, beta):
    """x · sigmoid(beta · x)"""
    if xp.dtype(x).kind != "c":
        _floating(xp, x, "Sigmoid")
    with xp.scope():
        return x * xp.sigmoid(beta * x)


def _silu_rule(xp, g, x, beta):
    s = xp.sigmoid(beta * x)
    return g * xp.conj(s * (1 + beta * x * (1 - s)))


def _silu_beta_rule(xp, g, x, beta):
    s = xp.sigmoid(beta * x)
    return g * xp.conj(x * x * s * (1 - s))


silu.vjp(_silu_rule, _silu_beta_rule)


def swish(x: Any, beta: Any = 1.0) -> Tensor:
    """`silu`, with the dtype of x looked at before beta takes it."""
    x = convert_to_tensor(x)
    if not (x.dtype.is_floating or x.dtype.is_complex):
        raise silu.op.not_allowed(x._array.dtype)
    return silu(x, beta)


def _softsign(xp, x):
    _floating(xp, x, "Softsign")
    wide = _wide(xp, x)
    with xp.scope():
        return _like(xp, wide / (1 + xp.abs(wide)), x)


def _softsign_derivative(xp, x):
    size = 1 + xp.abs(x)
    return xp.reciprocal(size * size)


softsign = unary("softsign", "x / (1 + |x|)", derivative=_softsign_derivative, kernel=_softsign)

# Softmax


def _check_axis(xp, x, axis, label):
    _floating(xp, x, label)
    rank = len(xp.shape(x))
    if not rank:
        text = f"logits must have >= 1 dimension, got [] [Op:{label}]"
        raise InvalidArgumentError(message(text, received="shape ()", expected="at least one axis, that of the classes"))
    if not -rank <= axis < rank:
        text = (
            f"`dim` must be in the range [-{rank}, {rank}) where {rank} is the number of dimensions in the input. "
            f"Received: dim={axis}"
        )
        raise InvalidArgumentError(
            message(text, received=f"axis={axis} for an input of rank {rank}", expected=f"an axis from {-rank} to {rank - 1}")
        )


@op(label="Softmax")
def softmax(xp, x, *, axis=-1):
    """eˣ / Σ eˣ along an axis, without overflow."""
    _check_axis(xp, x, axis, "Softmax")
    wide = _wide(xp, x)
    with xp.scope():
        powers = xp.exp(wide - xp.max(wide, axis=axis, keepdims=True))
        return _like(xp, powers / xp.sum(powers, axis=axis, keepdims=True), x)


def _softmax_rule(xp, g, out, *, axis):
    g, out = _wide(xp, g), _wide(xp, out)
    return out * (g - xp.sum(g * out, axis=axis, keepdims=True))


softmax.vjp(_softmax_rule)


@op(label="LogSoftmax")
def log_softmax(xp, x, *, axis=-1):
    """x - log Σ eˣ along an axis, without overflow."""
    _check_axis(xp, x, axis, "LogSoftmax")
    wide = _wide(xp, x)
    with xp.scope():
        shifted = wide - xp.max(wide, axis=axis, keepdims=True)
        return _like(xp, shifted - xp.log(xp.sum(xp.exp(shifted), axis=axis, keepdims=True)), x)


def _log_softmax_rule(xp, g, out, *, axis):
    g, out = _wide(xp, g), _wide(xp, out)
    return g - xp.exp(out) * xp.sum(g, axis=axis, keepdims=True)


log_softmax.vjp(_log_softmax_rule)

# Cross-entropies. Those over classes are log_softmax and then one of the two ops below: what a tape keeps is the
# log-probabilities and the labels, once.


@op(label="SoftmaxCrossEntropyWithLogits")
def cross_entropy(xp, x, labels, *, axis=-1):
    """-Σ labels · x along an axis (not positive) for log-probabilities x; a label of 0 contributes 0 even at -inf."""
    with xp.scope():
        terms = xp.where(xp.equal(labels, _zero(xp, labels)), _zero(xp, x), labels * x)
    return -xp.sum(terms, axis=axis)


cross_entropy.vjp(
    lambda xp, g, labels, *, axis: -xp.expand_dims(g, axis=axis) * labels,
    lambda xp, g, x, *, axis: -xp.expand_dims(g, axis=axis) * x,
)


@op(label="SparseSoftmaxCrossEntropyWithLogits", same=(0,))
def sparse_cross_entropy(xp, x, labels):
    """-x at the label's index on the last axis, for log-probabilities x."""
    last = len(xp.shape(x)) - 1
    labels = _checked_labels(xp, labels, xp.shape(x)[last])
    return -xp.squeeze(xp.take_along_axis(x, xp.expand_dims(labels, axis=last), axis=last), axis=(last,))


def _checked_labels(xp: Any, labels: Any, classes: int) -> Any:
    """The labels. A device does not look at them: a negative one, which would count from the end, is moved beyond it: nan."""
    if not isinstance(labels, np.ndarray):
        indexing.look_at(labels, classes, always=True)
        return xp.where(labels < 0, xp.full(shape=(), value=classes, dtype=xp.dtype(labels)), labels)
    if not labels.size or (labels.min() >= 0 and labels.max() < classes):
        return labels
    worst = labels[(labels < 0) | (labels >= classes)].flat[0]
    shown = " ".join(map(str, labels.ravel()[:32])) + (" …" if labels.size > 32 else "")
    raise InvalidArgumentError(
        message(
            f"Received a label value of {worst} which is outside the valid range of [0, {classes}).  Label values: {shown} "
            "[Op:SparseSoftmaxCrossEntropyWithLogits]",
            fix="labels are class indices that count from 0; mask padding before the loss",
        )
    )


def _sparse_cross_entropy_rule(xp, g, labels, *, x_shape):
    here = xp.one_hot(labels, depth=x_shape[-1], dtype=np.dtype(bool))
    return xp.where(here, -xp.expand_dims(g, axis=-1), _zero(xp, g))


sparse_cross_entropy.vjp(_sparse_cross_entropy_rule, None)


def _log_probabilities(logits: Tensor, axis: int, label: str) -> Tensor:
    """log_softmax, for half precision in float32."""
    if not logits.dtype.is_floating:
        raise _refused(logits._array.dtype, label)
    return log_softmax(elementwise.cast(logits, dtypes.float32) if logits.dtype.size == 2 else logits, axis=axis)


def softmax_cross_entropy(labels: Any, logits: Any, axis: int = -1) -> Tensor:
    """-Σ labels · log_softmax(logits) along an axis; gradients flow to both.

    The gradient is exact for labels that do not sum to 1, too, where TensorFlow's is not.
    """
    logits, labels = convert_to_tensor(logits), convert_to_tensor(labels)
    shape, given = logits._array.shape, labels._array.shape
    log_probabilities = _log_probabilities(logits, axis, "SoftmaxCrossEntropyWithLogits")
    if len(shape) != len(given) and math.prod(shape) == math.prod(given):
        labels = shapes.reshape(labels, shape=shape)
    elif not _broadcast(shape, given):
        raise InvalidArgumentError(
            message(
                f"logits and labels must be broadcastable: logits_size={dims(shape)} labels_size={dims(given)} "
                "[Op:SoftmaxCrossEntropyWithLogits]",
                expected="one label per logit",
                fix="for class indices use sparse_softmax_cross_entropy_with_logits",
            )
        )
    axis = axis if axis < 0 else axis - len(shape)
    loss = cross_entropy(log_probabilities, elementwise.cast(labels, log_probabilities.dtype), axis=axis)
    return elementwise.cast(loss, logits.dtype)


def _broadcast(x: tuple[int, ...], y: tuple[int, ...]) -> bool:
    return len(x) == len(y) and all(m == n or 1 in (m, n) for m, n in zip(x, y))


def sparse_softmax_cross_entropy(labels: Any, logits: Any) -> Tensor:
    """-log_softmax(logits) at the labelled class on the last axis."""
    logits, labels = convert_to_tensor(logits), convert_to_tensor(labels)
    shape, given = logits._array.shape, labels._array.shape
    label = "SparseSoftmaxCrossEntropyWithLogits"
    if not shape:
        text = f"`logits` cannot be a scalar. Received logits={logits.numpy()}`"
        raise ValueError(message(text, expected="logits of shape (…, classes)"))
    if len(given) != len(shape) - 1:
        raise ValueError(
            message(
                f"`labels.shape.rank` must equal `logits.shape.rank - 1`. Received: labels.shape={given} of rank {len(given)} "
                f"and logits.shape={shape} of rank {len(shape)}",
                fix="for one-hot labels use softmax_cross_entropy_with_logits",
            )
        )
    if given != shape[:-1]:
        raise ValueError(
            message(
                "`labels.shape` must equal `logits.shape` except for the last dimension. "
                f"Received: labels.shape={given} and logits.shape={shape}",
                received=f"labels {given}, logits {shape}",
                expected=f"one class number for each row: labels of shape {shape[:-1]}",
                fix="softmax_cross_entropy_with_logits takes one probability per class",
            )
        )
    if labels.dtype not in (dtypes.int32, dtypes.int64):
        raise _refused(labels._array.dtype, label, "int32, int64", "Tlabels")
    if not shape[-1]:
        text = f"Must have at least one class, but got logits shape {dims(shape)} [Op:{label}]"
        raise InvalidArgumentError(message(text, expected="at least one class in the last axis"))
    loss = sparse_cross_entropy(_log_probabilities(logits, -1, label), labels)
    return elementwise.cast(loss, logits.dtype)


@op(elementwise=True)
def sigmoid_cross_entropy(xp, x, labels):
    """max(x, 0) - x · labels + log(1 + e^-|x|): the cross-entropy of sigmoid(x), without overflow or cancellation."""
    _floating(xp, x, "Sigmoid")
    wide, z = _wide(xp, x), _wide(xp, labels)
    with xp.scope():
        return _like(xp, xp.maximum(wide, _zero(xp, wide)) - wide * z + xp.log1p(xp.exp(-xp.abs(wide))), x)


sigmoid_cross_entropy.vjp(
    lambda xp, g, x, labels: g * (xp.sigmoid(x) - labels),
    lambda xp, g, x: -g * x,
)


@op(elementwise=True)
def weighted_cross_entropy(xp, x, labels, weight):
    """(1 - labels) · x + (1 + (weight - 1) · labels) · log(1 + e⁻ˣ): a sigmoid's, its positive part times a weight."""
    _floating(xp, x, "Sigmoid")
    wide, z = _wide(xp, x), _wide(xp, labels)
    with xp.scope():
        return _like(xp, (1 - z) * wide + (1 + (_wide(xp, weight) - 1) * z) * xp.softplus(-wide), x)


weighted_cross_entropy.vjp(
    lambda xp, g, x, labels, weight: g * (1 - labels - (1 + (weight - 1) * labels) * xp.sigmoid(-x)),
    lambda xp, g, x, weight: g * ((weight - 1) * xp.softplus(-x) - x),
    lambda xp, g, x, labels: g * labels * xp.softplus(-x),
)


def same_shape(x: Tensor, y: Tensor, words: str) -> None:
    """Refuse two tensors of different shapes; ``words`` name them."""
    a, b = x._array.shape, y._array.shape
    if a != b:
        raise ValueError(
            message(
                f"{words} must have the same shape, received ({a} vs {b}).",
                received=f"shapes {a} and {b}",
                expected="one shape for both",
                fix="tf.reshape(labels, logits.shape), or labels[:, tf.newaxis]",
            )
        )


def log_poisson_loss(targets: Any, log_input: Any, full: bool = False) -> Tensor:
    """e^c - c · z for targets z and predictions c = log_input, with ``full`` plus Stirling's log z! for z > 1."""
    c = convert_to_tensor(log_input)
    z = convert_to_tensor(targets)
    same_shape(c, z, "`log_input` and `targets`")
    loss = elementwise.subtract(elementwise.exp(c), elementwise.multiply(c, z))
    if not full:
        return loss
    counted = elementwise.logical_not(elementwise.logical_and(elementwise.greater_equal(z, 0), elementwise.less_equal(z, 1)))
    safe = elementwise.where(counted, z, elementwise.ones_like(z))  # log at 0 would make the gradient nan
    stirling = safe * elementwise.log(safe) - safe + 0.5 * elementwise.log(2 * math.pi * safe)
    return elementwise.add(loss, elementwise.where(counted, stirling, elementwise.zeros_like(z)))


@op(label="L2Loss")
def l2_loss(xp, x):
    """Σ x² / 2"""
    _floating(xp, x, "L2Loss")
    wide = _wide(xp, x)
    return _like(xp, 0.5 * xp.sum(wide * wide), x)


l2_loss.vjp(lambda xp, g, x: g * x)

# Dropout


@op(label="SelectV2")
def masked_scale(xp, x, *, keep, scale):
    """x · scale where ``keep`` (a boolean array) says so, else 0, also for nan."""
    return xp.where(keep, xp.multiply(x, _constant(xp, scale, x)), _zero(xp, x))


masked_scale.vjp(lambda xp, g, *, keep, scale: xp.where(keep, xp.multiply(g, _constant(xp, scale, g)), _zero(xp, g)))


def dropout(x: Any, rate: Any, noise_shape: Any = None, seed: Any = None, *, stateless: bool = False) -> Tensor:
    """Elements set to 0 with probability ``rate``, the others divided by 1 - rate.

    Where ``noise_shape`` has length 1, elements are dropped together along that axis.
    """
    x = convert_to_tensor(x)
    number = isinstance(rate, (int, float, np.floating)) and not isinstance(rate, bool)
    if number and not 0 <= rate < 1:
        text = f"`rate` must be a scalar tensor or a float in the range [0, 1). Received: rate={rate}"
        raise ValueError(message(text, received=f"rate={rate}", expected="the share to drop: 0 <= rate < 1"))
    if not x.dtype.is_floating:
        text = f"`x.dtype` must be a floating point tensor as `x` will be scaled. Received: x_dtype={x.dtype}"
        raise ValueError(message(text, fix="tf.cast(x, tf.float32)"))
    if number and rate == 0:
        return x
    if not number and not (isinstance(rate, (Tensor, Variable, np.ndarray)) and not np.ndim(rate)):
        text = f"`rate` must be a scalar or scalar tensor. Received: rate={rate}"
        raise ValueError(message(text, received=f"rate={shown(rate)}", expected="one number: 0 <= rate < 1"))
    shape = _noise_shape(x._array.shape, noise_shape)
    keep = random.keep_mask(shape, np.float32(float(rate)), seed, stateless=stateless)
    mask = wrap(keep)
    if number and not mask._is_traced():
        return masked_scale(x, keep=keep, scale=1 / (1 - rate))
    scaled = elementwise.divide(x, 1 - elementwise.cast(convert_to_tensor(rate), x.dtype))
    return elementwise.where(mask, scaled, elementwise.zeros_like(scaled))


def _noise_shape(shape: tuple[int, ...], noise_shape: Any) -> tuple[int, ...]:
    if noise_shape is None:
        return shape
    lengths = [*(noise_shape.numpy() if isinstance(noise_shape, Tensor) else noise_shape)]
    if len(lengths) == len(shape):
        lengths = [n if length is None else length for length, n in zip(lengths, shape)]
    noise = tuple(int(n) for n in lengths)
    try:
        np.broadcast_shapes(shape, noise)
    except ValueError:
        raise InvalidArgumentError(
            message(
                f"condition {dims(noise)}, then {dims(shape)}, and else [] must be broadcastable [Op:SelectV2]",
                received=f"noise_shape {noise} for x of shape {shape}",
                expected="1 or the length of x on each axis",
            )
        ) from None
    return noise


# Embeddings and small change


def embedding_lookup(params: Any, ids: Any, max_norm: float | None = None) -> Tensor:
    """Rows of a table by index; several tables count as one below the other. Rows longer than max_norm are shortened."""
    if params is None:
        text = "params must be specified"
        raise ValueError(message(text, received="params=None", expected="a table of shape (rows, width), or a list of them"))
    if isinstance(params, (list, tuple)):
        if not params:
            text = "Length of params is currently 0. Need at least one param."
            raise ValueError(
                message(text, received="an empty list", expected="a table of shape (rows, width), or a list of them")
            )
        params = params[0] if len(params) == 1 else shapes.concatenate(*params, axis=0)
    ids = convert_to_tensor(ids)
    if not ids.dtype.is_integer:
        raise _refused(ids._array.dtype, "GatherV2", "int16, int32, int64", "Tindices")
    rows = indexing.take(params, ids, axis=0)
    if max_norm is None:
        return rows
    axes = tuple(range(ids._array.ndim, rows._array.ndim))
    total = reduce.sum(elementwise.square(rows), axis=axes, keepdims=True)
    limit = convert_to_tensor(max_norm, rows.dtype)
    # Below the limit the factor is 1: a row of zeros has no norm to differentiate.
    longest = elementwise.sqrt(elementwise.maximum(total, elementwise.square(limit)))
    return elementwise.divide(elementwise.multiply(rows, limit), longest)


def zero_fraction(value: Any) -> Tensor:
    """The share of elements that are 0, in float32."""
    array = convert_to_tensor(value)._array
    share = (array.size - np.count_nonzero(array)) / array.size if array.size else np.nan
    return wrap(np.asarray(share, np.float32))


def compute_average_loss(losses: Any, sample_weight: Any = None, global_batch_size: Any = None) -> Tensor:
    """Σ losses · weights / batch size."""
    losses = convert_to_tensor(losses)
    if not losses._array.ndim:
        text = (
            "Invalid value passed for `per_example_loss`. Expected a tensor with at least rank 1. "
            f"Received per_example_loss={losses.numpy()} with rank 0"
        )
        raise ValueError(message(text, expected="one loss per example: shape (batch,)"))
    kind = losses.dtype
    if sample_weight is not None:
        weights = elementwise.cast(convert_to_tensor(sample_weight), kind)
        extra = losses._array.ndim - weights._array.ndim
        if extra > 0 and weights._array.ndim:
            weights = shapes.reshape(weights, shape=(*weights._array.shape, *[1] * extra))
        losses = elementwise.multiply(losses, weights)
    size = losses._array.shape[0] if global_batch_size is None else _batch_size(global_batch_size)
    total = reduce.sum(losses)
    if not size:
        return elementwise.zeros_like(total)
    return elementwise.true_divide(total, size)


def _batch_size(size: Any) -> int:
    array = np.asarray(convert_to_tensor(size))
    if array.ndim:
        text = f"global_batch_size must be scalar.  Expected scalar shape, saw shape: {array.shape}."
        raise ValueError(message(text, expected="one integer"))
    if array.dtype.kind not in "iu":
        text = (
            'global_batch_size must be an integer.  Expected "x" to be integer type.  '
            f"Found: tensor of dtype {dtypes.of(array.dtype)}"
        )
        raise TypeError(message(text, fix="tf.cast(global_batch_size, tf.int32)"))
    if array < 0:
        text = f"global_batch_size must be non-negative. Received: {array}"
        raise InvalidArgumentError(message(text, received=f"global_batch_size={array}", expected="0 or more"))
    return int(array)
