"""Ops that no gradient passes: integers, comparisons, argmax, stop_gradient, custom gradients."""

import gradtape as tf

LABELS = tf.constant([1, 0])


def loss_of_the_predicted_class():
    w = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        logits = w * 2.0
        predicted = tf.argmax(logits, 1)  # HERE nondifferentiable
        loss = tf.reduce_mean(tf.cast(predicted, tf.float32))
    assert tape.gradient(loss, w) is None
    return tape.explain(loss, w)


def accuracy_as_a_loss():
    w = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape(persistent=True) as tape:
        hits = tf.equal(tf.argmax(w, 1, output_type=tf.int32), LABELS)  # HERE nondifferentiable
        loss = 1.0 - tf.reduce_mean(tf.cast(hits, tf.float32))
    return tape.explain(loss, w)


def threshold_as_a_step():
    x = tf.Variable([0.2, 0.8])
    with tf.GradientTape(persistent=True) as tape:
        mask = tf.cast(x > 0.5, tf.float32)  # HERE nondifferentiable
        loss = tf.reduce_sum(mask)
    return tape.explain(loss, x)


def rounded_to_pixels():
    position = tf.Variable([1.2, 3.7])
    with tf.GradientTape() as tape:
        pixel = tf.cast(position * 2.0, tf.int32)  # HERE dtype
        loss = tf.reduce_sum(tf.cast(pixel, tf.float32) ** 2)
    assert tape.gradient(loss, position) is None
    return tape.explain(loss, position)


def index_into_a_table():
    where = tf.Variable(1.4)
    table = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        index = tf.cast(where, tf.int32)  # HERE dtype
        loss = tf.gather(table, index) ** 2
    return tape.explain(loss, [where, table])


def image_saved_as_bytes():
    image = tf.Variable([[0.2, 0.8]])
    with tf.GradientTape(persistent=True) as tape:
        quantized = tf.cast(image * 255.0, tf.uint8)  # HERE dtype
        loss = tf.reduce_mean(tf.cast(quantized, tf.float32))
    return tape.explain(loss, image)


def number_as_text():
    w = tf.Variable(2.5)
    with tf.GradientTape(persistent=True) as tape:
        text = tf.as_string(w * 2.0)  # HERE dtype
        loss = tf.strings.to_number(text)
    return tape.explain(loss, w)


def sorted_places():
    scores = tf.Variable([3.0, 1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        order = tf.argsort(scores)  # HERE nondifferentiable
        loss = tf.reduce_sum(tf.cast(order, tf.float32))
    return tape.explain(loss, scores)


def rounded_weights():
    w = tf.Variable([0.4, 1.6])
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_sum(tf.floor(w) * 2.0)  # HERE nondifferentiable
    return tape.explain(loss, w)


def sampled_action():
    logits = tf.Variable([[0.1, 0.9]])
    with tf.GradientTape() as tape:
        action = tf.random.categorical(logits, 1)  # HERE nondifferentiable
        loss = tf.reduce_sum(tf.cast(action, tf.float32))
    assert tape.gradient(loss, logits) is None
    return tape.explain(loss, logits)


def chosen_action_weighs_the_critic():
    logits, critic = tf.Variable([[0.1, 0.9]]), tf.Variable([2.0])
    with tf.GradientTape(persistent=True) as tape:
        action = tf.random.categorical(logits, 1)  # HERE nondifferentiable
        loss = tf.reduce_sum(critic * (tf.cast(action, tf.float32) + 1.0))
    return tape.explain(loss, [logits, critic])


def places_of_the_positive_ones():
    x = tf.Variable([0.5, -1.0, 2.0])
    with tf.GradientTape() as tape:
        rows = tf.where(x * 2.0)  # HERE nondifferentiable
        loss = tf.reduce_sum(tf.cast(rows, tf.float32))
    assert tape.gradient(loss, x) is None
    return tape.explain(loss, x)


def target_network_is_the_online_network():
    w = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        value = tf.stop_gradient(w * 3.0)  # HERE stop_gradient
        loss = tf.reduce_sum((value - 1.0) ** 2)
    return tape.explain(loss, w)


def generator_behind_the_discriminators_stop():
    generator, critic = tf.Variable([0.5]), tf.Variable([2.0])
    with tf.GradientTape() as tape:
        fake = tf.stop_gradient(tf.tanh(generator))  # HERE stop_gradient
        loss = tf.reduce_mean(fake * critic)
    gradients = tape.gradient(loss, [generator, critic])
    assert gradients[0] is None
    assert gradients[1] is not None
    return tape.explain(loss, [generator, critic])


def straight_through_without_the_straight_part():
    w = tf.Variable([0.4, 1.6])
    with tf.GradientTape(persistent=True) as tape:
        rounded = w + tf.stop_gradient(tf.round(w) - w)
        loss = tf.reduce_sum(rounded)
        wrong = tf.stop_gradient(w + tf.round(w) - w)  # HERE stop_gradient
        loss_of_wrong = tf.reduce_sum(wrong)
    assert tape.gradient(loss, w) is not None
    return tape.explain(loss_of_wrong, w)


def custom_gradient_that_forgets_an_argument():
    @tf.custom_gradient
    def scaled(x, scale):
        return x * scale, lambda upstream: (upstream * scale, None)

    x, scale = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = scaled(x, scale) * 2.0  # HERE custom_gradient
    gradients = tape.gradient(y, [x, scale])
    assert gradients[1] is None
    return tape.explain(y, [x, scale])


def custom_gradient_that_blocks():
    @tf.custom_gradient
    def frozen(x):
        return tf.identity(x), lambda upstream: None

    w = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(frozen(w * 2.0))  # HERE custom_gradient
    return tape.explain(y, w)


def dead_units():
    w = tf.Variable([-1.0, -2.0])
    with tf.GradientTape(persistent=True, trace=True) as tape:
        hidden = tf.nn.relu(w * 3.0)  # HERE zero
        loss = tf.reduce_sum(hidden)
    return tape.explain(loss, w)


def clipped_away():
    w = tf.Variable(5.0)
    with tf.GradientTape(persistent=True, trace=True) as tape:
        bounded = tf.clip_by_value(w, -1.0, 1.0)  # HERE zero
        loss = bounded**2
    return tape.explain(loss, w)


def masked_with_zeros():
    w = tf.Variable([1.0, 2.0])
    mask = tf.constant([0.0, 0.0])
    with tf.GradientTape(persistent=True, trace=True) as tape:
        kept = w * mask  # HERE zero
        loss = tf.reduce_sum(kept)
    return tape.explain(loss, w)


def mask_that_should_be_learned():
    threshold, w = tf.Variable([1.0, 2.0]), tf.Variable([3.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        kept = tf.boolean_mask(w, w > threshold)  # HERE nondifferentiable
        loss = tf.reduce_sum(kept)
    return tape.explain(loss, threshold)


def mask_as_an_index():
    threshold, w = tf.Variable([1.0, 2.0]), tf.Variable([3.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_sum(w[w > threshold])  # HERE nondifferentiable
    return tape.explain(loss, threshold)


def condition_of_where():
    x, w = tf.Variable([1.0, -1.0]), tf.Variable([3.0, 4.0])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.where(x > 0.0, w, tf.zeros([2])))  # HERE nondifferentiable
    assert tape.gradient(loss, x) is None
    return tape.explain(loss, x)


def learned_number_of_copies():
    count, w = tf.Variable(2.3), tf.Variable([1.0])
    with tf.GradientTape(persistent=True) as tape:
        whole = tf.cast(count, tf.int32)  # HERE dtype
        loss = tf.reduce_sum(tf.repeat(w, whole))
    return tape.explain(loss, count)


def places_of_the_best():
    x = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        _, places = tf.math.top_k(x, 2)  # HERE nondifferentiable
        loss = tf.reduce_sum(tf.cast(places, tf.float32))
    return tape.explain(loss, x)


def only_the_shape_was_used():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.ones_like(x) * 3.0)  # HERE nondifferentiable
    assert tape.gradient(loss, x) is None
    return tape.explain(loss, x)


def second_derivative_of_relu():
    w = tf.Variable(2.0)
    with tf.GradientTape(persistent=True, trace=True) as outer:
        with tf.GradientTape() as inner:
            y = tf.nn.relu(w)
        slope = inner.gradient(y, w)  # HERE zero
    return outer.explain(slope, w)
