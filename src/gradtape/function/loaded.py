"""Functions from files: programs that `exporting` wrote, to be called again."""

from __future__ import annotations

import functools
from typing import Any, NoReturn

import numpy as np

from gradtape.core.context import thread
from gradtape.core.custom import record_custom
from gradtape.core.variable import Variable
from gradtape.errors import InvalidArgumentError, UnimplementedError, message
from gradtape.function import signature
from gradtape.function.exporting import Parameters, Saved
from gradtape.function.inputs import Inputs
from gradtape.function.staging import is_tracer
from gradtape.function.state import Tracing, current
from gradtape.values import nest
from gradtape.values.convert import Convertible
from gradtape.values.spec import TensorSpec
from gradtape.values.tensor import BatchedTensor, Tensor, wrap


class LoadedProgram:
    """A program for one signature."""

    def __init__(self, saved: Saved, variables: Inputs | None = None) -> None:
        import jax
        from jax import export as jax_export

        from gradtape.xp import jax_devices

        self.saved = saved
        self._variables = Inputs([], {}, {}) if variables is None else variables  # on the device, for all programs of a model
        self._call = jax_export.deserialize(bytearray(saved.blob)).call
        self._run = jax.jit(self._call, compiler_options=jax_devices.compiler_options())

    def fitted(self, given: Any, exactly: bool) -> Any:
        """The arguments as tensors of the signature, without a conversion if ``exactly``; a TypeError or ValueError if not."""
        specs = self.saved.specs
        leaves = list(zip(nest.flatten(specs), nest.flatten_up_to(specs, given)))
        for spec, value in leaves:
            if not isinstance(spec, TensorSpec):
                if not _is_same(value, spec):
                    raise TypeError(f"{value!r} is not {spec!r}")
                continue
            kind, strict = _dtype(value), exactly or isinstance(value, (Tensor, Convertible))
            if (kind is None and exactly) or (kind is not None and not np.can_cast(kind, spec.dtype.numpy, _RULES[strict])):
                raise TypeError(f"{value!r} is not {spec!r}")
        return nest.pack_sequence_as(specs, [signature.fit(value, spec) for spec, value in leaves])

    def __call__(self, given: Any) -> Any:
        saved = self.saved
        tensors = [t for t in nest.flatten(given) if isinstance(t, Tensor)]
        self._check(tensors)
        values = [variable._operand() for variable in saved.variables]
        outs = self._outs(values, tensors)
        if saved.checked:
            self._require(outs[-1])
        results = [wrap(out) for out in outs[: len(outs) - saved.checked]]
        if thread.recorders and (saved.gradient or saved.no_gradient):
            variables = [v for v in saved.variables if v._differentiable]
            kinds = [t.dtype.is_trainable for t in results]
            pull = functools.partial(self._pull, values, tensors, kinds)
            results = record_custom(saved.name, pull, results, tensors, variables)
        return self._assembled(results)

    def _outs(self, values: list[Tensor], tensors: list[Tensor]) -> list:
        """All outputs of the program, for these values of its variables."""
        from gradtape.xp import jax as JAX
        from gradtape.xp import jax_devices

        arrays = [t._array if is_tracer(t._array) else self._variables.on_device(t) for t in values]
        arrays += [tensors[i]._array for i in self.saved.arguments]
        with JAX.scope():
            outs = (self._call if any(map(is_tracer, arrays)) else self._run)(*arrays)
        if any(map(is_tracer, outs)):
            return list(outs)
        return [np.asarray(out) if jax_devices.on_host(out) else out for out in outs]

    def _assembled(self, results: list[Tensor]) -> Any:
        rest = iter(results)
        return nest.map_structure(lambda there: next(rest) if there else None, self.saved.results)

    # Its gradient

    @functools.cached_property
    def _gradient(self) -> LoadedProgram | None:
        return None if self.saved.gradient is None else LoadedProgram(self.saved.gradient, self._variables)

    def _pull(self, values: list[Tensor], tensors: list[Tensor], kinds: list[bool], *upstream: Any, variables: Any = ()) -> Any:
        """The gradients of all tensors, and of the variables: with the values that they had."""
        program, saved = self._gradient, self.saved
        if program is None:
            self._no_gradient(saved.no_gradient)
        known = {id(variable): value for variable, value in zip(saved.variables, values)}
        given = [*tensors, *(g for g, is_float in zip(upstream, kinds) if is_float)]
        inputs = [known[id(v)] if id(v) in known else v._operand() for v in program.saved.variables]
        outs = program._outs(inputs, given)
        results = [wrap(out) for out in outs[: sum(program.saved.results)]]
        if thread.recorders:  # somebody may want the gradient of this one
            refuse = lambda *_: self._no_gradient("the gradient of its gradient was not saved")
            results = record_custom(program.saved.name, refuse, results, [*inputs, *given], [])
        found = iter(program._assembled(results))
        gradients = [next(found) if t.dtype.is_trainable else None for t in tensors]
        return (gradients, list(found)) if variables else gradients

    def _check(self, tensors: list[Tensor]) -> None:
        pairs = zip(self.saved.tensors, tensors)
        if len({t._array.shape[0] for spec, t in pairs if spec.shape.as_list()[:1] == [None]}) > 1:
            text = f"{self.saved.name} was saved for arguments whose open first axes have one length."
            shapes = [t._array.shape for t in tensors]
            raise InvalidArgumentError(message(text, received=f"shapes {shapes}", fix="save it with the lengths of one given"))
        for spec, tensor in zip(self.saved.tensors, tensors):
            if type(tensor) is BatchedTensor:
                text = f"{self.saved.name}, which was loaded from a saved model, cannot be mapped."
                raise UnimplementedError(message(text, received="an argument of tf.vectorized_map", fix="tf.map_fn"))
            lengths = zip(tensor._array.shape, spec.shape.as_list())
            if any(n is None and type(length) is int and length == 0 for length, n in lengths):
                text = f"{self.saved.name} was saved for lengths of one or more."
                raise InvalidArgumentError(message(text, received=f"shape {tensor._array.shape}", expected=f"{spec}"))

    def _require(self, violated: Any) -> None:
        """Raise if a condition was violated; inside a function, let its program find out."""
        state = current()
        if is_tracer(violated):
            if isinstance(state, Tracing):
                state.require(violated == 0)
        elif np.asarray(violated).any():
            text = f"A condition that {self.saved.name} checks does not hold."
            raise InvalidArgumentError(message(text, why="a saved program does not know which", fix="run the function itself"))

    def _no_gradient(self, why: str) -> NoReturn:
        raise LookupError(
            message(
                f"No gradient defined for {self.saved.name}: it was loaded from a saved model.",
                why=why,
                fix="make an object of the class and restore its variables: tf.train.Checkpoint(model).restore(folder)",
            )
        )


_RULES: Any = {True: "no", False: "same_kind"}  # which conversions of arrays there are, as NumPy calls them


def _is_same(value: Any, static: Any) -> bool:
    """Whether a Python value is the one that a program was made with."""
    return type(value) is type(static) and (value == static or (value != value and static != static))  # the latter: NaN


def _dtype(value: Any) -> Any:
    """An argument's dtype; None for Python's numbers."""
    return np.dtype(value.dtype.numpy if hasattr(value.dtype, "numpy") else value.dtype) if hasattr(value, "dtype") else None


class LoadedFunction:
    """A function: the programs of all signatures that it was saved for."""

    def __init__(self, name: str, programs: list[LoadedProgram], parameters: Parameters) -> None:
        self.__name__ = self._name = name
        self.programs, self.parameters = programs, parameters

    @property
    def variables(self) -> tuple[Variable, ...]:
        return tuple({v._number: v for p in self.programs for v in p.saved.variables}.values())

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        return tuple(v for v in self.variables if v.trainable)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = self.parameters.placed(args, kwargs)
        for exactly in (True, False):
            for program in self.programs:
                try:
                    fitted = program.fitted(given, exactly)
                except (TypeError, ValueError):
                    continue
                return program(fitted)
        expected = "\n".join(f"  {_written(p.saved.specs)}" for p in self.programs)
        raise ValueError(
            message(
                f"Could not find matching concrete function to call loaded from the SavedModel: {self._name}.",
                received=_written(nest.map_structure(_described, given)),
                expected=f"one of\n{expected}",
            )
        )

    def __repr__(self) -> str:
        return f"<tf.function {self._name}: {len(self.programs)} loaded programs>"


class LoadedSignature:
    """A program called by the names of its arguments, which returns a dictionary: how servers call a model."""

    def __init__(self, program: LoadedProgram, names: list[str]) -> None:
        self.program, self.names = program, names
        specs = program.saved.tensors
        self.structured_input_signature = (), {name: TensorSpec(s.shape, s.dtype, name) for name, s in zip(names, specs)}

    @property
    def variables(self) -> list[Variable]:
        return list(self.program.saved.variables)

    @property
    def trainable_variables(self) -> list[Variable]:
        return [v for v in self.variables if v.trainable]

    def __call__(self, *args: Any, **kwargs: Any) -> dict[str, Tensor]:
        given = {**dict(zip(self.names, args)), **kwargs}
        if set(given) != set(self.names) or len(args) > 1 or len(given) < len(args) + len(kwargs):  # several have no order
            raise TypeError(
                message(
                    f"signature_wrapper({', '.join(self.names)}) was called with other arguments.",
                    received=f"{len(args)} by position, and by name {sorted(kwargs)}",
                    expected=f"by name: {self.names}",
                )
            )
        rest = iter(self.names)
        specs = self.program.saved.specs
        filled = nest.map_structure(lambda leaf: given[next(rest)] if isinstance(leaf, TensorSpec) else leaf, specs)
        result = self.program(self.program.fitted(filled, exactly=False))
        if isinstance(result, dict) and all(isinstance(value, Tensor) for value in result.values()):
            return result
        tensors = [t for t in nest.flatten(result) if t is not None]
        return {f"output_{i}": t for i, t in enumerate(tensors)}

    def __repr__(self) -> str:
        return f"<signature of {self.program.saved.name}({', '.join(self.names)})>"


def _described(leaf: Any) -> Any:
    return TensorSpec(leaf.shape, leaf.dtype) if hasattr(leaf, "shape") and hasattr(leaf, "dtype") else leaf


def _written(specs: Any) -> str:
    args, kwargs = specs
    return ", ".join([*map(str, args), *(f"{name}={value}" for name, value in kwargs.items())]) or "no arguments"
