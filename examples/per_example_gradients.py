"""The gradient of every example by itself: clipped one by one, as private training (DP-SGD) needs it.

    python examples/per_example_gradients.py

An example that pulls hard on the weights gives itself away. Clipping each gradient to the same length bounds what one example
can do, and noise hides the rest. All gradients of a batch come from one vectorised pass, not from a loop. Some labels are
wrong on purpose: after training, the longest gradients point at them.
"""

from __future__ import annotations

import argparse

import numpy as np

import gradtape as tf

CLIP, NOISE, WRONG = 0.5, 0.6, 0.08


def moons(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two half circles, one in the arm of the other."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=count)
    angle = rng.uniform(0.0, np.pi, count)
    points = np.stack([np.cos(angle) + labels - 0.5, np.where(labels, -np.sin(angle) + 0.3, np.sin(angle) - 0.3)], axis=1)
    return (points + rng.normal(scale=0.12, size=(count, 2))).astype(np.float32), labels.astype(np.float32)


def private(per_example: list[tf.Tensor]) -> tuple[list[tf.Tensor], tf.Tensor]:
    """The mean of the gradients, each clipped to the length CLIP, and noise; also how long they were."""
    count = per_example[0].shape[0]
    lengths = tf.sqrt(sum(tf.reduce_sum(tf.reshape(g, [count, -1]) ** 2, axis=1) for g in per_example))
    factors = tf.minimum(1.0, CLIP / lengths)
    sums = [tf.tensordot(factors, g, axes=1) for g in per_example]
    return [(s + tf.random.normal(s.shape, stddev=NOISE * CLIP)) / count for s in sums], lengths


def main(arguments: list[str] | None = None) -> tuple[float, float]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400)
    options = parser.parse_args(arguments)

    tf.random.set_seed(0)
    rng = np.random.default_rng(0)
    points, truth = moons(1000, seed=0)
    wrong = rng.random(len(truth)) < WRONG
    labels = np.where(wrong, 1.0 - truth, truth).astype(np.float32)

    w1, b1 = tf.Variable(tf.random.normal([2, 16])), tf.Variable(tf.zeros([16]))
    w2, b2 = tf.Variable(tf.random.normal([16, 1]) / 4.0), tf.Variable(tf.zeros([1]))
    variables = [w1, b1, w2, b2]
    optimizer = tf.optimizers.Adam(learning_rate=0.02)

    def logits_of(points: tf.Tensor) -> tf.Tensor:
        return (tf.tanh(points @ w1 + b1) @ w2 + b2)[..., 0]

    def loss_of_one(point: tf.Tensor, label: tf.Tensor) -> tf.Tensor:
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=label[None], logits=logits_of(point[None]))

    test_points, test_truth = moons(2000, seed=1)
    accuracy = 0.0
    print("step   accuracy   length of a gradient: median, longest   clipped")
    for step in range(options.steps):
        chosen = rng.integers(0, len(points), 256)
        batch = tf.constant(points[chosen]), tf.constant(labels[chosen])
        gradients, lengths = private(tf.autodiff.per_example_gradients(loss_of_one, variables, batch))
        optimizer.apply_gradients(zip(gradients, variables))
        if step % 80 == 0 or step == options.steps - 1:
            accuracy = float(np.mean((logits_of(tf.constant(test_points)).numpy() > 0) == (test_truth > 0.5)))
            middle, longest, clipped = np.median(lengths), np.max(lengths), np.mean(lengths.numpy() > CLIP)
            print(f"{step:4d}   {accuracy:8.1%}   {middle:29.2f}, {longest:7.2f}   {clipped:7.0%}")

    everything = tf.autodiff.per_example_gradients(loss_of_one, variables, (tf.constant(points), tf.constant(labels)))
    _, lengths = private(everything)
    suspects = np.argsort(lengths.numpy())[-int(wrong.sum()) :]
    found = float(wrong[suspects].mean())
    print(f"\n{len(suspects)} labels are wrong; of as many examples with the longest gradients, {found:.0%} are among them")
    return accuracy, found


if __name__ == "__main__":
    main()
