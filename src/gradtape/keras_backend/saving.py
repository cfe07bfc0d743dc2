"""Saving: a file that cannot be loaded leaves the model as it was, and `tf.train.Checkpoint` follows layers and optimizers."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from typing import Any

from keras.src.backend.common import KerasVariable
from keras.src.ops.operation import Operation
from keras.src.saving import saving_api, saving_lib
from keras.src.saving.keras_saveable import KerasSaveable

from gradtape.errors import message
from gradtape.ops.execution import init_scope


def install() -> None:
    """Put the functions here into Keras, once all of it is imported."""
    from keras import models, saving

    saving_api.load_weights = saving.load_weights = _all_or_nothing(saving_api.load_weights)
    saving_api.load_model = saving.load_model = models.load_model = _checked(saving_api.load_model)
    KerasSaveable._deferred = None  # a restored checkpoint that waits for variables not made yet
    KerasSaveable._checkpoint_children = _children
    Operation._post_build = tell  # called when a layer has been built


# Files


def _all_or_nothing(load: Callable) -> Callable:
    @functools.wraps(load)
    def load_weights(model: Any, *args: Any, **kwargs: Any) -> Any:
        variables = [*model.variables, *getattr(getattr(model, "optimizer", None), "variables", ())]
        before = [variable.__gradtape_variable__._tensor for variable in variables]
        try:
            return load(model, *args, **kwargs)
        except BaseException:
            for variable, tensor in zip(variables, before):
                variable.__gradtape_variable__._put(tensor._array)
            raise

    return load_weights


def _checked(load: Callable) -> Callable:
    @functools.wraps(load)
    def load_model(filepath: Any, *args: Any, **kwargs: Any) -> Any:
        path = os.fspath(filepath) if isinstance(filepath, (str, os.PathLike)) else ""
        if path.endswith(".keras") and os.path.isfile(path) and not saving_api.zipfile.is_zipfile(path):
            size = os.path.getsize(path)
            raise ValueError(
                message(
                    f"The file {path} is not a `.keras` zip file.",
                    received=f"{size} bytes that end without a table of contents" if size else "an empty file",
                    why="it is damaged, or writing or copying it was broken off",
                    fix="save the model again; a folder's latest complete file is what a BackupAndRestore callback keeps",
                )
            )
        return load(filepath, *args, **kwargs)

    return load_model


# Checkpoints


def _children(saveable: Any) -> dict[str, Any]:
    """What a checkpoint finds in a layer, model, optimizer or metric: its variables, and what Keras itself saves below it."""
    found: dict[str, Any] = {"variables": _named(_own_variables(saveable))}
    found["seed_generators"] = vars(saveable).get("_seed_generators", ())
    for name, child in saving_lib._walk_saveable(saveable):
        if _is_saved(child):
            found[name] = child
    return found


def _own_variables(saveable: Any) -> Iterable[Any]:
    lists = ("_variables", "_trainable_variables", "_non_trainable_variables")
    if saveable._obj_type() == "Optimizer":
        lists = lists[:1]  # those it trains are the model's
    found = [variable for name in lists for variable in vars(saveable).get(name, ())]
    found += [value for value in vars(saveable).values() if isinstance(value, KerasVariable)]
    return {id(variable): variable for variable in found}.values()


def _named(variables: Iterable[Any]) -> dict[str, Any]:
    """By name: equal names are numbered."""
    found: dict[str, Any] = {}
    for variable in variables:
        copies = sum(name.partition("~")[0] == variable.name for name in found)
        found[f"{variable.name}~{copies}" if copies else variable.name] = variable
    return found


def _is_saved(value: Any) -> bool:
    if isinstance(value, (list, tuple, dict)):
        return any(map(_is_saved, value.values() if isinstance(value, dict) else value))
    return isinstance(value, KerasSaveable)


def tell(saveable: Any) -> None:
    """Tell a checkpoint that waits for it that a layer or optimizer has new variables."""
    if saveable._deferred is not None:
        with init_scope():  # restored once, even if the layer is built while a function is traced
            saveable._deferred(saveable)
