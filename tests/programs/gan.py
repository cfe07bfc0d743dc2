"""A convolutional GAN: two tapes over one forward pass, two optimizers, a dataset, checkpoints and summaries."""

import tempfile
from pathlib import Path


def program(tf):
    tf.random.set_seed(1)
    images = tf.random.uniform([32, 8, 8, 1], -1.0, 1.0)
    # One batch is the whole set, so its shuffled order makes no difference.
    dataset = tf.data.Dataset.from_tensor_slices(images).shuffle(32, seed=3).batch(32)

    initializer = tf.random_normal_initializer(stddev=0.1, seed=2)

    class Generator(tf.Module):
        def __init__(self):
            super().__init__(name="generator")
            self.project = tf.Variable(initializer([6, 4 * 4 * 8]), name="project")
            self.scale = tf.Variable(tf.ones([8]), name="scale")
            self.shift = tf.Variable(tf.zeros([8]), name="shift")
            self.filters = tf.Variable(tf.random.truncated_normal([5, 5, 1, 8], stddev=0.1), name="filters")

        def __call__(self, noise):
            hidden = tf.reshape(tf.matmul(noise, self.project), [-1, 4, 4, 8])
            mean, variance = tf.nn.moments(hidden, axes=[0, 1, 2])
            hidden = tf.nn.batch_normalization(hidden, mean, variance, self.shift, self.scale, 1e-3)
            hidden = tf.nn.leaky_relu(hidden, alpha=0.3)
            size = tf.stack([tf.shape(noise)[0], 8, 8, 1])
            return tf.tanh(tf.nn.conv2d_transpose(hidden, self.filters, size, strides=2, padding="SAME"))

    class Discriminator(tf.Module):
        def __init__(self):
            super().__init__(name="discriminator")
            self.filters = tf.Variable(tf.random.normal([3, 3, 1, 8], stddev=0.2), name="filters")
            self.bias = tf.Variable(tf.zeros([8]), name="bias")
            self.readout = tf.Variable(tf.random.normal([8, 1], stddev=0.2), name="readout")

        def __call__(self, pictures):
            hidden = tf.nn.conv2d(pictures, self.filters, strides=[1, 2, 2, 1], padding="SAME")
            hidden = tf.nn.leaky_relu(tf.nn.bias_add(hidden, self.bias))
            hidden = tf.nn.max_pool2d(hidden, 2, 2, "VALID") + tf.nn.avg_pool2d(hidden, 2, 2, "VALID")
            return tf.reduce_mean(hidden, axis=[1, 2]) @ self.readout

    def entropy(label, logits):
        labels = tf.fill(tf.shape(logits), label)
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))

    generator, discriminator = Generator(), Discriminator()
    generator_optimizer = tf.optimizers.Adam(1e-2, beta_1=0.5)
    discriminator_optimizer = tf.optimizers.RMSprop(1e-2)
    curves = {"generator": [], "discriminator": []}

    def train_step(batch):
        noise = tf.random.normal([tf.shape(batch)[0], 6])
        with tf.GradientTape() as generator_tape, tf.GradientTape() as discriminator_tape:
            fake = generator(noise)
            real_logits, fake_logits = discriminator(batch), discriminator(fake)
            generator_loss = entropy(1.0, fake_logits)
            discriminator_loss = entropy(1.0, real_logits) + entropy(0.0, fake_logits)
        gradients = generator_tape.gradient(generator_loss, generator.trainable_variables)
        generator_optimizer.apply_gradients(zip(gradients, generator.trainable_variables))
        gradients = discriminator_tape.gradient(discriminator_loss, discriminator.trainable_variables)
        discriminator_optimizer.apply_gradients(zip(gradients, discriminator.trainable_variables))
        return generator_loss, discriminator_loss

    with tempfile.TemporaryDirectory() as folder:
        step = tf.Variable(0, dtype=tf.int64, trainable=False)
        checkpoint = tf.train.Checkpoint(step=step, generator=generator, discriminator=discriminator)
        manager = tf.train.CheckpointManager(checkpoint, str(Path(folder) / "saved"), max_to_keep=2)
        writer = tf.summary.create_file_writer(str(Path(folder) / "logs"))
        for _ in range(5):
            for batch in dataset:
                losses = train_step(batch)
                step.assign_add(1)
                for name, loss in zip(curves, losses):
                    curves[name].append(loss)
                with writer.as_default(step=step.numpy()):
                    tf.summary.scalar("loss/generator", losses[0])
                    tf.summary.image("fake", (generator(tf.ones([1, 6])) + 1) / 2, step=step)
                    tf.summary.histogram("scale", generator.scale, step=int(step))
            manager.save()
        before = tf.identity(generator.filters)
        generator.filters.assign(tf.zeros_like(generator.filters))
        checkpoint.restore(manager.latest_checkpoint).assert_existing_objects_matched()
        curves["restored"] = [tf.reduce_max(tf.abs(before - generator.filters)), tf.cast(step, tf.float32)]
        curves["kept"] = [len(manager.checkpoints), len(tf.io.gfile.glob(str(Path(folder) / "logs" / "events*")))]
    return curves
