"""A monitor as a Keras callback. Keras is not imported: if it is loaded, the callback is one of its own, else it is alike."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradtape.inspect.monitor import GradientMonitor


class _Callback:
    """Enters the monitor when training begins, and notes a step after every batch.

    Gradients are those that the model's optimizer is given; where a compiled step hides them, the updates remain.
    """

    monitor: GradientMonitor

    def on_train_begin(self, logs: Any = None) -> None:
        self._gradients: dict[int, Any] = {}
        self._optimizer = getattr(self.model, "optimizer", None)  # type: ignore[attr-defined]
        if self._optimizer is not None:
            self._observe(self._optimizer)
        self.monitor.begin(self._variables())

    def _variables(self) -> list:
        """Those of the model; it has none yet if the first step builds it."""
        return list(self.model.trainable_variables)  # type: ignore[attr-defined]

    def _observe(self, optimizer: Any) -> None:
        """See what the optimizer is given, by standing before its method."""
        apply = optimizer.apply

        def observed(grads: Any, trainable_variables: Any = None, **kwargs: Any) -> Any:
            grads = list(grads)
            for g, v in zip(grads, self._variables() if trainable_variables is None else trainable_variables):
                self._gradients[id(v)] = g
            return apply(grads, trainable_variables, **kwargs)

        optimizer.apply = observed

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        variables = self._variables()
        self.monitor.step([self._gradients.get(id(v)) for v in variables], variables)
        self._gradients.clear()

    def on_train_end(self, logs: Any = None) -> None:
        if self._optimizer is not None:
            del self._optimizer.apply  # the class's own is behind it


def callback(monitor: GradientMonitor) -> Any:
    """The callback of a monitor, to be given to ``model.fit(callbacks=[…])``."""
    keras = sys.modules.get("keras")
    bases = (_Callback, _Plain) if keras is None else (_Callback, keras.callbacks.Callback)
    made = type("GradientMonitorCallback", bases, {})()
    made.monitor = monitor
    return made


class _Plain:
    """What `fit` calls on any callback."""

    model: Any = None
    params: Any = None

    def set_model(self, model: Any) -> None:
        self.model = model

    def set_params(self, params: Any) -> None:
        self.params = params

    def __getattr__(self, name: str) -> Any:
        if name.startswith("on_"):
            return lambda *_, **__: None
        raise AttributeError(name)
