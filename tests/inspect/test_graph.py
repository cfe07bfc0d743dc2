"""The graph of a tape: its nodes and edges, the gradients at each value, and what stands out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import gradtape as tf
from gradtape.inspect.findings import findings
from gradtape.inspect.gradients import replay, traversed
from gradtape.inspect.graph import CONSTANT, OP, VARIABLE, WATCHED, read
from gradtape.inspect.statistics import dead_units, describe

pytestmark = pytest.mark.tiny


def network(trace: bool = False, persistent: bool = False):
    """A tape, its loss and its variables, of which the last is forgotten."""
    rng = np.random.default_rng(0)
    w = tf.Variable(rng.standard_normal((4, 5)).astype("f"), name="w")
    b = tf.Variable(tf.zeros(5), name="b")
    lost = tf.Variable(tf.ones(3), name="lost")
    x = tf.constant(rng.standard_normal((8, 4)).astype("f"))
    with tf.GradientTape(persistent=persistent, trace=trace) as tape:
        hidden = tf.nn.relu(x @ w + b)
        first, second = tf.split(hidden, [2, 3], axis=1)
        lost * 2.0
        loss = tf.reduce_mean(first) * 2.0 + tf.reduce_sum(second)
    return tape, loss, [w, b, lost]


def kinds(graph):
    return [(node.kind, node.name) for node in graph.nodes]


def test_nodes_and_edges():
    tape, _, _ = network()
    graph = read(tape)
    assert kinds(graph)[:6] == [
        (CONSTANT, "constant"), (VARIABLE, "w"), (OP, "matmul"), (VARIABLE, "b"), (OP, "add"), (OP, "relu"),
    ]  # fmt: skip
    assert [(a.name, b.name) for a, b, _ in graph.edges()][:5] == [
        ("constant", "matmul"), ("w", "matmul"), ("matmul", "add"), ("b", "add"), ("add", "relu"),
    ]  # fmt: skip
    split = next(node for node in graph.nodes if node.name == "split")
    assert [output.shape for output in split.outputs] == [(8, 2), (8, 3)]
    assert [edge.output for node in graph.nodes for edge in node.inputs if edge.source == split.number] == [0, 1]
    times = next(node for node in graph.nodes if node.name == "multiply" and node.outputs[0].shape == ())
    assert times.attributes == "y=2"


def test_a_trace_adds_values_places_and_times_to_the_same_graph():
    plain, traced = network()[0], network(trace=True)[0]
    one, two = read(plain), read(traced)
    replay(traced, two)
    assert kinds(one) == kinds(two)
    assert all(node.place is None for node in one.nodes)
    assert all(node.place.file == __file__ and node.place.function == "network" for node in two.ops)
    assert all(output.value is not None for node in two.nodes for output in node.outputs)
    assert all(node.forward_seconds > 0 for node in two.ops)
    assert not two.traced <= one.traced


def test_a_replay_fills_in_the_values_that_were_not_kept():
    tape, _, _ = network()
    graph = read(tape)
    assert any(output.value is None for node in graph.ops for output in node.outputs)
    replay(tape, graph)
    values = [output.value for node in graph.nodes for output in node.outputs]
    assert values == [output.value for node in read(network(trace="values")[0]).nodes for output in node.outputs]


class Dense(tf.Module):
    def __init__(self, name):
        super().__init__(name)
        with self.name_scope:
            self.kernel = tf.Variable(tf.ones((3, 3)), name="kernel")
            self.bias = tf.Variable(tf.zeros(3), name="bias")

    def __call__(self, x):
        y = x @ self.kernel
        for _ in range(2):
            y = tf.tanh(y)
        first, second = tf.split(y + self.bias, [1, 2], axis=1)
        return tf.concat([second, first], axis=1)


def test_ops_belong_to_the_module_whose_variables_their_call_reads():
    layers = [Dense("first"), Dense("second")]
    scale = tf.Variable(2.0, name="scale")
    with tf.GradientTape(trace=True) as tape:
        x = tf.ones((2, 3))
        for layer in layers:
            x = layer(x)
        x = tf.reduce_sum(tf.exp(x)) * scale
    modules = [(node.name, node.module) for node in traversed(tape, x).ops]
    each = ["matmul", "tanh", "tanh", "add", "split", "concatenate"]
    names = [*((op, "first") for op in each), *((op, "second") for op in each), ("exp", ""), ("sum", ""), ("multiply", "")]
    assert modules == names


def test_bytes_are_those_of_the_records():
    tape, _, _ = network()
    held = {node.name: node.bytes for node in read(tape).nodes}
    assert held["matmul"] == 8 * 4 * 4  # x; w is a variable and there anyway
    assert held["relu"] == 8 * 5 * 4
    assert held["split"] == held["add"] == 0


@pytest.mark.parametrize("trace", [False, True, "values"])
def test_gradients_are_those_of_the_tape(trace):
    tape, loss, variables = network(trace, persistent=True)
    graph = traversed(tape, loss)
    found = {node.name: node.outputs[0].gradient for node in graph.nodes if node.kind == VARIABLE}
    for variable, gradient in zip(variables, tape.gradient(loss, variables)):
        name = variable.name.removesuffix(":0")
        if gradient is None:
            assert found[name] is None
        else:
            assert found[name].norm == pytest.approx(np.linalg.norm(gradient.numpy()))
    assert graph.nodes[graph.targets[0]].outputs[0].gradient.norm == 1
    assert all(node.backward_seconds is not None for node in graph.ops if node.outputs[0].gradient is not None)


def test_nothing_is_consumed_by_looking():
    tape, loss, variables = network()
    traversed(tape, loss)
    assert tape.gradient(loss, variables)[0] is not None


def test_a_used_tape_says_so_and_a_traced_one_still_shows_what_was_asked():
    tape, loss, variables = network()
    tape.gradient(loss, variables)
    with pytest.raises(RuntimeError, match="nothing left to show"):
        read(tape)
    tape, loss, variables = network(trace=True)
    tape.gradient(loss, variables)
    graph = traversed(tape)
    assert [graph.nodes[n].name for n in graph.targets] == ["add"]
    assert [graph.nodes[n].name for n in graph.sources] == ["w", "b", "lost"]
    assert graph.nodes[graph.sources[0]].outputs[0].gradient is not None


def test_a_tape_that_was_never_entered():
    with pytest.raises(RuntimeError, match="nothing left to show"):
        read(tf.GradientTape())


def test_a_foreign_target():
    tape, _, _ = network()
    with pytest.raises(ValueError, match="not on this tape"):
        traversed(tape, tf.constant(1.0))


def test_sources_without_a_target():
    tape, _, variables = network()
    with pytest.raises(ValueError, match="Sources need a target"):
        traversed(tape, None, variables)


def test_looking_while_tapes_record_records_nothing():
    x = tf.Variable(3.0, name="x")
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape(trace=True) as tape:
            y = x * x * x
            before = len(tape.records), len(outer.records)
            graph = traversed(tape, y)
            assert (len(tape.records), len(outer.records)) == before
            y = y + x
        slope = tape.gradient(y, x)
    assert graph.nodes[graph.sources[0]].outputs[0].gradient.norm == 27
    assert float(slope) == 28
    assert float(outer.gradient(slope, x)) == 18
    assert traversed(outer, slope).nodes


def test_nests_of_targets_ragged_sources_and_batches():
    x = tf.ragged.constant([[1.0, 2.0], [3.0]])
    w = tf.Variable([1.0, 2.0], name="w")
    with tf.GradientTape() as tape:
        tape.watch(x)
        targets = {"a": x * 2.0, "b": [tf.vectorized_map(lambda row: tf.reduce_sum(row * w), tf.ones((3, 2)))]}
    graph = traversed(tape, targets, [x, w])
    assert [graph.nodes[n].outputs[0].gradient.norm for n in graph.sources] == pytest.approx([12**0.5, 18**0.5])


def test_watched_tensors_custom_gradients_and_index_constants():
    @tf.custom_gradient
    def doubled(x):
        return 2 * x, lambda upstream: 2 * upstream

    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(doubled(tf.gather(x, [0, 2])))
    graph = traversed(tape, y)
    assert (WATCHED, "watched") in kinds(graph)
    assert next(node for node in graph.nodes if node.name == "doubled").attributes == "custom gradient"
    assert graph.nodes[graph.sources[0]].outputs[0].gradient.zeros == pytest.approx(1 / 3)


# Statistics


@given(
    arrays.arrays(
        np.float64, arrays.array_shapes(max_side=5, min_side=0), elements=st.floats(allow_nan=False, allow_infinity=False)
    )
)
def test_statistics_agree_with_numpy(array):
    s = describe(array)
    assert s.size == array.size
    assert sum(s.counts) == array.size
    assert s.nonfinite == 0
    if array.size:
        assert (s.low, s.high) == (array.min(), array.max())
        scale = float(np.abs(array).max()) or 1.0  # Python's numbers overflow in silence
        assert s.norm == pytest.approx(
            min(float(np.linalg.norm(array.ravel() / scale)) * scale, 1.797e308), rel=1e-3, abs=1e-160
        )
        assert s.low - 1e-12 * scale <= s.mean <= s.high + 1e-12 * scale
        assert s.zeros == pytest.approx(np.mean(array == 0))


@given(arrays.arrays(np.float32, 7, elements=st.floats(width=32, allow_nan=True, allow_infinity=True)))
def test_statistics_of_what_is_not_finite(array):
    s = describe(array)
    assert s.nans == np.isnan(array).sum()
    assert s.infinities == np.isinf(array).sum()
    assert sum(s.counts) == np.isfinite(array).sum()
    assert np.isfinite([s.low, s.high, s.mean, s.norm]).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "complex64", "int32", "bool"])
def test_statistics_of_other_types(dtype):
    assert describe(tf.cast([0.0, 1.0, 1.0], dtype)).norm == pytest.approx(2**0.5)


def test_statistics_of_strings_and_of_a_large_array():
    assert describe(tf.constant(["a"])) is None
    large = np.linspace(-1.0, 1.0, 1 << 20)
    assert sum(describe(large).counts) <= 1 << 18


def test_dead_units():
    assert dead_units(np.array([[0, 1, 0], [0, 2, 0]])) == pytest.approx(2 / 3)


# Findings


def found(tape, target=None, sources=None):
    return {f.kind: f for f in reversed(findings(traversed(tape, target, sources)))}


def test_a_broken_path_is_found_with_its_reason():
    tape, loss, _ = network()
    finding = found(tape, loss)["broken"]
    assert finding.title == "No gradient for lost"
    assert "does not depend" in finding.text
    assert finding.severity == "error"
    assert finding.path == (finding.nodes[0], traversed(tape, loss).targets[0])


def test_a_source_that_the_tape_never_met_is_found():
    frozen = tf.Variable(1.0, trainable=False, name="frozen")
    w = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = w * frozen
    assert "not trainable" in found(tape, y, [w, frozen])["broken"].text


def test_the_first_value_that_is_not_finite_is_found():
    x = tf.Variable([0.0, 1.0])
    with tf.GradientTape(trace="values") as tape:
        y = tf.reduce_sum(tf.tanh(tf.math.log(x)) * 3.0)
    finding = found(tape, y)["nonfinite"]
    assert "value of log (test_graph.py:" in finding.title
    assert "1 of its elements" in finding.text


def test_the_first_gradient_that_is_not_finite_is_found():
    x = tf.Variable([0.0, 1.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.sqrt(x))
    assert "gradient of Variable" in found(tape, y)["nonfinite"].title


def test_vanishing_and_exploding_gradients_are_found():
    x = tf.Variable([0.1, 0.2])
    with tf.GradientTape() as tape:
        y = x
        for _ in range(9):
            y = y * 0.1
    assert "Vanishing gradient" in found(tape, y)["vanishing"].title
    with tf.GradientTape() as tape:
        y = x
        for _ in range(9):
            y = y * 10.0
    assert "Exploding gradient" in found(tape, y)["exploding"].title


def test_a_gradient_of_zeros_is_found():
    x = tf.Variable([-1.0, -2.0], name="x")
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.nn.relu(x))
    every = found(tape, y)
    assert every["zero"].title == "Gradient exactly zero for 1 source"
    assert every["zero"].text.startswith("x: connected")
    assert "vanishing" not in every


def test_dead_units_and_memory_are_found():
    w = tf.Variable(np.array([[1.0, -1.0, -1.0]], "f"))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.nn.relu(tf.ones((4, 1)) @ w))
    every = found(tape, y)
    assert every["dead"].title == "67% dead units in relu"
    assert "relu 48 B" in every["memory"].text


def test_a_healthy_tape_has_no_alarm():
    tape, loss, variables = network()
    assert {f.severity for f in findings(traversed(tape, loss, variables[:2]))} == {"information"}
