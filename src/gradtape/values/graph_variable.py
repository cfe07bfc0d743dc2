"""What scripts ask of the variables of TensorFlow 1, which live in a graph: an answer, or what takes its place."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import message
from gradtape.values.tensor import Tensor, wrap

_NOT_EAGER = "This property/operation is not supported when eager execution is enabled."


class GraphVariable:
    __slots__ = ()

    @property
    def handle(self) -> Any:
        return self

    @property
    def initializer(self) -> None:
        return None

    @property
    def op(self) -> Any:
        text = "Variable.op is undefined when eager execution is enabled."
        raise AttributeError(message(text, fix="the variable holds its value: variable.numpy()"))

    @property
    def graph(self) -> Any:
        text = "Variable.graph is undefined when eager execution is enabled."
        raise AttributeError(message(text, fix="the variable holds its value: variable.numpy()"))

    @property
    def initial_value(self) -> Any:
        raise RuntimeError(message(_NOT_EAGER, fix="keep the initial value in a name of your own"))

    def eval(self, session: Any = None) -> Any:
        raise RuntimeError(message(_NOT_EAGER, fix="variable.numpy()"))

    @property
    def create(self) -> Any:
        raise RuntimeError(message(_NOT_EAGER, fix="leave the call out: a variable is ready when it is made"))

    def is_initialized(self, name: str | None = None) -> Tensor:
        return wrap(np.asarray(True))

    def initialized_value(self) -> Tensor:
        return self.value()  # type: ignore[attr-defined]

    def load(self, value: Any, session: Any = None) -> None:
        self.assign(value)  # type: ignore[attr-defined]
