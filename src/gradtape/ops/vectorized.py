"""`vectorized_map`: a function of one element, run once on all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape.core.callsite import logger
from gradtape.core.context import deeper, thread
from gradtape.core.indexed_slices import IndexedSlices
from gradtape.core.op import RUN
from gradtape.errors import message
from gradtape.ops import fused
from gradtape.values import nest
from gradtape.values.batched import BATCHED, Batched, NotVectorizable
from gradtape.values.convert import convert_to_tensor
from gradtape.values.recorded import RECORDED
from gradtape.values.tensor import BatchedTensor, Tensor, wrap

RUN[BATCHED] = fused.run
_said: set[Any] = set()


def vectorized_map(fn: Callable, elems: Any, fallback_to_while_loop: bool = True, warn: bool = True) -> Any:
    """``fn`` of each element along axis 0 of the tensors in ``elems``, stacked: one call of ``fn`` on batched values.

    Tapes inside ``fn`` give gradients per element; tapes outside see through. What cannot be vectorised (a Python ``if`` on
    an element's value, ``.numpy()``) makes it a loop, which is said once, or an error without ``fallback_to_while_loop``.

    >>> rows = convert_to_tensor([[1.0, 3.0], [2.0, 2.0]])
    >>> vectorized_map(lambda row: row / tf.reduce_sum(row), rows).numpy().tolist()
    [[0.25, 0.75], [0.5, 0.5]]
    """
    leaves = [convert_to_tensor(leaf) for leaf in nest.flatten(elems)]
    count = _count(leaves)
    if not count:
        return _of_nothing(fn, elems, leaves)
    try:
        return _batched(fn, elems, leaves, count)
    except NotVectorizable as error:
        if not fallback_to_while_loop:
            text = f"vectorized_map could not vectorise {_name(fn)}."
            raise ValueError(
                message(text, received=str(error).splitlines()[0], fix="fallback_to_while_loop=True, or tf.map_fn(fn, elems)")
            ) from error
        if warn and _name(fn) not in _said:
            _said.add(_name(fn))
            logger.warning("vectorized_map runs %s in a loop: %s", _name(fn), str(error).splitlines()[0])
    return _looped(fn, elems, leaves, count)


def _name(fn: Callable) -> str:
    return getattr(fn, "__qualname__", repr(fn))


def _count(leaves: list[Tensor]) -> int:
    """The common length of axis 0."""
    lengths = {t._array.shape[0] if t._array.ndim else None for t in leaves}
    if len(lengths) != 1 or None in lengths:
        raise ValueError(
            message(
                "vectorized_map needs elements along axis 0 of every tensor, the same number in each.",
                received=f"shapes {', '.join(str(t._array.shape) for t in leaves) or 'of nothing'}",
                expected="the same length along axis 0 everywhere",
            )
        )
    return lengths.pop()  # type: ignore[return-value]


def _batched(fn: Callable, elems: Any, leaves: list[Tensor], count: int) -> Any:
    with deeper(count) as level:
        inside = [wrap(Batched(_inner(t), level)) for t in leaves]
        result = fn(nest.pack_sequence_as(elems, inside))
        return nest.map_structure(lambda y: _outside(y, level, count), result)


def _inner(t: Tensor) -> Any:
    """What a batch holds: the tensor itself if somebody records it or its storage carries something, otherwise its array."""
    return t if thread.recorders or type(t) is BatchedTensor or hasattr(type(t), "xp") else t._array


def _outside(y: Any, level: int, count: int) -> Any:
    """A result with the axis in front; what does not depend on the element is repeated."""
    if y is None:
        return None
    if isinstance(y, IndexedSlices):
        y = convert_to_tensor(y)
    y = y._operand() if hasattr(y, "_operand") else convert_to_tensor(y)
    if type(y) is BatchedTensor and y._array.level == level:
        value = y._array.value
        return value if isinstance(value, Tensor) else wrap(value)
    return RECORDED.broadcast_to(RECORDED.expand_dims(y, axis=0), shape=(count, *y._array.shape))


def _looped(fn: Callable, elems: Any, leaves: list[Tensor], count: int) -> Any:
    rows = [fn(nest.pack_sequence_as(elems, [RECORDED.getitem(t, index=(i,)) for t in leaves])) for i in range(count)]
    columns = zip(*(nest.flatten(row) for row in rows))
    stacked = [None if c[0] is None else RECORDED.stack(*map(convert_to_tensor, c), axis=0) for c in columns]
    return nest.pack_sequence_as(rows[0], stacked)


def _of_nothing(fn: Callable, elems: Any, leaves: list[Tensor]) -> Any:
    """No element: the shapes of the results are those for one element of zeros, with 0 in front."""
    one = [RECORDED.zeros(shape=(1, *t._array.shape[1:]), dtype=t._array.dtype) for t in leaves]
    result = vectorized_map(fn, nest.pack_sequence_as(elems, one))
    return nest.map_structure(lambda y: RECORDED.getitem(y, index=(slice(0, 0),)), result)
