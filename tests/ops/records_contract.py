"""Records of gradtape/ops/contract.py, in its order."""

import functools

import numpy as np

import gradtape as tf
from gradtape.ops import contract as ops
from gradtape.testing import OpRecord

INVALID = tf.errors.InvalidArgumentError


def several(*shapes):
    return lambda rng: [tuple(rng.normal(size=shape) for shape in shapes)]


EQUATIONS = {
    "ij,jk->ik": [(2, 3), (3, 2)],
    "bij,bjk->bik": [(2, 1, 3), (2, 3, 2)],
    "i,j->ij": [(2,), (3,)],
    "ij->ji": [(2, 3)],
    "ij->": [(2, 3)],
    "ii->i": [(3, 3)],
    "ii->": [(3, 3)],
    "iij->j": [(2, 2, 3)],
    "ij,j->i": [(2, 3), (3,)],
    "ij,ij->": [(2, 3), (2, 3)],
    "ij,kl->ij": [(2, 2), (2, 3)],
    "ij,jk,kl->il": [(2, 2), (2, 2), (2, 1)],
    ",i->i": [(), (3,)],
}

RECORDS = [
    OpRecord("matmul", ops.matmul, several((2, 3), (3, 2)), np.matmul, complex=True,
             empties=lambda: [(np.zeros((0, 3)), np.zeros((3, 2))), (np.zeros((2, 0)), np.zeros((0, 2)))],
             bad=[(lambda: (np.zeros((2, 3)), np.zeros((2, 3))), INVALID, "")]),
    OpRecord("matmul", ops.matmul, several((2, 2, 3), (3, 2)), np.matmul, case="batch and matrix", complex=True, empties=list),
    OpRecord("matmul", ops.matmul, several((2, 1, 2, 3), (3, 3, 1)), np.matmul, case="broadcast batch", complex=True,
             empties=lambda: [(np.zeros((0, 2, 3)), np.zeros((1, 3, 2)))]),
    *(
        OpRecord("adjoint_matmul", ops.adjoint_matmul, several(x, y), lambda x, y: x.conj().mT @ y, case=case, complex=True,
                 empties=lambda: [(np.zeros((3, 0)), np.zeros((3, 2))), (np.zeros((0, 2)), np.zeros((0, 2)))],
                 bad=[(lambda: (np.zeros((3, 2)), np.zeros((2, 3))), INVALID, "")])
        for case, x, y in (("", (3, 2), (3, 2)), ("one column", (3, 2), (3, 1)), ("broadcast batch", (2, 1, 3, 2), (3, 3, 1)))
    ),
    *(
        OpRecord("matmul_adjoint", ops.matmul_adjoint, several(x, y), lambda x, y: x @ y.conj().mT, case=case, complex=True,
                 empties=lambda: [(np.zeros((0, 3)), np.zeros((2, 3))), (np.zeros((2, 0)), np.zeros((2, 0)))],
                 bad=[(lambda: (np.zeros((2, 3)), np.zeros((3, 2))), INVALID, "")])
        for case, x, y in (
            ("", (2, 3), (2, 3)), ("batch and matrix", (2, 2, 3), (2, 3)), ("broadcast batch", (2, 1, 2, 3), (3, 1, 3)),
        )
    ),
    *(
        OpRecord("einsum", functools.partial(ops.einsum, equation=equation), several(*shapes),
                 lambda *xs, equation=equation: np.einsum(equation, *xs), case=equation, complex=True, empties=list)
        for equation, shapes in EQUATIONS.items()
    ),
    OpRecord("einsum", functools.partial(ops.einsum, equation="ij,jk->ik"), several((0, 3), (3, 2)),
             lambda x, y: np.einsum("ij,jk->ik", x, y), case="empty", batched=False),
]  # fmt: skip
