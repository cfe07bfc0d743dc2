"""Tables from files, inside functions and pipelines; what TensorFlow answers is in goldens/functions/lookup.txt."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as tf

WHOLE_LINE, LINE_NUMBER = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER


@pytest.fixture
def towns(tmp_path):
    file = tmp_path / "towns.txt"
    file.write_text("Ulm 478\nRom 43\nAalen 433\n")
    return str(file)


def table(file, *columns, default=-1, **options):
    return tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(file, *columns, delimiter=" ", **options), default)


def test_columns_of_a_file(towns):
    heights = table(towns, tf.string, 0, tf.int64, 1)
    np.testing.assert_array_equal(heights.lookup(["Rom", "Ulm", "Bonn"]), [43, 478, -1])
    names = table(towns, tf.int64, LINE_NUMBER, tf.string, WHOLE_LINE, default="?")
    assert names.lookup(tf.constant([2, 3], tf.int64)).numpy().tolist() == [b"Aalen 433", b"?"]
    numbers = table(towns, tf.string, 0, tf.int64, LINE_NUMBER, vocab_size=2, value_index_offset=10)
    np.testing.assert_array_equal(numbers.lookup(["Ulm", "Rom", "Aalen"]), [10, 11, -1])


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ((tf.string, 0, tf.int64, 2), {}, r"line 0 \(Ulm 478\) : expected at least 3 got 2"),
        ((tf.string, 1, tf.int64, 0), {}, "Field Ulm in line 0 is not a valid int64"),
        ((tf.string, 0, tf.int64, 1), {"vocab_size": 4}, "expected 4 but got 3"),
    ],
    ids=["columns", "number", "size"],
)
def test_a_file_that_does_not_fit(towns, columns, options, words):
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        table(towns, *columns, **options)


def test_in_functions_and_pipelines():
    found = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [1.0, 2.0]), 0.0)
    weight = tf.Variable(3.0)
    assert float(tf.function(lambda keys: weight * tf.reduce_sum(found.lookup(keys)))(tf.constant(["a", "b"]))) == 9.0
    numbers = tf.data.Dataset.from_tensor_slices(["b", "x", "a"]).map(found.lookup)
    assert [float(number) for number in numbers] == [2.0, 0.0, 1.0]


def test_tables_say_what_they_hold():
    vocabulary = tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(["a"], [0], value_dtype=tf.int64), 2)
    assert repr(vocabulary) == "<StaticVocabularyTable of 1 keys and 2 numbers for others>"
    assert (
        repr(tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0)) == "<MutableHashTable of 0 keys, string to int64>"
    )


def test_an_initializer_of_ones_own():
    """Programs subclass TensorFlow's initializers: to leave a table empty until a checkpoint fills it, for one."""

    class Empty(tf.lookup.KeyValueTensorInitializer):
        def __init__(self):
            self._key_dtype, self._value_dtype = tf.string, tf.int64

        def initialize(self, table):
            assert table.key_dtype is tf.string

    table = tf.lookup.StaticHashTable(Empty(), -1)
    assert table.size() == 0
    np.testing.assert_array_equal(table.lookup(["a"]), [-1])
