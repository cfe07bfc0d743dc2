"""Records of gradtape/ops/statistics.py."""

import numpy as np

from gradtape.errors import InvalidArgumentError
from gradtape.ops import statistics as ops
from gradtape.testing import OpRecord

RECORDS = [
    OpRecord(
        "add_n", ops.add_n, lambda rng: [tuple(rng.normal(size=(3, 2, 3)))], lambda *xs: sum(xs), complex=True,
        bad=[(lambda: (np.zeros(2), np.zeros(3)), InvalidArgumentError, "must have the same size and shape")],
    ),
]  # fmt: skip
