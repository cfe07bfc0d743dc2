"""The functions in a saved model: which there are, how they are described in JSON, and how they are made again."""

from __future__ import annotations

import collections
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from gradtape.core.variable import Variable
from gradtape.errors import DataLossError, NotFoundError, UnimplementedError, message
from gradtape.function import ConcreteFunction, Function
from gradtape.function.decorator import Method
from gradtape.function.exporting import Parameters, Saved, export, names_of, signatures_of, source_of, why_no_signature
from gradtape.function.inputs import Inputs
from gradtape.function.loaded import LoadedFunction, LoadedProgram, LoadedSignature
from gradtape.train import files
from gradtape.train.objects import Node
from gradtape.values.spec import TensorSpec

FOLDER, ENDING = "programs", ".stablehlo"
_NAME = re.compile(r"[0-9a-f]{24}" + re.escape(ENDING))
DEFAULT = "serving_default"
_COMPILED = (Function, ConcreteFunction, Method)
_KINDS = (*_COMPILED, LoadedFunction)
_KEYS = (str, int, float, bool, type(None))


class Programs:
    """The functions of some objects, and signatures, as programs. First all are made, and may make variables; then written."""

    def __init__(self) -> None:
        self._functions: list[tuple[Any, str, Parameters, list[Saved]]] = []
        self._signatures: dict[str, tuple[Saved, list[str]]] = {}
        self._refused: list[tuple[Any, str, str]] = []
        self._made: dict[tuple[int, str], tuple[Function, Saved]] = {}  # by function and signature

    # Making them

    def add_functions(self, values: list) -> None:
        """The functions that are attributes of objects. What cannot be saved stops nothing: the reason is."""
        for value in values:
            for name, function in functions_of(value):
                made, why = self._programs_of(function)
                if made:
                    parameters = function.parameters if isinstance(function, LoadedFunction) else Parameters.of(function)
                    self._functions.append((value, name, parameters, made))
                elif why:
                    self._refused.append((value, name, why))

    def _programs_of(self, function: Any) -> tuple[list[Saved], str]:
        if isinstance(function, LoadedFunction):
            return [program.saved for program in function.programs], ""
        made, why = [], ""
        try:
            known = signatures_of(function)
        except Exception as error:
            return [], str(error)
        for specs in known:
            try:
                made.append(self._export(function, specs))
            except Exception as error:
                why = str(error)
        return made, why or why_no_signature(function)

    def add_signatures(self, given: Any) -> None:
        """Those that the user gave: a function, or several by name."""
        for name, function in (given if isinstance(given, Mapping) else {DEFAULT: given}).items():
            if isinstance(function, LoadedSignature):
                self._signatures[str(name)] = function.program.saved, function.names
                continue
            known = signatures_of(function) if isinstance(function, _COMPILED) else []
            if len(known) != 1:
                raise ValueError(
                    message(
                        f"The signature {name!r} for tf.saved_model.save is not one function for one kind of arguments.",
                        received=f"{function!r} with {len(known)} signatures",
                        expected="a tf.function with an input_signature, or that was called with one kind of arguments",
                        fix="function.get_concrete_function(tf.TensorSpec([None, 3]))",
                    )
                )
            self._signatures[str(name)] = self._export(function, known[0]), names_of(function, known[0])

    def _export(self, function: Any, specs: Any) -> Saved:
        source = source_of(function)
        key = id(source), json.dumps(pack(specs))
        if key not in self._made:
            saved = export(function, specs)
            pack(saved.results)  # refused before anything is written
            self._made[key] = source, saved  # with the function, so that no other gets its identity
        return self._made[key][1]

    # Writing them

    def described(self, nodes: list[Node]) -> dict[str, Any]:
        """All of it as JSON, for objects with these numbers; an error if a signature uses a variable that is not among them."""
        numbers = {id(node.value): number for number, node in enumerate(nodes)}
        functions, refused = [], {}
        for value, name, parameters, made in self._functions:
            try:
                programs = [_described(saved, numbers) for saved in made]
            except UnimplementedError as error:
                refused[f"{numbers[id(value)]}.{name}"] = str(error)
                continue
            about = {"object": numbers[id(value)], "name": name, "parameters": asdict(parameters), "programs": programs}
            functions.append(about)
        refused |= {f"{numbers[id(value)]}.{name}": why for value, name, why in self._refused}
        served = {name: {**_described(saved, numbers), "names": names} for name, (saved, names) in self._signatures.items()}
        return {"functions": functions, "signatures": served, "not saved": refused}

    def write(self, folder: str) -> None:
        """Each program under the digest of its bytes: nothing that another model refers to is written over."""
        for saved in self._all():
            path = os.path.join(folder, FOLDER, _file(saved))
            os.makedirs(os.path.dirname(path), exist_ok=True)

            def write(temporary: str, blob: bytes = saved.blob) -> None:
                with open(temporary, "wb") as file:
                    file.write(blob)

            files.atomically(path, write)

    def tidy(self, folder: str) -> None:
        """Remove the programs of an earlier model in this folder, to which nothing refers any more."""
        inner, kept = os.path.join(folder, FOLDER), set(map(_file, self._all()))
        for name in os.listdir(inner) if os.path.isdir(inner) else ():
            if name.endswith(ENDING) and name not in kept:
                os.unlink(os.path.join(inner, name))

    def _all(self) -> list[Saved]:
        made = [saved for *_, programs in self._functions for saved in programs]
        made += [saved for saved, _ in self._signatures.values()]
        return made + [saved.gradient for saved in made if saved.gradient is not None]


def functions_of(value: Any) -> Iterator[tuple[str, Any]]:
    """The functions that an object has: as attributes, or as methods of its class."""
    own = {name: part for name, part in getattr(value, "__dict__", {}).items() if isinstance(part, _KINDS)}
    yield from own.items()
    for name in sorted({name for kind in type(value).__mro__ for name, part in vars(kind).items() if _is_function(part)}):
        part = getattr(value, name, None)
        if name not in own and isinstance(part, _KINDS):  # a subclass may have put something else in its place
            yield name, part


def _is_function(part: Any) -> bool:
    return isinstance(getattr(part, "__func__", part), Function)


def _file(saved: Saved) -> str:
    return hashlib.sha256(saved.blob).hexdigest()[:24] + ENDING


def _described(saved: Saved, numbers: dict[int, int]) -> dict[str, Any]:
    for variable in saved.variables:
        if id(variable) not in numbers:
            raise UnimplementedError(
                message(
                    f"Tried to export a function which references an 'untracked' resource: {variable.name}.",
                    received=f"the variable {variable.name} of shape {variable.shape}, used by {saved.name}",
                    expected="variables that are attributes of the saved object, or of objects below it",
                    fix=f"object.variable = the variable that {saved.name} uses",
                )
            )
    about = {
        "file": _file(saved), "function": saved.name, "variables": [numbers[id(v)] for v in saved.variables],
        "arguments": saved.arguments, "specs": pack(saved.specs), "results": pack(saved.results), "checked": saved.checked,
        "gradient": None, "no gradient": saved.no_gradient,
    }  # fmt: skip
    if saved.gradient is not None:
        try:
            about["gradient"] = _described(saved.gradient, numbers)
        except UnimplementedError as error:  # a rule of the user's reads a variable that the function does not
            about["no gradient"] = " ".join(str(error).split())
    return about


# Reading them

Build = Callable[[int], Any]


def load_function(folder: str, about: dict, build: Build, device: Inputs) -> LoadedFunction:
    """The function that is described so, with the variables that ``build`` gives for their numbers."""
    programs = [_load(folder, program, build, device) for program in about["programs"]]
    return LoadedFunction(about["name"], programs, Parameters(**about["parameters"]))


def load_signature(folder: str, about: dict, build: Build, device: Inputs) -> LoadedSignature:
    """One that was saved to be called by names."""
    return LoadedSignature(_load(folder, about, build, device), about["names"])


def _load(folder: str, about: dict, build: Build, device: Inputs) -> LoadedProgram:
    return LoadedProgram(_read(folder, about, build), device)


def _read(folder: str, about: dict, build: Build) -> Saved:
    if not isinstance(about["file"], str) or _NAME.fullmatch(about["file"]) is None:
        why = f"it names {about['file']!r} as the file of a program"
        raise files.damaged("saved model", folder, why, f"a digest and {ENDING}: programs lie inside the model's folder")
    path = os.path.join(folder, FOLDER, about["file"])
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            raise OSError("it is no ordinary file")
        with open(path, "rb") as file:
            blob = file.read()
    except FileNotFoundError:
        text = f"The program {about['function']} of the saved model is missing."
        raise NotFoundError(message(text, received=path, fix="save the model again, or copy its whole folder")) from None
    except OSError as error:
        raise files.damaged("program", path, error, "a file that tf.saved_model.save wrote", "copy it again") from error
    if not about["file"].startswith(hashlib.sha256(blob).hexdigest()[:24]):
        text = f"The program {about['function']} of the saved model is damaged."
        raise DataLossError(message(text, received=f"{path}, {len(blob)} bytes", fix="save the model again"))
    variables: list[Variable] = [build(number) for number in about["variables"]]
    specs, results = unpack(about["specs"]), unpack(about["results"])
    saved = Saved(about["function"], blob, variables, about["arguments"], specs, results, about["checked"])
    saved.gradient = _read(folder, about["gradient"], build) if about.get("gradient") else None
    saved.no_gradient = about.get("no gradient", "it was saved without one")
    return saved


# Structures as JSON


def pack(structure: Any) -> Any:
    """A nest of descriptions and Python values."""
    if isinstance(structure, TensorSpec):
        return {"tensor": [structure.shape.as_list(), structure.dtype.name, structure.name]}
    if isinstance(structure, Mapping):
        wrong = [key for key in structure if type(key) not in _KEYS]
        if wrong:
            text = "A dictionary of a saved function has keys that are not numbers or texts."
            raise UnimplementedError(message(text, received=f"{wrong}", fix="return a dictionary with texts for keys"))
        return {"dict": [[key, pack(part)] for key, part in structure.items()]}
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return {"named": [type(structure).__name__, list(structure._fields), [pack(part) for part in structure]]}
    if isinstance(structure, (list, tuple)):
        return {type(structure).__name__ if type(structure) in (list, tuple) else "list": [pack(part) for part in structure]}
    return {"value": structure}


def unpack(packed: Any) -> Any:
    """What `pack` was given."""
    ((kind, parts),) = packed.items()
    if kind == "tensor":
        return TensorSpec(*parts)
    if kind == "dict":
        return {key: unpack(part) for key, part in parts}
    if kind == "named":
        name, fields, values = parts
        return collections.namedtuple(name, fields)(*map(unpack, values))  # type: ignore[misc]
    return parts if kind == "value" else {"list": list, "tuple": tuple}[kind](map(unpack, parts))
