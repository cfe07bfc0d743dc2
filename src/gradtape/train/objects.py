"""What a checkpoint saves: the variables and states that are reached from an object through attributes and containers.

Followed are modules, optimizers, lists, tuples, dictionaries, anything with a method ``_checkpoint_children()`` that returns
a dictionary (layers and models of Keras among them), and other Python objects if they have a variable, a module or the like
directly among their attributes. Saved are variables, and objects with a pair of methods ``_state()`` and ``_restore(state)``,
where the state is made of numbers, strings, arrays, lists, tuples and dictionaries.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradtape.core.variable import Variable, variable_of
from gradtape.errors import message
from gradtape.ops.module import Module
from gradtape.optimizers.base import Optimizer
from gradtape.train.growing import plain
from gradtape.values.convert import string_scalar
from gradtape.values.tensor import Tensor

ATTRIBUTES = "/.ATTRIBUTES/"
VALUE, STATE = ATTRIBUTES + "VARIABLE_VALUE", ATTRIBUTES + "STATE"
SLOT = "/.OPTIMIZER_SLOT/"
_CODE = (type, types.ModuleType, types.FunctionType, types.MethodType, types.BuiltinFunctionType)
_CONTAINERS = (list, tuple, Mapping)
_OPAQUE = (*_CODE, str, bytes, Tensor, np.ndarray)


def has_state(value: Any) -> bool:
    """Whether it says of itself how its state is saved."""
    return callable(getattr(type(value), "_state", None)) and callable(getattr(type(value), "_restore", None))


def has_value(value: Any) -> bool:
    """Whether a checkpoint saves something for it, and does not only pass through it."""
    return isinstance(value, Variable) or has_state(value)


def _is_known(value: Any) -> bool:
    kind = type(value)
    if isinstance(value, (Variable, Module, Optimizer)) or has_state(value):
        return True
    return hasattr(kind, "_checkpoint_children") or hasattr(kind, "__gradtape_variable__")


def is_trackable(value: Any) -> bool:
    """Whether a checkpoint follows, or saves, this value where it meets it."""
    if _is_known(value):
        return True
    if isinstance(value, (list, tuple)):
        return any(map(is_trackable, value))
    if isinstance(value, Mapping):
        return any(map(is_trackable, value.values()))
    if isinstance(value, _OPAQUE):
        return False
    return any(map(_is_known, getattr(value, "__dict__", {}).values()))


def is_container(value: Any) -> bool:
    """Whether a checkpoint names what is in this value by place or key."""
    return isinstance(value, _CONTAINERS)


def can_be_followed(value: Any) -> bool:
    """Whether a checkpoint follows this value when it is restored: a container too that has nothing to save yet."""
    return is_trackable(value) or is_container(value)


def can_be_named(value: Any) -> bool:
    """Whether it may be given to a checkpoint by name: containers and objects too that have nothing to save yet."""
    return can_be_followed(value) or _is_plain(value)


def _is_plain(value: Any) -> bool:
    return hasattr(value, "__dict__") and not isinstance(value, _OPAQUE)


def kind(value: Any) -> str:
    """What it was, for whoever reads the index: a container's type, or the name of the class."""
    containers = (("list", list), ("tuple", tuple), ("dict", Mapping), ("Variable", Variable))
    named = next((name for name, container in containers if isinstance(value, container)), None)
    return named or f"{type(value).__module__}.{type(value).__qualname__}"


def children(value: Any) -> dict[str, Any]:
    """What stands directly below an object, by local name."""
    if has_value(value):
        return {}
    if hasattr(type(value), "_checkpoint_children"):
        found = value._checkpoint_children()
        found = {**found, **{name: part for name, part in untracked(value).items() if name not in found}}
    elif isinstance(value, Optimizer):
        found = _optimizer_variables(value)
    elif is_container(value):
        found = named(value)
    else:
        found = getattr(value, "__dict__", {})
    return {name: variable_of(plain(part)) for name, part in found.items() if is_trackable(part)}


def containers(value: Any) -> dict[str, Any]:
    """Lists, tuples and dictionaries that stand directly below an object, those too that have nothing to save yet."""
    parts = {name: part for holder in holders(value) for name, part in named(holder).items()}
    return {name: plain(part) for name, part in parts.items() if is_container(part)}


def owners(value: Any) -> tuple[Any, ...]:
    """The objects whose parts are those of a value: a checkpoint has the parts of its root, too."""
    return value._owners() if hasattr(type(value), "_owners") else (value,)


def holders(value: Any) -> list[Any]:
    """What holds the parts of an object: a list or a dictionary itself, otherwise the dictionaries of attributes."""
    if is_container(value):
        return [plain(value)]
    return [] if has_value(value) else [vars(owner) for owner in owners(value) if _is_plain(owner)]


def untracked(value: Any) -> dict[str, Any]:
    """Attributes of a layer or model that Keras does not look after: our variables and modules, and containers with some."""
    is_layer = hasattr(type(value), "_flatten_layers")  # without importing Keras
    return {name: part for name, part in vars(value).items() if _has_ours(part)} if is_layer else {}


def _has_ours(part: Any) -> bool:
    if isinstance(part, Mapping):
        part = list(part.values())
    return any(map(_has_ours, part)) if isinstance(part, (list, tuple)) else isinstance(part, (Variable, Module))


def named(container: Any) -> dict[str, Any]:
    """The parts of a container by local name."""
    if isinstance(container, Mapping):
        return _string_keys(container)
    return dict(zip(getattr(container, "_fields", map(str, range(len(container)))), container))


def _string_keys(mapping: Mapping) -> dict[str, Any]:
    named = {str(key): part for key, part in mapping.items()}
    if len(named) != len(mapping):
        raise ValueError(
            message(
                "Unable to save a dictionary whose keys read alike.",
                received=f"keys {list(mapping)}",
                expected="keys with different texts, since a checkpoint names its values by text",
            )
        )
    return named


# Optimizers: the slots belong to pairs of optimizer and variable, whatever the order in which it was given the variables


def _optimizer_variables(optimizer: Optimizer) -> dict[str, Variable]:
    """The variables that are not slots: the number of iterations, the learning rate, what a subclass adds."""
    slots = {id(slot) for _, _, slot in optimizer_slots(optimizer)}
    found: dict[str, Variable] = {}
    for variable in optimizer._variables:
        if id(variable) not in slots:
            label = variable.name.removesuffix(":0").removeprefix(optimizer.name + "/")
            copies = sum(name.partition("~")[0] == label for name in found)
            found[f"{label}~{copies}" if copies else label] = variable
    if isinstance(optimizer._learning_rate, Variable):
        found.setdefault("learning_rate", optimizer._learning_rate)  # a variable that the user made
    return found


def optimizer_slots(optimizer: Optimizer) -> Iterator[tuple[int, str, Variable]]:
    """(position of the trained variable, name of the slot, slot variable)."""
    names = [name for group in optimizer.slots() for name in group]
    for position, variable in enumerate(optimizer._trainable):
        entry = optimizer._entries.get(variable._key)
        if entry is not None:
            yield from ((position, name, slot) for name, slot in zip(names, entry[4]))
    for name, made in (("average", optimizer._averages), ("gradient_accumulator", optimizer._accumulators)):
        yield from ((position, name, slot) for position, slot in enumerate(made))


# The graph


@dataclass
class Node:
    """An object, where it was first met, and the numbers of those below it."""

    value: Any
    path: str
    children: dict[str, int] = field(default_factory=dict)
    slots: list[dict] = field(default_factory=list)

    @property
    def key(self) -> str:
        return self.path + VALUE


def collect(root: Any) -> list[Node]:
    """All objects below a root, nearest first, each once."""
    nodes = [Node(root, "")]
    numbers = {id(root): 0}

    def visit(value: Any, path: str) -> int:
        number = numbers.setdefault(id(value), len(nodes))
        if number == len(nodes):
            nodes.append(Node(value, path))
        return number

    for node in nodes:  # grows while it is walked
        for name, part in children(node.value).items():
            node.children[name] = visit(part, _join(node.path, name))
    for node in list(nodes):
        if isinstance(node.value, Optimizer):
            for position, name, slot in optimizer_slots(node.value):
                owner = numbers.get(id(node.value._trainable[position]))
                place = f"{nodes[owner].path}{SLOT}{node.path}" if owner is not None else f"{node.path}/.SLOTS/{position}"
                number = visit(slot, f"{place}/{name}")
                node.slots.append({"position": position, "name": name, "variable": owner, "object": number})
    return nodes


def _join(path: str, name: str) -> str:
    escaped = name.replace(".", "..").replace("/", ".S")
    return f"{path}/{escaped}" if path else escaped


# States


def pack(state: Any, key: str, arrays: dict[str, np.ndarray]) -> Any:
    """A state as JSON; its arrays go into ``arrays`` under names that begin with ``key``."""
    if state is None or type(state) in (bool, int, float, str):
        return state
    if isinstance(state, Mapping):
        return {"dict": [[pack(name, key, arrays), pack(part, key, arrays)] for name, part in state.items()]}
    if isinstance(state, (list, tuple)):
        return {type(state).__name__: [pack(part, key, arrays) for part in state]}
    if isinstance(state, bytes):
        array = string_scalar(state)
    elif isinstance(state, Tensor):
        array = state._host()
    elif isinstance(state, (np.ndarray, np.generic)):
        array = np.asarray(state)
    else:
        raise TypeError(
            message(
                f"Unable to save the state of {key.partition(ATTRIBUTES)[0]!r}.",
                received=f"a {type(state).__name__}",
                expected="numbers, strings, arrays, and lists, tuples and dictionaries of them",
            )
        )
    name = f"{key}/{sum(other.startswith(key + '/') for other in arrays)}"
    arrays[name] = array.copy()  # the state may go on changing before it is written
    return {"array": name, "bytes": isinstance(state, bytes)}


def unpack(packed: Any, read: Any) -> Any:
    """The state that `pack` was given; ``read`` gives an array for its name."""
    if not isinstance(packed, dict):
        return packed
    if "dict" in packed:
        return {unpack(name, read): unpack(part, read) for name, part in packed["dict"]}
    if "array" in packed:
        array = read(packed["array"])
        return array[()] if packed["bytes"] else array
    ((kind, parts),) = packed.items()
    return {"list": list, "tuple": tuple}[kind](unpack(part, read) for part in parts)
