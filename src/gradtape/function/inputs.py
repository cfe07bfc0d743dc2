"""What a call hands to its program, apart from the variables that the program assigns.

Whatever is the same as at the last call is on the device already: constants, variables that only other code changes, and
arguments that come again (to hand over even a number anew takes 4 µs). The tensor, not its array, is what tells: an optimizer
may write over the array of a variable that nobody else holds, but an array in the hands of another tensor does not change while
that tensor lives.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from gradtape.core.variable import Variable
from gradtape.function.holding import is_held, ordinary, settled
from gradtape.values.tensor import Tensor, VariableKey

_NEVER = object(), None
_nothing: tuple[Callable[[], Any], Any] = (lambda: None, None)


class Inputs:
    """The inputs of one program, by name: ``(kind, which)``; the kinds are argument, variable, draw and constant."""

    def __init__(self, names: list[tuple], constants: dict, variables: dict[Any, Variable]) -> None:
        from jax import device_put

        from gradtape.xp.jax_devices import several

        self._put, self._several = device_put, several
        self._last: dict[Any, tuple[Any, Any]] = {}  # by variable: a tensor that it held, and the same on the device
        self._constants = [constants.get(name) for name in names]
        by_kind: dict[str, list] = {"argument": [], "variable": [], "draw": [], "constant": []}
        for i, (kind, which) in enumerate(names):
            by_kind[kind].append((i, which))
        self._arguments, self._draws = by_kind["argument"], by_kind["draw"]
        self._variables = [(i, variables[which]) for i, which in by_kind["variable"]]
        self._known = [_nothing] * len(names)  # by place: the argument of the last call, and the same on the device

    def now(self, tensors: Any, draws: list) -> list:
        """For a call with these arguments and random numbers."""
        inputs = self._constants.copy()
        known = not self._several()  # else an argument would be on one of the devices, and its place would count
        for i, which in self._arguments:
            tensor = tensors[which]
            inputs[i] = self._argument(i, tensor) if known and type(tensor) is Tensor else tensor._array
        for i, variable in self._variables:
            tensor, array = self._last.get(variable._key, _NEVER)
            if type(variable) is Variable and ordinary(variable) is tensor:
                inputs[i] = array
            else:
                inputs[i] = variable._held.array(variable) if is_held(variable) else self.on_device(settled(variable))
        for i, which in self._draws:
            inputs[i] = draws[which]
        return inputs

    def on_device(self, tensor: Tensor) -> Any:
        """The value of a variable, which is transferred once."""
        known = self._last.get(tensor._key)
        if known is None or known[0] is not tensor:
            known = self._last[tensor._key] = tensor, self._put(tensor._array)
        return known[1]

    def _argument(self, place: int, tensor: Tensor) -> Any:
        """An argument's array; from its second call on, one on the device, for as long as the tensor lives."""
        known, array = self._known[place]
        if known() is not tensor:
            self._known[place] = weakref.ref(tensor), None
            return tensor._array
        if array is not None:
            return array
        if type(tensor._key) is VariableKey:  # it may be what a variable holds, and will be something else
            return tensor._array
        forget = lambda _, known=self._known: known.__setitem__(place, _nothing)
        array = self._put(tensor._array)
        self._known[place] = weakref.ref(tensor, forget), array
        return array
