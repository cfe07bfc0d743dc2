"""What happens around the rules: which gradients are taken, what is shared, what is refused."""

import gc
import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradtape as tf
from gradtape import errors, optimizers
from gradtape.optimizers import functional
from gradtape.optimizers.base import BLOCK

pytestmark = pytest.mark.tiny

EVERY = {
    "SGD": lambda: optimizers.SGD(0.1),
    "momentum": lambda: optimizers.SGD(0.1, momentum=0.9),
    "nesterov": lambda: optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "Adam": lambda: optimizers.Adam(0.1),
    "amsgrad": lambda: optimizers.Adam(0.1, amsgrad=True),
    "AdamW": lambda: optimizers.AdamW(0.1),
    "RMSprop": lambda: optimizers.RMSprop(0.1),
    "centered": lambda: optimizers.RMSprop(0.1, centered=True, momentum=0.5),
    "Adagrad": lambda: optimizers.Adagrad(0.1),
    "Adadelta": lambda: optimizers.Adadelta(0.1),
    "Adamax": lambda: optimizers.Adamax(0.1),
    "Nadam": lambda: optimizers.Nadam(0.1),
    "Lion": lambda: optimizers.Lion(0.1),
    "Ftrl": lambda: optimizers.Ftrl(0.1, l1_regularization_strength=0.01, beta=0.1),
}
every = pytest.mark.parametrize("make", EVERY.values(), ids=EVERY)


def random(shape, seed, dtype="float32"):
    return np.asarray(np.random.default_rng(seed).normal(size=shape)).astype(dtype)


def steps(optimizer, variable, count, form=tf.constant):
    for seed in range(count):
        optimizer.apply_gradients([(form(random(variable.shape, seed, variable.dtype.numpy)), variable)])
    return variable.numpy()


# Values that others hold


@every
def test_snapshots_and_gradients_do_not_change(make):
    v, opt = tf.Variable(random((3, 2), 7)), make()
    steps(opt, v, 2)
    held = [v.value(), v.read_value(), tf.convert_to_tensor(v), v.numpy(), np.asarray(v), v[0], *opt.variables[2:3]]
    held = [h.value() if isinstance(h, tf.Variable) else h for h in held]
    states = [s.value() for s in opt.variables]
    copies = [np.array(h) for h in (*held, *states)]
    g = tf.constant(random((3, 2), 8))
    before = g.numpy()
    opt.apply_gradients([(g, v)])
    assert not np.array_equal(v.numpy(), copies[0])
    np.testing.assert_array_equal(g.numpy(), before)
    for value, copy in zip((*held, *states), copies):
        np.testing.assert_array_equal(np.asarray(value), copy)


@every
@pytest.mark.parametrize("shape", [(), (1,), (0,), (5, 3), (BLOCK + 17,), (3, BLOCK // 2)])
def test_in_place_equals_out_of_place(make, shape):
    held, alone = (tf.Variable(random(shape, 3)) for _ in range(2))
    holding, opt = make(), make()
    keep = []
    for seed in range(4):
        g = tf.constant(random(shape, seed))
        keep.append([held.value(), *(s.value() for s in holding.variables)])  # nothing may be changed in place
        holding.apply_gradients([(g, held)])
        opt.apply_gradients([(g, alone)])
    np.testing.assert_array_equal(held.numpy(), alone.numpy())
    for a, b in zip(holding.variables, opt.variables):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functional_equals_in_place(name, dtype):
    make = EVERY[name]
    a, b = (tf.Variable(random((4, 3), 3, dtype)) for _ in range(2))
    in_place, pure = make(), make()
    pure.build([b])
    for seed in range(5):
        g = tf.constant(random((4, 3), seed, dtype))
        in_place.apply_gradients([(g, a)])
        functional.apply(pure, [(g, b)])
        pure.iterations.assign_add(1)
    tolerance = 1e-12 if dtype == "float64" else 1e-6
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=tolerance, atol=tolerance)


OPTIONS = [
    {"clipnorm": 0.5}, {"global_clipnorm": 0.5}, {"clipvalue": 0.1}, {"weight_decay": 0.1}, {"loss_scale_factor": 8.0},
    {"use_ema": True, "ema_momentum": 0.5}, {"use_ema": True, "ema_overwrite_frequency": 2},
    {"gradient_accumulation_steps": 2}, {"gradient_accumulation_steps": 3, "weight_decay": 0.1, "use_ema": True},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(options))
@pytest.mark.parametrize("scale", [1.0, 1e30, np.inf, np.nan], ids=str)
def test_functional_options_equal_in_place(options, scale):
    runs = []
    for _ in range(2):
        variables, opt = [tf.Variable(random((4, 3), s), constraint=np.abs) for s in (3, 4)], optimizers.Nadam(0.1, **options)
        opt.build(variables)
        runs.append((variables, opt))
    for seed in range(5):
        gs = [tf.constant(random((4, 3), seed + i) * np.float32(scale)) for i in (0, 10)]
        (a, in_place), (b, pure) = runs
        in_place.apply_gradients(zip(gs, a))
        functional.apply(pure, list(zip(gs, b)))
        pure._iterations.assign_add(1)
        for one, two in zip([*a, *in_place.variables], [*b, *pure.variables]):
            np.testing.assert_allclose(one.numpy(), two.numpy(), 1e-5, 1e-6)


def test_buffers_are_reused():
    v, opt = tf.Variable(random((4, 4), 0)), optimizers.Adam()
    steps(opt, v, 1)
    before = [x._tensor._array.ctypes.data for x in (v, *opt.variables)]
    steps(opt, v, 3)
    assert [x._tensor._array.ctypes.data for x in (v, *opt.variables)] == before


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(sorted(EVERY)),
    shape=st.lists(st.integers(0, 5), max_size=3).map(tuple),
    order=st.sampled_from("CF"),
    count=st.integers(1, 4),
)
def test_any_shape_and_layout(name, shape, order, count):
    start = random(shape, 1, "float64")
    v = tf.Variable(np.array(start, order=order))
    w = tf.Variable(start.reshape(-1).copy())
    one, two = EVERY[name](), EVERY[name]()
    for seed in range(count):
        g = random(shape, seed, "float64")
        one.apply_gradients([(np.array(g, order=order), v)])
        two.apply_gradients([(g.reshape(-1), w)])
    np.testing.assert_allclose(v.numpy().reshape(-1), w.numpy(), rtol=1e-12, atol=1e-12)


def test_large_fortran_ordered_variable():
    start = np.asfortranarray(random((300, 200), 0))
    a, b = tf.Variable(start), tf.Variable(np.ascontiguousarray(start[:, :50]))
    one, two = optimizers.Adam(0.1), optimizers.Adam(0.1)
    for seed in range(3):
        g = np.asfortranarray(random((300, 200), seed))
        one.apply_gradients([(tf.constant(g), a)])
        two.apply_gradients([(tf.constant(g[:, :50]), b)])
    np.testing.assert_array_equal(a.numpy()[:, :50], b.numpy())


def test_gradient_that_is_the_variables_own_value():
    v = tf.Variable([1.0, 2.0])
    optimizers.SGD(0.5).apply_gradients([(v.value(), v)])
    np.testing.assert_array_equal(v.numpy(), [0.5, 1.0])
    optimizers.SGD(0.5).apply_gradients([(v, v)])
    np.testing.assert_array_equal(v.numpy(), [0.25, 0.5])


def test_no_reference_cycles_or_leaks():
    gc.disable()
    try:
        import weakref

        opt = optimizers.Adam()
        v = tf.Variable([1.0])
        g = tf.constant([1.0])
        opt.apply_gradients([(g, v)])
        gone = weakref.ref(g)
        del g
        assert gone() is None
        gone = weakref.ref(opt)
        del opt
        assert gone() is None
    finally:
        gc.enable()


# What is accepted


@every
def test_forms_of_gradients(make):
    expected = steps(make(), tf.Variable(random((2, 3), 9)), 3)
    for form in (lambda a: a, lambda a: a.astype("float64"), lambda a: tf.Variable(a), lambda a: a.tolist()):
        np.testing.assert_allclose(steps(make(), tf.Variable(random((2, 3), 9)), 3, form), expected, rtol=1e-6)


def test_forms_of_pairs():
    results = []
    for call in (
        lambda o, g, v: o.apply_gradients(zip(g, v)),
        lambda o, g, v: o.apply_gradients(list(zip(g, v))),
        lambda o, g, v: o.apply_gradients(pair for pair in zip(g, v)),
        lambda o, g, v: o.apply_gradients([list(pair) for pair in zip(g, v)]),
        lambda o, g, v: o.apply(g, v),
        lambda o, g, v: (o.build(v), o.apply(g)),
    ):
        variables = [tf.Variable([1.0, 2.0]), tf.Variable(3.0)]
        call(optimizers.SGD(0.1), [tf.constant([1.0, 1.0]), 2.0], variables)
        results.append([v.numpy().tolist() for v in variables])
    assert results == [results[0]] * len(results)


def test_returns_iterations():
    v, opt = tf.Variable(1.0), optimizers.SGD(0.1)
    assert opt.iterations.dtype == tf.int64
    assert not opt.iterations.trainable
    held = opt.iterations.value()
    assert opt.apply_gradients([(1.0, v)]) is opt.iterations
    assert int(opt.apply_gradients([(1.0, v)])) == 2
    assert int(held) == 0
    opt.iterations.assign(7)
    assert int(opt.apply_gradients([(1.0, v)])) == 8


@every
def test_sparse_equals_dense(make):
    a, b = (tf.Variable(random((6, 2), 3, "float64")) for _ in range(2))
    sparse, dense = make(), make()
    for seed in range(5):
        indices = np.random.default_rng(seed).permutation(6)[:4]
        slices = tf.IndexedSlices(random((4, 2), seed, "float64"), indices, [6, 2])
        sparse.apply_gradients([(slices, a)])
        dense.apply_gradients([(tf.convert_to_tensor(slices), b)])
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12, atol=1e-12)
    for x, y in zip(sparse.variables, dense.variables):
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-12, atol=1e-12)


OPTIONS = {"clipnorm": 0.5, "clipvalue": 0.1, "global_clipnorm": 0.5, "weight_decay": 0.1, "loss_scale_factor": 4.0,
           "gradient_accumulation_steps": 2, "use_ema": True}  # fmt: skip
CLIPS = ("clipnorm", "clipvalue", "global_clipnorm")  # of each slice


@pytest.mark.parametrize("option", OPTIONS)
def test_sparse_equals_dense_with_options(option):
    options = {option: OPTIONS[option]}
    a, b = (tf.Variable(random((6, 2), 3, "float64")) for _ in range(2))
    sparse, dense = optimizers.SGD(0.1, **options), optimizers.SGD(0.1, **options)
    for seed in range(4):
        rows = [1, 5, 2, 0] if option in CLIPS else [1, 5, 1, 0]
        slices = tf.IndexedSlices(random((4, 2), seed, "float64"), rows, [6, 2])
        sparse.apply_gradients([(slices, a)])
        dense.apply_gradients([(tf.convert_to_tensor(slices), b)])
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12, atol=1e-12)


@every
@pytest.mark.parametrize("size", [3, 3000], ids=["small", "in blocks"])
def test_rows_that_come_several_times_are_the_same_compiled_and_eager(make, size):
    pytest.importorskip("jax")
    a, b = (tf.Variable(random((7, size), 3, "float64")) for _ in range(2))
    eager, compiled = make(), make()
    compiled_step = tf.function(lambda g: compiled.apply_gradients([(g, b)]), jit_compile=True)
    for seed in range(4):
        slices = tf.IndexedSlices(random((5, size), seed, "float64"), [1, 5, 1, 0, 1], [7, size])
        eager.apply_gradients([(slices, a)])
        compiled_step(slices)
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-10, atol=1e-12)
    for x, y in zip(eager.variables, compiled.variables):
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-10, atol=1e-12)


def test_gradient_of_gather():
    table, opt = tf.Variable(random((5, 2), 0)), optimizers.Adagrad(0.1)
    held = table.value()
    before = table.numpy()
    with tf.GradientTape() as tape:
        loss = table.sparse_read([1, 1, 3])
    g = tape.gradient(loss, table)
    assert isinstance(g, tf.IndexedSlices)
    opt.apply_gradients([(g, table)])
    changed = (table.numpy() != before).any(axis=1)
    assert changed.tolist() == [False, True, False, True, False]
    np.testing.assert_array_equal(held.numpy(), before)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64"])
def test_dtypes_are_kept(dtype):
    v = tf.Variable(np.ones((3,)), dtype=dtype) if dtype != "complex64" else tf.Variable(np.ones(3, "complex64"))
    for opt in (optimizers.SGD(0.5), optimizers.SGD(0.5, momentum=0.5), *([optimizers.Adam()] if dtype != "complex64" else [])):
        opt.apply_gradients([(np.ones(3), v)])
        assert v.dtype.name == dtype
        assert all(s.dtype.name == dtype for s in opt.variables[2:])


def test_variables_of_several_dtypes():
    variables = [tf.Variable([1.0, 2.0], dtype=d) for d in ("float32", "float64", "float16")]
    opt = optimizers.Adam(0.5)
    for _ in range(2):
        opt.apply_gradients([(tf.constant([1.0, -1.0], v.dtype), v) for v in variables])
    for v in variables:
        np.testing.assert_allclose(v.numpy().astype("float64"), [0.0, 3.0], atol=0.02 if v.dtype == tf.float16 else 2e-3)
    sgd = optimizers.SGD(0.5)
    sgd.apply_gradients([(tf.constant([1.0, -1.0], v.dtype), v) for v in variables])
    np.testing.assert_allclose(variables[1].numpy(), [-0.5, 3.5], atol=1e-5)


def test_nonfinite_gradients_are_quiet():
    for make in EVERY.values():
        v = tf.Variable([1.0, 1.0, 1.0])
        opt = make()
        for g in ([np.inf, np.nan, 1.0], [-np.inf, 1.0, 1.0]):
            opt.apply_gradients([(tf.constant(g), v)])
        assert not np.isfinite(v.numpy()[1]) or make is EVERY["Lion"]
        assert np.isfinite(v.numpy()[2])


def test_clipping():
    def after(g, **options):
        v = tf.Variable(np.zeros(np.shape(g), "float32"))
        optimizers.SGD(1.0, **options).apply_gradients([(tf.constant(g), v)])
        return -v.numpy()

    np.testing.assert_allclose(after([3.0, 4.0], clipnorm=1.0), [0.6, 0.8], rtol=1e-6)
    np.testing.assert_allclose(after([3e30, 4e30], clipnorm=1.0), [0.6, 0.8], rtol=1e-6)  # squares overflow float32
    np.testing.assert_allclose(after([0.0, 0.0], global_clipnorm=1.0), [0.0, 0.0])
    np.testing.assert_allclose(after([0.3, 0.4], global_clipnorm=1.0), np.float32([0.3, 0.4]), rtol=1e-6)
    assert np.isnan(after([np.inf, 1.0], global_clipnorm=1.0)).all()
    np.testing.assert_allclose(after([3.0, -4.0], clipvalue=1.0), [1.0, -1.0])


def test_constraint_and_recording():
    v = tf.Variable([1.0, -1.0], constraint=lambda x: x * 0.0 + 5.0)
    with tf.GradientTape() as tape:
        loss = v * v
        optimizers.SGD(0.1).apply_gradients([([1.0, 1.0], v)])
    np.testing.assert_array_equal(v.numpy(), [5.0, 5.0])
    np.testing.assert_array_equal(tape.gradient(loss, v).numpy(), [2.0, -2.0])  # of the values that were read


# What is refused


def test_no_gradients():
    variables = [tf.Variable(np.zeros((3, 4)), name="dense/kernel"), tf.Variable(np.zeros(4), name="dense/bias")]
    opt = optimizers.Adam()
    with pytest.raises(errors.NoGradientsError, match=r"No gradients provided for any variable\.") as info:
        opt.apply_gradients(zip([None, None], variables))
    text = str(info.value)
    assert "Adam.apply_gradients received no gradient for any of its 2 variables." in text
    assert "Received: None for 'dense/kernel' (3, 4) and 'dense/bias' (4,)." in text
    assert [line.split(":")[0].strip() for line in text.splitlines()[1:]] == ["Received", "Expected", "Why", "Fix"]
    assert int(opt.iterations) == 0
    assert isinstance(info.value, ValueError)
    with pytest.raises(errors.NoGradientsError, match="empty list"):
        opt.apply_gradients([])
    opt.apply([])


def test_some_gradients_missing(caplog):
    a, b = tf.Variable(1.0, name="a"), tf.Variable(1.0, name="b")
    opt = optimizers.SGD(0.5)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            opt.apply_gradients([(1.0, a), (None, b)])
    assert (float(a), float(b)) == (-0.5, 1.0)
    assert len(caplog.records) == 1
    assert "Gradients do not exist for variables ['b:0'] when minimizing the loss." in caplog.text


@pytest.mark.parametrize("bad", [[1.0, 2.0, 3.0], 1.0, [[1.0], [2.0]]])
def test_wrong_shape_changes_nothing(bad):
    a, b = tf.Variable(1.0, name="a"), tf.Variable([1.0, 2.0], name="b")
    for make in EVERY.values():
        opt = make()
        with pytest.raises(errors.InvalidArgumentError, match=r"shapes must be equal(.|\n)*'b:0' of shape \(2,\)"):
            opt.apply_gradients([(tf.constant(1.0), a), (tf.constant(bad), b)])
        assert float(a) == 1.0
        assert int(opt.iterations) == 0


@pytest.mark.parametrize("bad", [np.array([True, False]), np.array([1j, 2.0]), ["x", "y"], tf.constant([1 + 1j, 2.0])])
def test_wrong_dtype_changes_nothing(bad):
    a, b = tf.Variable(1.0, name="a"), tf.Variable([1.0, 2.0], name="b")
    with pytest.raises(errors.InvalidArgumentError, match=r"cannot update variable 'b:0' of dtype float32"):
        optimizers.SGD().apply_gradients([(1.0, a), (bad, b)])
    assert float(a) == 1.0


@pytest.mark.parametrize("indices", [[0, 7], [-1, 0]])
def test_sparse_out_of_range(indices):
    v = tf.Variable(np.zeros((3, 2), "float32"), name="table")
    for opt in (optimizers.SGD(), optimizers.Adam()):
        with pytest.raises(errors.InvalidArgumentError, match=r"is not in \[0, 3\)(.|\n)*'table:0'"):
            opt.apply_gradients([(tf.IndexedSlices(np.ones((2, 2), "float32"), indices, [3, 2]), v)])
    with pytest.raises(errors.InvalidArgumentError, match="does not fit"):
        opt.apply_gradients([(tf.IndexedSlices(np.ones((2, 5), "float32"), [0, 1], [3, 5]), v)])


def test_unusual_arguments():
    v, opt = tf.Variable([1.0, 2.0]), optimizers.SGD()
    with pytest.raises(ValueError, match=r"takes pairs(.|\n)*zip\(gradients, variables\)"):
        opt.apply_gradients([tf.constant([1.0, 2.0])])
    with pytest.raises(TypeError, match=r"can only update variables(.|\n)*the gradient comes first"):
        opt.apply_gradients([(v, tf.constant([1.0, 2.0]))])
    with pytest.raises(errors.InvalidArgumentError, match="floating dtype"):
        opt.apply_gradients([(1, tf.Variable(3))])
    with pytest.raises(TypeError, match="takes variables"):
        opt.build([tf.constant(1.0)])
    with pytest.raises(ValueError, match="must already be built"):
        opt.apply([1.0])
    opt.apply_gradients([([1.0, 1.0], v)])
    with pytest.raises(ValueError, match=r"Unknown variable: 'other:0'"):
        opt.apply_gradients([(1.0, tf.Variable(1.0, name="other"))])
    with pytest.raises(ValueError, match="2 gradients for 1 variables"):
        opt.apply([1.0, 2.0])


def test_variable_that_changes_its_shape():
    v = tf.Variable([1.0, 2.0], shape=tf.TensorShape(None))
    sgd, adam = optimizers.SGD(1.0), optimizers.Adam()
    for opt in (sgd, adam):
        opt.apply_gradients([([1.0, 1.0], v)])
    v.assign([[1.0, 2.0, 3.0]])
    sgd.apply_gradients([([[1.0, 1.0, 1.0]], v)])
    np.testing.assert_array_equal(v.numpy(), [[0.0, 1.0, 2.0]])
    with pytest.raises(errors.InvalidArgumentError, match="changed its shape"):
        adam.apply_gradients([([[1.0, 1.0, 1.0]], v)])
