"""Saving: files pass between backends, a bad file changes nothing, and checkpoints follow Keras's objects."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import saved_models

import gradtape as tf
from gradtape import errors, keras

FILES = Path(__file__).parent.parent / "goldens" / "keras"


def values(model):
    optimizer = [] if getattr(model, "optimizer", None) is None else model.optimizer.variables
    return [np.array(v) for v in (*model.weights, *optimizer)]


def same(xs, ys):
    return len(xs) == len(ys) and all(np.array_equal(x, y) for x, y in zip(xs, ys))


def contents(file):
    """The names, shapes and dtypes in the weights of a `.keras` or `.h5` file."""
    h5py = pytest.importorskip("h5py")
    if str(file).endswith(".keras"):
        with zipfile.ZipFile(file) as archive:
            file = io.BytesIO(archive.read("model.weights.h5"))
    found = {}
    with h5py.File(file) as stored:
        stored.visititems(lambda name, x: found.update({name: (x.shape, str(x.dtype))} if hasattr(x, "dtype") else {}))
    return found


@pytest.fixture(autouse=True)
def _names_begin_anew():
    keras.backend.clear_session(free_memory=False)
    saved_models.custom_layer(keras)


class Doubling(keras.layers.Layer):
    def call(self, x):
        return 2 * x


# Between backends


@pytest.mark.parametrize("name", saved_models.MODELS)
def test_a_file_written_on_jax_loads_here(name):
    """It gives what it gives on TensorFlow, training included."""
    expected = json.loads((FILES / "files.json").read_text())[name]
    model = keras.models.load_model(FILES / f"{name}.keras")
    model.run_eagerly = True
    found = saved_models.described(model, name)
    tolerance = saved_models.TOLERANCE[name]
    assert found.keys() == expected.keys()
    for part in expected:
        for x, y in zip(found[part], expected[part], strict=True):
            np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance, err_msg=part)


@pytest.mark.parametrize("name", saved_models.MODELS)
def test_a_file_written_here_is_like_one_written_on_jax(name, tmp_path):
    model = saved_models.trained(keras, name)
    model.save(tmp_path / "model.keras")
    assert contents(tmp_path / "model.keras") == contents(FILES / f"{name}.keras")
    configs = []
    for file in (tmp_path / "model.keras", FILES / f"{name}.keras"):
        with zipfile.ZipFile(file) as archive:
            config = json.loads(archive.read("config.json"))
        config["compile_config"].pop("run_eagerly", None)
        configs.append({key: config[key] for key in ("module", "class_name", "build_config")})
        configs[-1]["layers"] = [(layer["class_name"], layer["config"].get("name")) for layer in config["config"]["layers"]]
    assert configs[0] == configs[1]


def test_weights_written_on_jax():
    model = saved_models.dense(keras)
    model.load_weights(FILES / "dense.weights.h5")
    expected = json.loads((FILES / "files.json").read_text())["dense"]["predictions"]
    np.testing.assert_allclose(model(saved_models.data("dense")[0]), expected, rtol=1e-5, atol=1e-6)


def test_round_trip(tmp_path):
    model = saved_models.trained(keras, "image")
    model.save(tmp_path / "model.keras")
    model.save(tmp_path / "model.h5")
    again = keras.models.load_model(tmp_path / "model.keras")
    older = keras.models.load_model(tmp_path / "model.h5", compile=False)
    assert same(values(model), values(again))
    assert same([v.numpy() for v in model.weights], [v.numpy() for v in older.weights])
    again.run_eagerly = True
    for each in (model, again):
        each.fit(*saved_models.data("image"), epochs=2, shuffle=False, verbose=0)
    assert same(values(model), values(again))


def test_custom_objects(tmp_path):
    model = keras.Sequential([keras.Input((2,)), Doubling()])
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras", custom_objects={"Doubling": Doubling})
    assert type(again.layers[0]) is Doubling


# Bad files


@pytest.mark.parametrize("part", [0.0, 0.3, 0.9, 0.999])
def test_a_truncated_file_changes_nothing(part, tmp_path):
    model = saved_models.trained(keras, "dense")
    before = values(model)
    for name in ("dense.keras", "dense.weights.h5"):
        whole = (FILES / name).read_bytes()
        (tmp_path / name).write_bytes(whole[: int(len(whole) * part)])
        with pytest.raises((OSError, ValueError, zipfile.BadZipFile), match=r"(?i)truncated|signature|file"):
            model.load_weights(tmp_path / name)
        assert same(before, values(model))
    with pytest.raises(ValueError, match=r"(?s)not a `.keras` zip file.*broken off"):
        keras.models.load_model(tmp_path / "dense.keras")


def test_damaged_bytes_in_a_file(tmp_path):
    whole = bytearray((FILES / "dense.keras").read_bytes())
    whole[len(whole) // 2] ^= 0xFF
    (tmp_path / "bad.keras").write_bytes(whole)
    with pytest.raises((zipfile.BadZipFile, ValueError), match="Bad CRC-32"):  # which one depends on how h5py reads
        keras.models.load_model(tmp_path / "bad.keras")


def test_weights_that_do_not_fit_change_nothing(tmp_path):
    """The first layers fit, and would be loaded before the last one says no."""
    small, large = (keras.Sequential([keras.Input((2,)), keras.layers.Dense(3), keras.layers.Dense(units)]) for units in (1, 2))
    large.save_weights(tmp_path / "large.weights.h5")
    before = values(small)
    with pytest.raises(ValueError, match="could not be loaded"):
        small.load_weights(tmp_path / "large.weights.h5")
    assert same(before, values(small))
    with pytest.warns(UserWarning, match="could not be loaded"):
        small.load_weights(tmp_path / "large.weights.h5", skip_mismatch=True)
    assert same(values(small)[:2], values(large)[:2])
    with pytest.raises((OSError, ValueError), match=r"(?i)no such file|not found"):
        small.load_weights(tmp_path / "missing.weights.h5")


@pytest.mark.filterwarnings("ignore:Skipping nested container")
def test_weights_that_do_not_fit_leave_adapted_layers_as_they_were(tmp_path):
    def adapted(data, weights, units):
        lookup = keras.layers.IntegerLookup(vocabulary=[1, 2], idf_weights=weights, output_mode="tf_idf", name="lookup")
        scale = keras.layers.Normalization(name="scale")
        scale.adapt(np.array(data, "float32"))
        x, n = keras.Input((2,)), keras.Input((3,), dtype="int64")
        joined = keras.layers.Concatenate()([scale(x), lookup(n)])
        return keras.Model([x, n], keras.layers.Dense(units, name="dense")(joined))

    inputs = [tf.constant([[1.0, 2.0]]), tf.constant([[1, 2, 5]], tf.int64)]
    adapted([[7.0, 8.0], [1.0, 3.0]], [5.0, 6.0], 3).save_weights(tmp_path / "other.weights.h5")
    model = adapted([[0.0, 1.0], [2.0, 5.0]], [0.5, 0.25], 1)
    before = np.array(model(inputs))
    with pytest.raises(ValueError, match="could not be loaded"):
        model.load_weights(tmp_path / "other.weights.h5")
    np.testing.assert_array_equal(before, np.array(model(inputs)))


def test_unknown_layer(tmp_path):
    model = keras.Sequential([keras.Input((2,)), saved_models.custom_layer(keras)(2.0)])
    model.save(tmp_path / "model.keras")
    config = zipfile.ZipFile(tmp_path / "model.keras").read("config.json").decode()
    with zipfile.ZipFile(tmp_path / "model.keras") as old, zipfile.ZipFile(tmp_path / "other.keras", "w") as new:
        for name in old.namelist():
            new.writestr(name, config.replace("Scaled", "Unheard") if name == "config.json" else old.read(name))
    with pytest.raises(TypeError, match="Could not locate class 'Unheard'"):
        keras.models.load_model(tmp_path / "other.keras")


def test_a_saved_model_has_the_variables_of_layers(tmp_path):
    model = saved_models.mixed(keras)
    tf.saved_model.save(model, tmp_path / "variables")
    loaded = tf.saved_model.load(tmp_path / "variables")
    np.testing.assert_array_equal(loaded.layers[0].kernel, model.layers[0].kernel.numpy())


def test_paths_that_are_not_local(tmp_path):
    model = saved_models.mixed(keras)
    model.save(tmp_path / "model.keras")
    assert same(values(keras.models.load_model(f"file://{tmp_path}/model.keras")), values(model))
    for use in (model.save, keras.models.load_model):
        with pytest.raises(errors.UnimplementedError, match=r"(?s)scheme 'gs' not implemented.*copy or mount the files"):
            use("gs://bucket/model.keras")


def test_lora_on_four_bit_embeddings(tmp_path):
    layer = keras.layers.Embedding(5, 8)
    layer.build()
    layer.quantize("int4")
    layer.enable_lora(2)
    assert layer.quantization_mode == "int4"
    assert not layer._embeddings.trainable
    model = keras.Sequential([layer, keras.layers.GlobalAveragePooling1D()])
    model.compile("sgd", "mse")
    before = layer(np.arange(5)).numpy()
    model.fit(np.arange(10).reshape(5, 2) % 5, np.ones((5, 8)), verbose=0)
    assert not np.allclose(layer(np.arange(5)), before)
    model.save(tmp_path / "model.keras")
    after = keras.models.load_model(tmp_path / "model.keras")(np.arange(5)[:, None])
    np.testing.assert_allclose(after, model(np.arange(5)[:, None]), atol=0.01)  # merged, and rounded to four bits again


# Checkpoints


def test_checkpoint_of_model_and_optimizer(tmp_path):
    model = saved_models.trained(keras, "dense")
    step = keras.Variable(5.0)
    path = tf.train.Checkpoint(model=model, optimizer=model.optimizer, step=step).save(tmp_path / "ckpt")
    other = saved_models.dense(keras)
    optimizer = saved_models.optimizer(keras, "dense")
    optimizer.build(other.trainable_variables)
    again = tf.train.Checkpoint(model=other, optimizer=optimizer, step=keras.Variable(0.0))
    again.restore(path).expect_partial()  # the model that was saved had metrics, too
    assert same([v.numpy() for v in model.variables], [v.numpy() for v in other.variables])
    assert same([v.numpy() for v in model.optimizer.variables], [v.numpy() for v in optimizer.variables])
    assert float(again.step.numpy()) == 5.0


class Classifier(keras.Model):
    def __init__(self):
        super().__init__()
        self.blocks = [keras.layers.Dense(3, name=f"block_{n}") for n in range(2)]
        self.head = keras.layers.Dense(1)

    def call(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def step_of(model, optimizer):
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(x) ** 2)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    return step


@pytest.mark.parametrize("how", ["eager", "compiled"])
def test_checkpoint_before_anything_is_built(how, tmp_path):
    if how == "compiled":
        pytest.importorskip("jax")
    x = tf.ones((2, 4))
    model, optimizer = Classifier(), keras.optimizers.Adam(0.1)
    step = step_of(model, optimizer)
    step(x)
    path = tf.train.Checkpoint(model=model, optimizer=optimizer).write(tmp_path / "ckpt")
    expected = [float(step(x)), float(step(x))]
    other, fresh = Classifier(), keras.optimizers.Adam(0.1)
    status = tf.train.Checkpoint(model=other, optimizer=fresh).read(path)
    again = step_of(other, fresh)
    again = tf.function(again) if how == "compiled" else again
    np.testing.assert_allclose([float(again(x)), float(again(x))], expected, rtol=1e-5)
    status.assert_consumed()


def test_checkpoint_of_lists_that_grow_later(tmp_path):
    class Parts(keras.Model):
        def __init__(self, count):
            super().__init__()
            self.rows, self.named, self.nested = [], {}, [[]]
            for n in range(count):
                self.add(n)

        def add(self, n):
            self.rows.append(keras.layers.Dense(2))
            self.named[str(n)] = keras.layers.Dense(2)
            self.nested[0] += [keras.layers.Dense(2)]

        def layers_of(self, n):
            return self.rows[n], self.named[str(n)], self.nested[0][n]

    def built(model, n):
        for layer in model.layers_of(n):
            layer.build((None, 2))
        return [layer.kernel.numpy() for layer in model.layers_of(n)]

    saved, other = Parts(2), Parts(0)
    kernels = [built(saved, n) for n in range(2)]
    status = tf.train.Checkpoint(model=other).read(tf.train.Checkpoint(model=saved).write(tmp_path / "ckpt"))
    for n in range(2):
        other.add(n)
        assert same(built(other, n), kernels[n])  # before the model is called
    status.assert_consumed()


def test_checkpoint_of_another_shape_changes_nothing(tmp_path):
    model, other = (keras.Sequential([keras.Input((2,)), keras.layers.Dense(units)]) for units in (3, 4))
    path = tf.train.Checkpoint(model=model).write(tmp_path / "ckpt")
    before = values(other)
    with pytest.raises(ValueError, match="incompatible tensor with shape"):
        tf.train.Checkpoint(model=other).read(path)
    assert same(before, values(other))
