"""`tape.on_gradient`: look at a gradient, or replace it, as the sweep passes."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from gradtape import errors
from gradtape.core.backprop import Sweep
from gradtape.core.custom import on_tensors
from gradtape.core.indexed_slices import IndexedSlices
from gradtape.core.observed import Observer, outputs_of
from gradtape.core.tape import GradientTape
from gradtape.core.variable import Variable, variable_of
from gradtape.errors import InvalidArgumentError, message
from gradtape.values import dtypes
from gradtape.values.composite import Composite
from gradtape.values.convert import Convertible, convert_to_tensor
from gradtape.values.tensor import Tensor


def on_gradient(tape: GradientTape, value: Any, fn: Callable[[Any], Any]) -> Hook:
    """Call ``fn`` with the gradient of a tensor or variable in every later `gradient` and `jacobian` of this tape.

    ``fn`` gets the whole gradient, once all that was computed from ``value`` has contributed. If it returns None, it has only
    looked; a tensor takes the gradient's place, for ``value`` and for all that it was computed from. What ``fn`` computes is
    recorded by the tapes around. In a Jacobian it sees one row at a time. Gives a handle, to `remove` it again.
    """
    if isinstance(value, Composite):
        value = value._differentiable_part()
    value = variable_of(value)
    if not isinstance(value, (Tensor, Variable)):
        raise TypeError(
            message(
                "on_gradient needs a tensor or a variable.",
                received=type(value).__name__,
                fix="give it the tensor that the tape watches, or that was computed under it",
            )
        )
    if not callable(fn):
        raise TypeError(message("on_gradient needs a function.", received=type(fn).__name__, expected="fn(gradient)"))
    known = tape.records is not None and (value._key in tape.records or isinstance(value, Variable))
    if not known:
        used = "a tape whose records are used up" if tape.records is None else "a tensor that this tape does not track"
        raise ValueError(
            message(
                "No gradient can pass here.",
                received=used,
                fix="tape.watch the tensor, or compute it under the tape; then on_gradient, then gradient",
            )
        )
    hook = Hook(tape, value, fn)
    tape.observers = (*tape.observers, hook)
    return hook


class Hook(Observer):
    """A function that sees the gradient of one value."""

    changes = True

    def __init__(self, tape: GradientTape, value: Any, fn: Callable) -> None:
        self._tape = weakref.ref(tape)
        self._key = value._key
        array = getattr(value, "_tensor", value)._array
        self._shape, self._dtype = tuple(array.shape), array.dtype
        self._fn = fn
        self._passed = False

    def remove(self) -> None:
        """Look no more."""
        tape = self._tape()
        if tape is not None:
            tape.observers = tuple(observer for observer in tape.observers if observer is not self)

    def before(self, sweep: Sweep, key: Any, record: tuple) -> None:
        if self._key in outputs_of(key, record):
            self._passed = True
            self._apply(sweep)

    def finish(self, sweep: Sweep) -> None:
        if not self._passed:
            self._apply(sweep)  # a leaf: nothing is pulled back from it
        self._passed = False

    def _apply(self, sweep: Sweep) -> None:
        g = sweep.cotangents.get(self._key)
        if g is None:
            return
        replaced = []

        def each(gradient: Tensor) -> list[Tensor]:
            found = self._fn(gradient)
            if found is None:
                return [gradient]
            replaced.append(found)
            return [self._checked(found)]

        whole = g._dense(sweep.xp) if isinstance(g, IndexedSlices) else g
        (found,) = on_tensors(each, (whole,), (self._shape,), (self._dtype,))
        if replaced:
            sweep.cotangents[self._key] = found

    def _checked(self, found: Any) -> Tensor:
        """What the function gave, which must fit the gradient's place."""
        tensor = found._operand() if isinstance(found, Convertible) else convert_to_tensor(found)
        shape, dtype = tensor._array.shape, tensor._array.dtype
        if shape != self._shape or dtype != self._dtype:
            raise InvalidArgumentError(
                message(
                    f"on_gradient: {errors.shown(self._fn)} returned something else than a gradient.",
                    received=f"{dtypes.of(dtype)!r} {shape}",
                    expected=f"{dtypes.of(self._dtype)!r} {self._shape}, or None to leave the gradient as it is",
                )
            )
        return tensor
