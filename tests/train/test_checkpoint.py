"""Checkpoints: what is saved, how it is matched, what is refused, and what the errors say."""

from __future__ import annotations

import collections
import copy
import gc
import json
import logging
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradtape as tf
from gradtape.train import files

pytestmark = pytest.mark.tiny


class Linear(tf.Module):
    def __init__(self, width=2, value=0.0):
        super().__init__()
        self.w = tf.Variable(tf.fill([width], value), name="w")
        self.b = tf.Variable(value, name="b")


class Lazy(tf.Module):
    """Makes its variables when it is first called, some of them in a submodule."""

    def __call__(self, x):
        if not hasattr(self, "scale"):
            self.scale = tf.Variable(1.0)
            self.inner = Linear()
        return x * self.scale + self.inner.b


@pytest.fixture
def prefix(tmp_path):
    return str(tmp_path / "ckpt")


def saved(prefix, **objects):
    return tf.train.Checkpoint(**objects).save(prefix)


# Values

DTYPES = "float16 float32 float64 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool complex64 complex128".split()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)])
def test_every_dtype_and_shape_comes_back_bit_for_bit(dtype, shape, prefix):
    bits = np.random.RandomState(1).randint(0, 2, (*shape, 16), np.uint8) if dtype == "bool" else None
    kind = tf.as_dtype(dtype).numpy
    if dtype == "bool":
        value = bits[..., 0].astype(bool)
    else:
        value = np.random.RandomState(0).bytes(int(np.prod(shape)) * kind.itemsize)
        value = np.frombuffer(value, kind).reshape(shape)  # any bits: nan, inf and subnormal numbers too
    source, target = tf.Variable(value), tf.Variable(np.zeros(shape, kind))
    tf.train.Checkpoint(v=target).restore(saved(prefix, v=source)).assert_consumed()
    assert target.dtype == dtype
    assert target.numpy().tobytes() == np.asarray(value).tobytes()


@given(st.lists(st.binary(max_size=5), max_size=6))
def test_strings_come_back(tmp_path_factory, texts):
    array = np.empty(len(texts), object)
    array[:] = texts
    prefix = str(tmp_path_factory.mktemp("strings") / "s")
    target = tf.Variable(np.array([b""] * len(texts), object) if texts else tf.constant([], tf.string))
    tf.train.Checkpoint(v=target, s=tf.Variable("")).restore(
        saved(prefix, v=tf.Variable(array) if texts else target, s=tf.Variable(b"a\0b\0"))
    ).assert_consumed()
    assert target.numpy().tolist() == texts


def test_values_that_are_not_contiguous(prefix):
    source = tf.Variable(np.zeros((2, 3), np.float32))
    source._put(np.arange(6, dtype=np.float32).reshape(3, 2).T)
    target = tf.Variable(np.zeros((2, 3), np.float32))
    tf.train.Checkpoint(v=target).restore(saved(prefix, v=source))
    assert np.array_equal(target.numpy(), source.numpy())


def test_a_restored_variable_can_be_trained_in_place(prefix):
    v = tf.Variable([1.0, 2.0])
    tf.train.Checkpoint(v=v).restore(saved(prefix, v=v))
    tf.optimizers.SGD(1.0).apply_gradients([(tf.constant([1.0, 1.0]), v)])
    assert v.numpy().tolist() == [0.0, 1.0]


# What is followed

Pair = collections.namedtuple("Pair", "left right")


class Plain:
    """Neither a module nor anything else that is known, but with a variable among its attributes."""

    def __init__(self):
        self.v = tf.Variable(0.0)
        self.note = "not saved"
        self.log = [1, 2, 3]


def structure():
    plain = Plain()
    return {
        "nest": [tf.Variable(0.0), (tf.Variable(0.0), {"a/b.c": tf.Variable(0.0), 3: tf.Variable(0.0)})],
        "pair": Pair(tf.Variable(0.0), Linear()),
        "plain": plain,
        "generator": tf.random.Generator.from_seed(1),
        "scaled": tf.optimizers.LossScale(tf.optimizers.SGD(0.5)),
        "again": plain.v,
    }


def variables_of(objects):
    from gradtape.train.objects import collect

    return {n.path: n.value for n in collect(tf.train.Checkpoint(**objects)) if isinstance(n.value, tf.Variable)}


def test_nests_modules_objects_generators_and_wrapped_optimizers(prefix):
    first, second = structure(), structure()
    for n, variable in enumerate(variables_of(first).values()):
        variable.assign(tf.cast(tf.fill(variable.shape, n + 1), variable.dtype))
    tf.train.Checkpoint(**second).restore(saved(prefix, **first)).assert_consumed()
    ours, theirs = variables_of(second), variables_of(first)
    assert list(ours) == list(theirs)
    assert {
        "nest/0", "nest/1/0", "nest/1/1/a.Sb..c", "nest/1/1/3", "pair/left", "pair/right/w", "again", "generator/_state_var",
        "scaled/_scale", "scaled/inner_optimizer/iteration", "scaled/inner_optimizer/learning_rate",
    } <= set(ours)  # fmt: skip
    assert "plain/v" not in ours  # it is saved once, under the shorter name
    for path in ours:
        assert np.array_equal(ours[path].numpy(), theirs[path].numpy())


def test_the_names_are_tensorflow_s(prefix):
    model = Linear(3)
    tf.train.Checkpoint(model=model, step=tf.Variable(1)).save(prefix)
    assert tf.train.list_variables(prefix + "-1") == [
        ("model/b/.ATTRIBUTES/VARIABLE_VALUE", []),
        ("model/w/.ATTRIBUTES/VARIABLE_VALUE", [3]),
        ("save_counter/.ATTRIBUTES/VARIABLE_VALUE", []),
        ("step/.ATTRIBUTES/VARIABLE_VALUE", []),
    ]
    assert tf.train.load_variable(prefix + "-1", "step/.ATTRIBUTES/VARIABLE_VALUE") == 1


def test_there_is_nothing_to_execute_in_a_checkpoint(prefix, tmp_path):
    path = saved(prefix, model=Linear())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoint", "ckpt-1.index.json", "ckpt-1.safetensors"]
    assert json.loads((tmp_path / "ckpt-1.index.json").read_text())["format"] == 2
    assert path == prefix + "-1"


def test_a_root_stands_for_its_attributes(prefix):
    model = Linear(2, 3.0)
    tf.train.Checkpoint(model, step=tf.Variable(5)).save(prefix)
    other, step = Linear(), tf.Variable(0)
    tf.train.Checkpoint(other, step=step).restore(prefix + "-1").assert_consumed()
    assert (float(other.b), int(step)) == (3.0, 5)
    names = [name for name, _ in tf.train.list_variables(prefix + "-1")]
    assert "w/.ATTRIBUTES/VARIABLE_VALUE" in names


def test_objects_that_refer_to_each_other(prefix):
    first, second = Linear(2, 1.0), Linear(2, 2.0)
    first.other, second.other = second, first
    a, b = Linear(), Linear()
    a.other, b.other = b, a
    tf.train.Checkpoint(m=a).restore(saved(prefix, m=first)).assert_consumed()
    assert (float(a.b), float(b.b)) == (1.0, 2.0)


def test_attributes_may_be_added_to_a_checkpoint(prefix):
    checkpoint = tf.train.Checkpoint()
    checkpoint.step = tf.Variable(4)
    path = checkpoint.save(prefix)
    other = tf.train.Checkpoint()
    status = other.restore(path)
    other.step = tf.Variable(0)  # restored when it is there
    assert int(other.step) == 4
    status.assert_consumed()


class Counter:
    """A state of its own: what data iterators do."""

    def __init__(self):
        self.state = None

    def _state(self):
        return self.state

    def _restore(self, state):
        self.state = state


def test_states(prefix):
    source, target = Counter(), Counter()
    source.state = {
        "n": 2**70, "x": 0.1, "nothing": None, "yes": True, "text": "ä", "raw": b"a\0", "nested": [(1, [2.5]), {}],
        "array": np.arange(3), "scalar": np.float32(0.1), "tensor": tf.constant(["a", "b"]), 7: "an int for a key",
    }  # fmt: skip
    tf.train.Checkpoint(it=target).restore(saved(prefix, it=source)).assert_consumed()
    found = target.state
    assert {k: v for k, v in found.items() if k not in ("array", "scalar", "tensor")} == {
        k: v for k, v in source.state.items() if k not in ("array", "scalar", "tensor")
    }
    assert found["array"].tolist() == [0, 1, 2]
    assert found["scalar"] == np.float32(0.1)
    assert found["tensor"].tolist() == [b"a", b"b"]


def test_a_state_that_cannot_be_saved(prefix):
    source = Counter()
    source.state = {"f": print}
    with pytest.raises(TypeError, match=r"state of 'it'[\s\S]*builtin_function"):
        saved(prefix, it=source)


class Words(tf.train.experimental.PythonState):
    def __init__(self, text=""):
        self.text = text

    def serialize(self):
        return self.text

    def deserialize(self, string_value):
        self.text = string_value


def test_python_states(prefix):
    target = Words()
    tf.train.Checkpoint(s=target).restore(saved(prefix, s=Words("so far"))).assert_consumed()
    assert target.text == "so far"
    with pytest.raises(NotImplementedError, match="must define `serialize`"):
        saved(prefix, s=tf.train.experimental.PythonState())


@pytest.mark.parametrize("seed", [None, 3])
def test_random_streams(prefix, seed):
    def numbers():
        shuffled, thinned = tf.random.shuffle(tf.range(9)), tf.nn.dropout(tf.ones([9]), 0.5)
        draws = tf.random.normal([2]), tf.random.uniform([2], seed=5), shuffled, thinned
        return [draw.numpy().tolist() for draw in draws]

    tf.random.set_seed(seed)
    try:
        numbers()
        path = saved(prefix, random=tf.train.RandomStreams())
        expected = numbers()
        numbers()
        tf.random.set_seed(99)
        tf.train.Checkpoint(random=tf.train.RandomStreams()).restore(path).assert_consumed()
        assert numbers() == expected
    finally:
        tf.random.set_seed(None)


# Optimizers


def trained(names, steps=2):
    variables = {name: tf.Variable([float(n), 1.0]) for n, name in enumerate(names)}
    optimizer = tf.optimizers.Adam(0.1, use_ema=True)
    for _ in range(steps):
        optimizer.apply_gradients([(v * 2 + n, v) for n, v in enumerate(variables.values())])
    return optimizer, variables


def state_by_variable(optimizer, variables):
    from gradtape.train.objects import optimizer_slots

    by_id = {id(v): name for name, v in variables.items()}
    slots = optimizer_slots(optimizer)
    return {(by_id[id(optimizer._trainable[at])], name): slot.numpy().tolist() for at, name, slot in slots}


@pytest.mark.parametrize("built", ["before", "after", "step"])
def test_slots_go_to_their_variables_whatever_the_order(prefix, built):
    optimizer, variables = trained(["a", "b", "c"])
    path = saved(prefix, optimizer=optimizer, model=variables)
    others = {name: tf.Variable([0.0, 0.0]) for name in "cab"}
    other = tf.optimizers.Adam(0.3, use_ema=True)
    order = [others[name] for name in "cab"]
    if built == "before":
        other.build(order)
    status = tf.train.Checkpoint(optimizer=other, model=others).restore(path)
    if built != "before":
        with pytest.raises(AssertionError, match="momentum"):
            status.assert_consumed()
        other.build(order)
    status.assert_consumed()
    assert float(other.learning_rate) == pytest.approx(0.1)
    assert int(other.iterations) == 2
    assert state_by_variable(other, others) == state_by_variable(optimizer, variables)


def test_slots_of_variables_that_the_checkpoint_does_not_have(prefix):
    optimizer, variables = trained(["a", "b"])
    path = saved(prefix, optimizer=optimizer)
    other = tf.optimizers.Adam(use_ema=True)
    others = {name: tf.Variable([0.0, 0.0]) for name in "ab"}
    status = tf.train.Checkpoint(optimizer=other).restore(path)
    other.build(others.values())
    status.assert_consumed()
    assert state_by_variable(other, others) == state_by_variable(optimizer, variables)


def test_an_optimizer_in_the_manner_of_keras(prefix):
    class Momentum(tf.optimizers.Optimizer):
        def build(self, variables):
            if self.built:
                return
            super().build(variables)
            self.speed = self.add_optimizer_variables(variables, "speed")

        def update_step(self, gradient, variable, learning_rate):
            speed = self.speed[self._get_variable_index(variable)]
            speed.assign(0.9 * speed + gradient)
            variable.assign_sub(speed * learning_rate)

    def run(optimizer, v, steps):
        for _ in range(steps):
            optimizer.apply_gradients([(v * 2, v)])

    straight, v = Momentum(0.1), tf.Variable([1.0, 2.0])
    run(straight, v, 2)
    path = saved(prefix, o=straight, v=v)
    run(straight, v, 2)
    resumed, w = Momentum(0.1), tf.Variable([0.0, 0.0])
    status = tf.train.Checkpoint(o=resumed, v=w).restore(path)
    run(resumed, w, 2)
    status.assert_existing_objects_matched()
    assert w.numpy().tobytes() == v.numpy().tobytes()


# Later


def test_variables_made_after_restoring_receive_their_values(prefix):
    model = Lazy()
    model(1.0)
    model.scale.assign(3.0)
    model.inner.b.assign(4.0)
    path = saved(prefix, model=model)
    other = Lazy()
    status = tf.train.Checkpoint(model=other).restore(path)
    assert float(other(1.0)) == 7.0
    status.assert_consumed()


def test_a_variable_that_replaces_a_restored_one_keeps_its_own_value(prefix):
    path = saved(prefix, model=Linear(2, 5.0), gone=tf.Variable(1.0))
    model = Linear()
    tf.train.Checkpoint(model=model).restore(path).expect_partial()
    model.b = tf.Variable(9.0)
    assert float(model.b) == 9.0


def test_what_is_appended_to_a_list_is_restored_when_the_status_is_asked(prefix):
    model, other = tf.Module(), tf.Module()
    model.layers, other.layers = [Linear(2, 1.0), Linear(2, 2.0)], []
    status = tf.train.Checkpoint(model=other).restore(saved(prefix, model=model))
    other.layers += [Linear(), Linear()]
    status.assert_consumed()
    assert float(other.layers[1].b) == 2.0


def test_copies_and_pickles_of_a_module_that_waits(prefix):
    model = Lazy()
    model(1.0)
    path = saved(prefix, model=model)
    other = Lazy()
    tf.train.Checkpoint(model=other).restore(path).expect_partial()
    assert copy.deepcopy(other)._deferred is None
    assert pickle.loads(pickle.dumps(other))._deferred is None


def test_a_deleted_checkpoint_still_serves_what_waits_for_it(prefix, tmp_path):
    model = Lazy()
    model(1.0)
    model.scale.assign(3.0)
    path = saved(prefix, model=model)
    other = Lazy()
    tf.train.Checkpoint(model=other).restore(path).expect_partial()
    for file in tmp_path.iterdir():
        file.unlink()
    other(1.0)
    assert float(other.scale) == 3.0


# Sharing


def test_shared_variables_stay_shared_and_split_ones_both_receive_the_value(prefix):
    v = tf.Variable(5.0)
    path = saved(prefix, a=v, b=v)
    one, two = tf.Variable(0.0), tf.Variable(0.0)
    tf.train.Checkpoint(a=one, b=two).restore(path).assert_consumed()
    assert (float(one), float(two)) == (5.0, 5.0)


def test_two_values_for_one_variable_are_refused(prefix):
    path = saved(prefix, a=tf.Variable(1.0), b=tf.Variable(2.0))
    v = tf.Variable(0.0)
    with pytest.raises(ValueError, match=r"Two values[\s\S]*'a' and 'b'"):
        tf.train.Checkpoint(a=v, b=v).restore(path)
    assert float(v) == 0.0


# Reports


def test_nothing_changes_when_something_does_not_fit(prefix):
    path = saved(prefix, a=tf.Variable(1.0), b=tf.Variable([1.0, 2.0]))
    a = tf.Variable(0.0)
    with pytest.raises(ValueError, match=r"incompatible tensor with shape \(2,\) .* shape \(3,\) and name b:0"):
        tf.train.Checkpoint(a=a, b=tf.Variable([0.0, 0.0, 0.0], name="b")).restore(path)
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected dtype double does not equal original dtype float"):
        tf.train.Checkpoint(a=a, b=tf.Variable([0.0, 0.0], dtype=tf.float64)).restore(path)
    assert float(a) == 0.0


def test_a_variable_without_a_fixed_shape_takes_any(prefix):
    v = tf.Variable([0.0], shape=tf.TensorShape([None]))
    tf.train.Checkpoint(v=v).restore(saved(prefix, v=tf.Variable([1.0, 2.0])))
    assert v.numpy().tolist() == [1.0, 2.0]


def test_assert_consumed_names_what_is_missing_and_what_is_near(prefix):
    path = saved(prefix, model=Linear(), extra=tf.Variable(1.0))
    other = tf.Module()
    other.weight, other.b = tf.Variable([0.0, 0.0]), tf.Variable(0.0)
    status = tf.train.Checkpoint(modle=other).restore(path)
    with pytest.raises(AssertionError, match=r"Unresolved object in checkpoint \(root\)\.extra") as error:
        status.assert_consumed()
    assert "'extra', 'model/w', 'model/b'" in str(error.value)
    assert "'modle/weight', 'modle/b'" in str(error.value)
    assert "'model/b' in the checkpoint, 'modle/b' in the program" in str(error.value)


def test_existing_objects_and_trivial_matches(prefix):
    path = saved(prefix, a=tf.Variable(1.0), b=tf.Variable(2.0))
    status = tf.train.Checkpoint(a=tf.Variable(0.0)).restore(path)
    assert status.assert_existing_objects_matched() is status
    assert status.assert_nontrivial_match() is status
    assert status.expect_partial() is status
    with pytest.raises(AssertionError, match="Found 1 Python objects that were not bound"):
        tf.train.Checkpoint(a=tf.Variable(0.0), c=tf.Variable(0.0)).restore(path).assert_existing_objects_matched()
    with pytest.raises(AssertionError, match="Nothing except the root"):
        tf.train.Checkpoint(c=tf.Variable(0.0)).read(tf.train.Checkpoint(x=tf.Variable(1.0)).write(prefix)).assert_nontrivial_match()


def test_values_left_over_are_logged_unless_expected(prefix, caplog):
    path = saved(prefix, a=tf.Variable(1.0), b=tf.Variable(2.0))

    def warnings(use):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "gradtape"):
            use(tf.train.Checkpoint(a=tf.Variable(0.0)).restore(path))
            gc.collect()
        return [record.getMessage() for record in caplog.records]

    assert warnings(lambda status: status.expect_partial()) == []
    (text,) = warnings(lambda status: None)
    assert "values that were not restored: 'b'" in text


def test_no_checkpoint():
    status = tf.train.Checkpoint(a=tf.Variable(0.0)).restore(None)
    assert status.expect_partial() is status
    with pytest.raises(AssertionError, match="nothing is being restored"):
        status.assert_consumed()


@pytest.mark.parametrize("value", [3, "text", None, 2.5, tf.constant(1.0), np.ones(2), len])
def test_what_cannot_be_tracked(value):
    with pytest.raises(ValueError, match="`Checkpoint` was expecting x to be a trackable object"):
        tf.train.Checkpoint(x=value)


def test_a_root_and_another_object_of_the_same_name():
    with pytest.raises(ValueError, match=r"root\.w already exists"):
        tf.train.Checkpoint(Linear(), w=tf.Variable(1.0))


def test_a_path_that_is_not_there(prefix):
    saved(prefix, a=tf.Variable(1.0))
    with pytest.raises(tf.errors.NotFoundError, match=r"Error when restoring[\s\S]*Failed to find[\s\S]*ckpt-1"):
        tf.train.Checkpoint(a=tf.Variable(1.0)).restore(prefix)


def test_damaged_files(prefix, tmp_path):
    path = saved(prefix, a=tf.Variable([1.0, 2.0]))
    data = tmp_path / "ckpt-1.safetensors"
    whole = data.read_bytes()
    a = tf.Variable([0.0, 0.0])
    at = whole.index(np.float32([1, 2]).tobytes())
    for damaged in (whole[:at] + b"\1" + whole[at + 1 :], whole[:-3], b"", whole[:4]):
        data.write_bytes(damaged)
        with pytest.raises(tf.errors.DataLossError):
            tf.train.Checkpoint(a=a).restore(path)
    (tmp_path / "ckpt-1.index.json").write_text('{"format": 1, ')
    with pytest.raises(tf.errors.DataLossError):
        tf.train.Checkpoint(a=a).restore(path)
    (tmp_path / "ckpt-1.index.json").write_text('{"format": 99}')
    with pytest.raises(tf.errors.DataLossError, match="format 99"):
        tf.train.Checkpoint(a=a).restore(path)
    assert a.numpy().tolist() == [0.0, 0.0]


# Counting and reading


def test_save_counts_and_write_does_not(prefix, tmp_path):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    assert checkpoint.write(prefix) == prefix
    assert [checkpoint.save(prefix), checkpoint.save(prefix)] == [prefix + "-1", prefix + "-2"]
    assert checkpoint.save_counter.dtype == tf.int64
    other = tf.train.Checkpoint(v=tf.Variable(1.0))
    other.restore(tf.train.latest_checkpoint(tmp_path)).assert_consumed()
    assert other.save(prefix) == prefix + "-3"
    other.read(prefix).assert_consumed()
    assert tf.train.latest_checkpoint(str(tmp_path)) == prefix + "-3"
    assert tf.train.latest_checkpoint(str(tmp_path / "none")) is None


def test_the_reader(prefix, tmp_path):
    saved(prefix, v=tf.Variable([1.0, 2.0]), s=tf.Variable("text"), b=tf.Variable(1, dtype=tf.bfloat16))
    reader = tf.train.load_checkpoint(tmp_path)
    value = "/.ATTRIBUTES/VARIABLE_VALUE"
    assert reader.get_variable_to_shape_map()["v" + value] == [2]
    assert reader.get_variable_to_dtype_map()["b" + value] == tf.bfloat16
    assert reader.has_tensor("v" + value)
    assert not reader.has_tensor("v")
    assert reader.get_tensor("s" + value) == b"text"
    assert isinstance(reader.get_tensor("v" + value), np.ndarray)
    with pytest.raises(tf.errors.NotFoundError, match=rf"Key v not found in checkpoint[\s\S]*v{value}"):
        reader.get_tensor("v")
    with pytest.raises(tf.errors.NotFoundError, match="Failed to find any matching files"):
        tf.train.list_variables(tmp_path / "none")


def test_paths_of_every_kind(tmp_path):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    for path in (tmp_path / "a", str(tmp_path / "b"), str(tmp_path / "c").encode(), tf.constant(str(tmp_path / "d"))):
        checkpoint.read(checkpoint.write(path)).assert_consumed()


def test_restoring_under_a_tape_records_nothing(prefix):
    v = tf.Variable(2.0)
    path = saved(prefix, v=v)
    with tf.GradientTape() as tape:
        tf.train.Checkpoint(v=v).restore(path)
        y = v * v
    assert float(tape.gradient(y, v)) == 4.0


# Averages


def test_exponential_moving_averages():
    v, average = tf.Variable([1.0, 2.0]), tf.train.ExponentialMovingAverage(0.5)
    assert average.average(v) is None
    average.apply([v])
    v.assign([3.0, 4.0])
    average.apply([v])
    assert average.average(v).numpy().tolist() == [2.0, 3.0]
    assert average.average_name(v) == "Variable/ExponentialMovingAverage"
    assert list(average.variables_to_restore()) == ["Variable/ExponentialMovingAverage"]
    fast = tf.train.ExponentialMovingAverage(0.99, num_updates=0)
    fast.apply([v])
    v.assign([0.0, 0.0])
    fast.apply([v])
    assert fast.average(v).numpy() == pytest.approx([0.3, 0.4])
    with pytest.raises(TypeError, match="takes variables"):
        average.apply([tf.constant(1.0)])


@pytest.mark.parametrize("name", ["Example", "Feature", "Int64List"])
def test_out_of_scope(name):
    with pytest.raises(AttributeError, match=rf"tf\.train\.{name} is out of scope"):
        getattr(tf.train, name)


@pytest.mark.parametrize("follow", [tf.train.Checkpoint, lambda it: tf.train.Checkpoint(it=it)], ids=["root", "name"])
def test_what_a_traced_function_makes_is_restored_once(follow, tmp_path):
    """The value is what the first call begins with; it does not come back at every call."""
    pytest.importorskip("jax")

    def counting():
        module = tf.Module()

        @tf.function
        def step():
            if not hasattr(module, "total"):
                module.total = tf.Variable(0.0)
            return module.total.assign_add(1.0).read_value()

        return module, step

    module, step = counting()
    step(), step()
    path = follow(module).write(str(tmp_path / "ckpt"))
    again, step = counting()
    status = follow(again).read(path)
    assert [float(step()) for _ in range(3)] == [3.0, 4.0, 5.0]
    status.assert_consumed()


@pytest.mark.parametrize("name", ["/dev/zero", "../other.safetensors", "", ".", 7, None])
def test_an_index_names_no_data_outside_of_its_folder(name, tmp_path):
    (tmp_path / "inner").mkdir()
    prefix = tf.train.Checkpoint(v=tf.Variable(1.0)).write(str(tmp_path / "inner" / "ckpt"))
    about = json.loads((tmp_path / "inner" / f"ckpt{files.INDEX}").read_text())
    about.pop("crc32")
    files.write_json(prefix + files.INDEX, {**about, "data": name})  # with a checksum that holds
    with pytest.raises(tf.errors.DataLossError):
        tf.train.Checkpoint(v=tf.Variable(2.0)).read(prefix)
