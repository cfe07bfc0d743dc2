"""word2vec: vocabularies from text, skip-gram pairs, sampled and NCE losses over sparse gradients of an embedding."""


def program(tf):
    tf.random.set_seed(13)
    text = tf.constant("The quick brown fox jumps over the lazy dog. The dog sleeps; the fox runs.")
    words = tf.strings.split(tf.strings.regex_replace(tf.strings.lower(text), r"[^a-z ]", ""))
    vocabulary, ids = tf.unique(words)
    size = int(tf.size(vocabulary))
    counts = tf.math.bincount(ids, minlength=size)
    pairs = tf.data.Dataset.from_tensor_slices(ids).window(3, shift=1, drop_remainder=True)
    pairs = pairs.flat_map(lambda window: window.batch(3)).map(lambda w: (w[1], tf.stack([w[0], w[2]])))
    pairs = pairs.flat_map(
        lambda centre, around: tf.data.Dataset.zip(
            (tf.data.Dataset.from_tensors(centre).repeat(2), tf.data.Dataset.from_tensor_slices(around))
        )
    ).batch(8, drop_remainder=True)

    embedding = tf.Variable(tf.random.uniform([size, 6], -1.0, 1.0))
    weights = tf.Variable(tf.random.truncated_normal([size, 6], stddev=0.4))
    biases = tf.Variable(tf.zeros([size]))
    variables = [embedding, weights, biases]
    optimizer, curve = tf.optimizers.SGD(0.2), {"nce": [], "sampled": [], "negative": []}
    for centre, context in pairs:
        chosen = tf.math.top_k(tf.cast(counts, tf.float32), k=4)[1]
        expected = tf.cast(counts, tf.float32) / tf.cast(tf.reduce_sum(counts), tf.float32)
        sampled = tf.cast(chosen, tf.int64), tf.gather(expected, context)[:, None], tf.gather(expected, chosen)
        with tf.GradientTape(persistent=True) as tape:
            vectors = tf.nn.embedding_lookup(embedding, centre)
            arguments = {"num_sampled": 4, "num_classes": size, "sampled_values": sampled}
            labels = tf.cast(context[:, tf.newaxis], tf.int64)
            nce = tf.reduce_mean(tf.nn.nce_loss(weights, biases, labels, vectors, **arguments))
            softmax = tf.reduce_mean(tf.nn.sampled_softmax_loss(weights, biases, labels, vectors, **arguments))
            positive = tf.reduce_sum(vectors * tf.gather(weights, context), axis=1)
            against = tf.einsum("bd,nd->bn", vectors, tf.gather(weights, sampled[0]))
            negative = -tf.reduce_mean(tf.math.log_sigmoid(positive)) - tf.reduce_mean(tf.math.log_sigmoid(-against))
        gradients = tape.gradient([nce, softmax, negative], variables)
        optimizer.apply_gradients(zip(gradients, variables))
        for name, loss in zip(curve, (nce, softmax, negative)):
            curve[name].append(loss)
    normal = tf.math.l2_normalize(embedding, axis=1)
    curve["nearest"] = tf.math.top_k(tf.matmul(normal, normal, transpose_b=True), k=3)[1]
    curve["vocabulary"] = [word.decode() for word in vocabulary.numpy()]
    curve["kind"] = type(gradients[0]).__name__
    return curve
