"""Differentially private SGD and influence functions: one gradient per example, by vectorized_map and by Jacobian."""

import numpy as np


def program(tf):
    generator = np.random.RandomState(6)
    x = tf.constant(generator.normal(size=(12, 4)), dtype=tf.float32)
    y = tf.constant(generator.randint(0, 3, 12))
    weight = tf.Variable(generator.normal(size=(4, 3)) * 0.3, dtype=tf.float32)
    bias = tf.Variable(tf.zeros([3]))

    def losses(inputs, labels):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.matmul(inputs, weight) + bias)

    def one_gradient(example):
        inputs, label = example
        with tf.GradientTape() as tape:
            loss = losses(inputs[None], label[None])[0]
        return tape.gradient(loss, [weight, bias])

    def by_jacobian():
        with tf.GradientTape() as tape:
            found = losses(x, y)
        return tape.jacobian(found, [weight, bias])

    curve = []
    for step in range(4):
        way = step % 3
        if way == 0:
            gradients = tf.vectorized_map(one_gradient, (x, y))
        elif way == 1:
            gradients = by_jacobian()
        else:
            gradients = tf.map_fn(one_gradient, (x, y), fn_output_signature=[tf.float32, tf.float32])
        squares = [tf.reduce_sum(tf.square(g), axis=tf.range(1, tf.rank(g))) for g in gradients]
        norms = tf.sqrt(tf.add_n(squares))
        factor = tf.minimum(1.0, 0.5 / norms)
        noise = tf.random.stateless_normal([3], seed=[step, 1], stddev=0.01)
        clipped = [tf.tensordot(factor, g, axes=1) / 12.0 for g in gradients]
        weight.assign_sub(2.0 * clipped[0])
        bias.assign_sub(2.0 * (clipped[1] + noise))
        curve.append([tf.reduce_mean(losses(x, y)), tf.reduce_max(norms)])

    # Influence of each example on one prediction: H^-1 v, with the Hessian of the damped loss.
    flat = tf.Variable(tf.concat([tf.reshape(weight, [-1]), bias], 0))
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            logits = x @ tf.reshape(flat[:12], [4, 3]) + flat[12:]
            probability = tf.nn.log_softmax(logits, axis=-1)
            loss = -tf.reduce_mean(tf.gather(probability, y, batch_dims=1)) + 0.05 * tf.nn.l2_loss(flat)
        gradient = inner.gradient(loss, flat)
    hessian = outer.jacobian(gradient, flat)
    eigenvalues = tf.linalg.eigvalsh(hessian)
    influence = tf.linalg.lstsq(hessian, gradient[:, None], fast=False)
    with tf.GradientTape() as tape:
        tape.watch(x)
        output = tf.nn.softmax(x @ weight + bias)
    return {
        "loss": curve,
        "eigenvalues": eigenvalues,
        "influence": influence,
        "fisher": tf.linalg.slogdet(hessian),
        "input Jacobians": tape.batch_jacobian(output, x)[:2],
    }
