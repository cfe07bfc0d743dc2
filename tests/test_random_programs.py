"""Random programs: whatever a small program computes, all ways to differentiate it agree.

``pytest tests/test_random_programs.py --hypothesis-profile=search`` tries thousands instead of a fixed few.
"""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import gradtape as tf
from gradtape.ops import contract, elementwise, indexing, reduce, shape
from gradtape.testing import check_gradients

# Each step is smooth and tame, takes one or two values of any shape, and names what it exercises.


def _flat(x):
    return shape.reshape(x, shape=(-1,))


def _matrix(x):
    """x as a matrix of one row, or its last two axes."""
    return x if x.ndim >= 2 else shape.reshape(x, shape=(1, -1))


def _same(x, y):
    """Two vectors of one length: the shorter is repeated and cut."""
    x, y = _flat(x), _flat(y)
    n, m = x.shape[0], y.shape[0]
    if n < m:
        y, x = _same(y, x)
        return x, y
    return x, indexing.getitem(shape.tile(y, repeats=(-(-n // m),)), index=(slice(n),))


def _outer(x, y):
    x, y = _flat(x), _flat(y)
    return shape.expand_dims(x, axis=1) * shape.expand_dims(y, axis=0)


def _product(x, y):
    x, y = _matrix(x), _matrix(y)
    if x.shape[-1] != y.shape[-1]:
        y = x
    return contract.matmul(x, shape.matrix_transpose(y))


def _gathered(x):
    x = _flat(x)
    last = x.shape[0] - 1
    return indexing.take(x, np.array([0, last, last]))


def _chosen(x, y):
    x, y = _same(x, y)
    return elementwise.where(np.arange(x.shape[0]) % 2 == 0, x, y)


def _half_stopped(x):
    return x + elementwise.stop_gradient(x)


UNARY = [
    elementwise.sin,
    elementwise.tanh,
    elementwise.sigmoid,
    elementwise.softplus,
    lambda x: elementwise.square(x) * 0.5,
    lambda x: elementwise.exp(-elementwise.square(x)),
    lambda x: elementwise.reciprocal(1.5 + elementwise.square(x)),
    lambda x: elementwise.sqrt(1 + elementwise.square(x)),
    lambda x: -x / 3,
    lambda x: reduce.sum(x, axis=0) if x.ndim else x * 2,
    lambda x: reduce.mean(x, axis=-1, keepdims=True) if x.ndim else x,
    lambda x: reduce.logsumexp(x),
    lambda x: reduce.cumsum(_flat(x), axis=0, exclusive=True),
    lambda x: shape.transpose(x, axes=None),
    lambda x: shape.concatenate(_flat(x), shape.flip(_flat(x), axis=0), axis=0),
    lambda x: indexing.getitem(_flat(x), index=(slice(None, None, 2),)),
    lambda x: shape.pad(_flat(x), widths=((1, 0),)),
    _half_stopped,
    _gathered,
]
BINARY = [
    lambda x, y: elementwise.add(*_same(x, y)),
    lambda x, y: elementwise.multiply(*_same(x, y)),
    lambda x, y: elementwise.divide(x, 2 + reduce.sum(elementwise.square(y))),
    lambda x, y: x * reduce.mean(y),
    lambda x, y: elementwise.subtract(reduce.sum(x), y),
    lambda x, y: contract.einsum(*_same(x, y), equation="i,i->"),
    _outer,
    _product,
    _chosen,
]
STEPS = len(UNARY) + len(BINARY)
SHAPES = [(), (2,), (3,), (2, 2), (1, 3)]


class Program:
    """A list of steps (which function, which earlier values); the result uses the last value and all unused ones."""

    def __init__(self, shapes, steps, numbers):
        rng = np.random.default_rng(numbers)
        self.inputs = [np.asarray(rng.uniform(-1.5, 1.5, s)) for s in shapes]
        self.steps = steps

    def __repr__(self):
        return f"Program({[i.shape for i in self.inputs]}, {self.steps})"

    def __call__(self, *inputs):
        values = list(inputs)
        for which, first, second in self.steps:
            x, y = values[first % len(values)], values[second % len(values)]
            value = UNARY[which](x) if which < len(UNARY) else BINARY[which - len(UNARY)](x, y)
            assume(value._array.size <= 12)  # numerical derivatives of order 2 take time
            if isinstance(value._array, np.ndarray):  # not one of many values computed at once
                assume(np.abs(value._array).max(initial=0) < 30)
            values.append(value)
        return values[-1]


programs = st.builds(
    Program,
    st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, STEPS - 1), st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=7),
    st.integers(0, 99),
)
smooth = programs.filter(lambda p: all(which != UNARY.index(_half_stopped) for which, _, _ in p.steps))
"""Programs without stop_gradient, which makes the tape's derivative differ from the true one on purpose."""


def run(program, persistent=False):
    """The tape, the result, and the inputs as watched tensors."""
    inputs = [tf.constant(i) for i in program.inputs]
    with tf.GradientTape(persistent=persistent) as tape:
        tape.watch(inputs)
        result = program(*inputs)
    return tape, result, inputs


def numbers(gradients):
    return [None if g is None else tf.convert_to_tensor(g).numpy() for g in gradients]


def identical(one, two):
    assert [g is None for g in one] == [g is None for g in two]
    for a, b in zip(one, two):
        if a is not None:
            np.testing.assert_array_equal(a, b)


def close(one, two, rtol=1e-11):
    assert [g is None for g in one] == [g is None for g in two]
    for a, b in zip(one, two):
        if a is not None:
            np.testing.assert_allclose(a, b, rtol, rtol * max(1.0, np.abs(b).max(initial=0)))


@given(smooth)
def test_gradients_agree_with_numerical_derivatives(program):
    check_gradients(program, program.inputs, order=1)


@given(smooth)
def test_nested_tapes_agree_with_numerical_derivatives_of_the_gradient(program):
    check_gradients(program, program.inputs, order=2)


@given(programs)
def test_a_persistent_tape_gives_what_a_one_shot_tape_gives(program):
    tape, result, inputs = run(program)
    wanted = numbers(tape.gradient(result, inputs))
    tape, result, inputs = run(program, persistent=True)
    for _ in range(2):
        identical(numbers(tape.gradient(result, inputs)), wanted)


@given(programs)
def test_each_source_alone_gives_what_all_together_give(program):
    tape, result, inputs = run(program, persistent=True)
    together = numbers(tape.gradient(result, inputs))
    identical([numbers([tape.gradient(result, x)])[0] for x in inputs], together)


@given(programs)
def test_variables_give_what_watched_tensors_give(program):
    tape, result, inputs = run(program)
    wanted = numbers(tape.gradient(result, inputs))
    variables = [tf.Variable(i) for i in program.inputs]
    with tf.GradientTape() as tape:
        result = program(*[v.read_value() for v in variables])
    close(numbers(tape.gradient(result, variables)), wanted)


@given(programs)
def test_batched_jacobians_equal_looped_ones(program):
    tape, result, inputs = run(program, persistent=True)
    batched = numbers(tape.jacobian(result, inputs))
    close(batched, numbers(tape.jacobian(result, inputs, experimental_use_pfor=False)))
    summed = [None if j is None else j.sum(axis=tuple(range(result.ndim))) for j in batched]
    close(summed, numbers(tape.gradient(result, inputs)))


@given(smooth)
def test_hessians_are_symmetric_and_batched_equals_looped(program):
    inputs = [tf.constant(i) for i in program.inputs]
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(inputs)
        with tf.GradientTape() as inner:
            inner.watch(inputs)
            result = reduce.sum(program(*inputs))
        gradients = inner.gradient(result, inputs, unconnected_gradients="zero")
        gradients = [tf.convert_to_tensor(g) for g in gradients]
    blocks = [outer.jacobian(g, inputs, unconnected_gradients="zero") for g in gradients]
    looped = [outer.jacobian(g, inputs, unconnected_gradients="zero", experimental_use_pfor=False) for g in gradients]
    for row, other in zip(blocks, looped):
        close(numbers(row), numbers(other))
    sizes = [i.size for i in program.inputs]
    hessian = np.block([[b.numpy().reshape(n, m) for b, m in zip(row, sizes)] for row, n in zip(blocks, sizes)])
    np.testing.assert_allclose(hessian, hessian.T, 1e-9, 1e-9 * max(1.0, np.abs(hessian).max()))


@given(programs)
def test_a_recorded_jacobian_equals_a_recorded_loop(program):
    results = []
    for batched in (True, False):
        inputs = [tf.constant(i) for i in program.inputs]
        with tf.GradientTape() as outer:
            outer.watch(inputs)
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(inputs)
                result = program(*inputs)
            jacobians = tape.jacobian(result, inputs, unconnected_gradients="zero", experimental_use_pfor=batched)
            total = jacobians[0] * jacobians[0]
        results.append(numbers(outer.gradient(total, inputs, unconnected_gradients="zero")))
    close(*results, rtol=1e-10)


@pytest.mark.slow
@given(smooth)
def test_third_order(program):
    assume(sum(i.size for i in program.inputs) <= 4)
    check_gradients(program, program.inputs, order=3, rtol=1e-5)  # three nested differences of rounding
