"""`backend.nn` beyond Keras's own tests: derivatives, compiled = eager, what transposes what, half precision, bad input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradtape as tf
from gradtape import keras
from gradtape.testing import check_gradients

ops = keras.ops
FIRST, LAST = "channels_first", "channels_last"


def numbers(*shape: int) -> np.ndarray:
    """Values in (-1, 1), no two of them close: nothing is at a kink, and no two are the largest."""
    count = int(np.prod(shape))
    return 2 * (np.random.default_rng(count).permutation(count) + 0.3).reshape(shape) / count - 1


def positive(*shape: int) -> np.ndarray:
    return np.abs(numbers(*shape)) + 0.1


LABELS, LENGTHS, FRAMES = np.array([[1, 1, 0], [2, 1, 3]]), np.array([2, 3]), np.array([5, 4])
CLASSES = np.array([[2, 0], [1, 3]])
MASK = np.array([[True, False, True], [True, True, False], [False, False, False]])

ACTIVATIONS = {
    **{name: getattr(ops, name) for name in (
        "celu", "elu", "gelu", "glu", "hard_shrink", "hard_sigmoid", "hard_silu", "hard_tanh", "leaky_relu", "log_sigmoid",
        "log_softmax", "relu", "relu6", "selu", "sigmoid", "silu", "soft_shrink", "softmax", "softplus", "softsign",
        "sparse_plus", "sparse_sigmoid", "sparsemax", "squareplus", "tanh_shrink")},
    "celu 0.3": lambda x: ops.celu(x, 0.3),
    "elu 0.3": lambda x: ops.elu(x, 0.3),
    "gelu exact": lambda x: ops.gelu(x, approximate=False),
    "leaky_relu 1.5": lambda x: ops.leaky_relu(x, 1.5),
    "softmax of all": lambda x: ops.softmax(x, axis=None),
    "threshold": lambda x: ops.threshold(x, 0.3, -2.0),
}  # fmt: skip
LAYERS = {
    "conv": (lambda x, k: ops.conv(x, k, 2, "same", FIRST), [numbers(2, 3, 5, 4), numbers(2, 3, 3, 2)]),
    "conv groups": (lambda x, k: ops.conv(x, k, dilation_rate=2), [numbers(1, 7, 4), numbers(3, 2, 4)]),
    "depthwise_conv": (lambda x, k: ops.depthwise_conv(x, k, 2, "same"), [numbers(1, 5, 4, 2), numbers(3, 2, 2, 2)]),
    "separable_conv": (
        lambda x, d, p: ops.separable_conv(x, d, p, data_format=FIRST), [numbers(1, 2, 6), numbers(2, 2, 2), numbers(1, 4, 3)],
    ),
    "conv_transpose": (lambda x, k: ops.conv_transpose(x, k, 3, "same"), [numbers(1, 3, 2, 2), numbers(3, 2, 4, 2)]),
    "conv_transpose zeros": (lambda x, k: ops.conv_transpose(x, k, 3, output_padding=4), [numbers(1, 3, 2), numbers(2, 3, 2)]),
    "max_pool": (lambda x: ops.max_pool(x, 2, 1, "same", FIRST), [numbers(1, 2, 4, 3)]),
    "average_pool": (lambda x: ops.average_pool(x, (2, 3), 2, "same"), [numbers(1, 5, 4, 2)]),
    "adaptive_max_pool": (lambda x: ops.adaptive_max_pool(x, (3, 2), LAST), [numbers(1, 5, 4, 2)]),
    "adaptive_average_pool": (lambda x: ops.adaptive_average_pool(x, (3, 2), FIRST), [numbers(1, 2, 5, 4)]),
    "unfold": (lambda x: ops.unfold(x, (2, 3), 1, (1, 0), 2), [numbers(1, 2, 4, 5)]),
    "fold": (lambda x: ops.fold(x, (4, 5), (2, 3), 1, (1, 0), 2), [numbers(1, 12, 6)]),
    "depth_to_space": (lambda x: ops.depth_to_space(x, 2, FIRST), [numbers(1, 8, 2, 3)]),
    "space_to_depth": (lambda x: ops.space_to_depth(x, 2, LAST), [numbers(1, 4, 2, 3)]),
    "moments": (lambda x: ops.moments(x, [0, 2]), [numbers(3, 2, 4)]),
    "batch_normalization": (
        lambda x, m, v, o, s: ops.batch_normalization(x, m, v, 1, o, s),
        [numbers(2, 3, 4), numbers(3), positive(3), numbers(3), positive(3)],
    ),
    "layer_normalization": (ops.layer_normalization, [numbers(3, 4), positive(4), numbers(4)]),
    "attention": (
        lambda q, k, v: ops.dot_product_attention(q, k, v, mask=MASK[None, None], is_causal=True),
        [numbers(2, 3, 2, 4), numbers(2, 3, 2, 4) / 2, numbers(2, 3, 2, 4) + 1],
    ),
    "attention, shared keys, bias": (
        lambda q, k, v, b: ops.dot_product_attention(q, k, v, bias=b, mask=MASK[None], scale=0.7),
        [numbers(1, 3, 4, 2), numbers(1, 3, 2, 2), numbers(1, 3, 2, 2) + 1, numbers(1, 4, 3, 3)],
    ),
    "categorical": (ops.categorical_crossentropy, [positive(2, 3), positive(2, 3)]),
    "categorical logits": (lambda t, x: ops.categorical_crossentropy(t, x, True, 0), [positive(2, 3), numbers(2, 3)]),
    "sparse categorical": (lambda x: ops.sparse_categorical_crossentropy(CLASSES, x), [positive(2, 2, 4)]),
    "sparse categorical logits": (
        lambda x: ops.sparse_categorical_crossentropy(CLASSES[..., None], x, True), [numbers(2, 2, 4)],
    ),
    "binary": (ops.binary_crossentropy, [positive(2, 3) / 2, positive(2, 3) / 2]),
    "binary logits": (lambda t, x: ops.binary_crossentropy(t, x, True), [positive(2, 3), numbers(2, 3)]),
    "ctc": (lambda x: ops.ctc_loss(LABELS, x, LENGTHS, FRAMES), [numbers(2, 5, 4)]),
    "psnr": (lambda x, y: ops.psnr(x, y, 2.0), [numbers(2, 3), positive(2, 3)]),
}  # fmt: skip
CASES = {**{name: (function, [4 * numbers(3, 4)]) for name, function in ACTIVATIONS.items()}, **LAYERS}


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name):
    """Of first order; the ops that these are made of are tested to the second."""
    function, arguments = CASES[name]
    check_gradients(function, arguments, order=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYERS)
def test_second_derivatives(name):
    check_gradients(*CASES[name])


def value_and_gradients(name: str, arguments: list) -> list:
    with tf.GradientTape() as tape:
        tape.watch(arguments)
        out = CASES[name][0](*arguments)
    return tf.nest.flatten([out, tape.gradient(out, arguments)])


QUICK = ("sparsemax", "threshold", "conv", "conv_transpose zeros", "adaptive_max_pool", "fold", "batch_normalization",
         "attention, shared keys, bias", "sparse categorical logits", "binary", "moments")  # fmt: skip


@pytest.mark.parametrize("names", [pytest.param(QUICK, id="quick"), pytest.param(CASES, id="all", marks=pytest.mark.slow)])
def test_compiled_is_eager(names):
    """All in one program: compiling is what takes long."""
    pytest.importorskip("jax")
    given = {name: [tf.constant(a) for a in CASES[name][1]] for name in names}
    compiled = tf.function(lambda given: {name: value_and_gradients(name, arguments) for name, arguments in given.items()})
    for name, found in compiled(given).items():
        for a, b in zip(found, value_and_gradients(name, given[name])):
            np.testing.assert_allclose(a, b, atol=1e-12, err_msg=name)


def test_labels_and_lengths_of_ctc_may_be_traced():
    pytest.importorskip("jax")
    logits = tf.constant(numbers(2, 5, 4))
    traced = tf.function(lambda *given: (ops.ctc_loss(*given), *ops.ctc_decode(given[1], given[3], "greedy")))
    for a, b in zip(traced(LABELS, logits, LENGTHS, FRAMES),
                    (ops.ctc_loss(LABELS, logits, LENGTHS, FRAMES), *ops.ctc_decode(logits, FRAMES, "greedy"))):  # fmt: skip
        np.testing.assert_allclose(a, b, rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", [name for name in CASES if name != "ctc"])  # which Keras computes in float32
def test_half_precision_is_close(name, dtype):
    function, arguments = CASES[name]
    half = [ops.cast(a, dtype) for a in arguments]
    exact = tf.nest.flatten(function(*(ops.cast(a, "float64") for a in half)))
    for out, expected in zip(tf.nest.flatten(function(*half)), exact):
        assert out.dtype.name == ("float32" if name.startswith("sparse cat") else dtype)
        eps = float(np.finfo(np.float16).eps) if dtype == "float16" else 2.0**-7
        np.testing.assert_allclose(ops.cast(out, "float64"), expected, rtol=6 * eps, atol=6 * eps)


def test_losses_of_certainty_are_finite_in_half_precision():
    sure, target = ops.cast([[0.0, 1.0]], "float16"), ops.cast([[1.0, 0.0]], "float16")
    for loss in (ops.binary_crossentropy, ops.categorical_crossentropy):
        for expected in (target, sure):
            assert np.isfinite(np.asarray(loss(expected, sure))).all()


# One thing by another


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(1, 2), st.sampled_from(["same", "valid"]))
def test_conv_transpose_is_the_transpose_of_conv(windows, size, stride, dilation, padding):
    if stride > 1 and dilation > 1:
        dilation = 1
    extent = (size - 1) * dilation + 1
    length = windows * stride if padding == "same" else (windows - 1) * stride + max(extent, stride)
    x, y, kernel = numbers(1, length, 2), numbers(1, windows, 3), numbers(size, 2, 3)
    forth = ops.conv(x, kernel, stride, padding, dilation_rate=dilation)
    back = ops.conv_transpose(y, kernel, stride, padding, dilation_rate=dilation)
    np.testing.assert_allclose(np.sum(forth * y), np.sum(x * back), atol=1e-9)


@pytest.mark.parametrize("name", ["conv", "depthwise_conv", "conv_transpose", "max_pool", "average_pool", "adaptive_max_pool",
                                  "adaptive_average_pool"])  # fmt: skip
@pytest.mark.parametrize("n", [1, 2, 3])
def test_channels_first_is_channels_last_moved(name, n):
    x, function = numbers(2, *(5, 4, 6)[:n], 2), getattr(ops, name)
    arguments = [numbers(*(2, 3, 2)[:n], 2, 2)] if "conv" in name else [2]
    options = {} if "adaptive" in name else {"strides": 2, "padding": "same"}
    last = function(x, *arguments, **options, data_format=LAST)
    first = function(np.moveaxis(x, -1, 1), *arguments, **options, data_format=FIRST)
    np.testing.assert_allclose(first, np.moveaxis(np.asarray(last), -1, 1), atol=1e-12)


@settings(max_examples=25)
@given(st.integers(1, 12), st.integers(1, 12), st.booleans())
def test_adaptive_pooling_covers_each_share_of_a_length(length, count, largest):
    x = numbers(1, length, 2)
    windows = [x[:, i * length // count : -(-(i + 1) * length // count)] for i in range(count)]
    expected = np.stack([w.max(axis=1) if largest else w.mean(axis=1) for w in windows], axis=1)
    pool = ops.adaptive_max_pool if largest else ops.adaptive_average_pool
    np.testing.assert_allclose(pool(x, count, LAST), expected, atol=1e-12)


@settings(max_examples=25)
@given(st.lists(st.floats(-3, 3), min_size=1, max_size=6))
def test_sparsemax_is_the_nearest_distribution(x):
    """Nearest: all that is left of x lost the same, and what was cut off had less than that."""
    x = np.array(x)
    p = np.asarray(ops.sparsemax(x))
    lost = x - p
    np.testing.assert_allclose(p.sum(), 1, atol=1e-9)
    assert (p >= 0).all()
    assert np.ptp(lost[p > 0]) < 1e-9
    assert (lost[p == 0] <= lost[p > 0].max() + 1e-9).all()


@pytest.mark.parametrize("blank", [0, 2])
def test_the_likeliest_labels_have_the_probability_of_the_loss(blank):
    logits = 3 * numbers(2, 4, 3)
    (best, second), scores = ops.ctc_decode(logits, FRAMES - 1, "beam_search", beam_width=50, top_paths=2, mask_index=blank)
    for rank, paths in enumerate((best, second)):
        labels = np.asarray(paths)
        loss = ops.ctc_loss(np.maximum(labels, 0), logits, (labels >= 0).sum(1), FRAMES - 1, mask_index=blank)
        np.testing.assert_allclose(scores[:, rank], -loss, rtol=1e-6)


def test_a_beam_search_that_finds_too_little_says_so():
    paths, scores = ops.ctc_decode(numbers(1, 1, 2), [1], "beam_search", beam_width=9, top_paths=3)
    assert np.asarray(paths).tolist() == [[[1]], [[-1]], [[-1]]] or np.asarray(paths).tolist() == [[[-1]], [[1]], [[-1]]]
    assert np.isneginf(scores[0, 2])


def test_softmax_over_axes_is_softmax_over_the_joined_axis():
    x = numbers(2, 3, 4, 5)
    for axes in itertools.permutations(range(4), 2):
        out = np.asarray(ops.softmax(x, axis=axes))
        np.testing.assert_allclose(out, np.exp(x) / np.exp(x).sum(axis=axes, keepdims=True), rtol=1e-12)


# Bad input

BAD = {
    "channels": (lambda: ops.conv(numbers(1, 5, 3), numbers(2, 2, 1)), ValueError, "evenly divisible by kernel's in_channels"),
    "short": (lambda: ops.conv(numbers(1, 2, 3), numbers(3, 3, 1)), ValueError, "resulted in an empty output"),
    "depthwise": (lambda: ops.depthwise_conv(numbers(1, 5, 3), numbers(2, 2, 1)), ValueError, "must match the kernel's input"),
    "transpose": (lambda: ops.conv_transpose(numbers(1, 5, 3), numbers(2, 3, 1)), ValueError, "must match the kernel's input"),
    "format": (lambda: ops.max_pool(numbers(1, 5, 3), 2, data_format="NHWC"), ValueError, "`data_format` argument must be one"),
    "pooling": (lambda: ops.max_pool(numbers(1, 2, 3), 3), ValueError, "resulted in an empty output"),
    "padding": (lambda: ops.conv(numbers(1, 5, 3), numbers(2, 3, 1), padding="full"), ValueError, "must be 'same' or 'valid'"),
    "pool padding": (lambda: ops.average_pool(numbers(1, 5, 3), 2, padding="full"), ValueError, "must be 'same' or 'valid'"),
    "fold": (lambda: ops.fold(numbers(1, 4, 3), 4, 2), ValueError, "columns do not fit"),
    "targets": (lambda: ops.categorical_crossentropy(CLASSES, numbers(2, 3)), ValueError, "must have the same shape"),
    "classes": (lambda: ops.sparse_categorical_crossentropy(CLASSES, numbers(2, 4)), ValueError, "the same shape up until"),
    "no class": (
        lambda: ops.sparse_categorical_crossentropy([4], numbers(1, 4)), tf.errors.InvalidArgumentError, "label value of 4",
    ),
    "attention": (lambda: ops.dot_product_attention(*[numbers(2, 3, 4)] * 3), ValueError, "only supports 4D inputs"),
    "halves": (lambda: ops.glu(numbers(3)), ValueError, "divisible by 2"),
    "strategy": (lambda: ops.ctc_decode(numbers(1, 2, 3), [2], "best"), ValueError, "Invalid strategy best"),
    "sparse": (lambda: ops.one_hot([1], 2, sparse=True), ValueError, "sparse=True"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name):
    call, kind, text = BAD[name]
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.parametrize("from_logits", [True, False])
@pytest.mark.parametrize(("kind", "bad"), [("float32", np.nan), ("float32", np.inf), ("int32", 3), ("int32", -1)])
def test_a_program_refuses_a_number_that_is_no_class(kind, bad, from_logits):
    pytest.importorskip("jax")
    x = tf.Variable([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])

    @tf.function
    def loss_and_gradient(labels):
        with tf.GradientTape() as tape:
            losses = ops.sparse_categorical_crossentropy(labels, x, from_logits)
            loss = tf.reduce_sum(losses)
        return losses, tape.gradient(loss, x)

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"label value of .* outside the valid range of"):
        loss_and_gradient(tf.constant(np.array([2, bad]).astype(kind)))
    assert np.isfinite(loss_and_gradient(tf.constant(np.array([2, 0]).astype(kind)))[0]).all()


def test_a_program_takes_classes_that_cannot_be():
    pytest.importorskip("jax")
    x = tf.Variable([[-np.inf, 0.0, 0.0]])

    @tf.function
    def loss_and_gradient(labels):
        with tf.GradientTape() as tape:
            loss = ops.sparse_categorical_crossentropy(labels, x, True)
        return loss, tape.gradient(loss, x)

    loss, gradient = loss_and_gradient(tf.constant([1]))
    np.testing.assert_allclose(loss, [np.log(2)], rtol=1e-6)
    np.testing.assert_allclose(gradient, [[0.0, -0.5, 0.5]], rtol=1e-6)


@pytest.mark.parametrize("size", [0, -1])
def test_a_batch_has_examples(size):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(loss="mse", run_eagerly=True)
    x, y = np.ones((4, 2)), np.ones((4, 1))
    for method, data in ((model.fit, (x, y)), (model.evaluate, (x, y)), (model.predict, (x,))):
        with pytest.raises(ValueError, match=f"Received: batch_size={size}"):
            method(*data, batch_size=size, verbose=0)
