"""Branches and loops: plain Python eagerly, parts of the program in a compiled function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from keras.src import tree

from gradtape import toplevel
from gradtape.errors import message
from gradtape.keras_backend.variables import convert_to_tensor
from gradtape.ops import control_flow, vectorized
from gradtape.ops.execution import staging
from gradtape.values.tensor import Tensor


def cond(pred: Any, true_fn: Callable, false_fn: Callable) -> Any:
    return control_flow.cond(convert_to_tensor(pred, "bool"), true_fn, false_fn)


def switch(index: Any, branches: list[Callable], *operands: Any) -> Any:
    """The branch at ``index``, called; an index outside is moved to the nearest."""
    index = toplevel.clip_by_value(convert_to_tensor(index, "int32"), 0, len(branches) - 1)
    return control_flow.switch_case(index, [lambda branch=branch: branch(*operands) for branch in branches])


def vectorized_map(function: Callable, elements: Any) -> Any:
    return vectorized.vectorized_map(function, elements)


def map(f: Callable, xs: Any) -> Any:
    return scan(lambda _, x: ((), f(x)), (), xs)[1]


# Loops over rows


def scan(
    f: Callable, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False, unroll: int | bool = 1
) -> tuple[Any, Any]:
    """``carry, y = f(carry, x)`` for each row of ``xs``: the last carry, and the ys stacked."""
    _check_scan(f, xs, length, unroll)
    xs = None if xs is None else tree.map_structure(convert_to_tensor, xs)
    carry = tree.map_structure(convert_to_tensor, init)
    count = int(length) if length is not None else int(tree.flatten(xs)[0].shape[0])
    found = _staged(f, carry, xs, count, reverse)
    if found is not None:
        return found
    ys = []
    for i in reversed(range(count)) if reverse else range(count):
        carry, y = f(carry, None if xs is None else tree.map_structure(lambda x, i=i: x[i], xs))
        ys.append(y)
    if reverse:
        ys.reverse()
    if not ys:
        return carry, None
    return carry, tree.map_structure(lambda *parts: None if parts[0] is None else toplevel.stack(parts), *ys)


def _check_scan(f: Any, xs: Any, length: Any, unroll: Any) -> None:
    if not callable(f):
        raise TypeError(message(f"`f` should be a callable. Received: f={f}", expected="a function of (carry, x)"))
    if not isinstance(unroll, bool) and (not isinstance(unroll, int) or unroll < 1):
        text = f"`unroll` must be an positive integer or boolean. Received: unroll={unroll}"
        raise ValueError(message(text, expected="True, False, or how many steps to write out"))
    if xs is None and length is None:
        raise ValueError(message("Got no `xs` to scan over and `length` not provided.", fix="length=10"))


def _staged(f: Callable, carry: Any, xs: Any, count: int, reverse: bool) -> tuple[Any, Any] | None:
    """The loop as part of the program that is being traced; None: to be run row by row."""
    if not staging.inside or not count:
        return None
    nothing = False  # whether there is nothing to stack

    def step(row: Any, carry: Any) -> tuple:
        nonlocal nothing
        carry, y = f(carry, None if xs is None else row)
        nothing = y is None
        return (carry,), () if nothing else y

    rows = convert_to_tensor(np.arange(count, dtype=np.int32)) if xs is None else xs
    found = staging.control.scan("scan", step, rows, (carry,), reverse=reverse)
    return found and (found[0][0], None if nothing else found[1])


def associative_scan(f: Callable, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """All partial results of an associative ``f`` along an axis, in about log2(n) calls of ``f`` on whole arrays."""
    if not callable(f):
        raise TypeError(message(f"`f` should be a callable. Received: f={f}", expected="a function of two nests"))
    parts = [convert_to_tensor(part) for part in tree.flatten(elems)]
    lengths = {int(part.shape[axis]) for part in parts}
    if len(lengths) > 1:
        text = f"Array inputs to associative_scan must have the same first dimension. (saw: {[p.shape for p in parts]})"
        raise ValueError(message(text, received=f"lengths {sorted(lengths)}", expected="one length along the axis"))
    # The axis first, while at work: a cut is then the same for all parts.
    parts = [_moved(part, axis, 0) for part in parts]
    if reverse:
        parts = [part[::-1] for part in parts]

    def combine(left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
        pack = lambda halves: tree.pack_sequence_as(elems, [_moved(half, 0, axis) for half in halves])
        return [_moved(part, axis, 0) for part in tree.flatten(f(pack(left), pack(right)))]

    found = _partial_results(combine, parts)
    if reverse:
        found = [part[::-1] for part in found]
    return tree.pack_sequence_as(elems, [_moved(part, 0, axis) for part in found])


def _moved(x: Tensor, source: int, target: int) -> Tensor:
    order = list(range(len(x.shape)))
    order.insert(target % len(order), order.pop(source))
    return x if order == sorted(order) else toplevel.transpose(x, order)


def _partial_results(combine: Callable, parts: list[Tensor]) -> list[Tensor]:
    """Of pairs first; they are every second result, and one more step gives those between them."""
    count = int(parts[0].shape[0])
    if count < 2:
        return parts
    pairs = _partial_results(combine, combine([x[: count - 1 : 2] for x in parts], [x[1::2] for x in parts]))
    if count > 2:
        between = combine([x[: (count - 1) // 2] for x in pairs], [x[2::2] for x in parts])
        even = [toplevel.concat([x[:1], rest], 0) for x, rest in zip(parts, between)]
    else:
        even = [x[:1] for x in parts]
    return [_interleaved(a, b) for a, b in zip(even, pairs)]


def _interleaved(even: Tensor, odd: Tensor) -> Tensor:
    """``even[0], odd[0], even[1], …``; there may be one more of the even ones."""
    count = int(odd.shape[0])
    both = toplevel.stack([even[:count], odd], 1)
    both = toplevel.reshape(both, (2 * count, *tuple(odd.shape)[1:]))
    return toplevel.concat([both, even[count:]], 0)


# Loops while a condition holds


def while_loop(cond: Callable, body: Callable, loop_vars: Any, maximum_iterations: int | None = None) -> Any:
    several = isinstance(loop_vars, (list, tuple))
    values = tree.map_structure(convert_to_tensor, tuple(loop_vars) if several else (loop_vars,))

    def step(*values: Any) -> tuple:
        after = body(*values)
        return tuple(after) if isinstance(after, (list, tuple)) else (after,)

    found = control_flow.while_loop(cond, step, values, maximum_iterations=maximum_iterations)
    return tuple(found) if several else found[0]


def fori_loop(lower: Any, upper: Any, body_fun: Callable, init_val: Any) -> Any:
    """``value = body_fun(i, value)`` for ``i`` from ``lower`` to below ``upper``."""
    known = isinstance(lower, int) and isinstance(upper, int)
    if known and not staging.inside:
        for i in range(lower, upper):  # a Python number, which bends to the dtype of the value
            init_val = body_fun(i, init_val)
        return tree.map_structure(convert_to_tensor, init_val)
    return control_flow.while_loop(
        lambda i, _: i < upper,
        lambda i, value: (i + 1, body_fun(i, value)),
        (convert_to_tensor(lower, "int32"), tree.map_structure(convert_to_tensor, init_val)),
        maximum_iterations=max(0, upper - lower) if known else None,
    )[1]
