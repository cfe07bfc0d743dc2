"""Saved models: functions come back as programs, and compute what the functions computed."""

from __future__ import annotations

import collections
import json

import numpy as np
import pytest

import gradtape as tf
from gradtape.train import files

pytest.importorskip("jax")

Pair = collections.namedtuple("Pair", ["first", "second"])
ROWS = tf.TensorSpec([None, 3], tf.float32)


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(np.arange(6.0, dtype="float32").reshape(3, 2) / 5)
        self.count = tf.Variable(0)

    @tf.function(input_signature=[ROWS])
    def serve(self, x):
        return tf.nn.softmax(x @ self.w)

    @tf.function
    def __call__(self, x, scale=1.0, names=None):
        return {"y": Pair(x * scale, [tf.reduce_sum(self.w), None]), "same": self.w}

    @tf.function
    def bump(self):
        return self.count.assign_add(1)


def rows(n, columns=3):
    return np.random.default_rng(n).normal(size=(n, columns)).astype("float32")


def saved_and_loaded(module, folder, **options):
    tf.saved_model.save(module, folder, **options)
    return tf.saved_model.load(folder)


def leaves(structure):
    return [None if leaf is None else np.asarray(leaf) for leaf in tf.nest.flatten(structure)]


@pytest.mark.parametrize("n", [1, 4, 7])
def test_a_function_with_a_signature_takes_any_number_of_examples(n, tmp_path):
    net = Net()
    loaded = saved_and_loaded(net, tmp_path)
    np.testing.assert_allclose(loaded.serve(rows(n)), net.serve(rows(n)), rtol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match="lengths of one or more"):
        loaded.serve(rows(0))
    loaded.w.assign(net.w * 2.0)
    assert not np.allclose(loaded.serve(rows(n)), net.serve(rows(n)))


def test_the_signatures_that_were_called_come_back_with_their_structures(tmp_path):
    net = Net()
    calls = [((rows(2),), {}), ((rows(2), 3.0), {}), ((rows(5),), {"scale": 2.0, "names": "a"})]
    expected = [net(*args, **kwargs) for args, kwargs in calls]
    loaded = saved_and_loaded(net, tmp_path)
    for (args, kwargs), right in zip(calls, expected):
        result = loaded(*args, **kwargs)
        tf.nest.assert_same_structure(result, right, check_types=False)
        assert (type(result["y"]).__name__, result["y"]._fields) == ("Pair", ("first", "second"))
        for a, b in zip(leaves(result), leaves(right)):
            np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match=r"(?s)matching concrete function.*shape=\(9, 3\).*one of.*shape=\(2, 3\)"):
        loaded(rows(9))
    with pytest.raises(ValueError, match="matching concrete function"):
        loaded(rows(2), scale=17.0)


def test_what_cannot_be_saved_says_why_and_stops_nothing(tmp_path):
    net = Net()
    net.bump()
    traces = Net.bump.__get__(net).experimental_get_tracing_count()
    loaded = saved_and_loaded(net, tmp_path)
    assert net.bump.experimental_get_tracing_count() == traces
    assert int(loaded.count) == 1
    with pytest.raises(AttributeError, match=r"(?s)no attribute 'bump'.*it assigns variables.*make a Net"):
        loaded.bump()
    with pytest.raises(tf.errors.UnimplementedError, match="cannot be called"):  # it was never called, so it has no signature
        loaded(rows(2))


def test_methods_that_a_subclass_replaces(tmp_path):
    class Plain(Net):
        __call__ = None

        def serve(self, x):
            return x

    loaded = saved_and_loaded(Plain(), tmp_path)
    with pytest.raises(AttributeError, match="no attribute 'serve'"):
        loaded.serve(rows(2))


def test_a_function_with_no_signature_says_why(tmp_path):
    module = tf.Module()
    module.v = tf.Variable(1.0)
    module.of_a_variable = tf.function(lambda v: 2.0 * v)
    module.of_an_object = tf.function(lambda owner: 2.0 * owner.v)
    module.never = tf.function(lambda x: x)
    module.of_a_variable(module.v)
    module.of_an_object(module)
    loaded = saved_and_loaded(module, tmp_path)
    for name, why in (("of_a_variable", "called with variables"), ("of_an_object", "objects as"), ("never", "never called")):
        with pytest.raises(AttributeError, match=why):
            getattr(loaded, name)


def test_a_variable_whose_first_value_is_computed(tmp_path):
    class Lazy(tf.Module):
        w = None

        @tf.function(input_signature=[ROWS])
        def __call__(self, x):
            if self.w is None:
                self.w = tf.Variable(tf.random.normal([3, 2]))
            return x @ self.w

    lazy = Lazy()
    with pytest.raises(tf.errors.UnimplementedError, match="call it once before it is saved"):
        saved_and_loaded(lazy, tmp_path)(rows(2))
    expected = lazy(rows(2))
    np.testing.assert_allclose(saved_and_loaded(lazy, tmp_path)(rows(2)), expected, rtol=1e-6)


def test_the_attribute_signatures_is_reserved(tmp_path):
    for part in ([tf.Variable(1.0)], tf.function(lambda x: x)):
        module = tf.Module()
        module.signatures = part
        with pytest.raises(ValueError, match="attribute named 'signatures'"):
            tf.saved_model.save(module, tmp_path)


def test_variables_are_brought_to_the_device_once(tmp_path, monkeypatch):
    net = Net()
    loaded = saved_and_loaded(net, tmp_path, signatures=net.serve)
    given = []
    for program in (loaded.serve.programs[0], loaded.signatures["serving_default"].program):
        monkeypatch.setattr(program, "_run", lambda w, x, run=program._run: given.append(w) or run(w, x))
    loaded.serve(rows(2))
    loaded.serve(rows(3))
    loaded.signatures["serving_default"](rows(2))
    tf.optimizers.SGD(1.0).apply_gradients([(tf.ones([3, 2]), loaded.w)])  # may write over an array that nobody else has
    result = loaded.serve(rows(2))
    assert given[0] is given[1] is given[2] is not given[3]
    net.w.assign_sub(tf.ones([3, 2]))
    np.testing.assert_allclose(result, net.serve(rows(2)), rtol=1e-6)


REFUSED = {
    "assigns variables": lambda x, v: v.assign_add(x[0]),
    "draws random numbers": lambda x, v: x + tf.random.normal([3]),
    "calls Python": lambda x, v: tf.numpy_function(np.sin, [x], tf.float32),
    "a length that the signature leaves open": lambda x, v: tf.zeros([tf.shape(x)[0], 2]),
    "'examples' > '5'": lambda x, v: x[5],
    "whether two tensors can be compared": lambda x, v: x == tf.ones([2, 3]),
    "can be compared depends on a length": lambda x, v: x != tf.transpose(x),
    "which axes have the length 1": lambda x, v: tf.squeeze(x),
    "whether a shape is the expected one": lambda x, v: tf.ensure_shape(x, [2, 3]),
    "needs to know the value of a tensor": lambda x, v: tf.histogram_fixed_width(x, [-2.0, 2.0], 4),
    "'NoneType' object cannot be interpreted": lambda x, v: list(range(x.shape[0])),
    "it returns RaggedTensor": lambda x, v: tf.ragged.constant([[1.0], []]),
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_signature_that_cannot_be_saved_is_refused(why, tmp_path):
    module = tf.Module()
    module.v = tf.Variable(tf.zeros([3]))
    function = tf.function(lambda x: REFUSED[why](x, module.v), input_signature=[ROWS])
    with pytest.raises(tf.errors.UnimplementedError, match=why):
        tf.saved_model.save(module, tmp_path, signatures=function)
    assert not tf.saved_model.contains_saved_model(tmp_path)
    assert not list(tmp_path.iterdir())


WHOLE = {
    "mean": lambda x: 1e-4 * (x - tf.reduce_mean(x, 0)),
    "sum": lambda x: tf.reduce_sum(x) / tf.cast(tf.size(x), tf.float32),
    "sort": lambda x: tf.sort(x, 0),
    "cumsum": lambda x: tf.cumsum(x, 0),
    "backwards": lambda x: x[::-1],
    "first": lambda x: x[0],
    "rows": lambda x: x[1:, :2],
    "clip": lambda x: tf.clip_by_norm(x, 10.0),
    "products": lambda x: x @ tf.transpose(x),
    "count": lambda x: tf.shape(x)[0],
    "top": lambda x: tf.math.top_k(x, 2),
    "ones": lambda x: tf.concat([x, tf.ones_like(x)], 0),
    "where": lambda x: tf.where(tf.reduce_any(x > 100.0), tf.zeros_like(x), x),
    "flat": lambda x: tf.reshape(x, [-1]),
    "loop": lambda x: tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y @ tf.ones([3, 3])), (0, x))[1],
    "distances": lambda x: tf.reduce_sum((x[:, None] - x[None]) ** 2, -1),
    "constant": lambda x: tf.constant([1.0, 2.0]),
    "equal": lambda x: (x == x[:1]) | (x == tf.ones([1, 3])),
    "squeezed": lambda x: tf.squeeze(x[:, None], 1),
    "ensured": lambda x: tf.ensure_shape(x, [None, 3]),
    "gathered": lambda x: tf.gather(x, [0, 0]) + tf.gather_nd(x, [[0, 1], [0, 2]])[:, None],
}


@pytest.mark.parametrize("name", WHOLE)
def test_open_lengths_hold_for_functions_of_all_examples_together(name, tmp_path):
    module = tf.Module()
    module.f = tf.function(WHOLE[name], input_signature=[ROWS])
    loaded = saved_and_loaded(module, tmp_path)
    for n, scale in ((1, 1.0), (2, 1.0), (6, 1e3)):
        for a, b in zip(leaves(loaded.f(scale * rows(n))), leaves(module.f(scale * rows(n)))):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6 * scale**2)


def test_an_error_of_the_users_is_not_blamed_on_a_length(tmp_path):
    module = tf.Module()
    module.index = tf.function(lambda x: tf.gather(x, [-1]), input_signature=[ROWS])
    module.matmul = tf.function(lambda x: x @ tf.ones([4, 2]), input_signature=[ROWS])
    loaded = saved_and_loaded(module, tmp_path)
    with pytest.raises(AttributeError, match=r"indices\[0\] = -1 is not in \[0, None\)") as index:
        loaded.index(rows(2))
    with pytest.raises(AttributeError, match="Matrix size-incompatible") as matmul:
        loaded.matmul(rows(2))
    assert "leaves open" not in f"{index.value} {matmul.value}"


def test_functions_of_one_signature_are_not_mixed_up(tmp_path):
    def adding(i):
        def add(x):
            if tf.reduce_sum(x) > 1e9:  # converted, so that much is made and freed in between
                return x
            return x + float(i)

        return tf.function(add, input_signature=[ROWS])

    module = tf.Module()
    for i in range(12):
        setattr(module, f"add_{i}", adding(i))
    loaded = saved_and_loaded(module, tmp_path)
    for i in range(12):
        np.testing.assert_array_equal(getattr(loaded, f"add_{i}")(rows(2)), rows(2) + np.float32(i))


def test_open_first_axes_have_one_length(tmp_path):
    module = tf.Module()
    module.f = tf.function(lambda x, y: x - y, input_signature=[ROWS, ROWS])
    loaded = saved_and_loaded(module, tmp_path)
    np.testing.assert_array_equal(loaded.f(rows(3), rows(3)), 0.0 * rows(3))
    with pytest.raises(tf.errors.InvalidArgumentError, match="open first axes have one length"):
        loaded.f(rows(2), rows(5))


def test_other_axes_may_stay_open_too(tmp_path):
    module = tf.Module()
    module.f = tf.function(lambda x: tf.nn.softmax(x) @ tf.transpose(x), input_signature=[tf.TensorSpec([None, None])])
    loaded = saved_and_loaded(module, tmp_path)
    for shape in ((2, 3), (4, 1)):
        x = np.random.default_rng(0).normal(size=shape).astype("float32")
        np.testing.assert_allclose(loaded.f(x), module.f(x), rtol=1e-5)


def test_a_variable_that_is_not_saved_with_the_object(tmp_path):
    v = tf.Variable([1.0, 2.0, 3.0])
    function = tf.function(lambda x: x * v, input_signature=[ROWS])
    with pytest.raises(tf.errors.UnimplementedError, match="'untracked' resource"):
        tf.saved_model.save(tf.Module(), tmp_path, signatures=function)


def test_signatures_are_called_by_name_and_return_dictionaries(tmp_path):
    net = Net()
    both = tf.function(lambda a, b: (a + b, a @ net.w), input_signature=[ROWS, tf.TensorSpec([3], name="bias")])
    named = net.__call__.get_concrete_function(tf.TensorSpec([4, 3]), 2.0)
    loaded = saved_and_loaded(net, tmp_path, signatures={"serving_default": net.serve, "both": both, "fixed": named})
    assert sorted(loaded.signatures) == ["both", "fixed", "serving_default"]
    serve, both_again = loaded.signatures["serving_default"], loaded.signatures["both"]
    np.testing.assert_allclose(serve(x=rows(2))["output_0"], net.serve(rows(2)), rtol=1e-6)
    np.testing.assert_allclose(serve(rows(2))["output_0"], net.serve(rows(2)), rtol=1e-6)
    result = both_again(bias=np.ones(3, "float32"), a=rows(5))
    assert {name: tuple(t.shape) for name, t in result.items()} == {"output_0": (5, 3), "output_1": (5, 2)}
    np.testing.assert_allclose(result["output_1"], rows(5) @ net.w.numpy(), rtol=1e-5)
    assert list(both_again.structured_input_signature[1]) == ["a", "bias"]
    assert [v.name for v in both_again.trainable_variables] == [net.w.name]
    with pytest.raises(TypeError, match="was called with other arguments"):
        both_again(rows(5))
    twice = tf.function(lambda a, b: a - b, input_signature=[tf.TensorSpec([3], name="x")] * 2)
    for wrong in (lambda x: x, tf.function(lambda x: x), {"a": 3}, twice):
        with pytest.raises(ValueError, match="signature"):
            tf.saved_model.save(net, tmp_path, signatures=wrong)


def test_arguments_by_name_keep_their_names(tmp_path):
    minus, spec = tf.function(lambda x, y: x - y), tf.TensorSpec([2])
    module = tf.Module()
    module.f = minus.get_concrete_function(y=spec, x=spec)

    @tf.function
    def only_names(*, b, a):
        return b - a

    module.g = only_names
    only_names(b=tf.ones([2]), a=tf.zeros([2]))
    one, ten = np.ones(2, "float32"), np.full(2, 10.0, "float32")
    loaded = saved_and_loaded(module, tmp_path, signatures={"f": module.f, "g": only_names})
    for called, first, second in ((loaded.signatures["f"], "x", "y"), (loaded.signatures["g"], "b", "a")):
        np.testing.assert_array_equal(called(**{first: one, second: ten})["output_0"], one - ten)
    np.testing.assert_array_equal(loaded.f(y=ten, x=one), one - ten)
    np.testing.assert_array_equal(loaded.f(one, ten), one - ten)
    np.testing.assert_array_equal(loaded.g(a=ten, b=one), one - ten)


def test_the_signature_that_fits_best_is_taken(tmp_path):
    module = tf.Module()
    module.f = tf.function(lambda x: x * 2)
    for x in (tf.constant([True, False]), tf.constant([1, 2]), tf.constant([1.0, 2.0]), 3, 4.5, float("nan")):
        if x is not True and getattr(x, "dtype", None) != tf.bool:
            module.f(x)
    loaded = saved_and_loaded(module, tmp_path)
    for x in (np.array([1.7, 2.7], "float32"), np.array([5, 6], "int32"), 3, 4.5, [1.5, 2.5]):
        np.testing.assert_array_equal(loaded.f(x), module.f(tf.constant(x) if isinstance(x, list) else x))
    assert np.isnan(loaded.f(float("nan")))
    np.testing.assert_array_equal(loaded.f(np.array([1.5, 2.5])), [3.0, 5.0])  # float64, as NumPy makes it
    with pytest.raises(ValueError, match="matching concrete function"):
        loaded.f(tf.constant([1.5, 2.5], tf.float64))


def test_defaults_may_be_left_out_or_given(tmp_path):
    net = Net()
    net(rows(2))
    loaded = saved_and_loaded(net, tmp_path)
    for kwargs in ({}, {"scale": 1.0}, {"names": None}):
        np.testing.assert_array_equal(loaded(rows(2), **kwargs)["y"].first, rows(2))


def test_a_concrete_function_makes_the_method_callable(tmp_path):
    net = Net()
    concrete = net.__call__.get_concrete_function(ROWS)
    loaded = saved_and_loaded(net, tmp_path, signatures=concrete)
    np.testing.assert_array_equal(loaded(rows(7))["y"].first, rows(7))


def test_what_a_loaded_model_has_is_saved_again(tmp_path):
    net = Net()
    net(rows(2))
    loaded = saved_and_loaded(net, tmp_path, signatures=net.serve)
    loaded.w.assign(tf.ones([3, 2]))
    again = saved_and_loaded(loaded, tmp_path)
    for n in (1, 3):
        np.testing.assert_allclose(again.serve(rows(n)), np.full((n, 2), 0.5), rtol=1e-6)
        np.testing.assert_allclose(again.signatures["serving_default"](rows(n))["output_0"], np.full((n, 2), 0.5), rtol=1e-6)
    np.testing.assert_array_equal(again(rows(2))["y"].first, rows(2))


def test_objects_that_tracing_makes_do_not_move_others(tmp_path):
    class Growing(tf.Module):
        def __init__(self):
            super().__init__()
            self.sub = tf.Module()
            self.sub.a, self.sub.b, self.late = tf.Variable(10.0), tf.Variable(20.0), None

        @tf.function(input_signature=[ROWS])
        def f(self, x):
            if not hasattr(self, "parts"):
                self.parts = [self.sub.a]
            if self.late is None:
                self.late = tf.Variable(5.0)
            return x + self.sub.b + self.late

    loaded = saved_and_loaded(Growing(), tmp_path)
    np.testing.assert_array_equal(loaded.f(rows(2)), rows(2) + 25.0)


def test_one_signature_that_cannot_be_saved_leaves_the_others(tmp_path):
    class Dropping(tf.Module):
        @tf.function
        def __call__(self, x, training=False):
            return tf.nn.dropout(x, 0.5) if training else 2.0 * x

    module = Dropping()
    module(rows(2), training=True)
    module(rows(2), training=False)
    loaded = saved_and_loaded(module, tmp_path, signatures=module.__call__.get_concrete_function(ROWS, training=False))
    np.testing.assert_array_equal(loaded(rows(2)), 2 * rows(2))
    np.testing.assert_array_equal(loaded.signatures["serving_default"](rows(4))["output_0"], 2 * rows(4))


def test_gradients_inside(tmp_path):
    module = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([])])
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x**3
        return tape.gradient(y, x)

    @tf.function(input_signature=[tf.TensorSpec([]), tf.TensorSpec([], tf.int32)])
    def of_a_loop(x, n):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y, i = x, 0
            while i < n:
                y, i = y * x, i + 1
        return tape.gradient(y, x)

    module.slope, module.of_a_loop = slope, of_a_loop
    loaded = saved_and_loaded(module, tmp_path)
    assert float(loaded.slope(2.0)) == 12.0
    with pytest.raises(AttributeError, match="number of steps is not known"):
        loaded.of_a_loop(2.0, 3)


def test_keys_of_results(tmp_path):
    module = tf.Module()
    module.c = tf.function(max)  # has no signature that Python knows
    module.f = tf.function(lambda x: {1: x, 2: 2.0 * x}, input_signature=[ROWS])
    module.g = tf.function(lambda x: {("a", 1): x}, input_signature=[ROWS])
    loaded = saved_and_loaded(module, tmp_path)
    assert list(loaded.f(rows(2))) == [1, 2]
    with pytest.raises(AttributeError, match="keys that are not numbers or texts"):
        loaded.g(rows(2))


def test_variables_of_another_model_are_noticed(tmp_path):
    tf.saved_model.save(Net(), tmp_path / "a")
    tf.saved_model.save(tf.Module(), tmp_path / "b")
    for part in (tmp_path / "b" / "variables").iterdir():  # as if saving b over a had been interrupted
        (tmp_path / "a" / "variables" / part.name).write_bytes(part.read_bytes())
    with pytest.raises(tf.errors.DataLossError, match="not those that its programs were saved with"):
        tf.saved_model.load(tmp_path / "a")


def test_saving_is_not_recorded_and_leaves_jax_as_it_was(tmp_path):
    import jax

    net, before = Net(), jax.config.jax_hlo_source_file_canonicalization_regex
    with tf.GradientTape() as tape:
        tf.saved_model.save(net, tmp_path)
    assert tape.watched_variables() == ()
    assert jax.config.jax_hlo_source_file_canonicalization_regex == before
    for part in (tmp_path / "programs").iterdir():
        assert b".py" not in part.read_bytes()


def test_conditions_are_checked(tmp_path):
    module = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def root(x):
        tf.debugging.assert_non_negative(x)
        return tf.sqrt(x)

    module.root = root
    loaded = saved_and_loaded(module, tmp_path)
    np.testing.assert_array_equal(loaded.root([4.0, 9.0]), [2.0, 3.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not hold"):
        loaded.root([4.0, -9.0])
    inside = tf.function(lambda x: loaded.root(x) + 1.0)
    np.testing.assert_array_equal(inside(tf.constant([4.0, 9.0])), [3.0, 4.0])
    with pytest.raises(tf.errors.InvalidArgumentError):
        inside(tf.constant([4.0, -9.0]))


def test_loaded_functions_in_functions_and_under_tapes(tmp_path):
    net = Net()
    loaded = saved_and_loaded(net, tmp_path)
    doubled = tf.function(lambda x: 2.0 * loaded.serve(x))
    np.testing.assert_allclose(doubled(tf.constant(rows(3))), 2 * net.serve(rows(3)), rtol=1e-6)
    x = tf.constant(rows(3))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(loaded.serve(x) ** 2) + tf.reduce_sum(x)
    with tf.GradientTape() as right:
        right.watch(x)
        expected = tf.reduce_sum(net.serve(x) ** 2) + tf.reduce_sum(x)
    np.testing.assert_allclose(tape.gradient(y, x), right.gradient(expected, x), rtol=1e-5)


def test_jax_alone_runs_a_program(tmp_path):
    import jax

    net = Net()
    tf.saved_model.save(net, tmp_path)
    (about,) = json.loads((tmp_path / "saved_model.json").read_text())["functions"]
    blob = (tmp_path / "programs" / about["programs"][0]["file"]).read_bytes()
    exported = jax.export.deserialize(bytearray(blob))
    np.testing.assert_allclose(exported.call(net.w.numpy(), rows(6))[0], net.serve(rows(6)), rtol=1e-6)
    assert {"cpu", "cuda"} <= set(exported.platforms)


def test_damaged_and_missing_programs(tmp_path):
    tf.saved_model.save(Net(), tmp_path)
    program, _ = sorted((tmp_path / "programs").iterdir())  # of the function, and of its gradient
    program.write_bytes(program.read_bytes()[:-7])
    with pytest.raises(tf.errors.DataLossError, match="damaged"):
        tf.saved_model.load(tmp_path)
    program.unlink()
    with pytest.raises(tf.errors.NotFoundError, match="missing"):
        tf.saved_model.load(tmp_path)
    tf.saved_model.save(Net(), tmp_path)
    assert tf.saved_model.load(tmp_path).serve(rows(2)).shape == (2, 2)
    other = tf.Module()
    other.f = tf.function(lambda x: x + 1.0, input_signature=[ROWS])
    tf.saved_model.save(other, tmp_path)
    assert len(list((tmp_path / "programs").iterdir())) == 2  # those of the first model are gone
    np.testing.assert_array_equal(tf.saved_model.load(tmp_path).f(rows(2)), rows(2) + 1)


def renamed(about, name):
    """A part of a saved model's description, with another name in the place of every program's file."""
    if isinstance(about, dict):
        return {k: name if k == "file" else renamed(part, name) for k, part in about.items()}
    return [renamed(part, name) for part in about] if isinstance(about, list) else about


@pytest.mark.parametrize("name", ["/dev/zero", "../../secret", "", ".", "a" * 24, f"../programs/{'a' * 24}.stablehlo", 7, None])
def test_a_saved_model_names_no_file_outside_of_it(name, tmp_path):
    tf.saved_model.save(Net(), tmp_path / "model")
    (tmp_path / "secret").write_text("not to be read")
    path = tmp_path / "model" / "saved_model.json"
    about = json.loads(path.read_text())
    about.pop("crc32", None)
    files.write_json(str(path), renamed(about, name))  # with a checksum that holds
    with pytest.raises(tf.errors.DataLossError, match="as the file of a program"):
        tf.saved_model.load(tmp_path / "model")


def test_numbers_of_every_kind(tmp_path):
    module = tf.Module()
    dtypes = ["float16", "bfloat16", "float64", "complex64", "int64", "uint8", "bool"]
    module.f = tf.function(
        lambda *xs: [tf.identity(x) if x.dtype == tf.bool else x + x for x in xs],
        input_signature=[tf.TensorSpec([None, 2], dtype) for dtype in dtypes],
    )
    loaded = saved_and_loaded(module, tmp_path)
    xs = [tf.cast(tf.constant([[1, 0], [1, 1]]), dtype) for dtype in dtypes]
    for result, right in zip(loaded.f(*xs), module.f(*xs)):
        assert result.dtype is right.dtype
        np.testing.assert_array_equal(result, right)
