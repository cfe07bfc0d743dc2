"""Branches and loops over tensors. Eager code runs what is chosen, so tapes record exactly that, and need no rules; in a
compiled function, what depends on values that only the running program knows becomes part of the program.

Everything that decides by the value of a tensor goes through `cond`, `switch_case`, `while_loop` and the loops over rows
(`map_fn`, `scan`, `foldl`, `foldr`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from gradtape.core.context import thread
from gradtape.core.variable import Variable
from gradtape.errors import InvalidArgumentError, OutOfRangeError, message, shown
from gradtape.ops import arrays, staged_rows
from gradtape.ops.checks import Assert
from gradtape.ops.execution import Unstageable, staging
from gradtape.ops.tensor_array import TensorArray
from gradtape.values import dtypes, nest
from gradtape.values.composite import Structured, hand_over
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
            text = f"cond(): '{word}' argument required"
            raise TypeError(message(text, fix=f"cond(pred, true_fn, false_fn): {word}=lambda: …"))
        _callable(word, function)
    if _is_traced(pred):
        return staging.control.cond(pred, true_fn, false_fn)
    return true_fn() if pred else false_fn()  # type: ignore[misc]


def _is_traced(value: Any) -> bool:
    """Whether only the running program will know this value."""
    return staging.inside and staging.control.traced(value)


def case(
    pred_fn_pairs: Any, default: Callable | None = None, exclusive: bool = False, strict: bool = False, name: str = "case"
) -> Any:
    """The function beside the first predicate that holds, called; ``exclusive`` refuses a second one that holds."""
    pairs = _predicates(pred_fn_pairs)
    if default is not None:
        _callable("default", default)
    if any(_is_traced(predicate) for predicate, _ in pairs):
        return _staged_case(pairs, default)
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


def _staged_case(pairs: list[tuple[Any, Callable]], default: Callable | None) -> Any:
    """One choice after the other; whether more than one holds, nobody asks."""
    if default is None:
        raise Unstageable("case without a default, which may have to raise an error")
    (predicate, function), *rest = pairs
    return cond(predicate, function, (lambda: _staged_case(rest, default)) if rest else default)


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
        text = f"'pred_fn_pairs' must be a list, tuple, or dict. Received: {type(pairs)}"
        raise TypeError(message(text, fix="[(x < 1, function), (x > 2, other)]"))
    if not pairs:
        text = "'pred_fn_pairs' must have at least one (predicate, function) pair."
        raise ValueError(message(text, received="an empty list", fix="[(x < 1, function), (x > 2, other)]"))
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            text = f"Each entry in 'pred_fn_pairs' must be a 2-tuple. Received {pair}."
            raise TypeError(message(text, received=shown(pair), fix="(predicate, function)"))
        predicate, function = pair
        if not isinstance(predicate, (Tensor, Convertible)):
            raise TypeError(
                message(f"pred must be a Tensor, got: {predicate}", fix="tf.constant(predicate), or Python's own if")
            )
        if predicate.dtype != dtypes.bool_:  # type: ignore[union-attr]
            text = f"pred must be of type bool: {predicate!r}"
            raise TypeError(message(text, received=shown(predicate), fix="tf.cast(predicate, tf.bool), or a comparison"))
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
        text = f"'branch_index' must be an integer Tensor, got {index.dtype}"
        raise TypeError(message(text, received=shown(branch_index), fix="tf.cast(branch_index, tf.int32)"))
    if index._array.ndim:
        text = "'branch_index' must be a scalar."
        raise InvalidArgumentError(message(text, received=f"shape {index._array.shape}", expected="one integer"))
    if default is not None:
        _callable("default", default)
    if _is_traced(index):
        return staging.control.branch(index, [*branches, default or branches[-1]])
    at = int(index)
    return branches[at]() if 0 <= at < len(branches) else (default or branches[-1])()


def _branches(functions: Any) -> list[Callable]:
    if not isinstance(functions, (Mapping, list, tuple)):
        text = "'branch_fns' must be a list, tuple, or dict"
        raise TypeError(message(text, received=shown(functions), fix="[function0, function1], or {0: function0, 1: function1}"))
    pairs = list(functions.items()) if isinstance(functions, Mapping) else list(functions)
    if not pairs:
        text = "Must provide at least one item in 'branch_fns'"
        raise ValueError(message(text, received=shown(functions), fix="[function0, function1]"))
    if all(callable(function) for function in pairs):
        pairs = list(enumerate(pairs))
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            text = f"Each entry in 'branch_fns' must be a 2-tuple. Received {pair}."
            raise TypeError(message(text, received=shown(pair), fix="(number, function)"))
        if not isinstance(pair[0], int):
            text = f"key must be a Python `int`, got {type(pair[0])}"
            raise TypeError(message(text, received=shown(pair[0]), fix="(number, function) with a Python int"))
        _callable(f"fn for key {pair[0]}", pair[1])
    if sorted(key for key, _ in pairs) != list(range(len(pairs))):
        found = ",".join(str(key) for key in sorted(key for key, _ in pairs))
        text = f"branch indices (keys) must form contiguous range of [0 to {len(pairs)}) but found {{{found}}}"
        raise ValueError(message(text, received=f"keys {{{found}}}", expected=f"0 to {len(pairs) - 1}, each once"))
    return [function for _, function in sorted(pairs, key=operator.itemgetter(0))]


def _callable(what: str, function: Any) -> None:
    if not callable(function):
        value = shown(function)
        raise TypeError(message(f"'{what}' must be callable.", received=value, fix=f"a function: lambda *_: {value}"))


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
    if staging.inside and not thread.batch:
        return _staged_while(cond, body, loop_vars, shape_invariants, maximum_iterations)
    left = _limit(maximum_iterations)
    values = loop_vars
    while left != 0 and cond(*values):
        result = body(*values)
        if len(values) == 1 and not isinstance(result, (list, tuple)):
            result = (result,)  # one loop variable need not be wrapped
        if not isinstance(result, (list, tuple)):
            text = f"'body' must return a list or tuple of {len(values)} loop variables."
            raise TypeError(
                message(text, received=shown(result), fix="return what loop_vars looks like: return [i + 1, total]")
            )
        nest.assert_same_structure(list(values), list(result))
        values = result
        left -= 1
    return nest.map_structure(_tensor, values)


def _staged_while(cond: Callable, body: Callable, loop_vars: Any, shape_invariants: Any, maximum_iterations: Any) -> Any:
    """The loop as part of a compiled program, where it depends on what only the running program knows."""
    values = nest.map_structure(_tensor, loop_vars)
    if not _is_traced(maximum_iterations) and maximum_iterations is not None:
        maximum_iterations = _limit(maximum_iterations)
    try:
        last = staging.control.while_loop(cond, body, values, maximum_iterations=maximum_iterations)
    except ValueError as error:
        if shape_invariants is not None and "shape_invariants" in str(error):
            raise Unstageable("while_loop with shape_invariants, whose variables change their shape") from error
        raise
    return nest.map_structure(_tensor, last)


def _limit(maximum_iterations: Any) -> int:
    """The number of steps that are left; -1 counts down for ever."""
    if maximum_iterations is None:
        return -1
    limit = convert_to_tensor(maximum_iterations)
    if limit._array.ndim:
        text = f"'maximum_iterations' must be a scalar. Received shape: {limit._array.shape}"
        raise ValueError(message(text, expected="one integer"))
    return max(0, int(limit))


def _positive(parallel_iterations: Any) -> None:
    if parallel_iterations is not None and parallel_iterations < 1:
        text = "'parallel_iterations' must be a positive integer."
        raise TypeError(message(text, received=f"parallel_iterations={parallel_iterations}", expected="1 or more"))


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
    signature = dtype if fn_output_signature is None else fn_output_signature
    if isinstance(elems, Structured):
        return hand_over(map_fn, (fn, elems, signature), {})
    if signature is None:
        signature = nest.map_structure(lambda x: convert_to_tensor(x).dtype, elems)
    staged = staged_rows.map_fn(lambda row: _fitted(signature, fn(row)), elems, _checked_rows(elems))
    if staged is not None:
        return staged
    rows = _rows(elems)
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
    staged = staged_rows.scan(fn, elems, _checked_rows(elems), initializer, reverse)
    if staged is not None:
        return staged
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
    return _fold(fn, elems, initializer, parallel_iterations, reverse=False)


def foldr(
    fn: Callable, elems: Any, initializer: Any = None, parallel_iterations: int = 10, back_prop: bool = True,
    swap_memory: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """As `foldl`, from the last row to the first."""
    return _fold(fn, elems, initializer, parallel_iterations, reverse=True)


def _fold(fn: Callable, elems: Any, value: Any, parallel_iterations: int, reverse: bool) -> Any:
    _callable("fn", fn)
    _positive(parallel_iterations)
    staged = staged_rows.fold(fn, elems, _checked_rows(elems), value, reverse)
    if staged is not None:
        return nest.map_structure(_tensor, staged)
    rows = _rows(elems)[:: -1 if reverse else 1]
    if value is None:
        _some(rows)
        value, *rows = rows
    for row in rows:
        value = fn(value, row)
    return nest.map_structure(_tensor, value)


def _checked_rows(elems: Any) -> list[Tensor]:
    """The tensors in ``elems``, whose first axes are the rows."""
    leaves = [convert_to_tensor(leaf) for leaf in nest.flatten(elems)]
    if not leaves:
        text = (
            f"elems must be a Tensor or (possibly nested) sequence of Tensors. Got {elems}, which does not contain any "
            "Tensors."
        )
        raise ValueError(message(text, received=shown(elems), expected="at least one tensor, to walk along its first axis"))
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
            text = f"Dimensions {lengths[0]} and {length} are not compatible"
            raise ValueError(message(text, received=f"rows to walk: {lengths}", expected="one length along axis 0"))
    return leaves


def _rows(elems: Any) -> list:
    """The slices along the first axis, each a structure like ``elems``; one record for all of them."""
    columns = [arrays.unstack(leaf, axis=0) for leaf in _checked_rows(elems)]
    if not nest.is_nested(elems):
        return list(columns[0])
    return [nest.pack_sequence_as(elems, row) for row in zip(*columns)]


def _some(rows: list) -> None:
    if not rows:
        raise OutOfRangeError(
            message("Tried to read from index 0 but array size is: 0", fix="give an initializer for the case of no rows")
        )


def _fitted(signature: Any, result: Any) -> Any:
    """What a function returned for one row, as `_Results` would take it."""
    results = _Results(signature, 1, True)
    results.write(0, result)
    return nest.map_structure(lambda t: t[0], results.stacked())


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
