"""Which outputs can depend on which inputs: index sets, propagated through the records of a tape.

A `Pattern` stands for a tensor and holds, for each of its elements, the set of source elements that it may depend on, as the
rows of a sparse boolean matrix. The namespace `SPARSITY` runs the kernels of the recorded ops on patterns. No number is looked
at, so an entry that happens to be zero at one point is not missed; where a function has no rule, every element of the result
depends on everything that its arguments depend on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.backprop import PAIR
from gradtape.core.context import suspended
from gradtape.core.op import REGISTRY
from gradtape.derivatives.namespaces import Namespace
from gradtape.tangents.forward import as_general
from gradtape.values.tensor import Tensor
from gradtape.xp import dialect
from gradtape.xp import numpy as NUMPY


class Pattern:
    """A tensor of which only shape, dtype and dependence are known."""

    __slots__ = ("dtype", "matrix", "shape")
    __array_ufunc__ = None

    def __init__(self, matrix: Any, shape: tuple[int, ...], dtype: Any) -> None:
        self.matrix = matrix  # scipy.sparse, one row per element in C order, one column per source element
        self.shape = shape
        self.dtype = dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize


def unknown(shape: tuple, dtype: Any, columns: int) -> Pattern:
    """A constant whose value nobody kept: it depends on no source, but no rule may look at it."""
    from scipy import sparse

    return Pattern(sparse.csr_array((math.prod(shape), columns), dtype=bool), shape, np.dtype(dtype))


def _entry(name: str, rule: Callable) -> Callable:
    def call(*args: Any, **attributes: Any) -> Any:
        if not any(type(x) is Pattern for x in args):
            return getattr(NUMPY, name)(*args, **attributes)
        return rule(name, *(x if type(x) is Pattern else np.asarray(x) for x in args), **attributes)

    return call


def _numbers(x: Any) -> np.ndarray:
    """Ones in place of a pattern: harmless numbers for a kernel that is run for its shape."""
    return np.ones(x.shape, x.dtype) if type(x) is Pattern else x


def _like(name: str, args: tuple, attributes: dict) -> Any:
    """What the function returns for some numbers, for shape and dtype."""
    with NUMPY.scope():
        return getattr(NUMPY, name)(*map(_numbers, args), **attributes)


def _selected(x: Pattern, positions: np.ndarray) -> Any:
    """The rows of the matrix at these positions (from 1 on; 0: an element that depends on nothing)."""
    from scipy import sparse

    flat = positions.ravel()
    if not len(flat) or flat.min() > 0:
        return x.matrix[flat - 1]
    empty = sparse.csr_array((1, x.matrix.shape[1]), dtype=bool)
    return sparse.vstack([empty, x.matrix]).tocsr()[flat]


def _grouped(x: Pattern, groups: np.ndarray, count: int) -> Any:
    """``count`` rows, each the union of the rows of the elements in that group."""
    from scipy import sparse

    flat = groups.ravel()
    select = sparse.csr_array((np.ones(len(flat), bool), (flat, np.arange(len(flat)))), shape=(count, len(flat)))
    return (select @ x.matrix).astype(bool)


def _positions(x: Pattern) -> np.ndarray:
    return np.arange(1, x.size + 1).reshape(x.shape)


def _union(parts: list) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total.astype(bool)


def _elementwise(name: str, *args: Any, **attributes: Any) -> Any:
    shape = np.broadcast_shapes(*(x.shape for x in args))
    dtype = _like(name, tuple(_scalar(x) for x in args), attributes).dtype
    parts = [
        x.matrix if x.shape == shape else _selected(x, np.broadcast_to(_positions(x), shape))
        for x in args if type(x) is Pattern
    ]  # fmt: skip
    return Pattern(_union(parts), shape, dtype)


def _scalar(x: Any) -> np.ndarray:
    return np.ones((), x.dtype)


def _constant(name: str, x: Pattern, **attributes: Any) -> np.ndarray:
    result = _like(name, (_scalar(x),), attributes)
    return np.broadcast_to(result, x.shape)


def _moving(name: str, x: Any, *others: Any, **attributes: Any) -> Any:
    """Elements change their places: the function, applied to the numbers of the elements, says where to."""
    if type(x) is not Pattern or any(type(o) is Pattern for o in others):
        return _mixing(name, x, *others, **attributes)
    attributes = {**attributes, "value": 0} if name == "pad" else attributes
    places = np.asarray(getattr(NUMPY, name)(_positions(x), *others, **attributes))
    return Pattern(_selected(x, places), places.shape, x.dtype)


def _joining(name: str, *args: Any, axis: int) -> Pattern:
    from scipy import sparse

    columns = next(x.matrix.shape[1] for x in args if type(x) is Pattern)
    empty = [sparse.csr_array((int(np.prod(x.shape)), columns), dtype=bool) if type(x) is not Pattern else None for x in args]
    rows = sparse.vstack([x.matrix if type(x) is Pattern else e for x, e in zip(args, empty)]).tocsr()
    sizes = [int(np.prod(x.shape)) for x in args]
    starts = np.cumsum([0, *sizes[:-1]])
    numbers = [np.arange(start, start + n).reshape(x.shape) for x, start, n in zip(args, starts, sizes)]
    places = getattr(NUMPY, name)(*numbers, axis=axis)
    dtype = next(x.dtype for x in args if type(x) is Pattern)
    return Pattern(rows[places.ravel()], places.shape, dtype)


_READERS = {"take_transpose": "take", "along_axis_transpose": "take_along_axis", "scatter_nd": "gather_nd"}


def _adding(name: str, x: Any, indices: Any, *, shape: tuple, **attributes: Any) -> Any:
    """The transpose of a reader: where that one reads from, this one adds to."""
    if type(x) is not Pattern or type(indices) is Pattern:
        return _mixing(name, x, indices, shape=shape, **attributes)
    goals = getattr(NUMPY, _READERS[name])(np.arange(math.prod(shape)).reshape(shape), indices, **attributes)
    return Pattern(_grouped(x, np.broadcast_to(goals, x.shape), math.prod(shape)), tuple(shape), x.dtype)


def _reducing(name: str, x: Pattern, *, axis: Any = None, keepdims: bool = False) -> Pattern:
    result = _like(name, (x,), {"axis": axis, "keepdims": keepdims})
    kept = NUMPY.sum(np.zeros(x.shape, np.int8), axis=axis, keepdims=True)
    goals = np.broadcast_to(np.arange(kept.size).reshape(kept.shape), x.shape)
    return Pattern(_grouped(x, goals, kept.size), result.shape, result.dtype)


def _choosing(name: str, x: Pattern, *, axis: Any, **attributes: Any) -> Pattern:
    """Which one it is depends on all along the axis: a rule may choose to differentiate that."""
    result = _like(name, (x,), {"axis": axis, **attributes})
    return Pattern(_reducing("sum", x, axis=axis, keepdims=True).matrix, result.shape, result.dtype)


def _along(name: str, x: Pattern, *, axis: int, **attributes: Any) -> Pattern:
    """Cumulative sums, sorting: every element depends on all along the axis."""
    total = _reducing("sum", x, axis=axis, keepdims=True)
    dtype = _like(name, (x,), {"axis": axis, **attributes}).dtype
    return Pattern(_selected(total, np.broadcast_to(_positions(total), x.shape)), x.shape, dtype)


def _one_hot(name: str, x: Pattern, *, depth: int, dtype: Any) -> Pattern:
    shape = (*x.shape, depth)
    return Pattern(_selected(x, np.broadcast_to(_positions(x)[..., None], shape)), shape, np.dtype(dtype))


def _einsum(name: str, *args: Any, equation: str) -> Pattern:
    """An operand is summed over its letters that the output lacks, and spread over those that it lacks itself."""
    inputs, output = equation.split("->")
    terms = inputs.split(",")
    sizes = {c: n for term, x in zip(terms, args) for c, n in zip(term, x.shape)}
    shape = tuple(sizes[c] for c in output)
    parts = []
    for term, x in zip(terms, args):
        if type(x) is Pattern:
            kept = "".join(c for c in output if c in term)
            goals = np.arange(math.prod(sizes[c] for c in kept)).reshape([sizes[c] for c in kept])
            spread = np.broadcast_to(_axes(goals, kept, term), x.shape) if len(set(term)) == len(term) else None
            if spread is None:
                return _mixing(name, *args, equation=equation)
            reduced = Pattern(_grouped(x, spread, goals.size), goals.shape, x.dtype)
            parts.append(_selected(reduced, np.broadcast_to(_axes(_positions(reduced), kept, output), shape)))
    return Pattern(_union(parts), shape, args[0].dtype)


def _axes(array: np.ndarray, have: str, want: str) -> np.ndarray:
    """Axes in the order of ``want``, of length 1 where ``have`` lacks them."""
    order = [c for c in want if c in have]
    return array.transpose([have.index(c) for c in order]).reshape(
        [array.shape[have.index(c)] if c in have else 1 for c in want]
    )


def _matmul(name: str, x: Any, y: Any) -> Pattern:
    shape = _like("matmul", (x, y), {}).shape
    parts = []
    for operand, axis in ((x, -1), (y, -2)):
        if type(operand) is Pattern:
            total = _reducing("sum", operand, axis=axis, keepdims=True)
            parts.append(_selected(total, np.broadcast_to(_positions(total), shape)))
    return Pattern(_union(parts), shape, x.dtype)


def _mixing(name: str, *args: Any, **attributes: Any) -> Any:
    """The rule for want of one: every element of the result depends on whatever an argument depends on."""
    result = _like(name, args, attributes)
    results = result if type(result) is tuple else (result,)
    matrices = [_grouped(x, np.zeros(x.size, int), 1) for x in args if type(x) is Pattern]
    row = _union(matrices)
    found = tuple(Pattern(row[np.zeros(r.size, int)], r.shape, r.dtype) for r in results)
    return found if type(result) is tuple else found[0]


_MOVING = (
    "reshape transpose matrix_transpose adjoint expand_dims squeeze broadcast_to tile pad roll repeat flip getitem put_slice "
    "take take_along_axis gather_nd"
).split()
SPARSITY: Any = Namespace(_entry, _mixing)  # a function without a rule mixes everything
for _names, _function in (
    (dialect.ELEMENTWISE, _elementwise),
    (("zeros_like", "ones_like"), _constant),
    (_MOVING, _moving),
    (("concatenate", "stack"), _joining),
    (_READERS, _adding),
    (("sum", "prod", "max", "min", "any", "all"), _reducing),
    (("argmax", "argmin"), _choosing),
    (("cumsum", "cumprod", "sort", "argsort"), _along),
    (("one_hot",), _one_hot),
    (("einsum",), _einsum),
    (("matmul",), _matmul),
    (("adjoint_matmul",), lambda name, x, y: SPARSITY.matmul(SPARSITY.adjoint(x), y)),
    (("matmul_adjoint",), lambda name, x, y: SPARSITY.matmul(x, SPARSITY.adjoint(y))),
):
    SPARSITY.give(_names, _function)
SPARSITY.operators(Pattern)


def propagate(records: dict, source: Any, target: Any) -> Any:
    """The pattern of the Jacobian of ``target`` by ``source`` as a boolean scipy.sparse array, from a tape's records."""
    from scipy import sparse

    array = source._array if isinstance(source, Tensor) else source._tensor._array
    goal = target._array if isinstance(target, Tensor) else target._tensor._array
    known = {source._key: Pattern(sparse.eye_array(array.size, dtype=bool, format="csr"), array.shape, array.dtype)}
    with suspended():
        for key, record in records.items():
            if record[0] is not None and any(k in known for k in record[2]):
                _pass(key, record, known)
    found = known.get(target._key)
    return found.matrix if found is not None else sparse.csr_array((goal.size, array.size), dtype=bool)


def _pass(key: Any, record: tuple, known: dict) -> None:
    """Put the patterns of a record's outputs beside those of its inputs."""
    if record[0] is PAIR:
        record = as_general(record, key)
    _, op, keys, shapes, kinds, kept, attributes, outputs, _ = record
    columns = next(known[k].matrix.shape[1] for k in keys if k in known)
    arguments = []
    for i, k in enumerate(keys):
        name = op.inputs[0 if op.variadic else i] if op.inputs else ""
        value = kept.get(name)
        constant = value[i] if type(value) is tuple else value
        if k in known:
            arguments.append(known[k])
        elif constant is not None:
            arguments.append(constant._array)
        elif shapes[i] is not None:
            arguments.append(unknown(shapes[i], kinds[i], columns))
    results = _run(op, record, arguments, attributes)
    for k, pattern in zip(outputs, results):
        if k is not None and type(pattern) is Pattern:
            known[k] = pattern


def _run(op: Any, record: tuple, arguments: list, attributes: dict) -> tuple:
    """The kernel on patterns. A user's own gradient, or a kernel that looks at numbers, mixes everything."""
    if op.rules and op.label not in REGISTRY:
        try:
            found = op.kernel(SPARSITY, *arguments, **attributes)
            return found if type(found) is tuple else (found,)
        except Exception:  # whatever a kernel may do with numbers cannot be done with patterns
            pass
    row = _union([_grouped(x, np.zeros(x.size, int), 1) for x in arguments if type(x) is Pattern])
    return tuple(Pattern(row[np.zeros(math.prod(s), int)], s, d) for s, d in record[8])
