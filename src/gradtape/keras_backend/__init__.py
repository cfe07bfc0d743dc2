"""What Keras 3 computes on: gradtape in the place of a Keras backend.

`gradtape.keras` loads Keras with this package served as ``keras.src.backend.numpy`` (see `gradtape.keras.loading`); Keras
looks up everything here by name. The modules are spelled as Keras expects a backend's modules to be.
"""

from keras.src.backend.common.name_scope import name_scope

from gradtape.keras_backend import core, image, linalg, math, nn, numpy, random
from gradtape.keras_backend.core import (
    IS_THREAD_SAFE,
    SUPPORTS_COMPLEX_DTYPES,
    SUPPORTS_RAGGED_TENSORS,
    SUPPORTS_SPARSE_TENSORS,
    Variable,
    cast,
    compute_output_spec,
    cond,
    convert_to_numpy,
    convert_to_tensor,
    device_scope,
    is_tensor,
    random_seed_dtype,
    shape,
    vectorized_map,
)
from gradtape.keras_backend.rnn import bidirectional_gru, bidirectional_lstm, cudnn_ok, gru, lstm, rnn

__all__ = [
    "IS_THREAD_SAFE", "SUPPORTS_COMPLEX_DTYPES", "SUPPORTS_RAGGED_TENSORS", "SUPPORTS_SPARSE_TENSORS", "Variable",
    "bidirectional_gru", "bidirectional_lstm", "cast", "compute_output_spec", "cond", "convert_to_numpy",
    "convert_to_tensor", "core", "cudnn_ok", "device_scope", "gru", "image", "is_tensor", "linalg", "lstm", "math",
    "name_scope", "nn", "numpy", "random", "random_seed_dtype", "rnn", "shape", "vectorized_map",
]  # fmt: skip
