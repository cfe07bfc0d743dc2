"""`tf.debugging`: assertions, checks for infinities and nan, and where operations are placed."""

from __future__ import annotations

from typing import Any

from gradtape.ops import checks as _checks
from gradtape.ops.checks import (
    Assert,
    assert_all_finite,
    assert_equal,
    assert_greater,
    assert_greater_equal,
    assert_integer,
    assert_less,
    assert_less_equal,
    assert_near,
    assert_negative,
    assert_non_negative,
    assert_non_positive,
    assert_none_equal,
    assert_positive,
    assert_proper_iterable,
    assert_rank,
    assert_rank_at_least,
    assert_rank_in,
    assert_same_float_dtype,
    assert_scalar,
    assert_type,
    is_numeric_tensor,
)
from gradtape.ops.numerics import disable_check_numerics, enable_check_numerics
from gradtape.ops.shape_checks import assert_shapes
from gradtape.scope import missing
from gradtape.values.tensor import Tensor

__all__ = [
    "Assert", "assert_all_finite", "assert_equal", "assert_greater", "assert_greater_equal", "assert_integer", "assert_less",
    "assert_less_equal", "assert_near", "assert_negative", "assert_non_negative", "assert_non_positive", "assert_none_equal",
    "assert_positive", "assert_proper_iterable", "assert_rank", "assert_rank_at_least", "assert_rank_in",
    "assert_same_float_dtype", "assert_scalar", "assert_shapes", "assert_type", "check_numerics", "disable_check_numerics",
    "disable_traceback_filtering", "enable_check_numerics", "enable_traceback_filtering", "get_log_device_placement",
    "is_numeric_tensor", "is_traceback_filtering_enabled", "set_log_device_placement",
]  # fmt: skip
__getattr__ = missing(__name__, __all__)

_settings = {"log_device_placement": False, "traceback_filtering": False}


def check_numerics(tensor: Any, message: str, name: str | None = None) -> Tensor:
    """The tensor, if all its elements are finite; else InvalidArgumentError with the message."""
    return _checks.numerics(tensor, message)


def get_log_device_placement() -> bool:
    """Whether placement is logged, as it was set."""
    return _settings["log_device_placement"]


def set_log_device_placement(enabled: bool) -> None:
    """Accepted: eager operations run on the CPU, so there is nothing to log."""
    _settings["log_device_placement"] = bool(enabled)


def enable_traceback_filtering() -> None:
    """Accepted: tracebacks are short as they are."""
    _settings["traceback_filtering"] = True


def disable_traceback_filtering() -> None:
    """Accepted: tracebacks are whole as they are."""
    _settings["traceback_filtering"] = False


def is_traceback_filtering_enabled() -> bool:
    """Whether tracebacks leave out frames, as it was set; they do not."""
    return _settings["traceback_filtering"]
