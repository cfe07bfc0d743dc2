"""Methods of `GradientTape` by which it explains itself; what they need is loaded when they are called."""

from __future__ import annotations

from importlib import import_module
from types import MethodType
from typing import Any

from gradtape.core import trace
from gradtape.core.tape import GradientTape

# Each method of the tape: the module of this package that has it, as ``module:function`` where that has another name.
METHODS = {
    "explain": "explain",
    "on_gradient": "hooks",
    "find_nonfinite": "nonfinite",
    "memory": "memory",
    "summary": "summary",
    "profile": "profile",
    "verify": "verify",
    "__str__": "summary:text",
    "__repr__": "summary:short",
    "draw": "draw",
    "page": "page",
    "_repr_html_": "draw:notebook",
}


class _Loaded:
    """A method that is loaded when it is touched; then it is the function itself, with its signature and documentation."""

    def __init__(self, module: str, function: str) -> None:
        self._module, self._function = module, function

    def __get__(self, tape: GradientTape | None, owner: type | None = None) -> Any:
        function = getattr(import_module(f"gradtape.inspect.{self._module}"), self._function)
        return function if tape is None else MethodType(function, tape)


for _name, _home in METHODS.items():
    _module, _, _function = _home.partition(":")
    setattr(GradientTape, _name, _Loaded(_module, _function or _name))


def _check_numerics(entry: trace.Entry) -> None:
    import_module("gradtape.inspect.numerics").check(entry)


def _check_sweep(noted: trace.Trace) -> Any:
    return import_module("gradtape.inspect.numerics").SweepCheck(noted)


trace.CHECKS.update(numerics=_check_numerics, sweep=_check_sweep)
