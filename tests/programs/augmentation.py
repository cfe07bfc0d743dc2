"""Image pipelines: decoded files, random and fixed augmentations, mixing, an adversarial step and an occlusion map."""

import tempfile
from pathlib import Path

import numpy as np


def program(tf):
    tf.random.set_seed(17)
    generator = np.random.RandomState(5)
    out = {}
    with tempfile.TemporaryDirectory() as folder:
        for i in range(6):
            picture = tf.constant(generator.randint(0, 256, (12, 10, 3)), tf.uint8)
            tf.io.write_file(str(Path(folder) / f"{i % 2}_{i}.png"), tf.io.encode_png(picture))
        files = tf.data.Dataset.list_files(str(Path(folder) / "*.png"), shuffle=False)

        def load(path):
            image = tf.image.decode_png(tf.io.read_file(path), channels=3)
            label = tf.strings.to_number(tf.strings.split(tf.strings.split(path, "/")[-1], "_")[0], tf.int32)
            return tf.image.convert_image_dtype(image, tf.float32), label

        def augment(image, label):
            image = tf.image.resize_with_crop_or_pad(image, 14, 14)
            image = tf.image.random_crop(image, size=[10, 10, 3], seed=1)
            image = tf.image.random_flip_left_right(image, seed=2)
            image = tf.image.random_brightness(image, max_delta=0.2, seed=3)
            image = tf.image.random_contrast(image, lower=0.8, upper=1.2, seed=4)
            image = tf.image.random_saturation(image, 0.7, 1.3, seed=5)
            image = tf.image.random_hue(image, 0.1, seed=6)
            return tf.image.per_image_standardization(tf.clip_by_value(image, 0.0, 1.0)), label

        dataset = files.map(load, num_parallel_calls=1).cache()
        plain = next(iter(dataset.batch(6)))
        # A random number in a map is drawn from the function's own generator there; eagerly they are drawn in order.
        batch = [tf.stack(part) for part in zip(*(augment(*element) for element in dataset))]
    out["plain"] = tf.reduce_mean(plain[0], axis=[1, 2, 3])
    out["augmented"] = tf.reduce_mean(batch[0] ** 3, axis=[1, 2, 3])
    out["labels"] = batch[1]

    images, labels = plain
    mix = tf.reshape(tf.random.stateless_uniform([6], seed=(1, 2)), [6, 1, 1, 1])
    partner = tf.random.experimental.stateless_shuffle(tf.range(6), seed=[1, 2])
    images = mix * images + (1 - mix) * tf.gather(images, partner)
    kernel = tf.Variable(generator.normal(size=(3, 3, 3, 4)) * 0.3, dtype=tf.float32)
    point = tf.Variable(generator.normal(size=(1, 1, 12, 2)) * 0.3, dtype=tf.float32)
    depth = tf.Variable(generator.normal(size=(3, 3, 4, 3)) * 0.3, dtype=tf.float32)

    def classify(x):
        x = tf.nn.relu6(tf.nn.conv2d(tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT"), kernel, 2, "VALID"))
        x = tf.nn.separable_conv2d(x, depth, point, strides=[1, 1, 1, 1], padding="SAME")
        return tf.reduce_max(tf.nn.space_to_depth(x[:, :4, :4], 2), axis=[1, 2])[:, :2]

    optimizer, curve = tf.optimizers.Adamax(0.05), []
    for _ in range(4):
        with tf.GradientTape() as tape:
            smooth = tf.one_hot(labels, 2, on_value=0.9, off_value=0.1)
            loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(smooth, classify(images)))
        variables = [kernel, point, depth]
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        curve.append(loss)
    out["loss"] = curve

    with tf.GradientTape() as tape:
        tape.watch(images)
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, classify(images))
    out["fgsm"] = tf.reduce_mean(images + 0.1 * tf.sign(tape.gradient(loss, images)), axis=[1, 2])
    with tf.GradientTape() as tape:
        tape.watch(images)
        small = tf.image.resize(tf.image.rgb_to_grayscale(images), (5, 7), method=tf.image.ResizeMethod.BICUBIC)
        crops = tf.image.crop_and_resize(images, [[0.1, 0.2, 0.8, 0.9]], [3], [4, 4])
        target = tf.reduce_sum(small**2) + tf.reduce_sum(tf.image.rot90(crops) * tf.image.flip_up_down(crops))
        target += tf.reduce_sum(tf.image.extract_patches(images, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID") ** 3)
    out["resampled"] = tf.reduce_mean(tape.gradient(target, images), axis=[1, 2])
    return out
