"""Samples of the dialect's linear algebra."""

from __future__ import annotations

import numpy as np

import gradtape.ops.decompositions  # noqa: F401 - defines the ops, which are RECORDED


def add_linear_algebra(add, floats, complexes):
    """Well-conditioned matrices: alone, stacked, single precision, complex, and none."""

    eye = np.eye

    def definite(x):
        return x @ x.conj().swapaxes(-1, -2) + eye(x.shape[-1]).astype(x.dtype)

    stacks = [floats(3, 3), floats(2, 4, 4), floats(3, 3, dtype="float32"), complexes(2, 3, 3), floats(0, 3, 3)]
    for x in stacks:
        shifted = x + (5 * eye(x.shape[-1])).astype(x.dtype)
        single = 2e-4 if x.dtype.itemsize == 4 else 1e-9
        for name in ("lu", "qr", "svd", "svdvals", "slogdet", "inv", "expm", "sqrtm"):
            add(name, shifted if name != "expm" else shifted / 4, tolerance=single)
        if x.dtype.kind == "c":
            add("logm", shifted, tolerance=single)
        for name in ("cholesky", "eigh", "eigvalsh"):
            add(name, definite(x), tolerance=single)
        right = floats(*x.shape[:-1], 2).astype(x.dtype)
        add("solve", shifted, right, tolerance=single)
        add("triangular_solve", shifted, right, lower=True, tolerance=single)
        add("triangular_solve", shifted, right[..., :1], lower=False, tolerance=single)
        if x.shape[-1] == 3:
            diagonals = floats(*x.shape).astype(x.dtype)
            diagonals[..., 1, :] += 9
            add("tridiagonal_solve", diagonals, right, tolerance=single)
    triangle = np.array([[1.0, 1, 2], [0, 2, 3], [0, 0, 3]])  # eigenvalues 1, 2, 3, in this order everywhere
    add("eig", triangle, tolerance=1e-9)
    add("eigvals", triangle, tolerance=1e-9)
    add("solve", floats(3, 3) + 5 * eye(3), floats(2, 3, 2), tolerance=1e-9)
    add("triangular_solve", floats(2, 3, 3) + 5 * eye(3), floats(3, 2), lower=True, tolerance=1e-9)
    add("pinv", floats(2, 4, 3), eye(2)[0] / 2, tolerance=1e-9)
    add("pinv", complexes(3, 4), eye(1)[0, 0] / 9, tolerance=1e-9)
    for shape in ((4, 2), (2, 4)):
        for full in (False, True):
            add("qr", floats(*shape), full=full, tolerance=1e-9)
            add("svd", floats(*shape), full=full, tolerance=1e-9)
