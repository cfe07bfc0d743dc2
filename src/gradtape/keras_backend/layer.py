"""What every Keras layer inherits from its backend: control flow over tensors in a user's ``call`` is converted in programs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gradtape.function.autograph import convert
from gradtape.function.autograph_convert import is_users
from gradtape.ops.execution import staging

__all__ = ["NumpyLayer", "TapeLayer"]

_OVERRIDDEN = ("call", "compute_loss", "compute_metrics")
"""Methods of the user that Keras's own code calls; Keras's code is not converted, so nothing else would lead to them."""


class TapeLayer:
    """The part of `keras.Layer` that is ours."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in _OVERRIDDEN:
            method: Any = cls.__dict__.get(name)
            if is_users(method):
                setattr(cls, name, _converted_in_programs(method))


def _converted_in_programs(method: Callable) -> Callable:
    """A method that is converted while a program is made, and runs as it is written everywhere else."""

    @functools.wraps(method)
    def either(*args: Any, **kwargs: Any) -> Any:
        return (convert(method) if staging.inside else method)(*args, **kwargs)

    return either


NumpyLayer = TapeLayer  # the name by which Keras asks for it
