"""Loads the real Keras 3 with gradtape as its backend."""

from __future__ import annotations

import importlib
import os
import sys
import types
import warnings

from gradtape.errors import message
from gradtape.imports import Alias, below

TESTED = ((3, 15), (3, 16))
"""The versions of Keras that its own tests were run with on this backend: from, and below."""

_SLOT = "keras.src.backend.numpy"
_BACKEND = "gradtape.keras_backend"


def load() -> types.ModuleType:
    """Keras as `tf.keras` spells it, computing on gradtape."""
    if "keras" in sys.modules:
        _refuse_another_backend()
    else:
        _import()
    importlib.import_module("keras._tf_keras.keras.saving")  # the only part that the package itself does not import
    return importlib.import_module("keras._tf_keras.keras")


def _refuse_another_backend() -> None:
    config = sys.modules.get("keras.src.backend.config")
    name = config.backend() if config is not None else "an unknown one"
    if name == "gradtape":
        return
    raise RuntimeError(
        message(
            f"Keras is already imported, and computes on {name}.",
            expected="Keras loaded by gradtape: it chooses its backend when it is first imported",
            fix="import gradtape.keras before anything imports keras; then `import keras` gives this same Keras",
        )
    )


def _import() -> None:
    backend = Alias(_SLOT, lambda name: importlib.import_module(_BACKEND + name[len(_SLOT) :]))
    before = os.environ.get("KERAS_BACKEND")
    os.environ["KERAS_BACKEND"] = "numpy"
    backend.install()
    try:
        keras = importlib.import_module("keras")
        importlib.import_module("gradtape.keras_backend.patches").apply()
    except BaseException as error:
        backend.remove()
        _forget()
        if isinstance(error, ModuleNotFoundError) and error.name == "keras":
            text = "tf.keras needs the package keras, which is not installed."
            raise ImportError(message(text, fix="pip install 'gradtape[keras]'")) from None
        raise
    finally:
        if before is None:
            del os.environ["KERAS_BACKEND"]
        else:
            os.environ["KERAS_BACKEND"] = before
    _check_version(keras.__version__)


def _forget() -> None:
    """A half-imported Keras is worse than none: the next attempt begins anew."""
    for name in [name for name in sys.modules if name.split(".")[0] == "keras" or name.startswith(_BACKEND)]:
        del sys.modules[name]


def _check_version(version: str) -> None:
    found = tuple(int(part) for part in version.split(".")[:2])
    if not TESTED[0] <= found < TESTED[1]:
        tested, below_ = (".".join(map(str, bound)) for bound in TESTED)
        warnings.warn(f"gradtape is tested with Keras from {tested} to below {below_}; this is {version}.", stacklevel=4)


def serve_submodules(keras: types.ModuleType) -> None:
    """``from gradtape.keras.layers import Dense``: every submodule is Keras's own."""
    prefix = "gradtape.keras"
    Alias(prefix, lambda name: below(keras, name[len(prefix) + 1 :]), root=False).install()
