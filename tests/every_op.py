"""Importing this defines every op: `RECORDED` has a function of the dialect once the module of its op is loaded."""

import importlib
import pkgutil

import gradtape.ops

for _module in pkgutil.iter_modules(gradtape.ops.__path__):
    importlib.import_module(f"gradtape.ops.{_module.name}")
