"""Records of gradtape/ops/matrix.py, in its order: composites, so their names are not in the table of ops."""

import numpy as np

import gradtape as tf
from gradtape.ops import matrix as ops
from gradtape.testing import OpRecord


def several(*shapes):
    return lambda rng: [tuple(rng.normal(size=shape) for shape in shapes)]


def record(name, args, samples, reference, case="", **options):
    function = lambda *xs: getattr(ops, name)(*map(tf.convert_to_tensor, xs), *args)
    return OpRecord(name, function, samples, reference, case=case, **{"complex": True, "empties": list, **options})


def einsum(equation, *shapes):
    return OpRecord("einsum", lambda *xs: ops.einsum(equation, xs), several(*shapes), lambda *xs: np.einsum(equation, *xs),
                    case=f"{equation} {shapes}", complex=True, empties=list)  # fmt: skip


def replaced(x, d):
    out = x.copy()
    out[..., [0, 1], [1, 2]] = d
    return out


RECORDS = [
    record("tensordot", (1,), several((2, 3), (3, 2)), lambda x, y: np.tensordot(x, y, 1)),
    record("tensordot", ([[0, 2], [1, 0]],), several((2, 1, 3), (3, 2, 2)),
           lambda x, y: np.tensordot(x, y, [[0, 2], [1, 0]]), "two axes"),
    record("tensordot", (0,), several((2,), (3,)), lambda x, y: np.tensordot(x, y, 0), "outer"),
    einsum("...ij,...jk->...ik", (2, 1, 2), (1, 2, 3)),
    einsum("...i,i...", (2, 3), (3, 2)),
    einsum("bij,bjk", (1, 2, 2), (1, 2, 2)),
    record("norm", (), several((2, 3)), np.linalg.norm, complex=False),
    record("norm", (1, 1), several((2, 3)), lambda x: np.linalg.norm(x, 1, 1), "ord=1, axis=1", complex=False),
    record("norm", (3.0, 0), several((2, 3)), lambda x: np.linalg.norm(x, 3, 0), "ord=3, axis=0", complex=False),
    record("norm", (np.inf, (0, 1)), several((2, 3)), lambda x: np.linalg.norm(x, np.inf), "matrix, inf", complex=False),
    record("norm", (1, (-2, -1)), several((2, 3)), lambda x: np.linalg.norm(x, 1), "matrix, 1", complex=False),
    record("diag_part", (0, 0, "RIGHT_LEFT"), several((2, 3, 3)), lambda x: np.diagonal(x, 0, -2, -1)),
    record("diag_part", (1, 0, "RIGHT_LEFT"), several((2, 3)), lambda x: np.diagonal(x, 1), "k=1"),
    record("diag_part", ((-1, 1), 0, "RIGHT_LEFT"), several((3, 3)),
           lambda x: np.stack([[0, *np.diagonal(x, 1)], np.diagonal(x), [*np.diagonal(x, -1), 0]]), "band"),
    record("diag", (0, -1, -1, 0, "RIGHT_LEFT"), several((3,)), np.diag),
    record("diag", (-1, -1, -1, 0, "RIGHT_LEFT"), several((2,)), lambda x: np.diag(x, -1), "k=-1"),
    record("set_diag", (1, "RIGHT_LEFT"), several((2, 3, 3), (2, 2)), replaced),
    record("tensor_diag", (), several((2, 2)), lambda x: np.diag(x.ravel()).reshape(2, 2, 2, 2)),
    record("tensor_diag_part", (), several((2, 2, 2, 2)), lambda x: np.diag(x.reshape(4, 4)).reshape(2, 2)),
    record("band_part", (1, 0), several((3, 3)), lambda x: np.tril(np.triu(x, -1))),
    record("trace", (), several((2, 2, 2)), lambda x: np.trace(x, axis1=-2, axis2=-1)),
    record("cross", (), several((2, 3), (2, 3)), np.cross),
]  # fmt: skip
