"""Records of gradtape/ops/creation.py, in its order."""

import functools

import numpy as np

from gradtape.ops import creation as ops
from gradtape.testing import OpRecord

FLOAT = np.dtype(np.float32)


def record(name, reference, **attributes):
    function = functools.partial(getattr(ops, name), **attributes)
    return OpRecord(name, function, lambda rng: [()], reference, floating=False, differentiable=False, jax=False)


RECORDS = [
    record("zeros", lambda: np.zeros((2, 0), FLOAT), shape=(2, 0), dtype=FLOAT),
    record("ones", lambda: np.ones((2, 3), FLOAT), shape=(2, 3), dtype=FLOAT),
    record("full", lambda: np.full((3,), 2.5, FLOAT), shape=(3,), value=2.5, dtype=FLOAT),
    record("arange", lambda: np.arange(1, 5, 2, np.int32), start=1, stop=5, step=2, dtype=np.dtype(np.int32)),
    record("eye", lambda: np.eye(2, 3, dtype=FLOAT), rows=2, columns=3, dtype=FLOAT),
]
