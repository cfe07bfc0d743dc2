"""Where values are: tensors, variables, results and gradients on three devices, CPU:0 being NumPy's."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradtape as tf
from gradtape.core import op
from gradtape.ops import devices, placing
from gradtape.values.tensor import JaxTensor, Tensor
from gradtape.xp import jax_devices

X = np.linspace(-1.2, 1.5, 6).reshape(2, 3)


def place(value) -> str:
    return value.device.removeprefix("/job:localhost/replica:0/task:0/device:")


def on(name: str, value) -> tf.Tensor:
    with tf.device(name):
        return tf.constant(value)


@pytest.fixture(autouse=True)
def _nothing_stays():
    yield
    tf.config.set_soft_device_placement(True)
    assert devices.here.device is None
    assert op._fast is Tensor
    assert op.apply is placing._apply


# Names


def test_what_there_is():
    assert [d.name for d in tf.config.list_logical_devices()] == ["/device:CPU:0", "/device:CPU:1", "/device:CPU:2"]
    assert [d.name for d in tf.config.list_physical_devices()] == ["/physical_device:CPU:0"]


@pytest.mark.parametrize(
    "name", ["/CPU:1", "/cpu:1", "CPU:1", "cpu:1", "/device:CPU:1", "/device:cpu:1", "device:CPU:1",
             "/job:localhost/replica:0/task:0/device:CPU:1"],
)  # fmt: skip
def test_every_spelling(name):
    assert place(on(name, 1.0)) == "CPU:1"
    assert place(on(tf.DeviceSpec.from_string(name), 1.0)) == "CPU:1"
    assert place(on(tf.config.list_logical_devices()[1], 1.0)) == "CPU:1"


@pytest.mark.parametrize(
    ("inner", "wanted"),
    [(None, "CPU:0"), ("/CPU:0", "CPU:0"), ("", "CPU:2"), ("/job:localhost", "CPU:2"), ("/CPU", "CPU:2"), ("/CPU:1", "CPU:1"),
     ("/device:CPU:*", "CPU:2"), ("/job:localhost/replica:0/task:0", "CPU:2"), ("/GPU", "CPU:0")],
)  # fmt: skip
def test_nested_scopes_fill_in_what_is_open(inner, wanted):
    with tf.device("/CPU:2"), tf.device(inner):
        assert place(tf.constant(1.0)) == wanted
    with tf.device("/CPU:2"):
        with tf.device(inner):
            pass
        assert place(tf.constant(1.0)) == "CPU:2"


@pytest.mark.parametrize("soft", [True, False])
@pytest.mark.parametrize("name", ["/GPU:0", "/CPU:7", "/TPU:1"])
def test_a_missing_device(name, soft):
    tf.config.set_soft_device_placement(soft)
    if soft:
        assert place(on(name, 1.0)) == "CPU:0"
        return
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"All available devices \[.*CPU:0, .*CPU:1, .*CPU:2\]"):
        on(name, 1.0)


def test_names_that_mean_nothing():
    for name, error in [("/foo", ValueError), ("CPU:-1", tf.errors.InvalidArgumentError), ("/gpu:a", ValueError)]:
        with pytest.raises(error):
            on(name, 1.0)
    with pytest.raises(RuntimeError, match="GPU:0 unknown device"):
        tf.constant(1.0).gpu()


def test_one_scope_object_may_be_entered_again():
    scope = tf.device("/CPU:1")
    with scope:
        with scope:
            assert place(tf.constant(1.0)) == "CPU:1"
        assert place(tf.constant(1.0)) == "CPU:1"
    with pytest.raises(ZeroDivisionError), scope:
        1 / 0  # noqa: B018
    assert place(tf.constant(1.0)) == "CPU:0"


def test_a_scope_is_its_threads_alone():
    seen = []
    with tf.device("/CPU:1"):
        worker = threading.Thread(target=lambda: seen.append(type(tf.constant(1.0) + 1.0)))
        worker.start()
        worker.join()
    assert seen == [Tensor]


def test_many_threads_on_their_own_devices():
    failures = []

    def work(i: int) -> None:
        name = f"/CPU:{i % 3}"
        for _ in range(20):
            with tf.device(name):
                x = tf.Variable([1.0, 2.0])
                with tf.GradientTape() as tape:
                    y = tf.reduce_sum(x * x * 2.0)
                g = tape.gradient(y, x)
            if {place(y), place(g), place(x)} != {name[1:]} or g.numpy().tolist() != [4.0, 8.0]:
                failures.append((i, place(y), place(g), g))

    workers = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


# Placing


MAKERS = {
    "constant": lambda x: tf.constant([1.0]), "filled": lambda x: tf.constant(2.0, shape=(2, 2)),
    "convert": lambda x: tf.convert_to_tensor([1.0]), "variable": lambda x: tf.Variable(x), "identity": tf.identity,
    "zeros": lambda x: tf.zeros([2]), "fill": lambda x: tf.fill([2], 3.0), "range": lambda x: tf.range(3),
    "eye": lambda x: tf.eye(2), "normal": lambda x: tf.random.normal([2]), "uniform": lambda x: tf.random.uniform([2]),
    "integers": lambda x: tf.random.uniform([2], maxval=9, dtype=tf.int32), "gamma": lambda x: tf.random.gamma([2], 1.0),
    "add": lambda x: x + x, "number": lambda x: 2.0 * x, "softmax": tf.nn.softmax, "sum": tf.reduce_sum, "row": lambda x: x[0],
    "cast": lambda x: tf.cast(x, tf.int32), "split": lambda x: tf.split(x, 2)[1], "svd": lambda x: tf.linalg.svd(x)[1],
    "stack": lambda x: tf.stack([x, x]), "loss": lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits([0, 1], x),
}  # fmt: skip


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_what_is_made_in_a_scope_is_there(make):
    x = tf.constant(X)
    with tf.device("/CPU:1"):
        made = make(x)
    assert place(made) == "CPU:1"
    assert made.dtype == make(x).dtype
    assert place(make(x)) == "CPU:0"


def test_strings_stay_on_the_host():
    with tf.device("/CPU:1"):
        words = tf.constant(["a", "b"]) + "c"
        assert place(words) == "CPU:0"
        assert words.numpy().tolist() == [b"ac", b"bc"]
        assert (tf.constant("a") + "b").numpy() == b"ab"
        assert tf.strings.length(words).numpy().tolist() == [2, 2]


def test_operations_follow_their_operands():
    a, b, c = tf.constant(X), on("/CPU:1", X), on("/CPU:2", X)
    assert [place(y) for y in (a + a, a + b, b + a, b * 2.0, b + X, b + c, c + b)] == [
        "CPU:0", "CPU:1", "CPU:1", "CPU:1", "CPU:1", "CPU:1", "CPU:2",
    ]  # fmt: skip
    assert place(tf.concat([a, b, c], 0)) == "CPU:1"
    with tf.device("/CPU:2"):
        assert place(b + b) == "CPU:2"
    with tf.device("/CPU:0"):
        y = b + c
    assert (place(y), type(y)) == ("CPU:0", Tensor)
    assert (y.numpy() == X + X).all()


def test_what_is_made_there_stays_there():
    with tf.device("/CPU:1"):
        made = [tf.zeros([2]), tf.ones([2]), tf.eye(2)[0], tf.fill([2], 1.0), tf.random.uniform([2]), tf.range(2.0)]
    assert {place(y) for x in made for y in (x + np.ones(2, np.float32), x * 2.0, tf.identity(x))} == {"CPU:1"}


def test_reading_a_tensor():
    there = on("/CPU:1", X)
    assert type(there) is JaxTensor
    assert type(there.cpu()) is Tensor
    assert type(there.numpy()) is np.ndarray
    assert there.numpy().flags.writeable
    assert (np.asarray(there) == X).all()
    assert repr(there) == repr(tf.constant(X))
    assert str(there) == str(tf.constant(X))
    assert float(there[0, 0]) == X[0, 0]
    assert pickle.loads(pickle.dumps(there)).numpy().tolist() == X.tolist()
    assert [row.device for row in there] == [there.device] * 2


# Variables


def test_a_variable_stays_on_its_device():
    with tf.device("/CPU:1"):
        v = tf.Variable(X)
    elsewhere = on("/CPU:2", X)
    for change in (
        lambda: v.assign(X), lambda: v.assign(tf.constant(X)), lambda: v.assign(elsewhere), lambda: v.assign_add(X),
        lambda: v.assign_sub(elsewhere), lambda: v.scatter_update(tf.IndexedSlices(tf.ones([1, 3], tf.float64), [0])),
        lambda: v[1, 1].assign(3.0), lambda: v.scatter_nd_add([[0, 0]], tf.constant([1.0], tf.float64)),
    ):  # fmt: skip
        change()
        assert place(v) == "CPU:1"
        assert v.dtype == tf.float64
    assert v.numpy()[1, 1] == 3.0
    assert "numpy=" in repr(v)
    here = tf.Variable(X)
    here.assign(elsewhere)
    here.assign_add(elsewhere)
    assert place(here) == "CPU:0"
    assert type(here._tensor) is Tensor
    assert copy.deepcopy(v).numpy().tolist() == v.numpy().tolist()


def test_reading_a_variable_in_another_scope_copies():
    with tf.device("/CPU:1"):
        v = tf.Variable(X)
    with tf.device("/CPU:2"):
        assert [place(y) for y in (v.read_value(), tf.identity(v), v + 1.0)] == ["CPU:2"] * 3
        assert place(v) == "CPU:1"


# Precision


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "complex64", "complex128", "int8", "int64", "uint64", "bool"]
)
def test_dtypes_stay(dtype):
    value = np.array([1, 0, 3]).astype(dtype)
    there = on("/CPU:1", value)
    for y in (there, tf.identity(there), tf.stack([there, there])[0], there.cpu(), tf.reshape(there, [3])):
        assert y.dtype == dtype
        assert y.numpy().tolist() == value.tolist()
    if dtype != "bool":
        assert (there + there).dtype == (there * 2).dtype == tf.reduce_sum(there).dtype == dtype


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=4), st.integers(-(2**63), 2**63 - 1))
def test_no_bit_is_lost(values, number):
    import jax.numpy as jnp

    there = on("/CPU:1", np.array(values))
    with tf.device("/CPU:2"):
        further = tf.identity(there)
    assert further.cpu().numpy().tobytes() == np.array(values).tobytes()
    assert int(on("/CPU:1", np.int64(number))) == number
    assert jnp.asarray(1.0).dtype == np.float32


# Differentiating


def test_gradients_come_back_to_their_sources():
    a, b = tf.constant(X), on("/CPU:1", X + 1)
    with tf.device("/CPU:2"):
        v = tf.Variable(X - 1)
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        with tf.device("/CPU:1"):
            y = tf.tanh(a) * b
        with tf.device("/CPU:2"):
            y = tf.identity(y) * v
        with tf.device("/CPU:0"):
            loss = tf.reduce_sum(y)
    assert place(loss) == "CPU:0"
    gradients = tape.gradient(loss, [a, b, v])
    assert [place(g) for g in gradients] == ["CPU:0", "CPU:1", "CPU:2"]
    wanted = (1 - np.tanh(X) ** 2) * (X + 1) * (X - 1), np.tanh(X) * (X - 1), np.tanh(X) * (X + 1)
    for g, w in zip(gradients, wanted):
        np.testing.assert_allclose(g.numpy(), w, rtol=1e-12)


def test_a_constant_that_was_copied_can_be_watched_later():
    a = tf.constant(X)
    with tf.GradientTape() as tape:
        w = on("/CPU:1", X)
        tape.watch(w)
        y = a * w
        tape.watch(a)
        y = y * a
    assert np.allclose(tape.gradient(y, a).numpy(), 2 * X * X)


def second(x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.tanh(x) ** 3.0)
        g = tape.gradient(y, x)
    return outer.gradient(g, x)


def matrix(mode: str):
    def compute(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.linalg.matvec(x, x[0] ** 2.0)
        return tape.jacobian(y, x, mode=mode)

    return compute


def rows(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.softmax(x) * x
    return tape.batch_jacobian(y, x)


def forward(x):
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        y = tf.nn.softmax(x)
    return accumulator.jvp(y)


DERIVATIVES = {"second": second, "rows": matrix("reverse"), "columns": matrix("forward"), "batch": rows, "forward": forward}


@pytest.mark.parametrize("compute", DERIVATIVES.values(), ids=DERIVATIVES)
def test_every_kind_of_derivative(compute):
    found = compute(on("/CPU:1", X))
    assert place(found) == "CPU:1"
    np.testing.assert_allclose(found.numpy(), compute(tf.constant(X)).numpy(), rtol=1e-10, atol=1e-12)
    with tf.device("/CPU:2"):
        assert np.allclose(compute(tf.constant(X)).numpy(), found.numpy())


# What was promised of the CPU


def test_the_cpu_scope_is_plain_numpy():
    with tf.device("/CPU:0"):
        assert op._fast is Tensor
        assert type(tf.constant(X) + 1.0) is Tensor


# Where work here and work there meet


def test_a_small_argument_that_comes_again_does_not_place_the_result():
    multiply, there = tf.function(lambda x, y: x * y), on("/CPU:2", [1.0, 1.0])
    x = tf.constant([1.0, 2.0])
    jax_devices.prefer(device=jax_devices.found()["CPU", 1])  # as if it were a GPU
    try:
        places = [place(multiply(x, tf.constant([3.0, 4.0])) + there) for _ in range(4)]
    finally:
        jax_devices.prefer(device=None)
    assert set(places) == {"CPU:2"}


def test_a_target_here_through_a_compiled_function_there():
    x = tf.constant(X)
    function = tf.function(lambda z: tf.tanh(z) / 3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.device("/CPU:1"):
            z = function(x * 2.0)
        y = z.cpu() * (1.0 / 3)
    g = tape.gradient(y, x)
    assert place(g) == "CPU:0"
    np.testing.assert_allclose(g.numpy(), (1 - np.tanh(2 * X) ** 2) * 2 / 9, rtol=1e-13)


def test_a_users_rule_that_answers_from_elsewhere():
    @tf.custom_gradient
    def scaled(x):
        return x * 1.0, lambda upstream: on("/CPU:1", upstream.numpy() / 3.0)

    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = scaled(x * 2.0)
    g = tape.gradient(y, x)
    assert place(g) == "CPU:0"
    np.testing.assert_array_equal(g.numpy(), np.full_like(X, 2.0 * (1.0 / 3.0)))


def test_gradients_that_no_rule_made():
    here, there = tf.constant(X), on("/CPU:1", X)
    with tf.GradientTape() as tape:
        tape.watch([here, there])
        y = there * 2.0
    assert [place(g) for g in tape.gradient(y, [here, there], unconnected_gradients="zero")] == ["CPU:0", "CPU:1"]
    with tf.GradientTape() as tape:
        tape.watch(there)
    assert place(tape.gradient(there, there)) == "CPU:1"


def test_jacobians_and_rows_come_home():
    here, there, table = tf.constant(X), on("/CPU:1", X), tf.Variable(X)
    with tf.GradientTape() as tape:
        tape.watch(here)
        y = here * there
    assert place(tape.jacobian(y, here)) == "CPU:0"
    with tf.GradientTape() as tape, tf.device("/CPU:1"):
        y = tf.reduce_sum(tf.gather(table, [0, 0]) ** 2.0)
    g = tape.gradient(y, table)
    assert (place(g.values), place(g.indices)) == ("CPU:0", "CPU:0")


def test_a_tape_without_device_work_sweeps_in_numpy():
    x, there = tf.constant(X), on("/CPU:1", X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        there = there * 2.0
    assert tape.accelerated is None
    assert type(tape.gradient(y, x)) is Tensor


def test_vectorized_maps_and_loops():
    here, there, row = tf.constant(X), on("/CPU:1", X), on("/CPU:1", X[0])
    scores = lambda r: tf.reduce_sum(tf.nn.softmax(r) * r)
    wanted = tf.vectorized_map(scores, here).numpy()
    for mapped in (tf.vectorized_map(scores, there), tf.map_fn(scores, there)):
        np.testing.assert_allclose(mapped.numpy(), wanted, rtol=1e-13)
    np.testing.assert_allclose(tf.vectorized_map(lambda r: r * row + 1.0 / 3, here).numpy(), X * X[0] + 1 / 3, rtol=1e-15)
    assert place(tf.cond(tf.reduce_sum(there) > 0, lambda: there, lambda: -there)) == "CPU:1"
    assert place(tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + there), [0, there])[1]) == "CPU:1"


def test_what_integers_and_booleans_may_not():
    with tf.device("/CPU:1"):
        for refused in (lambda: tf.exp([1, 2]), lambda: tf.sqrt(tf.constant([4])), lambda: -tf.constant([True])):
            with pytest.raises(tf.errors.InvalidArgumentError):
                refused()
        assert tf.math.count_nonzero([True, False]).numpy() == 1
        assert tf.realdiv(1, 2).dtype == tf.float64
        with pytest.raises(tf.errors.InvalidArgumentError, match="Tensor had Inf values"):
            tf.debugging.check_numerics(tf.constant([1.0]) / 0.0, "it")
