"""`model.export`: what is loaded computes what the model predicts, without the model."""

import subprocess
import sys

import numpy as np
import pytest

import gradtape as tf
from gradtape import keras

pytest.importorskip("jax")
layers = keras.layers


def perceptron():
    inner = [layers.Dense(8, activation="gelu"), layers.BatchNormalization(), layers.Dropout(0.5), layers.Dense(3)]
    return keras.Sequential([keras.Input((6,)), *inner]), [((6,), "float32")]


def convolutional():
    inner = [layers.Conv2D(4, 3, activation="relu"), layers.MaxPooling2D(), layers.Conv2D(4, 3, strides=2, padding="same")]
    return keras.Sequential([keras.Input((12, 12, 3)), *inner, layers.Flatten(), layers.Dense(2)]), [((12, 12, 3), "float32")]


def recurrent():
    inner = [layers.Embedding(10, 4, mask_zero=True), layers.Bidirectional(layers.LSTM(5)), layers.Dense(2)]
    return keras.Sequential([keras.Input((7,), dtype="int32"), *inner]), [((7,), "int32")]


def attentive():
    x = keras.Input((5, 8))
    y = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True))
    return keras.Model(x, layers.Dense(3)(y)), [((5, 8), "float32")]


def of_two_inputs():
    a, b = keras.Input((4,), name="a"), keras.Input((3, 4), name="b")
    return keras.Model([a, b], [layers.Dot((1, 2))([a, b]), layers.Dense(2)(a)]), [((4,), "float32"), ((3, 4), "float32")]


def of_a_dictionary():
    named = {"left": keras.Input((4,), name="left"), "right": keras.Input((4,), name="right")}
    return keras.Model(named, {"sum": layers.Dense(2)(named["left"] + named["right"])}), [((4,), "float32")] * 2


def augmented():
    inner = [layers.Rescaling(0.1), layers.RandomFlip(), layers.RandomRotation(0.1), layers.GaussianNoise(1.0)]
    head = [layers.Conv2D(3, 3), layers.AveragePooling2D(2), layers.GlobalMaxPooling2D()]
    return keras.Sequential([keras.Input((8, 8, 2)), *inner, *head]), [((8, 8, 2), "float32")]


def many_layers():
    inner = [
        layers.TimeDistributed(layers.Dense(4)), layers.GRU(4, return_sequences=True), layers.Conv1D(4, 3, padding="causal"),
        layers.GroupNormalization(2), layers.PReLU(), layers.Permute((2, 1)), layers.Reshape((2, -1)), layers.LSTM(3),
        layers.RepeatVector(2), layers.ZeroPadding1D(1), layers.Flatten(), layers.UnitNormalization(),
    ]  # fmt: skip
    return keras.Sequential([keras.Input((5, 3)), *inner]), [((5, 3), "float32")]


def regularized():
    inner = [layers.GRU(3, dropout=0.2, return_sequences=True), layers.LSTM(3, dropout=0.2)]  # masks are drawn, and not needed
    return keras.Sequential([keras.Input((4, 3)), *inner, layers.Dense(2, activity_regularizer="l2")]), [((4, 3), "float32")]


def in_bfloat16():
    x = keras.Input((5, 8))
    y = x
    for _ in range(3):
        y = layers.LayerNormalization(dtype="mixed_bfloat16")(y + layers.MultiHeadAttention(2, 4, dtype="mixed_bfloat16")(y, y))
    return keras.Model(x, layers.Dense(3)(y)), [((5, 8), "float32")]


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(2)

    def call(self, x, training=False):
        return self.dense(x) + (1.0 if training else 0.0)


def subclassed():
    model = Subclassed()
    model(np.zeros((1, 3), "float32"))
    return model, [((3,), "float32")]


def examples(kinds, n, model):
    generator = np.random.default_rng(n)
    draw = {"int32": lambda size: generator.integers(0, 10, size), "float32": lambda size: generator.normal(size=size)}
    arrays = [draw[dtype]((n, *shape)).astype(dtype) for shape, dtype in kinds]
    if isinstance(getattr(model, "_inputs_struct", None), dict):
        return dict(zip(model._inputs_struct, arrays))
    return arrays[0] if len(arrays) == 1 else arrays


MODELS = [perceptron, convolutional, recurrent, attentive, of_two_inputs, of_a_dictionary, subclassed, augmented, many_layers]
MODELS += [in_bfloat16, regularized]


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_what_is_loaded_computes_what_the_model_predicts(make, tmp_path):
    model, kinds = make()
    for weight in model.weights:
        if weight.dtype == "float32" and "seed" not in weight.path:
            weight.assign(np.random.default_rng(0).random(weight.shape))
    model.export(tmp_path / "served", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "served")
    for n in (1, 5):
        x = examples(kinds, n, model)
        result, expected = loaded.serve(x), model.predict(x, verbose=0)
        tf.nest.assert_same_structure(result, expected, check_types=False)
        for a, b in zip(tf.nest.flatten(result), tf.nest.flatten(expected)):
            tolerance = 2e-2 if make is in_bfloat16 else 1e-5
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
    assert sorted(loaded.signatures) == ["serve", "serving_default"]
    _same_gradients(model, loaded, x, tolerance=5e-2 if make is in_bfloat16 else 1e-4)


def _same_gradients(model, loaded, x, tolerance):
    """By all weights: to go on training does not need the model."""

    def gradients(call, variables):
        with tf.GradientTape() as tape:
            loss = tf.add_n([tf.reduce_mean(tf.sin(y)) for y in tf.nest.flatten(call(x))])
        return [tf.convert_to_tensor(g).numpy() for g in tape.gradient(loss, variables)]

    by_name = {variable.name.removesuffix(":0"): variable for variable in loaded.serve.trainable_variables}
    found = gradients(loaded.serve, [by_name[v.path] for v in model.trainable_variables])
    expected = gradients(lambda x: model(x, training=False), model.trainable_variables)
    size = max(np.abs(g).max() for g in expected)  # some are 0, but for rounding
    for variable, a, b in zip(model.trainable_variables, found, expected):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * size, err_msg=variable.path)


def test_it_runs_where_there_is_no_keras(tmp_path):
    model, kinds = convolutional()
    model.export(tmp_path / "served", verbose=False)
    x = examples(kinds, 3, model)
    np.save(tmp_path / "x.npy", x)
    code = (
        "import sys, numpy as np, gradtape as tf; sys.modules['keras'] = None; "
        f"y = tf.saved_model.load({str(tmp_path / 'served')!r}).serve(np.load({str(tmp_path / 'x.npy')!r})); "
        f"np.save({str(tmp_path / 'y.npy')!r}, y)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), model.predict(x, verbose=0), rtol=1e-5, atol=1e-6)


def test_what_trains_the_model_is_not_written(tmp_path):
    model, kinds = perceptron()
    model.compile("adam", "mse")
    x = examples(kinds, 8, model)
    model.fit(x, np.zeros((8, 3)), verbose=0)
    model.export(tmp_path, verbose=False)
    assert len(tf.saved_model.load(tmp_path).variables) == len(model.variables) < len(model.optimizer.variables)


class Scaled(keras.Model):
    """Attributes that Keras does not look after."""

    def __init__(self, value):
        super().__init__()
        self.dense = layers.Dense(2, kernel_initializer="ones")
        self.scale, self.module, self.parts = tf.Variable(value), tf.Module(), [{"bias": tf.Variable(value)}]
        self.module.power = tf.Variable(value)
        self.by_keras = [self.add_weight(name="own", initializer="ones")]

    def call(self, x):
        return self.dense(x) * self.scale**self.module.power + self.parts[0]["bias"]


def test_variables_that_keras_does_not_track(tmp_path):
    x = np.ones((2, 3), "float32")
    model, other = Scaled(2.0), Scaled(5.0)
    expected = model(x)
    model.export(tmp_path / "served", verbose=False)
    np.testing.assert_allclose(tf.saved_model.load(tmp_path / "served").serve(x), expected)
    path = tf.train.Checkpoint(model).save(tmp_path / "checkpoint")
    names = [name.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE") for name, _ in tf.train.list_variables(path)]
    tracked = ["dense/bias", "dense/kernel", "own", "save_counter"]  # under the names that they had before there were others
    assert names == sorted([*tracked, "module/power", "parts/0/bias", "scale"])
    status = tf.train.Checkpoint(other).restore(path)
    np.testing.assert_allclose(other(x), expected)
    status.assert_consumed()


def test_what_draws_or_assigns_is_refused(tmp_path):
    inner = [layers.BatchNormalization(), layers.Dropout(0.5)]
    for layer, why in zip(inner, ["assigns variables: .*moving_mean", "draws random numbers"]):
        archive = keras.export.ExportArchive()
        model = keras.Sequential([keras.Input((3,)), layer])
        archive.track(model)
        spec = [keras.InputSpec(shape=(None, 3), dtype="float32")]
        archive.add_endpoint("train", lambda x, model=model: model(x, training=True), spec)
        with pytest.raises(tf.errors.UnimplementedError, match=why):
            archive.write_out(tmp_path)


def test_an_archive_has_endpoints_and_collections(tmp_path, capsys):
    model, kinds = perceptron()
    archive = keras.export.ExportArchive()
    with pytest.raises(ValueError, match="No endpoints"):
        archive.write_out(tmp_path)
    archive.track(model)
    archive.add_endpoint("call", lambda x: model(x, training=False), [keras.InputSpec(shape=(None, 6), dtype="float32")])
    both = tf.function(lambda x, y: model(x, training=False) + y)
    with pytest.raises(ValueError, match="never been called"):
        archive.add_endpoint("both", both)
    x = examples(kinds, 2, model)
    both(x, 1.0)
    both(examples(kinds, 3, model), 1.0)  # the first one is the signature, and both can be called
    archive.add_endpoint("both", both)
    archive.add_variable_collection("kernels", [layer.kernel for layer in model.layers if hasattr(layer, "kernel")])
    for wrong, why in (
        (lambda: archive.add_endpoint("call", both), "already taken"),
        (lambda: archive.add_endpoint("f", lambda x: x), "must provide an `input_signature`"),
        (lambda: archive.add_endpoint("f", both, [tf.TensorSpec([1, 6])], is_static=True), "only supported with the jax"),
        (lambda: archive.track(layers.Dense(2)), "not yet been built"),
        (lambda: archive.track(3), "Invalid resource"),
        (lambda: archive.add_variable_collection("v", [1]), "list/tuple/set of variables"),
    ):
        with pytest.raises(ValueError, match=why):
            wrong()
    archive.write_out(tmp_path)
    assert "Endpoint 'call'" in capsys.readouterr().out
    loaded = tf.saved_model.load(tmp_path)
    np.testing.assert_allclose(loaded.call(x), model.predict(x, verbose=0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(loaded.both(x, 1.0), model.predict(x, verbose=0) + 1, rtol=1e-5, atol=1e-6)
    assert [v.shape for v in loaded.kernels] == [(6, 8), (8, 3)]
    assert len(archive.variables) == len(model.variables)
    assert len(archive.trainable_variables) + len(archive.non_trainable_variables) == len(model.variables)


@pytest.mark.parametrize("format", ["onnx", "openvino", "litert", "torch"])
def test_formats_of_others_say_where_they_are_written(format, tmp_path):
    model, _ = perceptron()
    with pytest.raises(NotImplementedError, match=r"(?s)cannot be exported as.*model\.keras"):
        model.export(tmp_path / "x", format=format)
    with pytest.raises(ValueError, match="Unrecognized format"):
        model.export(tmp_path / "x", format="paper")


def test_a_signature_of_ones_own(tmp_path):
    model, kinds = recurrent()
    model.export(tmp_path, input_signature=[keras.InputSpec(shape=(2, 7), dtype="int32")], verbose=False)
    loaded = tf.saved_model.load(tmp_path)
    x = examples(kinds, 2, model)
    np.testing.assert_allclose(loaded.serve(x), model.predict(x, verbose=0), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="matching concrete function"):
        loaded.serve(examples(kinds, 3, model))
