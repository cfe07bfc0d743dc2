"""One name for another module: `import` of a dotted name that an existing module answers."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Sequence

from gradtape.errors import message


class Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Serves ``name`` and everything below it: ``resolve`` gives the module that stands for a dotted name.

    The module itself is entered under the second name too, so a class is the same class under both.
    """

    def __init__(self, name: str, resolve: Callable[[str], types.ModuleType], *, root: bool = True) -> None:
        self.name = name
        self.resolve = resolve
        self.root = root  # whether the name itself is served, or only what is below it

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if (self.root and fullname == self.name) or fullname.startswith(self.name + "."):
            return importlib.machinery.ModuleSpec(fullname, self)
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        sys.modules[module.__name__] = self.resolve(module.__name__)

    def install(self) -> None:
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def remove(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)


def below(root: types.ModuleType, dotted: str) -> types.ModuleType:
    """The module that ``root`` has under a dotted name: its attribute where that is a module, else its submodule."""
    found = root
    for part in dotted.split("."):
        inner = getattr(found, part, None)
        found = inner if isinstance(inner, types.ModuleType) else importlib.import_module(f"{found.__name__}.{part}")
    return found


def install_as_tensorflow() -> None:
    """From now on ``import tensorflow as tf`` gives gradtape: for scripts that one cannot edit.

    Everything below it too: ``from tensorflow.keras.layers import Dense``. NumPy functions of tensors give arrays then, as
    they do there, instead of being recorded. Refused when the real TensorFlow is imported.
    """
    gradtape = importlib.import_module("gradtape")
    present = sys.modules.get("tensorflow")
    if present is gradtape:
        return
    if present is not None:
        raise RuntimeError(
            message(
                "The real TensorFlow is already imported.",
                received=f"tensorflow {getattr(present, '__version__', 'of unknown version')}",
                fix="call gradtape.install_as_tensorflow() before anything imports tensorflow",
            )
        )

    def resolve(name: str) -> types.ModuleType:
        inner = name.partition(".")[2]
        try:
            return below(gradtape, inner) if inner else gradtape
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("gradtape."):
                raise
            text = message(f"No module named {name!r}.", received="gradtape in the place of tensorflow, which has none")
            raise ModuleNotFoundError(text, name=name) from None

    Alias("tensorflow", resolve).install()
    importlib.import_module("tensorflow")
    importlib.import_module("gradtape.ops.execution").settings.records_numpy = False
