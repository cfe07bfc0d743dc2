"""REINFORCE and actor-critic on a small chain of states: categorical draws, one_hot, entropy, returns by a reversed scan."""

import numpy as np


def program(tf):
    tf.random.set_seed(7)
    states, actions = 5, 3
    logits = tf.Variable(tf.zeros([states, actions]), name="policy")
    values = tf.Variable(tf.zeros([states]), name="values")
    optimizer = tf.optimizers.SGD(learning_rate=0.5, momentum=0.9)
    generator = np.random.default_rng(0)

    def episode():
        state, seen = tf.constant(0, tf.int64), []
        for _ in range(12):
            action = tf.squeeze(tf.random.categorical(tf.expand_dims(tf.gather(logits, state), 0), 1))
            reward = tf.where(tf.equal(action, 2), 1.0, -0.1) * tf.cast(state + 1, tf.float32)
            seen.append((state, action, reward))
            state = tf.math.floormod(state + action, states)
        return [tf.stack(column) for column in zip(*seen)]

    def returns(rewards, discount=0.9):
        backwards = tf.scan(lambda total, reward: reward + discount * total, tf.reverse(rewards, axis=[0]))
        found = tf.stop_gradient(tf.reverse(backwards, axis=[0]))
        return (found - tf.math.reduce_mean(found)) / (tf.math.reduce_std(found) + 1e-6)

    curve = {"loss": [], "reward": [], "entropy": []}
    for _ in range(6):
        seen, taken, rewards = episode()
        with tf.GradientTape() as tape:
            chosen = tf.gather(logits, seen)
            log_probabilities = tf.nn.log_softmax(chosen)
            taken_log = tf.reduce_sum(log_probabilities * tf.one_hot(taken, actions), axis=1)
            baseline = tf.gather(values, seen)
            target = returns(rewards)
            advantage = tf.stop_gradient(target - baseline)
            entropy = -tf.reduce_sum(tf.exp(log_probabilities) * log_probabilities, axis=-1)
            policy_loss = -tf.reduce_mean(taken_log * advantage)
            value_loss = tf.reduce_mean(tf.math.squared_difference(target, baseline))
            loss = policy_loss + 0.5 * value_loss - 0.01 * tf.reduce_mean(entropy)
        gradients = tape.gradient(loss, [logits, values])
        gradients = [tf.clip_by_norm(tf.convert_to_tensor(g), 1.0) for g in gradients]
        optimizer.apply_gradients(zip(gradients, [logits, values]))
        curve["loss"].append(loss)
        curve["reward"].append(tf.reduce_sum(rewards))
        curve["entropy"].append(tf.reduce_mean(entropy))

    # The clipped objective of PPO, with the indices of the taken actions gathered by gather_nd.
    seen, taken = generator.integers(0, states, 16), generator.integers(0, actions, 16)
    pairs = tf.stack([tf.cast(seen, tf.int32), tf.cast(taken, tf.int32)], axis=1)
    old = tf.gather_nd(tf.nn.softmax(logits), pairs) * tf.constant(generator.uniform(0.7, 1.4, 16), tf.float32)
    advantages = tf.constant(generator.normal(size=16), dtype=tf.float32)
    with tf.GradientTape() as tape:
        ratio = tf.exp(tf.math.log(tf.gather_nd(tf.nn.softmax(logits), pairs)) - tf.math.log(old))
        clipped = tf.clip_by_value(ratio, 1 - 0.2, 1 + 0.2)
        loss = -tf.reduce_mean(tf.minimum(ratio * advantages, clipped * advantages))
    curve["ppo"] = loss
    curve["ppo gradient"] = tape.gradient(loss, logits)
    return curve
