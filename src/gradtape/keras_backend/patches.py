"""The few places where Keras asks for the name of its backend and knows only those it ships with, or what they do."""

from __future__ import annotations

import functools
from typing import Any, NoReturn

from keras.src.backend import config
from keras.src.backend.common import dtypes
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.dtype_policies import DTypePolicy
from keras.src.layers import Embedding
from keras.src.utils import backend_utils, traceback_utils

from gradtape.errors import message
from gradtape.function.leaves import Mismatch
from gradtape.keras_backend import batches, event_files, export, legacy_names, optimizer, saving, tensorflow_names
from gradtape.ops.execution import Unstageable

_WIDE = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}


def apply() -> None:
    """Called once, when all of Keras is imported."""
    config._BACKEND = "gradtape"
    dtypes.BIT64_TO_BIT32_DTYPE.clear()
    dtypes._lattice_result_type = _narrowed(dtypes._lattice_result_type)
    backend_utils.DynamicBackend.__getattr__ = _of_backend(backend_utils.DynamicBackend.__getattr__)
    backend_utils.in_tf_graph = lambda: False  # a layer in a data pipeline runs as everywhere
    traceback_utils.format_argument_value = _argument
    ours: Any
    for ours in (Unstageable, Mismatch):
        ours._keras_call_info_injected = True  # Keras would raise something else in its place
    KerasTensor.__array_priority__ = 200  # tensor * symbol is the symbol's to say, as symbol * tensor
    KerasTensor.__gradtape_tensor__ = _has_no_value
    Embedding.enable_lora = _of_the_variable(Embedding.enable_lora)
    optimizer.install()
    saving.install()
    tensorflow_names.install()
    legacy_names.install()
    batches.install()
    event_files.install()
    export.install()


def _narrowed(result_type: Any) -> Any:
    """64 bits stay where somebody asked for them, as in TensorFlow; mixing narrower dtypes does not widen to them."""

    def found(*args: Any) -> str:
        dtype = result_type(*args)
        asked = config.floatx() == "float64" or any(getattr(arg, "name", arg) in _WIDE for arg in args)
        return dtype if asked else _WIDE.get(dtype, dtype)

    return found


def _of_backend(of_another: Any) -> Any:
    """What a layer that runs inside and outside of data pipelines computes with."""

    def found(dynamic: Any, name: str) -> Any:
        from keras.src import backend

        return getattr(backend, name) if dynamic._backend == config.backend() else of_another(dynamic, name)

    return found


def _argument(value: Any) -> str:
    """An argument as error messages of layers show it."""
    from keras.src import backend

    if backend.is_tensor(value):
        return f"tf.Tensor(shape={tuple(value.shape)}, dtype={value.dtype.name})"
    return repr(value)


def _has_no_value(symbol: KerasTensor) -> NoReturn:
    """A function of ours has met what `keras.Input` or a layer applied to it gave."""
    raise ValueError(
        message(
            "A KerasTensor cannot be used as input to a TensorFlow function.",
            received=repr(symbol),
            why="it stands for a shape and a dtype while a functional model is put together, and has no value",
            fix="call the function in a layer: keras.layers.Lambda(lambda x: tf.exp(x))(symbol); or use keras.ops.exp(symbol)",
        )
    )


def _of_the_variable(enable_lora: Any) -> Any:
    """Keras sets ``layer.embeddings.trainable``; of 4-bit embeddings that is a tensor unpacked from the variable, for once."""

    @functools.wraps(enable_lora)
    def enabled(layer: Any, *args: Any, **kwargs: Any) -> None:
        policy = layer._dtype_policy
        layer._dtype_policy = DTypePolicy("float32")  # not quantized: now `embeddings` is the variable itself
        try:
            enable_lora(layer, *args, **kwargs)
        finally:
            layer._dtype_policy = policy

    return enabled
