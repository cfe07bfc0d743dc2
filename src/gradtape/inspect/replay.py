"""The records of a tape as steps, each with the values that went in and came out, as far as they are known.

A tape that traces knows them all. Any other keeps what its rules read; what came of that is computed again by the ops' kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from gradtape.core.backprop import PAIR
from gradtape.core.callsite import Place
from gradtape.core.context import suspended
from gradtape.core.custom import custom_gradient
from gradtape.core.op import select
from gradtape.core.tape import GradientTape
from gradtape.errors import message
from gradtape.inspect.graph import records_of
from gradtape.tangents.forward import as_general
from gradtape.values import nest
from gradtape.values.tensor import Tensor, wrap


@dataclass(slots=True, eq=False)
class Step:
    """One op that was recorded. Values are raw arrays; None: not known, or no tensor."""

    number: int
    key: Any
    op: Any
    record: tuple  # as the sweep reads it
    general: tuple  # the same in the layout of records of any number of arrays
    place: Place | None
    inputs: tuple  # keys
    values: list
    outputs: tuple  # keys
    results: list

    @property
    def attributes(self) -> dict[str, Any]:
        return self.general[6]

    @property
    def is_custom(self) -> bool:
        return "grad_fn" in self.attributes

    @property
    def is_known(self) -> bool:
        """Whether its kernel can be run again."""
        return not self.is_custom and all(value is not None for value in self.values)

    @property
    def arguments(self) -> list:
        """The values of the arguments; those of a custom gradient's variables are not among them."""
        return self.values[: self.attributes["inputs"]] if self.is_custom else self.values

    @property
    def function(self) -> Callable | None:
        """What a custom gradient belongs to, as a function of its arguments; None if that, or one of them, is not known."""
        again = self.attributes.get("again")
        if again is None or any(v is None and key is not None for v, key in zip(self.arguments, self.inputs)):
            return None
        undecorated, frame, kwargs = again
        function = custom_gradient(undecorated)
        return lambda *values: function(*nest.pack_sequence_as(frame, list(values)), **kwargs)

    def named(self, i: int) -> str:
        """The name of the i-th input."""
        names = self.op.inputs
        if not names:
            return f"argument {i}"
        return f"{names[0]}[{i}]" if self.op.variadic else names[i]

    def run(self, values: list | None = None) -> list:
        """What the kernel gives for these values, or those that were recorded."""
        values = self.values if values is None else values
        xp = select([wrap(value) for value in values])
        with suspended(), xp.scope():
            result = self.op.kernel(xp, *values, **self.attributes)
        return list(result) if type(result) is tuple else [result]


def steps_of(tape: GradientTape, given: Iterable = ()) -> list[Step]:
    """The steps of a tape, in order. ``given`` are tensors and variables whose values the caller has: targets, sources."""
    records = records_of(tape)
    entries = {} if tape.trace is None else tape.trace.entries
    known = _known(tape, records, given)
    if any(type(array).__name__.endswith("Tracer") for array in known.values()):
        raise RuntimeError(
            message(
                "The values of this tape are not known yet.",
                received="a tape inside a function that is being compiled",
                fix="ask a tape that runs eagerly; function.find_nonfinite(*args) replays a call",
            )
        )
    steps: list[Step] = []
    for key, record in records.items():
        if record[0] is None:
            continue
        general = as_general(record, key) if record[0] is PAIR else record
        _, op, keys, _, _, kept, _, outputs, _ = general
        entry = entries.get(key)
        step = Step(len(steps), key, op, record, general, None, keys, [], outputs, [])
        steps.append(step)
        if entry is not None:
            step.place = entry.place
        if entry is not None and tape.line is None:
            step.values, step.results = list(entry.input_arrays), list(entry.output_arrays)
            continue
        step.values = [_input(op, kept, i, keys[i], known) for i in range(len(keys))]
        step.results = [known.get(k) for k in outputs]
        if step.is_known and any(k is not None and k not in known for k in outputs):
            step.results = step.run()
            known.update((k, value) for k, value in zip(outputs, step.results) if k is not None)
    return steps


def _known(tape: GradientTape, records: dict, given: Iterable) -> dict:
    """Arrays by the key of their tensor: what records keep, what the caller has, what variables hold."""
    known: dict[Any, Any] = {}
    for record in records.values():
        if record[0] is None:
            continue
        kept = record[6:9] if record[0] is PAIR else record[5].values()
        for value in kept:
            for tensor in value if type(value) is tuple else (value,):
                if isinstance(tensor, Tensor) and tensor._key:
                    known.setdefault(tensor._key, tensor._array)
    for value in (*given, *tape.variables.values()):
        known.setdefault(value._key, getattr(value, "_tensor", value)._array)
    known.pop(None, None)
    return known


def _input(op: Any, kept: dict, i: int, key: Any, known: dict) -> Any:
    value = kept.get(op.inputs[0 if op.variadic else i]) if op.inputs else None
    if type(value) is tuple:
        value = value[i]
    return known.get(key) if value is None else value._array
