"""`tf.config.optimizer`: options of TensorFlow's graph optimizer, noted and returned; XLA optimizes compiled programs."""

from __future__ import annotations

from typing import Any

from gradtape.scope import missing

__all__ = ["get_experimental_options", "get_jit", "set_experimental_options", "set_jit"]
__getattr__ = missing(__name__, __all__)

_options: dict[str, Any] = {"disable_model_pruning": False, "disable_meta_optimizer": False}
_jit = {"mode": ""}


def get_jit() -> str:
    """The mode that was set."""
    return _jit["mode"]


def set_jit(enabled: bool | str) -> None:
    """Accepted: functions are compiled where tf.function says so."""
    _jit["mode"] = "autoclustering" if enabled in (True, "autoclustering") else ""


def get_experimental_options() -> dict[str, Any]:
    """The options that were set."""
    return dict(_options)


def set_experimental_options(options: dict[str, Any]) -> None:
    """Accepted: XLA optimizes on its own."""
    _options.update(options)
