"""Saved models: the variables of an object tree in a folder, and the tree rebuilt from it without the program's classes."""

from __future__ import annotations

import json
import os
from typing import Any

from gradtape.core.variable import Variable
from gradtape.errors import NotFoundError, UnimplementedError, message
from gradtape.ops.module import Module
from gradtape.train import files, objects
from gradtape.train.checkpoint import snapshot
from gradtape.values.tensor import wrap

MODEL = "saved_model.json"
VARIABLES = os.path.join("variables", "variables")


class SaveOptions:
    """How a model is saved, as in TensorFlow; accepted, and without effect."""

    def __init__(self, **options: Any) -> None:
        self.__dict__.update(options)


class LoadOptions(SaveOptions):
    """How a model is loaded, as in TensorFlow; accepted, and without effect."""


def save(obj: Any, export_dir: Any, signatures: Any = None, options: SaveOptions | None = None) -> None:
    """Save the variables of an object, by attribute, in a folder.

    Functions are not saved: `load` gives back the variables, not the program. To compute with a loaded model, make an object
    of your class and ``tf.train.Checkpoint(model).restore(folder)``.
    """
    if not objects.can_be_named(obj):
        text = (
            f"Expected an object of type `Trackable`, such as `tf.Module` or a subclass of the `Trackable` class, for "
            f"export. Got {obj} with type {type(obj)}."
        )
        raise ValueError(message(text, received=f"a {type(obj).__name__}", fix="a tf.Module with the object as an attribute"))
    if signatures is not None:
        raise UnimplementedError(
            message(
                "tf.saved_model.save does not save signatures.",
                why="a saved model holds variables; saving programs needs compiled functions that can be exported",
                fix="leave `signatures` out, and restore the variables into an object of the class",
            )
        )
    folder = os.fsdecode(export_dir)
    arrays, saved = snapshot(obj)
    files.write(os.path.join(folder, VARIABLES), arrays, saved)
    about = {"format": files.FORMAT, "class": objects.kind(obj), "variables": VARIABLES.replace(os.sep, "/")}
    files.write_text(os.path.join(folder, MODEL), json.dumps(about))


def contains_saved_model(export_dir: Any) -> bool:
    """Whether a folder holds a model that `save` wrote."""
    return os.path.exists(os.path.join(os.fsdecode(export_dir), MODEL))


class LoadedModule(Module):
    """The variables of a saved model, under the attributes they had. It has no functions."""

    _class = ""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise UnimplementedError(_no_functions(self._class, "it cannot be called"))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(_no_functions(self._class, f"it has no attribute {name!r}"))


def _no_functions(kind: str, what: str) -> str:
    return message(
        f"This is what was saved of a {kind or 'model'}: its variables and nothing else, so {what}.",
        fix=f"make a {kind.rpartition('.')[2] or 'model'} and restore into it: tf.train.Checkpoint(model).restore(folder)",
    )


def load(export_dir: Any, tags: Any = None, options: LoadOptions | None = None) -> Any:
    """The variables of a saved model as attributes of a `Module`, in the lists and dictionaries in which they were."""
    folder = os.fsdecode(export_dir)
    if not contains_saved_model(folder):
        raise NotFoundError(
            message(
                f"SavedModel file does not exist at: {folder}/{MODEL}",
                received=f"{folder!r}",
                why="TensorFlow's own saved models hold graphs, which are not read here"
                                if os.path.exists(os.path.join(folder, "saved_model.pb"))
                                else None,
                fix="tf.saved_model.save(module, folder) writes one; a Keras model: keras.saving.load_model(path)",
            )
        )
    index = files.Index(os.path.join(folder, VARIABLES))
    return _Builder(index).build(0)


class _Builder:
    """Makes the objects of an index, each once."""

    def __init__(self, index: files.Index) -> None:
        self.index = index
        self.made: dict[int, Any] = {}

    def build(self, number: int) -> Any:
        if number not in self.made:
            saved = self.index.objects[number]
            kind = saved["kind"]
            if "tensor" in saved:
                self.made[number] = self._variable(saved)
            elif kind in ("list", "tuple", "dict"):
                parts = {name: self.build(child) for name, child in saved.get("children", {}).items()}
                self.made[number] = parts if kind == "dict" else list(parts.values())
            else:
                self._module(number, saved)
        return self.made[number]

    def _variable(self, saved: dict) -> Variable:
        value = wrap(self.index.read(saved["tensor"]))
        return Variable(value, trainable=saved["trainable"], name=saved["name"])

    def _module(self, number: int, saved: dict) -> None:
        module = LoadedModule()
        module._class = saved["kind"]
        self.made[number] = module  # before its parts: they may refer to it
        for name, child in saved.get("children", {}).items():
            setattr(module, name, self.build(child))


