"""Names of Keras 1 and 2: `tf.keras.backend`, which Keras has for TensorFlow alone, in words of TensorFlow 1; and others."""

from __future__ import annotations

import contextlib
import sys
import types
from typing import Any

from keras.src.utils.module_utils import tensorflow as tf  # which is gradtape: see `tensorflow_names`

from gradtape.keras_backend import nn
from gradtape.keras_backend.variables import convert_to_tensor
from gradtape.values.dtypes import as_dtype
from gradtape.values.tensor import Tensor


def install() -> None:
    """Let Keras's legacy functions find what they ask TensorFlow for."""
    legacy: Any = sys.modules["keras.src.legacy.backend"]
    legacy.tf = _Names("tensorflow")
    public: Any = sys.modules["keras._tf_keras.keras.backend"]
    public.softmax = legacy.softmax = _softmax
    public.set_value = legacy.set_value = _set_value
    for part in ("losses", "metrics"):  # `tf.keras` lost names that Keras has: mean_squared_error and a few more
        whole, spelled = vars(sys.modules[f"keras.{part}"]), vars(sys.modules[f"keras._tf_keras.keras.{part}"])
        spelled.update({name: value for name, value in whole.items() if name not in spelled})


class _Names(types.ModuleType):
    """gradtape, and beside it what those functions use of TensorFlow 1 and of TensorFlow's inside."""

    def __getattr__(self, name: str) -> Any:
        if name == "compat":
            return types.SimpleNamespace(v1=_VERSION_1)
        return _INTERNAL if name == "__internal__" else getattr(tf, name)


_INTERNAL = types.SimpleNamespace(
    EagerTensor=Tensor,
    eager_context=types.SimpleNamespace(eager_mode=contextlib.nullcontext),
    tf2=types.SimpleNamespace(enabled=lambda: True),
)


class _Version1:
    """Functions by their names and arguments in TensorFlow 1; those that are not here are called as in TensorFlow 2."""

    nn = types.SimpleNamespace(
        convolution=lambda input, filter, dilation_rate, **options: tf.nn.convolution(
            input, filter, dilations=dilation_rate, **options
        ),
        conv2d_transpose=lambda *args, **options: tf.nn.conv2d_transpose(*args, **options),
        max_pool=lambda *args, **options: tf.nn.max_pool2d(*args, **options),
        avg_pool=lambda *args, **options: tf.nn.avg_pool2d(*args, **options),
        ctc_loss=lambda inputs, labels, sequence_length: tf.nn.ctc_loss(
            labels, inputs, label_length=None, logit_length=sequence_length, blank_index=-1
        ),
        ctc_beam_search_decoder=lambda **options: tf.nn.ctc_beam_search_decoder(**options),
    )
    math = types.SimpleNamespace(in_top_k=lambda predictions, targets, k: tf.math.in_top_k(targets, predictions, k))

    def sparse_concat(self, axis: int, tensors: Any) -> Any:
        return tf.sparse.concat(axis, tensors)

    def gradients(self, loss: Any, variables: Any, colocate_gradients_with_ops: bool) -> Any:
        return tf.gradients(loss, variables)

    def assign(self, variable: Any, value: Any) -> Any:
        return variable.assign(value)

    def assign_add(self, variable: Any, value: Any) -> Any:
        return variable.assign_add(value)

    def assign_sub(self, variable: Any, value: Any) -> Any:
        return variable.assign_sub(value)

    def random_normal_initializer(self, mean: float, stddev: float, dtype: Any, seed: int | None) -> Any:
        return lambda shape: tf.random.normal(shape, mean, stddev, dtype, seed)

    def random_uniform_initializer(self, low: float, high: float, dtype: Any, seed: int | None) -> Any:
        return lambda shape: tf.random.uniform(shape, low, high, dtype, seed)

    def __getattr__(self, name: str) -> Any:
        return getattr(tf, name)


_VERSION_1 = _Version1()


def _softmax(x: Any, axis: Any = -1) -> Tensor:
    """Softmax; Keras's own would hang the logits on the result, which has no room for them."""
    x = convert_to_tensor(x)
    if x.shape.rank <= 1:
        raise ValueError(f"Cannot apply softmax to a tensor that is 1D. Received input: {x}")
    return nn.softmax(x, axis if isinstance(axis, int) else tuple(axis))


def _set_value(x: Any, value: Any) -> None:
    """Assign a number or array; Keras's own asks for a DType, where the dtypes of Keras's variables are strings."""
    x.assign(convert_to_tensor(value, as_dtype(x.dtype).name))
