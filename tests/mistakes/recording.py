"""The tape did not listen: the target was computed outside, in a pause, before a reset, or the tape was used up."""

import gradtape as tf


def loss_after_the_block():
    w = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        prediction = w * 3.0
    loss = tf.reduce_mean(prediction**2)  # HERE outside
    assert tape.gradient(loss, w) is None
    return tape.explain(loss, w)


def everything_before_the_block():
    w = tf.Variable(2.0)
    loss = w * w  # HERE outside
    with tf.GradientTape(persistent=True) as tape:
        pass
    return tape.explain(loss, w)


def regularization_added_outside():
    w = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        error = tf.reduce_sum(w)
    total = error + 0.1 * tf.nn.l2_loss(w)  # HERE outside
    return tape.explain(total, w)


def inner_gradient_outside_the_outer_tape():
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        y = x**3
    slope = inner.gradient(y, x)  # HERE outside
    assert outer.gradient(slope, x) is None
    return outer.explain(slope, x)


def metrics_block_holds_the_loss():
    w = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        hidden = w * 2.0
        with tape.stop_recording():
            loss = tf.reduce_sum(hidden)  # HERE stop_recording
    return tape.explain(loss, w)


def one_layer_in_a_pause():
    w = tf.Variable([1.0, 2.0])
    scale = tf.Variable([1.0, 1.0])
    with tf.GradientTape(persistent=True) as tape:
        with tape.stop_recording():
            hidden = w * 2.0  # HERE stop_recording
        loss = tf.reduce_sum(hidden * scale)
    return tape.explain(loss, [w, scale])


def variable_read_in_a_pause():
    w = tf.Variable(2.0)
    b = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        with tape.stop_recording():
            weight = w * 1.0  # HERE stop_recording
        loss = weight + b
    gradients = tape.gradient(loss, [w, b])
    assert gradients[0] is None
    return tape.explain(loss, [w, b])


def reset_between_two_losses():
    w = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        hidden = tf.reduce_sum(w * 2.0)
        tape.reset()  # HERE reset
        loss = hidden * 3.0
    return tape.explain(loss, w)


def watched_before_the_reset():
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        tape.reset()  # HERE reset
        y = x * x
    return tape.explain(y, x)


def second_question_to_a_one_shot_tape():
    w = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = w * w
        z = y * 3.0
    tape.gradient(y, w)  # HERE used
    return tape.explain(z, w)


def asked_again_after_all_went_well():
    w, b = tf.Variable(2.0), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        loss = w * w + b
    first = tape.gradient(loss, w)  # HERE used
    assert first is not None
    return tape.explain(loss, b)


def learned_switch():
    gate, w = tf.Variable(0.7), tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        if gate > 0.5:  # HERE condition
            y = w * 3.0
        else:
            y = w * 1.0
    return tape.explain(y, [gate, w])


def number_of_steps_learned():
    length, w = tf.Variable(3.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y, i = w * 1.0, 0.0
        while i < length:  # HERE condition
            y = y * w
            i += 1.0
    gradients = tape.gradient(y, [length, w])
    assert gradients[0] is None
    return tape.explain(y, [length, w])


def condition_of_cond():
    x, w = tf.Variable(-1.0), tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = tf.cond(x < 0.0, lambda: w * 3.0, lambda: w * w)  # HERE condition
    return tape.explain(y, [x, w])


def compiled_switch():
    gate, w = tf.Variable(0.7), tf.Variable(2.0)
    reports = []

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            if gate > 0.5:  # HERE condition
                y = w * 3.0
            else:
                y = w * w
        assert tape.gradient(y, gate) is None
        reports.append(tape.explain(y, gate))
        return y

    step()
    return reports[0]


def compiled_loop_of_learned_length():
    length, w = tf.Variable(3.0), tf.Variable(2.0)
    reports = []

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            i, y = tf.constant(0.0), w * 1.0
            while i < length * 2.0:  # HERE condition
                y = y * w
                i = i + 1.0
        assert tape.gradient(y, length) is None
        reports.append(tape.explain(y, length))
        return y

    step()
    return reports[0]
