"""Sparse Jacobians and Hessians: colour the pattern, compute one product per colour, put the numbers in their places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.context import level
from gradtape.core.tape import GradientTape, UnconnectedGradients
from gradtape.derivatives.functional import point, scalar
from gradtape.derivatives.sparsity import propagate
from gradtape.errors import message
from gradtape.tangents.jacobian import _ancestors, _pushed, _unbatched, array_of, prefers_forward
from gradtape.values.batched import Batched
from gradtape.values.convert import convert_to_tensor
from gradtape.values.recorded import RECORDED
from gradtape.values.tensor import Tensor, wrap


class Coloring:
    """A pattern and how to compute it: columns (forward) or rows (reverse) of one colour share no row (no column).

    Make it once with `coloring` and give it to every `sparse_jacobian` of the same function.
    """

    def __init__(self, pattern: Any, mode: str | None = None) -> None:
        from scipy import sparse

        pattern = sparse.csr_array(pattern).astype(bool)
        pattern.sum_duplicates()
        self.pattern = pattern
        self.shape = pattern.shape
        self._seeds: np.ndarray | None = None
        columns = _greedy(pattern) if mode != "reverse" else None
        rows = _greedy(pattern.T.tocsr()) if mode != "forward" else None
        self.forward = rows is None or (columns is not None and columns.max(initial=-1) <= rows.max(initial=-1))
        self.colors: np.ndarray = columns if self.forward else rows  # type: ignore[assignment]
        self.count = int(self.colors.max(initial=-1)) + 1
        of_row = np.repeat(np.arange(self.shape[0]), np.diff(pattern.indptr))
        if self.forward:
            self._places = self.colors[pattern.indices] * self.shape[0] + of_row
        else:
            self._places = self.colors[of_row] * self.shape[1] + pattern.indices

    def __repr__(self) -> str:
        way = "columns, forward" if self.forward else "rows, reverse"
        return f"<Coloring of {self.shape[0]}×{self.shape[1]} with {self.pattern.nnz} entries: {self.count} colours ({way})>"

    def seeds(self, dtype: Any) -> np.ndarray:
        """One row per colour with ones at its columns or rows; made once."""
        if self._seeds is None or self._seeds.dtype != dtype:
            self._seeds = np.zeros((self.count, len(self.colors)), dtype)
            used = self.colors >= 0
            self._seeds[self.colors[used], np.flatnonzero(used)] = 1
        return self._seeds

    def filled(self, products: np.ndarray) -> Any:
        """The sparse array from the products with the seeds."""
        from scipy import sparse

        data = np.take(products.reshape(-1), self._places)
        return sparse.csr_array((data, self.pattern.indices, self.pattern.indptr), shape=self.shape)


def coloring(pattern: Any, mode: str | None = None) -> Coloring:
    """Colour a sparsity pattern; ``mode``: 'forward', 'reverse', or None for the one with fewer colours."""
    if mode not in (None, "forward", "reverse"):
        raise ValueError(message("Unknown mode of coloring.", received=repr(mode), expected="'forward', 'reverse' or None"))
    return Coloring(pattern, mode)


def _greedy(pattern: Any) -> np.ndarray:
    """For each column the smallest colour that no column with a common row has; -1 for empty columns."""
    by_column = pattern.T.tocsr()
    rows_of, row_starts = by_column.indices, by_column.indptr
    columns_of, column_starts = pattern.indices, pattern.indptr
    colors = np.full(pattern.shape[1], -1)
    if pattern.nnz and np.diff(column_starts).max() * 4 > pattern.shape[1]:  # a dense row: no two of its columns share
        return np.arange(pattern.shape[1])
    taken: list[int] = [-1] * (int(np.diff(column_starts).max(initial=0)) * int(np.diff(row_starts).max(initial=0)) + 2)
    color_of = colors.tolist()
    rows_list, row_starts_list = rows_of.tolist(), row_starts.tolist()
    columns_list, column_starts_list = columns_of.tolist(), column_starts.tolist()
    for j in range(len(color_of)):
        first, last = row_starts_list[j], row_starts_list[j + 1]
        if first == last:
            continue
        for i in rows_list[first:last]:
            for other in columns_list[column_starts_list[i] : column_starts_list[i + 1]]:
                color = color_of[other]
                if color >= 0:
                    taken[color] = j
        color = 0
        while taken[color] == j:
            color += 1
        color_of[j] = color
    return np.asarray(color_of, np.int64)


def _one(value: Any, role: str) -> Any:
    if not isinstance(value, Tensor) and not hasattr(value, "_tensor"):
        text = f"sparse_jacobian needs one tensor or variable as its {role}."
        raise TypeError(message(text, received=type(value).__name__, fix="one tensor or variable; tf.concat joins several"))
    return value


def jacobian_sparsity(f: Callable, x: Any) -> Any:
    """Where the Jacobian of ``f`` at ``x`` can be other than zero: a boolean scipy.sparse array, outputs × inputs.

    It is that of the computation as recorded: a Python branch, or indices computed from the values (`argmax`, `top_k`), count
    as they are at ``x``. Without such, it holds for every ``x``.

    >>> jacobian_sparsity(lambda x: x[1:] * x[:-1], convert_to_tensor([1.0, 2.0, 3.0])).toarray().astype(int).tolist()
    [[1, 1, 0], [0, 1, 1]]
    """
    x = point(x)
    with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(_one(x, "source"))
        y = convert_to_tensor(f(x))
    return propagate(tape.records, x, y)


def sparse_jacobian(tape: GradientTape, target: Any, source: Any, coloring: Any = None) -> Any:
    """The Jacobian as a scipy.sparse array of shape (target elements, source elements).

    ``coloring`` (of `autodiff.coloring`, or a boolean pattern) saves finding the pattern again. A pattern that needs as many
    products as the dense Jacobian is computed as that.
    """
    from scipy import sparse

    tape._begin("sparse_jacobian")
    target, source = _one(target, "target"), _one(source, "source")
    rows, columns = array_of(target).size, array_of(source).size
    if coloring is None:
        coloring = propagate(tape.records, source, target)
    if not isinstance(coloring, Coloring):
        reverse = array_of(source).dtype.kind == "c" or not _transposable(tape, target)
        coloring = Coloring(coloring, "reverse" if reverse else None)
    if coloring.shape != (rows, columns):
        raise ValueError(
            message("The coloring is of another shape.", received=f"{coloring.shape}", expected=f"{(rows, columns)}")
        )
    if coloring.count >= min(rows, columns) > 3:
        dense = tape.jacobian(target, source, UnconnectedGradients.ZERO)
        return sparse.csr_array(dense.numpy().reshape(rows, columns))
    products = _forward(tape, target, source, coloring) if coloring.forward else _reverse(tape, target, source, coloring)
    if not tape._persistent:
        tape.records = None
    return coloring.filled(products)


def _transposable(tape: GradientTape, target: Any) -> bool:
    """Whether every record can be pushed through."""
    return prefers_forward(tape, target, [])


_CACHED = 2**20  # bytes of tangents to compute with at once: beyond the cache, more of them at a time cost more each


def _forward(tape: GradientTape, target: Any, source: Any, coloring: Coloring) -> np.ndarray:
    array, goal = array_of(source), array_of(target)
    seeds = coloring.seeds(array.dtype).reshape(coloring.count, *array.shape)
    path = _ancestors(target._key, tape.records)
    step = max(1, _CACHED // max(1, array.size * array.itemsize))
    products = np.empty((coloring.count, *goal.shape), goal.dtype)
    for i in range(0, coloring.count, step):
        part = seeds[i : i + step]
        tangent = wrap(part[0]) if step == 1 else wrap(Batched(part, level() + 1))
        with RECORDED.scope():
            found = _pushed(tape.records, path, source._key, tangent, target._key)
        if found is None:
            products[i : i + step] = 0
        else:
            products[i : i + step] = found._array if step == 1 else _unbatched(found, len(part), goal.shape)._array
    return products


def _reverse(tape: GradientTape, target: Any, source: Any, coloring: Coloring) -> np.ndarray:
    array, goal = array_of(source), array_of(target)
    seeds = coloring.seeds(goal.dtype).reshape(coloring.count, *goal.shape)
    step = max(1, _CACHED // max(1, goal.size * goal.itemsize))
    products = np.empty((coloring.count, *array.shape), array.dtype)
    for i in range(0, coloring.count, step):
        part = seeds[i : i + step]
        last = i + step >= coloring.count
        (found,) = tape._pull_back([target], [Batched(part, level() + 1)], [source], last=last, sparse=False)
        products[i : i + step] = 0 if found is None else _unbatched(found, len(part), array.shape)._array
    return products


def sparse_hessian(f: Callable, x: Any, coloring: Any = None) -> Any:
    """The second derivatives of a function with one number as its result, as a scipy.sparse array.

    >>> sparse_hessian(lambda x: x[0] ** 2 * x[1] + x[2] ** 2, convert_to_tensor([1.0, 2.0, 3.0])).toarray().tolist()
    [[4.0, 2.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 2.0]]
    """
    x = point(x)
    with GradientTape(persistent=True, watch_accessed_variables=False) as outer:
        outer.watch(_one(x, "source"))
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(x)
            y = scalar(f(x), "sparse_hessian")
        gradient = convert_to_tensor(tape.gradient(y, x, unconnected_gradients=UnconnectedGradients.ZERO))
    return sparse_jacobian(outer, gradient, x, coloring)
