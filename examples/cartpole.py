"""Balance a pole on a cart: a Keras policy, learned from the lengths of its own games by the policy gradient (REINFORCE).

    python examples/cartpole.py

Eight games are played at once, a move in all of them by one call of the policy. Then the tape gives the gradient of
Σ log π(move | state) · advantage. A game ends when the pole falls, or after 500 moves.
"""

from __future__ import annotations

import argparse

import gymnasium
import numpy as np

import gradtape as tf
from gradtape.keras import layers

GAMES, LONGEST, DISCOUNT = 8, 500, 0.99


class Player:
    def __init__(self) -> None:
        hidden = layers.Dense(32, activation="tanh")
        self.policy = tf.keras.Sequential([layers.Input([4]), hidden, layers.Dense(2)])
        self.optimizer = tf.keras.optimizers.Adam(1e-2)
        self.environments = [gymnasium.make("CartPole-v1") for _ in range(GAMES)]
        for seed, environment in enumerate(self.environments):
            environment.reset(seed=seed)

    @tf.function
    def moves(self, states: tf.Tensor) -> tf.Tensor:
        return tf.random.categorical(self.policy(states), 1)[:, 0]

    @tf.function
    def learn(self, states: tf.Tensor, moves: tf.Tensor, advantages: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            surprise = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=moves, logits=self.policy(states))
            loss = tf.reduce_mean(surprise * advantages)
        gradients = tape.gradient(loss, self.policy.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.policy.trainable_variables))
        return loss

    def play(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """States [500, 8, 4], moves [500, 8], and which games were still going on [500, 8]."""
        states = np.zeros((LONGEST, GAMES, 4), np.float32)
        moves, going = np.zeros((LONGEST, GAMES), np.int64), np.zeros((LONGEST, GAMES), bool)
        state, still = np.stack([environment.reset()[0] for environment in self.environments]), np.ones(GAMES, bool)
        for step in range(LONGEST):
            states[step], moves[step], going[step] = state, self.moves(tf.constant(state)).numpy(), still
            for game in np.flatnonzero(still):
                state[game], _, fell, late, _ = self.environments[game].step(int(moves[step, game]))
                still[game] = not (fell or late)
            if not still.any():
                break
        return states, moves, going


def advantages_of(going: np.ndarray) -> np.ndarray:
    """The discounted number of moves still to come, compared with the average over all games; 0 once a game is over."""
    to_come = np.zeros((LONGEST + 1, GAMES), np.float32)
    for step in reversed(range(LONGEST)):
        to_come[step] = going[step] * (1.0 + DISCOUNT * to_come[step + 1])
    played = to_come[:-1][going]
    return going * (to_come[:-1] - played.mean()) / (played.std() + 1e-6)


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--eager", action="store_true", help="no compiled program")
    options = parser.parse_args(arguments)

    tf.config.run_functions_eagerly(options.eager)
    tf.keras.utils.set_random_seed(0)
    player = Player()
    lengths = []
    for step in range(options.steps):
        states, moves, going = player.play()
        advantages = advantages_of(going).astype(np.float32)
        player.learn(tf.constant(states.reshape(-1, 4)), tf.constant(moves.ravel()), tf.constant(advantages.ravel()))
        lengths.append(going.sum(axis=0).mean())
        if step % 10 == 0 or step == options.steps - 1:
            print(f"after {GAMES * (step + 1):3d} games: the pole stays up for {lengths[-1]:.0f} moves")
    return float(np.mean(lengths[-5:]))


if __name__ == "__main__":
    main()
