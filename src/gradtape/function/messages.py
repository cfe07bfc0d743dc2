"""What a function says: why it is not compiled, and why it was traced again."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any

from gradtape.core.callsite import logger
from gradtape.errors import InvalidArgumentError, OperatorNotAllowedInGraphError, message
from gradtape.function.autograph_convert import hint
from gradtape.function.signature import Call, difference
from gradtape.ops.execution import Unstageable

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_CONVERSION = os.path.join(_PACKAGE, "function", "autograph")
_FIXES = {
    "__bool__": "tf.cond or tf.where instead of `if` over a tensor",
    "numpy": "keep it a tensor: .numpy() needs the number, which exists only when the program runs",
    "__array__": "tf functions instead of np functions: NumPy needs the numbers, which exist only when the program runs",
    "__float__": "keep it a tensor: tf.cast(x, tf.float32) instead of float(x)",
    "__int__": "keep it a tensor: tf.cast(x, tf.int32) instead of int(x)",
    "__index__": "x[i] and tf.range(n) take tensors; the length of an axis must be a number",
    "boolean_mask": "tf.where(mask, x, 0): the shape of a result must not depend on values",
    "unique": "the shape of a result must not depend on values; take it out of the function",
}
RETRACES = 5
"""From this many programs on, each new one is explained."""
_FIX_ARGUMENTS = "pass Python numbers as tensors, keep shapes fixed (pad the last batch), or give input_signature"
_FIX_SHAPES = "each shape is a program of its own: pad to a few lengths, as Dataset.bucket_by_sequence_length does"


def is_due_to_tracing(error: BaseException | None) -> bool:
    """Whether an error says that a number was asked for where there is none yet."""
    seen = set()  # an error that was raised again may be among its own causes
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, Unstageable):
            return True
        if type(error).__module__.startswith("jax") or "Tracer" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def place(error: BaseException) -> tuple[str, str]:
    """What the user's code called that failed, and where."""
    frames: list[tuple[FrameType, int]] = list(traceback.walk_tb(error.__traceback__))
    own = [i for i, (frame, _) in enumerate(frames) if _is_users(frame)]
    if not own:
        return "an operation", "an unknown line"
    frame, line = frames[own[-1]]
    names = [_name(inner) for inner, _ in frames[own[-1] + 1 :] if not inner.f_code.co_filename.startswith(_CONVERSION)]
    called = next((name for name in names if name not in ("call", "wrapper")), "Python")
    return called, f"{frame.f_code.co_filename}:{line}"


def _name(frame: FrameType) -> str:
    """The function's name; that of the op, where one path serves many."""
    op = frame.f_locals.get("spec")
    return getattr(op, "name", frame.f_code.co_name)


def is_users(error: BaseException) -> bool:
    """Whether the user's own code raised the error, or we did on purpose: running it eagerly would raise it again."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return _is_users(frame) or frame.f_code.co_filename.startswith(_PACKAGE + "function")


def without_notes(error: Exception) -> Exception:
    """The error without jax's remark about its own frames."""
    if hasattr(error, "__notes__"):
        error.__notes__ = [note for note in error.__notes__ if "JAX" not in note]
    return error


def _is_users(frame: FrameType) -> bool:
    path = frame.f_code.co_filename
    generated = path.startswith("<") and not path.startswith(("<stdin>", "<ipython"))
    return not path.startswith(_PACKAGE) and f"{os.sep}jax{os.sep}" not in path and not generated


def _root(error: BaseException) -> BaseException:
    return error if error.__cause__ is None or isinstance(error, Unstageable) else _root(error.__cause__)


def _why(error: BaseException) -> str:
    if type(error).__name__ in ("TracerArrayConversionError", "ConcretizationTypeError", "TracerBoolConversionError"):
        return "a number was asked for that exists only when the program runs"
    return str(error).split("\n")[0]


def not_compiled(name: str, error: BaseException) -> str:
    """Why a function runs as it is written."""
    return message(
        f"tf.function: {name} runs eagerly for this signature, because {cause(error)}.",
        why="the results are the same; only the speed differs",
        fix=_fix(error),
    )


def cause(error: BaseException) -> str:
    """What it is that cannot be compiled."""
    called, where = place(error)
    what = str(error) if isinstance(error, Unstageable) else called
    return f"{what} ({where}) cannot be part of a compiled program"


def _fix(error: BaseException) -> str | None:
    called, _ = place(error)
    return hint(error, called) or _FIXES.get(called)


def refusal(name: str, error: BaseException) -> Exception:
    """The error instead, where compilation was demanded."""
    called, where = place(error)
    kind = OperatorNotAllowedInGraphError if called == "__bool__" else InvalidArgumentError
    what = str(error) if isinstance(error, Unstageable) else called
    return kind(
        message(
            f"Detected unsupported operations when trying to compile {name} with jit_compile=True: {what} ({where}).",
            why=_why(_root(error)),
            fix=_fix(error) or "drop jit_compile=True: the function then runs eagerly",
        )
    )


class Retraces:
    """Tells, once for each cause, why a function keeps being traced."""

    def __init__(self) -> None:
        self._count = 0
        self._last: Any = None  # the key of the last call that was traced; the call itself would keep its tensors
        self._told: set[str] = set()

    def note(self, name: str, call: Call, argument: Callable[[tuple], str], only_shapes: bool) -> None:
        """A function was traced for a call; ``only_shapes`` if nothing else about its arguments is the caller's to change."""
        if self._count >= RETRACES:
            change = difference(call, self._last, argument)
            cause = change.split(" from ")[0]
            if cause not in self._told:
                self._told.add(cause)
                logger.warning(
                    message(
                        f"tf.function: {name} was traced {self._count + 1} times; this time {change}.",
                        fix=_FIX_SHAPES if only_shapes else _FIX_ARGUMENTS,
                    )
                )
        self._count += 1
        self._last = call.key
