"""`tf.data`: input pipelines.

>>> import gradtape as tf
>>> dataset = tf.data.Dataset.from_tensor_slices([1, 2, 3, 4]).shuffle(4, seed=1).batch(2)
>>> sorted(int(x) for batch in dataset for x in batch)
[1, 2, 3, 4]
"""

from __future__ import annotations

from gradtape.data import experimental
from gradtape.data.cursor import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from gradtape.data.dataset import Dataset, DatasetSpec, FixedLengthRecordDataset, Iterator, TextLineDataset
from gradtape.data.options import Options, ThreadingOptions
from gradtape.scope import missing

__all__ = [
    "AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "Dataset", "DatasetSpec", "FixedLengthRecordDataset",
    "Iterator", "Options", "TextLineDataset", "ThreadingOptions", "experimental",
]  # fmt: skip

__getattr__ = missing(__name__, __all__)
