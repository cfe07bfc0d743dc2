"""One record per op: what a test suite must know about an op to drive every check of it.

>>> import numpy as np
>>> from gradtape.ops import elementwise
>>> record = OpRecord("sin", elementwise.sin, lambda rng: [(rng.normal(size=(2, 3)),)], np.sin, extremes=True)
>>> record.id
'sin'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class OpRecord:
    """What is known of one op, or of one way to call it.

    Only ``name``, ``function`` and ``samples`` are needed; everything else switches a check on or off, or loosens it.
    A sample array that is not floating (indices, conditions) is passed as it is: never cast, never differentiated.
    """

    name: str
    """The op's name in ``gradtape.core.op.OPS``; several records may share it."""
    function: Callable[..., Any]
    """``function(*arrays)`` calls the op; attributes are bound inside."""
    samples: Callable[[np.random.Generator], list[tuple[np.ndarray, ...]]]
    """``samples(rng)`` gives argument tuples of small float64 arrays, away from kinks and poles."""
    reference: Callable[..., Any] | None = None
    """``reference(*ndarrays)`` is the answer in NumPy or SciPy."""
    floating: bool = True
    """The op takes floating arrays, so it is run in every floating dtype."""
    differentiable: bool = True
    broadcasting: bool = False
    """The op takes two arrays that broadcast: pairs of shapes are made from the first sample."""
    bad: Sequence[tuple[Callable[[], tuple], type[Exception], str]] = ()
    """(thunk of arguments, exception class, fragment of its message) for input that must be refused."""
    case: str = ""
    """Tells records of the same op apart, such as ``axis=1``."""
    complex: bool = False
    """Complex samples are made from the real ones and checked too."""
    extremes: bool = False
    """The op is elementwise: inf, nan, ±0, subnormal and large values must give what the reference gives."""
    empties: Callable[[], list[tuple[np.ndarray, ...]]] | None = None
    """Argument tuples without elements; None: the samples with their first axis cut to length 0 where ``reference`` allows."""
    same_dtype: bool = True
    """The result has the dtype of the floating arguments."""
    dtypes: Sequence[str] = ("float64", "float32", "float16", "bfloat16")
    """The floating dtypes that the op supports."""
    half_tolerance: float = 1.0
    """Factor on the half-precision tolerance, for ops that lose digits by their nature (state why)."""
    order: int = 2
    """To which order gradients are compared with numerical ones."""
    batched: bool = True
    """Jacobians are computed in one batched sweep, and equal the looped ones."""
    jax: bool = True
    """The same value and gradient come out with jax arrays."""
    also: Sequence[str] = ()
    """Names of further ops that this record exercises."""

    @property
    def id(self) -> str:
        """The record's name in test reports."""
        return f"{self.name}[{self.case}]" if self.case else self.name
