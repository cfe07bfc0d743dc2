"""Name scopes: prefixes for the names of variables, per thread."""

from __future__ import annotations

import threading

from gradtape.errors import message, shown


class _Scopes(threading.local):
    path: tuple[str, ...] = ()


_scopes = _Scopes()


def scoped(name: str) -> str:
    """A name with the active scopes in front."""
    return "/".join((*_scopes.path, name))


class name_scope:
    """Context manager: prefix the names of variables made inside.

    >>> with name_scope("layer") as scope:
    ...     scope
    'layer/'
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            text = f"name for name_scope must be a string, got {name!r}"
            raise ValueError(message(text, received=f"{shown(name)} of type {type(name).__name__}", expected="a string"))
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    def __enter__(self) -> str:
        self._saved = _scopes.path
        _scopes.path = (*self._saved, self._name.rstrip("/"))
        return "/".join(_scopes.path) + "/"

    def __exit__(self, *_: object) -> None:
        _scopes.path = self._saved
