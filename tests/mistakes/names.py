"""Names that stand for another tensor than the reader thinks, and sources that have nothing to do with the target."""

import gradtape as tf


def input_normalized_in_place():
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.reduce_sum(x * x)
        x = x / 3.0  # HERE rebound
    return tape.explain(y, x)


def gradient_step_makes_a_tensor():
    w = tf.Variable([1.0, 2.0])
    target = tf.constant([3.0, 3.0])
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((w - target) ** 2)
        gradient = tape.gradient(loss, w)
        if gradient is None:
            break
        w = w - 0.1 * gradient  # HERE rebound
    return tape.explain(loss, w)


def augmented_assignment_of_a_watched_tensor():
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        x += 1.0  # HERE rebound
    return tape.explain(y, x)


def reshaped_under_the_same_name():
    image = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(image)
        score = tf.reduce_sum(image**2)
        image = tf.reshape(image, [-1])  # HERE rebound
    return tape.explain(score, image)


def cast_before_watching_under_another_name():
    x = tf.constant([1.0, 2.0], tf.float64)
    with tf.GradientTape(persistent=True) as tape:  # HERE not_watched
        single = tf.cast(x, tf.float32)
        tape.watch(single)
        y = tf.reduce_sum(single)
    return tape.explain(y, x)


def two_models_and_the_wrong_one():
    class Net(tf.Module):
        def __init__(self):
            self.w = tf.Variable([1.0, 2.0])

        def __call__(self, x):
            return tf.reduce_sum(self.w * x)

    online, target = Net(), Net()
    x = tf.constant([1.0, 1.0])
    with tf.GradientTape(persistent=True) as tape:  # HERE unconnected
        loss = online(x)
    return tape.explain(loss, target.w)


def side_branch_of_the_same_tape():
    w, b = tf.Variable(2.0), tf.Variable(1.0)
    with tf.GradientTape(persistent=True, trace=True) as tape:
        side = tf.exp(w)
        loss = b * 2.0  # HERE unconnected
    assert side is not None
    return tape.explain(loss, w)


def constant_loss():
    w = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tf.square(w)
        loss = tf.constant(1.0)  # HERE unconnected
    return tape.explain(loss, w)


def no_gradient_for_any_variable():
    w = tf.Variable([1.0, 2.0])
    optimizer = tf.optimizers.SGD(0.1)
    with tf.GradientTape() as tape:
        choice = tf.argmax(w)  # HERE nondifferentiable
        loss = tf.cast(choice, tf.float32)
    try:
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
    except tf.errors.NoGradientsError as error:
        return error.report
    return None


def loss_outside_reaches_the_optimizer():
    w = tf.Variable([1.0, 2.0])
    optimizer = tf.optimizers.Adam(0.1)
    with tf.GradientTape() as tape:
        prediction = w * 2.0
    loss = tf.reduce_sum(prediction)  # HERE outside
    try:
        optimizer.apply_gradients(zip(tape.gradient(loss, [w]), [w]))
    except tf.errors.NoGradientsError as error:
        return error.report
    return None


def compiled_step_with_argmax():
    w = tf.Variable([1.0, 2.0])
    reports = []

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.cast(tf.argmax(w * x), tf.float32)  # HERE nondifferentiable
        gradient = tape.gradient(loss, w)
        assert gradient is None
        reports.append(tape.explain(loss, w))
        return loss

    step(tf.constant([2.0, 1.0]))
    return reports[0]


def compiled_step_with_an_unwatched_input():
    reports = []

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:  # HERE not_watched
            y = tf.reduce_sum(x * x)
        assert tape.gradient(y, x) is None
        reports.append(tape.explain(y, x))
        return y

    step(tf.constant([2.0, 1.0]))
    return reports[0]


def parameters_replaced_in_a_list():
    params = [tf.Variable(1.0), tf.Variable(2.0)]
    with tf.GradientTape() as tape:
        loss = params[0] * params[1]
    params[0] = params[0] - 0.1  # HERE rebound
    assert tape.gradient(loss, params[0]) is None
    return tape.explain(loss, params[0])


def parameters_replaced_in_a_dictionary():
    params = {"w": tf.Variable(1.0), "b": tf.Variable(2.0)}
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = params["w"] * params["b"]
        gradients = tape.gradient(loss, params)
        if gradients["w"] is None:
            break
        for name in params:
            params[name] = params[name] - 0.1 * gradients[name]  # HERE rebound
    return tape.explain(loss, params["w"])


def parameters_rebuilt_by_a_comprehension():
    params = [tf.Variable(1.0), tf.Variable(2.0)]
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = params[0] * params[1]
        gradients = tape.gradient(loss, params)
        if gradients[0] is None:
            break
        params = [p - 0.1 * g for p, g in zip(params, gradients)]  # HERE rebound
    return tape.explain(loss, params[0])


def variable_replaced_by_a_new_variable():
    w = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_sum(w * w)
    w = tf.Variable(w * 2.0)  # HERE rebound
    return tape.explain(loss, w)


def second_derivative_of_a_linear_function():
    x = tf.Variable(2.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x * 3.0
        slope = inner.gradient(y, x)  # HERE unconnected
    assert outer.gradient(slope, x) is None
    return outer.explain(slope, x)


def metric_beside_the_loss_is_not_blamed():
    w, unused = tf.Variable([1.0, 2.0]), tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:  # HERE unconnected
        accuracy = tf.reduce_mean(tf.cast(unused > 0.0, tf.float32))
        loss = tf.reduce_sum(w * w)
    assert float(accuracy) == 1.0
    return tape.explain(loss, unused)


def compiled_layer_with_a_stop():
    w = tf.Variable([1.0, 2.0])

    @tf.function
    def features(x):
        return tf.stop_gradient(w * x)  # HERE stop_gradient

    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(features(tf.constant([1.0, 2.0])))
    assert tape.gradient(loss, w) is None
    return tape.explain(loss, w)


def compiled_metric_as_a_loss():
    w = tf.Variable([1.0, 2.0])
    total = tf.Variable(0.0, trainable=False)

    @tf.function
    def average(x):
        total.assign_add(tf.reduce_sum(w * x))  # HERE assigned
        return total * 0.5

    with tf.GradientTape() as tape:
        loss = average(tf.constant([1.0, 2.0]))
    assert tape.gradient(loss, w) is None
    return tape.explain(loss, w)


def argument_that_the_compiled_function_ignores():
    w, b = tf.Variable([1.0, 2.0]), tf.Variable([1.0, 2.0])

    @tf.function
    def features(x, bias):
        return w * x

    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_sum(features(tf.constant([1.0, 2.0]), b * 1.0))  # HERE unconnected
    return tape.explain(loss, b)


def counter_that_only_counts():
    w, steps = tf.Variable(2.0), tf.Variable(1.0)
    with tf.GradientTape(persistent=True) as tape:  # HERE unconnected
        loss = w * 3.0
        steps.assign(steps + 1.0)
    return tape.explain(loss, steps)


def minimized_without_a_slope():
    w = tf.Variable([1.0, 2.0])
    try:
        tf.optimizers.SGD(0.1).minimize(lambda: tf.reduce_sum(tf.round(w)), [w])  # HERE nondifferentiable
    except tf.errors.NoGradientsError as error:
        return error.report
    return None
