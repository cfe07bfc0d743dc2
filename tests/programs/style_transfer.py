"""Style transfer: Gram matrices by einsum, total variation, an image as the only variable, clipped to its range."""

import numpy as np


def program(tf):
    generator = np.random.RandomState(8)
    content = tf.image.convert_image_dtype(generator.randint(0, 255, (1, 12, 14, 3)).astype(np.uint8), tf.float32)
    style = tf.image.resize(tf.constant(generator.uniform(size=(1, 9, 9, 3)), tf.float32), [12, 14], antialias=True)
    kernels = [tf.constant(generator.normal(size=s) * 0.3, dtype=tf.float32) for s in ((3, 3, 3, 6), (3, 3, 6, 8))]

    def features(image):
        means = tf.constant([0.485, 0.456, 0.406])
        hidden, found = tf.reverse(image - means, axis=[-1]), []
        for kernel in kernels:
            hidden = tf.nn.relu(tf.nn.conv2d(hidden, kernel, strides=1, padding="SAME", dilations=1))
            found.append(hidden)
            hidden = tf.nn.avg_pool(hidden, ksize=2, strides=2, padding="SAME")
        return found

    def gram_matrix(tensor):
        result = tf.linalg.einsum("bijc,bijd->bcd", tensor, tensor)
        shape = tf.shape(tensor)
        return result / tf.cast(shape[1] * shape[2], tf.float32)

    style_targets = [gram_matrix(f) for f in features(style)]
    content_target = features(content)[-1]
    image = tf.Variable(content)
    optimizer = tf.optimizers.Adam(learning_rate=0.02, beta_1=0.99, epsilon=1e-1)
    curve = {"loss": [], "variation": [], "edges": []}
    for _ in range(5):
        with tf.GradientTape() as tape:
            found = features(image)
            style_loss = tf.add_n([tf.reduce_mean((gram_matrix(f) - t) ** 2) for f, t in zip(found, style_targets)])
            content_loss = tf.nn.l2_loss(found[-1] - content_target)
            variation = tf.squeeze(tf.image.total_variation(image))
            dy, dx = tf.image.image_gradients(image)
            loss = 10.0 * style_loss + 1e-2 * content_loss + 1e-3 * variation + 1e-3 * tf.reduce_sum(tf.abs(dy) + tf.abs(dx))
        gradient = tape.gradient(loss, image)
        gradient /= tf.math.reduce_std(gradient) + 1e-8
        optimizer.apply_gradients([(gradient, image)])
        image.assign(tf.clip_by_value(image, clip_value_min=0.0, clip_value_max=1.0))
        curve["loss"].append(loss)
        curve["variation"].append(variation)
        curve["edges"].append(tf.reduce_mean(tf.abs(tf.image.sobel_edges(image))))
    curve["ssim"] = tf.image.ssim(image, content, max_val=1.0, filter_size=5)
    curve["psnr"] = tf.image.psnr(image, content, max_val=1.0)

    # DeepDream: gradient ascent on random crops that were rolled first.
    dream = tf.convert_to_tensor(content)
    for shift in (3, -2):
        rolled = tf.roll(tf.roll(dream, shift, axis=1), -shift, axis=2)
        with tf.GradientTape() as tape:
            tape.watch(rolled)
            activations = features(rolled)
            loss = tf.reduce_sum([tf.math.reduce_mean(activation) for activation in activations])
        gradient = tape.gradient(loss, rolled)
        gradient /= tf.math.reduce_std(gradient) + 1e-8
        dream = tf.roll(tf.roll(rolled + gradient * 0.01, -shift, axis=1), shift, axis=2)
    curve["dream"] = dream[0, ::4, ::4, 0]
    return curve
