"""`compile`, `fit`, `evaluate`, `predict`: what compiled steps compute, and what happens where they cannot be compiled."""

from __future__ import annotations

import logging
import re
import sys

import numpy as np
import pytest

import gradtape as tf
from gradtape import keras

pytest.importorskip("jax")

RNG = np.random.default_rng(7)
X = RNG.normal(size=(22, 3)).astype("float32")
Y = (X[:, :1] - 2 * X[:, 1:2] + 0.5).astype("float32")
MODES = pytest.mark.parametrize("run_eagerly", [False, True], ids=["compiled", "eager"])


def mlp(**compiled) -> keras.Model:
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(1)])
    model.compile(**{"optimizer": keras.optimizers.SGD(0.05), "loss": "mse", "metrics": ["mae"], **compiled})
    return model


def batches(size: int = 8) -> list:
    return [(X[i : i + size], Y[i : i + size]) for i in range(0, len(X), size)]


def assert_same_weights(model: keras.Model, other: keras.Model, tolerance: float = 1e-5) -> None:
    for found, expected in zip(model.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def assert_same_history(history, other, tolerance: float = 1e-5) -> None:
    assert history.history.keys() == other.history.keys()
    for name, values in history.history.items():
        np.testing.assert_allclose(values, other.history[name], rtol=tolerance, atol=tolerance, err_msg=name)


# Eager, compiled and by hand


def normalized(**compiled) -> keras.Model:
    """With variables that nothing differentiates, losses of its own, and an optimizer that has state."""
    keras.utils.set_random_seed(3)
    first = keras.layers.Dense(4, use_bias=False, kernel_regularizer=keras.regularizers.L2(0.01))
    model = keras.Sequential([keras.Input((3,)), first, keras.layers.BatchNormalization(), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.05), "mse", metrics=["mae"], **compiled)
    return model


def test_fit_is_the_same_compiled_eagerly_and_as_a_loop_with_a_tape():
    options = {"batch_size": 11, "epochs": 4, "shuffle": False, "verbose": 0, "validation_data": (X, Y)}
    compiled, eager, by_hand = normalized(), normalized(run_eagerly=True), normalized()
    assert_same_history(compiled.fit(X, Y, **options), eager.fit(X, Y, **options))
    for _ in range(4):
        for x, y in batches(11):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((by_hand(x, training=True) - y) ** 2.0) + sum(by_hand.losses)
            weights = by_hand.trainable_variables
            by_hand.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
    assert_same_weights(compiled, eager)
    assert_same_weights(compiled, by_hand)
    np.testing.assert_allclose(compiled.predict(X, 11, verbose=0), by_hand(X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("jax", [True, False], ids=["with jax", "without jax"])
def test_an_unbuilt_model_is_built_by_its_first_step(jax, monkeypatch):
    if not jax:
        monkeypatch.setattr("gradtape.function.decorator.can_compile", lambda: False)
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05), "mse", metrics=["mae"])
    options = {"batch_size": 22, "epochs": 2, "verbose": 0}
    assert_same_history(model.fit(X, Y, **options), mlp(run_eagerly=True).fit(X, Y, **options))


def test_steps_per_execution_changes_nothing_but_the_number_of_callbacks():
    counted: list = []
    count = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: counted.append(batch))
    one, several = mlp(run_eagerly=True), mlp(run_eagerly=True, steps_per_execution=2)
    options = {"batch_size": 8, "epochs": 2, "shuffle": False, "verbose": 0}
    assert_same_history(one.fit(X, Y, **options), several.fit(X, Y, callbacks=[count], **options))
    assert counted == [1, 3] * 2
    assert_same_weights(one, several)
    np.testing.assert_allclose(several.predict(X, 8, verbose=0), one.predict(X, 8, verbose=0), rtol=1e-5, atol=1e-6)


def test_a_step_is_traced_once_for_each_size_of_batch():
    sizes: dict = {"train": [], "test": []}

    class Noting(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, x, training=False):
            sizes["train" if training else "test"].append(x.shape[0])
            return self.dense(x)

    model = Noting()
    model.compile("sgd", "mse")
    model(X)
    sizes["test"].clear()
    for _ in range(2):
        model.fit(X, Y, batch_size=8, epochs=3, validation_split=0.25, verbose=0)
    assert (set(sizes["train"]), set(sizes["test"])) == ({8}, {6})
    sizes["train"].clear(), sizes["test"].clear()
    model.fit(X, Y, batch_size=8, epochs=2, validation_data=(X[:7], Y[:7]), verbose=0)
    assert (sizes["train"], sizes["test"]) == ([6], [7])


def test_lengths_that_come_rarely_are_not_worth_a_program(caplog):
    compiled: list = []

    class Noting(keras.layers.Layer):
        def call(self, x):
            if not tf.executing_eagerly():
                compiled.append(x.shape[1])
            return x

    def trained(lengths, **options):
        keras.utils.set_random_seed(5)
        model = keras.Sequential([keras.Input((None, 3)), keras.layers.Dense(2), Noting(), keras.layers.GlobalMaxPooling1D()])
        model.compile("adam", "mse", **options)
        compiled.clear()
        return [model.train_on_batch(np.tile(X[:4, None], (1, n, 1)), np.zeros((4, 2))) for n in lengths]

    lengths = [*range(1, 8), *[8] * 17]
    losses = trained(lengths)
    assert sorted(set(compiled)) == [1, 2, 3, 4, 5, 8]  # the first few, and what comes often
    assert "bucket_by_sequence_length" in caplog.text
    np.testing.assert_allclose(losses, trained(lengths, run_eagerly=True), rtol=1e-5)
    trained(lengths[:6], jit_compile=True)
    assert sorted(set(compiled)) == lengths[:6]


@MODES
def test_losses_of_layers_are_added_and_can_be_read_afterwards(run_eagerly):
    class Active(keras.layers.Layer):
        def call(self, x):
            self.add_loss(10.0 * tf.reduce_mean(x**2.0))
            return x

    model = keras.Sequential([keras.Input((3,)), Active(), keras.layers.Dense(1, kernel_initializer="zeros")])
    model.compile("sgd", "mse", run_eagerly=run_eagerly)
    loss = model.test_on_batch(X, Y)
    np.testing.assert_allclose(loss, np.mean(Y**2) + 10 * np.mean(X**2), rtol=1e-5)
    model.fit(X, Y, batch_size=22, verbose=0)
    assert all(np.isfinite(value) for value in model.losses)


def test_what_optimizers_do_every_few_steps_is_compiled():
    def trained(**compiled):
        sgd = keras.optimizers.SGD(0.05, use_ema=True, ema_overwrite_frequency=2, gradient_accumulation_steps=2)
        model = mlp(optimizer=sgd, **compiled)
        model.fit(X, Y, batch_size=11, epochs=4, shuffle=False, verbose=0)
        return model

    assert_same_weights(trained(jit_compile=True), trained(run_eagerly=True))


# Steps that users write


@MODES
def test_a_train_step_with_a_tape_of_its_own(run_eagerly):
    class Custom(keras.Model):
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                prediction = self(x, training=True)
                loss = self.compute_loss(y=y, y_pred=prediction)
            weights = self.trainable_variables
            self.optimizer.apply(tape.gradient(loss, weights), weights)
            for metric in self.metrics:
                if metric.name == "loss":
                    metric.update_state(loss)
                else:
                    metric.update_state(y, prediction)
            return {m.name: m.result() for m in self.metrics}

    keras.utils.set_random_seed(3)
    inputs = keras.Input((3,))
    model = Custom(inputs, keras.layers.Dense(1)(keras.layers.Dense(5, activation="tanh")(inputs)))
    plain = keras.models.clone_model(model)
    plain = keras.Model(plain.inputs, plain.outputs)
    plain.set_weights(model.get_weights())
    options = {"batch_size": 11, "epochs": 3, "shuffle": False, "verbose": 0}
    model.compile(keras.optimizers.SGD(0.1), "mse", run_eagerly=run_eagerly)
    plain.compile(keras.optimizers.SGD(0.1), "mse", run_eagerly=True)
    assert_same_history(model.fit(X, Y, **options), plain.fit(X, Y, **options))
    assert_same_weights(model, plain)


@pytest.mark.filterwarnings("ignore:.*is deprecated")
def test_a_train_step_written_for_keras_2():
    class Custom(keras.Sequential):
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                prediction = self(x, training=True)
                loss = self.compiled_loss(y, prediction, regularization_losses=self.losses)
            self.optimizer.minimize(loss, self.trainable_variables, tape=tape)
            self.compiled_metrics.update_state(y, prediction)
            return {m.name: m.result() for m in self.metrics}

    plain = mlp(run_eagerly=True)
    model = Custom(keras.models.clone_model(plain).layers)
    model.compile(keras.optimizers.SGD(0.05), "mse", metrics=["mae"], run_eagerly=True)
    model.set_weights(plain.get_weights())
    options = {"batch_size": 8, "epochs": 2, "shuffle": False, "verbose": 0}
    assert_same_history(model.fit(X, Y, **options), plain.fit(X, Y, **options))


@MODES
def test_methods_that_are_functions_already(run_eagerly):
    class Custom(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1, kernel_initializer="zeros")

        @tf.function
        def call(self, x):
            return self.dense(x)

        @tf.function
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x) - y) ** 2.0)
            weights = self.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
            return {"loss": loss}

    model = Custom()
    model.compile(keras.optimizers.SGD(0.1), metrics=["mae"], run_eagerly=run_eagerly)
    history = model.fit(X, Y, batch_size=22, epochs=2, verbose=0).history
    np.testing.assert_allclose(history["loss"][0], np.mean(Y**2), rtol=1e-6)
    assert history["loss"][1] < history["loss"][0]


class Gan(keras.Model):
    """Two networks, two optimizers, two tapes; there is no ``call``."""

    def __init__(self):
        super().__init__()
        keras.utils.set_random_seed(5)
        self.discriminator = keras.Sequential([keras.layers.Dense(8, activation="leaky_relu"), keras.layers.Dense(1)])
        self.generator = keras.Sequential([keras.layers.Dense(8, activation="relu"), keras.layers.Dense(3)])
        self.d_loss, self.g_loss = keras.metrics.Mean("d_loss"), keras.metrics.Mean("g_loss")
        self.noise = keras.random.SeedGenerator(1)

    def compile(self, d_optimizer, g_optimizer, loss, **kwargs):
        super().compile(**kwargs)
        self.d_optimizer, self.g_optimizer, self.loss_fn = d_optimizer, g_optimizer, loss

    @property
    def metrics(self):
        return [self.d_loss, self.g_loss]

    def train_step(self, real):
        size = tf.shape(real)[0]
        noise = keras.random.normal((size, 2), seed=self.noise)
        labels = tf.concat([tf.ones((size, 1)), tf.zeros((size, 1))], 0)
        with tf.GradientTape() as tape:
            judged = self.discriminator(tf.concat([self.generator(noise), real], 0))
            d_loss = self.loss_fn(labels, judged)
        weights = self.discriminator.trainable_weights
        self.d_optimizer.apply_gradients(zip(tape.gradient(d_loss, weights), weights))
        with tf.GradientTape() as tape:
            g_loss = self.loss_fn(tf.zeros((size, 1)), self.discriminator(self.generator(noise)))
        weights = self.generator.trainable_weights
        self.g_optimizer.apply_gradients(zip(tape.gradient(g_loss, weights), weights))
        self.d_loss.update_state(d_loss)
        self.g_loss.update_state(g_loss)
        return {"d_loss": self.d_loss.result(), "g_loss": self.g_loss.result()}


def test_a_gan_trains_the_same_eagerly_and_compiled():
    histories = []
    for run_eagerly in (False, True):
        gan = Gan()
        loss = keras.losses.BinaryCrossentropy(from_logits=True)
        gan.compile(keras.optimizers.SGD(0.1), keras.optimizers.SGD(0.1), loss, run_eagerly=run_eagerly)
        dataset = tf.data.Dataset.from_tensor_slices(X).batch(11)
        histories.append(gan.fit(dataset, epochs=3, verbose=0))
    assert_same_history(*histories, tolerance=1e-4)


def test_control_flow_over_tensors_in_call_and_compute_loss_is_part_of_the_program(caplog):
    class Branching(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1, kernel_initializer="ones")

        def call(self, x):
            y = self.dense(x)
            if tf.reduce_sum(y) > 0.0:
                y = 2.0 * y
            for i in tf.range(tf.cast(tf.reduce_max(x) + 20.0, tf.int32)):
                y = y + 0.001 * tf.cast(i, tf.float32)
            return y

        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            loss = tf.reduce_mean((y - y_pred) ** 2.0)
            return loss if loss < 1.0 else 1.0 + tf.math.log(loss)

    histories = []
    for run_eagerly in (False, True):
        model = Branching()
        model.compile(keras.optimizers.SGD(0.01), run_eagerly=run_eagerly)
        with caplog.at_level(logging.WARNING):
            histories.append(model.fit(X, Y, batch_size=11, epochs=2, shuffle=False, verbose=0))
    assert_same_history(*histories)
    assert not [record for record in caplog.records if "eagerly" in record.getMessage()]


def test_what_xla_cannot_express_runs_eagerly_unless_compilation_is_demanded(caplog):
    class Counting(keras.layers.Layer):
        def call(self, x):
            return x * float(len(np.unique(x.numpy())))

    def model(**options):
        made = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, kernel_initializer="ones"), Counting()])
        made.compile(keras.optimizers.SGD(1e-4), "mse", **options)
        return made

    options = {"batch_size": 22, "epochs": 2, "shuffle": False, "verbose": 0}
    with caplog.at_level(logging.WARNING):
        history = model().fit(X, np.tile(Y, 2), **options)
    assert [record.getMessage().split(" for ")[0] for record in caplog.records] == ["tf.function: train_step runs eagerly"]
    assert_same_history(history, model(run_eagerly=True).fit(X, np.tile(Y, 2), **options))
    with pytest.raises(tf.errors.InvalidArgumentError, match="unsupported operations when trying to compile train_step"):
        model(jit_compile=True).fit(X, np.tile(Y, 2), **options)


# Weights


@MODES
def test_class_and_sample_weights(run_eagerly):
    labels = RNG.integers(0, 3, 22)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(3, kernel_initializer="glorot_uniform")])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.0), loss, run_eagerly=run_eagerly, weighted_metrics=["accuracy"])
    logits = X @ model.get_weights()[0]
    each = np.log(np.exp(logits).sum(1)) - logits[np.arange(22), labels]
    by_class = np.array([1.0, 5.0, 0.5])[labels]
    by_sample = RNG.random(22)
    hits = logits.argmax(1) == labels

    def expected(weights):
        return [np.mean(each * weights), np.sum(hits * weights) / np.sum(weights)]

    class_weight = {1: 5.0, 2: 0.5}
    history = model.fit(X, labels, batch_size=22, class_weight=class_weight, verbose=0).history
    np.testing.assert_allclose([history["loss"][0], history["accuracy"][0]], expected(by_class), rtol=1e-5)
    dataset = tf.data.Dataset.from_tensor_slices((X, labels)).batch(22)
    history = model.fit(dataset, class_weight=class_weight, verbose=0).history
    np.testing.assert_allclose([history["loss"][0], history["accuracy"][0]], expected(by_class), rtol=1e-5)
    np.testing.assert_allclose(model.train_on_batch(X, labels, class_weight=class_weight), expected(by_class), rtol=1e-5)
    np.testing.assert_allclose(model.test_on_batch(X, labels, by_sample), expected(by_sample), rtol=1e-5)
    np.testing.assert_allclose(
        model.evaluate(X, labels, 22, sample_weight=by_sample, verbose=0), expected(by_sample), rtol=1e-5
    )


# Where data comes from


class Sequence(keras.utils.PyDataset):
    def __len__(self):
        return len(batches())

    def __getitem__(self, index):
        return batches()[index]


def endless():
    while True:
        yield from batches()


@pytest.mark.parametrize(
    "data",
    [
        lambda: {"x": tf.constant(X), "y": tf.constant(Y), "batch_size": 8},
        lambda: {"x": X.astype("float64"), "y": Y.astype("float64"), "batch_size": 8},
        lambda: {"x": tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)},
        lambda: {"x": tf.data.Dataset.from_tensor_slices((X, Y)).batch(8).repeat(), "steps_per_epoch": 3},
        lambda: {"x": endless(), "steps_per_epoch": 3},
        lambda: {"x": Sequence()},
    ],
    ids=["tensors", "float64", "dataset", "endless dataset", "generator", "PyDataset"],
)
@pytest.mark.filterwarnings("ignore:`shuffle=True` was passed")
def test_data_of_every_kind_trains_the_same(data):
    expected, found = mlp(run_eagerly=True), mlp(run_eagerly=True)
    options = {"epochs": 2, "shuffle": False, "verbose": 0}
    assert_same_history(found.fit(**data(), **options), expected.fit(X, Y, batch_size=8, **options))
    assert_same_weights(found, expected)


def test_a_dataset_with_validation_and_prediction():
    train = tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(22, seed=1).batch(8).prefetch(2)
    held_out = tf.data.Dataset.from_tensor_slices((X, Y)).batch(5)
    model = mlp(run_eagerly=True)
    history = model.fit(train, validation_data=held_out, epochs=2, verbose=0).history
    np.testing.assert_allclose(
        [history["val_loss"][-1], history["val_mae"][-1]], model.evaluate(held_out, verbose=0), rtol=1e-6
    )
    np.testing.assert_allclose(model.predict(held_out, verbose=0), model.predict(X, verbose=0), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="`y` should not be passed"):
        model.fit(train, Y)
    with pytest.raises(ValueError, match="cannot use `class_weight` and `sample_weight`"):
        model.fit(train.map(lambda x, y: (x, y, y)), class_weight={0: 1.0}, verbose=0)


def test_strings_are_data():
    layers = [keras.layers.StringLookup(vocabulary=["a", "b"]), keras.layers.Embedding(4, 1, "ones"), keras.layers.Flatten()]
    model = keras.Sequential([keras.Input((1,), dtype="string"), *layers])
    model.compile(keras.optimizers.SGD(0.5), "mse")
    model.fit(np.array([["a"], ["a"]], dtype=object), np.zeros((2, 1)), epochs=20, verbose=0)
    found = model.predict(tf.constant([["a"], ["b"]]), verbose=0)
    np.testing.assert_allclose(found, [[0.0], [1.0]], atol=1e-3)


def test_inputs_and_outputs_by_name():
    a, b = keras.Input((3,), name="a"), keras.Input((1,), name="b")
    joined = keras.layers.Concatenate()([a, b])
    outputs = {"sum": keras.layers.Dense(1, name="sum")(joined), "copy": keras.layers.Dense(1, name="copy")(joined)}
    model = keras.Model({"a": a, "b": b}, outputs)
    losses, metrics = {"sum": "mse", "copy": "mae"}, {"sum": ["mae"]}
    model.compile("adam", losses, loss_weights={"sum": 1.0, "copy": 0.5}, metrics=metrics)
    history = model.fit({"a": X, "b": Y}, {"sum": Y, "copy": Y}, batch_size=11, verbose=0).history
    assert set(history) == {"loss", "sum_loss", "copy_loss", "sum_mae"}
    assert {name: value.shape for name, value in model.predict({"a": X, "b": Y}, 11, verbose=0).items()} == {
        "sum": (22, 1),
        "copy": (22, 1),
    }


# Tapes, interruptions, callbacks


@MODES
def test_a_tape_says_that_it_does_not_see_through_predict(run_eagerly):
    model = mlp(run_eagerly=run_eagerly)
    x = tf.Variable(X[:4])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model.predict(x * 1.0, verbose=0) * tf.constant(2.0))
    report = tape.explain(loss, x)
    assert tape.gradient(loss, x) is None
    assert "predict" in str(report)


class Interrupt(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 1:
            raise KeyboardInterrupt


@MODES
def test_a_model_is_usable_after_an_interruption(run_eagerly):
    model, other = mlp(run_eagerly=run_eagerly), mlp(run_eagerly=True)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, batch_size=11, epochs=2, shuffle=False, verbose=0, callbacks=[Interrupt()])
    for x, y in batches(11):
        other.train_on_batch(x, y)
    assert_same_weights(model, other)
    options = {"batch_size": 11, "epochs": 2, "shuffle": False, "verbose": 0}
    assert_same_history(model.fit(X, Y, **options), other.fit(X, Y, **options))


def with_statistics(run_eagerly):
    layers = keras.layers
    inner = [layers.Dense(4), layers.BatchNormalization(), layers.Dropout(0.5)]
    model = keras.Sequential([keras.Input((3,)), *inner, layers.Dense(2)])
    model.compile("adam", "mse", run_eagerly=run_eagerly)
    model.train_on_batch(X, np.zeros((len(X), 2)))
    return model


def values_of(model):
    return [v.numpy() for v in (*model.variables, *model.optimizer.variables)]


def same(values, others):
    return all(np.array_equal(a, b) for a, b in zip(values, others, strict=True))


@MODES
def test_a_step_that_fails_leaves_the_model_as_it_was(run_eagerly):
    model = with_statistics(run_eagerly)
    before = values_of(model)
    with pytest.raises(ValueError, match="expected axis -1 of input shape to have value 3"):
        model.fit(X[:, :2], Y, verbose=0)
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):  # the layers have been called by then
        model.fit(X, np.zeros((len(X), 7)), verbose=0)
    assert same(values_of(model), before)


def test_an_eager_step_that_is_interrupted_anywhere_changes_everything_or_nothing():
    model, y = with_statistics(run_eagerly=True), np.zeros((len(X), 2))
    variables = [*model.variables, *model.optimizer.variables]
    start = values_of(model)
    model.train_on_batch(X, y)
    end = values_of(model)

    def interrupted_at(number):
        """Whether there is such a place where Python notices it: a function is entered, or one in C has returned."""
        left = [number]

        def notice(frame, event, argument):
            left[0] -= event in ("call", "c_return")
            if left[0] == 0:
                sys.setprofile(None)
                raise KeyboardInterrupt  # which Python drops in a destructor

        sys.setprofile(notice)
        try:  # noqa: SIM105  # a context manager would be interrupted itself
            model.train_on_batch(X, y)
        except KeyboardInterrupt:
            pass
        sys.setprofile(None)
        return left[0] <= 0

    number = 1
    while interrupted_at(number):
        assert same(values_of(model), start) or same(values_of(model), end), number
        for variable, value in zip(variables, start, strict=True):
            variable.assign(value)
        number += 97
    assert number > 1000
    assert same(values_of(model), end)
    keras.utils.clear_session()  # scopes of Keras's own that are interrupted as they end stay open: names begin with them


def test_tensorboard_gets_event_files(tmp_path):
    pytest.importorskip("tensorboardX")
    from tensorboardX.proto.event_pb2 import Event

    board = keras.callbacks.TensorBoard(tmp_path, histogram_freq=1, write_images=True)
    mlp(run_eagerly=True).fit(X, Y, epochs=2, validation_data=(X, Y), verbose=0, callbacks=[board])
    tags = {}
    for folder in ("train", "validation"):
        (path,) = (tmp_path / folder).iterdir()
        data, tags[folder] = path.read_bytes(), set()
        while data:
            length = int.from_bytes(data[:8], "little")
            tags[folder] |= {value.tag for value in Event.FromString(data[12 : 12 + length]).summary.value}
            data = data[16 + length :]
    assert {"keras", "epoch_loss", "epoch_mae", "epoch_learning_rate", "sequential/dense/kernel/histogram"} <= {
        re.sub(r"_\d+", "", tag) for tag in tags["train"]
    }
    assert {"epoch_loss", "evaluation_loss_vs_iterations"} <= tags["validation"]


@MODES
def test_the_gradient_monitor_is_a_callback(run_eagerly):
    model = mlp(run_eagerly=run_eagerly)
    monitor = tf.inspect.GradientMonitor(live=False)
    model.fit(X, Y, batch_size=11, epochs=2, verbose=0, callbacks=[monitor.callback()])
    assert len(monitor.rows) == 4 * len(model.trainable_variables)
    assert all(row.update_norm is not None and row.update_norm > 0 for row in monitor.rows)
    assert all((row.norm is None) is not run_eagerly for row in monitor.rows)
    assert "apply" not in vars(model.optimizer)
