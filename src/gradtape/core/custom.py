"""Rules of the user's own: `custom_gradient`, `recompute_grad`, `grad_pass_through`, and the gradient registry."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.backprop import Sweep, pull_several
from gradtape.core.callsite import site
from gradtape.core.context import activate, level, thread, within
from gradtape.core.indexed_slices import IndexedSlices
from gradtape.core.op import OPS, REGISTRY, Op, append_record
from gradtape.core.rules import Reads
from gradtape.core.selection import EVERYWHERE, settled
from gradtape.core.tape import GradientTape, UnconnectedGradients
from gradtape.core.variable import Variable
from gradtape.errors import message
from gradtape.values import dtypes, nest
from gradtape.values.batched import Batched, inner
from gradtape.values.convert import Convertible, convert_to_tensor
from gradtape.values.recorded import RECORDED
from gradtape.values.tensor import BatchedTensor, JaxTensor, Tensor, wrap


class VariableWatcher:
    """A recorder that records no op: it notes which trainable variables are read."""

    def __init__(self) -> None:
        self.records: dict = {}
        self.variables: dict[Any, Variable] = {}

    def accessed(self, variable: Variable) -> None:
        self.variables[variable._key] = variable

    def __enter__(self) -> VariableWatcher:
        activate((*thread.recorders, self))
        return self

    def __exit__(self, *_: object) -> None:
        activate(tuple(r for r in thread.recorders if r is not self))


def custom_gradient(f: Callable | None = None) -> Callable:
    """Decorator: ``f`` returns its result and the function that pulls gradients back through it.

    >>> @custom_gradient
    ... def double_slope(x):
    ...     return x, lambda upstream: 2.0 * upstream

    ``grad_fn(*upstream)`` gets one tensor per result and returns one gradient per argument (None: no gradient). If ``f``
    reads trainable variables that are not its arguments, ``grad_fn`` must accept ``variables=`` and return
    ``(argument_gradients, variable_gradients)``. ``grad_fn`` is itself recorded by outer tapes.
    """
    if f is None:
        return custom_gradient

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with VariableWatcher() as watcher:
            result, grad_fn = f(*args, **kwargs)
        inputs = nest.flatten(list(args))
        passed = {x._key for x in inputs if isinstance(x, Variable)}
        variables = [v for key, v in watcher.variables.items() if key not in passed]
        if variables and not _accepts_variables(grad_fn):
            raise TypeError(
                message(
                    "@tf.custom_gradient grad_fn must accept keyword argument 'variables', since function uses variables: "
                    f"{variables}",
                    fix="def grad(upstream, variables=None): return gradient, [gradient of each variable]",
                )
            )
        frame = [None] * len(args) if len(inputs) == len(args) else nest.map_structure(lambda _: None, list(args))
        return record_custom(f.__name__, grad_fn, result, inputs, variables, (f, frame, kwargs))

    return wrapper


def record_custom(name: str, grad_fn: Callable, result: Any, inputs: list, variables: list[Variable], again: Any = None) -> Any:
    """The result as new tensors, whose producer on every tape is ``grad_fn``.

    ``again`` is what it takes to run it once more: what `custom_gradient` was given, the structure of the arguments, and
    those by name.
    """
    outs = _carried(name, grad_fn, tuple(_tensor(y)._detached() for y in nest.flatten(result)), inputs, variables)
    sources = [x for x in (*inputs, *variables) if isinstance(x, (Tensor, Variable))]
    recorders = thread.recorders
    for recorder in recorders:
        for variable in (x for x in sources if isinstance(x, Variable) and x.trainable):
            recorder.accessed(variable)
    make = functools.partial(make_custom_record, name, grad_fn, outs, inputs, variables, sources, again)
    append_record(recorders, sources, make, outs, (*inputs, *variables))
    return nest.pack_sequence_as(result, outs)


def _tensor(value: Any) -> Tensor:
    return value._operand() if isinstance(value, Convertible) else convert_to_tensor(value)


def make_custom_record(
    name: str, grad_fn: Callable, outs: tuple, inputs: list, variables: list[Variable], sources: list, again: Any = None
) -> tuple | None:
    """A record whose rule is ``grad_fn``; None if nothing differentiable came out."""
    for tensor in (*outs, *sources):
        if tensor._key is None and tensor.dtype.is_trainable:
            tensor._key = object()
    keys = tuple(o._key for o in outs)
    if keys.count(None) == len(keys):
        return None
    op = Op(name, grad_fn, ())
    op.pull = pull_custom
    op.rules = ()
    leaves = (*inputs, *variables)
    raw = [_tensor(x)._array if isinstance(x, (Tensor, Variable)) else None for x in leaves]
    return (
        pull_several,
        op,
        tuple(x._key if isinstance(x, (Tensor, Variable)) else None for x in leaves),
        tuple(None if a is None else a.shape for a in raw),
        tuple(None if a is None else a.dtype for a in raw),
        {},
        {"grad_fn": grad_fn, "inputs": len(inputs), "variables": variables, "site": site(), "again": again},
        keys,
        [(o._array.shape, o._array.dtype) for o in outs],
    )


def _carried(name: str, grad_fn: Callable, outs: tuple, inputs: list, variables: list[Variable]) -> tuple:
    """The results, with the derivatives that their storage carries: those of ``grad_fn``, not of what computed them."""
    tensors = [x for x in (*inputs, *outs) if isinstance(x, Tensor)]
    top = max((x._array.level for x in tensors if type(x) is BatchedTensor), default=0)
    if not top:
        carriers: list[Any] = [type(x) for x in tensors if hasattr(type(x), "carry")]
        return carriers[0].carry(name, grad_fn, outs, inputs, variables) if carriers else outs
    if not any(isinstance(x._array.value, Tensor) for x in tensors if _is_batched(x, top)):
        return outs  # nobody outside the batch looks on
    return lifted(name, grad_fn, outs, inputs, variables, thread.batch[:top])


def _is_batched(x: Any, top: int) -> bool:
    return type(x) is BatchedTensor and x._array.level == top


def lifted(
    name: str, grad_fn: Callable, outs: tuple, inputs: list, variables: list[Variable], batch: tuple[int, ...]
) -> tuple:
    """Results inside a batch, recorded outside it as one step on the whole arrays; ``grad_fn`` still runs inside."""
    top, size = len(batch), batch[-1]
    below = [_as_tensor(x._array.value) if _is_batched(x, top) else x for x in inputs]

    def whole(*upstream: Tensor, variables: Any = ()) -> Any:
        attributes = {"grad_fn": grad_fn, "inputs": len(inputs), "variables": variables}
        with within(batch):
            parts = _gradients(attributes, tuple(wrap(Batched(g, top)) for g in upstream))
            found = [_surfaced(part, x, top, size) for part, x in zip(parts, (*inputs, *variables))]
        return (found[: len(inputs)], found[len(inputs) :]) if variables else found

    values = [_surfaced(o, o, top, size) if _is_batched(o, top) else _repeated(o, size) for o in outs]
    found = record_custom(name, whole, values, below, variables)
    return tuple(wrap(Batched(value, top)) for value in found)


def _repeated(x: Tensor, size: int) -> Tensor:
    return RECORDED.broadcast_to(x, shape=(size, *x._array.shape))


def _surfaced(part: Any, x: Any, top: int, size: int) -> Tensor | None:
    """The gradient of ``x`` as seen from outside the batch: with its axis, or summed if all elements share ``x``."""
    if part is None or not isinstance(x, (Tensor, Variable)):
        return None
    array = _tensor(x)._array
    part = _part(part, array.shape, array.dtype, x if isinstance(x, Tensor) else _tensor(x))
    if _is_batched(x, top):
        return _as_tensor(part._array.value) if _is_batched(part, top) else _repeated(part, size)
    return RECORDED.sum(_as_tensor(part._array.value) if _is_batched(part, top) else _repeated(part, size), axis=0)


def _accepts_variables(grad_fn: Callable) -> bool:
    import inspect

    parameters = inspect.signature(grad_fn).parameters.values()
    return any(p.name == "variables" or p.kind is p.VAR_KEYWORD for p in parameters)


def pull_custom(record: tuple, gs: tuple, sweep: Sweep) -> None:
    """Call a user's gradient function, and add what it returns to the cotangents of its arguments."""
    _, op, keys, shapes, kinds, _, attributes, _, _ = record
    parts = on_tensors(lambda *g: _gradients(attributes, g), gs, shapes, kinds, sparse=True)
    for key, part, shape, dtype in zip(keys, parts, shapes, kinds):
        if hasattr(part, "_values") and not any(key in leaves for leaves in sweep.sparse):
            part = part._dense(sweep.xp)
        if part is None:
            sweep.blocked.append((op, key, attributes["site"]))
        elif key in sweep.needed:
            if sweep.poles[2] == EVERYWHERE and not hasattr(part, "_values"):
                part = settled(sweep.xp, op, gs, part, None, (), EVERYWHERE)
            sweep.add(op, key, part, shape, dtype)


def _gradients(attributes: dict, gs: tuple[Tensor, ...]) -> list:
    """The gradients of arguments, then of variables, as the user's function gives them."""
    grad_fn, count, variables = attributes["grad_fn"], attributes["inputs"], attributes["variables"]
    if not variables:
        found, extra = grad_fn(*gs), []
    else:
        found, extra = grad_fn(*gs, variables=variables)
        extra = nest.flatten(extra)
        if len(extra) != len(variables):
            raise ValueError(
                message(
                    "Must return gradient for each variable from @custom_gradient grad_fn.",
                    received=f"{len(extra)} gradients for {len(variables)} variables",
                    fix="return gradients, [gradient of each variable]",
                )
            )
    flat = nest.flatten(found)
    if len(flat) != count:
        raise ValueError(
            message(
                f"custom_gradient function expected to return {count} gradients, but returned {len(flat)} instead.",
                fix="return one gradient per argument; None where there is none",
            )
        )
    return [*flat, *extra]


def on_tensors(function: Callable, gs: tuple, shapes: tuple, kinds: tuple, sparse: bool = False) -> list:
    """Run a user's gradient function on cotangents of any kind; the results are of the same kind, or ``sparse``.

    In a Jacobian it sees one upstream gradient at a time, so that any Python code in it works.
    """
    # A batch that surrounds the function (vectorized_map) is in its own values too; the rows of a Jacobian are not.
    rows_of = [g for g in gs if type(g) is Batched and g.level > level()]
    batched = rows_of[0] if rows_of else None
    if batched is None:
        return [_part(p, s, k, gs[0], sparse) for p, s, k in zip(function(*map(_as_tensor, gs)), shapes, kinds)]
    rows: list[list] = []
    count = len(_as_tensor(batched.value))
    if not count:  # an empty target: nothing to ask, but the shapes are known
        xp = inner(batched.value)
        return [None if s is None else Batched(xp.zeros(shape=(0, *s), dtype=k), batched.level) for s, k in zip(shapes, kinds)]
    for i in range(count):
        row = [RECORDED.getitem(_as_tensor(g.value), index=(i,)) if any(g is r for r in rows_of) else _as_tensor(g) for g in gs]
        rows.append([_part(p, s, k, batched.value) for p, s, k in zip(function(*row), shapes, kinds)])
    return [_stacked(column, batched.level) for column in zip(*rows)]


def _stacked(column: tuple, level: int) -> Any:
    """The rows of one gradient as one batched value; None, if all are None, and otherwise zeros for each None."""
    like = next((p for p in column if p is not None), None)
    if like is None:
        return None
    xp = inner(like)
    return Batched(xp.stack(*(xp.zeros_like(like) if p is None else p for p in column), axis=0), level)


def _as_tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else wrap(value)


def _part(part: Any, shape: tuple[int, ...] | None, dtype: Any, like: Any, sparse: bool = False) -> Any:
    """A gradient as the user gave it, in the kind of ``like``; a number stands for every element."""
    if part is None or shape is None:
        return None
    if isinstance(part, IndexedSlices) and sparse:
        values, indices = (_part(p, p._array.shape, p._array.dtype, like) for p in (part.values, part.indices))
        return IndexedSlices._of(values, indices, shape)
    if isinstance(part, (int, float, complex)):
        part = convert_to_tensor(part, dtypes.of(dtype))
    part = _tensor(part)
    if part._array.shape == () != shape:
        part = OPS["broadcast_to"](part, shape=shape)
    if isinstance(like, Tensor):
        return part
    return part._host() if type(like) is np.ndarray and type(part) is JaxTensor else part._array


def recompute_grad(f: Callable) -> Callable:
    """Wrap ``f`` so that nothing of its inside is kept for the backward pass: it is run again there.

    Memory falls to the arguments and results of ``f``, at the price of one more forward run.
    """

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        saved = thread.recorders
        watcher = VariableWatcher()
        activate((watcher,))  # nothing is recorded, but variables are noticed
        try:
            result = f(*args, **kwargs)
        finally:
            activate(saved)
        return record_recomputed(f, args, kwargs, result, watcher.variables)

    return wrapper


def record_recomputed(f: Callable, args: tuple, kwargs: dict, result: Any, accessed: dict[Any, Variable]) -> Any:
    """The result of ``f(*args)``, recorded as one step whose gradient runs ``f`` again; ``accessed``: variables it read."""
    inputs = nest.flatten(list(args))
    passed = {x._key for x in inputs if isinstance(x, Variable)}
    variables = [v for key, v in accessed.items() if key not in passed]

    def grad_fn(*upstream: Tensor, variables: Any = ()) -> Any:
        copies = [OPS["identity"](x) if isinstance(x, Tensor) and x.dtype.is_trainable else x for x in inputs]
        sources = [x for x in copies if isinstance(x, (Tensor, Variable)) and x.dtype.is_trainable]
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([*sources, *variables])
            again = f(*nest.pack_sequence_as(list(args), copies), **kwargs)
        found = tape.gradient(again, [*sources, *variables], list(upstream), UnconnectedGradients.ZERO)
        by_id = {id(s): g for s, g in zip(sources, found)}
        input_gradients = [by_id.get(id(x)) for x in copies]
        return (input_gradients, found[len(sources) :]) if variables else input_gradients

    return record_custom(getattr(f, "__name__", "recomputed"), grad_fn, result, inputs, variables)


def grad_pass_through(f: Callable) -> Callable:
    """Wrap ``f`` so that gradients pass it as if it were the identity (the straight-through estimator)."""

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with VariableWatcher() as watcher:
            result = f(*args, **kwargs)
        inputs = nest.flatten(list(args))
        passed = {x._key for x in inputs if isinstance(x, Variable)}
        variables = [v for key, v in watcher.variables.items() if key not in passed]

        def grad_fn(*upstream: Tensor, variables: Any = ()) -> Any:
            return (list(upstream), [None] * len(variables)) if variables else list(upstream)

        return record_custom(f.__name__, grad_fn, result, inputs, variables)

    return wrapper


class RegisterGradient:
    """Decorator: the gradient of an op type by name, as ``rule(op, *upstream)`` with ``op.inputs`` and ``op.outputs``."""

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError(message("op_type must be a string.", received=f"{op_type!r}", fix="the name of an op: 'Tanh'"))
        self._op_type = op_type

    def __call__(self, f: Callable) -> Callable:
        _register(self._op_type, f)
        return f


def no_gradient(op_type: str) -> None:
    """Declare that nothing flows back through ops of this type."""
    if not isinstance(op_type, str):
        raise TypeError(message("op_type must be a string.", received=f"{op_type!r}", fix="the name of an op: 'Tanh'"))
    _register(op_type, None)


def _register(op_type: str, rule: Callable | None) -> None:
    ops = [call.op for call in OPS.values() if call.op.label == op_type]  # type: ignore[attr-defined]
    if op_type in REGISTRY or any(op.rules is not None or not op.differentiable for op in ops):
        origin = getattr(REGISTRY.get(op_type), "__module__", "gradtape")
        text = f"Registering two gradient with name '{op_type}'! (Previous registration was in {origin})"
        raise KeyError(message(text, received=f"{op_type!r}", fix="choose a name that no op has yet"))
    REGISTRY[op_type] = rule
    for op in ops:
        adopt(op)


def adopt(op: Op) -> None:
    """Give an op the rule that is registered under its label."""
    rule = REGISTRY[op.label]
    if rule is None:
        op.differentiable = False
        return

    def joint(xp: Any, g: Any, out: Any, *inputs: Any, **attributes: Any) -> list:
        gs = g if type(g) is tuple else (g,)
        tensors = [_as_tensor(x) for x in inputs]
        outs = [_as_tensor(o) for o in (out if type(out) is tuple else (out,))]
        view = Operation(op.label, tensors, outs, attributes)
        shapes = tuple(t._array.shape for t in tensors)
        kinds = tuple(t._array.dtype for t in tensors)
        return on_tensors(lambda *upstream: _as_list(rule(view, *upstream)), gs, shapes, kinds)

    if op.paired:  # the sweep calls one rule per array

        def alone(position: int) -> Callable:
            return lambda xp, g, out, x, y: joint(xp, g, out, *(x, y)[: len(op.inputs)])[position]

        op.rule_x, op.rule_y = alone(0), alone(1)
        op.keep_out = op.keep_x = op.keep_y = True
        op.alone = ((True, True, True),) * 2
    op.keeps = ("out", *op.inputs)
    op.joint = True
    arguments = [f"kept[{name!r}]" for name in op.keeps] + [f"{name}=attributes[{name!r}]" for name in op.defaults]
    op.rules = ((joint, op.keeps, Reads(op.keeps, arguments).call),)


def _as_list(found: Any) -> list:
    return list(found) if isinstance(found, (list, tuple)) else [found]


class Operation:
    """What a registered gradient function sees of the op it differentiates."""

    def __init__(self, kind: str, inputs: list[Tensor], outputs: list[Tensor], attributes: dict[str, Any]) -> None:
        self.type = self.name = kind
        self.inputs = inputs
        self.outputs = outputs
        self._attributes = attributes

    def get_attr(self, name: str) -> Any:
        return self._attributes[name]
