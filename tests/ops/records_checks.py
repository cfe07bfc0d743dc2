"""Records of gradtape/ops/checks.py."""

import numpy as np

from gradtape.errors import InvalidArgumentError
from gradtape.ops import checks as ops
from gradtape.testing import OpRecord

RECORDS = [
    OpRecord("check_numerics", lambda x: ops.numerics(x, "loss"), lambda rng: [(rng.normal(size=(2, 3)),)], lambda x: x,
             bad=[(lambda: (np.array([1.0, np.nan]),), InvalidArgumentError, "loss : Tensor had NaN values"),
                  (lambda: (np.array([np.inf, np.nan]),), InvalidArgumentError, "loss : Tensor had Inf and NaN values"),
                  (lambda: (np.array([1]),), InvalidArgumentError, "int64 is not in the list of allowed values")]),
]  # fmt: skip
