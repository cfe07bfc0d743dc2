"""Gradients as optimizers receive them: checked, made dense, cast, clipped."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.callsite import warn_at_site
from gradtape.core.indexed_slices import IndexedSlices
from gradtape.core.tape import GradientTape
from gradtape.core.variable import Variable, variable_of
from gradtape.errors import InvalidArgumentError, NoGradientsError, dims, message
from gradtape.values import dtypes
from gradtape.values.convert import Convertible, convert_to_tensor
from gradtape.values.tensor import Tensor, wrap
from gradtape.xp import numpy as NUMPY

_MISSING = (
    "Gradients do not exist for variables {} when minimizing the loss. If using `model.compile()`, did you forget to provide "
    "a `loss` argument?"
)


_TAPE_REQUIRED = "`tape` is required when a `Tensor` loss is passed. Received: loss={}, tape=None."
_NO_PATH = "on this tape no differentiable path leads from these variables to the loss."
_CONNECT = (
    "compute the loss inside `with tf.GradientTape() as tape:`, from these variables, with differentiable operations on "
    "tensors (not argmax, casts to integers, .numpy())."
)


class Slices(NamedTuple):
    """The gradient of a gather, of rows that come several times."""

    values: Any
    indices: Any
    shape: tuple[int, ...]


class Rows(NamedTuple):
    """The gradient of a gather with each row once; of all rows if there are no ``indices``.

    ``each``: the sum over slices of what a rule makes of each (`Optimizer.of_each`), if rows came several times.
    """

    values: Any
    indices: Any = None
    each: Any = None


# Whose they are


def with_variables(pairs: list) -> list:
    """The pairs with the variables that the objects in them hold."""
    return [(pair[0], variable_of(pair[1])) if isinstance(pair, (tuple, list)) and len(pair) == 2 else pair for pair in pairs]


def of_loss(loss: Any, var_list: Any, tape: GradientTape | None, scale: Any = None) -> list[tuple[Any, Any]]:
    """Pairs of gradient and variable; ``loss`` is a function without arguments, or a tensor that ``tape`` recorded.

    The gradients are those of the loss times ``scale``, a number or a tensor, if there is one.
    """
    if not callable(loss) and tape is None:
        raise ValueError(
            message(
                _TAPE_REQUIRED.format(loss),
                fix="pass the tape that recorded the loss, or a function that computes it: minimize(lambda: …, variables)",
            )
        )
    tape = GradientTape() if tape is None else tape
    if isinstance(variable_of(var_list), Variable):
        var_list = [var_list]
    if callable(loss):
        with tape:
            if not callable(var_list):
                var_list = list(var_list)
                tape.watch([variable_of(variable) for variable in var_list])
            loss = loss()
    variables = list(var_list() if callable(var_list) else var_list)
    seed = None if scale is None else _seed(convert_to_tensor(loss), scale)
    return list(zip(tape.gradient(loss, [variable_of(variable) for variable in variables], seed), variables))


def _seed(loss: Tensor, scale: Any) -> Tensor:
    kind = loss._array.dtype
    with NUMPY.scope():  # too large for float16: inf
        factor = scale._array.astype(kind) if isinstance(scale, Tensor) else np.asarray(scale, kind)
        return wrap(np.ones(loss._array.shape, kind) * factor)


# Who may come in


def check_pairs(pairs: list, optimizer: Any) -> None:
    """Refuse what is not a list of (gradient, variable)."""
    who = f"{type(optimizer).__name__}.apply_gradients"
    if not pairs:
        raise NoGradientsError(
            message(
                f"No gradients provided for any variable. {who} received an empty list.",
                expected="pairs (gradient, variable)",
                why="the list of variables is empty, or a zip was passed that something else has used up",
                fix="opt.apply_gradients(zip(gradients, variables)), with a new zip for each call",
            )
        )
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            received = f"{type(pair).__name__}" + (f" of length {len(pair)}" if isinstance(pair, (tuple, list)) else "")
            raise ValueError(
                message(
                    f"{who} takes pairs (gradient, variable).",
                    received=f"{received} among its items",
                    fix="opt.apply_gradients(zip(gradients, variables))",
                )
            )
        if not isinstance(pair[1], Variable):
            swapped = isinstance(pair[0], Variable)
            raise TypeError(
                message(
                    f"{who} can only update variables.",
                    received=f"a {type(pair[1]).__name__} in the place of a variable",
                    expected="pairs (gradient, variable)",
                    fix="the gradient comes first: zip(gradients, variables)" if swapped else None,
                )
            )


def check_variable(variable: Any, optimizer: Any) -> None:
    """Refuse what an optimizer cannot update."""
    if not isinstance(variable, Variable):
        raise TypeError(
            message(
                f"{type(optimizer).__name__}.build takes variables.",
                received=type(variable).__name__,
                fix="make it a tf.Variable",
            )
        )
    if not variable.dtype.is_trainable:
        raise InvalidArgumentError(
            message(
                f"{type(optimizer).__name__} cannot update variable {variable.name!r} of dtype {variable.dtype.name}.",
                expected="a floating dtype",
            )
        )


def check_known(variables: list[Variable], optimizer: Any, entries: dict) -> None:
    """Refuse variables that the optimizer was not built with."""
    for variable in variables:
        if variable._key not in entries:
            raise ValueError(
                message(
                    f"Unknown variable: {variable.name!r}. This optimizer can only be called for the variables it was "
                    "originally built with. When working with a new set of variables, you should recreate a new optimizer "
                    "instance.",
                    received=f"a variable of shape {variable._tensor._array.shape}; built with {len(entries)} others",
                    fix=f"{type(optimizer).__name__}.build(all_variables) before the first step, or one optimizer per group",
                )
            )


def present(pairs: list, optimizer: Any, entries: dict) -> list:
    """The pairs that have a gradient; a warning names the others."""
    check_known([variable for _, variable in pairs], optimizer, entries)
    found = [(g, variable) for g, variable in pairs if g is not None]
    if not found:
        raise _no_gradients(pairs, optimizer)
    if len(found) < len(pairs):
        warn_at_site(_MISSING.format([v.name for g, v in pairs if g is None]))
    return found


def _no_gradients(pairs: list, optimizer: Any) -> NoGradientsError:
    """The error that carries its report. It is made here so that no frame of its traceback refers to it: a cycle lives on."""
    from gradtape.inspect.explain import explain_latest

    names = [f"{v.name.removesuffix(':0')!r} {v._tensor._array.shape}" for _, v in pairs]
    who = f"{type(optimizer).__name__}.apply_gradients"
    many = f"any of its {len(pairs)} variables" if len(pairs) > 1 else "its variable"
    report = explain_latest([variable for _, variable in pairs])
    error = NoGradientsError(
        message(
            f"No gradients provided for any variable. {who} received no gradient for {many}.",
            received=f"None for {_listed(names)}.",
            expected="at least one gradient.",
            why=report.brief() if report else _NO_PATH,
            fix=report[0].cause.fix + "." if report else _CONNECT,
        )
    )
    error.report = report
    return error


def _listed(names: list[str], limit: int = 8) -> str:
    if len(names) > limit:
        names = [*names[:limit], f"{len(names) - limit} more"]
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def check_count(grads: Any, variables: Any, optimizer: Any) -> None:
    """Refuse a list of gradients that is longer or shorter than that of the variables; an empty one is none."""
    if len(grads) not in (0, len(variables)):
        raise ValueError(
            message(
                f"{optimizer.name}.apply received {len(grads)} gradients for {len(variables)} variables.",
                expected="one gradient per variable, in the same order; None where there is none",
            )
        )


# As arrays


def fitting(gradient: Any, variable: Variable, optimizer: Any, rows: bool) -> Any:
    """The gradient as an array of the variable's shape and dtype, as `Rows` if those are allowed, or as `Slices`."""
    array = variable._tensor._array
    if isinstance(gradient, IndexedSlices):
        found = _from_slices(gradient, variable, rows)
    else:
        if isinstance(gradient, Convertible):
            gradient = gradient._operand()
        found = _cast(gradient._array if isinstance(gradient, Tensor) else np.asarray(gradient), variable)
        check_shape(found.shape, variable)
    for slot in optimizer._entries[variable._key][4]:
        if slot._tensor._array.shape != array.shape:
            raise InvalidArgumentError(
                message(
                    f"Variable {variable.name!r} has changed its shape.",
                    received=f"shape {array.shape}; the optimizer was built with {slot._tensor._array.shape}",
                    fix="make a new optimizer after changing shapes",
                )
            )
    return found


def check_shape(shape: tuple[int, ...], variable: Variable) -> None:
    """Refuse a gradient whose shape is not the variable's; a smaller one is not broadcast."""
    own = variable._tensor._array.shape
    if shape != own:
        raise InvalidArgumentError(
            message(
                f"Cannot update variable with shape {dims(own)} using a Tensor with shape {dims(shape)}, shapes must be equal.",
                received=f"a gradient of shape {shape} for variable {variable.name!r} of shape {own}",
                fix="pair each gradient with its own variable: zip(gradients, variables) in the same order",
            )
        )


def check_dtype(dtype: np.dtype, variable: Variable) -> None:
    """Refuse a gradient that would lose more than precision in the variable's dtype."""
    own = dtypes.of(dtype)
    if own is None or not (own.is_floating or own.is_integer or (own.is_complex and variable.dtype.is_complex)):
        raise InvalidArgumentError(
            message(
                f"A gradient of dtype {own.name if own else dtype} cannot update variable {variable.name!r} "
                f"of dtype {variable.dtype.name}.",
                fix=f"tf.cast(gradient, {variable.dtype!r})",
            )
        )


def check_fits(array: Any, variable: Variable) -> None:
    """Refuse a gradient of another shape, or of a dtype that cannot become the variable's."""
    check_dtype(array.dtype, variable)
    check_shape(array.shape, variable)


def _cast(array: np.ndarray, variable: Variable) -> np.ndarray:
    """The array in the variable's dtype."""
    wanted = variable._tensor._array.dtype
    if array.dtype == wanted:
        return array
    check_dtype(array.dtype, variable)
    with np.errstate(all="ignore"):
        return array.astype(wanted)


def _from_slices(slices: IndexedSlices, variable: Variable, rows: bool) -> Any:
    """Rows as they are if they come several times, else in their places."""
    check_slices(slices, variable)
    values, indices = (part._array for part in (slices.values, slices.indices))
    shape = variable._tensor._array.shape
    bad = np.flatnonzero((indices < 0) | (indices >= shape[0]))
    if bad.size:
        raise InvalidArgumentError(
            message(
                f"indices[{bad[0]}] = {indices[bad[0]]} is not in [0, {shape[0]})",
                received=f"a sparse gradient for variable {variable.name!r} of shape {shape}",
                expected=f"rows from 0 to {shape[0] - 1}",
            )
        )
    values = _cast(values, variable)
    if len(np.unique(indices)) < len(indices):
        return Slices(values, indices, shape)
    return Rows(values, indices) if rows else _placed(values, indices, shape)


def check_slices(slices: IndexedSlices, variable: Variable) -> None:
    """Refuse a gradient of rows that are not like those of the variable, or of a dtype that cannot become its."""
    values, indices = (part._array for part in (slices.values, slices.indices))
    shape = variable._tensor._array.shape
    if indices.ndim != 1 or not shape or values.shape != (len(indices), *shape[1:]):
        raise InvalidArgumentError(
            message(
                f"A sparse gradient does not fit variable {variable.name!r}.",
                received=f"values of shape {values.shape} at indices of shape {indices.shape}",
                expected=f"values of shape (n, {', '.join(map(str, shape[1:]))}) at n indices: a variable of shape {shape}",
            )
        )
    check_dtype(values.dtype, variable)


def _placed(values: np.ndarray, indices: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Zeros to which rows are added."""
    dense = np.zeros(shape, values.dtype)
    np.add.at(dense, indices, values)
    return dense


def summed(g: Any, rows: bool, of_each: str | None) -> Any:
    """A gradient with `Slices` added up: as `Rows`, or as an array if no rule asks for more."""
    if type(g) is not Slices:
        return g
    indices, shape, places = g.indices, g.shape, None
    if rows:
        places, indices = np.unique(g.indices, return_inverse=True)
        shape = (len(places), *shape[1:])
    total = _placed(g.values, indices, shape)
    if of_each is None:
        return Rows(total, places) if rows else total
    return Rows(total, places, _placed(_OF_EACH[of_each](g.values), indices, shape))


_OF_EACH = {"square": np.square, "abs": np.abs}


def mapped(g: Any, function: Callable) -> Any:
    """A gradient with a function of each element, of `Slices` in each."""
    return g._replace(values=function(g.values)) if type(g) is Slices else function(g)


# Clipping


def square_sum(g: Any) -> float:
    """The sum of the absolute squares, without overflow on the way."""
    array = g.values if type(g) is Slices else g
    if array.dtype.itemsize < 4:
        array = array.astype(np.float32)
    flat = array.reshape(-1)
    total = float(np.vdot(flat, flat).real)
    if not math.isfinite(total):
        wide = flat.astype(np.complex128 if flat.dtype.kind == "c" else np.float64)
        total = float(np.vdot(wide, wide).real)
    return total


def clipped(arrays: list, norm: float | None, global_norm: float | None, value: float | None) -> list:
    """New arrays, bounded by the norm of each, the norm of all together, or the size of each element."""
    if norm and norm > 0:
        return [_scaled(g, norm / max(math.sqrt(square_sum(g)), norm)) for g in arrays]
    if global_norm and global_norm > 0:
        total = math.sqrt(sum(map(square_sum, arrays)))
        # Not finite: every gradient becomes nan, so that the trouble is seen.
        factor = global_norm / max(total, global_norm) if math.isfinite(total) else math.nan
        return [_scaled(summed(g, False, None), factor) for g in arrays]  # added up, as in Keras; the norm is that of slices
    if value and value > 0:
        return [mapped(g, lambda a: np.clip(a, np.asarray(-value, a.dtype), np.asarray(value, a.dtype))) for g in arrays]
    return arrays


def _scaled(g: Any, factor: float) -> Any:
    return g if factor == 1 else mapped(g, lambda a: np.multiply(a, np.asarray(factor, a.dtype)))
