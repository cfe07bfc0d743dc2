"""The Jacobian of a layer's output with respect to its kernel and its input, watched while the layer learns.

python examples/jacobian_of_a_layer.py
"""

from __future__ import annotations

import argparse

import numpy as np

import gradtape as tf


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args(arguments)

    tf.random.set_seed(1)
    x = tf.random.normal([8, 5])
    target = tf.tanh(x @ tf.random.normal([5, 3]))
    kernel, bias = tf.Variable(tf.zeros([5, 3]), name="kernel"), tf.Variable(tf.zeros([3]), name="bias")
    optimizer = tf.optimizers.SGD(learning_rate=0.5)

    sensitivity = 0.0
    for step in range(options.steps):
        with tf.GradientTape(persistent=True) as tape:  # asked twice: for the gradient and for the Jacobians
            tape.watch(x)
            out = tf.tanh(x @ kernel + bias)
            loss = tf.reduce_mean((out - target) ** 2)
        if step % 25 == 0:
            by_kernel = tape.jacobian(out, kernel)  # [8, 3, 5, 3]: every output by every weight
            by_row = tape.batch_jacobian(out, x)  # [8, 3, 5]: each row of the output by the same row of the input
            sensitivity = float(tf.reduce_max(tf.sqrt(tf.reduce_sum(by_row**2, axis=[1, 2]))))
            print(f"step {step:3d}  loss {float(loss):.4f}  {tuple(by_kernel.shape)}  largest |∂out/∂x| {sensitivity:.3f}")
            # The formula by hand: ∂out[b,j]/∂kernel[i,k] = (1 − out[b,j]²) · x[b,i] · δ(j,k)
            by_hand = np.einsum("bj,bi,jk->bjik", 1 - out.numpy() ** 2, x.numpy(), np.eye(3))
            np.testing.assert_allclose(by_kernel, by_hand, rtol=1e-4, atol=1e-6)
        gradients = tape.gradient(loss, [kernel, bias])
        del tape  # a persistent tape holds its records until it dies
        optimizer.apply_gradients(zip(gradients, [kernel, bias]))
    return sensitivity


if __name__ == "__main__":
    main()
