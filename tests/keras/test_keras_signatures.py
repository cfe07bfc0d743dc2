"""Our backend's functions take the parameters that Keras calls them with: the same names, kinds and defaults, in that order.

Keras's own `OperationTest.test_backend_consistency` compares whole signatures, and so fails for functions with annotations.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

import gradtape.keras  # noqa: F401  from here on Keras computes on gradtape

MODULES = ("core", "image", "linalg", "math", "nn", "numpy")

# Keras handles these itself, before it calls a backend or instead of calling one.
WITHOUT_BACKEND = {"get_item", "view_as_complex", "view_as_real", "multi_hot"}
# What Keras's jax backend has for itself, and the fused recurrent kernels of another library, which we refuse as a whole.
OF_JAX = {"bidirectional_lstm", "cudnn_ok", "jax_draw_seed", "should_shard_at_init", "unstack", "wrap_flash_attention"}


def functions(module: ModuleType) -> Iterator[tuple[str, Callable]]:
    for name, function in sorted(vars(module).items()):
        if inspect.isfunction(function) and function.__module__ == module.__name__ and not name.startswith("_"):
            yield name, function


def parameters(function: Callable) -> list[tuple[str, str, Any]]:
    return [(each.name, each.kind.name, each.default) for each in inspect.signature(function).parameters.values()]


def different(module: str, expected: list[tuple[str, Callable]]) -> dict[str, tuple]:
    assert expected
    ours = importlib.import_module(f"gradtape.keras_backend.{module}")
    found = {name: getattr(ours, name, None) for name, _ in expected}
    return {
        name: (found[name] and parameters(found[name]), parameters(function))
        for name, function in expected
        if found[name] is None or parameters(found[name]) != parameters(function)
    }


@pytest.mark.parametrize("module", MODULES)
def test_backend_functions_take_what_their_op_takes(module: str) -> None:
    from keras.src.ops.operation import Operation

    ops = importlib.import_module(f"keras.src.ops.{module}")
    classes = {name for name, kind in vars(ops).items() if isinstance(kind, type) and issubclass(kind, Operation)}
    spelled = {name.lower() for name in classes}  # the op of `expand_dims` is `ExpandDims`
    has_op = [(name, function) for name, function in functions(ops) if name.replace("_", "") in spelled]
    # With a function `_name` beside it, the op computes by that one.
    assert different(module, [each for each in has_op if not (each[0] in WITHOUT_BACKEND or hasattr(ops, f"_{each[0]}"))]) == {}


@pytest.mark.parametrize("module", [*MODULES, "random", "rnn"])
def test_backend_functions_take_what_those_for_jax_take(module: str) -> None:
    pytest.importorskip("jax")
    theirs = importlib.import_module(f"keras.src.backend.jax.{module}")
    assert different(module, [each for each in functions(theirs) if each[0] not in OF_JAX]) == {}
