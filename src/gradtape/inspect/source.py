"""The user's source code around a tape: what the names in it stand for, and where they were assigned.

Only reports look here, after the fact, and only for what the tape itself cannot have seen: that a name was bound again, or
that a value was computed before the `with` block. Where there is no source to read, nothing is found.
"""

from __future__ import annotations

import ast
import itertools
import linecache
import sys
from collections.abc import Iterator
from functools import cache, cached_property
from inspect import CO_OPTIMIZED
from types import CodeType, FrameType
from typing import Any

from gradtape.core.callsite import Place, place_of, user_frame
from gradtape.core.variable import Variable
from gradtape.values.places import is_ours
from gradtape.values.tensor import Tensor


class Surroundings:
    """The function (or module) in whose code a tape was entered, and what its names stand for, if it still runs."""

    def __init__(self, entered: tuple[CodeType, int], frame: FrameType) -> None:
        code = entered[0]
        place = place_of(*entered)
        inner = frame = user_frame(frame)
        while frame.f_code is not code and frame.f_back is not None:
            frame = frame.f_back
        both_modules = code.co_name == inner.f_code.co_name == "<module>"  # two cells of a notebook
        is_running = frame.f_code is code or both_modules
        frame = frame if frame.f_code is code else inner
        self._scopes = _locals(frame), frame.f_globals
        self.file, self._function = place.file, place.function
        tree = _parsed(place.file) if is_running and not is_ours(place.file) else None
        self._scope = _innermost(tree, place.line, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)) if tree else None
        block = _innermost(tree, place.line, (ast.With,)) if tree else None
        self.block: Any = block if block is not None and block.lineno <= place.line <= block.body[0].lineno else None

    def names(self, value: Any) -> list[str]:
        """What the frame calls a value: its own names first, then ``name.attribute`` and ``name[key]``."""
        return self._names.get(id(value), [])

    @cached_property
    def _names(self) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        pairs = {name: value for scope in reversed(self._scopes) for name, value in list(scope.items())}
        for name, value in pairs.items():
            found.setdefault(id(value), []).append(name)
        for name, value in pairs.items():
            if not name.startswith("_"):
                for text, inner in _held(name, value):
                    found.setdefault(id(inner), []).append(text)
        return found

    def _stems(self, value: Any) -> set[str]:
        """The names under which the code assigns and reads a value: that of an element is its container's."""
        return {name.partition("[")[0] for name in self.names(value)}

    def assignments(self) -> Iterator[tuple[set[str], set[str], int]]:
        """``(names assigned, names read, line)`` of each assignment in the scope, in the order of lines."""
        if self._scope is None:
            return
        nodes = (n for n in _inside(self._scope) if isinstance(n, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)))
        for node in sorted(nodes, key=lambda n: n.lineno):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            assigned = {text for target in targets for text in _mentioned(target, ast.Store)}
            read = {text for part in (node.value, *targets) if part is not None for text in _mentioned(part, ast.Load)}
            yield assigned, read | (assigned if isinstance(node, ast.AugAssign) else set()), node.lineno

    def place(self, line: int) -> Place:
        return Place(self.file, line, self._function)

    def is_in_block(self, line: int) -> bool:
        return self.block is not None and self.block.lineno <= line <= (self.block.end_lineno or self.block.lineno)

    def rebound(self, value: Any) -> Place | None:
        """Where a name of ``value`` was assigned something that was computed from the name itself."""
        names = self._stems(value)
        lines = [line for assigned, read, line in self.assignments() if names & assigned & read]
        return self.place(lines[-1]) if lines else None

    def replaced(self, value: Any) -> Place | None:
        """The same, if that is after the block began: before it, the name stood for nothing that the block has seen."""
        place = self.rebound(value)
        return place if place is not None and self.block is not None and place.line > self.block.lineno else None

    def used_before_watch(self, value: Any, target: Any) -> Place | None:
        """Where ``value`` was read on the way to ``target``, if `watch` was called with it only afterwards."""
        if self.block is None:
            return None
        names = set(self.names(value))
        calls = [n for n in ast.walk(self.block) if isinstance(n, ast.Call) and getattr(n.func, "attr", "") == "watch"]
        watched = [n.lineno for n in calls if any(names & set(_mentioned(argument, ast.Load)) for argument in n.args)]
        behind = self.lines_behind(target)
        used = [line for _, read, line in self.assignments() if line in behind and names & read and self.is_in_block(line)]
        return self.place(used[0]) if watched and used and used[0] < min(watched) else None

    def computed(self, value: Any) -> tuple[Place | None, bool]:
        """Where ``value`` was assigned, and whether that is in the block."""
        names = set(self.names(value))
        lines = [line for assigned, _, line in self.assignments() if names & assigned]
        return (self.place(lines[-1]), self.is_in_block(lines[-1])) if lines else (None, False)

    def lines_behind(self, value: Any) -> set[int]:
        """The lines of all assignments that a name of ``value`` can have come from."""
        names, lines = set(self.names(value)), set()
        assignments = list(self.assignments())
        while found := {i for i, (assigned, _, line) in enumerate(assignments) if line not in lines and names & assigned}:
            lines |= {assignments[i][2] for i in found}
            names = names.union(*(assignments[i][1] for i in found))
        return lines

    def read_before(self, value: Any) -> Place | None:
        """Where ``value`` was used, before the block, for something that the block uses."""
        if self.block is None:
            return None
        used = {text for statement in self.block.body for text in _mentioned(statement, ast.Load)}
        names = set(self.names(value))
        owners = {name.partition(".")[0] for name in names if "." in name}  # a model, which may read it when it is called
        firsts: dict[str, int] = {}  # a name that was computed from the value, and the line of the first step
        for assigned, read, line in self.assignments():
            if line >= self.block.lineno:
                break
            called = owners & read and any(isinstance(self._value(name), Tensor) for name in assigned)
            origin = next((firsts[name] for name in read if name in firsts), line if names & read or called else None)
            for name in assigned - names:
                if origin is None:
                    firsts.pop(name, None)
                else:
                    firsts[name] = origin
        lines = [line for name, line in firsts.items() if name in used]
        return self.place(lines[0]) if lines else None

    def frontier(self, target: Any, reached: set) -> tuple[Place, Any] | None:
        """The line on the way to ``target`` that read one of the ``reached`` values and gave another, and what it gave."""
        behind = self.lines_behind(target)
        for assigned, read, line in self.assignments():
            given = [self._value(name) for name in assigned]
            took = any(_key(self._value(name)) in reached for name in read)
            if line in behind and took and not any(_key(value) in reached for value in given):
                return self.place(line), given[0]
        return None

    def _value(self, name: str) -> Any:
        """What a name, or an attribute of a name, stands for in the frame."""
        first, _, attribute = name.partition(".")
        value = next((scope[first] for scope in self._scopes if first in scope), None)
        return getattr(value, "__dict__", {}).get(attribute) if attribute else value

    def stopped(self, value: Any) -> Place | None:
        """Where ``value`` was assigned, if that is inside a `stop_recording` block."""
        names = set(self.names(value))
        lines = [line for assigned, _, line in self.assignments() if names & assigned]
        for node in _inside(self._scope) if self._scope is not None else ():
            if isinstance(node, ast.With) and "stop_recording" in ast.unparse(node.items[0].context_expr):
                inner = [line for line in lines if node.lineno <= line <= (node.end_lineno or node.lineno)]
                if inner:
                    return self.place(inner[-1])
        return None


def _locals(frame: FrameType) -> dict[str, Any]:
    """The local names of a frame. Before Python 3.13 it keeps the copy that we ask for, and with it all values: not for us."""
    names = frame.f_locals
    copy = dict(names)
    if type(names) is dict and frame.f_code.co_flags & CO_OPTIMIZED and sys.getrefcount(names) <= 3:  # the user has no locals()
        names.clear()
    return copy


_MANY = 1000  # elements of a container that are looked at


def _held(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The attributes of an object, or the elements of a list, tuple or dictionary, as the code spells them."""
    if isinstance(value, (list, tuple)):
        yield from ((f"{name}[{i}]", inner) for i, inner in enumerate(value[:_MANY]))
    elif isinstance(value, dict):
        yield from ((f"{name}[{key!r}]", inner) for key, inner in itertools.islice(list(value.items()), _MANY))
    elif type(held := getattr(value, "__dict__", None)) is dict:
        yield from ((f"{name}.{attribute}", inner) for attribute, inner in list(held.items()))


def _key(value: Any) -> Any:
    return value._key if isinstance(value, (Tensor, Variable)) else None


@cache
def _parse(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def _parsed(file: str) -> ast.Module | None:
    text = "".join(linecache.getlines(file))
    return _parse(text) if text else None


def _innermost(tree: Any, line: int, kinds: tuple) -> Any:
    """The smallest node of these kinds that contains a line."""
    nodes = [n for n in ast.walk(tree) if isinstance(n, kinds)]
    around = [n for n in nodes if isinstance(n, ast.Module) or n.lineno <= line <= n.end_lineno]
    return max(around, key=lambda n: getattr(n, "lineno", 0), default=None)


def _inside(scope: Any) -> Iterator[Any]:
    """The nodes of a function or module, without those of the functions in it."""
    pending = list(ast.iter_child_nodes(scope))
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            pending.extend(ast.iter_child_nodes(node))


def _mentioned(node: ast.AST, how: type) -> Iterator[str]:
    """The names, and attributes of names, that a piece of code reads (`ast.Load`) or assigns (`ast.Store`)."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, how):
            yield inner.id
        elif isinstance(inner, ast.Attribute) and isinstance(inner.ctx, how) and isinstance(inner.value, ast.Name):
            yield f"{inner.value.id}.{inner.attr}"
        elif isinstance(inner, ast.Subscript) and isinstance(inner.ctx, how) and isinstance(inner.value, ast.Name):
            yield inner.value.id
