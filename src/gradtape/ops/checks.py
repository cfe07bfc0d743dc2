"""Assertions about tensors: values, shapes, types, finiteness; with TensorFlow's error classes, and the values in the text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gradtape.core.op import op
from gradtape.errors import InvalidArgumentError, shown
from gradtape.errors import message as compose  # TensorFlow calls the user's own text `message`
from gradtape.ops import elementwise
from gradtape.ops.arguments import real_floating
from gradtape.ops.execution import is_symbolic_tensor, staging
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import JaxTensor, Tensor

__all__ = [
    "Assert", "assert_all_finite", "assert_equal", "assert_greater", "assert_greater_equal", "assert_integer", "assert_less",
    "assert_less_equal", "assert_near", "assert_negative", "assert_non_negative", "assert_non_positive", "assert_none_equal",
    "assert_positive", "assert_proper_iterable", "assert_rank", "assert_rank_at_least", "assert_rank_in",
    "assert_same_float_dtype", "assert_scalar", "assert_type", "is_numeric_tensor", "numerics",
]  # fmt: skip


def Assert(condition: Any, data: Any, summarize: int | None = None, name: str | None = None) -> None:
    """Raise InvalidArgumentError, showing ``summarize`` (3) elements of each value in ``data``, unless the condition holds."""
    if _known_to_hold(condition) if isinstance(condition, Tensor) and condition.ndim == 0 else condition:
        return
    if isinstance(data, Tensor) or not isinstance(data, (list, tuple, str)):
        raise TypeError(compose("values must be a sequence.", fix="tf.debugging.Assert(condition, [data])"))
    summary = "\n".join(_summary(convert_to_tensor(value), 3 if summarize is None else summarize) for value in data)
    text = f"Expected '{condition!s}' to be true. Summarized data: {summary}"
    raise InvalidArgumentError(compose(text, received=f"condition={shown(condition)}", expected="a condition that holds"))


def _known_to_hold(condition: Tensor) -> bool:
    """Whether it holds everywhere, as far as that is known: inside a compiled function the program checks it when it runs."""
    if is_symbolic_tensor(condition):
        staging.control.require(condition)
        return True
    return bool(condition._host().all())


def _summary(value: Tensor, count: int) -> str:
    elements = value._host().ravel()
    count = elements.size if count < 0 else count
    return ", ".join([*(str(element) for element in elements[:count]), *(["..."] if count < elements.size else [])])


# Two tensors, element by element


def _comparison(name: str, sign: str, compare: Callable) -> Callable:
    def check(x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None) -> None:
        x = convert_to_tensor(x)
        y = convert_to_tensor(y, None if hasattr(y, "dtype") else x.dtype)
        holds = compare(x, y)
        if not _known_to_hold(holds):
            text = _differences(x._host(), y._host(), ~holds._host(), sign, message, summarize)
            raise InvalidArgumentError(compose(text, received=f"x={shown(x)}, y={shown(y)}", expected=f"x {sign} y everywhere"))

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Raise InvalidArgumentError unless ``x {sign} y`` holds for every element."
    return check


def _differences(x: Any, y: Any, wrong: np.ndarray, sign: str, text: str | None, summarize: int | None) -> str:
    count = 3 if summarize is None else wrong.size if summarize < 0 else summarize
    lines = [text] if text else []
    lines.append(f"Condition x {sign} y did not hold.")
    if x.shape == y.shape and x.ndim:
        where = np.argwhere(wrong)[:count]
        at = tuple(where.T)
        lines += [f"Indices of first {len(where)} different values:", f"{where}"]
        lines += ["Corresponding x values:", f"{x[at]}", "Corresponding y values:", f"{y[at]}"]
    for name, value in (("x", x), ("y", y)):
        first = np.ravel(value)[:count]
        lines += [f"First {first.size} elements of {name}:", f"{first}"]
    return "\n".join(lines)


assert_equal = _comparison("assert_equal", "==", elementwise.equal)
assert_none_equal = _comparison("assert_none_equal", "!=", elementwise.not_equal)
assert_less = _comparison("assert_less", "<", elementwise.less)
assert_less_equal = _comparison("assert_less_equal", "<=", elementwise.less_equal)
assert_greater = _comparison("assert_greater", ">", elementwise.greater)
assert_greater_equal = _comparison("assert_greater_equal", ">=", elementwise.greater_equal)


def assert_near(
    x: Any, y: Any, rtol: Any = None, atol: Any = None, message: str | None = None, summarize: int | None = None,
    name: str | None = None,
) -> None:  # fmt: skip
    """Raise InvalidArgumentError unless ``|x - y| < atol + rtol · |y|`` everywhere; both are 10 machine epsilons by default."""
    x, y = convert_to_tensor(x), convert_to_tensor(y, None if hasattr(y, "dtype") else convert_to_tensor(x).dtype)
    if not (x.dtype.is_floating or x.dtype.is_complex):
        raise ValueError(compose(f"data type {x.dtype.as_numpy_dtype} not inexact", fix="tf.debugging.assert_equal(x, y)"))
    epsilon = 10 * float(x.dtype.real_dtype._limits.eps)
    bounds = [convert_to_tensor(epsilon if b is None else b, x.dtype.real_dtype) for b in (rtol, atol)]
    tolerated = elementwise.add(bounds[1], elementwise.multiply(bounds[0], elementwise.abs(y)))
    if not _known_to_hold(elementwise.less_equal(elementwise.abs(elementwise.subtract(x, y)), tolerated)):
        tolerance = f"x and y not equal to tolerance rtol = {bounds[0]!s}, atol = {bounds[1]!s}"
        data = [f"{message}.  " if message else "", tolerance, f"x ({_kind(x)}) = ", x, f"y ({_kind(y)}) = ", y]
        Assert(convert_to_tensor(False), data, summarize)


def _kind(x: Tensor) -> str:
    return f"shape={x._array.shape} dtype={x.dtype.name}"


# One tensor


def _sign(name: str, condition: str, compare: Callable) -> Callable:
    def check(x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None) -> None:
        tensor = convert_to_tensor(x)
        if not _known_to_hold(compare(tensor, convert_to_tensor(0, tensor.dtype))):
            values = tensor._host()
            count = 3 if summarize is None else values.size if summarize < 0 else summarize
            first = [str(value) for value in values.ravel()[:count]] if values.ndim else str(values)
            prefix = f"{message}.  " if message else ""
            text = f"{prefix}\nCondition {condition} did not hold element-wise:\nx ({_kind(tensor)}) = \n{first}"
            raise InvalidArgumentError(compose(text, received=f"x={shown(tensor)}", expected=f"{condition} everywhere"))

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Raise InvalidArgumentError unless ``{condition}`` holds for every element."
    return check


assert_positive = _sign("assert_positive", "x > 0", elementwise.greater)
assert_negative = _sign("assert_negative", "x < 0", elementwise.less)
assert_non_negative = _sign("assert_non_negative", "x >= 0", elementwise.greater_equal)
assert_non_positive = _sign("assert_non_positive", "x <= 0", elementwise.less_equal)


@op
def check_numerics(xp, x, *, text):
    """x itself; refused where it has an infinity or nan. `numerics` sees to traced ones."""
    if isinstance(x, np.ndarray):
        _refuse_infinities(x, text)
    return x


def _refuse_infinities(x: np.ndarray, text: str) -> None:
    found = [word for word, bad in (("Inf", np.isinf(x)), ("NaN", np.isnan(x))) if bad.any()]
    if found:
        summary = f"{text} : Tensor had {' and '.join(found)} values [Op:CheckNumerics]"
        bad = np.argwhere(~np.isfinite(x))
        where = f"{len(bad)} of {x.size} elements of {x.dtype.name} {x.shape}, the first at {tuple(bad[0].tolist())}"
        fix = "tf.debugging.enable_check_numerics() names the op"
        raise InvalidArgumentError(compose(summary, received=where, fix=fix))


check_numerics.vjp(lambda xp, g: g)


def numerics(tensor: Any, text: str) -> Tensor:
    """The tensor, if all its elements are finite."""
    x = convert_to_tensor(tensor)
    real_floating("CheckNumerics", x)
    if is_symbolic_tensor(x):
        staging.control.require(elementwise.isfinite(x))
    if type(x) is JaxTensor and not x._is_traced():
        _refuse_infinities(x._host(), text)
    return check_numerics(x, text=text)


def assert_all_finite(x: Any, message: str, name: str | None = None) -> Tensor:
    """The tensor, if all its elements are finite; else InvalidArgumentError with the message."""
    return numerics(x, message)


# Ranks and types


def _rank(value: Any) -> int:
    tensor = convert_to_tensor(value)
    if tensor._array.ndim:
        raise ValueError(compose("Rank must be a scalar.", received=shown(value), expected="one integer"))
    assert_type(tensor, dtypes.int32)
    return int(tensor)


def _require_rank(x: Any, holds: Callable[[int], bool], expected: str, text: str | None) -> None:
    found = convert_to_tensor(x)._array.shape
    if not holds(len(found)):
        prefix = f"{text}.  " if text else ""
        summary = f"{prefix}Tensor  must have rank {expected}.  Received rank {len(found)}, shape {found}"
        raise ValueError(compose(summary, received=f"shape {found}", expected=f"rank {expected}"))


def assert_rank(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """Raise ValueError unless ``x`` has this number of axes."""
    wanted = _rank(rank)
    _require_rank(x, lambda found: found == wanted, f"{wanted}", message)


def assert_rank_at_least(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """Raise ValueError unless ``x`` has at least this number of axes."""
    wanted = _rank(rank)
    _require_rank(x, lambda found: found >= wanted, f"at least {wanted}", message)


def assert_rank_in(x: Any, ranks: Iterable, message: str | None = None, name: str | None = None) -> None:
    """Raise ValueError unless the number of axes of ``x`` is one of these."""
    if not isinstance(ranks, Iterable):
        text = f"{type(ranks).__name__!r} object is not iterable"
        raise TypeError(compose(text, received=f"ranks={shown(ranks)}", fix="a list of ranks: [1, 2]"))
    wanted = tuple(_rank(rank) for rank in ranks)
    _require_rank(x, lambda found: found in wanted, f"in {wanted}", message)


def assert_scalar(tensor: Any, message: str | None = None, name: str | None = None) -> None:
    """Raise ValueError unless the tensor has no axes."""
    found = convert_to_tensor(tensor)._array.shape
    if found:
        text = f"{message + '.  ' if message else ''}Expected scalar shape, saw shape: {found}."
        raise ValueError(compose(text, received=f"shape {found}", expected="shape ()"))


def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None) -> None:
    """Raise TypeError unless the tensor has this element type."""
    wanted, found = dtypes.as_dtype(tf_type), convert_to_tensor(tensor).dtype
    if found is not wanted:
        text = f"{message + '.  ' if message else ''}tensor must be of type {wanted!r}; got {found!r}"
        raise TypeError(compose(text, received=f"{found!r}", fix=f"tf.cast(tensor, {wanted!r})"))


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> None:
    """Raise TypeError unless the tensor holds integers."""
    found = convert_to_tensor(x).dtype
    if not found.is_integer:
        prefix = message + ".  " if message else ""
        text = f'{prefix}Expected "x" to be integer type.  Found: tensor of dtype {found}'
        raise TypeError(compose(text, received=f"{found!r}", fix="tf.cast(x, tf.int32)"))


def assert_same_float_dtype(tensors: Any = None, dtype: Any = None) -> dtypes.DType:
    """The one floating type of all the tensors; ValueError if there is no such type. float32 where nothing is given."""
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    first = None
    for tensor in tensors or ():
        if wanted is None:
            wanted, first = tensor.dtype, tensor
        elif tensor.dtype != wanted:
            like = f" as {first}" if first is not None else ""
            text = f"{tensor}, type={tensor.dtype}, must be of the same type ({wanted}){like}."
            raise ValueError(compose(text, received=f"{tensor.dtype!r}", fix=f"tf.cast(tensor, {wanted!r})"))
    wanted = wanted or dtypes.float32
    if not wanted.is_floating:
        text = f"Expected floating point type, got {wanted}."
        raise ValueError(compose(text, received=f"{wanted!r}", fix="tf.cast(tensor, tf.float32)"))
    return wanted


def assert_proper_iterable(values: Any) -> None:
    """Raise TypeError for what iterates by accident, such as tensors, arrays and strings."""
    if isinstance(values, (Tensor, np.ndarray, str, bytes)):
        text = f'Expected argument "values" to be a "proper" iterable.  Found: {type(values)}'
        raise TypeError(compose(text, received=shown(values), fix="put it into a list: [values]"))
    if not isinstance(values, Iterable):
        text = f'Expected argument "values" to be iterable.  Found: {type(values)}'
        raise TypeError(compose(text, received=shown(values), fix="put it into a list: [values]"))


def is_numeric_tensor(tensor: Any) -> bool:
    """Whether this is a tensor of numbers."""
    return isinstance(tensor, Tensor) and tensor.dtype.is_numeric
