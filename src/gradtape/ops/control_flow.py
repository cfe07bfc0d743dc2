"""Branches and loops over tensors. Eager code runs what is chosen, so tapes record exactly that, and need no rules.

Everything that decides by the value of a tensor goes through `cond`, `switch_case`, `while_loop` and the loops over rows
(`map_fn`, `scan`, `foldl`, `foldr`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from gradtape.core.variable import Variable
from gradtape.errors import InvalidArgumentError, OutOfRangeError, message
from gradtape.ops import arrays
from gradtape.ops.checks import Assert
from gradtape.ops.tensor_array import TensorArray
from gradtape.values import dtypes, nest
from gradtape.values.convert import Convertible, convert_to_tensor
from gradtape.values.spec import TensorSpec, TypeSpec, is_described
from gradtape.values.tensor import Tensor

__all__ = ["case", "cond", "foldl", "foldr", "map_fn", "scan", "switch_case", "while_loop"]

# Branches


def cond(pred: Any, true_fn: Callable | None = None, false_fn: Callable | None = None, name: str | None = None) -> Any:
    """``true_fn()`` if ``pred`` holds, else ``false_fn()``; only that one runs.

    >>> cond(True, lambda: "taken", lambda: "not taken")
    'taken'
    """
    for word, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if function is None:
            raise TypeError(f"cond(): '{word}' argument required")
        _callable(word, function)
    return true_fn() if pred else false_fn()  # type: ignore[misc]


def case(
    pred_fn_pairs: Any, default: Callable | None = None, exclusive: bool = False, strict: bool = False, name: str = "case"
) -> Any:
    """The function beside the first predicate that holds, called; ``exclusive`` refuses a second one that holds."""
    pairs = _predicates(pred_fn_pairs)
    if default is not None:
        _callable("default", default)
    chosen = [function for predicate, function in pairs if predicate]
    if exclusive and len(chosen) > 1:
        raise InvalidArgumentError(
            message(
                "Input error: exclusive=True: more than 1 conditions evaluated as True",
                received=f"{[bool(predicate) for predicate, _ in pairs]}",
                fix="make the predicates exclude one another, or drop exclusive=True: then the first one counts",
            )
        )
    if chosen:
        return chosen[0]()
    if default is None:
        values = [bool(predicate) for predicate, _ in pairs]
        Assert(convert_to_tensor(False), ["Input error: None of conditions evaluated as True:", values], summarize=len(values))
    return default()  # type: ignore[misc]


def _predicates(pairs: Any) -> list[tuple[Any, Callable]]:
    if isinstance(pairs, Mapping):
        raise ValueError(
            message(
                "Unordered dictionaries are not supported for the 'pred_fn_pairs' argument when `exclusive=False` and eager "
                "mode is enabled.",
                expected="a list of (predicate, function) pairs",
            )
        )
    if not isinstance(pairs, (list, tuple)):
        raise TypeError(f"'pred_fn_pairs' must be a list, tuple, or dict. Received: {type(pairs)}")
    if not pairs:
        raise ValueError("'pred_fn_pairs' must have at least one (predicate, function) pair.")
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"Each entry in 'pred_fn_pairs' must be a 2-tuple. Received {pair}.")
        predicate, function = pair
        if not isinstance(predicate, (Tensor, Convertible)):
            raise TypeError(
                message(f"pred must be a Tensor, got: {predicate}", fix="tf.constant(predicate), or Python's own if")
            )
        if predicate.dtype != dtypes.bool_:  # type: ignore[union-attr]
            raise TypeError(f"pred must be of type bool: {predicate!r}")
        _callable(f"fn for pred {predicate!r}", function)
    return list(pairs)


def switch_case(branch_index: Any, branch_fns: Any, default: Callable | None = None, name: str = "switch_case") -> Any:
    """The function at ``branch_index``, called; out of range: ``default``, or the last one."""
    branches = _branches(branch_fns)
    if not isinstance(branch_index, (Tensor, Convertible)):
        raise TypeError(
            message(
                f"'branch_index' must be a Tensor, got {type(branch_index)}",
                fix="tf.constant(branch_index), or index a Python list",
            )
        )
    index = convert_to_tensor(branch_index)
    if not index.dtype.is_integer:
        raise TypeError(f"'branch_index' must be an integer Tensor, got {index.dtype}")
    if index._array.ndim:
        raise InvalidArgumentError(message("'branch_index' must be a scalar.", received=f"shape {index._array.shape}"))
    if default is not None:
        _callable("default", default)
    at = int(index)
    return branches[at]() if 0 <= at < len(branches) else (default or branches[-1])()


def _branches(functions: Any) -> list[Callable]:
    if not isinstance(functions, (Mapping, list, tuple)):
        raise TypeError("'branch_fns' must be a list, tuple, or dict")
    pairs = list(functions.items()) if isinstance(functions, Mapping) else list(functions)
    if not pairs:
        raise ValueError("Must provide at least one item in 'branch_fns'")
    if all(callable(function) for function in pairs):
        pairs = list(enumerate(pairs))
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"Each entry in 'branch_fns' must be a 2-tuple. Received {pair}.")
        if not isinstance(pair[0], int):
            raise TypeError(f"key must be a Python `int`, got {type(pair[0])}")
        _callable(f"fn for key {pair[0]}", pair[1])
    if sorted(key for key, _ in pairs) != list(range(len(pairs))):
        found = ",".join(str(key) for key in sorted(key for key, _ in pairs))
        raise ValueError(f"branch indices (keys) must form contiguous range of [0 to {len(pairs)}) but found {{{found}}}")
    return [function for _, function in sorted(pairs, key=operator.itemgetter(0))]


def _callable(what: str, function: Any) -> None:
    if not callable(function):
        raise TypeError(f"'{what}' must be callable.\n  Received: {function!r}")


# Loops


def while_loop(
    cond: Callable, body: Callable, loop_vars: Any, shape_invariants: Any = None, parallel_iterations: int = 10,
    back_prop: bool = True, swap_memory: bool = False, maximum_iterations: Any = None, name: str | None = None,
) -> Any:  # fmt: skip
    """``loop_vars = body(*loop_vars)`` while ``cond(*loop_vars)``; returns the last ones.

    >>> while_loop(lambda n, x: n < 3, lambda n, x: (n + 1, x * 2.0), (0, 1.0))[1]
    <tf.Tensor: shape=(), dtype=float32, numpy=8.0>
    """
    _callable("cond", cond)
    _callable("body", body)
    _positive(parallel_iterations)
    if not nest.is_nested(loop_vars) or not loop_vars:
        raise ValueError(message("'loop_vars' must be provided.", received=f"{loop_vars!r}", expected="a list or tuple"))
    left = _limit(maximum_iterations)
    values = loop_vars
    while left != 0 and cond(*values):
        result = body(*values)
        if len(values) == 1 and not isinstance(result, (list, tuple)):
            result = (result,)  # one loop variable need not be wrapped
        if not isinstance(result, (list, tuple)):
            raise TypeError(f"'body' must return a list or tuple of {len(values)} loop variables.\n  Received: {result!r}")
        nest.assert_same_structure(list(values), list(result))
        values = result
        left -= 1
    return nest.map_structure(_tensor, values)


def _limit(maximum_iterations: Any) -> int:
    """The number of steps that are left; -1 counts down for ever."""
    if maximum_iterations is None:
        return -1
    limit = convert_to_tensor(maximum_iterations)
    if limit._array.ndim:
        raise ValueError(f"'maximum_iterations' must be a scalar. Received shape: {limit._array.shape}")
    return max(0, int(limit))


def _positive(parallel_iterations: Any) -> None:
    if parallel_iterations is not None and parallel_iterations < 1:
        raise TypeError("'parallel_iterations' must be a positive integer.")


def _tensor(value: Any) -> Any:
    """What a loop returns for a loop variable: composite values and arrays of tensors stay what they are."""
    return value if is_described(value) and not isinstance(value, Variable) else convert_to_tensor(value)


def map_fn(
    fn: Callable, elems: Any, dtype: Any = None, parallel_iterations: int | None = None, back_prop: bool = True,
    swap_memory: bool = False, infer_shape: bool = True, name: str | None = None, fn_output_signature: Any = None,
) -> Any:  # fmt: skip
    """``fn`` applied to each row of ``elems`` along the first axis, the results stacked.

    ``fn_output_signature`` (once called ``dtype``) tells structure and element types of what ``fn`` returns, if they are not
    those of ``elems``.

    >>> map_fn(lambda row: row[0] * row[1], (convert_to_tensor([1.0, 2.0]), convert_to_tensor([3.0, 4.0])), dtypes.float32)
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([3., 8.], dtype=float32)>
    """
    _callable("fn", fn)
    rows = _rows(elems)
    signature = dtype if fn_output_signature is None else fn_output_signature
    if signature is None:
        signature = nest.map_structure(lambda x: convert_to_tensor(x).dtype, elems)
    results = _Results(signature, len(rows), infer_shape)
    for at, row in enumerate(rows):
        results.write(at, fn(row))
    return results.stacked()


def scan(
    fn: Callable, elems: Any, initializer: Any = None, parallel_iterations: int = 10, back_prop: bool = True,
    swap_memory: bool = False, infer_shape: bool = True, reverse: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """All results of ``a = fn(a, row)`` over the rows of ``elems``, stacked; ``a`` begins as ``initializer`` or the first row.

    >>> scan(lambda total, x: total + x, convert_to_tensor([1.0, 2.0, 3.0]))
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([1., 3., 6.], dtype=float32)>
    """
    _callable("fn", fn)
    _positive(parallel_iterations)
    rows = _rows(elems)
    order = range(len(rows) - 1, -1, -1) if reverse else range(len(rows))
    if initializer is None:
        _some(rows)
        first, order = order[0], order[1:]
        value = rows[first]
        results = _Results(nest.map_structure(lambda x: x.dtype, value), len(rows), infer_shape)
        results.write(first, value)
    else:
        value = nest.map_structure(convert_to_tensor, initializer)
        results = _Results(nest.map_structure(TensorSpec.from_tensor, value), len(rows), infer_shape)
    for at in order:
        value = fn(value, rows[at])
        results.write(at, value)
    return results.stacked()


def foldl(
    fn: Callable, elems: Any, initializer: Any = None, parallel_iterations: int = 10, back_prop: bool = True,
    swap_memory: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """The last result of ``a = fn(a, row)`` over the rows of ``elems``; ``a`` begins as ``initializer`` or the first row."""
    return _fold(fn, _rows(elems), initializer, parallel_iterations)


def foldr(
    fn: Callable, elems: Any, initializer: Any = None, parallel_iterations: int = 10, back_prop: bool = True,
    swap_memory: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """As `foldl`, from the last row to the first."""
    return _fold(fn, _rows(elems)[::-1], initializer, parallel_iterations)


def _fold(fn: Callable, rows: list, value: Any, parallel_iterations: int) -> Any:
    _callable("fn", fn)
    _positive(parallel_iterations)
    if value is None:
        _some(rows)
        value, *rows = rows
    for row in rows:
        value = fn(value, row)
    return nest.map_structure(_tensor, value)


def _rows(elems: Any) -> list:
    """The slices along the first axis, each a structure like ``elems``; one record for all of them."""
    leaves = [convert_to_tensor(leaf) for leaf in nest.flatten(elems)]
    if not leaves:
        raise ValueError(
            f"elems must be a Tensor or (possibly nested) sequence of Tensors. Got {elems}, which does not contain any Tensors."
        )
    if any(not leaf._array.ndim for leaf in leaves):
        raise ValueError(
            message(
                "Elements in elems must be 1+ dimensional Tensors, not scalars",
                fix="a list is a structure of tensors: make it one with tf.constant(elems)",
            )
        )
    lengths = [leaf._array.shape[0] for leaf in leaves]
    for length in lengths:
        if length != lengths[0]:
            raise ValueError(
                message(f"Dimensions {lengths[0]} and {length} are not compatible", received=f"rows to walk: {lengths}")
            )
    columns = [arrays.unstack(leaf, axis=0) for leaf in leaves]
    if not nest.is_nested(elems):
        return list(columns[0])
    return [nest.pack_sequence_as(elems, row) for row in zip(*columns)]


def _some(rows: list) -> None:
    if not rows:
        raise OutOfRangeError(
            message("Tried to read from index 0 but array size is: 0", fix="give an initializer for the case of no rows")
        )


class _Results:
    """One `TensorArray` for each leaf of what a function returns."""

    def __init__(self, signature: Any, size: int, infer_shape: bool) -> None:
        self._signature = signature
        self._arrays = []
        for leaf in nest.flatten(signature):
            shape = leaf.shape if isinstance(leaf, TypeSpec) and infer_shape else None  # type: ignore[attr-defined]
            dtype = getattr(leaf, "dtype", leaf)
            self._arrays.append(TensorArray(dtype, size, infer_shape=infer_shape, element_shape=shape))

    def write(self, at: int, result: Any) -> None:
        nest.assert_same_structure(self._signature, result)
        for array, leaf in zip(self._arrays, nest.flatten(result)):
            array.write(at, leaf)

    def stacked(self) -> Any:
        return nest.pack_sequence_as(self._signature, [array.stack() for array in self._arrays])
