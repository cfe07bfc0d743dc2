"""`nn.dot_product_attention` against the same written out, with and without what can be left out."""

import itertools

import numpy as np
import pytest

import gradtape as tf

RNG = np.random.default_rng(5)
Q, K, V = (RNG.normal(size=(2, n, 3, 4)) for n in (5, 6, 6))
MASK = RNG.uniform(size=(2, 1, 5, 6)) < 0.7
BIAS = RNG.normal(size=(1, 3, 5, 6))


def written_out(q, k, v, bias=None, mask=None, scale=None, is_causal=False):
    scores = tf.einsum("bqhd,bkhd->bhqk", q, k) * (0.5 if scale is None else scale)
    scores = scores if bias is None else scores + bias
    for visible in ([] if mask is None else [mask]) + ([np.tri(5, 6, dtype=bool)] if is_causal else []):
        scores = tf.where(visible, scores, tf.constant(-1e300, tf.float64))
    return tf.einsum("bhqk,bkhd->bqhd", tf.nn.softmax(scores), v)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize(
    ("bias", "mask", "scale", "causal"), [*itertools.product((None, BIAS), (None, MASK), (None, 0.3), (False, True))]
)
def test_value_and_two_derivatives(bias, mask, scale, causal, compiled, compiled_quickly):
    def derivatives(attend, compiled):
        def run(*tensors):
            with tf.GradientTape() as outer:
                outer.watch(tensors)
                with tf.GradientTape() as inner:
                    inner.watch(tensors)
                    out = attend(*tensors[:3], *tensors[3:], mask=mask, scale=scale, is_causal=causal)
                    loss = tf.reduce_sum(tf.sin(out))
                first = inner.gradient(loss, tensors)
                total = tf.add_n([tf.reduce_sum(tf.sin(g)) for g in first])
            return [out, *first, *outer.gradient(total, tensors)]

        return tf.function(run) if compiled else run

    tensors = [tf.constant(x) for x in (Q, K, V, *([] if bias is None else [bias]))]
    found, expected = derivatives(tf.nn.dot_product_attention, compiled), derivatives(written_out, False)
    for one, two in zip(found(*tensors), expected(*tensors), strict=True):
        np.testing.assert_allclose(one, two, 1e-9, 1e-11)


def test_a_query_that_may_look_nowhere_gets_the_mean():
    found = tf.nn.dot_product_attention(Q, K, V, mask=np.zeros((5, 6), bool))
    np.testing.assert_allclose(found, np.broadcast_to(V.mean(1, keepdims=True), (2, 5, 3, 4)), 1e-12)


def test_without_examples_and_in_half_precision():
    whole = tf.nn.dot_product_attention(Q, K, V)
    np.testing.assert_allclose(tf.nn.dot_product_attention(Q[0], K[0], V[0]), whole[0], 1e-12)
    for dtype in (tf.float16, tf.bfloat16):
        half = tf.nn.dot_product_attention(*(tf.cast(x, dtype) for x in (Q, K, V)))
        assert half.dtype is dtype
        np.testing.assert_allclose(tf.cast(half, tf.float64), whole, 0.05, 0.05)


def test_the_tape_keeps_no_weights():
    long = tf.constant(RNG.normal(size=(1, 300, 1, 2)))
    with tf.GradientTape() as tape:
        tape.watch(long)
        tf.nn.dot_product_attention(long, long, long)
    kept = [record[5] for record in tape.records.values() if record[0] is not None]
    assert all(part.shape != (1, 1, 300, 300) for values in kept for part in tf.nest.flatten(values))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (lambda: (Q, K[..., :3], V), "do not fit together"),
        (lambda: (Q[:1], K, V), "do not fit together"),
        (lambda: (Q, K, V[:, :5]), "do not fit together"),
        (lambda: (Q.astype("float32"), K, V), "do not fit together"),
        (lambda: (Q[0, 0], K[0, 0], V[0, 0]), "do not fit together"),
        (lambda: (Q, K, V, None, np.ones((4, 6), bool)), "the mask does not fit"),
        (lambda: (Q, K, V, None, np.ones((1, 1, 1, 5, 6), bool)), "the mask does not fit"),
    ],
)
def test_bad_input(arguments, words):
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        tf.nn.dot_product_attention(*arguments())
