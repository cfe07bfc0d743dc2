"""A step on tensors of any storage: nothing in place and no decision in Python, so that it can be traced.

The rules are the optimizers' own; the options (clipping, decay, averages, accumulation) are written here once more, because
on NumPy they work on buffers. What depends on the step number is computed both ways and selected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.context import suspended
from gradtape.core.indexed_slices import IndexedSlices
from gradtape.core.variable import Variable
from gradtape.optimizers import gradients
from gradtape.optimizers.gradients import Slices, mapped
from gradtape.values.convert import Convertible, convert_to_tensor
from gradtape.values.recorded import RECORDED
from gradtape.values.tensor import Tensor, wrap

xp = RECORDED


class _Functional:
    """The functions that rules use, with NumPy's position for ``out``, which is ignored."""

    def __getattr__(self, name: str) -> Callable:
        function = getattr(RECORDED, name)
        arity = 1 if name in ("sqrt", "square", "abs", "sign", "negative") else 2
        return lambda *args, out=None: function(*args[:arity])


XP = _Functional()


def apply(optimizer: Any, pairs: list) -> None:
    """One step of the optimizer, out of place."""
    with suspended():
        present = gradients.present(pairs, optimizer, optimizer._entries)
        variables = [v for _, v in present]
        gs = [_fitting(g, v, optimizer) for g, v in present]
        if optimizer.loss_scale_factor is not None:
            gs = [mapped(g, lambda x: x / _number(optimizer.loss_scale_factor, x)) for g in gs]
        due = None
        if optimizer.gradient_accumulation_steps:
            gs, due = _accumulated(optimizer, [_summed(g) for g in gs], variables)
        state = [*optimizer._variables, *variables]
        before = [v._tensor for v in state]
        _update(optimizer, clipped(gs, optimizer.clipnorm, optimizer.global_clipnorm, optimizer.clipvalue), variables)
        if due is not None:
            for variable, old in zip(state, before):
                if variable._tensor is not old:
                    variable._put(xp.where(due, variable._tensor, old)._array)
        if optimizer.use_ema:
            _average(optimizer)
        for variable in variables:
            if variable.constraint is not None:
                variable.assign(variable.constraint(variable))


def _fitting(gradient: Any, variable: Variable, optimizer: Any) -> Any:
    """The gradient as a tensor that fits; that of a gather as `Slices`, if what becomes of each of them matters."""
    per_slice = optimizer.of_each or any((optimizer.clipnorm, optimizer.global_clipnorm, optimizer.clipvalue))
    if isinstance(gradient, IndexedSlices) and per_slice:
        shape = variable._tensor._array.shape
        gradients.check_slices(gradient, variable)
        return Slices(_cast(gradient.values, variable), gradient.indices, shape)
    found = convert_to_tensor(gradient)
    gradients.check_fits(found._array, variable)
    return _cast(found, variable)


def _summed(g: Any, function: Callable = lambda x: x) -> Tensor:
    """A gradient with `Slices` added up, or a function of each of them."""
    if type(g) is not Slices:
        return g
    return xp.take_transpose(function(g.values), g.indices, axis=0, shape=g.shape, batch_dims=0)


def _number(value: Any, like: Any) -> Tensor:
    return wrap(np.asarray(value, like.dtype.numpy))


def _cast(value: Tensor, like: Any) -> Tensor:
    return value if value.dtype is like.dtype else xp.astype(value, dtype=like.dtype.numpy)


def _update(optimizer: Any, gs: list[Tensor], variables: list[Variable]) -> None:
    """Decay the weights, then follow the rule."""
    lr = optimizer.learning_rate
    rate = convert_to_tensor(lr._operand() if isinstance(lr, Convertible) else lr)
    if optimizer.weight_decay is not None:
        for variable in variables:
            if optimizer._decays(variable):
                p = variable._operand()
                variable._put((p - p * _number(np.float32(optimizer.weight_decay), p) * _cast(rate, p))._array)
    if optimizer._updates_tensors:
        for g, variable in zip(gs, variables):
            optimizer.update_step(_summed(g), variable, lr)
        return
    step = _steps(optimizer) + 1
    optimizer._begin(step)
    for g, variable in zip(gs, variables):
        update(optimizer, g, variable, rate, step)


def update(optimizer: Any, g: Any, variable: Any, lr: Tensor, step: Tensor) -> None:
    """Update one variable and its slots by the rule, on tensors."""
    p = variable._operand()

    def cast(value: Any) -> Tensor:
        return _cast(value, p) if isinstance(value, Tensor) else _number(value, p)

    slots = optimizer._entries[variable._key][4]
    coefficients = optimizer.coefficients(XP, cast(lr), step, cast)
    options = {}
    if type(g) is Slices and optimizer.of_each is not None:
        options["each"] = _summed(g, getattr(xp, optimizer.of_each))
    held = (slot._operand() for slot in slots)
    values = optimizer.update(XP, coefficients, (None,) * optimizer.scratch, _summed(g), p, *held, **options)
    for target, value in zip((variable, *slots), values):
        target._put(value._array)


def _steps(optimizer: Any) -> Tensor:
    """How many updates were made."""
    return optimizer._iterations._operand() // (optimizer.gradient_accumulation_steps or 1)


def _accumulated(optimizer: Any, gs: list[Tensor], variables: list[Variable]) -> tuple[list[Tensor], Tensor]:
    """The means of the gradients so far, and whether this call applies them."""
    steps = optimizer.gradient_accumulation_steps
    iterations = optimizer._iterations._operand()
    due = xp.equal((iterations + 1) % steps, _number(0, iterations))
    accumulators = {v._key: a for v, a in zip(optimizer._trainable, optimizer._accumulators)}
    totals = {v._key: accumulators[v._key]._operand() + g for g, v in zip(gs, variables)}
    for key, accumulator in accumulators.items():
        total = totals.get(key, accumulator._operand())
        accumulator._put(xp.where(due, xp.zeros_like(total), total)._array)
    return [totals[v._key] / _number(steps, g) for g, v in zip(gs, variables)], due


def _average(optimizer: Any) -> None:
    step = _steps(optimizer)
    first = xp.equal(step, _number(0, step))
    frequency = optimizer.ema_overwrite_frequency
    for variable, average in zip(optimizer._trainable, optimizer._averages):
        p = variable._operand()
        momentum = xp.where(first, _number(0, p), _number(optimizer.ema_momentum, p))
        mean = momentum * average._operand() + (_number(1, p) - momentum) * p
        average._put(mean._array)
        if frequency:
            due = xp.equal((step + 1) % frequency, _number(0, step))
            variable._put(xp.where(due, mean, p)._array)


# Clipping


def clipped(gs: list, norm: float | None, global_norm: float | None, value: float | None) -> list:
    """New gradients, bounded by the norm of each, the norm of all together, or the size of each element."""
    if norm and norm > 0:
        return [_scaled(g, norm, _norm([g])) for g in gs]
    if global_norm and global_norm > 0:
        total = _norm(gs)
        # Not finite: every gradient becomes nan, so that the trouble is seen.
        total = xp.where(xp.isfinite(total), total, _number(np.nan, total))
        return [_scaled(_summed(g), global_norm, total) for g in gs]
    if value and value > 0:
        return [mapped(g, lambda x: xp.minimum(xp.maximum(x, _number(-value, x)), _number(value, x))) for g in gs]
    return gs


def _norm(given: list) -> Tensor:
    """The Euclidean norm of all together, in the widest real dtype among them and at least float32; without overflow."""
    gs = [g.values if type(g) is Slices else g for g in given]
    kind = np.result_type(np.float32, *(np.zeros(0, g.dtype.real_dtype.numpy) for g in gs if g.dtype.size > 2))
    sizes = [xp.astype(xp.abs(g), dtype=kind) for g in gs]
    largest = [xp.max(s, axis=None) for s in sizes if s._array.size]
    if not largest:
        return wrap(np.zeros((), kind))
    top = largest[0]
    for other in largest[1:]:
        top = xp.maximum(top, other)
    unit = xp.where(xp.logical_and(xp.isfinite(top), xp.greater(top, _number(0, top))), top, _number(1, top))
    total = _number(0, top)
    for s in sizes:
        total = total + xp.sum(xp.square(s / unit))
    return xp.sqrt(total) * unit


def _scaled(g: Any, bound: float, norm: Tensor) -> Any:
    factor = _number(bound, norm) / xp.maximum(norm, _number(bound, norm))
    return mapped(g, lambda x: x * _cast(factor, x))
