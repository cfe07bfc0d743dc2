"""Python in the middle of tensor code: `py_function`, `numpy_function`, and the helpers that order side effects."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.errors import (
    InvalidArgumentError,
    OpError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnimplementedError,
    UnknownError,
    message,
    shown,
)
from gradtape.ops.execution import on_the_host
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.spec import TensorSpec, TypeSpec

__all__ = ["group", "no_op", "numpy_function", "py_function"]

_NO_TYPE = """Missing required argument: 'Tout'
  If using tf.{0} as a decorator, set `Tout` **by name** above the function: `@tf.{0}(Tout=tout)`"""


def py_function(func: Callable | None = None, inp: Any = None, Tout: Any = None, name: str | None = None) -> Any:
    """``func(*inp)`` on tensors, its results as tensors of the types ``Tout``; recorded by tapes as any eager code.

    >>> py_function(lambda x: x * 2.0, [1.5], dtypes.float32)
    <tf.Tensor: shape=(), dtype=float32, numpy=3.0>

    As a decorator, ``@py_function(Tout=…)``, it wraps the function.
    """
    return _host_call("py_function", _on_tensors, func, inp, Tout)


def numpy_function(
    func: Callable | None = None, inp: Any = None, Tout: Any = None, stateful: bool = True, name: str | None = None
) -> Any:
    """``func(*inp)`` on NumPy arrays, its results as tensors of the types ``Tout``; no gradient flows through it.

    >>> numpy_function(np.sum, [[1.0, 2.0]], dtypes.float32)
    <tf.Tensor: shape=(), dtype=float32, numpy=3.0>
    """
    return _host_call("numpy_function", _on_arrays, func, inp, Tout)


def _host_call(word: str, run: Callable, func: Any, inp: Any, types: Any) -> Any:
    if types is None:
        raise TypeError(message(_NO_TYPE.format(word), fix="Tout=tf.float32, the type of what the function returns"))
    if func is None:
        return lambda function: _decorated(word, run, function, types)
    if not callable(func):
        kind = ValueError if run is _on_tensors else TypeError
        text = f"Expected func to be callable. Received func={func} of type {type(func)}."
        raise kind(message(text, fix=f"tf.{word}(lambda x: …, [x], tf.float32)"))
    on_the_host(f"tf.{word}")
    return run(func, [] if inp is None else list(inp), types)


def _decorated(word: str, run: Callable, function: Callable, types: Any) -> Callable:
    @functools.wraps(function)
    def call(*args: Any) -> Any:
        return _host_call(word, run, function, args, types)

    return call


def _on_tensors(func: Callable, inputs: list, types: Any) -> Any:
    tensors = [convert_to_tensor(value) for value in inputs]
    try:
        result = func(*tensors)
    except Exception as error:
        kind = next((ours for theirs, ours in _CLASSES.items() if isinstance(error, theirs)), UnknownError)
        received, why = f"inp={shown(tensors)}", f"raised in {_named(func)}"
        expected = f"func(*inp), with {len(tensors)} of them, to return {shown(types)}"
        text = f"{type(error).__name__}: {error}"
        raise kind(message(text, received=received, expected=expected, why=why)) from error
    return _converted(func, result, types, exact=False)


_CLASSES: dict[type[Exception], type[OpError]] = {
    StopIteration: OutOfRangeError, MemoryError: ResourceExhaustedError, NotImplementedError: UnimplementedError,
    TypeError: InvalidArgumentError, ValueError: InvalidArgumentError,
}  # fmt: skip
"""The error class for an exception inside a function that py_function runs; UnknownError for any other."""


def _on_arrays(func: Callable, inputs: list, types: Any) -> Any:
    given = [convert_to_tensor(value)._given_away("tf.numpy_function") for value in inputs]
    arrays = [np.array(array) for array in given]  # copies, for func may write to them
    return _converted(func, func(*arrays), types, exact=True)


def _converted(func: Callable, result: Any, types: Any, exact: bool) -> Any:
    """What a function returned, as tensors of the declared types; a list if a list was declared."""
    several = isinstance(types, (list, tuple))
    kinds = list(types) if several else [types]
    values = list(result) if isinstance(result, (list, tuple)) else [] if result is None else [result]
    if len(values) != len(kinds):
        raise InvalidArgumentError(
            message(
                f"{_named(func)} returns {len(values)} values, but expects to see {len(kinds)} values.",
                expected=f"one value for each type in Tout={types}",
            )
        )
    tensors = [_declared(func, value, kind, exact) for value, kind in zip(values, kinds)]
    return tensors if several else tensors[0]


def _declared(func: Callable, value: Any, kind: Any, exact: bool) -> Any:
    """A result as declared. Python numbers bend to the type; tensors must have it, and so must arrays if ``exact``."""
    if isinstance(kind, TypeSpec) and not isinstance(kind, TensorSpec):
        return value
    wanted = dtypes.as_dtype(getattr(kind, "dtype", kind))
    if exact and isinstance(value, (np.ndarray, np.generic)):
        found = convert_to_tensor(value).dtype
        if found is not wanted:
            raise InvalidArgumentError(
                message(
                    f"{_named(func)} returned {found.word}, but expects {wanted.word}",
                    fix=f"return result.astype({wanted.name!r}), or declare Tout={found!r}",
                )
            )
    try:
        return convert_to_tensor(np.asarray(value) if type(value) is bool else value, wanted)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(
            message(
                f"{type(error).__name__}: {error}",
                received=f"{shown(value)} from {_named(func)}",
                expected=f"{wanted!r}",
            )
        ) from error


def _named(func: Callable) -> str:
    return getattr(func, "__qualname__", None) or repr(func)


def group(*inputs: Any, **kwargs: Any) -> None:
    """Nothing: the inputs have been computed already. In a graph it would make them run."""


def no_op(name: str | None = None) -> None:
    """Nothing."""
