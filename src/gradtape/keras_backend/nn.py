"""Networks, as Keras looks them up in a backend: `backend.nn`."""

from gradtape.keras_backend.nn_activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_shrink,
    hard_sigmoid,
    hard_silu,
    hard_tanh,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_shrink,
    softmax,
    softplus,
    softsign,
    sparse_plus,
    sparse_sigmoid,
    sparsemax,
    squareplus,
    tanh,
    tanh_shrink,
    threshold,
)
from gradtape.keras_backend.nn_attention import dot_product_attention
from gradtape.keras_backend.nn_conv import conv, conv_transpose, depthwise_conv, separable_conv
from gradtape.keras_backend.nn_ctc import ctc_decode, ctc_loss
from gradtape.keras_backend.nn_labels import multi_hot, one_hot
from gradtape.keras_backend.nn_losses import (
    binary_crossentropy,
    categorical_crossentropy,
    psnr,
    sparse_categorical_crossentropy,
)
from gradtape.keras_backend.nn_normalization import batch_normalization, moments
from gradtape.keras_backend.nn_pool import adaptive_average_pool, adaptive_max_pool, average_pool, max_pool
from gradtape.keras_backend.nn_spatial import depth_to_space, fold, space_to_depth, unfold

__all__ = [
    "adaptive_average_pool", "adaptive_max_pool", "average_pool", "batch_normalization", "binary_crossentropy",
    "categorical_crossentropy", "celu", "conv", "conv_transpose", "ctc_decode", "ctc_loss", "depth_to_space",
    "depthwise_conv", "dot_product_attention", "elu", "fold", "gelu", "glu", "hard_shrink", "hard_sigmoid", "hard_silu",
    "hard_tanh", "leaky_relu", "log_sigmoid", "log_softmax", "max_pool", "moments", "multi_hot", "one_hot", "psnr", "relu",
    "relu6", "selu", "separable_conv", "sigmoid", "silu", "soft_shrink", "softmax", "softplus", "softsign",
    "space_to_depth", "sparse_categorical_crossentropy", "sparse_plus", "sparse_sigmoid", "sparsemax", "squareplus",
    "tanh", "tanh_shrink", "threshold", "unfold",
]  # fmt: skip
