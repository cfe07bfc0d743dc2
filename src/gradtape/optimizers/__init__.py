"""Optimizers with the names, arguments and results of Keras, on raw arrays and in place.

>>> x = Variable(5.0)
>>> opt = Adam(learning_rate=0.5)
>>> for _ in range(200):
...     with GradientTape() as tape:
...         loss = (x - 2.0) ** 2
...     _ = opt.apply_gradients([(tape.gradient(loss, x), x)])
>>> round(float(x), 2)
2.0
"""

from __future__ import annotations

from typing import Any

from gradtape.errors import message, shown
from gradtape.optimizers import schedules
from gradtape.optimizers.adam import Adam, Adamax, AdamW, Nadam
from gradtape.optimizers.adaptive import Adadelta, Adagrad, Ftrl, RMSprop
from gradtape.optimizers.base import Optimizer
from gradtape.optimizers.loss_scale import LossScale
from gradtape.optimizers.sgd import SGD, Lion
from gradtape.scope import missing

__all__ = [
    "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Ftrl", "Lion", "LossScale", "Nadam", "Optimizer", "RMSprop",
    "deserialize", "get", "schedules", "serialize",
]  # fmt: skip

_CLASSES: dict[str, Any] = {
    c.__name__.lower(): c for c in (SGD, Adadelta, Adagrad, Adam, AdamW, Adamax, Ftrl, Lion, LossScale, Nadam, RMSprop)
}


def serialize(optimizer: Any) -> dict[str, Any]:
    """A dictionary from which `deserialize` makes such an optimizer again, without its state."""
    return {"class_name": type(optimizer).__name__, "config": optimizer.get_config()}


def deserialize(config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Any:
    """The optimizer that `serialize` (Keras's too) described."""
    name = config["class_name"]
    found = (custom_objects or {}).get(name) or _CLASSES.get(name.lower())
    if found is None:
        raise ValueError(message(f"Unknown optimizer: {name!r}.", expected=f"one of {', '.join(_CLASSES)}"))
    return found.from_config(config["config"])


def get(identifier: Any) -> Any:
    """An optimizer from its name, its dictionary, or itself.

    >>> get("sgd").momentum
    0.0
    """
    if isinstance(identifier, (Optimizer, LossScale)):
        return identifier
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if isinstance(identifier, str):
        return deserialize({"class_name": identifier, "config": {}})
    text = f"Could not interpret optimizer identifier: {identifier}"
    raise ValueError(message(text, received=shown(identifier), expected="an optimizer, its name, or its config"))

__getattr__ = missing(__name__, __all__)
