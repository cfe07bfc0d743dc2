"""Decoders of CTC against sums over every alignment, and against the loss."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gradtape as tf


def likeliest(scores):
    """log of the probability of each label sequence, from those of the classes (time, classes): every alignment counted."""
    total = {}
    blank = scores.shape[1] - 1
    for alignment in itertools.product(range(blank + 1), repeat=len(scores)):
        labels = tuple(label for label, _ in itertools.groupby(alignment) if label != blank)
        score = sum(scores[time, label] for time, label in enumerate(alignment))
        total[labels] = np.logaddexp(total.get(labels, -np.inf), score)
    return sorted(total.items(), key=lambda item: -item[1])


def rows(matrix):
    dense = tf.sparse.to_dense(matrix, default_value=-1).numpy()
    return [tuple(label for label in row if label >= 0) for row in dense.tolist()]


@pytest.mark.parametrize("seed", range(4))
def test_a_wide_beam_finds_the_likeliest_of_all_sequences(seed):
    logits = tf.constant(np.random.RandomState(seed).normal(size=(4, 2, 3)) * 2)
    decoded, scores = tf.nn.ctc_beam_search_decoder(logits, [4, 3], beam_width=200, top_paths=5)
    for example, frames in enumerate((4, 3)):
        expected = likeliest(tf.nn.log_softmax(logits)[:frames, example].numpy())[:5]
        assert [rows(matrix)[example] for matrix in decoded] == [labels for labels, _ in expected]
        np.testing.assert_allclose(scores[example], [score for _, score in expected], rtol=1e-9)


def test_a_found_sequence_has_the_probability_of_the_loss():
    logits = tf.constant(np.random.RandomState(3).normal(size=(6, 1, 4)))
    decoded, scores = tf.nn.ctc_beam_search_decoder(logits, [6], beam_width=500, top_paths=3)
    for matrix, score in zip(decoded, scores[0]):
        labels = rows(matrix)[0]
        loss = tf.nn.ctc_loss([list(labels)], logits, [len(labels)], [6], blank_index=-1)
        np.testing.assert_allclose(loss[0], -score, rtol=1e-9)


def test_the_greedy_decoder_takes_the_best_class_of_each_frame():
    best = [0, 0, 3, 0, 1, 1, 2]  # 3 is blank
    logits = tf.constant(np.eye(4)[best][:, None] * 5.0)
    decoded, score = tf.nn.ctc_greedy_decoder(logits, [7])
    assert rows(decoded[0]) == [(0, 0, 1, 2)]
    assert rows(tf.nn.ctc_greedy_decoder(logits, [7], merge_repeated=False)[0][0]) == [(0, 0, 0, 1, 1, 2)]
    assert rows(tf.nn.ctc_greedy_decoder(logits, [3])[0][0]) == [(0,)]
    np.testing.assert_array_equal(score, [[-35.0]])


def test_inside_a_function():
    logits = tf.constant(np.random.RandomState(1).normal(size=(4, 2, 3)))
    inside = tf.function(lambda x: tf.nn.ctc_beam_search_decoder(x, [4, 3])[1])(logits)
    np.testing.assert_allclose(inside, tf.nn.ctc_beam_search_decoder(logits, [4, 3])[1])
