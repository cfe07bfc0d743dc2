"""Methods of `GradientTape` by which it explains itself; what they need is loaded when they are called."""

from __future__ import annotations

from importlib import import_module
from types import MethodType
from typing import Any

from gradtape.core import trace
from gradtape.core.tape import GradientTape

# Each method of the tape: the module of this package that has it (as ``module:function`` where that has another name), and
# what it does.
METHODS = {
    "explain": ("explain", "Why the gradient of ``target`` by a source is None or zero: a `Report`, to print or to read."),
    "on_gradient": ("hooks", "Call ``fn`` with the gradient of a value as it passes; what it returns replaces it."),
    "find_nonfinite": ("nonfinite", "The first op, forward or backward, that made NaN or infinity of finite values."),
    "memory": ("memory", "The bytes that the tape holds, by op, by line and by tensor."),
    "summary": ("summary", "The recorded ops as a table."),
    "profile": ("profile", "The time of each op's forward run and of its backward rule."),
    "verify": ("verify", "Check every recorded op's rule, at the recorded values, against numerical derivatives."),
    "__str__": ("summary:text", "The recorded ops as a table."),
    "__repr__": ("summary:short", "How many ops the tape has recorded."),
    "draw": ("draw", "Draw the tape as a graph, to an SVG or PNG file."),
    "page": ("page", "Write a page on the tape that explains it in a browser."),
    "_repr_html_": ("draw:notebook", "What a notebook shows of the tape."),
}


class _Loaded:
    """A method that is loaded when it is touched; then it is the function itself, with its signature and documentation."""

    def __init__(self, module: str, function: str) -> None:
        self._module, self._function = module, function

    def __get__(self, tape: GradientTape | None, owner: type | None = None) -> Any:
        function = getattr(import_module(f"gradtape.inspect.{self._module}"), self._function)
        return function if tape is None else MethodType(function, tape)


for _name, (_home, _) in METHODS.items():
    _module, _, _function = _home.partition(":")
    setattr(GradientTape, _name, _Loaded(_module, _function or _name))


def _check_numerics(entry: trace.Entry) -> None:
    import_module("gradtape.inspect.numerics").check(entry)


def _check_sweep(noted: trace.Trace) -> Any:
    return import_module("gradtape.inspect.numerics").SweepCheck(noted)


trace.CHECKS.update(numerics=_check_numerics, sweep=_check_sweep)
