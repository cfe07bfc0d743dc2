"""A recurrent network learns a poem, letter by letter, and recites it.

    python examples/character_lstm.py

One `LSTMCell` does both: `layers.RNN` runs it over whole pieces of text while it learns; to recite, the cell is called for
one letter at a time, and each answer is its next input.
"""

from __future__ import annotations

import argparse

import numpy as np

import gradtape as tf
from gradtape.keras import layers

POEM = """Shall I compare thee to a summer's day?
Thou art more lovely and more temperate:
Rough winds do shake the darling buds of May,
And summer's lease hath all too short a date;
Sometime too hot the eye of heaven shines,
And often is his gold complexion dimm'd;
And every fair from fair sometime declines,
By chance or nature's changing course untrimm'd;
But thy eternal summer shall not fade,
Nor lose possession of that fair thou ow'st;
Nor shall death brag thou wander'st in his shade,
When in eternal lines to time thou grow'st:
So long as men can breathe or eyes can see,
So long lives this, and this gives life to thee.
"""  # William Shakespeare, sonnet 18
LETTERS = sorted(set(POEM))
BATCH, LENGTH, UNITS = 32, 40, 128


class Reader(tf.keras.Model):
    """Letters to logits for the letter that follows each of them."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = layers.Embedding(len(LETTERS), 24)
        self.cell = layers.LSTMCell(UNITS)
        self.recurrent = layers.RNN(self.cell, return_sequences=True)
        self.output_layer = layers.Dense(len(LETTERS))

    def call(self, letters: tf.Tensor) -> tf.Tensor:
        return self.output_layer(self.recurrent(self.embedding(letters)))

    def recite(self, first: str, length: int) -> str:
        """The likeliest continuation, one letter at a time."""
        said, states = [LETTERS.index(first)], [tf.zeros([1, UNITS]), tf.zeros([1, UNITS])]
        while len(said) < length:
            out, states = self.cell(self.embedding(tf.constant(said[-1:])), states)
            said.append(int(tf.argmax(self.output_layer(out)[0])))
        return "".join(LETTERS[letter] for letter in said)


def same(one: str, other: str) -> int:
    """How many letters agree before the first that does not."""
    return next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))


def main(arguments: list[str] | None = None) -> tuple[float, int]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--eager", action="store_true", help="no compiled program")
    options = parser.parse_args(arguments)

    tf.config.run_functions_eagerly(options.eager)
    tf.keras.utils.set_random_seed(0)
    model, optimizer = Reader(), tf.keras.optimizers.Adam(5e-3, clipnorm=1.0)
    cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train(pieces: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = cross_entropy(pieces[:, 1:], model(pieces[:, :-1]))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    poem = np.array([LETTERS.index(letter) for letter in POEM])
    pieces = np.lib.stride_tricks.sliding_window_view(poem, LENGTH + 1)
    rng = np.random.default_rng(0)
    for step in range(options.steps):
        starts = rng.integers(len(pieces), size=BATCH) * (np.arange(BATCH) > 0)  # the beginning is always among them
        loss = train(tf.constant(pieces[starts]))
        bits = float(loss) / np.log(2)
        if step % 100 == 0 or step == options.steps - 1:
            print(f"step {step:3d}  {bits:.3f} bits per letter")

    recited = model.recite("S", len(POEM))
    right = same(recited, POEM)
    print(f"it knows {right} of {len(POEM)} letters by heart:\n\n{recited[:right]}")
    return bits, right


if __name__ == "__main__":
    main()
