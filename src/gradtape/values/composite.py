"""Values that are made of several tensors, and how functions of tensors find the way to them.

An op meets a composite only where an operand is no plain tensor, so tensors pay nothing for it. Functions that look at their
arguments before they call an op are declared with `take_composites`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gradtape.errors import message
from gradtape.values import dtypes
from gradtape.values.convert import Convertible
from gradtape.values.tensor import Tensor


class Composite(Convertible):
    """Base of our own classes that are made of several tensors, of which one (or none) has a gradient."""

    __slots__ = ()

    def _components(self) -> list[Tensor]:
        """All the tensors, in a fixed order."""
        raise NotImplementedError

    def _from_components(self, components: list[Any]) -> Any:
        """A value of this kind and structure from other tensors."""
        raise NotImplementedError

    def _differentiable_part(self) -> Tensor:
        """The tensor that gradients flow through."""
        raise NotImplementedError

    def _with_differentiable_part(self, part: Any) -> Any:
        """The same structure around another tensor: the gradient, as a value of this kind."""
        raise NotImplementedError


class Structured(Composite):
    """A composite that is no tensor in disguise: functions of tensors hand the call over to `_call`."""

    __slots__ = ()
    __array_ufunc__ = None  # array + ragged: NumPy lets us answer
    __array_priority__ = 100

    @classmethod
    def _call(cls, function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The function of arguments of which at least one is of this class."""
        raise NotImplementedError

    def _operand(self) -> Any:
        return self  # the op sees that it is no tensor and calls `hand_over`

    def _to_tensor(self, dtype: dtypes.DType | None = None) -> Tensor:
        kind = type(self).__name__
        raise ValueError(
            message(
                f"Attempt to convert a value ({self!r}) with an unsupported type ({type(self)}) to a Tensor.",
                received=f"a {kind}, which this function does not take",
                fix="x.to_tensor()" if kind == "RaggedTensor" else "tf.sparse.to_dense(x)",
            )
        )


def structured_in(values: Any) -> Structured | None:
    """The first structured value among arguments, or in a list of them."""
    for value in values:
        if isinstance(value, Structured):
            return value
        if isinstance(value, (list, tuple)):
            for part in value:
                if isinstance(part, Structured):
                    return part
    return None


def hand_over(function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Call a function of tensors on arguments of which at least one is structured."""
    found = structured_in((*args, *kwargs.values()))
    return type(found)._call(function, args, kwargs)  # type: ignore[union-attr]


def take_composites(module: dict[str, Any], names: str) -> None:
    """Let these functions of a module take ragged and sparse tensors too."""
    for name in names.split():
        module[name] = _taking(module[name])


def _taking(function: Callable) -> Callable:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if (not args or type(args[0]) is not Tensor) and structured_in((*args, *kwargs.values())) is not None:
            return hand_over(call, args, kwargs)
        return function(*args, **kwargs)

    return call
