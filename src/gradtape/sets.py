"""`tf.sets`: operations on the sets along the last axis."""

from __future__ import annotations

import operator
from typing import Any

from gradtape.ops import sets
from gradtape.scope import missing
from gradtape.values.tensor import Tensor

__all__ = ["difference", "intersection", "size", "union"]


def difference(a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True) -> Any:
    """The elements of a that b does not have, or with ``aminusb=False`` those of b that a does not have."""
    return sets.combine(operator.sub if aminusb else lambda x, y: y - x, a, b, validate_indices)


def intersection(a: Any, b: Any, validate_indices: bool = True) -> Any:
    """The elements that both have."""
    return sets.combine(operator.and_, a, b, validate_indices)


def union(a: Any, b: Any, validate_indices: bool = True) -> Any:
    """The elements that either has."""
    return sets.combine(operator.or_, a, b, validate_indices)


def size(a: Any, validate_indices: bool = True) -> Tensor:
    """How many distinct elements each set of a SparseTensor has."""
    return sets.size(a, validate_indices)

__getattr__ = missing(__name__, __all__)
