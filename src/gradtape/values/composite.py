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
from gradtape.values.convert import Convertible, is_jax
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


class NotATensor(ValueError):
    """A structured value stands where a function takes only tensors. Users see the ValueError that it is.

    Most are caught and answered by handing the call over, so the text is made when somebody reads it.
    """

    def __str__(self) -> str:
        (value,) = self.args
        kind = type(value).__name__
        return message(
            f"Attempt to convert a value ({value!r}) with an unsupported type ({type(value)}) to a Tensor.",
            received=f"a {kind}, which this function does not take",
            fix="x.to_tensor()" if kind == "RaggedTensor" else "tf.sparse.to_dense(x)",
        )


NotATensor.__name__ = NotATensor.__qualname__ = "ValueError"
NotATensor.__module__ = "builtins"


class Structured(Composite):
    """A composite that is no tensor in disguise: functions of tensors hand the call over to `_call`."""

    __slots__ = ()
    __array_ufunc__ = None  # array + ragged: NumPy lets us answer
    __array_priority__ = 200  # tensor / ragged: so do the tensor's operators

    @classmethod
    def _call(cls, function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The function of arguments of which at least one is of this class."""
        raise NotImplementedError

    def _operand(self) -> Any:
        return self  # the op sees that it is no tensor, and hands the call over

    def _to_tensor(self, dtype: dtypes.DType | None = None) -> Tensor:
        raise NotATensor(self)

    @property
    def _array(self) -> Any:
        """Whoever asks for the array of a tensor that this is not hears so."""
        return self._to_tensor()


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
    if found is None:
        text = f"{function.__name__} does not take ragged or sparse tensors in nests."
        raise ValueError(message(text, fix="give its flat_values or values, or call it once for each"))
    return type(found)._call(function, args, kwargs)


def take_composites(module: dict[str, Any], elementwise: str = "", others: str = "") -> None:
    """Let these functions of a module take ragged and sparse tensors too; tensors pay one Python call (0.15 µs)."""
    made: dict[Any, Callable] = {}  # two names of one function stay one
    for names, flag in ((elementwise, True), (others, False)):
        for name in names.split():
            function = module[name]
            module[name] = made.setdefault(function, _taking(function, flag))


def _taking(function: Any, elementwise: bool) -> Callable:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            out = function(*args, **kwargs)
            if out is not NotImplemented:
                return out
        except NotATensor:
            pass
        return hand_over(call, args, kwargs)

    call.elementwise = elementwise  # type: ignore[attr-defined]
    return call


REFLECTED = {
    "add": "__radd__", "subtract": "__rsub__", "multiply": "__rmul__", "divide": "__rtruediv__",
    "floor_divide": "__rfloordiv__", "remainder": "__rmod__", "power": "__rpow__", "matmul": "__rmatmul__",
    "less": "__gt__", "less_equal": "__ge__", "greater": "__lt__", "greater_equal": "__le__",
    "equal": "__eq__", "not_equal": "__ne__", "logical_and": "__rand__", "logical_or": "__ror__", "logical_xor": "__rxor__",
    "bitwise_and": "__rand__", "bitwise_or": "__ror__", "bitwise_xor": "__rxor__",
}  # fmt: skip
"""The ops that are operators, and the method that answers for the right operand."""


def outranked(name: str, x: Any, y: Any) -> bool:
    """Whether an op is an operator of a tensor and something that outranks it (``__array_priority__``) and is to be asked."""
    if getattr(y, "__array_priority__", 0) <= 100 or is_jax(type(y)):
        return False
    return name in REFLECTED and isinstance(x, (Tensor, Convertible))


def reflected(name: str, x: Any, y: Any) -> Any:
    """An op of a tensor and something that outranks it, which has to say what comes out: a Keras symbol, say."""
    if isinstance(y, Structured):
        return NotImplemented  # whoever called the op hands it over
    method = getattr(type(y), REFLECTED[name], None)
    result = NotImplemented if method is None else method(y, x)
    if result is NotImplemented:
        kind = type(y).__name__
        text = f"{name} of a tensor and a {kind} is not defined."
        raise TypeError(message(text, received=f"a {kind}", expected=f"something with {REFLECTED[name]} for tensors"))
    return result
