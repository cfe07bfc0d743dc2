"""`tf.nn`: values against NumPy and SciPy formulas, edge values of derivatives (spec C10), errors, memory."""

import functools
import tracemalloc

import hypothesis
import hypothesis.extra.numpy as npst
import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st

import gradtape as tf
from gradtape import nn
from gradtape import random as tf_random
from gradtape.xp import numpy_conv

pytestmark = pytest.mark.tiny

InvalidArgument = tf.errors.InvalidArgumentError


def gradient(function, *values, dtype=np.float32):
    """The gradients of a function's sum with respect to all its arguments."""
    inputs = [tf.constant(v, dtype=dtype) for v in values]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        out = function(*inputs)
    return [None if g is None else tf.convert_to_tensor(g).numpy() for g in tape.gradient(out, inputs)]


FLOATS = st.floats(-50, 50, width=32)
MATRICES = npst.arrays(np.float64, npst.array_shapes(min_dims=1, max_dims=3, max_side=4), elements=FLOATS)

# Activations

ACTIVATIONS = ["relu", "relu6", "leaky_relu", "elu", "selu", "silu", "softplus", "softsign", "softmax"]


@pytest.mark.parametrize(
    ("function", "at", "slope"),
    [
        (nn.relu, 0.0, 0.0),
        (nn.relu, -0.0, 0.0),
        (nn.leaky_relu, 0.0, 0.2),
        (lambda x: nn.leaky_relu(x, alpha=0.3), 0.0, 0.3),
        (nn.relu6, 0.0, 0.0),
        (nn.relu6, 6.0, 0.0),
        (nn.relu6, 5.9, 1.0),
        (nn.elu, 0.0, 1.0),
        (nn.selu, 0.0, 1.0507009873554805),
        (nn.softsign, 0.0, 1.0),
        (nn.gelu, 0.0, 0.5),
        (nn.silu, 0.0, 0.5),
        (nn.selu, np.nan, 1.0507009873554805),
        (nn.elu, -np.inf, 0.0),
        (nn.selu, -np.inf, 0.0),
    ],
)
def test_C10_slopes_at_the_edge(function, at, slope):
    np.testing.assert_allclose(gradient(function, [at])[0], [slope], rtol=1e-6)


@pytest.mark.parametrize("function", [nn.relu, nn.relu6, nn.leaky_relu, nn.elu, nn.selu, nn.gelu, nn.silu, nn.softmax])
def test_nan_stays_nan(function):
    assert np.isnan(function(tf.constant([np.nan])).numpy()).all()


@pytest.mark.parametrize("function", [nn.relu, nn.relu6, nn.leaky_relu, nn.elu, nn.crelu])
def test_the_second_derivative_of_a_piecewise_linear_function_is_zeros_not_none(function):
    x = tf.constant([-1.0, 1.0, 0.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = function(x)
        g = inner.gradient(y, x)
    second = outer.gradient(g, x).numpy()
    np.testing.assert_allclose(second, [np.exp(-1), 0, 0] if function is nn.elu else [0, 0, 0], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_relu_takes_integers(dtype):
    x = tf.constant(np.array([3, 0, 7], dtype))
    assert nn.relu(x).dtype == dtype
    assert nn.relu6(x).numpy().tolist() == [3, 0, 6]
    assert nn.leaky_relu(x).dtype == tf.float32


def test_leaky_relu_with_any_slope():
    x = tf.constant([-1.0, 2.0])
    assert nn.leaky_relu(x, 1.5).numpy().tolist() == [-1.5, 2.0]
    assert nn.leaky_relu(x, -1).numpy().tolist() == [1.0, 2.0]
    assert gradient(lambda x: nn.leaky_relu(x, -1), [-1.0, 2.0])[0].tolist() == [-1.0, 1.0]
    with pytest.raises(TypeError, match="Expected float for argument 'alpha'"):
        nn.leaky_relu(x, tf.constant(0.3))


def test_crelu_joins_along_an_axis():
    assert nn.crelu([[-1.0, 2.0]]).numpy().tolist() == [[0.0, 2.0, 1.0, 0.0]]
    assert nn.crelu([[-1.0, 2.0]], axis=0).numpy().tolist() == [[0.0, 2.0], [1.0, 0.0]]


@pytest.mark.parametrize(("approximate", "wanted"), [(False, -0.0040496944), (True, -0.0036373920)])
def test_gelu(approximate, wanted):
    np.testing.assert_allclose(nn.gelu(tf.constant(-3.0, tf.float64), approximate=approximate).numpy(), wanted, rtol=1e-6)
    with pytest.raises(ValueError, match=r"`features.dtype` must be a floating point tensor"):
        nn.gelu(tf.constant([1]))


def test_gelu_keeps_its_digits_far_below_zero():
    x = np.array([-20.0, -30.0])
    np.testing.assert_allclose(nn.gelu(tf.constant(x)).numpy(), x * scipy.special.ndtr(x), rtol=1e-12)


def test_silu_is_differentiable_in_beta():
    x, beta = gradient(nn.silu, [1.0, 2.0], 2.0)
    np.testing.assert_allclose(x, [1.0907842, 1.0526646], rtol=1e-6)
    np.testing.assert_allclose(beta, 0.17564452, rtol=1e-5)
    assert nn.swish is nn.silu


@pytest.mark.parametrize("name", [*ACTIVATIONS[3:], "sigmoid", "tanh", "log_softmax", "l2_loss"])
@pytest.mark.parametrize("bad", [[1, 2], [True]], ids=str)
def test_what_is_not_floating_is_refused(name, bad):
    with pytest.raises(InvalidArgument, match="is not in the list of allowed values"):
        getattr(nn, name)(tf.constant(bad))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", [*ACTIVATIONS, "gelu"])
def test_results_have_the_dtype_of_their_input(name, dtype):
    x = tf.cast(tf.constant([1.5, -2.0]), dtype)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = getattr(nn, name)(x)
    assert y.dtype == dtype
    assert tape.gradient(y, x).dtype == dtype


def test_names_take_keywords():
    x = tf.constant([1.0, -1.0])
    assert nn.relu(features=x, name="r").shape == nn.softmax(logits=x, axis=None, name="s").shape
    assert nn.sigmoid(x=x, name="s").shape == nn.tanh(x=x).shape == nn.softplus(features=x).shape == nn.elu(features=x).shape


# Softmax


@given(MATRICES, st.data())
def test_softmax_and_log_softmax_equal_scipy(x, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    np.testing.assert_allclose(nn.softmax(tf.constant(x), axis).numpy(), scipy.special.softmax(x, axis), rtol=1e-12)
    np.testing.assert_allclose(
        nn.log_softmax(tf.constant(x), axis).numpy(), scipy.special.log_softmax(x, axis), rtol=1e-12, atol=1e-300
    )


@given(MATRICES, st.floats(-1e3, 1e3))
def test_softmax_does_not_see_a_shift(x, shift):
    np.testing.assert_allclose(nn.softmax(tf.constant(x + shift)).numpy(), nn.softmax(tf.constant(x)).numpy(), rtol=1e-9)
    np.testing.assert_allclose(nn.softmax(tf.constant(x)).numpy().sum(-1), 1, rtol=1e-12)


def test_softmax_of_large_and_infinite_logits():
    assert nn.softmax([1e30, 1e30, -1e30]).numpy().tolist() == [0.5, 0.5, 0.0]
    assert nn.log_softmax([0.0, -np.inf]).numpy().tolist() == [0.0, -np.inf]
    assert np.isnan(nn.softmax([-np.inf, -np.inf]).numpy()).all()
    assert nn.softmax(np.zeros((2, 0), np.float32)).shape == (2, 0)


# Cross-entropies


def test_dense_labels_receive_a_gradient():
    labels, logits = gradient(nn.softmax_cross_entropy_with_logits, [[0.2, 0.3, 0.5]], [[1.0, 2.0, 3.0]])
    np.testing.assert_allclose(labels, [[2.407606, 1.407606, 0.407606]], rtol=1e-5)
    np.testing.assert_allclose(logits, [[-0.10996943, -0.05527154, 0.16524094]], rtol=1e-5)


def test_labels_that_do_not_sum_to_one_have_the_exact_gradient():
    labels = np.array([[2.0, 3.0, 5.0]])
    _, logits = gradient(nn.softmax_cross_entropy_with_logits, labels, [[1.0, 2.0, 3.0]], dtype=np.float64)
    np.testing.assert_allclose(logits, 10 * scipy.special.softmax([[1.0, 2.0, 3.0]]) - labels, rtol=1e-12)


def test_a_label_of_zero_at_an_impossible_class_costs_nothing():
    logits = tf.constant([[-np.inf, 1.0]])
    assert nn.softmax_cross_entropy_with_logits([[0.0, 1.0]], logits).numpy().tolist() == [0.0]
    assert nn.sparse_softmax_cross_entropy_with_logits([1], logits).numpy().tolist() == [0.0]
    labels, found = gradient(nn.softmax_cross_entropy_with_logits, [[0.0, 1.0]], [[-np.inf, 1.0]])
    assert labels.tolist() == [[np.inf, 0.0]]
    assert found.tolist() == [[0.0, 0.0]]


@given(npst.arrays(np.float64, (3, 4), elements=FLOATS), st.lists(st.integers(0, 3), min_size=3, max_size=3))
def test_sparse_equals_dense(logits, labels):
    rows = np.eye(4)[labels]
    sparse = nn.sparse_softmax_cross_entropy_with_logits(labels, logits).numpy()
    np.testing.assert_allclose(sparse, nn.softmax_cross_entropy_with_logits(rows, logits).numpy(), rtol=1e-12, atol=1e-300)
    (a,) = gradient(lambda x: nn.sparse_softmax_cross_entropy_with_logits(labels, x), logits, dtype=np.float64)
    np.testing.assert_allclose(a, scipy.special.softmax(logits, -1) - rows, rtol=1e-9, atol=1e-12)


def test_labels_take_the_dtype_of_the_logits():
    logits = tf.constant([[1.0, 2.0, 3.0]])
    for labels in ([[0, 1, 0]], tf.constant([[0, 1, 0]]), tf.constant([[0.0, 1.0, 0.0]], tf.float64)):
        loss = nn.softmax_cross_entropy_with_logits(labels, logits)
        assert loss.dtype == tf.float32
        np.testing.assert_allclose(loss.numpy(), [1.4076059], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_losses_are_computed_in_float32(dtype):
    logits = np.random.default_rng(0).normal(size=(4, 1000)) * 4
    rounded = tf.cast(tf.constant(logits), dtype)
    wanted = -scipy.special.log_softmax(np.asarray(tf.cast(rounded, tf.float64)), -1)[:, 7]
    loss = nn.sparse_softmax_cross_entropy_with_logits([7] * 4, rounded)
    assert loss.dtype == dtype
    np.testing.assert_array_equal(loss.numpy(), wanted.astype(np.float32).astype(loss.numpy().dtype))


def test_shapes_of_dense_labels():
    logits = np.random.default_rng(0).normal(size=(2, 2, 3))
    labels = np.eye(3)[[0, 1, 2, 0]]
    flat = nn.softmax_cross_entropy_with_logits(labels, logits)  # (4, 3) against (2, 2, 3): the same rows in the same order
    assert flat.shape == (2, 2)
    np.testing.assert_allclose(flat.numpy().ravel(), nn.softmax_cross_entropy_with_logits(labels, logits.reshape(4, 3)).numpy())
    assert nn.softmax_cross_entropy_with_logits(np.zeros((0, 3)), np.zeros((0, 3))).shape == (0,)
    with pytest.raises(InvalidArgument, match="`dim` must be in the range"):
        nn.softmax_cross_entropy_with_logits(labels, logits.reshape(4, 3), axis=5)
    with pytest.raises(ValueError, match="Attempt to convert a value"):
        nn.softmax_cross_entropy_with_logits(None, logits)


def test_a_label_out_of_range_is_named_with_all_labels():
    with pytest.raises(InvalidArgument, match=r"label value of 5 which is outside .* \[0, 3\).  Label values: 0 5"):
        nn.sparse_softmax_cross_entropy_with_logits([0, 5], np.ones((2, 3), np.float32))
    for dtype in ("int16", "uint8", "bool"):
        with pytest.raises(InvalidArgument, match="'Tlabels' of"):
            nn.sparse_softmax_cross_entropy_with_logits(tf.constant(np.array([0, 1], dtype)), np.ones((2, 3), np.float32))


def test_second_order_through_a_loss():
    logits = np.array([[0.3, -1.0, 2.0]])
    x = tf.constant(logits)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            loss = nn.sparse_softmax_cross_entropy_with_logits([2], x)
        g = inner.gradient(loss, x)
    p = scipy.special.softmax(logits[0])
    np.testing.assert_allclose(outer.jacobian(g, x).numpy().reshape(3, 3), np.diag(p) - np.outer(p, p), rtol=1e-12)


def test_a_loss_keeps_one_array_of_the_size_of_the_logits():
    logits = tf.constant(np.ones((50, 40)))
    with tf.GradientTape() as tape:
        tape.watch(logits)
        nn_loss = nn.sparse_softmax_cross_entropy_with_logits(np.zeros(50, int), logits)
    kept = {id(t): t for r in tape.records.values() if len(r) > 5 and isinstance(r[5], dict) for t in r[5].values()}
    large = [t for t in kept.values() if t.shape == (50, 40)]
    assert len(large) == 1
    assert large[0] is not logits
    assert nn_loss.shape == (50,)


def test_sigmoid_cross_entropy_keeps_its_digits():
    x = np.array([40.0, -40.0, 800.0])
    loss = nn.sigmoid_cross_entropy_with_logits(labels=[1.0, 0.0, 1.0], logits=x)
    np.testing.assert_allclose(loss.numpy(), np.log1p(np.exp([-40.0, -40.0, -800.0])), rtol=1e-12)


def test_sigmoid_and_weighted_gradients():
    labels, logits = gradient(lambda z, x: nn.sigmoid_cross_entropy_with_logits(z, x), [[0.2, 0.3, 0.5]], [[1.0, 2.0, 3.0]])
    np.testing.assert_allclose(labels, [[-1, -2, -3]])
    np.testing.assert_allclose(logits, [[0.53105855, 0.58079708, 0.45257413]], rtol=1e-6)
    found = gradient(nn.weighted_cross_entropy_with_logits, [[0.2, 0.3, 0.5]], [[1.0, 2.0, 3.0]], 2.0)
    np.testing.assert_allclose(found[0], [[-0.6867383, -1.873072, -2.9514127]], rtol=1e-6)
    np.testing.assert_allclose(found[1], [[0.47727028, 0.5450362, 0.4288612]], rtol=1e-6)
    np.testing.assert_allclose(found[2], 0.12502442, rtol=1e-6)


def test_elementwise_losses_refuse_other_shapes_and_nothing():
    x = tf.constant([[1.0, 2.0, 3.0]])
    weighted = functools.partial(nn.weighted_cross_entropy_with_logits, pos_weight=1.0)
    for loss in (nn.sigmoid_cross_entropy_with_logits, weighted):
        with pytest.raises(ValueError, match=r"must have the same shape, received \(\(1, 3\) vs \(3,\)\)"):
            loss(labels=tf.constant([1.0, 2.0, 3.0]), logits=x)
        with pytest.raises(ValueError, match="Both `labels` and `logits` must be provided"):
            loss(labels=None, logits=x)
    with pytest.raises(InvalidArgument, match=r"input #1\(zero-based\) was expected to be a float tensor"):
        nn.sigmoid_cross_entropy_with_logits(labels=tf.constant([[1, 0, 1]]), logits=x)
    with pytest.raises(ValueError, match="`log_input` and `targets` must have the same shape"):
        nn.log_poisson_loss([0.0, 0.5], [0.0])


def test_log_poisson_loss():
    loss = nn.log_poisson_loss([0.0, 0.5, 1.0, 2.5], [0.0, 1.0, 2.0, 3.0], compute_full_loss=True)
    np.testing.assert_allclose(loss.numpy(), [1.0, 2.2182817, 5.389056, 13.753347], rtol=1e-6)
    targets, _ = gradient(lambda z, c: nn.log_poisson_loss(z, c, True), [0.0, 0.5], [0.0, 1.0])
    assert targets.tolist() == [0.0, -1.0]  # not nan at 0


# Moments and normalisation


@given(npst.arrays(np.float64, (3, 4), elements=st.floats(-1e3, 1e3)), st.sampled_from([0, 1, [0, 1], [-1]]), st.booleans())
def test_moments_equal_numpy(x, axes, keepdims):
    mean, variance = nn.moments(tf.constant(x), axes, keepdims=keepdims)
    axis = axes if isinstance(axes, int) else tuple(axes)
    np.testing.assert_allclose(mean.numpy(), x.mean(axis, keepdims=keepdims), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(variance.numpy(), x.var(axis, keepdims=keepdims), rtol=1e-10, atol=1e-20)


def test_the_second_derivative_of_a_variance_is_exact():
    x = tf.constant([1.0, 2.0, 4.0], tf.float64)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            _, variance = nn.moments(x, 0)
        g = inner.gradient(variance, x)
    np.testing.assert_allclose(outer.jacobian(g, x).numpy(), 2 / 3 * np.eye(3) - 2 / 9, rtol=1e-12)


def test_moments_of_float16_are_computed_in_float32():
    mean, variance = nn.moments(tf.constant(np.full(3000, 30, np.float16)), 0)
    assert (float(mean), float(variance), mean.dtype) == (30.0, 0.0, tf.float16)


def test_statistics_and_weighted_moments():
    x = np.array([[1.0, 2, 3], [4, 6, 9]])
    count, total, squares, shift = nn.sufficient_statistics(x, [0], shift=1.0)
    assert (float(count), total.numpy().tolist(), squares.numpy().tolist()) == (2, [3, 6, 10], [9, 26, 68])
    mean, variance = nn.normalize_moments(count, total, squares, shift)
    np.testing.assert_allclose(mean.numpy(), x.mean(0))
    np.testing.assert_allclose(variance.numpy(), x.var(0))
    assert nn.sufficient_statistics(x, [0])[3] is None
    mean, variance = nn.weighted_moments(x, [0, 1], [[1.0, 1, 1], [3, 0, 0]], keepdims=True)
    np.testing.assert_allclose([mean.numpy(), variance.numpy()], [[[3.0]], [[4 / 3]]])
    mean, _ = nn.weighted_moments(x, [1], [1.0, 2, 3])
    np.testing.assert_allclose(mean.numpy(), [14 / 6, 43 / 6])


def test_batch_normalization():
    x = tf.constant([[1.0, 2, 3], [4, 6, 9]])
    one = tf.constant([1.0, 2, 3])
    both = nn.batch_normalization(x, one, one, one, one, 1e-3)
    np.testing.assert_allclose(both.numpy()[1], [3.9985013, 7.6554403, 13.390574], rtol=1e-6)
    plain = nn.batch_normalization(x, one, one, None, None, variance_epsilon=1e-3)
    np.testing.assert_allclose(plain.numpy()[1], [2.9985013, 2.8277202, 3.4635248], rtol=1e-6)
    assert nn.batch_normalization(tf.cast(x, tf.float16), one, one, one, one, 1e-3).dtype == tf.float16


def test_l2_normalize():
    x = np.array([[3.0, 4], [0, 0]])
    np.testing.assert_allclose(nn.l2_normalize(x, axis=1).numpy(), [[0.6, 0.8], [0, 0]])
    np.testing.assert_allclose(nn.l2_normalize(x, dim=1).numpy(), [[0.6, 0.8], [0, 0]])
    np.testing.assert_allclose(nn.l2_normalize([3 + 4j, 0]).numpy(), [0.6 + 0.8j, 0])
    np.testing.assert_allclose(gradient(nn.l2_normalize, [0.0, 0.0])[0], [1e6, 1e6], rtol=1e-5)
    with pytest.raises(TypeError, match="Cannot convert 1e-12 to EagerTensor of dtype int32"):
        nn.l2_normalize(tf.constant([3, 4]))


def test_bias_add_formats():
    x = np.zeros((1, 2, 3, 1), np.float32)
    assert nn.bias_add(x, [1.0, 2.0], data_format="NCHW").numpy()[0, :, 0, 0].tolist() == [1, 2]
    assert nn.bias_add(x, [1.0], data_format="NHWC").numpy().max() == 1
    assert nn.bias_add(tf.constant([[1, 2]]), tf.constant([1, 2])).numpy().tolist() == [[2, 4]]
    with pytest.raises(ValueError, match="`data_format` must be of the form"):
        nn.bias_add(x, [1.0], data_format="XX")
    with pytest.raises(InvalidArgument, match=r"cannot compute BiasAdd as input #1\(zero-based\)"):
        nn.bias_add(tf.constant(x), tf.constant([1]))


# Dropout


@given(st.floats(0.05, 0.95), st.integers(0, 1000))
def test_dropout_keeps_the_mean(rate, seed):
    tf_random.set_seed(seed)
    out = nn.dropout(np.ones(4000), rate).numpy()
    kept = out != 0
    np.testing.assert_allclose(out[kept], 1 / (1 - rate), rtol=1e-12)
    assert abs(kept.mean() - (1 - rate)) < 5 * np.sqrt(rate * (1 - rate) / 4000)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_gradient_of_dropout_is_its_mask(dtype):
    x = tf.cast(tf.ones([64]) if hasattr(tf, "ones") else tf.constant(np.ones(64)), dtype)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = nn.dropout(x, 0.5)
    assert y.dtype == dtype
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), y.numpy())


def test_dropout_drops_together_along_axes_of_length_one():
    for noise_shape in ([30, 1], [None, 1], tf.constant([30, 1])):
        out = nn.dropout(np.ones((30, 4)), 0.5, noise_shape=noise_shape).numpy()
        assert (out == out[:, :1]).all()
        assert 0 < out.mean() < 2
    with pytest.raises(InvalidArgument, match=r"condition \[2,1\], then \[3,4\], and else \[\] must be broadcastable"):
        nn.dropout(np.ones((3, 4)), 0.5, noise_shape=[2, 1])


def test_dropout_is_reproducible():
    x = np.ones(100)
    tf_random.set_seed(3)
    first = [nn.dropout(x, 0.5).numpy() for _ in range(2)]
    tf_random.set_seed(3)
    second = [nn.dropout(x, 0.5).numpy() for _ in range(2)]
    np.testing.assert_array_equal(first, second)
    assert (first[0] != first[1]).any()
    a, b = (nn.experimental.stateless_dropout(x, 0.5, seed=[1, 2]).numpy() for _ in range(2))
    np.testing.assert_array_equal(a, b)


def test_dropout_rates():
    x = tf.constant([1.0, np.nan] * 20)
    assert nn.dropout(x, 0) is x
    assert set(nn.dropout(tf.constant([np.nan] * 50), 0.5).numpy()[:, None].astype(str).ravel()) == {"nan", "0.0"}
    _, rate = gradient(nn.dropout, np.ones(8), 0.5)
    assert rate % 4 == 0
    for bad in (1, 1.0, -0.1, np.float32(2)):
        with pytest.raises(ValueError, match=r"must be a scalar tensor or a float in the range \[0, 1\)"):
            nn.dropout(x, bad)
    for bad in ("a", None, [0.5]):
        with pytest.raises(ValueError, match="`rate` must be a scalar or scalar tensor"):
            nn.dropout(x, bad)
    with pytest.raises(ValueError, match=r"`x.dtype` must be a floating point tensor"):
        nn.dropout(tf.constant([1, 2]), 0.5)


# Embeddings and the rest


def test_embedding_lookup():
    table = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        rows = nn.embedding_lookup(table, [[1, 0], [1, 1]])
    assert rows.shape == (2, 2, 2)
    slices = tape.gradient(rows, table)
    assert isinstance(slices, tf.IndexedSlices)
    np.testing.assert_array_equal(tf.convert_to_tensor(slices).numpy(), [[1, 1], [3, 3]])
    np.testing.assert_array_equal(nn.embedding_lookup([table, [[7.0, 7.0]]], [2, 0]).numpy(), [[7, 7], [1, 2]])
    with pytest.raises(InvalidArgument, match=r"indices\[0\] = 2 is not in \[0, 2\)"):
        nn.embedding_lookup(table, [2])
    with pytest.raises(InvalidArgument, match="'Tindices' of float"):
        nn.embedding_lookup(table, [1.0])
    with pytest.raises(ValueError, match="params must be specified"):
        nn.embedding_lookup(None, [1])
    with pytest.raises(ValueError, match="Need at least one param"):
        nn.embedding_lookup([], [1])


def test_a_row_of_zeros_has_a_gradient_under_max_norm():
    (g,) = gradient(lambda t: nn.embedding_lookup(t, [0], max_norm=1.0), [[0.0, 0.0]])
    assert g.tolist() == [[1.0, 1.0]]


def test_zero_fraction():
    assert float(nn.zero_fraction([0.0, 1.0, 0.0, 0.0])) == 0.75
    assert nn.zero_fraction(tf.constant([0], tf.int64)).dtype == tf.float32
    assert np.isnan(nn.zero_fraction(np.zeros(0)).numpy())


def test_compute_average_loss():
    assert float(nn.compute_average_loss([1.0, 2.0])) == 1.5
    assert float(nn.compute_average_loss([1.0, 2.0], sample_weight=[1.0, 0.0], global_batch_size=4)) == 0.25
    assert float(nn.compute_average_loss([[1.0, 2.0], [1.0, 1.0]], sample_weight=[1.0, 0.0])) == 1.5
    assert float(nn.compute_average_loss([1.0], global_batch_size=0)) == 0.0
    assert float(nn.scale_regularization_loss([1.0, 2.0])) == 3.0
    with pytest.raises(ValueError, match="Expected a tensor with at least rank 1"):
        nn.compute_average_loss(1.0)
    with pytest.raises(TypeError, match="global_batch_size must be an integer"):
        nn.compute_average_loss([1.0], global_batch_size=2.0)
    with pytest.raises(InvalidArgument, match="global_batch_size must be non-negative"):
        nn.compute_average_loss([1.0], global_batch_size=-2)
    with pytest.raises(ValueError, match="global_batch_size must be scalar"):
        nn.compute_average_loss([1.0], global_batch_size=[2])


# Convolution and pooling


@st.composite
def convolutions(draw):
    """Shapes of input, filter and result, and how they meet."""
    n = draw(st.integers(1, 3))
    each = lambda low, high: tuple(draw(st.integers(low, high)) for _ in range(n))
    size, strides, dilations, lengths = each(1, 3), each(1, 3), each(1, 2), each(1, 5)
    padding = tuple(zip(each(0, 2), each(0, 2)))
    counts = tuple(
        (m + sum(pair) - (k - 1) * d - 1) // s + 1
        for m, pair, k, d, s in zip(lengths, padding, size, dilations, strides)
    )
    hypothesis.assume(min(counts) > 0)
    groups, depth, outputs, batch = (draw(st.integers(1, 3)) for _ in range(4))
    shapes = (batch, *lengths, groups * depth), (*size, depth, groups * outputs), (batch, *counts, groups * outputs)
    return shapes, {"strides": strides, "padding": padding, "dilations": dilations, "groups": groups}


@given(convolutions(), st.sampled_from([1, 200, 2**21]))
def test_convolution_and_its_transposes_are_one_trilinear_form(form, block):
    """⟨conv(x, w), y⟩ = ⟨x, conv_input(y, w)⟩ = ⟨w, conv_filter(x, y)⟩, in blocks of any size."""
    (x, w, y), attributes = form
    rng = np.random.default_rng(0)
    x, w, y = (rng.normal(size=shape) for shape in (x, w, y))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numpy_conv, "BLOCK", block)
        results = [
            np.vdot(numpy_conv.conv(x, w, **attributes), y),
            np.vdot(numpy_conv.conv_input(y, w, lengths=x.shape[1:-1], **attributes), x),
            np.vdot(numpy_conv.conv_filter(x, y, size=w.shape[:-2], **attributes), w),
        ]
    np.testing.assert_allclose(results, results[0], rtol=1e-10, atol=1e-10)


@given(convolutions())
def test_groups_are_convolutions_side_by_side(form):
    (x, w, _), attributes = form
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=x), rng.normal(size=w)
    alone = {**attributes, "groups": 1}
    parts = zip(np.split(x, attributes["groups"], axis=-1), np.split(w, attributes["groups"], axis=-1))
    expected = np.concatenate([numpy_conv.conv(a, b, **alone) for a, b in parts], axis=-1)
    np.testing.assert_allclose(numpy_conv.conv(x, w, **attributes), expected, rtol=1e-10, atol=1e-10)


def test_a_large_image_is_unfolded_in_pieces():
    x, w = np.ones((1, 512, 512, 8), np.float32), np.ones((3, 3, 8, 1), np.float32)
    tracemalloc.start()
    nn.conv2d(x, w, 1, "VALID")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * x.nbytes  # all windows at once would take 9 times x


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_data_formats_agree(padding):
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 5, 4, 3)), rng.normal(size=(3, 2, 3, 2))
    for function in (
        lambda a, form: nn.conv2d(a, w, 2, padding, data_format=form),
        lambda a, form: nn.max_pool2d(a, 2, 2, padding, data_format=form),
        lambda a, form: nn.avg_pool2d(a, 3, 1, padding, data_format=form),
    ):
        last = function(tf.constant(x), "NHWC").numpy()
        first = function(tf.constant(x.transpose(0, 3, 1, 2)), "NCHW").numpy()
        np.testing.assert_array_equal(first, last.transpose(0, 3, 1, 2))


def test_windows_that_do_not_fit_and_empty_batches():
    with pytest.raises(InvalidArgument, match="Computed output size would be negative"):
        nn.conv2d(tf.ones([1, 1, 1, 1]), tf.ones([3, 3, 1, 1]), 1, "VALID")
    with pytest.raises(InvalidArgument, match="Computed output size would be negative"):
        nn.max_pool2d(tf.ones([1, 4, 4, 1]), 5, 1, "VALID")
    with pytest.raises(InvalidArgument, match="must be 4-dimensional"):
        nn.conv2d(tf.ones([5, 5, 1]), tf.ones([3, 3, 1, 1]), 1, "SAME")
    with pytest.raises(InvalidArgument, match="must be nonnegative"):
        nn.conv2d(tf.ones([1, 5, 5, 1]), tf.ones([3, 3, 1, 1]), 1, [[0, 0], [-1, 1], [0, 0], [0, 0]])
    assert nn.conv2d(tf.ones([0, 5, 5, 4]), tf.ones([3, 3, 4, 2]), 1, "SAME").shape == (0, 5, 5, 2)


def test_the_first_of_equal_maxima_receives_the_gradient():
    (g,) = gradient(lambda x: nn.max_pool2d(x, 2, 2, "VALID"), np.zeros((1, 2, 4, 1)))
    np.testing.assert_array_equal(g[0, :, :, 0], [[1, 0, 1, 0], [0, 0, 0, 0]])


def test_the_jacobian_of_a_convolution_runs_without_a_loop(caplog):
    x, w = tf.constant(np.ones((1, 3, 3, 2))), tf.constant(np.ones((2, 2, 2, 2)))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, w])
        y = nn.avg_pool2d(nn.max_pool2d(tf.sin(nn.conv2d(x, w, 1, "SAME")), 2, 1, "SAME"), 2, 1, "VALID")
    tape.jacobian(y, [x, w])
    assert "No batching rule" not in caplog.text


def test_masked_attention_has_no_nan():
    """Scores of -inf have weight and gradient 0, at first and second order."""
    mask = np.triu(np.full((4, 4), -np.inf), 1)
    with tf.GradientTape() as outer:
        scores = tf.constant(np.random.default_rng(0).normal(size=(4, 4)))
        outer.watch(scores)
        with tf.GradientTape() as inner:
            inner.watch(scores)
            weights = nn.softmax(scores + mask)
        g = inner.gradient(weights, scores, output_gradients=weights)
    second = outer.gradient(g, scores).numpy()
    masked = np.isinf(mask)
    for found in (weights.numpy(), g.numpy(), second):
        assert np.isfinite(found).all()
        np.testing.assert_array_equal(found[masked], 0)


def test_ctc_loss_of_labels_that_are_too_long_is_infinite():
    loss = nn.ctc_loss([[1, 1, 2]], tf.zeros([3, 1, 4]), [3], [3])
    assert np.isinf(loss.numpy()).all()


def test_a_label_that_is_no_class_is_refused_by_a_program():
    pytest.importorskip("jax")
    loss = tf.function(nn.sparse_softmax_cross_entropy_with_logits)
    for label in (-1, 4):
        with pytest.raises(tf.errors.InvalidArgumentError, match=rf"label value of {label} which is outside"):
            loss(tf.constant([1, label, 0]), tf.zeros([3, 4]))


def test_a_blank_among_the_labels_of_ctc_loss_may_follow_a_label_at_once():
    logits = (np.arange(24, dtype=np.float32).reshape(2, 4, 3) - 12) / 100
    loss = nn.ctc_loss([[1, 2, 1], [1, 2, 0]], logits, [3, 3], [4, 4], logits_time_major=False, blank_index=0)
    np.testing.assert_allclose(loss, [2.4429312, 2.4543595], rtol=1e-6)  # TensorFlow's


def test_sampled_losses_draw_their_own_classes():
    arguments = tf.ones([50, 3]), tf.zeros([50]), [[1], [2]], tf.ones([2, 3])
    for function in (nn.nce_loss, nn.sampled_softmax_loss):
        loss = function(*arguments, num_sampled=5, num_classes=50)
        assert loss.shape == (2,)
        assert np.isfinite(loss.numpy()).all()
    with pytest.raises(InvalidArgument, match="num_true = 1 columns"):
        nn.nce_loss(tf.ones([50, 3]), tf.zeros([50]), [1, 2], tf.ones([2, 3]), 5, 50)


def test_every_public_name_is_there():
    assert all(hasattr(nn, name) for name in nn.__all__)
    assert nn.top_k([1.0, 3.0, 2.0], k=2).indices.numpy().tolist() == [1, 2]
