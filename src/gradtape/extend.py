"""The one door for new ops: a kernel over the array dialect, its derivative rules, and a checker.

>>> from gradtape.extend import check_gradients, op
>>> @op
... def cube(xp, x):
...     '''x³'''
...     return x * x * x
>>> _ = cube.vjp(lambda xp, g, x: 3 * g * x * x)
>>> check_gradients(cube, [[1.0, 2.0]])

`op` makes an op from a kernel, `unary` and `binary` one from a dialect function, `dialect.NAMES` lists what kernels and
rules may use, and `OPS` holds every op by name.
"""

from gradtape.core.op import OPS, Op, binary, op, unary
from gradtape.testing.check import check_gradients
from gradtape.xp import dialect

__all__ = ["OPS", "Op", "binary", "check_gradients", "dialect", "op", "unary"]
