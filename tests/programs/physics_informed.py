"""Burgers' equation by a network: second derivatives in the inputs inside the loss, float64, a hand-written L-BFGS step."""

from itertools import pairwise

import numpy as np


def program(tf):
    generator = np.random.RandomState(4)
    sizes = [2, 8, 8, 1]
    weights = [
        tf.Variable(generator.normal(size=(a, b)) * np.sqrt(2 / (a + b)), dtype=tf.float64) for a, b in pairwise(sizes)
    ]
    biases = [tf.Variable(tf.zeros([1, b], dtype=tf.float64)) for b in sizes[1:]]
    viscosity = tf.Variable([-3.0], dtype=tf.float64)
    variables = weights + biases + [viscosity]
    points = tf.convert_to_tensor(generator.uniform(-1, 1, (20, 2)), dtype="float64")
    edge = tf.concat([tf.linspace(tf.constant(-1.0, tf.float64), 1.0, 9)[:, tf.newaxis], tf.zeros([9, 1], tf.float64)], 1)
    edge_values = -tf.sin(np.pi * edge[:, :1])

    def network(inputs):
        hidden = 2.0 * (inputs + 1.0) / 2.0 - 1.0
        for weight, bias in zip(weights[:-1], biases[:-1]):
            hidden = tf.tanh(tf.add(tf.matmul(hidden, weight), bias))
        return tf.add(tf.matmul(hidden, weights[-1]), biases[-1])

    def residual(inputs):
        x, t = inputs[:, 0:1], inputs[:, 1:2]
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(x)
            outer.watch(t)
            u = network(tf.stack([x[:, 0], t[:, 0]], axis=1))
            u_x = outer.gradient(u, x)
        u_t, u_xx = outer.gradient(u, t), outer.gradient(u_x, x)
        del outer
        return u_t + u * u_x - tf.exp(viscosity) * u_xx

    def loss_and_flat_gradient():
        with tf.GradientTape() as tape:
            data = tf.reduce_mean(tf.square(network(edge) - edge_values))
            loss = data + tf.reduce_mean(tf.square(residual(points)))
        gradients = tape.gradient(loss, variables)
        return loss, tf.concat([tf.reshape(g, [-1]) for g in gradients], 0)

    def assign(flat):
        counts = [int(tf.size(v)) for v in variables]
        for variable, part in zip(variables, tf.split(flat, counts)):
            variable.assign(tf.reshape(part, variable.shape))

    optimizer, curve = tf.optimizers.Adam(0.01), []
    for _ in range(4):
        loss, flat = loss_and_flat_gradient()
        pieces = tf.split(flat, [int(tf.size(v)) for v in variables])
        optimizer.apply_gradients([(tf.reshape(g, v.shape), v) for g, v in zip(pieces, variables)])
        curve.append(loss)

    # Two-loop recursion with a memory of pairs.
    position = tf.concat([tf.reshape(v, [-1]) for v in variables], axis=0)
    loss, gradient = loss_and_flat_gradient()
    pairs = []
    for _ in range(4):
        direction, factors = -gradient, []
        for s, y in reversed(pairs):
            factor = tf.tensordot(s, direction, 1) / tf.tensordot(y, s, 1)
            factors.append(factor)
            direction -= factor * y
        for (s, y), factor in zip(pairs, reversed(factors)):
            direction += s * (factor - tf.reduce_sum(y * direction) / tf.reduce_sum(y * s))
        step = 1.0 if pairs else tf.minimum(tf.constant(1.0, tf.float64), 1.0 / tf.norm(gradient, ord=1))
        assign(position + step * direction)
        new_loss, new_gradient = loss_and_flat_gradient()
        pairs.append((step * direction, new_gradient - gradient))
        position, gradient = position + step * direction, new_gradient
        curve.append(new_loss)
    return {"loss": curve, "viscosity": viscosity, "residual": residual(points)}
