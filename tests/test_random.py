"""`tf.random`: reproducibility, distributions (fixed seeds), gradients of location and scale, errors."""

import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import gradtape as tf
from gradtape import random

InvalidArgument = tf.errors.InvalidArgumentError
FLOATS = ["float16", "bfloat16", "float32", "float64"]
N = 20_000


@pytest.fixture(autouse=True)
def _seeded():
    random.set_seed(1234)
    yield
    random.set_seed(None)


def wide(tensor):
    return np.asarray(tensor.numpy()).astype(np.float64)


def uniforms(seed, op_seeds):
    random.set_seed(seed)
    return [float(random.uniform([], seed=s)) for s in op_seeds]


# Seeds


def test_the_same_seed_gives_the_same_sequence():
    def draw():
        return [random.normal([3]), random.uniform([2]), random.truncated_normal([2]), random.shuffle(np.arange(5)),
                random.categorical([[0.0, 1.0]], 4), random.gamma([2], 1.5), random.poisson([2], 3.0)]  # fmt: skip

    random.set_seed(5)
    first = [t.numpy() for t in draw()]
    second = [t.numpy() for t in draw()]
    random.set_seed(5)
    for a, c in zip(first, draw()):
        np.testing.assert_array_equal(a, c.numpy())
    assert any((a != b).any() for a, b in zip(first, second))


def test_op_seeds_have_streams_of_their_own():
    one, two, three = uniforms(1, [5, 5, 5])
    assert len({one, two, three}) == 3
    assert uniforms(1, [5, None, 5])[::2] == [one, two]  # other calls do not disturb it
    assert uniforms(1, [7, 5, 5])[1:] == [one, two]
    assert uniforms(2, [5]) != [one]
    random.set_seed(1)
    assert float(random.normal([], seed=5)) != one


def test_an_op_seed_alone_is_reproducible_and_no_seed_is_not():
    assert uniforms(None, [5, 5]) == uniforms(None, [5, 5])
    assert uniforms(None, [None]) != uniforms(None, [None])


def test_calls_without_a_seed_share_one_stream():
    random.set_seed(1)
    alone = float(random.normal([]))
    random.set_seed(1)
    random.uniform([])
    assert float(random.normal([])) != alone


def test_the_same_numbers_in_another_process():
    code = (
        "from gradtape import random; random.set_seed(9);"
        "print(random.normal([3], seed=4).numpy().tolist(), float(random.uniform([])))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    random.set_seed(9)
    assert found == f"{random.normal([3], seed=4).numpy().tolist()} {float(random.uniform([]))}"


@given(st.integers(-(2**80), 2**80))
def test_any_integer_is_a_seed(seed):
    assert uniforms(seed, [seed]) == uniforms(seed, [seed])
    assert 0 <= uniforms(seed, [None])[0] < 1


@pytest.mark.parametrize("bad", ["a", 1.5, [1, 2]])
def test_what_is_not_an_integer_is_no_seed(bad):
    with pytest.raises(TypeError, match="seed must be an integer"):
        random.set_seed(bad)
    with pytest.raises(TypeError, match="seed must be an integer"):
        random.normal([2], seed=bad)


def test_threads_draw_every_number_of_the_stream_once():
    random.set_seed(3)
    wanted = {float(random.uniform([], dtype=tf.float64)) for _ in range(400)}
    random.set_seed(3)
    found, lists = set(), [[] for _ in range(4)]
    threads = [
        threading.Thread(target=lambda out=out: out.extend(float(random.uniform([], dtype=tf.float64)) for _ in range(100)))
        for out in lists
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found.update(*lists)
    assert found == wanted


def test_import_does_not_load_the_generators():
    code = (
        "import sys, numpy; before = 'numpy.random' in sys.modules; import gradtape.random;"
        "print(before, 'numpy.random' in sys.modules)"
    )
    before, after = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert before == after


# Distributions


@pytest.mark.parametrize("dtype", FLOATS)
def test_normal(dtype):
    x = random.normal([N], mean=2.0, stddev=3.0, dtype=dtype)
    assert x.dtype == dtype
    tolerance = {"float16": 0.02, "bfloat16": 0.03}.get(dtype, 0.01)  # rounding makes steps in the distribution
    assert scipy.stats.kstest(wide(x), scipy.stats.norm(2, 3).cdf).statistic < tolerance


@pytest.mark.parametrize("dtype", FLOATS)
def test_truncated_normal(dtype):
    x = wide(random.truncated_normal([N], mean=1.0, stddev=2.0, dtype=dtype))
    assert np.abs((x - 1) / 2).max() <= 2
    assert scipy.stats.kstest(x, scipy.stats.truncnorm(-2, 2, 1, 2).cdf).statistic < (0.01 if "16" not in dtype else 0.03)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("low", "high"), [(0, 1), (1, 2), (-3.5, 100.0)])
def test_uniform(dtype, low, high):
    x = random.uniform([N], low, high, dtype=dtype)
    assert x.dtype == dtype
    assert wide(x).min() >= low
    assert wide(x).max() < high
    steps = 0.012 if "16" not in dtype else 0.03
    assert scipy.stats.kstest(wide(x), scipy.stats.uniform(low, high - low).cdf).statistic < steps


@given(st.sampled_from(FLOATS), st.floats(-100, 100, width=16), st.floats(0.125, 100, width=16), st.integers(0, 99))
def test_uniform_never_reaches_maxval(dtype, low, width, seed):
    low = tf.cast(tf.constant(low), dtype)
    high = low + tf.cast(tf.constant(width), dtype)
    if float(low) < float(high):
        x = wide(random.stateless_uniform([300], [seed, 0], low, high, dtype=dtype))
        assert (x >= float(low)).all()
        assert (x < float(high)).all()


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_uniform_integers(dtype):
    x = random.uniform([N], -3, 5, dtype=dtype)
    assert x.dtype == dtype
    counts = np.bincount(x.numpy() + 3, minlength=8)
    assert len(counts) == 8
    assert scipy.stats.chisquare(counts).pvalue > 1e-3


def test_uniform_of_tensor_bounds_broadcasts():
    x = random.uniform([2, 2], tf.constant([0.0, 100.0]), tf.constant([1.0, 101.0])).numpy()
    assert (x[:, 0] < 1).all()
    assert (x[:, 1] >= 100).all()
    assert random.normal([1], mean=tf.constant([0.0, 100.0])).shape == (2,)


def test_categorical():
    with np.errstate(divide="ignore"):
        logits = np.log([[0.1, 0.2, 0.7, 0.0], [0.5, 0.0, 0.5, 0.0]])
    x = random.categorical(logits, N)
    assert x.shape == (2, N)
    assert x.dtype == tf.int64
    counts = [np.bincount(row, minlength=4) for row in x.numpy()]
    assert counts[0][3] == counts[1][1] == counts[1][3] == 0
    assert scipy.stats.chisquare(counts[0][:3], N * np.array([0.1, 0.2, 0.7])).pvalue > 1e-3
    many = random.categorical(np.repeat(logits[:1], N, axis=0), 1, dtype=tf.int32)  # many rows, one sample
    assert many.dtype == tf.int32
    assert scipy.stats.chisquare(np.bincount(many.numpy().ravel())[:3], N * np.array([0.1, 0.2, 0.7])).pvalue > 1e-3
    assert random.categorical(logits[:0], 3).shape == (0, 3)
    assert random.categorical(logits, 0).shape == (2, 0)


def test_gamma_and_poisson():
    x = random.gamma([N], tf.constant([0.5, 4.0]), beta=2.0).numpy()
    assert x.shape == (N, 2)
    for column, alpha in zip(x.T, (0.5, 4.0)):
        assert scipy.stats.kstest(column, scipy.stats.gamma(alpha, scale=0.5).cdf).statistic < 0.015
    counts = random.poisson([N], [3.0, 0.0]).numpy()
    assert counts.dtype == np.float32
    np.testing.assert_allclose([counts[:, 0].mean(), counts[:, 0].var()], 3, rtol=0.05)
    assert (counts[:, 1] == 0).all()
    assert random.poisson([2], 3, dtype=tf.int32).dtype == tf.int32
    assert random.gamma([], [[1.0], [2.0]], beta=[1.0, 1.0, 1.0]).shape == (2, 3)
    assert (random.gamma([50], 0.0).numpy() > 0).all()


@given(st.integers(0, 6), st.integers(0, 99))
def test_shuffle_permutes_rows(rows, seed):
    value = np.arange(rows * 2).reshape(rows, 2)
    out = random.shuffle(tf.constant(value), seed=seed).numpy()
    np.testing.assert_array_equal(np.sort(out, axis=0), value)
    assert (out[:, 1] - out[:, 0] == 1).all()


def test_shuffle_is_uniform_and_takes_anything():
    counts = np.zeros((3, 3))
    for _ in range(3000):
        counts[np.arange(3), random.shuffle(np.arange(3)).numpy()] += 1
    assert scipy.stats.chisquare(counts.ravel()).pvalue > 1e-3
    assert sorted(random.shuffle(tf.constant(["a", "b"])).numpy()) == [b"a", b"b"]
    assert int(random.shuffle(tf.constant(7))) == 7


# Gradients


def gradients(function, *values):
    inputs = [tf.constant(v) for v in values]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        out = function(*inputs)
    return tape.gradient(out, inputs), out


def test_gradients_flow_to_location_and_scale():
    (mean, stddev), x = gradients(lambda m, s: random.normal([5], m, s), 2.0, 3.0)
    assert float(mean) == 5
    np.testing.assert_allclose(float(stddev), ((x.numpy() - 2) / 3).sum(), rtol=1e-5)
    (low, high), x = gradients(lambda a, b: random.uniform([5], a, b), 0.0, 2.0)
    np.testing.assert_allclose(float(high), x.numpy().sum() / 2, rtol=1e-5)
    np.testing.assert_allclose(float(low) + float(high), 5, rtol=1e-6)
    for draw in (
        lambda m, s: random.truncated_normal([5], m, s),
        lambda m, s: random.stateless_normal([5], [1, 2], m, s),
        lambda m, s: random.Generator.from_seed(1).normal([5], m, s),
    ):
        (mean, stddev), _ = gradients(draw, 2.0, 3.0)
        assert float(mean) == 5
        assert stddev is not None


def test_samples_of_discrete_things_have_no_gradient():
    assert gradients(random.shuffle, [1.0, 2.0])[0] == [None]
    assert gradients(lambda x: random.categorical(x, 2), [[1.0, 2.0]])[0] == [None]


def test_gamma_is_differentiable_in_alpha_and_beta():
    (beta,), x = gradients(lambda b: random.gamma([3], 2.0, b), 2.0)
    np.testing.assert_allclose(float(beta), -x.numpy().sum() / 2, rtol=1e-5)
    with pytest.raises(LookupError, match="gradient registry has no entry for: RandomPoissonV2"):
        gradients(lambda a: random.poisson([3], a), 2.0)


@pytest.mark.parametrize("alpha", [0.03, 0.5, 1.0, 2.5, 40.0, 3e4])
def test_gamma_samples_move_along_their_quantile(alpha):
    """dx/dalpha is the derivative of the inverse distribution function at the sample's quantile."""
    (gradient,), x = gradients(lambda a: random.stateless_gamma([], [3, 4], a, dtype=tf.float64), np.float64(alpha))
    quantile = scipy.stats.gamma.cdf(float(x), alpha)
    step = 1e-4 * alpha
    moved = [scipy.stats.gamma.ppf(quantile, alpha + k * step) for k in (-2, -1, 1, 2)]
    expected = (8 * (moved[2] - moved[1]) - (moved[3] - moved[0])) / (12 * step)
    np.testing.assert_allclose(float(gradient), expected, rtol=1e-7)


def test_expectations_under_a_gamma_distribution_are_differentiable():
    """E x² = α(α + 1) / β², so its gradients are (2α + 1) / β² and -2α(α + 1) / β³."""
    (alpha, beta), _ = gradients(
        lambda a, b: tf.reduce_mean(random.stateless_gamma([N], [1, 2], a, b, dtype=tf.float64) ** 2),
        np.float64(3.0), np.float64(2.0),
    )  # fmt: skip
    np.testing.assert_allclose([float(alpha), float(beta)], [7 / 4, -3], rtol=0.03)


def test_truncated_normal_with_parameters():
    x = random.stateless_parameterized_truncated_normal([N], [1, 2], tf.constant(1.0, tf.float64), 2.0, -1.0, 4.0).numpy()
    assert scipy.stats.kstest(x, scipy.stats.truncnorm(-1, 1.5, 1, 2).cdf).statistic < 0.01
    far = random.stateless_parameterized_truncated_normal([100], [1, 2], [30.0] * 100, 1.0, -2.0, 2.0).numpy()
    assert ((far > 1.5) & (far <= 2)).all()
    with pytest.raises(InvalidArgument, match="Invalid parameters"):
        random.stateless_parameterized_truncated_normal([2], [1, 2], 0.0, -1.0)


@given(st.floats(-1, 1), st.floats(0.5, 2), st.floats(-3, -1), st.floats(1, 3), st.integers(0, 50))
def test_truncated_normal_samples_move_along_their_quantile(mean, stddev, low, high, seed):
    values = [np.float64(v) for v in (mean, stddev, low, high)]

    def draw(*parameters):
        return random.stateless_parameterized_truncated_normal([], [seed, 1], *parameters)

    found, _ = gradients(draw, *values)
    for i, gradient in enumerate(found):
        shifted = [[v + k * 1e-4 * (i == j) for j, v in enumerate(values)] for k in (-1, 1)]
        lower, upper = (float(draw(*(tf.constant(v, tf.float64) for v in point))) for point in shifted)
        np.testing.assert_allclose(float(gradient), (upper - lower) / 2e-4, rtol=1e-4, atol=1e-6)


# Candidate samplers


def test_candidate_samplers_follow_their_distribution():
    drawn = random.log_uniform_candidate_sampler([[0]], 1, N, False, 8, seed=1)
    chances = np.log1p(1 / np.arange(1, 9)) / np.log(9)
    counts = np.bincount(drawn.sampled_candidates.numpy(), minlength=8)
    assert scipy.stats.chisquare(counts, N * chances).pvalue > 1e-3
    np.testing.assert_allclose(drawn.sampled_expected_count.numpy(), N * chances[drawn.sampled_candidates.numpy()], rtol=1e-5)


def test_unique_candidates_are_unique_and_their_counts_are_chances():
    found = np.zeros(6)
    expected = np.zeros(6)
    for _ in range(2000):
        drawn = random.fixed_unigram_candidate_sampler([[0, 1]], 2, 3, True, 6, unigrams=[6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
        classes = drawn.sampled_candidates.numpy()
        assert len(set(classes)) == 3
        found[classes] += 1
        expected[:2] += drawn.true_expected_count.numpy()[0]
    np.testing.assert_allclose(found[:2], expected[:2], rtol=0.05)


def test_reserved_ids_and_other_shards_are_never_drawn(tmp_path):
    vocabulary = tmp_path / "words.csv"
    vocabulary.write_text("one,1\ntwo,2\nthree,3\n")
    drawn = random.fixed_unigram_candidate_sampler([[1]], 1, 50, False, 4, str(vocabulary), num_reserved_ids=1)
    assert set(drawn.sampled_candidates.numpy()) == {1, 2, 3}
    half = random.fixed_unigram_candidate_sampler([[1]], 1, 50, False, 4, str(vocabulary), 1.0, 1, num_shards=2, shard=1)
    assert set(half.sampled_candidates.numpy()) == {1, 3}


def test_the_learned_sampler_learns():
    for _ in range(50):
        last = random.learned_unigram_candidate_sampler([[2, 2]], 2, 20, False, 4, seed=987)
    assert np.bincount(last.sampled_candidates.numpy(), minlength=4).argmax() == 2
    assert float(last.true_expected_count[0, 0]) > 15


# Permuted indices


@given(st.integers(0, 200), st.integers(0, 99))
def test_index_shuffle_is_a_permutation(top, seed):
    out = random.experimental.index_shuffle(np.arange(top + 1), [seed, 1], top).numpy()
    np.testing.assert_array_equal(np.sort(out), np.arange(top + 1))


def test_index_shuffle_refuses_what_is_out_of_range():
    assert int(random.experimental.index_shuffle(0, [1, 2], 0)) == 0
    with pytest.raises(InvalidArgument, match="between 0 and max_index"):
        random.experimental.index_shuffle(5, [1, 2], 4)


# Initializers


def test_initializers_with_a_seed_repeat_themselves():
    for make in (tf.random_normal_initializer, tf.random_uniform_initializer):
        seeded, free = make(seed=3), make()
        np.testing.assert_array_equal(seeded([4]).numpy(), seeded([4]).numpy())
        assert (free([4]).numpy() != free([4]).numpy()).all()
        np.testing.assert_array_equal(make.from_config(seeded.get_config())([4]).numpy(), seeded([4]).numpy())
    assert tf.Variable(tf.zeros_initializer()([2])).shape == (2,)
    assert tf.ones_initializer()([4, 2], partition_shape=[2, 2], partition_offset=[0, 0]).shape == (2, 2)


# Errors


@pytest.mark.parametrize(
    ("shape", "error", "words"),
    [
        (3, InvalidArgument, r"shape must be a vector of \{int32,int64\}, got shape \[\]"),
        ([[3]], InvalidArgument, r"shape must be a vector of \{int32,int64\}, got shape \[1,1\]"),
        ([2.0], InvalidArgument, "'T' of float is not in the list of allowed values: int32, int64"),
        ([-2], InvalidArgument, "Dimension -2 must be >= 0"),
        (None, ValueError, "Attempt to convert a value"),
        ([None, 2], ValueError, "Attempt to convert a value"),
    ],
)
def test_bad_shapes(shape, error, words):
    for function in (random.normal, random.uniform, random.truncated_normal, random.Generator.from_seed(1).normal):
        with pytest.raises(error, match=words):
            function(shape)


def test_shapes_of_every_kind():
    for shape in ([2, 3], (2, 3), tf.constant([2, 3]), np.array([2, 3]), tf.TensorShape([2, 3]), [tf.constant(2), 3]):
        assert random.normal(shape).shape == (2, 3)
    assert random.normal([]).shape == random.normal(()).shape == ()
    assert random.uniform([0, 3]).shape == random.truncated_normal([0, 3]).shape == (0, 3)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: random.uniform([2], dtype=tf.int32), ValueError, "Must specify maxval for integer dtype tf.int32"),
        (lambda: random.uniform([2], 0, 9, dtype=tf.int16), ValueError, "Argument `dtype` got invalid value <dtype: 'int16'>"),
        (lambda: random.uniform([2], 0, 9, dtype=tf.complex64), ValueError, "Argument `dtype` got invalid value"),
        (lambda: random.uniform([2], 5, 5, dtype=tf.int32), InvalidArgument, "Need minval < maxval, got 5 >= 5"),
        (lambda: random.uniform([2], 0, 5.5, dtype=tf.int32), TypeError, "Cannot convert 5.5 to EagerTensor of dtype int32"),
        (lambda: random.uniform([2], tf.constant([0, 1]), 5, dtype=tf.int32), InvalidArgument, "minval must be 0-D, got shape"),
        (lambda: random.uniform([2], tf.constant(0.0, tf.float64), 1.0), ValueError, "min: Tensor conversion requested dtype"),
        (lambda: random.normal([2], tf.constant(0.0, tf.float64)), ValueError, "mean: Tensor conversion requested dtype"),
        (lambda: random.normal([2], dtype=tf.int32), TypeError, "Cannot convert 0.0 to EagerTensor of dtype int32"),
        (lambda: random.normal([2], dtype=tf.complex64), InvalidArgument, "'dtype' of complex64 is not in the list"),
        (lambda: random.categorical([0.0, 1.0], 2), InvalidArgument, r"logits should be a matrix, got shape \[2\]"),
        (lambda: random.categorical([[0.0, 1.0]], -1), InvalidArgument, "num_samples should be non-negative, got -1"),
        (lambda: random.categorical([[0.0, 1.0]], [2]), InvalidArgument, r"num_samples should be a scalar, got shape \[1\]"),
        (lambda: random.categorical([[0.0, 1.0]], 2.5), TypeError, "Cannot convert 2.5 to EagerTensor of dtype int32"),
        (lambda: random.categorical(np.ones((2, 0)), 1), InvalidArgument, "num_classes should be positive, got 0"),
        (lambda: random.categorical([[0.0, 1.0]], 2, dtype=tf.float32), ValueError, "Argument `dtype` got invalid value"),
        (lambda: random.categorical([[1, 0]], 2), InvalidArgument, "'T' of int32 is not in the list of allowed values"),
        (lambda: random.categorical([[np.nan, 0.0]], 2), InvalidArgument, "logits must be finite or -inf"),
        (lambda: random.categorical([[-np.inf, -np.inf]], 2), InvalidArgument, "logits must be finite or -inf"),
        (lambda: random.gamma([2], -1.0), InvalidArgument, "alpha must not be negative"),
        (lambda: random.poisson([2], -1.0), InvalidArgument, "lam must not be negative"),
        (lambda: random.poisson([2], np.nan), InvalidArgument, "lam must not be negative"),
        (lambda: random.stateless_normal([2], [1]), InvalidArgument, r"seed must have shape \[2\], not \[1\]"),
        (lambda: random.stateless_normal([2], 1), InvalidArgument, r"seed must have shape \[2\], not \[\]"),
        (lambda: random.stateless_normal([2], [1.0, 2.0]), InvalidArgument, "'Tseed' of float is not in the list"),
        (lambda: random.stateless_uniform([2], [1, 2], dtype=tf.int32), ValueError, "must be both None or not None"),
        (lambda: random.stateless_uniform([2], [1, 2], 0, 5, tf.uint32), ValueError, "Please don't use unsigned integers"),
        (lambda: random.stateless_gamma([2], [1, 2], [1.0, 2.0, 3.0]), InvalidArgument, "must end with broadcasted shape"),
        (lambda: random.stateless_binomial([2], [1, 2], 5.0, 1.5), InvalidArgument, r"probs must lie in \[0, 1\]"),
        (lambda: random.Generator(), ValueError, "A Generator needs a state"),
        (lambda: random.Generator.from_seed(1, alg="x"), ValueError, "Argument `alg` got unsupported value x"),
        (lambda: random.Generator.from_state([1, 2]), ValueError, r"Shapes \(2,\) and \[3\] are incompatible"),
        (lambda: random.Generator.from_seed(1).uniform([2], dtype=tf.int64), ValueError, "both `None` or both non-`None`"),
        (lambda: random.set_global_generator(3), TypeError, "needs a Generator"),
    ],
)
def test_bad_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()


# Stateless functions


STATELESS = {
    "normal": lambda s: random.stateless_normal([4], s),
    "uniform": lambda s: random.stateless_uniform([4], s),
    "integers": lambda s: random.stateless_uniform([4], s, 0, 2**30, dtype=tf.int32),
    "all integers": lambda s: random.stateless_uniform([4], s, None, None, dtype=tf.uint64),
    "truncated": lambda s: random.stateless_truncated_normal([4], s),
    "categorical": lambda s: random.stateless_categorical(np.zeros((2, 9)), 9, s),
    "gamma": lambda s: random.stateless_gamma([4], s, 1.5),
    "poisson": lambda s: random.stateless_poisson([4, 2], s, [50.0, 1e6]),
    "binomial": lambda s: random.stateless_binomial([40], s, 50.0, 0.5),
    "shuffle": lambda s: random.experimental.stateless_shuffle(np.arange(30), s),
    "split": lambda s: random.split(s, 3),
    "fold_in": lambda s: random.fold_in(s, 3),
}


@pytest.mark.parametrize("name", STATELESS)
def test_stateless_functions_depend_on_their_seed_alone(name):
    draw = STATELESS[name]
    first = draw([1, 2]).numpy()
    random.set_seed(8)
    np.testing.assert_array_equal(first, draw(tf.constant([1, 2])).numpy())
    for other in ([1, 3], [2, 2], [2, 1], [1 - 2**31, 2]):
        assert (first != draw(other).numpy()).any()


def test_stateless_functions_of_a_seed_that_only_the_program_knows():
    pytest.importorskip("jax")
    program = tf.function(lambda s: {name: draw(s) for name, draw in STATELESS.items()}, jit_compile=True)
    for seed in ([1, 2], [-1, 2**40]):
        drawn = program(tf.constant(seed, tf.int64))
        for name, draw in STATELESS.items():
            np.testing.assert_allclose(drawn[name], draw(tf.constant(seed, tf.int64)), rtol=1e-5, err_msg=name)


def test_split_and_fold_in_give_seeds():
    seeds = random.split([1, 2], 3)
    assert seeds.shape == (3, 2)
    assert seeds.dtype == tf.int32
    assert len({tuple(s) for s in seeds.numpy()}) == 3
    folded = [random.fold_in([1, 2], i) for i in range(3)]
    assert folded[0].shape == (2,)
    assert len({tuple(s.numpy()) for s in folded}) == 3
    assert random.experimental.stateless_split is random.split


# Generator


def test_a_generator_is_its_state():
    g = random.Generator.from_seed(1)
    assert g.state.numpy().tolist() == [1, 0, 0]
    assert not g.state.trainable
    a = g.normal([2])
    assert g.state.numpy().tolist() == [513, 0, 0]
    copy = random.Generator(copy_from=g)
    b = g.normal([1000])
    assert (a.numpy() != b.numpy()[:2]).all()
    np.testing.assert_array_equal(copy.normal([1000]).numpy(), b.numpy())
    g.reset_from_seed(1)
    np.testing.assert_array_equal(g.normal([2]).numpy(), a.numpy())
    g.reset([4, 5, 6])
    assert g.state.numpy().tolist() == [4, 5, 6]
    assert int(g.key) == 6
    g.reset_from_key_counter(key=1, counter=[2, 3])
    assert g.state.numpy().tolist() == [2, 3, 1]
    assert random.Generator.from_key_counter(1, [2, 3], "philox").state.numpy().tolist() == [2, 3, 1]
    assert g.skip(1).numpy().tolist() == [2, 3, 1]
    assert g.state.numpy().tolist() == [258, 3, 1]
    assert g.algorithm == random.Algorithm.PHILOX.value


def test_the_counter_carries():
    g = random.Generator.from_state([-1, 0, 0], alg="philox")
    g.normal([1])
    assert g.state.numpy().tolist() == [255, 1, 0]


def test_generators_from_one_split_share_nothing():
    parts = random.Generator.from_seed(1).split(4)
    streams = [g.uniform([200], dtype=tf.float64).numpy() for g in parts]
    assert len(np.unique(np.concatenate(streams))) == 800


def test_split_generators_are_independent():
    parent = random.Generator.from_seed(1)
    children = parent.split(3)
    assert parent.state.numpy().tolist() == [769, 0, 0]
    assert len({float(g.uniform([])) for g in children}) == 3
    assert parent.make_seeds(2).shape == (2, 2)


@pytest.mark.parametrize("dtype", FLOATS)
def test_generator_distributions(dtype):
    g = random.Generator.from_seed(3)
    tolerance = 0.012 if "16" not in dtype else 0.03
    assert scipy.stats.kstest(wide(g.normal([N], 1, 2, dtype)), scipy.stats.norm(1, 2).cdf).statistic < tolerance
    assert scipy.stats.kstest(wide(g.uniform([N], dtype=dtype)), "uniform").statistic < tolerance
    assert np.abs(wide(g.truncated_normal([N], dtype=dtype))).max() <= 2


def test_generator_integers():
    g = random.Generator.from_seed(3)
    assert g.uniform([9], 0, 5, dtype=tf.int64).numpy().max() < 5
    assert g.uniform_full_int([9]).dtype == tf.uint64
    assert g.uniform([9], None, None, dtype=tf.int32).dtype == tf.int32
    assert g.binomial([9], 5.0, 0.5).numpy().max() <= 5


def test_the_global_generator_can_be_replaced():
    before = random.get_global_generator()
    assert random.get_global_generator() is before
    try:
        random.set_global_generator(random.Generator.from_seed(2))
        a = random.get_global_generator().normal([2]).numpy()
        np.testing.assert_array_equal(a, random.experimental.Generator.from_seed(2).normal([2]).numpy())
    finally:
        random.set_global_generator(before)


def test_every_public_name_is_there():
    assert all(hasattr(random, name) for name in random.__all__)
