"""Derivatives of a plain function ``f(x)`` at a point ``x``: a tensor, a variable, an array, a number, or a nest of them.

Results keep the structure of ``x``; where ``f`` returns a nest, each part of it comes with that structure inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.tape import GradientTape, UnconnectedGradients
from gradtape.core.variable import Variable
from gradtape.errors import message
from gradtape.ops.vectorized import vectorized_map
from gradtape.tangents.forward import ForwardAccumulator
from gradtape.tangents.jacobian import Chunks, units
from gradtape.values import nest
from gradtape.values.convert import convert_to_tensor
from gradtape.values.recorded import RECORDED
from gradtape.values.tensor import Tensor

_ZERO = UnconnectedGradients.ZERO


def point(x: Any, role: str = "x") -> Any:
    """The nest with tensors at its leaves; what nothing can be differentiated by is refused."""

    def leaf(value: Any) -> Any:
        value = value if isinstance(value, (Tensor, Variable)) else convert_to_tensor(value)
        if not value.dtype.is_trainable:
            raise TypeError(
                message(
                    f"Cannot differentiate with respect to a tensor of dtype {value.dtype.name}.",
                    received=f"{role} with a leaf of shape {tuple(value.shape)} and dtype {value.dtype.name}",
                    expected="floating or complex numbers",
                    fix="tf.cast(x, tf.float32)",
                )
            )
        return value

    return nest.map_structure(leaf, x)


def scalar(y: Any, function: str) -> Tensor:
    """The result of ``f``, which must be one number."""
    y = y if isinstance(y, Tensor) else convert_to_tensor(y)
    if y._array.size != 1:
        raise ValueError(
            message(
                f"{function} needs a function with one number as its result.",
                received=f"a result of shape {y._array.shape}",
                fix="reduce it, for example by tf.reduce_sum; or ask autodiff.jacobian, which takes any shape",
            )
        )
    return y


def along(x: Any, v: Any, what: str = "direction") -> Any:
    """A direction: tensors in the structure, the shapes and the dtypes of ``x``."""
    flat = [convert_to_tensor(t, p.dtype) for p, t in zip(nest.flatten(x), nest.flatten_up_to(x, v))]
    for p, t in zip(nest.flatten(x), flat):
        if tuple(p.shape) != tuple(t.shape):
            raise ValueError(
                message(
                    f"The {what} must have the shape of what it belongs to.",
                    received=f"shape {tuple(t.shape)}",
                    expected=f"{tuple(p.shape)}",
                )
            )
    return nest.pack_sequence_as(x, flat)


def value_and_gradient(f: Callable, x: Any) -> tuple[Any, Any]:
    """``f(x)`` and its gradient; if the value has several elements, the gradient of their sum.

    >>> value, gradient = value_and_gradient(lambda x: x * x, 3.0)
    >>> float(value), float(gradient)
    (9.0, 6.0)
    """
    x = point(x)
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(x)
        y = f(x)
    return y, tape.gradient(y, x, unconnected_gradients=_ZERO)


def vjp(f: Callable, x: Any) -> tuple[Any, Callable]:
    """``f(x)``, and the function from a cotangent of ``f(x)`` to that of ``x``: the product with the transposed Jacobian.

    >>> value, pull_back = vjp(lambda x: x * x, convert_to_tensor([1.0, 2.0]))
    >>> pull_back([1.0, 10.0]).numpy().tolist()
    [2.0, 40.0]
    """
    x = point(x)
    with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(x)
        y = nest.map_structure(convert_to_tensor, f(x))

    def pull_back(g: Any) -> Any:
        return tape.gradient(y, x, output_gradients=along(y, g, "cotangent"), unconnected_gradients=_ZERO)

    return y, pull_back


def jvp(f: Callable, x: Any, v: Any) -> tuple[Any, Any]:
    """``f(x)`` and the product of the Jacobian with ``v``: the derivative of ``f`` along ``v``, by forward mode.

    >>> value, slope = jvp(lambda x: x * x, 3.0, 10.0)
    >>> float(slope)
    60.0
    """
    x = point(x)
    with ForwardAccumulator(x, along(x, v)) as accumulator:
        y = nest.map_structure(convert_to_tensor, f(x))
    return y, accumulator.jvp(y, unconnected_gradients=_ZERO)


def jacobian(f: Callable, x: Any, *, mode: str = "auto", chunk_size: int | None = None, max_bytes: float | None = None) -> Any:
    """The derivative of every element of ``f(x)`` by every element of ``x``; options as in `GradientTape.jacobian`.

    >>> jacobian(lambda x: x * x, convert_to_tensor([1.0, 2.0])).numpy().tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    x = point(x)
    with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(x)
        y = nest.map_structure(convert_to_tensor, f(x))
    options = {"mode": mode, "chunk_size": chunk_size, "max_bytes": max_bytes}
    return nest.map_structure(lambda part: tape.jacobian(part, x, _ZERO, **options), y)  # type: ignore[arg-type]


def hessian(f: Callable, x: Any, *, mode: str = "auto", chunk_size: int | None = None, max_bytes: float | None = None) -> Any:
    """The second derivatives of a function with one number as its result: for each pair of leaves of ``x`` one tensor.

    >>> hessian(lambda x: x[0] ** 2 * x[1], convert_to_tensor([1.0, 2.0])).numpy().tolist()
    [[4.0, 2.0], [2.0, 0.0]]
    """
    x = point(x)

    def gradient(x: Any) -> Any:
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(x)
            y = scalar(f(x), "hessian")
        return nest.map_structure(convert_to_tensor, tape.gradient(y, x, unconnected_gradients=_ZERO))

    return jacobian(gradient, x, mode=mode, chunk_size=chunk_size, max_bytes=max_bytes)


def hvp(f: Callable, x: Any, v: Any) -> Any:
    """The product of the Hessian with ``v``, forward over reverse: about four times the cost of ``f``, no matrix.

    >>> hvp(lambda x: x[0] ** 2 * x[1], convert_to_tensor([1.0, 2.0]), [1.0, 0.0]).numpy().tolist()
    [4.0, 2.0]
    """
    x = point(x)
    with ForwardAccumulator(x, along(x, v)) as accumulator:
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(x)
            y = scalar(f(x), "hvp")
        gradient = nest.map_structure(convert_to_tensor, tape.gradient(y, x, unconnected_gradients=_ZERO))
    return accumulator.jvp(gradient, unconnected_gradients=_ZERO)


def laplacian(f: Callable, x: Any, *, chunk_size: int | None = None, max_bytes: float | None = None) -> Tensor:
    """The trace of the Hessian, Σ ∂²f/∂xᵢ², without the Hessian: columns are computed in chunks and their diagonal summed.

    >>> float(laplacian(lambda x: x[0] ** 2 * x[1] + x[1] ** 3, convert_to_tensor([1.0, 2.0])))
    16.0
    """
    x = point(x)
    total = None
    for leaf in nest.flatten(x):
        array = leaf._array if isinstance(leaf, Tensor) else leaf._tensor._array
        size = array.size
        step = Chunks(chunk_size, max_bytes).step(size, {}, (), [leaf], 0)
        for start in range(0, size, step):
            block = units(size, array.shape, array.dtype)(start, min(start + step, size))
            accumulator = ForwardAccumulator._batch_accumulator([leaf], [block])
            with accumulator:
                with GradientTape(watch_accessed_variables=False) as tape:
                    tape.watch(leaf)
                    y = scalar(f(x), "laplacian")
                gradient = convert_to_tensor(tape.gradient(y, leaf, unconnected_gradients=_ZERO))
            column = accumulator.jvp(gradient, unconnected_gradients=_ZERO)
            part = RECORDED.sum(column * block) if column.shape == block.shape else RECORDED.sum(column) * 0.0
            total = part if total is None else total + part
    return total if total is not None else convert_to_tensor(0.0)


def per_example_gradients(loss: Callable, variables: Any, batch: Any) -> Any:
    """The gradient of ``loss`` of each example by itself: for each variable a tensor with the examples along axis 0.

    ``batch`` is a tensor or a nest with the examples along axis 0; ``loss`` gets one example without that axis, the parts of
    a tuple as separate arguments. All examples are computed at once.

    >>> w = Variable([1.0, 2.0])
    >>> rows = convert_to_tensor([[1.0, 0.0], [0.0, 3.0]])
    >>> per_example_gradients(lambda row: tf.tensordot(row, w, 1) ** 2, w, rows).numpy().tolist()
    [[2.0, 0.0], [0.0, 36.0]]
    """

    def gradient(example: Any) -> Any:
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            value = loss(*example) if type(example) is tuple else loss(example)
            _one_per_example(value)
        found = tape.gradient(value, variables, unconnected_gradients=_ZERO)
        return nest.map_structure(convert_to_tensor, found)

    return vectorized_map(gradient, batch)


def _one_per_example(value: Any) -> None:
    shape = value._array.shape if isinstance(value, Tensor) else np.shape(value)
    if math.prod(shape) != 1:
        raise ValueError(
            message(
                "per_example_gradients needs a loss with one number as its result.",
                received=f"shape {shape} for one example",
                fix="the function sees one example without the batch axis; reduce what is left, for example by tf.reduce_sum",
            )
        )


__all__ = [
    "hessian", "hvp", "jacobian", "jvp", "laplacian", "per_example_gradients", "value_and_gradient", "vjp",
]  # fmt: skip
