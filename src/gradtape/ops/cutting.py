"""Functions that are no ops: they compute on the host what no tape follows. Their results remember where that was."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gradtape.core.context import thread
from gradtape.core.cuts import DTYPE, NONDIFFERENTIABLE, sever
from gradtape.core.variable import Variable
from gradtape.values import dtypes
from gradtape.values.tensor import Tensor


def cutting(function: Callable | None = None, *, name: str = "") -> Any:
    """Decorator: note for tapes that the gradient of the arguments ends here; ``name`` is what users call the function."""
    if function is None:
        return functools.partial(cutting, name=name)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        out = function(*args, **kwargs)
        if thread.recorders:
            inputs = [x for x in (*args, *kwargs.values()) if isinstance(x, (Tensor, Variable)) and x._key is not None]
            outs = tuple(o for o in (out if isinstance(out, tuple) else (out,)) if isinstance(o, Tensor))
            if inputs and outs:
                cause = DTYPE if outs[0].dtype is dtypes.string else NONDIFFERENTIABLE
                sever(cause, name or function.__name__, outs, inputs)
        return out

    return call
