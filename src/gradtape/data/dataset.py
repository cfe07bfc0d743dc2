"""`Dataset`: a pipeline of steps over elements, and `Iterator`, one pass over it."""

from __future__ import annotations

import builtins
import copy
import threading
from collections.abc import Callable
from collections.abc import Iterator as PythonIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from gradtape.core.context import suspended
from gradtape.data import functional, nested, ordering, sources, storage, structure, threads
from gradtape.data.bindings import bound
from gradtape.data.cursor import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Node, Pass, Seeds, Unprobed
from gradtape.data.options import Options
from gradtape.errors import InvalidArgumentError, OutOfRangeError, message, shown
from gradtape.ops.arguments import integer
from gradtape.ops.execution import on_the_host
from gradtape.values import dtypes, nest
from gradtape.values.convert import convert_to_tensor
from gradtape.values.shape import TensorShape
from gradtape.values.spec import TensorSpec, TypeSpec, describe
from gradtape.values.tensor import Tensor, wrap

_CYCLE = 16  # open datasets of an interleave that does not say: fixed, so that the order does not depend on the machine


def _callable(function: Any, what: str = "func") -> Callable:
    """A user's function, with its names as they are bound now."""
    if not callable(function):
        text = f"Argument `{what}` must be a callable. Received {what}={function!r} (of type {type(function)})"
        raise ValueError(message(text, fix="a function: lambda element: …"))
    return bound(function)


def _positive(value: Any, text: str) -> int:
    number = integer(value)
    if number <= 0:
        raise InvalidArgumentError(message(text, received=str(number), expected="1 or more"))
    return number


class Dataset(structure.Opaque):
    """A sequence of elements, each a structure of tensors; iterate over it to get them.

    >>> dataset = Dataset.range(5).map(lambda x: x * x).batch(2)
    >>> [batch.numpy().tolist() for batch in dataset]
    [[0, 1], [4, 9], [16]]
    """

    def __init__(self, node: Node, options: Options | None = None) -> None:
        self._node = node
        self._options = options or Options()

    def _then(self, node: Node) -> Dataset:
        return Dataset(node, self._options)

    # Sources

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Dataset:
        """The slices of tensors along their first axis.

        >>> list(Dataset.from_tensor_slices(([1, 2], ["a", "b"])).as_numpy_iterator())
        [(np.int32(1), b'a'), (np.int32(2), b'b')]
        """
        return Dataset(sources.slices(tensors))

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> Dataset:
        """One element: the tensors as they are."""
        return Dataset(sources.whole(tensors))

    @staticmethod
    def from_generator(
        generator: Callable, output_types: Any = None, output_shapes: Any = None, args: Any = None,
        output_signature: Any = None, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """What ``generator(*args)`` yields, as tensors that fit ``output_signature``."""
        if not callable(generator):
            text = "`generator` must be a Python callable."
            raise TypeError(message(text, received=shown(generator), fix="the function itself, not what it returns"))
        if output_signature is not None:
            for what, given in (("output_types", output_types), ("output_shapes", output_shapes)):
                if given is not None:
                    text = f"The `{what}` argument can not be used together with the `output_signature` argument."
                    raise TypeError(message(text, fix=f"leave {what} out"))
            structure.check_specs(output_signature)
            spec = output_signature
        elif output_types is None:
            text = (
                "To specify the output signature you need to provide either the `output_signature` argument or the "
                "`output_types` argument."
            )
            raise TypeError(message(text, fix="output_signature=tf.TensorSpec([], tf.float32)"))
        else:
            spec = structure.specs_from(output_types, output_shapes)
        values = tuple(convert_to_tensor(value).numpy() for value in args or ())
        return Dataset(sources.Stream(lambda: sources.Fitted(iter(generator(*values)), spec), spec))

    @staticmethod
    def range(*args: Any, output_type: Any = dtypes.int64, name: str | None = None) -> Dataset:
        """Whole numbers, with the arguments of Python's range."""
        if not 1 <= len(args) <= 3:
            text = f"Invalid `args`. The length of `args` should be between 1 and 3 but was {len(args)}."
            expected = "range(stop), range(start, stop) or range(start, stop, step)"
            raise ValueError(message(text, received=f"{len(args)} numbers", expected=expected))
        numbers = [integer(arg) for arg in args]
        start, stop, step = (0, numbers[0], 1) if len(numbers) == 1 else (*numbers, 1)[:3]
        return Dataset(sources.integers(start, stop, step, output_type))

    @staticmethod
    def counter(start: Any = 0, step: Any = 1, dtype: Any = dtypes.int64, name: str | None = None) -> Dataset:
        """start, start + step, … without end."""
        return Dataset(sources.integers(integer(start), None, integer(step), dtype))

    @staticmethod
    def random(seed: Any = None, rerandomize_each_iteration: bool | None = None, name: str | None = None) -> Dataset:
        """Random int64 numbers from 0 to 2³² − 1, without end."""
        return Dataset(nested.RandomNumbers(Seeds(seed, bool(rerandomize_each_iteration))))

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Dataset:
        """Elements of several datasets side by side; it ends with the shortest."""
        if not args and datasets is None:
            text = "Must pass at least one dataset to `zip`."
            raise TypeError(message(text, received="nothing", fix="tf.data.Dataset.zip(a, b)"))
        given = datasets if datasets is not None else args[0] if len(args) == 1 else args
        expected = "Invalid input to `zip`. Inputs are expected to be (nested) structures of `tf.data.Dataset` objects"
        for leaf in [given] if isinstance(given, list) else nest.flatten(given):
            if isinstance(leaf, list):
                text = f"{expected}. Python `list` is not supported and you should use `tuple` instead."
                raise TypeError(message(text, received=shown(leaf), fix="tf.data.Dataset.zip((a, b))"))
            if not isinstance(leaf, Dataset):
                text = f"{expected} but encountered object of type {type(leaf)}."
                raise TypeError(message(text, received=shown(leaf), expected="datasets, in tuples or dicts"))
        return Dataset(ordering.Zip(nest.map_structure(lambda dataset: dataset._node, given)))

    @staticmethod
    def list_files(file_pattern: Any, shuffle: bool | None = None, seed: Any = None, name: str | None = None) -> Dataset:
        """The names of the files that match; in random order unless ``shuffle=False``."""
        names = sources.matching_files(file_pattern)
        files = Dataset.from_tensor_slices(names)
        return files.shuffle(len(names), seed=seed) if shuffle is None or shuffle else files

    @staticmethod
    def choose_from_datasets(datasets: Any, choice_dataset: Dataset, stop_on_empty_dataset: bool = True) -> Dataset:
        """Each time the next element of the dataset whose number ``choice_dataset`` gives."""
        spec = choice_dataset.element_spec
        if not TensorSpec([], dtypes.int64).is_compatible_with(spec):
            text = f"Invalid `choice_dataset`. Elements of `choice_dataset` must be scalar `tf.int64` tensors but are {spec}."
            raise TypeError(message(text, fix="choice_dataset.map(lambda i: tf.cast(i, tf.int64))"))
        return Dataset(nested.Choose(_nodes(datasets), choice_dataset._node, stop_on_empty_dataset))

    @staticmethod
    def sample_from_datasets(
        datasets: Any, weights: Any = None, seed: Any = None, stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> Dataset:  # fmt: skip
        """Each time the next element of a dataset drawn with these probabilities."""
        nodes = _nodes(datasets)
        chances = np.ones(len(nodes)) if weights is None else np.asarray(convert_to_tensor(weights), np.float64)
        if chances.shape != (len(nodes),):
            text = (
                "Invalid `weights`. `weights` should have the same length as `datasets` but got "
                f"`len(weights)={chances.size}` vs. `len(datasets)={len(nodes)}`."
            )
            raise ValueError(
                message(text, received=f"{chances.size} weights for {len(nodes)} datasets", expected="one weight per dataset")
            )
        kept = [k for k, chance in enumerate(chances) if chance > 0]  # one that is never drawn would keep the others waiting
        chooser = nested.RandomNumbers(Seeds(seed, rerandomize_each_iteration is not False), chances[kept] / chances.sum())
        return Dataset(nested.Choose([nodes[k] for k in kept], chooser, stop_on_empty_dataset))

    # One element, one element

    def map(
        self, map_func: Callable, num_parallel_calls: Any = None, deterministic: bool | None = None,
        synchronous: bool | None = None, use_unbounded_threadpool: bool = False, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """``map_func`` of each element; a tuple is passed as several arguments.

        With ``num_parallel_calls`` the calls run in threads; the order stays, unless ``deterministic=False``.
        """
        ordered = deterministic if deterministic is not None else self._options.deterministic is not False
        calls = None if num_parallel_calls is None else integer(num_parallel_calls)
        if calls is not None and calls != AUTOTUNE:
            _positive(calls, "num_parallel_calls must be greater than zero.")
        return self._then(functional.Map(self._node, _callable(map_func), calls, ordered))

    def scan(self, initial_state: Any, scan_func: Callable, name: str | None = None) -> Dataset:
        """``(state, output) = scan_func(state, element)``; the outputs."""
        return self._then(functional.Scan(self._node, _callable(scan_func), structure.normalize(initial_state)))

    def enumerate(self, start: Any = 0, name: str | None = None) -> Dataset:
        """Pairs of a number from ``start`` and the element."""
        return self._then(ordering.Zip((Dataset.counter(start)._node, self._node)))

    # Selection and order

    def filter(self, predicate: Callable, name: str | None = None) -> Dataset:
        """The elements for which the predicate is true."""
        return self._then(functional.Filter(self._node, _callable(predicate)))

    def take_while(self, predicate: Callable, name: str | None = None) -> Dataset:
        """The elements before the first for which the predicate is false."""
        return self._then(functional.Filter(self._node, _callable(predicate), until=True))

    def take(self, count: Any, name: str | None = None) -> Dataset:
        """The first elements; all of them if ``count`` is -1."""
        return self._then(ordering.Take(self._node, integer(count)))

    def skip(self, count: Any, name: str | None = None) -> Dataset:
        """All but the first elements; none if ``count`` is -1."""
        return self._then(ordering.Skip(self._node, integer(count)))

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Dataset:
        """Every ``num_shards``-th element, beginning with number ``index``."""
        count, first = integer(num_shards), integer(index)
        if count <= 0:
            text = f"Number of shards must be greater than zero (currently num_shards = {count})."
            raise InvalidArgumentError(message(text, received=f"num_shards={count}", expected="1 or more"))
        if not 0 <= first < count:
            text = f"Index must be between 0 and {count - 1} (currently index = {first})."
            raise InvalidArgumentError(
                message(text, received=f"index={first}, num_shards={count}", expected=f"0 to {count - 1}")
            )
        return self._then(ordering.Shard(self._node, count, first))

    def repeat(self, count: Any = None, name: str | None = None) -> Dataset:
        """The dataset ``count`` times over; without end if None or -1."""
        return self._then(ordering.Repeat(self._node, -1 if count is None else integer(count)))

    def shuffle(
        self, buffer_size: Any, seed: Any = None, reshuffle_each_iteration: bool | None = True, name: str | None = None
    ) -> Dataset:
        """A random element of a buffer of ``buffer_size``, again and again; the next element takes its place.

        A buffer as large as the dataset gives every order with the same probability.
        """
        size = integer(buffer_size)
        if size <= 0 and size != UNKNOWN_CARDINALITY:
            text = "buffer_size must be greater than zero or UNKNOWN_CARDINALITY"
            raise InvalidArgumentError(message(text, received=str(size), expected="how many elements to mix: 1 or more"))
        seeds = Seeds(seed, reshuffle_each_iteration is not False)
        return self._then(ordering.Shuffle(self._node, size if size > 0 else 2**62, seeds))

    def concatenate(self, dataset: Dataset, name: str | None = None) -> Dataset:
        """This dataset, then the other."""
        node = ordering.Concatenate((self._node, nested.node_of(dataset, "dataset")))
        with suppress(Unprobed):
            node.spec(probe=False)  # raises if the two do not fit together
        return self._then(node)

    def unique(self, name: str | None = None) -> Dataset:
        """The elements that did not come before."""
        return self._then(nested.Unique(self._node))

    def cache(self, filename: Any = "", name: str | None = None) -> Dataset:
        """What the first complete pass gave, from memory or from a file; the steps before run once."""
        given = filename.numpy().decode() if isinstance(filename, Tensor) else str(filename)
        return self._then(ordering.Cache(self._node, Path(f"{given}.npz") if given else None))

    def prefetch(self, buffer_size: Any, name: str | None = None) -> Dataset:
        """A thread of its own prepares up to ``buffer_size`` elements ahead of time."""
        size = integer(buffer_size)
        if size < 0 and size != AUTOTUNE:
            text = "buffer_size must be >= 0 or set buffer_size to be -1 for auto-tuning"
            raise InvalidArgumentError(
                message(text, received=str(size), expected="how many elements to make ahead, or tf.data.AUTOTUNE")
            )
        return self._then(threads.Prefetch(self._node, size)) if size else self

    # Batches

    def batch(
        self, batch_size: Any, drop_remainder: Any = False, num_parallel_calls: Any = None, deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """``batch_size`` elements stacked; the last batch is smaller, or dropped."""
        size = _positive(batch_size, "Batch size must be greater than zero.")
        return self._then(functional.Batch(self._node, size, bool(drop_remainder)))

    def padded_batch(
        self, batch_size: Any, padded_shapes: Any = None, padding_values: Any = None, drop_remainder: Any = False,
        name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """Elements padded to one shape, by default that of the longest in the batch, and stacked."""
        size = _positive(batch_size, "Batch size must be greater than zero.")
        return self._then(functional.PaddedBatch(self._node, size, bool(drop_remainder), padded_shapes, padding_values))

    def unbatch(self, name: str | None = None) -> Dataset:
        """The slices of each element along the first axis."""
        with suppress(Unprobed):
            if any(leaf.shape.rank == 0 for leaf in nest.flatten(self._node.spec(probe=False))):
                text, spec = "Cannot unbatch an input with scalar components.", self._node.spec(probe=False)
                raise ValueError(message(text, received=f"elements {spec}", expected="at least one axis in every component"))
        return self._then(functional.Unbatch(self._node))

    def rebatch(self, batch_size: Any, drop_remainder: bool = False, name: str | None = None) -> Dataset:
        """Batches of another size; several sizes are used in turn."""
        sizes = np.atleast_1d(np.asarray(convert_to_tensor(batch_size))).tolist()
        for size in sizes:
            _positive(size, "Batch size must be greater than zero.")
        return self._then(functional.Rebatch(self._node, tuple(sizes), drop_remainder))

    # Datasets of datasets

    def flat_map(self, map_func: Callable, name: str | None = None) -> Dataset:
        """The elements of the dataset that ``map_func`` makes of each element, one dataset after the other."""
        return self._then(nested.Interleave(self._node, _callable(map_func)))

    def interleave(
        self, map_func: Callable, cycle_length: Any = None, block_length: Any = None, num_parallel_calls: Any = None,
        deterministic: bool | None = None, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """``block_length`` elements in turn of ``cycle_length`` datasets that ``map_func`` makes of the elements."""
        cycle = _CYCLE if cycle_length is None or integer(cycle_length) == AUTOTUNE else integer(cycle_length)
        _positive(cycle, "cycle_length must be greater than zero.")
        block = _positive(1 if block_length is None else block_length, "block_length must be greater than zero.")
        parallel = num_parallel_calls is not None
        return self._then(nested.Interleave(self._node, _callable(map_func), cycle, block, parallel))

    def window(
        self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: bool = False, name: str | None = None
    ) -> Dataset:
        """Datasets of ``size`` elements each, ``stride`` apart; the next one begins ``shift`` later."""
        count = _positive(size, "Window size must be greater than zero.")
        step = _positive(count if shift is None else shift, "Window shift must be greater than zero.")
        apart = _positive(stride, "Window stride must be greater than zero.")
        return self._then(nested.Window(self._node, count, step, apart, bool(drop_remainder), Dataset))

    def group_by_window(
        self, key_func: Callable, reduce_func: Callable, window_size: Any = None, window_size_func: Callable | None = None,
        name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """The elements of ``reduce_func(key, dataset of up to window_size elements with that key)``."""
        if (window_size is None) == (window_size_func is None):
            text = "Either the `window_size` argument or the `window_size_func` argument must be specified."
            raise ValueError(message(text, received="both" if window_size is not None else "neither", fix="window_size=32"))
        if window_size_func is None:
            fixed = _positive(window_size, "Window size must be greater than zero.")
            size: Callable[[Any], int] = lambda key: fixed
        else:
            chosen = _callable(window_size_func)
            size = lambda key: int(chosen(key))
        return self._then(nested.GroupByWindow(self._node, _callable(key_func), _callable(reduce_func), size, Dataset))

    def bucket_by_sequence_length(
        self, element_length_func: Callable, bucket_boundaries: Any, bucket_batch_sizes: Any, padded_shapes: Any = None,
        padding_values: Any = None, pad_to_bucket_boundary: bool = False, no_padding: bool = False,
        drop_remainder: bool = False, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """Batches of elements of similar length, padded."""
        if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
            raise ValueError(
                message(
                    f"`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1` but `len(bucket_batch_sizes)="
                    f"{len(bucket_batch_sizes)}` and `len(bucket_boundaries)={len(bucket_boundaries)}`.",
                    fix="one batch size more than boundaries: the last is for what is longer than all",
                )
            )
        boundaries, sizes = [int(b) for b in bucket_boundaries], [int(s) for s in bucket_batch_sizes]
        length_of = _callable(element_length_func)

        def bucket(*element: Any) -> Any:
            return np.searchsorted(boundaries, int(length_of(*element)), side="right")

        def combine(key: Tensor, group: Dataset) -> Dataset:
            size = sizes[int(key)]
            if no_padding:
                return group.batch(size, drop_remainder)
            shapes = padded_shapes
            if pad_to_bucket_boundary:
                shapes = _bounded(group.element_spec, padded_shapes, boundaries, int(key))
            elif shapes is None:
                shapes = nest.map_structure(lambda leaf: TensorShape([None] * leaf.shape.rank), group.element_spec)
            return group.padded_batch(size, shapes, padding_values, drop_remainder)

        return self.group_by_window(bucket, combine, window_size_func=lambda key: sizes[int(key)])

    # Folding and guards

    def reduce(self, initial_state: Any, reduce_func: Callable, name: str | None = None) -> Any:
        """The last ``state = reduce_func(state, element)``."""
        state, step = structure.normalize(initial_state), _callable(reduce_func)
        for element in self:
            following = structure.normalize(step(state, element))
            if len(nest.flatten(following)) != len(nest.flatten(state)):
                raise InvalidArgumentError(
                    message(
                        "The number of components of the initial state and the reduce function output does not match. "
                        f"(initial_state={len(nest.flatten(state))}, reduce_func={len(nest.flatten(following))}).",
                        received=f"a state {shown(state)}, then {shown(following)}",
                        fix="return from reduce_func what initial_state looks like",
                    )
                )
            state = following
        return state

    def get_single_element(self, name: str | None = None) -> Any:
        """The element of a dataset that has one."""
        found = [element for element, _ in builtins.zip(self, "ab")]
        if len(found) != 1:
            text = "Dataset had more than one element." if found else "Dataset was empty."
            raise InvalidArgumentError(message(text, received=f"{len(found)} elements", fix="dataset.take(1) keeps the first"))
        return found[0]

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Dataset:
        """The elements that could be made; those that raised an error are dropped."""
        return self._then(nested.IgnoreErrors(self._node, log_warning))

    def apply(self, transformation_func: Callable) -> Dataset:
        """``transformation_func(dataset)``, which must be a dataset."""
        result = transformation_func(self)
        if not isinstance(result, Dataset):
            text = f"`transformation_func` must return a `tf.data.Dataset` object. Got {type(result)}."
            raise TypeError(message(text, received=shown(result), fix="return dataset.map(…) from it"))
        return result

    def with_options(self, options: Options, name: str | None = None) -> Dataset:
        """The same dataset with these settings."""
        if not isinstance(options, Options):
            text = "with_options needs a tf.data.Options."
            raise TypeError(message(text, received=type(options).__name__, fix="options = tf.data.Options()"))
        return Dataset(self._node, self._options.merge(options))

    def options(self) -> Options:
        """The settings of this dataset."""
        return copy.deepcopy(self._options)

    # Files

    def save(self, path: Any, compression: str | None = None, shard_func: Any = None, checkpoint_args: Any = None) -> None:
        """Write all elements to a folder; `load` reads them."""
        storage.save(Path(path) / "elements.npz", list(self))

    @staticmethod
    def load(
        path: Any, element_spec: Any = None, compression: str | None = None, reader_func: Any = None, wait: bool = False
    ) -> Dataset:
        """The dataset that `save` wrote."""
        elements = storage.load(Path(path) / "elements.npz", element_spec)
        spec = element_spec if element_spec is not None else structure.spec_of(elements[0]) if elements else ()
        return Dataset(nested.Sequence(elements, None, spec))

    # What it is

    @property
    def element_spec(self) -> Any:
        """The specs of the elements. What a function returns is found by calling it on the first element."""
        with suspended():
            return self._node.spec(probe=True)

    @property
    def _type_spec(self) -> DatasetSpec:
        return DatasetSpec(self.element_spec)

    def cardinality(self) -> Tensor:
        """How many elements there are; -1 without end, -2 if that is not known."""
        return wrap(np.asarray(self._node.cardinality(), np.int64))

    def __len__(self) -> int:
        count = self._node.cardinality()
        if count == INFINITE_CARDINALITY:
            text = "The dataset is infinite."
            raise TypeError(message(text, received="a dataset that repeats without end", fix="dataset.take(n)"))
        if count == UNKNOWN_CARDINALITY:
            text = "The dataset length is unknown."
            raise TypeError(message(text, received=f"{self!r}", fix="sum(1 for _ in dataset) makes and counts the elements"))
        return count

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator:
        return Iterator(self)

    def as_numpy_iterator(self) -> PythonIterator[Any]:
        """The elements as NumPy arrays and scalars."""
        return (nest.map_structure(_to_numpy, element) for element in self)

    def __repr__(self) -> str:
        try:
            spec = self._node.spec(probe=False)
        except Unprobed:
            spec = "known when its functions have run"
        return f"<_{type(self._node).__name__}Dataset element_spec={spec}>"


def _to_numpy(leaf: Any) -> Any:
    if isinstance(leaf, Dataset):
        text = "`tf.data.Dataset.as_numpy_iterator()` is not supported for datasets that produce datasets."
        raise TypeError(
            message(text, received="a dataset inside a dataset", fix="dataset.flat_map(lambda window: window.batch(n))")
        )
    return leaf if leaf is None else leaf.numpy()


def _nodes(datasets: Any) -> list[Node]:
    if not datasets:
        text = "Invalid `datasets`. `datasets` should not be empty."
        raise ValueError(message(text, received=shown(datasets), expected="a list of datasets, at least one"))
    return [nested.node_of(dataset, "datasets") for dataset in datasets]


def _bounded(spec: Any, shapes: Any, boundaries: list[int], bucket: int) -> Any:
    """The shapes with the longest length of a bucket in the place of unknown first lengths."""
    if bucket == len(boundaries):
        raise InvalidArgumentError(
            message(
                "When pad_to_bucket_boundary=True, elements must have length < max(bucket_boundaries).",
                received=f"an element of length {boundaries[-1]} or more",
                expected=f"lengths below {boundaries[-1]}",
                fix="a larger last boundary",
            )
        )
    given = [leaf.shape for leaf in nest.flatten(spec)] if shapes is None else structure._shapes(spec, shapes)
    bound = [TensorShape([boundaries[bucket] - 1, *shape[1:]]) if shape.rank else shape for shape in given]
    return structure.packer(spec)(bound)


class Iterator:
    """One pass over a dataset, whose position can be saved."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._lock = threading.Lock()
        self._begin(())

    def _begin(self, seeds: Any) -> None:
        self._pass, self._count = Pass(seeds), 0
        with suspended():
            self._cursor = self._dataset._node.cursor(self._pass)

    @property
    def element_spec(self) -> Any:
        return self._dataset.element_spec

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        on_the_host("taking an element of a dataset")
        with self._lock, suspended():  # what functions compute belongs to the data, not to the caller's tape
            try:
                element = self._cursor.element()
            except StopIteration:
                raise
            except Exception:
                self._count += 1  # the turn of an element that could not be made
                raise
            self._count += 1
            return element

    def get_next(self) -> Any:
        """The next element; OutOfRangeError at the end."""
        try:
            return next(self)
        except StopIteration:
            text, received = "End of sequence", "a call for one more element"
            raise OutOfRangeError(message(text, received=received, fix="get_next_as_optional(), or a for loop")) from None

    def get_next_as_optional(self) -> Optional:
        """The next element or nothing."""
        try:
            return Optional.from_value(next(self))
        except StopIteration:
            return Optional(self._dataset, None)

    # The position, for checkpoints

    def _state(self) -> dict[str, Any]:
        """How many elements were handed out, and the seeds of this pass."""
        with self._lock:
            return {"count": self._count, "seeds": np.array(self._pass.seeds, np.int64)}

    def _restore(self, state: dict[str, Any]) -> None:
        """Go to a position: a new pass with the same seeds, advanced; what can be skipped is not computed."""
        with self._lock, suspended():
            self._begin(np.asarray(state["seeds"]).tolist())
            self._count = int(state["count"])
            self._cursor.advance(self._count)


class Optional(structure.Opaque):
    """A value that may be missing."""

    def __init__(self, spec: Any, value: tuple | None) -> None:
        self._spec, self._value = spec, value

    @staticmethod
    def from_value(value: Any) -> Optional:
        """An optional that holds this value."""
        element = structure.normalize(value)
        return Optional(None, (element,))

    @staticmethod
    def empty(element_spec: Any) -> Optional:
        """An optional without a value."""
        return Optional(element_spec, None)

    def has_value(self, name: str | None = None) -> Tensor:
        """Whether there is a value."""
        return wrap(np.asarray(self._value is not None))

    def get_value(self, name: str | None = None) -> Any:
        """The value; an error if there is none."""
        if self._value is None:
            text = "The given optional does not have a value."
            raise InvalidArgumentError(
                message(text, received="an optional without value", fix="optional.has_value() asks first")
            )
        return self._value[0]

    @property
    def element_spec(self) -> Any:
        if self._value is not None:
            return structure.spec_of(self._value[0])
        return self._spec.element_spec if isinstance(self._spec, Dataset) else self._spec


class DatasetSpec(TypeSpec):
    """The description of a dataset as a value: the specs of its elements."""

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        self._element_spec, self._shape = element_spec, TensorShape(dataset_shape)

    @property
    def element_spec(self) -> Any:
        return self._element_spec

    @property
    def value_type(self) -> type:
        return Dataset

    def _serialize(self) -> tuple:
        return self._element_spec, self._shape

    def _example(self) -> Dataset:
        """An empty dataset of this kind."""
        return Dataset(nested.Sequence([], None, self._element_spec))

    @staticmethod
    def from_value(value: Dataset) -> DatasetSpec:
        """The description of a dataset."""
        return value._type_spec


describe(Dataset, DatasetSpec.from_value)


class TextLineDataset(Dataset):
    """The lines of text files."""

    def __init__(
        self, filenames: Any, compression_type: str | None = None, buffer_size: Any = None, num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        names = sources.file_names(filenames)
        super().__init__(sources.Stream(lambda: sources.lines(names, compression_type), TensorSpec([], dtypes.string)))


class FixedLengthRecordDataset(Dataset):
    """Pieces of equal length of binary files."""

    def __init__(
        self, filenames: Any, record_bytes: Any, header_bytes: Any = None, footer_bytes: Any = None, buffer_size: Any = None,
        compression_type: str | None = None, num_parallel_reads: Any = None, name: str | None = None,
    ) -> None:  # fmt: skip
        names, size = sources.file_names(filenames), _positive(record_bytes, "record_bytes must be greater than zero.")
        header, footer = (0 if n is None else integer(n) for n in (header_bytes, footer_bytes))
        pieces = lambda: sources.records(names, compression_type, size, header, footer)
        super().__init__(sources.Stream(pieces, TensorSpec([], dtypes.string)))
