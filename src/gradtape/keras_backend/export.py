"""`model.export`: the formats it writes belong to other frameworks' runtimes, so it says which way leads there."""

from __future__ import annotations

from typing import Any, NoReturn

from gradtape.errors import UnimplementedError, message

_WHY = "a SavedModel holds a TensorFlow graph, which only TensorFlow can build"
_FIX = (
    "model.save('model.keras'), then in a Python with TensorFlow: KERAS_BACKEND=tensorflow, "
    "keras.models.load_model('model.keras').export(path). To reload the model here, keras.models.load_model; its variables "
    "alone are written by tf.saved_model.save(model, folder)"
)


class ExportError(UnimplementedError, NotImplementedError):
    """Keras's own backends that cannot export raise NotImplementedError."""


class NumpyExportArchive:
    """What Keras makes for `model.export` and `keras.export.ExportArchive`; under the name by which Keras asks for it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse("A model")

    def track(self, resource: Any) -> NoReturn:
        _refuse(f"A {type(resource).__name__}")


def _refuse(what: str) -> NoReturn:
    text = "`export_saved_model` only currently supports the tensorflow, jax and torch backends."
    raise ExportError(message(text, received=f"{what} on gradtape, which cannot be exported", why=_WHY, fix=_FIX))
