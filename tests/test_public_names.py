"""The public names: all there, none by accident, each with a docstring, and as the API page promises them."""

from __future__ import annotations

import importlib
import inspect
import operator
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import gradtape as tf
from gradtape import toplevel
from gradtape.scope import SPELLED_OTHERWISE

pytestmark = pytest.mark.tiny

ROOT = Path(__file__).resolve().parents[1]
SPELLED = (
    "autodiff bitwise config data debugging distribute dtypes experimental extend image io linalg math nn optimizers "
    "optimizers.schedules quantization random saved_model sets signal strings summary test testing train"
).split()


def exports() -> list[tuple[str, Any]]:
    """Every public name with its value, as a user reaches it."""
    own = [(f"tf.{name}", getattr(tf, name)) for name in tf.__all__]
    for path in SPELLED:
        module = importlib.import_module(f"gradtape.{path}")
        own += [(f"tf.{path}.{name}", getattr(module, name)) for name in module.__all__]
    return own


@pytest.mark.parametrize("path", SPELLED)
def test_what_a_module_exports_is_reachable(path):
    module = operator.attrgetter(path)(tf)
    assert module is importlib.import_module(f"gradtape.{path}")
    assert len(set(module.__all__)) == len(module.__all__)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_what_stands_at_the_top_is_there():
    sources = {
        "toplevel": toplevel.__all__,
        "math": toplevel.TOPLEVEL_FROM_MATH,
        "linalg": toplevel.TOPLEVEL_FROM_LINALG,
        "dtypes": toplevel.TOPLEVEL_FROM_DTYPES,
    }
    wrong = [
        f"tf.{name} is not gradtape.{source}.{name}"
        for source, names in sources.items() for name in names
        if getattr(tf, name, None) is not getattr(importlib.import_module(f"gradtape.{source}"), name)
    ]  # fmt: skip
    assert not wrong


def test_the_list_of_names_is_true():
    """`__all__` is written out for type checkers: it names what the module holds, except modules that load when touched."""
    held = {name for name, value in vars(tf).items() if not name.startswith("_") and not isinstance(value, ModuleType)}
    assert held | set(tf._HOME) | {"__version__", "errors", "nest"} == set(tf.__all__)
    assert len(set(tf.__all__)) == len(tf.__all__)


def test_no_names_by_accident():
    listed = {name for name in dir(tf) if not name.startswith("__")}
    assert listed == {*tf.__all__, *tf._SUBMODULES, *tf._FROM_KERAS} - {"__version__"}
    assert all(hasattr(tf, name) for name in listed)


@pytest.mark.parametrize("path", SPELLED)
def test_a_module_exports_no_helpers(path):
    """Neither other people's modules nor what comes from typing and the like."""
    module = importlib.import_module(f"gradtape.{path}")
    foreign = ("typing", "__future__", "collections.abc", "functools", "numpy")
    values = {name: getattr(module, name) for name in module.__all__}
    assert [name for name, value in values.items() if getattr(value, "__module__", None) in foreign] == []
    modules = {name: value for name, value in values.items() if isinstance(value, ModuleType)}
    assert [name for name, value in modules.items() if not value.__name__.startswith("gradtape.")] == []


def test_public_functions_and_classes_are_documented():
    assert [name for name, value in exports() if callable(value) and not (inspect.getdoc(value) or "").strip()] == []


def test_unknown_names_suggest_near_ones():
    with pytest.raises(AttributeError, match=r"Did you mean tf\.reduce_mean"):
        tf.reduce_meen  # noqa: B018


@pytest.mark.parametrize("name", SPELLED_OTHERWISE)
def test_names_of_numpy_pytorch_and_jax_lead_to_what_there_is(name):
    operator.attrgetter(SPELLED_OTHERWISE[name])(tf)
    assert not hasattr(tf, name)
    with pytest.raises(AttributeError) as caught:
        getattr(tf, name)
    assert str(caught.value).endswith(f"Did you mean tf.{SPELLED_OTHERWISE[name]}?")


# The API page

CODE = re.findall(r"`([^`\n]+)`", (ROOT / "docs" / "api.md").read_text())
OWNERS = {"tf": tf, "gradtape": tf, "tape": tf.GradientTape, "optimizer": tf.optimizers.Optimizer}


def promised() -> list[str]:
    return sorted({text for text in CODE if re.match(rf"({'|'.join(OWNERS)})\.", text)})


@pytest.mark.parametrize("text", promised())
def test_the_api_page_is_true(text):
    """What it names exists, and what it writes between the brackets are arguments, with these defaults."""
    owner, _, path = text.partition("(")[0].partition(".")
    value = operator.attrgetter(path)(OWNERS[owner])
    arguments = re.fullmatch(r"[\w.]+\(((?:\w+(?:=\w+)?(?:, )?)+)\)", text)
    if arguments:
        parameters = inspect.signature(value).parameters
        for argument in arguments[1].split(", "):
            name, _, default = argument.partition("=")
            assert name in parameters
            assert not default or repr(parameters[name].default) == default


def test_a_wrong_name_gets_the_nearest_ones():
    with pytest.raises(AttributeError, match=r"no attribute 'reduce_men'. Did you mean tf.reduce_mean"):
        tf.reduce_men  # noqa: B018
