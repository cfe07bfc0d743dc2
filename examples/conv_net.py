"""A convolutional network on drawn shapes: `tf.data` with augmentation, and training that is interrupted and resumed.

    python examples/conv_net.py

The program stops half-way and starts over with new objects; the checkpoint holds the model, the optimizer, the position in
the data and the random streams, so that the rest of the training is what it would have been. Ends with a confusion matrix.
"""

from __future__ import annotations

import argparse
import tempfile

import numpy as np

import gradtape as tf

SIDE, SHAPES = 16, ("disc", "square", "ring", "cross")


def drawn_shapes(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy grey images [count, 16, 16, 1] of shapes at random places and sizes, and which shape each is."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(len(SHAPES), size=count)
    center, size = rng.uniform(5.5, 9.5, (2, count, 1, 1)), rng.uniform(3.0, 5.0, (count, 1, 1))
    rows, columns = np.abs(np.mgrid[:SIDE, :SIDE][:, None] - center)
    far, near, distance = np.maximum(rows, columns), np.minimum(rows, columns), np.hypot(rows, columns)
    masks = [distance < size, far < size * 0.85, np.abs(distance - size) < 1.0, (near < 1.2) & (far < size)]
    images = np.choose(labels[:, None, None], masks) + rng.normal(scale=0.2, size=(count, SIDE, SIDE))
    return images[..., None].astype(np.float32), labels


def augmented(images: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Mirrored, shifted by up to two pixels, brighter or darker: a whole batch at a time."""
    images = tf.image.random_flip_left_right(images)
    images = tf.image.random_crop(tf.pad(images, [[0, 0], [2, 2], [2, 2], [0, 0]]), tf.shape(images))
    return tf.image.random_brightness(images, 0.2), labels


class ConvNet(tf.Module):
    """Two convolutions with pooling, then one dense layer."""

    def __init__(self) -> None:
        super().__init__()
        self.filters = [self.weights(3, 3, 1, 8), self.weights(3, 3, 8, 16)]
        self.biases = [tf.Variable(tf.zeros([8])), tf.Variable(tf.zeros([16]))]
        self.kernel = self.weights(4 * 4 * 16, len(SHAPES))

    @staticmethod
    def weights(*shape: int) -> tf.Variable:
        return tf.Variable(tf.random.normal(shape, stddev=np.sqrt(2.0 / np.prod(shape[:-1]))))

    def __call__(self, images: tf.Tensor) -> tf.Tensor:
        x = images
        for filters, bias in zip(self.filters, self.biases):
            x = tf.nn.relu(tf.nn.conv2d(x, filters, strides=1, padding="SAME") + bias)
            x = tf.nn.max_pool2d(x, 2, strides=2, padding="VALID")
        return tf.reshape(x, [-1, 4 * 4 * 16]) @ self.kernel


class Training:
    """All that a run consists of, and the checkpoint that holds it."""

    def __init__(self, folder: str) -> None:
        self.net, self.optimizer, self.step = ConvNet(), tf.optimizers.Adam(3e-3), tf.Variable(0)
        images = tf.data.Dataset.from_tensor_slices(drawn_shapes(2000, seed=0)).shuffle(2000, seed=0)
        self.batches = iter(images.repeat().batch(32).map(augmented))
        checkpoint = tf.train.Checkpoint(
            net=self.net, optimizer=self.optimizer, step=self.step, batches=self.batches, random=tf.train.RandomStreams()
        )
        self.manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)

    def run(self, until: int) -> None:
        """Go on from the latest checkpoint, if there is one; leave one behind."""
        self.manager.restore_or_initialize()
        print(f"starts at step {int(self.step)}")
        variables = self.net.trainable_variables
        while int(self.step) < until:
            images, labels = next(self.batches)
            with tf.GradientTape() as tape:
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=self.net(images))
                loss = tf.reduce_mean(losses)
            self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            self.step.assign_add(1)
            if int(self.step) % 50 == 0:
                print(f"  step {int(self.step):4d}  loss {float(loss):.3f}")
        self.manager.save()


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    options = parser.parse_args(arguments)

    tf.random.set_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        Training(folder).run(until=options.steps // 2)
        print("interrupted; everything is made anew")
        resumed = Training(folder)
        resumed.run(until=options.steps)

    images, labels = drawn_shapes(1000, seed=1)
    predicted = tf.argmax(resumed.net(tf.constant(images)), axis=1)
    table = tf.math.confusion_matrix(labels, predicted, num_classes=len(SHAPES)).numpy()
    print("\nunseen images  " + "".join(f"{name:>8}" for name in SHAPES) + "   (predicted)")
    for name, row in zip(SHAPES, table):
        print(f"{name:<15}" + "".join(f"{n:8d}" for n in row))
    accuracy = float(np.trace(table) / table.sum())
    print(f"accuracy {accuracy:.1%}")
    return accuracy


if __name__ == "__main__":
    main()
