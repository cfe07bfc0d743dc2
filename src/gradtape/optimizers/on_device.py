"""A step on variables that are on a device: the whole update as one compiled program, on the device."""

from __future__ import annotations

import weakref
from typing import Any

from gradtape.core.context import suspended
from gradtape.optimizers import functional, gradients, schedules
from gradtape.values.convert import convert_to_tensor
from gradtape.values.placement import HOST, device_of

_programs: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
_PLAIN = (bool, int, float, str, type(None))


def apply(optimizer: Any, pairs: list) -> bool:
    """One step, `iterations` included, if it can be compiled; otherwise nothing is done, and the answer is False."""
    if optimizer._updates_tensors or optimizer._constrained:  # the user's own Python runs at every step
        return False
    if callable(optimizer._learning_rate) and not isinstance(optimizer._learning_rate, schedules.LearningRateSchedule):
        return False
    devices = [device_of(variable._tensor) for _, variable in pairs]
    if devices[0] in (None, HOST) or any(device is not devices[0] for device in devices):
        return False
    present = gradients.present(pairs, optimizer, optimizer._entries)
    options = tuple((name, value) for name, value in vars(optimizer).items() if isinstance(value, _PLAIN))
    with suspended():
        _program(optimizer)(options, [convert_to_tensor(g) for g, _ in present], [variable for _, variable in present])
    return True


def _program(optimizer: Any) -> Any:
    found = _programs.get(optimizer)
    if found is None:
        from gradtape.function.decorator import Function

        itself = weakref.ref(optimizer)

        def step(options: tuple, gs: list, variables: list) -> None:
            owner: Any = itself()
            functional.apply(owner, list(zip(gs, variables)))
            owner._iterations.assign_add(1, read_value=False)

        found = _programs[optimizer] = Function(step, autograph=False)
        found.donate = False  # the variables are read before every step, so they would be copied every time
    return found
