"""Records of gradtape/ops/signal.py, in its order."""

import numpy as np

from gradtape.ops import signal as ops
from gradtape.testing import OpRecord


def one(*shape):
    return lambda rng: [(rng.normal(size=shape),)]


def framed(x, length, step):
    count = max(0, 1 + (x.shape[-1] - length) // step)
    return x[..., np.arange(count)[:, None] * step + np.arange(length)]


def added(x, step):
    *outer, count, length = x.shape
    out = np.zeros((*outer, length + step * (count - 1)), x.dtype)
    for i in range(count):
        out[..., i * step : i * step + length] += x[..., i, :]
    return out


RECORDS = [
    *(
        OpRecord("frames", lambda x, a=a, b=b: ops.frames(x, length=a, step=b), one(2, 7), lambda x, a=a, b=b: framed(x, a, b),
                 case=f"{a} every {b}")
        for a, b in ((3, 2), (4, 1), (2, 3), (7, 7), (9, 1))
    ),
    *(
        OpRecord("overlap_and_add", lambda x, b=b: ops.overlap_and_add(x, step=b), one(2, 3, 5), lambda x, b=b: added(x, b),
                 case=f"every {b}")
        for b in (1, 2, 3, 5, 6)
    ),
]  # fmt: skip
