"""`tf.data`: input pipelines.

>>> import gradtape as tf
>>> dataset = tf.data.Dataset.from_tensor_slices([1, 2, 3, 4]).shuffle(4, seed=1).batch(2)
>>> sorted(int(x) for batch in dataset for x in batch)
[1, 2, 3, 4]
"""

from __future__ import annotations

from typing import Any

from gradtape.data import experimental
from gradtape.data.cursor import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from gradtape.data.dataset import Dataset, DatasetSpec, FixedLengthRecordDataset, Iterator, TextLineDataset
from gradtape.data.options import Options, ThreadingOptions

__all__ = [
    "AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "Dataset", "DatasetSpec", "FixedLengthRecordDataset",
    "Iterator", "Options", "TextLineDataset", "ThreadingOptions", "experimental",
]  # fmt: skip

_OUT_OF_SCOPE = {
    "TFRecordDataset": "TFRecord files are out of scope; keep arrays in .npy or .npz files and read them with "
    "tf.data.Dataset.from_tensor_slices or from_generator, or any format with from_generator",
}


def __getattr__(name: str) -> Any:
    if name in _OUT_OF_SCOPE:
        raise AttributeError(f"tf.data.{name} is not there: {_OUT_OF_SCOPE[name]}.")
    raise AttributeError(f"module 'gradtape.data' has no attribute {name!r}")
