"""Where batches come from: Keras's adapters, one more for our datasets, and the form in which a step takes a batch."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from keras.src import tree
from keras.src.backend.common import dtypes
from keras.src.trainers import data_adapters
from keras.src.trainers.data_adapters import data_adapter_utils
from keras.src.trainers.data_adapters.data_adapter import DataAdapter
from keras.src.trainers.epoch_iterator import EpochIterator
from keras.src.utils import dataset_utils

from gradtape.data.dataset import Dataset
from gradtape.errors import message
from gradtape.keras_backend.variables import convert_to_tensor
from gradtape.values.composite import Structured
from gradtape.values.tensor import Tensor


def install() -> None:
    """From now on Keras takes our datasets for tf.data's, and arrays of objects for strings, as TensorFlow does."""
    dataset_utils.is_tf_dataset = lambda dataset: isinstance(dataset, Dataset)
    dtypes.PYTHON_DTYPES_MAP[np.dtype(object)] = "string"


class Epochs(EpochIterator):
    """The executions of an epoch, again and again: their first and last step, and an iterator that has their batches next."""

    def __next__(self) -> tuple[int, int, Iterator]:
        return next(self._epoch_iterator)


def epochs_of(x: Any, y: Any = None, sample_weight: Any = None, class_weight: Any = None, **options: Any) -> Epochs:
    """The epochs of data in any form that Keras takes, or of one of our datasets."""
    batch_size = options.get("batch_size")
    if batch_size is not None and batch_size < 1:
        text = f"`batch_size` must be a positive integer. Received: batch_size={batch_size}"
        raise ValueError(message(text, expected="1 or more, or None for 32"))
    if isinstance(x, Dataset):
        for name, words, given in (("y", "the targets", y), ("sample_weight", "the sample weights", sample_weight)):
            if given is not None:
                data_adapters.raise_unsupported_arg(name, words, "tf.data.Dataset")
        x, class_weight = DatasetAdapter(x, class_weight), None
    return Epochs(x, y, sample_weight, class_weight=class_weight, **options)


def execution(batches: Iterable, steps: int) -> list:
    """The next batches, as many as there are; if there are none, iteration stops."""
    batches = iter(batches)
    first = next(batches)
    return [first, *itertools.islice(batches, steps - 1)]


def as_tensors(batch: Any) -> Any:
    """A batch as steps take it: with tensors for arrays."""
    if type(batch) is tuple and all(type(part) is np.ndarray for part in batch):
        return tuple([convert_to_tensor(part) for part in batch])
    return tree.map_structure(_leaf, batch)


def _leaf(value: Any) -> Any:
    if value is None or isinstance(value, (Tensor, Structured)) or not hasattr(value, "__array__"):
        return value
    return convert_to_tensor(value)


class DatasetAdapter(DataAdapter):
    """The batches of a `gradtape.data.Dataset`, as Keras asks for them."""

    def __init__(self, dataset: Dataset, class_weight: dict | None = None) -> None:
        self._dataset = dataset
        self._class_weight = class_weight

    def get_numpy_iterator(self) -> Iterable:
        return self._dataset if self._class_weight is None else self._weighted(self._class_weight)

    def _weighted(self, class_weight: dict) -> Iterator:
        for batch in self._dataset:
            x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(batch)
            if sample_weight is not None:
                text = "You cannot use `class_weight` and `sample_weight` at the same time."
                raise ValueError(message(text, fix="sample weights that are multiplied by those of the classes"))
            if tree.is_nested(y):
                text = "`class_weight` is only supported for Models with a single output."
                raise ValueError(message(text, fix="sample weights, in the structure of the outputs"))
            yield x, y, data_adapter_utils.class_weight_to_sample_weights(y, class_weight)

    @property
    def num_batches(self) -> int | None:
        count = int(self._dataset.cardinality())
        return count if count >= 0 else None

    @property
    def batch_size(self) -> int | None:
        return tree.flatten(self._dataset.element_spec)[0].shape[0]

    @property
    def has_partial_batch(self) -> bool | None:
        return None

    @property
    def partial_batch_size(self) -> int | None:
        return None
