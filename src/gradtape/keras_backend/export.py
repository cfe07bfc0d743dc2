"""`model.export` and `keras.export.ExportArchive`: a saved model of ours, whose programs are StableHLO.

``tf.saved_model.load(folder).serve(x)`` runs it without Keras and without the model's classes. What other frameworks run is
theirs to write: a `.keras` file leads there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn

from keras.src import backend, tree
from keras.src.backend.common import KerasVariable
from keras.src.export.export_utils import make_input_spec
from keras.src.layers import Layer
from keras.src.models import Model
from keras.src.utils import io_utils

from gradtape.core.variable import Variable
from gradtape.errors import UnimplementedError, message
from gradtape.function import ConcreteFunction, Function, function
from gradtape.function.decorator import Method
from gradtape.function.exporting import signatures_of, why_no_signature
from gradtape.ops.module import Module
from gradtape.train.export import save
from gradtape.train.objects import untracked
from gradtape.train.programs import DEFAULT
from gradtape.values.spec import TensorSpec

_COMPILED = (Function, ConcreteFunction, Method)
_FOREIGN = ("onnx", "openvino", "litert", "torch")


class ExportError(UnimplementedError, NotImplementedError):
    """Keras's own backends that cannot export raise NotImplementedError."""


class _Exported(Module):
    """What is saved: endpoints and variables are attributes of it."""


class NumpyExportArchive:
    """Layers and endpoints that are written as one saved model; under the name by which Keras asks for it."""

    def __init__(self) -> None:
        self._root: Any = _Exported()
        self._root._tracked = []
        self._endpoints: dict[str, Any] = {}
        self._resources: list = []

    @property
    def variables(self) -> list:
        return [variable for resource in self._resources for variable in resource.variables]

    @property
    def trainable_variables(self) -> list:
        return [variable for resource in self._resources for variable in resource.trainable_variables]

    @property
    def non_trainable_variables(self) -> list:
        return [variable for resource in self._resources for variable in resource.non_trainable_variables]

    def track(self, resource: Any) -> None:
        """Save the variables of a layer or model."""
        if isinstance(resource, Layer) and not resource.built:
            text = "The layer provided has not yet been built. It must be built before export."
            raise ValueError(message(text, received=f"{resource!r}", fix="call it once, or layer.build(input_shape)"))
        if not isinstance(resource, (Layer, Module)):
            raise ValueError(
                message(
                    "Invalid resource type. Expected a Keras `Layer` or `Model`, or a tf.Module.",
                    received=f"{resource!r} of type {type(resource).__name__}",
                )
            )
        self._resources.append(resource)
        layers = resource._flatten_layers() if isinstance(resource, Layer) else ()
        own = [part for layer in layers for part in untracked(layer).values()]
        self._root._tracked.append([*resource.variables, *own])  # not what trains it

    def add_endpoint(self, name: str, fn: Callable, input_signature: Any = None, **options: Any) -> Any:
        """Save a function of tensors under a name: `load` has it as an attribute, and as a signature."""
        if name in self._endpoints:
            raise ValueError(message(f"Endpoint name '{name}' is already taken.", received=f"{sorted(self._endpoints)}"))
        if options:
            text = f"{sorted(options)} are only supported with the jax backend. Current backend: {backend.backend()}"
            raise ValueError(message(text, expected="a name, a function and an input_signature"))
        if input_signature is None:
            self._check_signature(name, fn)
            endpoint = fn
        else:
            specs = tree.map_structure(_spec, input_signature)
            endpoint = function(_of_tensors(fn, name), input_signature=specs)
        self._endpoints[name] = endpoint
        setattr(self._root, name, endpoint)
        return endpoint

    def _check_signature(self, name: str, fn: Any) -> None:
        if not isinstance(fn, _COMPILED):
            raise ValueError(
                message(
                    "If the `fn` argument provided is not a `tf.function`, you must provide an `input_signature` argument to "
                    "specify the shape and dtype of the function arguments.",
                    received=f"{fn!r} for {name!r}",
                    fix="input_signature=[keras.InputSpec(shape=(None, 224, 224, 3), dtype='float32')]",
                )
            )
        if not signatures_of(fn):
            text = f"The provided tf.function '{fn}' has never been called."
            received, why = f"{fn!r} for {name!r}", why_no_signature(fn)
            raise ValueError(message(text, received=received, why=why, fix="call it once, or pass input_signature"))

    def track_and_add_endpoint(self, name: str, resource: Any, input_signature: Any, **options: Any) -> Any:
        """Save a model, and its call as an endpoint."""
        self.track(resource)
        keywords = {"training": False} if getattr(resource, "_call_has_training_arg", False) else {}
        return self.add_endpoint(name, functools.partial(resource, **keywords), input_signature, **options)

    def add_variable_collection(self, name: str, variables: Any) -> None:
        """Save variables as an attribute of what is loaded."""
        wrong = None if not isinstance(variables, (list, tuple, set)) else [v for v in variables if not _is_variable(v)]
        if wrong is None or wrong:
            text = "Expected `variables` to be a list/tuple/set of variables."
            raise ValueError(message(text, received=f"{type(variables).__name__} with {wrong}" if wrong else f"{variables!r}"))
        setattr(self._root, name, list(variables))

    def write_out(self, filepath: Any, options: Any = None, verbose: bool = True) -> None:
        """Write the saved model into a folder. The first endpoint is ``serving_default`` too, unless there is one."""
        if not self._endpoints:
            raise ValueError(message("No endpoints have been set yet. Call add_endpoint().", received="an archive without any"))
        served = {name: _one(endpoint) for name, endpoint in self._endpoints.items()}
        save(self._root, filepath, {DEFAULT: next(iter(served.values())), **served}, options)
        if verbose:
            lines = [f"* Endpoint '{name}'\n  {_written(endpoint)}" for name, endpoint in self._endpoints.items()]
            head = f"Saved artifact at '{filepath}'. The following endpoints are available:"
            io_utils.print_msg("\n\n".join([head, *lines]))


def _is_variable(value: Any) -> bool:
    return isinstance(value, (Variable, KerasVariable))


def _spec(given: Any) -> TensorSpec:
    if isinstance(given, TensorSpec):
        return given
    spec = make_input_spec(given)
    return TensorSpec(spec.shape, spec.dtype, spec.name)


def _of_tensors(fn: Callable, name: str) -> Callable:
    """The call of a layer, or any other function, as a function of the endpoint's name."""

    def endpoint(*args: Any) -> Any:
        return fn(*args)

    endpoint.__name__ = name
    return endpoint


def _one(endpoint: Any) -> Any:
    """An endpoint for one kind of arguments: the first that it was called with."""
    args, kwargs = signatures_of(endpoint)[0]
    return endpoint if isinstance(endpoint, ConcreteFunction) else endpoint.get_concrete_function(*args, **kwargs)


def _written(endpoint: Any) -> str:
    args, kwargs = signatures_of(endpoint)[0]
    return ", ".join([*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())])


def install() -> None:
    """Let `model.export` say at once which formats are not ours to write."""
    export = Model.export

    @functools.wraps(export)
    def checked(model: Any, filepath: Any, format: str = "tf_saved_model", *args: Any, **kwargs: Any) -> None:
        if format in _FOREIGN:
            _refuse(format)
        export(model, filepath, format, *args, **kwargs)

    Model.export = checked


def _refuse(kind: str) -> NoReturn:
    raise ExportError(
        message(
            f"A model on gradtape cannot be exported as {kind}.",
            received=f"format={kind!r}",
            why="it holds a graph of another framework, which only that can build",
            fix="model.export(folder) writes a saved model with StableHLO programs, for tf.saved_model.load here and for jax; "
            "for another format model.save('model.keras'), and in a Python with Keras on another backend "
            "keras.models.load_model('model.keras').export(path, format)",
        )
    )
