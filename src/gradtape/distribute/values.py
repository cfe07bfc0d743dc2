"""Names for values of several replicas. With one replica a value is just itself, so these only answer ``isinstance``."""

from __future__ import annotations

from typing import Any


class DistributedValues:
    """One value per replica; never made here, for one replica's value stands for itself."""


class _IsDataset(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return hasattr(instance, "element_spec") and hasattr(instance, "__iter__")


class DistributedDataset(metaclass=_IsDataset):
    """A dataset whose batches are shared out over replicas: any dataset."""


class _IsIterator(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return hasattr(instance, "element_spec") and hasattr(instance, "__next__")


class DistributedIterator(metaclass=_IsIterator):
    """The iterator of such a dataset: any dataset's."""
