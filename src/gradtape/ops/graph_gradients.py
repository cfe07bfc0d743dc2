"""`gradients` and `hessians`: TensorFlow's functions for code inside a compiled function."""

from __future__ import annotations

from typing import Any

from gradtape.core.tape import UnconnectedGradients
from gradtape.errors import message
from gradtape.ops.execution import staging


def gradients(
    ys: Any, xs: Any, grad_ys: Any = None, name: str = "gradients", gate_gradients: bool = False,
    aggregation_method: Any = None, stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list:  # fmt: skip
    """The gradients of the sum of ``ys`` with respect to each of ``xs``, inside a `function`; eager code asks a tape.

    ``grad_ys`` are the factors of ``ys``; values in ``stop_gradients`` count as constants.
    """
    _inside_a_function()
    return staging.control.gradients(ys, xs, grad_ys, stop_gradients, unconnected_gradients)


def hessians(
    ys: Any, xs: Any, gate_gradients: bool = False, aggregation_method: Any = None, name: str = "hessians"
) -> list:
    """The second derivatives of the sum of ``ys`` with respect to each of ``xs``, inside a `function`."""
    _inside_a_function()
    return staging.control.hessians(ys, xs)


def _inside_a_function() -> None:
    if not staging.inside:
        text = "tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead."
        raise RuntimeError(message(text, fix="with tf.GradientTape() as tape: y = f(x); tape.gradient(y, x)"))
