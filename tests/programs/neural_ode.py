"""A neural ODE: Runge-Kutta in a while_loop, gradients through the solver and by the adjoint equation."""

import numpy as np


def program(tf):
    generator = np.random.RandomState(1)
    w1 = tf.Variable(generator.normal(size=(2, 8)) * 0.5, dtype=tf.float64)
    w2 = tf.Variable(generator.normal(size=(8, 2)) * 0.5, dtype=tf.float64)
    y0 = tf.constant([[2.0, 0.0]], dtype=tf.float64)
    true = tf.constant([[-0.1, 2.0], [-2.0, -0.1]], dtype=tf.float64)
    times = tf.cast(tf.linspace(0.0, 2.0, 9), tf.float64)

    def field(t, y):
        return tf.tanh(tf.pow(y, 3) @ w1) @ w2

    def runge_kutta(f, y, start, stop):
        h = stop - start
        k1 = f(start, y)
        k2 = f(start + h / 2, y + h / 2 * k1)
        k3 = f(start + h / 2, y + h / 2 * k2)
        k4 = f(stop, y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def solve(f, y):
        def body(i, y, path):
            y = runge_kutta(f, y, times[i], times[i + 1])
            return i + 1, y, path.write(i, y)

        path = tf.TensorArray(tf.float64, size=8, element_shape=[1, 2])
        _, _, path = tf.while_loop(lambda i, y, path: tf.less(i, 8), body, [0, y, path])
        return path.stack()

    truth = solve(lambda t, y: tf.matmul(y**3, true), y0)
    optimizer, curve = tf.optimizers.RMSprop(0.02), []
    for _ in range(4):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.abs(solve(field, y0) - truth))
        gradients = tape.gradient(loss, [w1, w2])
        optimizer.apply_gradients(zip(gradients, [w1, w2]))
        curve.append(loss)

    def adjoint(i, state):
        """One step backwards of the state, its cotangent and the parameters' gradients."""

        def dynamics(t, packed):
            y, a = packed[:, :2], packed[:, 2:4]
            with tf.GradientTape() as tape:
                tape.watch(y)
                rate = field(t, y)
            pulls = tape.gradient(rate, [y, w1, w2], output_gradients=-a)
            return tf.concat([rate, *(tf.reshape(p, [1, -1]) for p in pulls)], axis=1)

        return runge_kutta(dynamics, state, times[i + 1], times[i])

    final = solve(field, y0)[-1]
    state = tf.concat([final, 2.0 * final, tf.zeros([1, 32], tf.float64)], axis=1)
    for i in reversed(range(8)):
        state = adjoint(i, state)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(solve(field, y0)[-1] ** 2)
    return {"loss": curve, "adjoint": state[0, 4:], "through the solver": tape.gradient(loss, [w1, w2])}
