"""The one door for new ops: a kernel over the array dialect, its derivative rules, and a checker.

>>> from gradtape.extend import check_gradients, op
>>> @op
... def cube(xp, x):
...     '''x³'''
...     return x * x * x
>>> _ = cube.vjp(lambda xp, g, x: 3 * g * x * x)
>>> check_gradients(cube, [[1.0, 2.0]])

`op` makes an op from a kernel, `unary` and `binary` one from a dialect function, `dialect.NAMES` lists what kernels and
rules may use, and `OPS` holds every op by name. An op whose label has a gradient registered with `RegisterGradient`
takes that one.
"""

from collections.abc import Callable
from typing import Any

from gradtape.core import op as _op
from gradtape.core.custom import RegisterGradient, adopt, custom_gradient, no_gradient
from gradtape.core.op import OPS, REGISTRY, Op, binary, unary
from gradtape.testing.check import check_gradients
from gradtape.xp import dialect

__all__ = [
    "OPS", "Op", "RegisterGradient", "binary", "check_gradients", "custom_gradient", "dialect", "no_gradient", "op", "unary",
]  # fmt: skip


def op(kernel: Callable | None = None, **options: Any) -> Any:
    """Decorator: an op from a kernel ``kernel(xp, *arrays, *, attributes…)``; see `gradtape.core.op.op`."""
    if kernel is None:
        return lambda function: op(function, **options)
    made = _op.op(kernel, **options)
    if made.op.label in REGISTRY:  # type: ignore[attr-defined]
        adopt(made.op)  # type: ignore[attr-defined]
    return made
