"""Values that leave for Python or NumPy, and come back as constants."""

import math
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import gradtape as tf


def numpy_in_the_middle():
    w = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        hidden = tf.tanh(w)
        loss = tf.reduce_sum(tf.constant(hidden.numpy()) ** 2)  # HERE left
    assert tape.gradient(loss, w) is None
    return tape.explain(loss, w)


def loss_of_python_floats():
    w = tf.Variable(0.5)
    with tf.GradientTape(persistent=True) as tape:
        probability = float(tf.sigmoid(w))  # HERE left
        loss = tf.constant(-math.log(probability))
    return tape.explain(loss, w)


def math_module_on_a_tensor():
    x = tf.constant(0.3)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * tf.constant(math.exp(x * 2.0))  # the second factor is cut, the first is not
        z = tf.constant(math.sin(x))  # HERE left
    assert tape.gradient(y, x) is not None
    return tape.explain(z, x)


def asarray_for_a_helper_library():
    w = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape(persistent=True) as tape:
        values = np.asarray(w * 2.0)  # HERE left
        loss = tf.reduce_sum(tf.convert_to_tensor(values))
    return tape.explain(loss, w)


def numpy_function_without_a_rule():
    w = tf.Variable([3.0, 1.0, 2.0])
    with tf.GradientTape() as tape:
        smoothed = np.unwrap(w * 1.0)  # HERE left
        loss = tf.reduce_sum(tf.constant(smoothed, tf.float32))
    assert tape.gradient(loss, w) is None
    return tape.explain(loss, w)


def reward_from_a_simulator():
    policy = tf.Variable([0.1, 0.2])

    def simulate(action):
        return float(action.sum())

    with tf.GradientTape() as tape:
        action = tf.tanh(policy)
        reward = simulate(action.numpy())  # HERE left
        loss = -tf.constant(reward)
    assert tape.gradient(loss, policy) is None
    return tape.explain(loss, policy)


def list_of_losses_as_numbers():
    w = tf.Variable(2.0)
    losses = []
    with tf.GradientTape(persistent=True) as tape:
        for x in (1.0, 2.0, 3.0):
            losses.append((w * x).numpy())  # HERE left
        total = tf.reduce_mean(losses)
    return tape.explain(total, w)


def item_of_a_scalar():
    w = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.constant((w * w).item())  # HERE left
    return tape.explain(loss, w)


def numpy_function_of_the_library():
    w = tf.Variable([1.0, -2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.numpy_function(np.abs, [w * 2.0], tf.float32)  # HERE left
        loss = tf.reduce_sum(y)
    return tape.explain(loss, w)


def printed_and_then_left():
    w = tf.Variable(1.5)
    with tf.GradientTape(persistent=True) as tape:
        y = w * w
        print(float(y))  # harmless
        loss = tf.constant(y.numpy())  # HERE left
    return tape.explain(loss, w)


def learning_rate_as_an_integer():
    w = tf.Variable(3.7)
    with tf.GradientTape(persistent=True) as tape:
        n = int(w)  # HERE left
        loss = tf.ones([n]) * 2.0
    return tape.explain(loss, w)


def parameter_kept_in_a_new_variable():
    raw = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        positive = tf.Variable(tf.exp(raw))  # HERE assigned
        loss = tf.reduce_sum(positive * positive)
    return tape.explain(loss, raw)


def state_assigned_in_the_tape():
    gain, state = tf.Variable(2.0), tf.Variable(0.0, trainable=False)
    with tf.GradientTape() as tape:
        tape.watch(state)
        state.assign(gain * 3.0)  # HERE assigned
        loss = state * state
    assert tape.gradient(loss, gain) is None
    return tape.explain(loss, gain)


def running_sum_in_a_variable():
    w = tf.Variable(1.0)
    total = tf.Variable(0.0)
    with tf.GradientTape(persistent=True) as tape:
        for x in (1.0, 2.0):
            total.assign_add(w * x)  # HERE assigned
        loss = total * 1.0
    return tape.explain(loss, w)


def worker_thread_computes_the_loss():
    w = tf.Variable([1.0, 2.0])
    found = []

    def work():
        found.append(tf.reduce_sum(w * w))  # HERE another_thread

    with tf.GradientTape(persistent=True) as tape:
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
    return tape.explain(found[0], w)


def worker_thread_finishes_the_loss():
    w = tf.Variable([1.0, 2.0])
    found = {}

    def work(hidden):
        found["loss"] = tf.reduce_sum(hidden)  # HERE another_thread

    with tf.GradientTape() as tape:
        hidden = w * w
        worker = threading.Thread(target=work, args=(hidden,))
        worker.start()
        worker.join()
    loss = found["loss"]
    assert tape.gradient(loss, w) is None
    return tape.explain(loss, w)


def text_and_back():
    w = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = w * 2.0
        loss = tf.constant(float(f"{y:.3f}"))  # HERE left
    return tape.explain(loss, w)


def progress_line_is_not_blamed():
    w = tf.Variable(2.0)
    lines = []
    with tf.GradientTape(persistent=True) as tape:
        y = w * 2.0
        z = y.numpy()  # HERE left
        lines.append(f"{y:.3f}")
        loss = tf.constant(z)
    return tape.explain(loss, w)


def buffer_of_numpy():
    w = tf.Variable([2.5, 1.0])
    buffer = np.zeros(2, np.float32)
    with tf.GradientTape(persistent=True) as tape:
        for i in range(2):
            buffer[i] = w[i] * 2.0  # HERE left
        loss = tf.reduce_sum(buffer)
    return tape.explain(loss, w)


def pool_of_threads():
    w = tf.Variable([1.0, 2.0])
    with ThreadPoolExecutor(1) as pool, tf.GradientTape() as tape:
        parts = list(pool.map(lambda k: tf.reduce_sum(w * k), [1.0, 2.0]))  # HERE another_thread
        loss = parts[0] + parts[1]
    assert tape.gradient(loss, w) is None
    return tape.explain(loss, w)


def inner_gradient_as_numbers():
    w = tf.Variable(2.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = w**3
        slope = inner.gradient(y, w).numpy()  # HERE left
        penalty = tf.constant(slope) ** 2
    assert outer.gradient(penalty, w) is None
    return outer.explain(penalty, w)


def larger_of_two():
    a, b = tf.Variable(2.5), tf.Variable(1.0)
    with tf.GradientTape(persistent=True) as tape:
        larger = max(a * 1.0, b * 1.0)  # HERE condition
    return tape.explain(larger, b)
