"""Where Keras reaches for TensorFlow whatever its backend is: tables, strings, datasets. It finds gradtape there."""

from __future__ import annotations

import importlib
import types

from keras.src.utils import module_utils

from gradtape import io
from gradtape.imports import Alias

_SLOT = "keras.src.backend.tensorflow"
_BACKEND = "gradtape.keras_backend"


def install() -> None:
    """From now on Keras's lazy ``tensorflow`` is gradtape, its ``gfile`` too, and its TensorFlow backend is this one."""
    for lazy, module in (module_utils.tensorflow, importlib.import_module("gradtape")), (module_utils.gfile, io.gfile):
        lazy.module, lazy._available = module, True
    Alias(_SLOT, _resolve).install()


def _resolve(name: str) -> types.ModuleType:
    return importlib.import_module(_BACKEND + name[len(_SLOT) :]) if name != _SLOT else _TensorFlowBackend(_SLOT)


class _TensorFlowBackend(types.ModuleType):
    """This backend under TensorFlow's name: by the name Keras knows that it may count ragged tensors with tf.math."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> object:
        return getattr(importlib.import_module(_BACKEND), name)
