"""A graph convolution over a SparseTensor, message passing by segments, and attention over neighbours."""

import numpy as np


def program(tf):
    generator = np.random.RandomState(12)
    nodes, edges = 7, np.array(sorted({(int(a), int(b)) for a, b in generator.randint(0, 7, (18, 2)) if a != b}))
    indices = tf.constant(edges, tf.int64)
    degree = tf.math.unsorted_segment_sum(tf.ones([len(edges)]), indices[:, 0], nodes) + 1.0
    normal = tf.math.rsqrt(tf.gather(degree, indices[:, 0])) * tf.math.rsqrt(tf.gather(degree, indices[:, 1]))
    adjacency = tf.sparse.reorder(tf.SparseTensor(indices, normal, dense_shape=[nodes, nodes]))
    features = tf.constant(generator.normal(size=(nodes, 4)), tf.float32)
    labels = tf.constant([0, 1, 0, 1, 1, 0, 1])
    mask = tf.constant([True, True, False, True, True, False, True])
    w1 = tf.Variable(generator.normal(size=(4, 6)) * 0.5, dtype=tf.float32)
    w2 = tf.Variable(generator.normal(size=(6, 2)) * 0.5, dtype=tf.float32)
    attention = tf.Variable(generator.normal(size=(12, 1)) * 0.5, dtype=tf.float32)
    variables = [w1, w2, attention]

    def convolve(x):
        return tf.sparse.sparse_dense_matmul(adjacency, x) + x / degree[:, tf.newaxis]

    def attend(x):
        source, target = tf.gather(x, indices[:, 0]), tf.gather(x, indices[:, 1])
        score = tf.nn.leaky_relu(tf.squeeze(tf.concat([source, target], axis=1) @ attention, axis=1))
        largest = tf.gather(tf.math.unsorted_segment_max(score, indices[:, 0], nodes), indices[:, 0])
        weight = tf.exp(score - tf.stop_gradient(largest))
        total = tf.gather(tf.math.unsorted_segment_sum(weight, indices[:, 0], nodes), indices[:, 0])
        messages = tf.expand_dims(weight / total, 1) * target
        return tf.tensor_scatter_nd_add(x, indices[:, :1], messages)

    optimizer, curve = tf.optimizers.Adam(0.05), {"loss": [], "accuracy": []}
    for _ in range(5):
        with tf.GradientTape() as tape:
            hidden = attend(tf.nn.relu(convolve(features @ w1)))
            logits = convolve(hidden @ w2)
            entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(
                tf.boolean_mask(labels, mask), tf.boolean_mask(logits, mask)
            )
            loss = tf.reduce_mean(entropy)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        right = tf.cast(tf.equal(tf.argmax(logits, 1, output_type=tf.int32), labels), tf.float32)
        curve["loss"].append(loss)
        curve["accuracy"].append(tf.reduce_mean(right))
    with tf.GradientTape() as tape:
        tape.watch(normal)
        matrix = tf.SparseTensor(indices, normal, [nodes, nodes])
        pushed = tf.sparse.sparse_dense_matmul(matrix, features, adjoint_a=True)
        target = tf.reduce_sum(pushed**2) + tf.reduce_sum(tf.sparse.to_dense(tf.sparse.reorder(matrix)) ** 3)
    curve["by the edges"] = tape.gradient(target, normal)
    curve["rows"] = tf.sparse.reduce_sum(adjacency, axis=1)
    graphs = [0, 0, 0, 1, 1, 2, 2]
    curve["pooled"] = [tf.math.segment_mean(features, graphs), tf.math.segment_max(features, graphs)]
    return curve
