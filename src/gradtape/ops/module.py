"""`Module`: an object whose variables and submodules are found through its attributes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

from gradtape.core.variable import Variable
from gradtape.errors import message
from gradtape.values import nest
from gradtape.values.naming import name_scope


class Module:
    """Base class for things that own variables.

    >>> class Linear(Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.w = Variable([1.0, 2.0], name="w")
    >>> [v.name for v in Linear().trainable_variables]
    ['w:0']
    """

    _ignored = frozenset({"_name", "_scope"})
    _deferred: Any = None  # a restored checkpoint that waits for attributes not made yet

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = _snake_case(type(self).__name__)
        elif not name.isidentifier():
            text = (
                f"{name!r} is not a valid module name. Module names must be valid Python identifiers (e.g. a valid "
                "class name)."
            )
            raise ValueError(
                message(text, received=f"{name!r}", expected="letters, digits and underscores, not starting with a digit")
            )
        self._name = name

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if self._deferred is not None:
            self._deferred(self, name)

    @property
    def name(self) -> str:
        return self.__dict__.get("_name") or _snake_case(type(self).__name__)

    @property
    def name_scope(self) -> name_scope:
        """A context manager that prefixes the names of variables with the module's."""
        return name_scope(self.name)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All variables: this module's own by attribute name, then those of its submodules."""
        return tuple(self._found(lambda value: isinstance(value, Variable)))

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        return tuple(v for v in self.variables if v.trainable)

    @property
    def non_trainable_variables(self) -> tuple[Variable, ...]:
        return tuple(v for v in self.variables if not v.trainable)

    @property
    def submodules(self) -> tuple[Module, ...]:
        return tuple(self._found(lambda value: isinstance(value, Module)))

    def _found(self, wanted: Callable[[Any], bool], seen: set[int] | None = None) -> Iterator[Any]:
        """Values below this module for which ``wanted`` holds, each once."""
        seen = {id(self)} if seen is None else seen
        below = []
        for attribute in sorted(vars(self)):
            if attribute in self._ignored:
                continue
            for leaf in nest.flatten(vars(self)[attribute]):
                if not isinstance(leaf, (Variable, Module)) or id(leaf) in seen:
                    continue
                seen.add(id(leaf))
                if wanted(leaf):
                    yield leaf
                if isinstance(leaf, Module):
                    below.append(leaf)
        for module in below:
            yield from module._found(wanted, seen)

    @classmethod
    def with_name_scope(cls, method: Callable) -> Callable:
        """Decorator: run a method inside the module's name scope."""

        @functools.wraps(method)
        def wrapper(self: Module, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return wrapper


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
