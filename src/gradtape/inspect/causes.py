"""Why a gradient is None or zero: the closed list of causes, and the report that names them."""

from __future__ import annotations

import enum
import html
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gradtape.core.callsite import Place


class Cause(enum.Enum):
    """What stands between a target and a source."""

    NOT_WATCHED = "not_watched"
    NOT_TRAINABLE = "not_trainable"
    WATCH_ACCESSED_OFF = "watch_accessed_off"
    OUTSIDE = "outside"
    STOP_RECORDING = "stop_recording"
    RESET = "reset"
    READ_BEFORE = "read_before"
    DTYPE = "dtype"
    NONDIFFERENTIABLE = "nondifferentiable"
    LEFT = "left"
    STOP_GRADIENT = "stop_gradient"
    CUSTOM_GRADIENT = "custom_gradient"
    ASSIGNED = "assigned"
    REBOUND = "rebound"
    CONDITION = "condition"
    ANOTHER_THREAD = "another_thread"
    PREDICT = "predict"
    USED = "used"
    UNCONNECTED = "unconnected"
    ZERO = "zero"

    @property
    def says(self) -> str:
        """The cause in a sentence."""
        return _TEXTS[self][0]

    @property
    def fix(self) -> str:
        """What to do about it."""
        return _TEXTS[self][1]


_TEXTS: dict[Cause, tuple[str, str]] = {
    Cause.NOT_WATCHED: (
        "the tape does not watch this tensor",
        "tape.watch(it) inside the `with` block, before it is used; or make it a tf.Variable",
    ),
    Cause.NOT_TRAINABLE: (
        "the variable is not trainable, so the tape does not watch it",
        "tf.Variable(…, trainable=True), or tape.watch(variable)",
    ),
    Cause.WATCH_ACCESSED_OFF: (
        "the tape was made with watch_accessed_variables=False, and nobody called tape.watch with this variable",
        "tape.watch(variable) at the start of the `with` block",
    ),
    Cause.OUTSIDE: (
        "the target was computed outside the `with` block of the tape, which saw nothing of it",
        "move the computation of the target into the `with` block",
    ),
    Cause.STOP_RECORDING: (
        "the path goes through a `tape.stop_recording()` block",
        "move that computation out of the block",
    ),
    Cause.RESET: (
        "`tape.reset()` made the tape forget what happened before",
        "reset first, then watch and compute",
    ),
    Cause.READ_BEFORE: (
        "the variable was read before the tape began to record; inside the tape, what was computed from it is a constant",
        "read the variable inside the `with` block",
    ),
    Cause.DTYPE: (
        "the path goes through a type that has no gradient: only floating and complex numbers have one",
        "stay in floating point from the source to the target",
    ),
    Cause.NONDIFFERENTIABLE: (
        "the path goes through an op that has no derivative",
        "compute the target from the op's input, or use a smooth version of the op",
    ),
    Cause.LEFT: (
        "the value left the tape for Python or NumPy, and came back as a constant",
        "compute with tensors and tf functions all the way",
    ),
    Cause.STOP_GRADIENT: (
        "the path goes through tf.stop_gradient",
        "leave stop_gradient out, if this source should be trained",
    ),
    Cause.CUSTOM_GRADIENT: (
        "a custom gradient returned None for it",
        "return a gradient for this argument from the gradient function",
    ),
    Cause.ASSIGNED: (
        "the value was assigned to a variable; the tape does not follow assignments",
        "use the tensor itself in the computation, and assign it to the variable afterwards",
    ),
    Cause.REBOUND: (
        "the name now stands for another tensor than the one that the target was computed from",
        "give the new tensor a new name; update variables with assign, assign_add or assign_sub",
    ),
    Cause.CONDITION: (
        "the value only decides which branch runs; no number of the target is computed from it",
        "compute with it: tf.where over both branches, or a smooth weight such as tf.sigmoid",
    ),
    Cause.ANOTHER_THREAD: (
        "it was used in another thread; a tape hears only the thread in which it records",
        "open the tape in the thread that computes",
    ),
    Cause.PREDICT: (
        "the value went through model.predict, which returns arrays",
        "call the model itself: model(x)",
    ),
    Cause.USED: (
        "the tape was used already, and its records are gone",
        "GradientTape(persistent=True), or ask for all gradients in one call",
    ),
    Cause.UNCONNECTED: (
        "the target does not depend on it",
        "check that the target is computed from this very object",
    ),
    Cause.ZERO: (
        "it is connected, but the derivative is exactly zero",
        "look at the values there: a saturated or unselected branch, a product with zero, a step function",
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """Why one source has no gradient, or a gradient of zeros."""

    source: Any
    name: str  # of the source, as the user's code has it
    gradient: str  # "None" or "zero"
    cause: Cause
    place: Place | None  # the line of the user's code, where it is known
    detail: str  # the op, the function or the points of the graph, in words

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.gradient}", f"  Cause:  {self.cause.says}"]
        if self.detail:
            lines.append(f"          {self.detail}")
        if self.place is not None:
            lines.append(f"  Where:  {self.place}" + (f"   {self.place.text}" if self.place.text else ""))
        return "\n".join([*lines, f"  Fix:    {self.cause.fix}"])


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """The findings of `tape.explain`, one for each source whose gradient is None or zero. Printing it tells them."""

    findings: tuple[Finding, ...]
    sources: int  # how many were asked for

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __getitem__(self, index: Any) -> Any:
        return self.findings[index]

    def __str__(self) -> str:
        if not self.findings:
            return f"Every one of {self.sources} sources has a gradient." if self.sources != 1 else "The source has a gradient."
        none = sum(finding.gradient == "None" for finding in self.findings)
        zero = len(self.findings) - none
        counts = ((none, "None"), (zero, "zero"))
        told = [f"{n} of {self.sources} gradients {'is' if n == 1 else 'are'} {word}" for n, word in counts if n]
        return "\n".join([", ".join(told) + ".", *_grouped(self.findings)])

    __repr__ = __str__

    def brief(self) -> str:
        """Each cause once, with its place, in one line."""
        texts = [f"{f.cause.says}, {f.detail}" if f.detail else f.cause.says for f in self.findings]
        places = [f" ({f.place})" if f.place is not None else "" for f in self.findings]
        return "; ".join(dict.fromkeys(text + place for text, place in zip(texts, places))) + "."

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def _grouped(findings: tuple[Finding, ...]) -> Iterator[str]:
    """The findings as text; sources that fail for the same reason at the same place share one."""
    groups: dict[tuple, list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.gradient, finding.cause, finding.place, finding.detail), []).append(finding)
    for group in groups.values():
        names = [finding.name for finding in group]
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        head, *rest = str(group[0]).splitlines()
        yield "\n".join([f"{shown}: {head.rpartition(': ')[2]}", *rest])
