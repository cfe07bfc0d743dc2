"""The names in a user's function as they are bound now: what TensorFlow gets by tracing the function at `Dataset.map`.

Bound once, and shallowly, are the cells of the closure, the defaults, and the global names that the code reads, that of
functions inside it too. The objects stay the same, so what happens to them is seen. A function that assigns to `nonlocal` or
`global` names, or looks names up by their text, is left as it is.
"""

from __future__ import annotations

import builtins
import dis
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from gradtape.function.decorator import Function, Method

_OURS = frozenset({"gradtape", "keras"})  # what is bound to their names may change while they run
_BY_TEXT = frozenset({"eval", "exec", "globals"})
_MODULE = ("__builtins__", "__name__", "__package__", "__spec__", "__loader__", "__file__")
"""What the interpreter itself looks for among the globals of a function: to import, to warn, to find the source."""


def bound(function: Callable) -> Callable:
    """A callable like this one, none of whose names means something else later; itself if it is left as it is."""
    if type(function) is types.FunctionType:
        return _bound_function(function)
    if type(function) is types.MethodType:
        inner = bound(function.__func__)
        return function if inner is function.__func__ else types.MethodType(inner, function.__self__)
    if type(function) is functools.partial:
        return functools.partial(bound(function.func), *function.args, **function.keywords)
    if isinstance(function, (Function, Method)):
        return function._with_bindings(bound)
    return function if isinstance(function, type) else _bound_object(function)


def _bound_object(instance: Any) -> Callable:
    """An object with a method `__call__`, which Python looks up in its class."""
    found = next((vars(owner)["__call__"] for owner in type(instance).__mro__ if "__call__" in vars(owner)), None)
    if not isinstance(found, (types.FunctionType, Function)):
        return instance
    method = found.__get__(instance, type(instance))
    inner = bound(method)
    return instance if inner is method else inner


# Functions


def _bound_function(function: types.FunctionType) -> types.FunctionType:
    scope = _scope(function)
    if scope is None:
        return function
    cells = [_copied(cell) for cell in function.__closure__ or ()]
    made = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, tuple(cells))
    made.__kwdefaults__ = function.__kwdefaults__ and dict(function.__kwdefaults__)
    made.__dict__ = function.__dict__  # shared: an attribute of a function is a part of the object, not a name
    for name in ("__module__", "__qualname__", "__doc__", "__annotations__", "__type_params__"):
        if hasattr(function, name):
            setattr(made, name, getattr(function, name))
    _put_in_place(_successors(function, made), {} if scope is function.__globals__ else scope, cells)
    return made


def _copied(cell: types.CellType) -> types.CellType:
    try:
        return types.CellType(cell.cell_contents)
    except ValueError:  # the name has no value yet: it gets one in this cell
        return cell


def _successors(function: types.FunctionType, made: types.FunctionType) -> dict[int, Callable]:
    """By id, what the code of ``made`` should find instead: itself, and a bound form of the function that it decorates."""
    found: dict[int, Callable] = {id(function): made}
    wrapped = function.__dict__.get("__wrapped__")
    if callable(wrapped) and id(wrapped) not in found:
        found[id(wrapped)] = bound(wrapped)
    return found


def _put_in_place(successors: dict[int, Callable], scope: dict, cells: list[types.CellType]) -> None:
    scope.update({name: successors[id(value)] for name, value in scope.items() if id(value) in successors})
    for cell in cells:
        try:
            value = cell.cell_contents
        except ValueError:
            continue
        if id(value) in successors:
            cell.cell_contents = successors[id(value)]


# Names


class _Names(NamedTuple):
    """What a code object does with names that are not its own."""

    read: frozenset[str]  # globals and builtins
    in_classes: frozenset[str]  # those of them that the body of a class reads
    left_alone: bool


_READS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_STORES = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL"})
_STORES_OUTSIDE = frozenset({"STORE_DEREF", "DELETE_DEREF"})


@functools.lru_cache(maxsize=512)
def _names(code: types.CodeType) -> _Names:
    read, in_classes, stored = set(), set(), False
    for part, outside in _parts(code, frozenset(code.co_freevars)):
        for instruction in dis.get_instructions(part):
            operation, name = instruction.opname, instruction.argval
            if operation in _READS:
                read.add(name)
                if operation != "LOAD_GLOBAL":
                    in_classes.add(name)
            stored = stored or operation in _STORES or (operation in _STORES_OUTSIDE and name in outside)
    return _Names(frozenset(read), frozenset(in_classes), stored or not _BY_TEXT.isdisjoint(read))


def _parts(code: types.CodeType, outside: frozenset[str]) -> Iterator[tuple[types.CodeType, frozenset[str]]]:
    """The code and that of the functions inside it, each with the names of it that belong to functions around all of them."""
    yield code, outside
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _parts(constant, outside.intersection(constant.co_freevars))


class _Scope(dict):
    """Globals of which some have no value yet: those are looked up where they will be, whenever the function reads them."""

    def __init__(self, known: dict, pending: frozenset[str], later: dict) -> None:
        super().__init__(known)
        self._pending, self._later = pending, later

    def __missing__(self, name: str) -> Any:
        if name in self._pending:
            return self._later[name]
        raise KeyError(name)


def _scope(function: types.FunctionType) -> dict | None:
    """The global names that a function reads, as they are now; None for a function that is left as it is."""
    names, there = _names(function.__code__), function.__globals__
    if there.get("__name__", "").partition(".")[0] in _OURS:  # only what it was made from may be the user's
        return there if "__wrapped__" in function.__dict__ else None
    found = {name: there[name] for name in (*_MODULE, *names.read) if name in there}
    pending = frozenset(name for name in names.read if name not in found and not hasattr(builtins, name))
    # NOTE: only LOAD_GLOBAL asks a subclass of dict for what it misses, and it is slower than with a dict.
    if names.left_alone or pending & names.in_classes:
        return None
    return _Scope(found, pending, there) if pending else found
