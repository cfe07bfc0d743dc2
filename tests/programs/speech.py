"""Speech: log-mel features from an STFT, a small convolutional model, CTC, SpecAugment masks and greedy decoding."""

import numpy as np


def program(tf):
    tf.random.set_seed(9)
    time = np.arange(1600) / 1600.0
    waves = np.stack([np.sin(2 * np.pi * f * time) + 0.1 * np.cos(2 * np.pi * 3 * f * time) for f in (60.0, 110.0)])
    signals = tf.cast(waves, tf.float32)
    spectrum = tf.signal.stft(signals, frame_length=128, frame_step=64, fft_length=128, window_fn=tf.signal.hann_window)
    power = tf.math.square(tf.abs(spectrum))
    mel = tf.signal.linear_to_mel_weight_matrix(
        num_mel_bins=10, num_spectrogram_bins=power.shape[-1], sample_rate=1600, lower_edge_hertz=20.0, upper_edge_hertz=700.0
    )
    log_mel = tf.math.log(tf.tensordot(power, mel, 1) + 1e-2)
    cepstra = tf.signal.mfccs_from_log_mel_spectrograms(log_mel)[..., :6]
    mean, variance = tf.nn.moments(log_mel, axes=[1], keepdims=True)
    features = (log_mel - mean) * tf.math.rsqrt(variance + 1e-5)

    start = tf.random.uniform([], 0, 5, dtype=tf.int32)
    columns = tf.range(10)
    keep = tf.logical_or(columns < start, columns >= start + 2)
    features = tf.where(keep[tf.newaxis, tf.newaxis], features, tf.zeros_like(features))

    frames = features.shape[1]
    labels = tf.constant([[1, 2, 3], [2, 2, 0]], tf.int32)
    filters = tf.Variable(tf.random.normal([3, 10, 8], stddev=0.2))
    weight = tf.Variable(tf.random.normal([8, 5], stddev=0.2))
    bias = tf.Variable(tf.zeros([5]))
    optimizer, curve = tf.optimizers.Nadam(0.03), []

    def model():
        hidden = tf.nn.gelu(tf.nn.conv1d(features, filters, stride=1, padding="SAME"))
        return tf.einsum("btc,cv->btv", hidden, weight) + bias

    for _ in range(5):
        with tf.GradientTape() as tape:
            losses = tf.nn.ctc_loss(
                labels=labels,
                logits=tf.transpose(model(), [1, 0, 2]),
                label_length=tf.constant([3, 2]),
                logit_length=tf.fill([2], frames),
                logits_time_major=True,
                blank_index=0,
            )
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, [filters, weight, bias])
        optimizer.apply_gradients(zip(gradients, [filters, weight, bias]))
        curve.append(loss)

    # Griffin-Lim by gradient descent: a wave whose spectrogram is the given one.
    target = tf.abs(spectrum)[:1, :6]
    wave = tf.Variable(tf.random.normal([1, 448], stddev=0.1))
    rebuilt = []
    for _ in range(3):
        with tf.GradientTape() as tape:
            guess = tf.abs(tf.signal.stft(wave, 128, 64))
            loss = tf.reduce_mean(tf.math.squared_difference(guess, target))
        wave.assign_sub(20.0 * tape.gradient(loss, wave))
        rebuilt.append(loss)
    inverse = tf.signal.inverse_stft(spectrum, 128, 64, window_fn=tf.signal.inverse_stft_window_fn(64))
    return {"loss": curve, "cepstra": cepstra[:, ::6], "rebuilt": rebuilt, "inverse": inverse[:, 100:400:37]}
