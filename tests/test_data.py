"""Datasets: threads, files, sharing of memory, errors, and what the recorded calls of TensorFlow cannot show."""

from __future__ import annotations

import gc
import gzip
import subprocess
import sys
import threading
import time
from collections import namedtuple

import numpy as np
import pytest

import gradtape as tf
from gradtape.data import structure
from gradtape.values.spec import TensorSpec

Dataset = tf.data.Dataset


def values(dataset):
    return [np.asarray(element).tolist() for element in dataset]


def own_threads():
    return [t for t in threading.enumerate() if t.name.startswith("gradtape-")]


def eventually(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        gc.collect()
        time.sleep(0.01)
    return condition()


# Threads


def test_parallel_calls_run_at_the_same_time():
    together = threading.Barrier(3, timeout=60)

    def wait_for_the_others(x):
        together.wait()
        return x

    assert values(Dataset.range(6).map(wait_for_the_others, num_parallel_calls=3)) == list(range(6))


def test_without_order_the_ready_come_first():
    late = threading.Event()

    def hold_the_first(x):
        if x == 0:
            assert late.wait(60)
        return x

    iterator = iter(Dataset.range(3).map(hold_the_first, num_parallel_calls=2, deterministic=False))
    assert int(next(iterator)) == 1
    late.set()
    assert sorted(values(iterator)) == [0, 2]


def test_options_can_give_up_the_order():
    options = tf.data.Options()
    options.deterministic = False
    dataset = Dataset.range(3).with_options(options)
    assert dataset.map(lambda x: x, num_parallel_calls=2)._node.ordered is False
    assert dataset.map(lambda x: x, num_parallel_calls=2, deterministic=True)._node.ordered is True
    assert dataset.options().deterministic is False


def test_prefetch_works_ahead_and_no_further():
    made = []
    iterator = iter(Dataset.range(100).map(lambda x: made.append(int(x)) or x).prefetch(3))
    assert made == []
    assert int(next(iterator)) == 0
    assert eventually(lambda: len(made) == 5)  # one taken, three waiting, one in the hands of the thread
    time.sleep(0.05)
    assert len(made) == 5


@pytest.mark.parametrize("parallel", [None, 2])
@pytest.mark.parametrize("ahead", [0, 2])
def test_an_error_comes_in_the_turn_of_its_element(parallel, ahead):
    def refuse_two(x):
        if x == 2:
            raise ZeroDivisionError("two")
        return x

    iterator = iter(Dataset.range(5).map(refuse_two, num_parallel_calls=parallel).prefetch(ahead))
    assert [int(next(iterator)), int(next(iterator))] == [0, 1]
    with pytest.raises(ZeroDivisionError, match="two"):
        next(iterator)
    assert values(iterator) == [3, 4]


def test_threads_end_when_iterators_are_dropped():
    before = len(own_threads())
    dataset = Dataset.range(10**6).map(lambda x: x + 1, num_parallel_calls=2).prefetch(2)
    iterators = [iter(dataset) for _ in range(3)]
    for iterator in iterators:
        next(iterator)
    assert len(own_threads()) > before
    del iterators, iterator
    assert eventually(lambda: len(own_threads()) <= before)


def test_threads_do_not_keep_the_interpreter_alive():
    code = (
        "import gradtape as tf\n"
        "it = iter(tf.data.Dataset.counter().map(lambda x: x + 1, num_parallel_calls=2).prefetch(2))\n"
        "print(int(next(it)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (run.stdout, run.stderr, run.returncode) == ("1\n", "", 0)


def test_an_iterator_can_be_shared_by_threads():
    iterator, found = iter(Dataset.range(2000).batch(1)), []

    def drain():
        found.extend(int(batch[0]) for batch in iterator)

    workers = [threading.Thread(target=drain) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(found) == list(range(2000))


# Tapes


def test_functions_of_a_pipeline_are_not_recorded():
    w = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        loss = w * 0.0
        for x in Dataset.from_tensor_slices([1.0, 2.0]).map(lambda x: x * w):
            loss += x * w
    assert float(tape.gradient(loss, w)) == 6.0  # of the product outside alone


# Memory


def test_the_source_may_change_afterwards():
    array = np.arange(6.0)
    dataset = Dataset.from_tensor_slices(array).batch(2)
    array[:] = -1
    assert values(dataset) == [[0, 1], [2, 3], [4, 5]]


def test_what_is_handed_out_cannot_change_the_data():
    dataset = Dataset.from_tensor_slices(np.arange(4.0)).batch(2)
    batch = next(iter(dataset))
    batch.numpy()[:] = -1
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(batch)[:] = -1
    assert values(dataset) == [[0, 1], [2, 3]]


@pytest.mark.parametrize("prepare", [lambda d: d, lambda d: d.shuffle(5, seed=1), lambda d: d.repeat(2)])
def test_batches_of_rows_are_gathered_and_never_taken_apart(monkeypatch, prepare):
    def refuse(*_):
        raise AssertionError("made of single elements")

    monkeypatch.setattr("gradtape.data.cursor.Columns.element", refuse)
    monkeypatch.setattr(structure, "stack", refuse)
    pairs = Dataset.zip((Dataset.from_tensor_slices(np.arange(10)), Dataset.from_tensor_slices(-np.arange(10))))
    for a, b in prepare(pairs.skip(1)).take(7).enumerate().batch(3).map(lambda k, ab: ab):
        np.testing.assert_array_equal(a, -b)


def test_jax_arrays_can_be_sliced():
    jnp = pytest.importorskip("jax.numpy")
    assert values(Dataset.from_tensor_slices(tf.convert_to_tensor(jnp.arange(3.0))).batch(2)) == [[0, 1], [2]]


# Elements

Point = namedtuple("Point", "x y")


def test_structures_keep_their_types():
    dataset = Dataset.from_tensor_slices(Point([1, 2], {"b": [3, 4], "a": [5, 6]}))
    for made in (dataset, dataset.batch(2), dataset.map(lambda p: p), dataset.map(lambda p: p).batch(2), dataset.cache()):
        element = next(iter(made))
        assert type(element) is Point
        assert list(element.y) == ["b", "a"]
    assert type(dataset.element_spec) is Point


def test_none_and_datasets_pass_through():
    assert next(iter(Dataset.range(1).map(lambda x: (x, None))))[1] is None
    inner = next(iter(Dataset.range(1).map(lambda x: Dataset.range(x + 2))))
    assert values(inner) == [0, 1]
    with pytest.raises(TypeError, match="Cannot batch elements of type Dataset"):
        next(iter(Dataset.range(4).window(2).batch(2)))


def test_the_spec_follows_lengths_that_vary():
    batches = Dataset.range(5).batch(2)
    assert batches.map(lambda x: tf.stack([x, x])).element_spec == TensorSpec([2, None], tf.int64)
    assert Dataset.range(0).map(lambda x: tf.cast(x, tf.float32)).element_spec == TensorSpec([], tf.float32)


def test_asking_for_the_spec_leaves_the_order_alone():
    asked, plain = (Dataset.range(30).shuffle(30, seed=1).map(lambda x: x + 1) for _ in range(2))
    assert asked.element_spec == TensorSpec([], tf.int64)
    assert values(asked) == values(plain)


def test_a_dataset_says_what_it_is():
    spec = "TensorSpec(shape=(None,), dtype=tf.int64, name=None)"
    assert repr(Dataset.range(3).batch(2)) == f"<_BatchDataset element_spec={spec}>"
    assert "when its functions have run" in repr(Dataset.range(3).map(lambda x: x))


def test_a_generator_s_own_error_is_raised_as_it_is():
    def broken():
        yield 1
        raise KeyError("lost")

    iterator = iter(Dataset.from_generator(broken, output_signature=TensorSpec([], tf.int32)))
    next(iterator)
    with pytest.raises(KeyError, match="lost"):
        next(iterator)


def test_a_generator_begins_anew_with_each_pass():
    passes = []

    def count():
        passes.append(1)
        yield from range(2)

    dataset = Dataset.from_generator(count, tf.int64)
    assert passes == []
    assert values(dataset.repeat(2)) == [0, 1, 0, 1]
    assert len(passes) == 2


# Keeping


def test_a_cache_runs_the_steps_before_it_once():
    calls = []
    dataset = Dataset.range(3).map(lambda x: calls.append(1) or x).cache()
    next(iter(dataset))  # a pass that is not complete is not kept
    assert values(dataset.repeat(2)) == [0, 1, 2] * 2
    assert values(dataset) == [0, 1, 2]
    assert len(calls) == 4


def test_a_cache_of_shuffled_rows_keeps_their_order():
    dataset = Dataset.range(30).shuffle(30).cache()
    assert values(dataset) == values(dataset)


def samples():
    """Every kind of leaf; lengths that vary; texts with zeros at the end."""
    return Dataset.range(3).map(
        lambda k: {
            "text": tf.constant([b"a\0", b"", "é".encode()]),
            "pair": (tf.cast(k, tf.bfloat16), tf.ones([int(k), 2], tf.complex64)),
            "flag": k > 1,
        }
    )


def assert_same(first, second):
    for a, b in zip(list(first), list(second), strict=True):
        tf.nest.assert_same_structure(a, b)
        for x, y in zip(tf.nest.flatten(a), tf.nest.flatten(b)):
            assert x.dtype is y.dtype
            np.testing.assert_array_equal(x.numpy(), y.numpy())


def test_a_cache_in_a_file_outlives_the_program(tmp_path):
    calls = []
    build = lambda: samples().map(lambda x: calls.append(1) or x).cache(tmp_path / "cache")
    assert_same(build(), samples())
    assert len(calls) == 3
    assert_same(build(), samples())
    assert len(calls) <= 4  # once more, for the structure
    assert [file.name for file in tmp_path.iterdir()] == ["cache.npz"]


def test_saved_datasets_load(tmp_path):
    samples().save(tmp_path / "folder")
    assert_same(Dataset.load(tmp_path / "folder"), samples())
    Dataset.range(0).save(tmp_path / "empty")
    assert list(Dataset.load(tmp_path / "empty")) == []


# Files


def test_lines_of_files(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\n\nlast")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"packed\n"))
    assert values(tf.data.TextLineDataset(tmp_path / "a.txt")) == [b"one", b"two", b"", b"last"]
    assert values(tf.data.TextLineDataset([str(tmp_path / "b.txt.gz")], "GZIP")) == [b"packed"]
    names = Dataset.list_files(str(tmp_path / "*.txt"))
    assert values(tf.data.TextLineDataset(names).take(1)) == [b"one"]
    with pytest.raises(tf.errors.NotFoundError, match="No such file"):
        list(tf.data.TextLineDataset(str(tmp_path / "missing")))


def test_records_of_files(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"head" + b"abcdef" + b"!")
    read = lambda size: tf.data.FixedLengthRecordDataset(str(tmp_path / "a.bin"), size, header_bytes=4, footer_bytes=1)
    assert values(read(3)) == [b"abc", b"def"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="not an exact multiple of the record length"):
        list(read(4))


def test_files_are_listed(tmp_path):
    for name in "abcdefgh":
        (tmp_path / f"{name}.txt").touch()
    expected = [str(tmp_path / f"{name}.txt").encode() for name in "abcdefgh"]
    assert values(Dataset.list_files(f"{tmp_path}/*.txt", shuffle=False)) == expected
    shuffled = Dataset.list_files([f"{tmp_path}/[a-d].txt", f"{tmp_path}/[e-h].txt"], seed=2)
    assert values(shuffled) != expected
    assert sorted(values(shuffled)) == expected
    with pytest.raises(tf.errors.InvalidArgumentError, match="No files matched pattern"):
        Dataset.list_files(f"{tmp_path}/*.png")


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text('id,size,name,big\n1,2.5,"a, b",9999999999\n2,,c,1\n3,1,"d\ne",2\n')
    return str(file)


def test_rows_of_tables(table):
    dataset = tf.data.experimental.CsvDataset(table, [tf.int32, [-1.0], tf.string], header=True, select_cols=[0, 1, 2])
    assert list(dataset.as_numpy_iterator()) == [(1, 2.5, b"a, b"), (2, -1.0, b"c"), (3, 1.0, b"d\ne")]
    strict = tf.data.experimental.CsvDataset(table, [tf.int32, tf.float32, tf.string, tf.int32], header=True)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Field 3 in record is not a valid int32: 9999999999"):
        next(iter(strict))
    assert [int(row[0]) for row in strict.ignore_errors()] == [3]


def test_tables_in_batches(table):
    make = tf.data.experimental.make_csv_dataset
    features, label = next(iter(make(table, 2, label_name="id", shuffle=False, num_epochs=1)))
    found = {name: column.dtype.name for name, column in features.items()}
    assert found == {"size": "float32", "name": "string", "big": "int64"}
    assert label.numpy().tolist() == [1, 2]
    assert features["size"].numpy().tolist() == [2.5, 0.0]
    batches = list(make(table, 2, shuffle=False, num_epochs=1, select_columns=["big", "id"]))
    assert [batch["id"].numpy().tolist() for batch in batches] == [[1, 2], [3]]
    endless = make(table, 2, shuffle_seed=1)
    assert sorted(k for batch, _ in zip(endless, range(3)) for k in batch["id"].numpy().tolist()) == [1, 1, 2, 2, 3, 3]
    with pytest.raises(ValueError, match="must be one of the columns"):
        make(table, 2, label_name="nothing")


# Iterators and names


def test_the_end_is_the_end():
    iterator = iter(Dataset.range(1))
    assert int(iterator.get_next()) == 0
    for _ in range(2):
        with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
            iterator.get_next()
    assert list(iterator) == []


def test_a_position_after_an_error_counts_the_lost_turn():
    build = lambda: Dataset.range(6).map(lambda x: tf.gather([1, 2, 3, 4, 5], [x][0] * 10 if x == 2 else x)).batch(1)
    iterator = iter(build())
    next(iterator), next(iterator)
    with pytest.raises(tf.errors.InvalidArgumentError):
        next(iterator)
    other = iter(build())
    other._restore(iterator._state())
    assert int(next(other)[0]) == int(next(iterator)[0]) == 4


def test_restoring_computes_nothing_that_can_be_skipped():
    def build(calls: list) -> Dataset:
        noted = lambda x: calls.append(1) or x
        return Dataset.range(1000).shuffle(100, seed=1).map(noted).batch(10).prefetch(1).repeat(3)

    iterator, calls = iter(build([])), []  # the first may still prefetch while the second is restored
    for _ in range(150):
        next(iterator)
    other = iter(build(calls))
    other._restore(iterator._state())
    assert calls == []
    assert int(next(other)[0]) == int(next(iterator)[0])


def test_random_choices_are_seeded():
    build = lambda: Dataset.sample_from_datasets(
        [Dataset.from_tensors(k).repeat() for k in range(3)], weights=[0.5, 0.25, 0.25], seed=4
    )
    found = values(build().take(2000))
    assert found == values(build().take(2000))
    assert [abs(found.count(k) / 2000 - share) < 0.05 for k, share in enumerate([0.5, 0.25, 0.25])] == [True] * 3
    assert values(Dataset.random(seed=1).take(3)) == values(Dataset.random(seed=1).take(3))


def test_what_is_out_of_scope_says_what_to_use():
    with pytest.raises(AttributeError, match=r"tf\.data\.TFRecordDataset is out of scope: [\s\S]*from_tensor_slices"):
        tf.data.TFRecordDataset  # noqa: B018
    with pytest.raises(AttributeError, match="Cannot set the property nonsense on Options"):
        tf.data.Options().nonsense = 1


def test_older_spellings():
    experimental = tf.data.experimental
    assert values(Dataset.range(4).apply(experimental.map_and_batch(lambda x: x + 1, 2))) == [[1, 2], [3, 4]]
    assert sorted(values(Dataset.range(3).apply(experimental.shuffle_and_repeat(3, count=2)))) == [0, 0, 1, 1, 2, 2]
    assert values(Dataset.range(3).apply(experimental.prefetch_to_device("/gpu:0"))) == [0, 1, 2]
    assert int(experimental.get_next_as_optional(iter(Dataset.range(1))).get_value()) == 0
