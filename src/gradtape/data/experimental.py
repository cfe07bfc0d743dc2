"""`tf.data.experimental`: the older spellings, mostly functions for `Dataset.apply`, and what has no other place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape.data import nested, structure
from gradtape.data.cursor import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from gradtape.data.dataset import Dataset, Iterator, Optional
from gradtape.data.options import AutoShardPolicy, AutotuneOptions, DistributeOptions, OptimizationOptions, ThreadingOptions
from gradtape.data.tables import CsvDataset, make_csv_dataset
from gradtape.errors import message, shown
from gradtape.values import dtypes
from gradtape.values.tensor import Tensor

__all__ = [
    "AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "AutoShardPolicy", "AutotuneOptions", "Counter", "CsvDataset",
    "DistributeOptions", "OptimizationOptions", "Optional", "RandomDataset", "ThreadingOptions", "assert_cardinality",
    "bucket_by_sequence_length", "cardinality", "choose_from_datasets", "copy_to_device", "enumerate_dataset", "from_list",
    "get_next_as_optional", "get_single_element", "get_structure", "group_by_window", "ignore_errors", "load",
    "make_csv_dataset", "map_and_batch", "parallel_interleave", "prefetch_to_device", "sample_from_datasets", "save", "scan",
    "shuffle_and_repeat", "take_while", "unbatch", "unique",
]  # fmt: skip

Transformation = Callable[[Dataset], Dataset]

sample_from_datasets = Dataset.sample_from_datasets
load = Dataset.load


def Counter(start: Any = 0, step: Any = 1, dtype: Any = dtypes.int64) -> Dataset:
    """start, start + step, … without end."""
    return Dataset.counter(start, step, dtype)


def RandomDataset(seed: Any = None, rerandomize_each_iteration: bool | None = None, name: str | None = None) -> Dataset:
    """Random int64 numbers from 0 to 2³² − 1, without end."""
    return Dataset.random(seed, rerandomize_each_iteration)


def choose_from_datasets(datasets: Any, choice_dataset: Dataset, stop_on_empty_dataset: bool = False) -> Dataset:
    """`Dataset.choose_from_datasets`, with another default."""
    return Dataset.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)


def from_list(elements: Any, name: str | None = None) -> Dataset:
    """A dataset of the elements of a list."""
    if not isinstance(elements, (list, tuple)) or not elements:
        text = "Invalid `elements`. `elements` should be a non-empty list."
        raise ValueError(message(text, received=shown(elements), fix="tf.data.experimental.from_list([1, 2])"))
    items = [structure.normalize(element) for element in elements]
    spec = structure.spec_of(items[0])
    for item in items[1:]:
        spec = structure.common(spec, structure.spec_of(item))
    return Dataset(nested.Sequence(items, None, spec))


def cardinality(dataset: Dataset) -> Tensor:
    """How many elements a dataset has."""
    return dataset.cardinality()


def get_single_element(dataset: Dataset) -> Any:
    """The element of a dataset that has one."""
    return dataset.get_single_element()


def get_structure(dataset_or_iterator: Any) -> Any:
    """The specs of the elements."""
    return dataset_or_iterator.element_spec


def get_next_as_optional(iterator: Iterator) -> Optional:
    """The next element of an iterator, or nothing."""
    return iterator.get_next_as_optional()


def save(
    dataset: Dataset, path: Any, compression: str | None = None, shard_func: Any = None, checkpoint_args: Any = None
) -> None:
    """Write all elements to a folder."""
    dataset.save(path, compression, shard_func, checkpoint_args)


# For Dataset.apply


def _method(name: str, *arguments: Any, **options: Any) -> Transformation:
    return lambda dataset: getattr(dataset, name)(*arguments, **options)


def assert_cardinality(expected_cardinality: Any) -> Transformation:
    """The dataset, which must turn out to have this many elements."""
    return lambda dataset: Dataset(nested.AssertCardinality(dataset._node, int(expected_cardinality)), dataset.options())


def bucket_by_sequence_length(
    element_length_func: Callable, bucket_boundaries: Any, bucket_batch_sizes: Any, padded_shapes: Any = None,
    padding_values: Any = None, pad_to_bucket_boundary: bool = False, no_padding: bool = False, drop_remainder: bool = False,
) -> Transformation:  # fmt: skip
    """`Dataset.bucket_by_sequence_length`."""
    return _method(
        "bucket_by_sequence_length", element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes, padding_values,
        pad_to_bucket_boundary, no_padding, drop_remainder,
    )  # fmt: skip


def copy_to_device(target_device: Any, source_device: Any = "/cpu:0") -> Transformation:
    """The dataset as it is: elements are host arrays, and move to a device with the computation that uses them."""
    return lambda dataset: dataset


def prefetch_to_device(device: Any, buffer_size: Any = None) -> Transformation:
    """`Dataset.prefetch`: elements are host arrays, and move to a device with the computation that uses them."""
    return _method("prefetch", AUTOTUNE if buffer_size is None else buffer_size)


def enumerate_dataset(start: Any = 0) -> Transformation:
    """`Dataset.enumerate`."""
    return _method("enumerate", start)


def group_by_window(
    key_func: Callable, reduce_func: Callable, window_size: Any = None, window_size_func: Callable | None = None
) -> Transformation:
    """`Dataset.group_by_window`."""
    return _method("group_by_window", key_func, reduce_func, window_size, window_size_func)


def ignore_errors(log_warning: bool = False) -> Transformation:
    """`Dataset.ignore_errors`."""
    return _method("ignore_errors", log_warning)


def map_and_batch(
    map_func: Callable, batch_size: Any, num_parallel_batches: Any = None, drop_remainder: Any = False,
    num_parallel_calls: Any = None,
) -> Transformation:  # fmt: skip
    """`Dataset.map`, then `Dataset.batch`."""
    return lambda dataset: dataset.map(map_func, num_parallel_calls).batch(batch_size, drop_remainder)


def parallel_interleave(
    map_func: Callable, cycle_length: Any, block_length: Any = 1, sloppy: bool | None = False,
    buffer_output_elements: Any = None, prefetch_input_elements: Any = None,
) -> Transformation:  # fmt: skip
    """`Dataset.interleave` in threads."""
    return _method("interleave", map_func, cycle_length, block_length, num_parallel_calls=AUTOTUNE)


def scan(initial_state: Any, scan_func: Callable) -> Transformation:
    """`Dataset.scan`."""
    return _method("scan", initial_state, scan_func)


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> Transformation:
    """`Dataset.shuffle`, then `Dataset.repeat`."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def take_while(predicate: Callable) -> Transformation:
    """`Dataset.take_while`."""
    return _method("take_while", predicate)


def unbatch() -> Transformation:
    """`Dataset.unbatch`."""
    return _method("unbatch")


def unique() -> Transformation:
    """`Dataset.unique`."""
    return _method("unique")
