"""A transformer learns to translate numbers into English: 4207 → four thousand two hundred seven.

    python examples/transformer.py

Encoder, decoder, self-attention, cross-attention and a causal mask, from Keras's layers; greedy decoding. It sees a third of
the numbers below ten thousand, and is tested on others.
"""

from __future__ import annotations

import argparse

import numpy as np

import gradtape as tf
from gradtape.keras import layers

ONES = "zero one two three four five six seven eight nine ten eleven twelve".split()
ONES += "thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
WORDS = ["<start>", "<end>", *ONES, *TENS, "hundred", "thousand"]
DIGITS, LONGEST, WIDTH = 4, 7, 64


def english(number: int) -> list[str]:
    """The words of a number below ten thousand."""
    thousands, hundreds, rest = number // 1000, number // 100 % 10, number % 100
    words = [ONES[thousands], "thousand"] if thousands else []
    words += [ONES[hundreds], "hundred"] if hundreds else []
    if rest >= 20:
        words.append(TENS[rest // 10 - 2])
        rest %= 10
    return [*words, ONES[rest]] if rest or not words else words


def sentences(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Digits [n, 4]; words [n, 8] from <start> to <end>, which goes on until the row is full."""
    digits = numbers[:, None] // 10 ** np.arange(DIGITS)[::-1] % 10
    words = np.ones((len(numbers), LONGEST + 1), int)
    for row, number in zip(words, numbers):
        said = [0, *map(WORDS.index, english(number))]
        row[: len(said)] = said
    return digits, words


class Block(layers.Layer):
    """Attention to oneself, attention to what is translated if there is something, and a dense network; each is added."""

    def __init__(self, causal: bool, crossed: bool) -> None:
        super().__init__()
        self.causal = causal
        self.to_self, self.norm = layers.MultiHeadAttention(4, WIDTH // 4), layers.LayerNormalization()
        if crossed:
            self.to_other, self.other_norm = layers.MultiHeadAttention(4, WIDTH // 4), layers.LayerNormalization()
        self.dense = tf.keras.Sequential([layers.Dense(2 * WIDTH, activation="relu"), layers.Dense(WIDTH)])
        self.dense_norm = layers.LayerNormalization()

    def call(self, x: tf.Tensor, other: tf.Tensor | None = None) -> tf.Tensor:
        x = self.norm(x + self.to_self(x, x, use_causal_mask=self.causal))
        if other is not None:
            x = self.other_norm(x + self.to_other(x, other))
        return self.dense_norm(x + self.dense(x))


class Embedding(layers.Layer):
    """A vector for what the token is plus one for where it stands."""

    def __init__(self, tokens: int, length: int) -> None:
        super().__init__()
        self.what, self.where = layers.Embedding(tokens, WIDTH), layers.Embedding(length, WIDTH)
        self.places = np.arange(length)

    def call(self, tokens: tf.Tensor) -> tf.Tensor:
        return self.what(tokens) + self.where(self.places)


class Transformer(tf.keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.digits, self.words = Embedding(10, DIGITS), Embedding(len(WORDS), LONGEST)
        self.encoder, self.decoder = Block(causal=False, crossed=False), Block(causal=True, crossed=True)
        self.output_layer = layers.Dense(len(WORDS))

    def call(self, inputs: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        """Logits [n, 7, words]: at each place the word that follows, given those up to there."""
        digits, words = inputs
        return self.output_layer(self.decoder(self.words(words), self.encoder(self.digits(digits))))

    def translate(self, digits: np.ndarray) -> np.ndarray:
        """Greedy decoding: every word is the likeliest after those before it."""
        words = np.zeros((len(digits), LONGEST + 1), int)
        for place in range(LONGEST):
            words[:, place + 1] = self((digits, words[:, :-1])).numpy()[:, place].argmax(axis=1)
        return words


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--eager", action="store_true", help="no compiled program")
    options = parser.parse_args(arguments)

    tf.config.run_functions_eagerly(options.eager)
    tf.keras.utils.set_random_seed(0)
    numbers = np.random.default_rng(0).permutation(10_000)
    digits, words = sentences(numbers[:3500])
    model = Transformer()
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(2e-3), loss, run_eagerly=options.eager)
    pairs = (digits, words[:, :-1]), words[:, 1:]
    batches = tf.data.Dataset.from_tensor_slices(pairs).shuffle(len(digits)).repeat().batch(64)
    per_epoch = min(options.steps, 200)
    model.fit(batches, steps_per_epoch=per_epoch, epochs=options.steps // per_epoch, verbose=2)

    digits, words = sentences(numbers[3500:3700])
    translated = model.translate(digits)
    for number, row in zip(numbers[3500:3505], translated):
        print(f"{number:5d}  {' '.join(WORDS[word] for word in row[1:] if word > 1)}")
    right = float((translated == words).all(axis=1).mean())
    print(f"{right:.1%} of 200 unseen numbers are translated without a mistake")
    return right


if __name__ == "__main__":
    main()
