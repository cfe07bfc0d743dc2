"""How code runs: eagerly, in order. What TensorFlow needs to say so, and the answers here."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator
from typing import Any

from gradtape.core import callsite
from gradtape.core.context import suspended
from gradtape.errors import message
from gradtape.scope import OutOfScopeError
from gradtape.values.naming import scoped

__all__ = [
    "Graph", "control_dependencies", "executing_eagerly", "get_current_name_scope", "get_logger", "init_scope",
    "inside_function", "is_symbolic_tensor",
]  # fmt: skip


class Unstageable(Exception):
    """What was asked for cannot be part of a compiled program: the function has to run as it is written."""


class _Staging(threading.local):
    """Whether this thread is making a compiled function; `function` sets it."""

    inside = False
    draw: Any = None  # while inside: ``draw(thunk)`` makes what the thunk gives anew at every call an input of the program
    call: Any = None  # while inside: ``call(function, arrays)`` calls it with the numbers whenever the program runs, in order
    ask: Any = None  # while inside: ``ask(function, example, arrays)`` is what it answers to the numbers, like the example
    leave: Any = None  # while inside: ``with leave():`` is outside of the function, and runs once
    is_first: Any = None  # while inside: ``is_first(variable, array)``: is it what the variable held when the call began
    control: Any = None  # the module that makes loops and branches parts of a program


class _Settings:
    run_eagerly = False
    records_numpy = True  # NumPy functions of tracked tensors; as in TensorFlow they give arrays
    compile_cache: str | None = None  # a folder


staging = _Staging()
settings = _Settings()


def on_the_host(what: str) -> None:
    """Say that ``what`` happens outside of the computation, so that a function that does it is not compiled."""
    if staging.inside:
        raise Unstageable(what)


def executing_eagerly() -> bool:
    """Whether operations run as they are called: everywhere but while a compiled function is being made."""
    return not staging.inside


def inside_function() -> bool:
    """Whether a compiled function is being made."""
    return staging.inside


def is_symbolic_tensor(tensor: Any) -> bool:
    """Whether this tensor has no value yet: inside a compiled function that is being made."""
    return staging.inside and type(getattr(tensor, "_array", None)).__name__.endswith("Tracer")


def control_dependencies(control_inputs: Any) -> Any:
    """Context manager that orders nothing: eager code runs in the order in which it is written."""
    if control_inputs is not None and not hasattr(control_inputs, "__iter__"):
        text = f"'{type(control_inputs).__name__}' object is not iterable"
        raise TypeError(message(text, fix="a list: tf.control_dependencies([x])"))
    return contextlib.nullcontext()


@contextlib.contextmanager
def init_scope() -> Iterator[None]:
    """Context manager: outside of every compiled function, and unseen by tapes."""
    with suspended(), staging.leave() if staging.inside else contextlib.nullcontext():
        yield


def get_current_name_scope() -> str:
    """The active name scopes, joined."""
    return scoped("").rstrip("/")


def get_logger() -> logging.Logger:
    """The logger that all our messages go through."""
    return callsite.logger


class Graph:
    """TensorFlow 1's graphs are out of scope: this class only says so."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise OutOfScopeError(
            message(
                f"tf.Graph().{name} is out of scope: there are no graphs to build by hand.",
                fix="write eager code, and wrap it in tf.function where it should be compiled",
            )
        )
