"""A loop over a dataset in a compiled function: one pass, made anew before every call, is an input of the program.

So the program holds the loop, while order, functions and random numbers of the dataset stay what they are outside.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from gradtape.core.context import suspended
from gradtape.errors import FailedPreconditionError, message
from gradtape.function import state
from gradtape.ops.execution import Unstageable, staging
from gradtape.values import nest
from gradtape.values.tensor import Tensor, wrap

LARGEST = 2**28
"""The most bytes of a pass."""


def is_dataset(value: Any) -> bool:
    """Whether this is a dataset, a class of a layer above this one."""
    return type(value).__module__.startswith("gradtape.data.") and hasattr(value, "cardinality")


class Pass:
    """The elements of one pass: ``rows`` are stacked tensors, ``last`` is an element of another shape that ends it."""

    def __init__(self, dataset: Any) -> None:
        running: Any = state.current()
        if type(running) is not state.Tracing:
            raise Unstageable("a loop over a dataset inside another loop or branch over tensors")
        if int(dataset.cardinality()) < 0:
            raise Unstageable("a dataset whose length is not known")
        self._dataset = dataset
        self._thread = threading.local()  # has the columns of the call that this thread begins
        with _outside():
            columns = self._columns()
        self._made = [columns]  # for the first call
        self._shapes = [(column.shape, column.dtype) for column in columns]
        leaves = [wrap(running.draw(partial(self._column, i), column)) for i, column in enumerate(columns)]
        size = len(self._leaves)
        self.rows = self._pack(leaves[:size]) if self._count else None
        self.last = self._pack([leaf[0] for leaf in leaves[-size:]]) if self._has_last else None

    def _columns(self) -> list[np.ndarray]:
        """The elements of a new pass, leaf by leaf; then those of the last one, if its shapes are others."""
        elements = list(self._dataset)
        if not elements:
            self._leaves, self._count, self._has_last = [], 0, False
            return []
        self._structure = elements[0]
        parts = [nest.flatten(element) for element in elements]
        if not all(type(leaf) is Tensor and leaf._array.dtype.kind != "O" for leaf in parts[0]):
            raise Unstageable("a dataset of other values than numbers")
        if sum(leaf._array.nbytes for element in parts for leaf in element) > LARGEST:
            raise Unstageable(f"a dataset of more than {LARGEST >> 20} MiB")
        arrays = [[leaf._array for leaf in element] for element in parts]
        shapes = [[array.shape for array in element] for element in arrays]
        self._has_last = shapes[-1] != shapes[0]
        body = arrays[:-1] if self._has_last else arrays
        if any(shape != shapes[0] for shape in shapes[: len(body)]):
            raise Unstageable("a dataset whose elements have different shapes")
        self._leaves, self._count = parts[0], len(body)
        columns = [np.stack(column) for column in zip(*body)]
        return columns + ([array[None] for array in arrays[-1]] if self._has_last else [])

    def _column(self, i: int) -> np.ndarray:
        """What the program reads: the columns of a new pass, one after the other."""
        if i == 0:
            try:
                self._thread.columns = self._made.pop()
            except IndexError:
                with suspended():
                    self._thread.columns = self._columns()
        columns = self._thread.columns
        if [(column.shape, column.dtype) for column in columns] != self._shapes:
            raise FailedPreconditionError(
                message(
                    "A dataset gave elements of other shapes than when the function that loops over it was compiled.",
                    received=f"{[column.shape for column in columns]}",
                    expected=f"{[shape for shape, _ in self._shapes]}",
                    fix="batch(…, drop_remainder=True), or @tf.autograph.experimental.do_not_convert",
                )
            )
        return columns[i]

    def _pack(self, leaves: list) -> Any:
        return nest.pack_sequence_as(self._structure, leaves) if nest.is_nested(self._structure) else leaves[0]


@contextmanager
def _outside() -> Iterator[None]:
    """Context manager: not a part of the program that is being made."""
    import jax

    running, draw = state._thread.state, staging.draw
    state._thread.state, staging.inside, staging.draw = None, False, None
    try:
        with suspended(), jax.ensure_compile_time_eval():
            yield
    finally:
        state._thread.state, staging.inside, staging.draw = running, True, draw
