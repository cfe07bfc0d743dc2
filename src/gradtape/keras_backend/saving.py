"""Saving: a file that cannot be loaded leaves the model as it was, and `tf.train.Checkpoint` follows layers and optimizers."""

from __future__ import annotations

import functools
import itertools
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

from keras.src.backend.common import KerasVariable
from keras.src.backend.common.stateless_scope import in_stateless_scope
from keras.src.backend.common.variables import register_uninitialized_variable
from keras.src.legacy.saving import json_utils
from keras.src.ops.operation import Operation
from keras.src.saving import saving_api, saving_lib, serialization_lib
from keras.src.saving.keras_saveable import KerasSaveable
from keras.src.utils import tracking

from gradtape.core.variable import Variable, variable_of
from gradtape.keras_backend import checksums
from gradtape.ops.execution import init_scope
from gradtape.train import growing
from gradtape.values.dtypes import DType
from gradtape.values.shape import TensorShape

# What Keras would ask TensorFlow for: shapes and dtypes in a config are written as lists and names.
_IN_CONFIGS = types.SimpleNamespace(
    available=True, TensorShape=TensorShape, DType=DType, TypeSpec=(),
    compat=types.SimpleNamespace(v1=types.SimpleNamespace(Dimension=())),
    __internal__=types.SimpleNamespace(CompositeTensor=()),
)  # fmt: skip


def install() -> None:
    """Put the functions here into Keras, once all of it is imported."""
    for name, function in {
        "load_weights": _all_or_nothing(checksums.checked(saving_api.load_weights)),
        "load_model": checksums.checked(saving_api.load_model),
        "save_weights": checksums.adding(saving_api.save_weights), "save_model": checksums.adding(saving_api.save_model),
    }.items():  # fmt: skip
        for module in (saving_api, sys.modules["keras.saving"], sys.modules["keras.models"]):
            if hasattr(module, name):
                setattr(module, name, function)
    serialization_lib.tf = json_utils.tf = _IN_CONFIGS
    KerasSaveable._deferred = None  # a restored checkpoint that waits for variables not made yet
    KerasSaveable._checkpoint_children = _children
    for kind in (tracking.TrackedList, tracking.TrackedDict, tracking.TrackedOrderedDict):
        growing.teach(kind)  # what a model makes of lists and dictionaries among its attributes
    Operation._post_build = tell  # called when a layer has been built


# Files


def _all_or_nothing(load: Callable) -> Callable:
    @functools.wraps(load)
    def load_weights(model: Any, *args: Any, **kwargs: Any) -> Any:
        copying = _with_copies(model)
        given = [*model.variables, *getattr(getattr(model, "optimizer", None), "variables", ())]
        variables = [*map(variable_of, given), *itertools.chain(*copying.values())]
        before = [variable._tensor for variable in variables]
        try:
            return load(model, *args, **kwargs)
        except BaseException:
            for variable, tensor in zip(variables, before):
                variable._put(tensor._array)
            for layer in copying:
                layer.finalize_state()
            raise

    return load_weights


def _with_copies(model: Any) -> dict[Any, list[Variable]]:
    """The layers that compute with copies of their weights, made by `finalize_state`, and those weights that are ours."""
    own = {
        layer: [value for value in vars(layer).values() if isinstance(value, Variable)]
        for layer in model._flatten_layers()
        if hasattr(layer, "finalize_state")
    }
    return {layer: variables for layer, variables in own.items() if variables or layer.variables}


# Checkpoints


def _children(saveable: Any) -> dict[str, Any]:
    """What a checkpoint finds in a layer, model, optimizer or metric: what Keras itself saves below it, and its variables."""
    found = {name: child for name, child in saving_lib._walk_saveable(saveable) if _is_saved(child)}
    found["seed_generators"] = vars(saveable).get("_seed_generators", ())
    for variable in _own_variables(saveable):
        # The variables of an optimizer by number: their names are made from those of layers, which are numbered anew.
        label = name = variable.name if saveable._obj_type() != "Optimizer" else "variable"
        number = 0
        while name in found:
            number += 1
            name = f"{label}~{number}"
        found[name] = variable
    return found


def _own_variables(saveable: Any) -> Iterable[Any]:
    if saveable._obj_type() == "Optimizer":
        return saveable._variables
    lists = (vars(saveable).get(name, ()) for name in ("_variables", "_trainable_variables", "_non_trainable_variables"))
    attributes = (value for value in vars(saveable).values() if isinstance(value, KerasVariable))
    return {id(variable): variable for variable in (*itertools.chain(*lists), *attributes)}.values()


def _is_saved(value: Any) -> bool:
    if isinstance(value, (list, tuple, dict)):
        return any(map(_is_saved, value.values() if isinstance(value, dict) else value))
    return isinstance(value, KerasSaveable)


class _Later:
    """Tells when the variables that are created in a `StatelessScope` receive their values, after it."""

    def __init__(self, saveable: Any) -> None:
        self.saveable = saveable

    def _deferred_initialize(self) -> None:
        tell(self.saveable)


def tell(saveable: Any) -> None:
    """Tell a checkpoint that waits for it that a layer or optimizer has new variables."""
    if saveable._deferred is None:
        return
    if in_stateless_scope():
        register_uninitialized_variable(_Later(saveable))
        return
    with init_scope():  # restored once, even if the layer is built while a function is traced
        saveable._deferred(saveable)
