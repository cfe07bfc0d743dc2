"""`RECORDED`: the dialect on tensors. Its functions are the ops themselves, so what is computed with it is recorded."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.values.tensor import Tensor
from gradtape.xp import numpy as NUMPY


class _Recorded:
    """The namespace; `core.op` gives it each op that is a function of the dialect."""

    scope = staticmethod(NUMPY.scope)

    @staticmethod
    def shape(x: Any) -> tuple[int, ...]:
        return x._array.shape if isinstance(x, Tensor) else np.shape(x)

    @staticmethod
    def dtype(x: Any) -> np.dtype:
        return x._array.dtype if isinstance(x, Tensor) else np.asarray(x).dtype


RECORDED: Any = _Recorded()
