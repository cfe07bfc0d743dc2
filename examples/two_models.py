"""A generator and a discriminator: two models, two losses, one recording.

    python examples/two_models.py

The generator learns to turn uniform noise into a normal distribution with mean 3 and deviation 0.5. The persistent tape
is asked twice, and each optimizer gets the gradients of its own model's variables. The discriminator's loss holds a
gradient of its own, from a tape inside the tape: a gradient penalty.
"""

from __future__ import annotations

import argparse

import gradtape as tf


def dense(n_in: int, n_out: int) -> list[tf.Variable]:
    return [tf.Variable(tf.random.normal([n_in, n_out]) / n_in**0.5), tf.Variable(tf.zeros([n_out]))]


def run(model: list[list[tf.Variable]], x: tf.Tensor) -> tf.Tensor:
    *hidden, (kernel, bias) = model
    for k, b in hidden:
        x = tf.tanh(x @ k + b)
    return x @ kernel + bias


def cross_entropy(logits: tf.Tensor, truth: float) -> tf.Tensor:
    labels = tf.fill(tf.shape(logits), truth)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))


def main(arguments: list[str] | None = None) -> tuple[float, float]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--eager", action="store_true", help="no compiled program")
    options = parser.parse_args(arguments)

    tf.config.run_functions_eagerly(options.eager)
    tf.random.set_seed(3)
    generator = [dense(2, 16), dense(16, 1)]
    discriminator = [dense(1, 16), dense(16, 16), dense(16, 1)]
    generator_variables = [v for layer in generator for v in layer]
    discriminator_variables = [v for layer in discriminator for v in layer]
    generator_optimizer = tf.optimizers.Adam(2e-3, beta_1=0.5)
    discriminator_optimizer = tf.optimizers.Adam(4e-3, beta_1=0.5)

    @tf.function
    def train() -> None:
        real = tf.random.normal([128, 1], mean=3.0, stddev=0.5)
        noise = tf.random.uniform([128, 2], -1.0, 1.0)
        with tf.GradientTape(persistent=True) as tape:
            with tf.GradientTape() as inner:
                inner.watch(real)
                judged_real = run(discriminator, real)
            steepness = tf.reduce_mean(inner.gradient(judged_real, real) ** 2)  # kept small, or the two chase each other
            judged_fake = run(discriminator, run(generator, noise))
            generator_loss = cross_entropy(judged_fake, 1.0)
            discriminator_loss = cross_entropy(judged_real, 1.0) + cross_entropy(judged_fake, 0.0) + 0.3 * steepness
        generator_gradients = tape.gradient(generator_loss, generator_variables)
        discriminator_gradients = tape.gradient(discriminator_loss, discriminator_variables)
        del tape
        generator_optimizer.apply_gradients(zip(generator_gradients, generator_variables))
        discriminator_optimizer.apply_gradients(zip(discriminator_gradients, discriminator_variables))

    mean = deviation = 0.0
    for step in range(options.steps):
        train()
        if step % 250 == 0 or step == options.steps - 1:
            sample = run(generator, tf.random.uniform([4096, 2], -1.0, 1.0))
            mean, deviation = float(tf.reduce_mean(sample)), float(tf.math.reduce_std(sample))
            print(f"step {step:4d}  generated: mean {mean:.2f}, deviation {deviation:.2f}   (wanted 3.00, 0.50)")
    return mean, deviation


if __name__ == "__main__":
    main()
