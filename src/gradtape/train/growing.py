"""Lists and dictionaries that tell what is put into them.

They stand where a list or dictionary does for which a restored checkpoint has more values than it has parts. Both have the
same contents: what holds one's parts is the other, so whoever has that in hand sees all changes too.
"""

from __future__ import annotations

import functools
import operator
import types
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

_OWN = frozenset(
    "__new__ __init__ __init_subclass__ __getattribute__ __setattr__ __delattr__ __hash__ __dir__ __reduce__ __reduce_ex__ "
    "__getstate__ __sizeof__ __format__ __str__ __subclasshook__".split()
)
_ADD = frozenset({"append", "extend", "__iadd__", "__imul__"})
_SET = frozenset({"__setitem__", "setdefault", "update", "__ior__"})
_MOVE = frozenset("insert pop popitem remove clear reverse sort move_to_end __delitem__".split())
"""What may put parts into other places than they are in in the checkpoint: it tells nothing."""


class Growing:
    """A container that tells its checkpoint (``_deferred``) what is put into it. A copy of it is a plain container."""

    _base: Any  # the type of container
    _kept: Any  # what it stands for
    _deferred: Any = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls._base(*args, **kwargs)

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return type(self._kept), (self._kept.copy(),)

    def __str__(self) -> str:
        return str(self._kept)


def growing(kept: Any) -> Any:
    """The stand-in for a list or a dictionary."""
    kind = _KINDS[type(kept)]
    made = kind._base.__new__(kind)
    made._kept = kept
    _show(made)
    return made


def can_grow(value: Any) -> bool:
    """Whether there is a stand-in for it."""
    return type(value) in _KINDS


def teach(kind: Any) -> None:
    """Make the lists or dictionaries of a class written in Python tell."""
    kind._deferred = None
    for name in sorted(_ADD | _SET):
        if hasattr(kind, name) and not (issubclass(kind, Mapping) and name in _ADD):
            setattr(kind, name, _telling(name, getattr(kind, name)))


def plain(value: Any) -> Any:
    """What a stand-in stands for; anything else itself."""
    return value._kept if isinstance(value, Growing) else value


def replace(holder: Any, old: Any, new: Any) -> None:
    """Put something in the place of an object in a list or dictionary, wherever that is by now."""
    places: Iterable[Any] = holder.items() if isinstance(holder, Mapping) else enumerate(holder)
    for place, value in list(places):
        if value is old:
            holder[place] = new


def tell(container: Any, method: str, arguments: tuple, before: int) -> None:
    """Tell the checkpoint that waits for a list or a dictionary what a method has just put into it."""
    if container._deferred is None:
        return
    kept = plain(container)
    if isinstance(kept, Mapping):
        put = [(str(key), part) for key, part in kept.items()] if method in _SET else []
    else:
        put = [(str(place), kept[place]) for place in _places(method, arguments, before, len(kept))]
    if put:
        container._deferred.attached(put)


def _places(method: str, arguments: tuple, before: int, now: int) -> Iterable[int]:
    if method in _ADD:
        return range(before, now)
    if method != "__setitem__":
        return ()
    return range(now) if isinstance(arguments[0], slice) else [operator.index(arguments[0]) % now]


# The classes


def _show(container: Any) -> None:
    """Bring up to date what code in C reads without asking a method."""
    base, kept = container._base, container._kept
    base.clear(container)
    if base is list:
        list.extend(container, kept)
    else:
        for key, value in kept.items():
            base.__setitem__(container, key, value)


def _forwarded(name: str) -> Callable:
    changes = name in _ADD | _SET | _MOVE

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = len(self._kept)
        try:
            result = getattr(self._kept, name)(*map(plain, args), **kwargs)
        finally:
            if changes:
                _show(self)
        if changes and self._deferred is not None:
            tell(self, name, args, before)
            _show(self)  # what was put in may have a stand-in now
        if result is not self._kept:
            return result
        return result if self._deferred is None else self  # of `+=`

    method.__name__ = method.__qualname__ = name
    return method


def _telling(name: str, method: Callable) -> Callable:
    @functools.wraps(method)
    def telling(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = len(self)
        result = method(self, *args, **kwargs)
        tell(self, name, args, before)
        return result

    return telling


def _class(name: str, base: Any) -> Any:
    kinds = types.WrapperDescriptorType, types.MethodDescriptorType
    named = {name: part for owner in reversed(base.__mro__[:-1]) for name, part in vars(owner).items()}
    methods = {name: _forwarded(name) for name, part in named.items() if isinstance(part, kinds) and name not in _OWN}
    if base is list:
        methods["__radd__"] = lambda self, other: other + self._kept
    return type(name, (Growing, base), {**methods, "_base": base, "__hash__": None, "__module__": __name__})


_KINDS: dict[type, Any] = {
    list: _class("GrowingList", list), dict: _class("GrowingDict", dict),
    OrderedDict: _class("GrowingOrderedDict", OrderedDict),
}  # fmt: skip
