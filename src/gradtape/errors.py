"""Every exception that gradtape raises on its own account.

Exception
├── OpError                        an operation refused its input; numbered as in TensorFlow
│   ├── CancelledError 1           ├── UnknownError 2            ├── InvalidArgumentError 3
│   ├── DeadlineExceededError 4    ├── NotFoundError 5           ├── AlreadyExistsError 6
│   ├── PermissionDeniedError 7    ├── ResourceExhaustedError 8  ├── FailedPreconditionError 9
│   ├── AbortedError 10            ├── OutOfRangeError 11        ├── UnimplementedError 12
│   ├── InternalError 13           ├── UnavailableError 14       ├── DataLossError 15
│   └── UnauthenticatedError 16
├── ValueError
│   └── NoGradientsError           an optimizer received no gradient at all
├── TypeError
│   └── OperatorNotAllowedInGraphError   Python asked a value that only exists when a compiled program runs
└── TypeError, RuntimeError, LookupError, KeyError, AttributeError: raised as they are, where TensorFlow does

Messages follow one form: what happened, then Received / Expected / Why / Fix, each on a line of its own. What was received
need not be said where it is the arguments of the call that the user made: those are read from the stack.
"""

from __future__ import annotations

import os
import reprlib
import sys
import types
from typing import Any


def message(
    summary: str,
    *,
    received: str | None = None,
    expected: str | None = None,
    why: str | None = None,
    fix: str | None = None,
) -> str:
    """Compose an error text: the summary, then one labelled line for each part that is given.

    Without ``received`` it is the arguments, but those left at their defaults, of the outermost of our functions that led here.
    An empty text leaves the line out. Of another such text inside the summary, its own summary is kept.
    """
    summary = summary.partition("\n  Received:")[0]
    received = _arguments() if received is None else received
    parts = (("Received:", received), ("Expected:", expected), ("Why:", why), ("Fix:", fix))
    return "\n".join([summary, *(f"  {label:<9} {text}" for label, text in parts if text)])


_PACKAGE = os.path.dirname(__file__) + os.sep
_MANY, _KEYWORDS = 0x04, 0x08  # flags of the code of a function with *args, with **kwargs


def _arguments() -> str:
    """The arguments of the call from outside that `message` was reached by."""
    frame = _outermost()
    code, values = frame.f_code, frame.f_locals
    names = list(code.co_varnames)
    count = code.co_argcount + code.co_kwonlyargcount
    given = {name: values[name] for name in names[:count] if name in values}  # a function may delete one
    many = values.get(names[count], ()) if code.co_flags & _MANY else ()
    if code.co_flags & _KEYWORDS:
        given |= values.get(names[count + bool(code.co_flags & _MANY)], {})
    for name in ("name", "cls", "self"):
        if name != "self" or code.co_name == "__init__" or not _is_array(given.get(name)):
            given.pop(name, None)
    defaults = _defaults(frame, given)
    told = {name: value for name, value in given.items() if name not in defaults or value is not defaults[name]}
    if not told and not many:
        told = given
    return ", ".join([*map(shown, many), *(f"{name}={shown(value)}" for name, value in told.items())])


def _outermost() -> Any:
    """The frame of the function that was called from outside; if it is the wrapper of a decorator, of the wrapped one."""
    frames: list[Any] = [sys._getframe(3)]
    while (outer := frames[-1].f_back) is not None and outer.f_code.co_filename.startswith(_PACKAGE):
        frames.append(outer)
    frame = frames.pop()
    while frames and _wraps(frame, frames[-1]):
        frame = frames.pop()
    return frame


def _wraps(frame: Any, inner: Any) -> bool:
    """Whether a function takes whatever comes, and holds the function that runs in the next frame."""
    held = (value for value in frame.f_locals.values() if isinstance(value, types.FunctionType))
    return not frame.f_code.co_argcount and any(function.__code__ is inner.f_code for function in held)


def _defaults(frame: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The defaults of the function that runs in a frame; None and False if the function cannot be found by its name."""
    code = frame.f_code
    method = getattr(type(frame.f_locals.get("self")), code.co_name, None)
    function: Any = frame.f_globals.get(code.co_name, method)
    function = getattr(function, "__wrapped__", function)
    if not hasattr(function, "__code__") or function.__code__ is not code:
        return {name: value for name, value in given.items() if value is None or value is False}
    names, values = code.co_varnames[: code.co_argcount], function.__defaults__ or ()
    return dict(zip(names[len(names) - len(values) :], values)) | (function.__kwdefaults__ or {})


class _Brief(reprlib.Repr):
    """Arrays by dtype and shape, with their elements if those are few; functions by name; anything else cut short."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 80

    def repr1(self, x: Any, level: int) -> str:
        if _is_array(x):
            return _array(x)
        if isinstance(x, (type, types.FunctionType)):
            return x.__name__
        text = super().repr1(x, level)
        return type(x).__name__ if " at 0x" in text else text


def shown(value: Any) -> str:
    """A value as messages show it: ``float32 (2, 3)`` for a tensor, ``'SAME'`` for a string.

    >>> shown(["SAME", None])
    "['SAME', None]"
    """
    try:
        return _BRIEF.repr(value)
    except Exception:  # whatever a foreign object raises, the message to come is about something else
        return type(value).__name__


_BRIEF = _Brief()


def _is_array(value: Any) -> bool:
    kind = type(value)  # whose attributes no __getattr__ makes up: it may be what raises
    return hasattr(kind, "dtype") and hasattr(kind, "shape") and (kind.__module__ != "numpy" or kind.__name__ == "ndarray")


def _array(x: Any) -> str:
    try:
        array = getattr(x, "_array", x)
    except ValueError:  # a ragged or sparse tensor has none
        array = x
    text = f"{getattr(x.dtype, 'name', x.dtype)} {x.shape}"
    if type(array).__module__ == "numpy" and array.ndim < 2 and array.size <= 4:
        text += f" {_BRIEF.repr(array.tolist())}"
    if array is not x:
        return text  # a tensor, which has no name to ask for
    name = getattr(x, "name", None)
    return f"{type(x).__name__} {name!r} {text}" if isinstance(name, str) else f"{type(x).__name__} {text}"


_ADVICE = {
    "allowed values": "tf.cast(x, tf.float32) first",
    "division by zero": "tf.where(y == 0, tf.ones_like(y), y) as divisor, or divide floats, which gives inf and nan",
    "negative integer powers": "tf.pow(tf.cast(x, tf.float32), y)",
    "boolean": "tf.logical_not, tf.logical_or and tf.logical_and work on booleans; numbers come from tf.cast(x, tf.int32)",
    "'bytes'": "tf.strings.to_number(x) makes numbers of strings, tf.strings.join([x, y]) joins them",
    "Matrix size-incompatible": "the first needs as many columns as the second has rows; transpose_b=True exchanges those",
    "ndims must be": "give vectors an axis, x[tf.newaxis, :], or use tf.tensordot(x, y, 1)",
    "out of bounds": "count axes from 0, or from -1 backwards, up to the rank of the input",
    "into shape": "tf.size(x) must be the product of the new lengths; one of them may be -1",
}


def advice(text: str) -> str:
    """How to avoid an error that a kernel met, by its text; empty if it is not known. Kernels say only what is wrong."""
    return next((fix for phrase, fix in _ADVICE.items() if phrase in text), "")


def dims(shape: tuple[int, ...]) -> str:
    """A shape as TensorFlow's kernels print it: ``[2,3]``."""
    return "[" + ",".join(map(str, shape)) + "]"


class OpError(Exception):
    """An operation refused its input.

    ``OpError(node_def, op, message)`` as in TensorFlow, where the first two are graph objects: None when eager.
    """

    error_code = 2

    def __init__(
        self, node_def: object = None, op: object = None, message: str = "", error_code: int | None = None, *_: object
    ) -> None:
        if isinstance(node_def, str) and not message:  # OpError("text")
            message, node_def = node_def, None
        super().__init__(message)
        if error_code is not None:
            self.error_code = error_code
        self.node_def = node_def
        self.op = op
        self.message = message

    @property
    def experimental_payloads(self) -> dict:
        """Empty: nothing travels with an error but its text."""
        return {}

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple:
        return type(self), (None, None, self.message, self.error_code)


class CancelledError(OpError):
    error_code = 1


class UnknownError(OpError):
    error_code = 2


class InvalidArgumentError(OpError):
    """A value, shape or dtype that the operation cannot work with."""

    error_code = 3


class DeadlineExceededError(OpError):
    error_code = 4


class NotFoundError(OpError):
    error_code = 5


class AlreadyExistsError(OpError):
    error_code = 6


class PermissionDeniedError(OpError):
    error_code = 7


class ResourceExhaustedError(OpError):
    error_code = 8


class FailedPreconditionError(OpError):
    error_code = 9


class AbortedError(OpError):
    error_code = 10


class OutOfRangeError(OpError):
    error_code = 11


class UnimplementedError(OpError):
    error_code = 12


class InternalError(OpError):
    """The tape and a derivative rule disagree: a wrong rule, never wrong user input."""

    error_code = 13


class UnavailableError(OpError):
    error_code = 14


class DataLossError(OpError):
    error_code = 15


class UnauthenticatedError(OpError):
    error_code = 16


class NoGradientsError(ValueError):
    """An optimizer received no gradient for any of its variables."""

    report: Any = None  # what `tape.explain` says about it, if the tape is known


class OperatorNotAllowedInGraphError(TypeError):
    """Python asked for a value (``if tensor:``) that only exists when the compiled program runs."""


OK = 0
(
    CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED, RESOURCE_EXHAUSTED,
    FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS, UNAUTHENTICATED,
) = range(1, 17)  # fmt: skip
"""The codes of the error classes."""
