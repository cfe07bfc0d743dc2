"""`Function.explain`: what a call would do, with which state, and what it costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gradtape.core.variable import Variable
from gradtape.function import signature
from gradtape.function.signature import Call
from gradtape.ops.execution import settings

HIT, TRACE, EAGER = "runs a program that exists", "traces a new program", "runs as it is written"


@dataclass(frozen=True)
class Explanation:
    """What a call of a function would do. Printing it tells."""

    name: str
    action: str
    """One of HIT, TRACE and EAGER."""
    why: str
    variables: tuple[Variable, ...] = ()
    """What the program reads or assigns, apart from its arguments."""
    assigned: tuple[Variable, ...] = ()
    donated: tuple[Variable, ...] = ()
    """Those whose memory the program writes over."""
    draws: int = 0
    """How many arrays of random numbers are drawn for each call."""
    cost: dict[str, dict[str, float]] = field(default_factory=dict)
    """XLA's figures for each piece of the program: floating-point operations, and bytes."""

    @property
    def traces(self) -> bool:
        return self.action == TRACE

    def __str__(self) -> str:
        lines = [f"{self.name} {self.action}: {self.why}."]
        if self.action == HIT:
            lines += ["  State:    " + (", ".join(map(self._state, self.variables)) or "none")]
            lines += [f"  Random:   {self.draws} {'array' if self.draws == 1 else 'arrays'} drawn per call"] * bool(self.draws)
            lines += [f"  {piece.capitalize() + ':':<10}{_figures(cost)}" for piece, cost in self.cost.items()]
        return "\n".join(lines)

    __repr__ = __str__

    def _state(self, variable: Variable) -> str:
        words = ["assigned"] * _among(variable, self.assigned) + ["donated"] * _among(variable, self.donated)
        kind = f"{variable.dtype.name} {tuple(variable.shape)}"
        return f"{variable.name} {kind}" + (f" ({', '.join(words)})" if words else "")


def _among(variable: Variable, variables: tuple[Variable, ...]) -> bool:
    return any(v is variable for v in variables)


def _figures(cost: dict[str, float]) -> str:
    parts = [f"{cost['flops']:,.0f} operations"] if "flops" in cost else []
    parts += [f"{_bytes(number)} {name}" for name, number in cost.items() if name != "flops"]
    return ", ".join(parts) or "XLA gives no figures"


def _bytes(number: float) -> str:
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} GB"


def explain(function: Any, call: Call, key_of: Callable[[Call], Any], can_compile: bool) -> Explanation:
    """What a call would do now, in this thread; ``key_of`` gives the key of its program."""
    name = function._name
    if not can_compile:
        return Explanation(name, EAGER, 'jax is not installed (pip install "gradtape[xla]")')
    if settings.run_eagerly:
        return Explanation(name, EAGER, "tf.config.run_functions_eagerly(True) was called")
    if not call.plain:
        return Explanation(name, EAGER, "an argument is not a tensor of numbers")
    key = key_of(call)
    program = function._programs.get(key)
    if program is None:
        return Explanation(name, TRACE, _why_new(function, call, key))
    if isinstance(program, str):
        return Explanation(name, EAGER, function._refusals.get(key, "XLA cannot express what it does"))
    if not program.fits(None):
        return Explanation(name, TRACE, "a variable has another shape than when the program was made")
    return _described(name, program)


def _described(name: str, program: Any) -> Explanation:
    donated = {which for kind, which in program.forward.donated if kind == "variable"}
    pieces = {"forward": program.forward, "backward": program.backward}
    return Explanation(
        name,
        HIT,
        "arguments of these types were passed before",
        tuple(program.variables),
        (*program.assigned, *(variable for variable, _ in program.constant)),
        tuple(v for v in program.variables if v._key in donated),
        len(program.draws),
        {word: cost(piece) for word, piece in pieces.items() if piece is not None},
    )


def _why_new(function: Any, call: Call, key: Any) -> str:
    if not function._programs:
        return "it is the first call"
    if any(known == call.key for known, _ in function._programs):
        return "it is the first call under such a tape" if key[1] else "it is the first call without a tape"
    nearest = min((known for known, _ in function._programs), key=lambda known: _distance(call, known))
    return signature.difference(call, nearest, function._argument_name)


def _distance(call: Call, known: tuple) -> float:
    kinds, structure = known
    if len(call.kinds) != len(kinds) or call.key[1] != structure:
        return float("inf")
    return sum(a != b for a, b in zip(call.kinds, kinds))


def cost(piece: Any) -> dict[str, float]:
    """XLA's figures for a compiled piece: operations, and bytes read and written, given, returned and needed meanwhile."""
    from gradtape.xp import jax as JAX

    with JAX.scope():
        executable = piece.compiled.lower(*piece.types).compile()
    found: dict[str, float] = {}
    analysis = executable.cost_analysis() or {}
    for name, word in (("flops", "flops"), ("bytes accessed", "accessed")):
        if name in analysis:
            found[word] = float(analysis[name])
    memory = executable.memory_analysis()
    for name, word in (("argument", "of arguments"), ("output", "of results"), ("temp", "in between")):
        size = getattr(memory, f"{name}_size_in_bytes", None)
        if size is not None:
            found[word] = float(size)
    return found
