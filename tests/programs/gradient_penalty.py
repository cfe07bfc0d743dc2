"""WGAN-GP: the critic's loss holds the norm of its own gradient; several critic steps for one of the generator."""

from itertools import pairwise

import numpy as np


def program(tf):
    tf.random.set_seed(21)
    real = np.random.RandomState(0).normal([2.0, -1.0], [0.5, 1.0], size=(64, 2)).astype(np.float32)
    stream = iter(tf.data.Dataset.from_tensor_slices(real).repeat().batch(8))

    def layers(*sizes):
        return [
            (tf.Variable(tf.random.normal([a, b]) / tf.sqrt(float(a))), tf.Variable(tf.zeros([b])))
            for a, b in pairwise(sizes)
        ]

    def apply(parameters, x):
        for weight, bias in parameters[:-1]:
            x = tf.nn.softplus(x @ weight + bias)
        weight, bias = parameters[-1]
        return x @ weight + bias

    generator, critic = layers(3, 8, 2), layers(2, 8, 8, 1)
    generator_variables, critic_variables = tf.nest.flatten(generator), tf.nest.flatten(critic)
    generator_optimizer = tf.optimizers.Adam(1e-2, beta_1=0.0, beta_2=0.9)
    critic_optimizer = tf.optimizers.Adam(1e-2, beta_1=0.0, beta_2=0.9)
    curve = {"critic": [], "penalty": [], "generator": []}
    for _ in range(4):
        for _ in range(3):
            batch = next(stream)
            fake = apply(generator, tf.random.normal([tf.shape(batch)[0], 3]))
            alpha = tf.random.uniform([tf.shape(batch)[0], 1], 0.0, 1.0)
            with tf.GradientTape() as tape:
                mixed = batch + alpha * (fake - batch)
                with tf.GradientTape() as inner:
                    inner.watch(mixed)
                    score = apply(critic, mixed)
                slopes = tf.sqrt(tf.reduce_sum(tf.square(inner.gradient(score, [mixed])[0]), axis=[1]) + 1e-12)
                penalty = tf.reduce_mean((slopes - 1.0) ** 2)
                loss = tf.reduce_mean(apply(critic, fake)) - tf.reduce_mean(apply(critic, batch)) + 10.0 * penalty
            critic_optimizer.apply_gradients(zip(tape.gradient(loss, critic_variables), critic_variables))
            curve["critic"].append(loss)
            curve["penalty"].append(penalty)
        with tf.GradientTape() as tape:
            loss = -tf.reduce_mean(apply(critic, apply(generator, tf.random.normal([8, 3]))))
        generator_optimizer.apply_gradients(zip(tape.gradient(loss, generator_variables), generator_variables))
        curve["generator"].append(loss)
    return curve
