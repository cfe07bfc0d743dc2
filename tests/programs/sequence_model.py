"""A GRU three ways, over a TensorArray, a while_loop and a scan; masks, padded batches and beam-free decoding."""

import numpy as np


def program(tf):
    generator = np.random.RandomState(3)
    sentences = [generator.randint(1, 9, n) for n in (5, 3, 6, 2)]
    dataset = tf.data.Dataset.from_generator(
        lambda: iter(sentences), output_signature=tf.TensorSpec(shape=(None,), dtype=tf.int64)
    ).padded_batch(2)
    batches = list(dataset)
    embedding = tf.Variable(generator.normal(size=(9, 4)), dtype=tf.float32)
    kernel = tf.Variable(generator.normal(size=(4, 15)) * 0.4, dtype=tf.float32)
    recurrent = tf.Variable(generator.normal(size=(5, 15)) * 0.4, dtype=tf.float32)
    readout = tf.Variable(generator.normal(size=(5, 9)) * 0.4, dtype=tf.float32)
    variables = [embedding, kernel, recurrent, readout]

    def cell(state, inputs):
        from_inputs = tf.split(inputs @ kernel, 3, axis=-1)
        from_state = tf.split(state @ recurrent, 3, axis=-1)
        update = tf.sigmoid(from_inputs[0] + from_state[0])
        reset = tf.sigmoid(from_inputs[1] + from_state[1])
        candidate = tf.tanh(from_inputs[2] + reset * from_state[2])
        return update * state + (1 - update) * candidate

    def with_tensor_array(inputs):
        steps = tf.shape(inputs)[1]
        outputs = tf.TensorArray(tf.float32, size=steps)
        state = tf.zeros([tf.shape(inputs)[0], 5])
        for step in tf.range(steps):
            state = cell(state, inputs[:, step])
            outputs = outputs.write(step, state)
        return tf.transpose(outputs.stack(), [1, 0, 2])

    def with_while_loop(inputs):
        unstacked = tf.TensorArray(tf.float32, size=0, dynamic_size=True).unstack(tf.transpose(inputs, [1, 0, 2]))

        def body(step, state, outputs):
            state = cell(state, unstacked.read(step))
            return step + 1, state, outputs.write(step, state)

        _, _, outputs = tf.while_loop(
            lambda step, *_: step < tf.shape(inputs)[1],
            body,
            (tf.constant(0), tf.zeros([inputs.shape[0], 5]), tf.TensorArray(tf.float32, size=inputs.shape[1])),
        )
        return tf.transpose(outputs.stack(), [1, 0, 2])

    def with_scan(inputs):
        outputs = tf.scan(cell, tf.transpose(inputs, [1, 0, 2]), initializer=tf.zeros([inputs.shape[0], 5]))
        return tf.transpose(outputs, perm=[1, 0, 2])

    optimizer = tf.optimizers.Adagrad(0.5)
    curve = {"loss": [], "norm": []}
    for _ in range(2):
        for way in (with_tensor_array, with_while_loop, with_scan):
            for batch in batches:
                with tf.GradientTape() as tape:
                    embedded = tf.nn.embedding_lookup(embedding, batch)
                    logits = tf.tensordot(way(embedded), readout, axes=[[2], [0]])
                    target = tf.concat([batch[:, 1:], tf.zeros_like(batch[:, :1])], axis=1)
                    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=logits)
                    lengths = tf.math.count_nonzero(batch, axis=1)
                    mask = tf.sequence_mask(lengths, maxlen=tf.shape(batch)[1], dtype=tf.float32)
                    loss = tf.reduce_sum(entropy * mask) / tf.reduce_sum(mask)
                # Keras's Adagrad squares the rows of a sparse gradient one by one, so the embedding's is made dense here.
                gradients = [tf.convert_to_tensor(g) for g in tape.gradient(loss, variables)]
                gradients, norm = tf.clip_by_global_norm(gradients, 1.0)
                optimizer.apply_gradients(zip(gradients, variables))
                curve["loss"].append(loss)
                curve["norm"].append(norm)

    state, token, decoded = tf.zeros([1, 5]), tf.constant([1], tf.int64), []
    for _ in range(5):
        state = cell(state, tf.gather(embedding, token))
        token = tf.argmax(state @ readout, axis=-1)
        decoded.append(token)
    curve["decoded"] = tf.concat(decoded, 0)
    curve["best"] = tf.math.top_k(tf.nn.softmax(state @ readout), k=3)
    return curve
