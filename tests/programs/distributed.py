"""A replicated training loop: strategy scope, distributed dataset, replica function, reductions, gradient accumulation."""

import numpy as np


def program(tf):
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    generator = np.random.RandomState(10)
    x, y = generator.normal(size=(32, 5)).astype(np.float32), generator.normal(size=(32, 1)).astype(np.float32)
    batch_size = 8
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(batch_size)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    distributed = strategy.experimental_distribute_dataset(dataset.with_options(options))
    with strategy.scope():
        weight = tf.Variable(tf.constant(generator.normal(size=(5, 1)), tf.float32))
        bias = tf.Variable([0.0])
        seen = tf.Variable(0.0, trainable=False, aggregation=tf.VariableAggregation.SUM)
        optimizer = tf.optimizers.SGD(0.05, momentum=0.9, nesterov=True)

    def replica_step(inputs):
        features, labels = inputs
        context = tf.distribute.get_replica_context()
        with tf.GradientTape() as tape:
            per_example = tf.reduce_sum(tf.square(features @ weight + bias - labels), axis=1)
            loss = tf.nn.compute_average_loss(per_example, global_batch_size=batch_size)
            loss += tf.nn.scale_regularization_loss(0.01 * tf.nn.l2_loss(weight))
        gradients = tape.gradient(loss, [weight, bias])
        gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        optimizer.apply_gradients(zip(gradients, [weight, bias]))
        seen.assign_add(tf.cast(tf.shape(features)[0], tf.float32))
        return loss

    curve = []
    for _ in range(2):
        for batch in distributed:
            losses = strategy.run(replica_step, args=(batch,))
            curve.append(strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None))

    accumulated = [tf.Variable(tf.zeros_like(v), trainable=False) for v in (weight, bias)]
    for features, labels in dataset:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((features @ weight + bias - labels) ** 2) / 4.0
        for total, gradient in zip(accumulated, tape.gradient(loss, [weight, bias])):
            total.assign_add(gradient)
    return {
        "loss": curve,
        "seen": seen,
        "replicas": [strategy.num_replicas_in_sync],
        "accumulated": [total.read_value() for total in accumulated],
        "merged": [weight, bias],
    }
