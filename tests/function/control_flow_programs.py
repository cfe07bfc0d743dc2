"""Random Python functions with nested control flow over tensors, as source text."""

from __future__ import annotations

import random
from collections.abc import Iterable

HEADER = """import gradtape as tf


def leaning(a, b):
    if a > b:
        return a - 0.25 * b
    return tf.tanh(b)


"""
SIGNATURE = "(a, b, n, rows)"


class Generator:
    """Writes one function of ``a`` and ``b`` (float64), ``n`` (int32) and ``rows`` (float64, along the first axis)."""

    def __init__(self, seed: int, size: int) -> None:
        self._random = random.Random(seed)
        self._count = 0
        self._budget = size  # statements that are left

    def source(self, name: str) -> str:
        lines = [f"def {name}{SIGNATURE}:", *self._block(1, loop=False), "    return a, b"]
        return "\n".join(lines) + "\n"

    def _block(self, depth: int, loop: bool, counters: tuple[str, ...] = ()) -> list[str]:
        lines: list[str] = []
        for _ in range(self._random.randint(1, 3)):
            if self._budget > 0:
                self._budget -= 1
                lines += self._statement(depth, loop, counters)
        return lines or ["    " * depth + "a = a + 0.125"]

    def _statement(self, depth: int, loop: bool, counters: tuple[str, ...]) -> list[str]:
        kinds = ["assign", "assign", "choose", "call"]
        if depth < 4:
            kinds += ["if", "if", "while", "range", "rows", "python"]
        if loop:
            kinds += ["break", "continue", "return"]
        return getattr(self, "_" + self._random.choice(kinds))(depth, loop, counters)

    # Statements

    def _assign(self, depth: int, loop: bool, counters: tuple[str, ...]) -> list[str]:
        return [f"{'    ' * depth}{self._pick('ab')} = {self._value(counters)}"]

    def _choose(self, depth: int, loop: bool, counters: tuple[str, ...]) -> list[str]:
        value = f"{self._value(())} if {self._condition(counters)} else {self._value(())}"
        return [f"{'    ' * depth}{self._pick('ab')} = {value}"]

    def _call(self, depth: int, loop: bool, counters: tuple[str, ...]) -> list[str]:
        return [f"{'    ' * depth}{self._pick('ab')} = leaning({self._pick('ab')}, {self._value(())})"]

    def _if(self, depth: int, loop: bool, counters: tuple[str, ...]) -> list[str]:
        indent = "    " * depth
        lines = [f"{indent}if {self._condition(counters)}:", *self._block(depth + 1, loop, counters)]
        if self._random.random() < 0.3:
            lines += [f"{indent}elif {self._condition(counters)}:", *self._block(depth + 1, loop, counters)]
        if self._random.random() < 0.5:
            lines += [f"{indent}else:", *self._block(depth + 1, loop, counters)]
        return lines

    def _while(self, depth: int, loop: bool, counters: tuple[str, ...]) -> list[str]:
        indent, k = "    " * depth, self._name()
        start = self._pick(["0", "tf.constant(0)", "n - n"])
        also = f" and ({self._condition(counters)})" if self._random.random() < 0.3 else ""
        head = [f"{indent}{k} = {start}", f"{indent}while {k} < {self._pick(['n', 'n', '3'])}{also}:", f"{indent}    {k} += 1"]
        return head + self._block(depth + 1, True, (*counters, k))

    def _range(self, depth: int, loop: bool, counters: tuple[str, ...]) -> list[str]:
        i = self._name()
        head = f"{'    ' * depth}for {i} in {self._pick(['tf.range(n)', 'range(n)', 'range(1, n + 2, 2)'])}:"
        return [head, *self._block(depth + 1, True, (*counters, i))]

    def _rows(self, depth: int, loop: bool, counters: tuple[str, ...]) -> list[str]:
        indent, row = "    " * depth, self._name()
        head = [f"{indent}for {row} in rows:", f"{indent}    {self._pick('ab')} += 0.25 * {row}"]
        return head + self._block(depth + 1, True, counters)

    def _python(self, depth: int, loop: bool, counters: tuple[str, ...]) -> list[str]:
        i = self._name()
        return [f"{'    ' * depth}for {i} in range(2):", *self._block(depth + 1, True, (*counters, i))]

    def _break(self, depth: int, loop: bool, counters: tuple[str, ...]) -> list[str]:
        return self._leave("break", depth, counters)

    def _continue(self, depth: int, loop: bool, counters: tuple[str, ...]) -> list[str]:
        return self._leave("continue", depth, counters)

    def _return(self, depth: int, loop: bool, counters: tuple[str, ...]) -> list[str]:
        return self._leave("return b, a", depth, counters)

    def _leave(self, how: str, depth: int, counters: tuple[str, ...]) -> list[str]:
        indent = "    " * depth
        return [f"{indent}if {self._condition(counters)}:", f"{indent}    {how}"]

    # Expressions

    def _value(self, counters: tuple[str, ...]) -> str:
        x, y = self._pick("ab"), self._pick("ab")
        forms = [f"tf.tanh({x} + 0.5 * {y})", f"{x} - 0.375 * {y}", f"tf.sin({x}) + 0.25", f"0.5 * {x}", f"tf.tanh({x} * {y})"]
        return self._pick(forms)

    def _condition(self, counters: tuple[str, ...]) -> str:
        x, y = self._pick("ab"), self._pick("ab")
        forms = [f"{x} > {self._random.uniform(-0.9, 0.9):.3f}", f"{x} + 0.1 < {y}", f"-0.8 < {x} < 0.6", "n > 2"]
        forms += [f"{k} % 2 == 1" for k in counters] + [f"{k} > 1" for k in counters]
        first, second = self._pick(forms), self._pick(forms)
        return self._pick([first, first, f"not {first}", f"({first}) and ({second})", f"({first}) or ({second})"])

    def _name(self) -> str:
        self._count += 1
        return f"k{self._count}"

    def _pick(self, options: list[str] | str) -> str:
        return self._random.choice(options)


def module(seeds: Iterable[int], size: int) -> str:
    """The source of a module with one function for each seed, and ``run``, which calls all of them."""
    functions = [Generator(seed, size).source(f"program_{seed}") for seed in seeds]
    calls = ", ".join(f"program_{seed}{SIGNATURE}" for seed in seeds)
    return HEADER + "\n\n".join(functions) + f"\n\ndef run{SIGNATURE}:\n    return [{calls}]\n"
