"""MAML with the second-order terms and without (FOMAML), and implicit differentiation through one inner solve."""

import numpy as np


def program(tf):
    tf.random.set_seed(5)
    generator = np.random.RandomState(2)

    def forward(x, parameters):
        w1, b1, w2, b2 = parameters
        return tf.nn.tanh(x @ w1 + b1) @ w2 + b2

    def mse(x, y, parameters):
        return tf.reduce_mean((forward(x, parameters) - y) ** 2)

    def start():
        return [
            tf.Variable(tf.random.normal([1, 12], seed=1)),
            tf.Variable(tf.zeros(12)),
            tf.Variable(tf.random.normal([12, 1], stddev=0.3, seed=2)),
            tf.Variable(tf.zeros([1])),
        ]

    def task():
        amplitude, phase = generator.uniform(0.5, 2), generator.uniform(0, np.pi)
        x = generator.uniform(-3, 3, (10, 1)).astype(np.float32)
        y = (amplitude * np.sin(x + phase)).astype(np.float32)
        return x[:5], y[:5], x[5:], y[5:]

    tasks = [[task() for _ in range(3)] for _ in range(4)]
    curves = {}
    for name, second_order in (("maml", True), ("first order", False)):
        tf.random.set_seed(5)
        parameters, optimizer, curve = start(), tf.optimizers.Adam(0.02), []
        for batch in tasks:
            with tf.GradientTape() as outer:
                losses = []
                for x_train, y_train, x_test, y_test in batch:
                    adapted = list(parameters)
                    for _ in range(2):
                        with tf.GradientTape(watch_accessed_variables=False) as inner:
                            inner.watch(adapted)
                            loss = mse(x_train, y_train, adapted)
                        gradients = inner.gradient(loss, adapted)
                        if not second_order:
                            gradients = tf.nest.map_structure(tf.stop_gradient, gradients)
                        adapted = [p - 0.05 * g for p, g in zip(adapted, gradients)]
                    losses.append(mse(x_test, y_test, adapted))
                total = tf.add_n(losses) / len(losses)
            gradients, norm = tf.clip_by_global_norm(outer.gradient(total, parameters), 10.0)
            optimizer.apply_gradients(zip(gradients, parameters))
            curve.append((total, norm))
        curves[name] = curve

    # Ridge regression: d(validation loss)/d(log penalty) through tf.linalg.solve.
    x, y = tf.constant(generator.normal(size=(12, 4))), tf.constant(generator.normal(size=(12, 1)))
    penalty = tf.Variable(0.1, dtype=tf.float64)
    with tf.GradientTape(persistent=True) as tape:
        gram = tf.linalg.matmul(x[:8], x[:8], transpose_a=True) + tf.exp(penalty) * tf.eye(4, dtype=tf.float64)
        solved = tf.linalg.solve(gram, tf.linalg.matvec(x[:8], y[:8, 0], transpose_a=True)[:, tf.newaxis])
        by_factor = tf.linalg.cholesky_solve(tf.linalg.cholesky(gram), tf.transpose(x[:8]) @ y[:8])
        losses = [tf.reduce_sum((x[8:] @ w - y[8:]) ** 2) for w in (solved, by_factor)]
    curves["ridge"] = [losses, [tape.gradient(loss, penalty) for loss in losses]]
    return curves
