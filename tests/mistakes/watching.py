"""Sources that the tape does not follow: tensors nobody watched, variables that are not trainable or were read elsewhere."""

import numpy as np

import gradtape as tf


def saliency_of_an_image_that_is_not_watched():
    image = tf.constant(np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32))
    kernel = tf.Variable(tf.ones([4, 2]))
    with tf.GradientTape() as tape:  # HERE not_watched
        score = tf.reduce_max(image @ kernel)
    saliency = tape.gradient(score, image)
    assert saliency is None
    return tape.explain(score, image)


def input_gradient_of_a_batch_from_a_dataset():
    dataset = tf.data.Dataset.from_tensor_slices(np.arange(6, dtype=np.float32)).batch(3)
    w = tf.Variable(2.0)
    for batch in dataset:
        with tf.GradientTape(persistent=True) as tape:  # HERE not_watched
            loss = tf.reduce_sum(w * batch)
    return tape.explain(loss, batch)


def a_slice_is_another_tensor_than_the_whole():
    points = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    first = points[0]
    with tf.GradientTape(persistent=True) as tape:  # HERE not_watched
        tape.watch(points)
        energy = tf.reduce_sum(points**2)
    return tape.explain(energy, first)


def watched_after_it_was_used_by_another_name():
    x = tf.constant(2.0)
    copy = tf.identity(x)
    with tf.GradientTape(persistent=True) as tape:  # HERE not_watched
        tape.watch(copy)
        y = copy * copy
    return tape.explain(y, x)


def frozen_layer():
    frozen = tf.Variable(tf.ones([3]), trainable=False, name="frozen")
    head = tf.Variable(tf.ones([3]), name="head")
    with tf.GradientTape() as tape:  # HERE not_trainable
        loss = tf.reduce_sum(frozen * head)
    assert tape.gradient(loss, [frozen, head])[0] is None
    return tape.explain(loss, [frozen, head])


def moving_average_as_a_parameter():
    mean = tf.Variable([0.5, 0.5], trainable=False)
    scale = tf.Variable([1.0, 1.0])
    x = tf.constant([[1.0, 2.0]])
    with tf.GradientTape(persistent=True) as tape:  # HERE not_trainable
        loss = tf.reduce_sum(scale * (x - mean))
    return tape.explain(loss, mean)


def counter_as_a_parameter():
    steps = tf.Variable(3)
    with tf.GradientTape(persistent=True) as tape:  # HERE dtype
        loss = tf.cast(steps, tf.float32) ** 2
    return tape.explain(loss, steps)


def watching_switched_off_and_one_variable_forgotten():
    w, b = tf.Variable(2.0), tf.Variable(1.0)
    with tf.GradientTape(watch_accessed_variables=False, persistent=True) as tape:  # HERE watch_accessed_off
        tape.watch(w)
        loss = w * 3.0 + b
    return tape.explain(loss, [w, b])


def weights_prepared_before_the_tape():
    w = tf.Variable([3.0, 4.0])
    normalized = w / tf.norm(w)  # HERE read_before
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(normalized * 2.0)
    assert tape.gradient(loss, w) is None
    return tape.explain(loss, w)


def prediction_before_the_tape():
    class Model(tf.Module):
        def __init__(self):
            self.w = tf.Variable(2.0)

    model = Model()
    x = tf.constant([1.0, 2.0])
    hidden = model.w * x  # HERE read_before
    doubled = hidden * 2.0
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_sum(doubled**2)
    return tape.explain(loss, model.w)


def value_read_once_for_many_steps():
    w = tf.Variable(1.0)
    snapshot = w.value()  # HERE read_before
    for _ in range(2):
        with tf.GradientTape(persistent=True) as tape:
            loss = (snapshot - 3.0) ** 2
    return tape.explain(loss, w)


def wrong_list_of_variables():
    generator, critic = tf.Variable([1.0]), tf.Variable([2.0])
    with tf.GradientTape() as tape:  # HERE unconnected
        loss = tf.reduce_mean(generator * 2.0)
    assert tape.gradient(loss, critic) is None
    return tape.explain(loss, critic)


def generator_ran_before_the_tape():
    class Layer(tf.Module):
        def __init__(self):
            self.w = tf.Variable(tf.ones([2, 2]))

        def __call__(self, x):
            return x @ self.w

    generator, critic = Layer(), Layer()
    noise = tf.ones([3, 2])
    fake = generator(noise)  # HERE read_before
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(critic(fake))
    assert tape.gradient(loss, generator.w) is None
    return tape.explain(loss, generator.w)


def watched_after_the_computation():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        y = tf.sin(x)  # HERE not_watched
        tape.watch(x)
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


def value_of_the_variable_as_source():
    w = tf.Variable([1.0, -2.0])
    value = tf.convert_to_tensor(w)
    with tf.GradientTape(persistent=True) as tape:  # HERE not_watched
        loss = tf.reduce_sum(w * w)
    return tape.explain(loss, value)


def labels_as_source():
    labels = tf.constant([1, 0])
    w = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:  # HERE dtype
        loss = tf.reduce_sum(w * tf.cast(labels, tf.float32))
    return tape.explain(loss, labels)
