"""A variational autoencoder: reparameterised draws, the KL term, an Adam schedule and averaged weights."""

import numpy as np


def program(tf):
    tf.random.set_seed(11)
    data = (np.random.RandomState(0).uniform(size=(48, 12)) > 0.6).astype(np.float32)
    dataset = tf.data.Dataset.from_tensor_slices(data).batch(16, drop_remainder=True).prefetch(tf.data.AUTOTUNE)

    def glorot(rows, columns):
        limit = tf.sqrt(6.0 / tf.cast(rows + columns, tf.float32))
        return tf.Variable(tf.random.uniform([rows, columns], -limit, limit))

    encoder, decoder = [glorot(12, 10), glorot(10, 6)], [glorot(3, 10), glorot(10, 12)]
    biases = [tf.Variable(tf.zeros(n)) for n in (10, 6, 10, 12)]
    variables = encoder + decoder + biases
    schedule = tf.optimizers.schedules.ExponentialDecay(0.02, decay_steps=4, decay_rate=0.8, staircase=True)
    optimizer = tf.optimizers.Adam(learning_rate=schedule)
    averages = tf.train.ExponentialMovingAverage(decay=0.9)

    def log_normal_pdf(sample, mean, log_variance, axis=1):
        log2pi = tf.math.log(2.0 * np.pi)
        return tf.reduce_sum(-0.5 * ((sample - mean) ** 2.0 * tf.exp(-log_variance) + log_variance + log2pi), axis=axis)

    def elbo(x):
        hidden = tf.nn.elu(x @ encoder[0] + biases[0])
        mean, log_variance = tf.split(hidden @ encoder[1] + biases[1], num_or_size_splits=2, axis=1)
        noise = tf.random.normal(shape=tf.shape(mean))
        z = noise * tf.exp(log_variance * 0.5) + mean
        logits = tf.nn.selu(z @ decoder[0] + biases[2]) @ decoder[1] + biases[3]
        entropy = tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=x)
        log_px = -tf.reduce_sum(entropy, axis=[1])
        kl = -0.5 * tf.reduce_sum(1 + log_variance - tf.square(mean) - tf.exp(log_variance), axis=-1)
        sampled = tf.reduce_mean(log_px + log_normal_pdf(z, 0.0, 0.0) - log_normal_pdf(z, mean, log_variance))
        return -tf.reduce_mean(log_px) + tf.reduce_mean(kl), sampled

    curve = {"loss": [], "sampled": []}
    for _ in range(3):
        for batch in dataset:
            with tf.GradientTape() as tape:
                loss, sampled = elbo(batch)
            gradients = tape.gradient(loss, variables)
            optimizer.apply_gradients(zip(gradients, variables))
            averages.apply(variables)
            curve["loss"].append(loss)
            curve["sampled"].append(sampled)
    curve["average"] = averages.average(decoder[1])
    curve["gumbel"] = tf.nn.softmax(-tf.math.log(-tf.math.log(tf.random.uniform([2, 4], 1e-6, 1.0))) / 0.5)
    return curve
