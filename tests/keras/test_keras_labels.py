"""Class labels out of range: `fit`, `evaluate` and their kin raise as Keras on TensorFlow does, and change nothing."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as tf

keras = pytest.importorskip("gradtape.keras")
pytest.importorskip("jax")

X = np.linspace(-1.0, 1.0, 36, dtype=np.float32).reshape(12, 3)
GOOD = np.arange(12) % 3
RANGE = r"label value of (3|-1|-2147483648) which is outside the valid range of \[0, 3\)"


def model_of(loss=None, **options):
    layers = [keras.layers.Dense(4), keras.layers.BatchNormalization(), keras.layers.Dense(3, activation="softmax")]
    model = keras.Sequential([keras.Input((3,)), *layers])
    model.compile(
        "adam", loss or keras.losses.SparseCategoricalCrossentropy(), metrics=["sparse_categorical_accuracy"], **options
    )
    model.fit(X, GOOD, batch_size=4, verbose=0)
    return model


def state(model):
    """The model's, the optimizer's; metrics begin anew in every call."""
    return [np.array(v) for v in (*model.variables, *model.optimizer.variables)]


def dataset(labels):
    return tf.data.Dataset.from_tensor_slices((X[: len(labels)], labels)).batch(4)


CALLS = {
    "fit": lambda model, y: model.fit(X[:4], y, batch_size=4, verbose=0),
    "fit a dataset": lambda model, y: model.fit(dataset(y), verbose=0),
    "train_on_batch": lambda model, y: model.train_on_batch(X[:4], y),
    "test_on_batch": lambda model, y: model.test_on_batch(X[:4], y),
    "evaluate": lambda model, y: model.evaluate(X[:4], y, verbose=0),
    "evaluate a dataset": lambda model, y: model.evaluate(dataset(y), verbose=0),
}
WRONG = {
    "from 1": np.array([1, 2, 3, 1]), "negative": np.array([0, 1, 2, -1]), "a column": np.array([[1], [2], [3], [1]]),
    "float": np.array([1.0, 2.0, 3.0, 1.0]), "nan": np.array([1.0, 2.0, np.nan, 1.0]), "int8": np.array([0, 3, 0, 0], np.int8),
}  # fmt: skip


@pytest.fixture(scope="module", params=[{}, {"run_eagerly": True}, {"jit_compile": True}], ids=["", "eager", "jit"])
def model(request):
    return model_of(**request.param)


@pytest.mark.parametrize("call", CALLS)
def test_it_raises_and_leaves_everything_as_it_was(model, call):
    for name, labels in WRONG.items():
        before = state(model)
        with pytest.raises(tf.errors.InvalidArgumentError, match=RANGE):
            CALLS[call](model, labels)
        for old, new in zip(before, state(model), strict=True):
            np.testing.assert_array_equal(old, new, err_msg=name)


def test_earlier_batches_count_and_training_goes_on():
    model = model_of(steps_per_execution=2)
    steps = int(model.optimizer.iterations)
    labels = np.concatenate([GOOD[:4], GOOD[:4], GOOD[:3], [3]])
    with pytest.raises(tf.errors.InvalidArgumentError, match=RANGE):
        model.fit(X, labels, batch_size=4, shuffle=False, verbose=0)
    assert int(model.optimizer.iterations) == steps + 2
    history = model.fit(X, GOOD, batch_size=4, epochs=2, verbose=0).history
    assert np.isfinite(history["loss"]).all()


@pytest.mark.parametrize("from_logits", [True, False])
def test_a_class_that_is_ignored_may_be_any_number(from_logits):
    model = model_of(keras.losses.SparseCategoricalCrossentropy(from_logits=from_logits, ignore_class=-1))
    ignored = np.where(np.arange(12) % 4, GOOD, -1)
    assert np.isfinite(model.fit(X, ignored, batch_size=4, verbose=0).history["loss"]).all()
    assert np.isfinite(model.evaluate(X, ignored, verbose=0)).all()
    before = state(model)
    for wrong in (3, -2):
        with pytest.raises(tf.errors.InvalidArgumentError, match="outside the valid range of"):
            model.train_on_batch(X, np.where(np.arange(12) % 4, ignored, wrong))
    for old, new in zip(before, state(model), strict=True):
        np.testing.assert_array_equal(old, new)


def test_indices_out_of_an_embedding_are_refused():
    model = keras.Sequential([keras.Input((2,), dtype="int32"), keras.layers.Embedding(5, 3), keras.layers.Flatten()])
    model.add(keras.layers.Dense(3))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    rows = np.array([[0, 4], [1, 1]])
    model.fit(rows, np.array([0, 2]), verbose=0)
    for wrong in (5, -6):  # -1 is the last one, to Keras
        before = state(model)
        for call in (lambda x: model.fit(x, np.array([0, 2]), shuffle=False, verbose=0), lambda x: model.predict(x, verbose=0)):
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1,0\] = (5|-1) is not in \[0, 5\)"):
                call(np.array([[0, 1], [wrong, 1]]))
        for old, new in zip(before, state(model), strict=True):
            np.testing.assert_array_equal(old, new)


def test_metrics_count_labels_out_of_range_as_wrong():
    p = np.eye(3, dtype=np.float32)[[0, 1, 2, 0]]
    labels = np.array([0, 1, 3, -1])
    for compiled in (False, True):
        run = tf.function if compiled else (lambda f: f)
        accuracy = run(lambda y: keras.metrics.sparse_categorical_accuracy(y, tf.constant(p)))(tf.constant(labels))
        np.testing.assert_array_equal(accuracy, [1.0, 1.0, 0.0, 0.0])
        top = run(lambda y: keras.metrics.sparse_top_k_categorical_accuracy(y, tf.constant(p), k=2))(tf.constant(labels))
        np.testing.assert_array_equal(top, [1.0, 1.0, 0.0, 0.0])
