"""The tape explains itself: why a gradient is None, where NaN came from, what holds the memory, and pictures of it all."""

from importlib import import_module as _import_module
from typing import Any as _Any

# Where each public name lives; loaded when touched.
_HOME = {
    "Cause": "causes", "Finding": "causes", "GradientMonitor": "monitor", "Memory": "memory", "NonFinite": "nonfinite",
    "Profile": "profile", "Report": "causes", "Summary": "summary", "Verification": "verify",
}  # fmt: skip

__all__ = ["Cause", "Finding", "GradientMonitor", "Memory", "NonFinite", "Profile", "Report", "Summary", "Verification"]


def __getattr__(name: str) -> _Any:
    if name not in _HOME:
        raise AttributeError(f"module 'gradtape.inspect' has no attribute {name!r}")
    return getattr(_import_module(f"gradtape.inspect.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
