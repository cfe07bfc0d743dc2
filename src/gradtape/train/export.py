"""Saved models: the variables and functions of an object tree in a folder, and the tree rebuilt without its classes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from gradtape.core.variable import Variable
from gradtape.errors import DataLossError, NotFoundError, UnimplementedError, message
from gradtape.function.decorator import can_compile
from gradtape.function.inputs import Inputs
from gradtape.ops.module import Module
from gradtape.train import files, objects
from gradtape.train.checkpoint import snapshot
from gradtape.train.programs import Programs, functions_of, load_function, load_signature
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
    """Save the variables and the functions of an object, by attribute, in a folder.

    A `tf.function` is saved as a program for each signature that it has: its ``input_signature``, or those with which it was
    called. `load` gives back variables and programs, without the classes that they came from. ``signatures`` is a function, or
    several by name, to be called as servers call a model: by the names of the arguments. Programs have gradients, once; for
    higher orders make an object of the class and ``tf.train.Checkpoint(model).restore(folder)``.
    """
    if not objects.can_be_named(obj):
        text = (
            f"Expected an object of type `Trackable`, such as `tf.Module` or a subclass of the `Trackable` class, for "
            f"export. Got {obj} with type {type(obj)}."
        )
        raise ValueError(message(text, received=f"a {type(obj).__name__}", fix="a tf.Module with the object as an attribute"))
    _check_attributes(obj)
    folder = os.fsdecode(export_dir)
    programs = Programs()
    if signatures is None and isinstance(obj, LoadedModule):
        signatures = obj.__dict__.get("signatures")
    if signatures is not None:
        programs.add_signatures(signatures)
    programs.add_functions([node.value for node in objects.collect(obj)])
    nodes = objects.collect(obj)  # now that no function makes a variable any more
    about: dict[str, Any] = {"class": objects.kind(obj), "variables": VARIABLES.replace(os.sep, "/")}
    about |= programs.described(nodes)
    arrays, saved = snapshot(obj)
    programs.write(folder)
    files.write(os.path.join(folder, VARIABLES), arrays, saved)
    about["index"] = _digest(folder)
    files.write_json(os.path.join(folder, MODEL), about)
    programs.tidy(folder)


def _check_attributes(obj: Any) -> None:
    """Raise if something to be saved has the name of what `load` adds."""
    if "signatures" in {*objects.children(obj), *(name for name, _ in functions_of(obj))}:
        raise ValueError(
            message(
                f"Exporting an object {obj!r} which has an attribute named 'signatures' set.",
                received=f"signatures, a {type(obj.signatures).__name__}",
                why="'signatures' is a reserved attribute, in which tf.saved_model.load puts the signatures of what it loads",
                fix="another name for the attribute",
            )
        )


def _digest(folder: str) -> str:
    """Of what is said about the variables in a folder: programs know them by their numbers in it."""
    with open(os.path.join(folder, VARIABLES + files.INDEX), "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def contains_saved_model(export_dir: Any) -> bool:
    """Whether a folder holds a model that `save` wrote."""
    return os.path.exists(os.path.join(os.fsdecode(export_dir), MODEL))


class LoadedModule(Module):
    """What was saved of an object: variables and functions, under the attributes they had."""

    _class = ""
    _refused: Any = MappingProxyType({})  # by name: why a function was not saved

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if "__call__" in self.__dict__:
            return self.__dict__["__call__"](*args, **kwargs)
        raise UnimplementedError(_no_functions(self, "__call__", "it cannot be called"))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(_no_functions(self, name, f"it has no attribute {name!r}"))


def _no_functions(module: LoadedModule, name: str, what: str) -> str:
    kind = module._class
    why = module._refused.get(name)
    return message(
        f"This is what was saved of a {kind or 'model'}: its variables, and the tf.functions that had a signature; {what}.",
        received=f"{name!r}",
        why=None if why is None else _reason(why),
        fix=f"make a {kind.rpartition('.')[2] or 'model'} and restore into it: tf.train.Checkpoint(model).restore(folder)",
    )


def _reason(text: str) -> str:
    """The reason in a message; its beginning, if it gives none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("Why:")), " ".join(lines[:1]))


def load(export_dir: Any, tags: Any = None, options: LoadOptions | None = None) -> Any:
    """The variables and functions of a saved model as attributes of a `Module`, in the lists and dictionaries they were in."""
    folder = os.fsdecode(export_dir)
    if not contains_saved_model(folder):
        foreign = os.path.exists(os.path.join(folder, "saved_model.pb"))
        why = "TensorFlow's own saved models hold graphs, which are not read here" if foreign else None
        raise NotFoundError(
            message(
                f"SavedModel file does not exist at: {folder}/{MODEL}",
                received=f"{folder!r}",
                why=why,
                fix="tf.saved_model.save(module, folder) writes one; a Keras model: keras.saving.load_model(path)",
            )
        )
    expected = "what tf.saved_model.save wrote, whole"
    about = files.read_json(os.path.join(folder, MODEL), "saved model", expected)
    index = files.Index(os.path.join(folder, VARIABLES))
    if about.get("index") not in (None, _digest(folder)):
        text = "The variables of the saved model are not those that its programs were saved with."
        why = "saving another model there was interrupted, or its files were replaced"
        raise DataLossError(message(text, received=f"{folder!r}", why=why, fix="save the model again"))
    builder = _Builder(index)
    root = builder.build(0)
    _add_functions(folder, about, builder.build)
    return root


def _add_functions(folder: str, about: dict, build: Callable[[int], Any]) -> None:
    """Give the objects of a saved model their functions."""
    refused = dict(about.get("not saved", {}))
    if can_compile():
        device = Inputs([], {}, {})
        for function in about.get("functions", ()):
            if isinstance(owner := build(function["object"]), LoadedModule):
                owner.__dict__[function["name"]] = load_function(folder, function, build, device)
    else:
        refused |= {f"{f['object']}.{f['name']}": "Why: jax is not installed" for f in about.get("functions", ())}
    for place, why in refused.items():
        number, _, name = place.partition(".")
        if isinstance(owner := build(int(number)), LoadedModule):
            owner._refused = {**owner._refused, name: why}
    if isinstance(root := build(0), LoadedModule) and can_compile():
        served = about.get("signatures", {})
        made = {name: load_signature(folder, part, build, device) for name, part in served.items()}
        root.signatures = MappingProxyType(made)


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


