"""Preprocessing layers: as tf.keras gives them, in data pipelines, in models, compiled."""

from __future__ import annotations

import json

import numpy as np
import pytest
from function_calls import FOLDER, calls, close, outcome

import gradtape as tf
from gradtape import keras

layers = keras.layers
GOLDENS = json.loads((FOLDER / "keras" / "preprocessing.json").read_text())["calls"]

# The calls that come out otherwise on purpose
DIFFERS = {
    "tf.keras.layers.Resizing(3,2,interpolation='bicubic')(floats(4,4,3))": "the cubic kernel itself, not a coarse table of it",
    "tf.keras.ops.image.sobel_edges(floats(1,4,4,1))": "zeros beyond the edges, as on Keras's other backends",
}


def images(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(0, 255, shape).astype(np.float32)


@pytest.mark.parametrize("call", calls("keras/preprocessing"))
def test_as_tf_keras(call):
    ours, theirs = outcome(tf, call), GOLDENS[call]
    assert ours.get("error") == theirs.get("error"), (ours, theirs)
    if "value" in theirs:
        assert close(ours["value"], theirs["value"]) != (call in DIFFERS), (ours, theirs)


# Pipelines


@pytest.mark.parametrize(
    "layer",
    [
        lambda: layers.Rescaling(1 / 255),
        lambda: layers.Resizing(3, 4),
        lambda: layers.Normalization(mean=[1.0, 2.0, 3.0], variance=[1.0, 2.0, 4.0]),
        lambda: layers.CenterCrop(4, 5),
        lambda: layers.RandomFlip(seed=1),
        lambda: layers.RandomRotation(0.2, seed=1),
        lambda: layers.RandomContrast(0.5, seed=1),
        lambda: layers.Pipeline([layers.Rescaling(2.0), layers.Resizing(2, 2)]),
    ],
    ids=["Rescaling", "Resizing", "Normalization", "CenterCrop", "RandomFlip", "RandomRotation", "RandomContrast", "Pipeline"],
)
def test_a_dataset_mapped_by_a_layer_has_what_the_layer_gives(layer):
    x = images(6, 6, 6, 3)
    mapped = list(tf.data.Dataset.from_tensor_slices(x).batch(2).map(layer()))
    alone = layer()
    for at, batch in enumerate(mapped):
        np.testing.assert_array_equal(batch, alone(x[2 * at : 2 * at + 2]))


def test_layers_in_several_threads_of_a_pipeline():
    text = layers.TextVectorization(vocabulary=["cat", "dog"], output_sequence_length=3)
    words = [f"cat {'dog ' * (n % 3)}" for n in range(20)]
    dataset = tf.data.Dataset.from_tensor_slices((words, np.arange(20)))
    found = list(dataset.batch(4).map(lambda x, y: (text(x), y), num_parallel_calls=4).prefetch(2))
    np.testing.assert_array_equal(np.concatenate([y for _, y in found]), np.arange(20))
    np.testing.assert_array_equal(np.concatenate([x for x, _ in found]), text(words))


def test_adapting_to_a_dataset_is_adapting_to_its_rows():
    x = images(10, 3)
    whole, by_batch = layers.Normalization(), layers.Normalization()
    whole.adapt(x)
    by_batch.adapt(tf.data.Dataset.from_tensor_slices(x).batch(4))
    np.testing.assert_allclose(by_batch(x), whole(x), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.mean(whole(x), 0), 0, atol=1e-5)


# Models


def test_a_model_of_strings_is_trained_saved_and_loaded(tmp_path):
    text = layers.TextVectorization(output_sequence_length=3)
    text.adapt(["good film", "bad film"])
    inputs = keras.Input((1,), dtype="string")
    model = keras.Model(inputs, layers.Dense(1)(layers.Flatten()(layers.Embedding(8, 4)(text(inputs)))))
    model.compile(keras.optimizers.SGD(0.5), "mse")
    words, labels = np.array([["good film"], ["bad film"]]), np.array([[1.0], [0.0]])
    losses = model.fit(tf.data.Dataset.from_tensor_slices((words, labels)).batch(2), epochs=4, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(tf.constant(words)), model(tf.constant(words)))


def test_gradients_pass_through_layers_of_images():
    """Every one of them is linear, so the gradient of a sum, times the images, is the sum."""
    x = tf.constant(images(2, 6, 6, 3))
    stack = keras.Sequential([layers.Rescaling(1 / 255), layers.Resizing(4, 4), layers.RandomRotation(0.1, seed=2)])
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.reduce_sum(stack(x, training=True))
    np.testing.assert_allclose(np.sum(tape.gradient(total, x) * x), total, rtol=1e-5)


@pytest.mark.parametrize("name", ["RandomFlip", "RandomTranslation", "RandomBrightness", "RandomHue"])
def test_compiled_layers_are_random_from_call_to_call(name):
    pytest.importorskip("jax")
    arguments = {"RandomTranslation": (0.3, 0.3), "RandomBrightness": (0.5,), "RandomHue": (0.5,)}.get(name, ())
    layer = getattr(layers, name)(*arguments, seed=5)
    same = getattr(layers, name)(*arguments, seed=5)
    x = tf.constant(images(4, 5, 5, 3))
    compiled = tf.function(lambda v: layer(v, training=True))
    results = [compiled(x).numpy() for _ in range(4)]
    assert not all(np.array_equal(results[0], other) for other in results[1:])
    for result in results:
        np.testing.assert_allclose(result, same(x, training=True), rtol=1e-4, atol=1e-2)


def test_seeds_of_keras_are_seeds_of_gradtape():
    keras.utils.set_random_seed(3)
    first = tf.random.normal([2])
    keras.utils.set_random_seed(3)
    np.testing.assert_array_equal(tf.random.normal([2]), first)


# Files


def test_images_of_a_folder(tmp_path):
    for label in ("cat", "dog"):
        (tmp_path / label).mkdir()
        for n in range(3):
            pixels = tf.constant(images(7, 8, 3).astype(np.uint8))
            tf.io.write_file(str(tmp_path / label / f"{n}.png"), tf.io.encode_png(pixels))
    dataset = keras.utils.image_dataset_from_directory(tmp_path, image_size=(4, 5), batch_size=4, seed=1)
    assert dataset.class_names == ["cat", "dog"]
    shapes = [(tuple(x.shape), tuple(y.shape)) for x, y in dataset]
    assert shapes == [((4, 4, 5, 3), (4,)), ((2, 4, 5, 3), (2,))]


# Bad input


def test_words_outside_a_closed_vocabulary():
    with pytest.raises(Exception, match="found OOV values"):
        layers.StringLookup(vocabulary=["a"], num_oov_indices=0)(["b"])


def test_floats_are_no_categories():
    with pytest.raises(ValueError, match="integer or string"):
        layers.HashedCrossing(5)(([1.0], [2.0]))
