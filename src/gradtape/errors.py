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

Messages follow one form: what happened, then Received / Expected / Why / Fix, each on a line of its own.
"""

from __future__ import annotations


def message(
    summary: str,
    *,
    received: str | None = None,
    expected: str | None = None,
    why: str | None = None,
    fix: str | None = None,
) -> str:
    """Compose an error text: the summary, then one labelled line for each part that is given."""
    parts = (("Received:", received), ("Expected:", expected), ("Why:", why), ("Fix:", fix))
    return "\n".join([summary, *(f"  {label:<9} {text}" for label, text in parts if text)])


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


class OperatorNotAllowedInGraphError(TypeError):
    """Python asked for a value (``if tensor:``) that only exists when the compiled program runs."""


OK = 0
(
    CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED, RESOURCE_EXHAUSTED,
    FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS, UNAUTHENTICATED,
) = range(1, 17)  # fmt: skip
"""The codes of the error classes."""
