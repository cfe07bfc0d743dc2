"""Records of gradtape/ops/clip.py."""

import numpy as np

from gradtape.ops import clip as ops
from gradtape.testing import OpRecord

RECORDS = [
    OpRecord(
        "clip", ops.clip, lambda rng: [(np.array([-2.0, 0.3, 0.6, 4.0]), np.array(0.1), np.array([1.0, 0.9, 0.5, 1.5]))],
        lambda x, low, high: np.clip(x, low, high),
    ),
]  # fmt: skip
