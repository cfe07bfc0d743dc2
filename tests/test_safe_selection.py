"""Safe selection: what `where`, `maximum`, a mask or an index did not take sends no nan back.

Functions are drawn over ops with poles, points over the poles. The gradient of a selection must be that of the selected
function alone, wherever that is finite: eager and compiled, first and second order.
"""

import functools
import warnings

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import gradtape as tf

POINTS = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 1e-3, 3.0, 800.0, np.pi / 2])

UNARY = {
    "log": tf.math.log, "log1p": tf.math.log1p, "sqrt": tf.sqrt, "rsqrt": tf.math.rsqrt, "reciprocal": tf.math.reciprocal,
    "acos": tf.acos, "asin": tf.asin, "acosh": tf.acosh, "atanh": tf.atanh, "exp": tf.exp, "tanh": tf.tanh, "square": tf.square,
    "erfinv": tf.math.erfinv, "ndtri": tf.math.ndtri, "lgamma": tf.math.lgamma, "digamma": tf.math.digamma,
    "expint": tf.math.special.expint, "bessel_y0": tf.math.special.bessel_y0, "bessel_k1": tf.math.special.bessel_k1,
    "tan": tf.tan, "softplus": tf.math.softplus, "gelu": tf.nn.gelu, "relu": tf.nn.relu,
    "root": lambda x: x**0.5, "pole": lambda x: x**-1.5, "self_power": lambda x: x**x, "entropy": lambda x: x * tf.math.log(x),
    "sinc": lambda x: tf.sin(x) / x, "angle": lambda x: tf.atan2(x, x), "norm": lambda x: tf.norm(tf.stack([x, x]), axis=0),
    "logit": lambda x: tf.math.log(x / (1.0 - x)), "std": lambda x: tf.math.reduce_std(tf.stack([x, 2.0 * x]), axis=0),
    "xlogy": lambda x: tf.math.xlogy(x + 1.0, x), "normalized": lambda x: x / tf.norm(tf.stack([x, x]), axis=0),
}  # fmt: skip
BINARY = {"times": tf.multiply, "over": tf.divide, "plus": tf.add, "to the power of": tf.pow, "atan2": tf.atan2}


class Chain:
    """Functions of one number, one after the other."""

    def __init__(self, *names):
        self.names = names

    def __call__(self, x):
        for name in self.names:
            x = UNARY[name](x)
        return x

    def __repr__(self):
        return " then ".join(self.names)


class Joined:
    """Two chains, joined by a function of two numbers."""

    def __init__(self, name, first, second):
        self.name, self.first, self.second = name, first, second

    def __call__(self, x):
        return BINARY[self.name](self.first(x), self.second(x))

    def __repr__(self):
        return f"({self.first}) {self.name} ({self.second})"


chains = st.lists(st.sampled_from(sorted(UNARY)), min_size=1, max_size=3).map(lambda names: Chain(*names))
functions = st.one_of(chains, st.builds(Joined, st.sampled_from(sorted(BINARY)), chains, chains))


def gradient(function, x, safe=None):
    with tf.GradientTape(safe=safe) as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x, unconnected_gradients="zero")


def second(function, x, safe=None):
    return gradient(lambda x: gradient(function, x, safe), x, safe)


def expect(found, wanted, chosen, tolerance):
    """Where the derivative of what was chosen is finite, it is what was found."""
    finite = np.isfinite(wanted.numpy()) & chosen
    np.testing.assert_allclose(found.numpy()[finite], wanted.numpy()[finite], rtol=tolerance, atol=tolerance)


def check(f, g, first_chosen, compiled, tolerance):
    """Each way to select f in some places and g in the others."""
    x = tf.constant(POINTS)
    c = tf.constant(first_chosen)

    def masked(x):
        mask = tf.cast(c, x.dtype)
        return mask * f(x)

    def picked(x):
        return tf.boolean_mask(f(x), first_chosen)

    def gathered(x):
        return tf.gather(f(x), np.flatnonzero(first_chosen))

    def of(derivative, function):
        found = functools.partial(derivative, function)
        return (tf.function(found) if compiled else found)(x)

    for derivative in (gradient, second):
        of_f, of_g = derivative(f, x, False), derivative(g, x, False)
        expect(of(derivative, lambda x: tf.where(c, f(x), g(x))), tf.where(c, of_f, of_g), True, tolerance)
        smooth = np.isfinite(f(x).numpy())  # a mask is a product: 0 · inf is nan before any gradient
        expect(of(derivative, masked), tf.where(c, of_f, 0.0), smooth, tolerance)
        for index in () if compiled else (picked, gathered):
            expect(of(derivative, index), tf.where(c, of_f, 0.0), True, tolerance)


@settings(max_examples=120)
@given(functions, functions, st.lists(st.booleans(), min_size=len(POINTS), max_size=len(POINTS)))
def test_the_gradient_of_a_selection_is_that_of_what_was_selected(f, g, first_chosen):
    check(f, g, np.array(first_chosen), False, 1e-12)


@pytest.mark.slow
@settings(max_examples=10, phases=[Phase.generate])  # each shrinking step would compile
@given(functions, functions, st.lists(st.booleans(), min_size=len(POINTS), max_size=len(POINTS)))
def test_the_gradient_of_a_compiled_selection_is_that_of_what_was_selected(f, g, first_chosen):
    pytest.importorskip("jax")
    check(f, g, np.array(first_chosen), True, 1e-6)


@settings(max_examples=60)
@given(functions, functions)
def test_the_gradient_of_a_maximum_is_that_of_the_larger(f, g):
    x = tf.constant(POINTS)
    first, other = f(x).numpy(), g(x).numpy()
    comparable = ~(np.isnan(first) | np.isnan(other))
    chosen = first >= other
    for derivative in (gradient, second):
        found = derivative(lambda x: tf.maximum(f(x), g(x)), x)
        expect(found, tf.where(chosen, derivative(f, x, False), derivative(g, x, False)), comparable, 1e-12)


def unselected(name):
    """x itself, and the function in no place."""
    never = np.zeros(POINTS.shape, bool)
    return lambda x: tf.where(never, UNARY[name](x), x)


@pytest.mark.parametrize("name", sorted(UNARY))
def test_each_function_alone(name):
    x = tf.constant(POINTS)
    assert (gradient(unselected(name), x).numpy() == 1.0).all()
    assert (second(unselected(name), x).numpy() == 0.0).all()


@pytest.mark.parametrize("derivative", [gradient, second], ids=["first", "second"])
def test_each_function_alone_compiled(derivative):
    pytest.importorskip("jax")
    names = sorted(UNARY)
    found = tf.function(lambda x: [derivative(unselected(name), x) for name in names])(tf.constant(POINTS))
    wrong = [name for name, g in zip(names, found) if (g.numpy() != (derivative is gradient)).any()]
    assert wrong == []


def test_a_switch_gives_tensorflows_nan():
    x = tf.constant([0.0, 2.0])

    def function(x):
        return tf.where(x > 0, tf.math.log(x), 0.0)

    assert gradient(function, x).numpy().tolist() == [0.0, 0.5]
    assert np.isnan(gradient(function, x, safe=False).numpy()).tolist() == [True, False]
    assert gradient(lambda x: 0.0 * tf.sqrt(x), x, safe=False).numpy().tolist() == [0.0, 0.0]  # as TensorFlow


def test_a_pole_that_was_taken_stays_infinite():
    assert gradient(tf.sqrt, tf.constant(0.0)).numpy() == np.inf
    assert np.isnan(gradient(lambda x: tf.norm(x), tf.constant([0.0, 0.0])).numpy()).all()
    assert np.isnan(gradient(lambda x: tf.where(x > 0, x, tf.sqrt(x)), tf.constant([-1.0])).numpy()).all()


EVERY_OP = {
    "matmul": lambda x: tf.math.log(x) @ np.arange(6.0).reshape(3, 2) * tf.reduce_sum(x, axis=1, keepdims=True),
    "einsum": lambda x: tf.einsum("ij,ik->ijk", tf.math.log(x), tf.sqrt(x)),
    "softmax": lambda x: tf.nn.softmax(tf.math.log(x) - tf.math.log(x[:, :1]), axis=-1),
    "prod": lambda x: tf.reduce_prod(tf.math.log(x), axis=1),
    "logsumexp": lambda x: tf.reduce_logsumexp(-tf.math.log(x), axis=1),
    "cumprod": lambda x: tf.math.cumprod(tf.math.log(x), axis=1),
}


@pytest.mark.parametrize("name", sorted(EVERY_OP))
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_safe_tape_settles_every_op(name, compiled):
    """Rows of zeros, which are not selected in the result, do not disturb the others."""
    if compiled:
        pytest.importorskip("jax")
    x = tf.constant([[0.0, 0.0, 0.0], [0.5, 2.0, 3.0], [1.5, 0.25, 4.0]], tf.float64)

    def found(x):
        return gradient(lambda x: EVERY_OP[name](x)[1:], x, True)

    result = (tf.function(found) if compiled else found)(x).numpy()
    alone = gradient(EVERY_OP[name], x[1:], False).numpy()
    np.testing.assert_allclose(result, np.concatenate([np.zeros((1, 3)), alone]), rtol=1e-6)


def test_contractions_of_a_safe_tape_leave_out_what_no_cotangent_reaches():
    x = tf.constant([[0.0, 1.0], [2.0, 3.0]])
    w = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape(safe=True) as tape:
        tape.watch(w)
        y = tf.where([[False], [True]], tf.math.log(x) @ w, 0.0)  # the first row is -inf
    expected = np.log([2.0, 3.0])[:, None] * np.ones((1, 2))
    np.testing.assert_allclose(tape.gradient(y, w).numpy(), expected, rtol=1e-6)


def test_matrices_that_were_not_selected_may_be_singular():
    matrices = tf.constant(np.stack([np.ones((2, 2)), np.diag([2.0, 3.0])]))
    found = gradient(lambda x: tf.where([False, True], tf.linalg.logdet(x @ tf.linalg.matrix_transpose(x)), 0.0), matrices)
    assert found.numpy()[0].tolist() == [[0.0, 0.0], [0.0, 0.0]]
    np.testing.assert_allclose(found.numpy()[1], np.diag([1.0, 2 / 3]))


def test_tangents_do_not_leak_either():
    x = tf.constant([0.0, 0.0, 4.0])
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.0, 1.0])) as accumulator:
        y = tf.where(x > 0, tf.sqrt(x), 0.0) + tf.cast(x > 0, x.dtype) * tf.sqrt(x)
    assert accumulator.jvp(y).numpy().tolist() == [0.0, 0.0, 0.5]


def test_jacobians_and_batches_do_not_leak():
    x = tf.constant([0.0, 4.0])
    for mode in ("forward", "reverse"):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.where(x > 0, tf.sqrt(x) * tf.math.log(x), 0.0)
        assert np.isfinite(tape.jacobian(y, x, mode=mode).numpy()).all()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.vectorized_map(lambda x: tf.where(x > 0, tf.sqrt(x) * tf.math.log(x), 0.0), x)
    assert np.isfinite(tape.gradient(y, x).numpy()).all()


def test_nobody_is_warned():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with np.errstate(all="raise"):
            assert gradient(lambda x: tf.where(x > 0, tf.math.log(x), 0.0), tf.constant([0.0])).numpy() == [0.0]


def test_a_custom_gradient_is_taken_at_its_word_unless_the_tape_is_safe():
    @tf.custom_gradient
    def root(x):
        return tf.sqrt(x), lambda g: g / (2.0 * tf.sqrt(x))

    x = tf.constant([0.0, 0.0])
    assert np.isnan(gradient(lambda x: tf.where(x > 0, root(x), 0.0), x).numpy()).all()
    assert gradient(lambda x: tf.where(x > 0, root(x), 0.0), x, safe=True).numpy().tolist() == [0.0, 0.0]


def test_a_compiled_function_does_as_the_tape_around_it_was_told():
    pytest.importorskip("jax")
    function = tf.function(lambda x: tf.where(x > 0, tf.math.log(x), 0.0))
    x = tf.constant([0.0, 2.0])
    assert gradient(function, x).numpy().tolist() == [0.0, 0.5]
    assert np.isnan(gradient(function, x, safe=False).numpy()).tolist() == [True, False]
    assert gradient(function, x).numpy().tolist() == [0.0, 0.5]
