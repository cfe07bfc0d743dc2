"""The syntax tree of a function as it stands in its file, and a function made from a tree that was changed.

Trees keep the lines and columns of the file, so that an error in a converted function shows the line that the user wrote.
"""

from __future__ import annotations

import ast
import copy
import functools
import linecache
import textwrap
import types
from collections.abc import Callable, Iterator
from typing import Any

_FUTURE_ANNOTATIONS = annotations.compiler_flag
Definition = ast.FunctionDef | ast.Lambda


class NoSource(Exception):
    """The text of a function is not to be found: it was typed at a prompt, or made by `exec`."""


def definition(function: types.FunctionType) -> Definition:
    """The tree of a function, by the place that its code names; private names are written out as its class has them."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        raise NoSource(f"the source of {function.__qualname__} is not available")
    try:
        known = _definitions("".join(lines))
    except SyntaxError:  # a document with code in it
        known = _definitions(_block(lines, code.co_firstlineno))
    found = [pair for pair in known.get((code.co_firstlineno, code.co_name), ()) if _fits(*pair, code)]
    if len(found) > 1:  # several lambdas on one line: the innermost that holds all of the code
        found = [pair for pair in found if _holds(pair[0].body, code)][-1:]
    if len(found) != 1:
        raise NoSource(f"{code.co_filename}:{code.co_firstlineno} is not the source of {function.__qualname__}")
    node, owner = found[0]
    node = copy.deepcopy(node)
    return _Method(owner).visit(node) if owner else node


def _block(lines: list[str], first: int) -> str:
    """The statement that begins on a line, on that line."""
    import inspect

    return "\n" * (first - 1) + textwrap.dedent("".join(inspect.getblock(lines[first - 1 :])))


@functools.lru_cache(maxsize=16)
def _definitions(text: str) -> dict[tuple[int, str], list[tuple[Definition, str]]]:
    """The functions of a file by first line and name, each with the name of the class around it."""
    found: dict[tuple[int, str], list[tuple[Definition, str]]] = {}
    for node, owner in _walk(ast.parse(text), ""):
        first = node.decorator_list[0] if isinstance(node, ast.FunctionDef) and node.decorator_list else node
        found.setdefault((first.lineno, getattr(node, "name", "<lambda>")), []).append((node, owner))
    return found


def _walk(tree: ast.AST, owner: str) -> Iterator[tuple[Definition, str]]:
    pending = [(tree, owner)]
    while pending:  # from the outside inwards
        node, owner = pending.pop(0)
        if isinstance(node, Definition):
            yield node, owner
        inner = node.name if isinstance(node, ast.ClassDef) else owner
        pending.extend((child, inner) for child in ast.iter_child_nodes(node))


def _fits(node: Definition, owner: str, code: types.CodeType) -> bool:
    """Whether the arguments are the same: a file may have changed since it was imported."""
    given = node.args
    arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    names = [_private(a.arg, owner) for a in arguments if a is not None]
    return names == list(code.co_varnames[: len(names)])


def _private(name: str, owner: str) -> str:
    """``__name`` inside a class is ``_Class__name``."""
    hidden = owner and name.startswith("__") and not name.endswith("__")
    return f"_{owner.lstrip('_')}{name}" if hidden else name


def _holds(body: Any, code: types.CodeType) -> bool:
    """Whether the text of an expression is where all instructions come from, but the first, which stands for the beginning."""
    start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    places = [place for place in code.co_positions() if None not in place and place[3]]
    return all(start <= (line, column) and (last, to) <= end for line, last, column, to in places)  # type: ignore[operator]


class _Method(ast.NodeTransformer):
    """Writes out what the compiler adds inside a class: private names, and what ``super()`` means."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._first: str | None = None  # argument of the function around what is visited

    def visit(self, node: ast.AST) -> Any:
        for field in ("id", "attr", "arg"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                setattr(node, field, _private(name, self._owner))
        return super().visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        around = self._first
        arguments = [*node.args.posonlyargs, *node.args.args]
        self._first = arguments[0].arg if arguments else None
        self.generic_visit(node)
        self._first = around
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and self._first is not None:
            names = [ast.Name(name, ast.Load()) for name in ("__class__", self._first)]
            node.args = [ast.copy_location(name, node) for name in names]
        return node


class Template:
    """Compiled code from which functions are made that share the globals and the closure of another."""

    def __init__(self, node: ast.stmt, name: str, original: types.FunctionType, generated: set[str]) -> None:
        code = original.__code__
        cells = "".join(f" {variable} = None\n" for variable in code.co_freevars)
        # `ag__inner`: a name of ours in the scopes around the function would hide a global of the same name.
        text = f"def outer():\n{cells} def ag__inner(ag__):\n  pass\n  return {name}\n return ag__inner\n"
        module = ast.parse(text)
        outer: Any = module.body[0]
        outer.body[-2].body[0] = node
        for frame in ast.walk(module):
            if hasattr(frame, "lineno") and frame is not node:
                frame.__dict__.setdefault("end_lineno", frame.lineno)
        flags = code.co_flags & _FUTURE_ANNOTATIONS  # the only one that still makes a difference
        compiled = _renamed(compile(module, code.co_filename, "exec", flags, dont_inherit=True), code, {*generated, name})
        scope: dict[str, Any] = {}
        exec(compiled, scope)
        self._code = scope["outer"]().__code__

    def instantiate(self, function: types.FunctionType, operators: Any) -> Callable:
        """The new code in the place of a function's own."""
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        closure = tuple(cells[name] for name in self._code.co_freevars)
        made = types.FunctionType(self._code, function.__globals__, closure=closure)(operators)
        made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
        made.__name__, made.__qualname__ = function.__name__, function.__qualname__
        return made


def _renamed(code: types.CodeType, original: types.CodeType, generated: set[str]) -> types.CodeType:
    """Code whose generated parts carry the name of the function that they are part of, as tracebacks show it."""
    constants = tuple(_renamed(c, original, generated) if isinstance(c, types.CodeType) else c for c in code.co_consts)
    if code.co_name in generated:
        name, qualified = original.co_name, original.co_qualname
    else:
        name, qualified = code.co_name, f"{original.co_qualname}.<locals>.{code.co_name}"
    return code.replace(co_consts=constants, co_name=name, co_qualname=qualified)
