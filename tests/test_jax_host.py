"""Python that is called from compiled programs: numbers arrive, and come back, with all their digits."""

import numpy as np
import pytest

import gradtape as tf

jax = pytest.importorskip("jax")

from gradtape.xp.jax_host import ask, tell  # noqa: E402

VALUES = {
    "float64": [0.1, 1 / 3], "complex128": [0.1 + 0.7j, 1 / 3], "int64": [2**40 + 1, -5], "uint64": [2**63 + 1, 7],
    "float32": [0.1, 3.0], "complex64": [0.1j, 2.0], "int32": [-3, 4], "bool": [True, False], "float16": [0.1, 2.0],
}  # fmt: skip


def on_another_thread(function, array):
    """Compiled where 64-bit types are known, run where they are not."""
    with jax.enable_x64(True):
        program = jax.jit(function).lower(array).compile()
        array = jax.device_put(array)
    return np.asarray(program(array))


@pytest.mark.parametrize("dtype", VALUES)
def test_every_dtype_there_and_back(dtype):
    array, seen = np.array([VALUES[dtype]], dtype), []

    def reverse(x):
        seen.append(x)
        return x[..., ::-1]

    answer = on_another_thread(lambda x: ask(reverse, x.shape, x.dtype, x), array)
    assert answer.dtype == seen[0].dtype == array.dtype
    np.testing.assert_array_equal(seen[0], array)
    np.testing.assert_array_equal(answer, array[:, ::-1])


def test_a_batch_is_asked_once():
    shapes = []

    def total(x):
        shapes.append(x.shape)
        return x.sum(axis=-1)

    rows = np.arange(6.0).reshape(2, 3)
    answer = on_another_thread(jax.vmap(lambda x: ask(total, (), x.dtype, x)), rows)
    assert answer.tolist() == [3.0, 12.0]
    assert shapes == [(2, 3)]


def test_telling_keeps_the_digits():
    told = []

    def program(x):
        tell(told.append, [x])
        return x

    on_another_thread(program, np.array(0.1))
    jax.effects_barrier()
    assert told == [0.1]


def test_square_roots_of_matrices_in_a_program_that_runs_on_many_threads():
    @tf.function
    def roots(x):
        a, b = tf.sin(x) @ tf.cos(x) + x, tf.cos(x) @ tf.cos(x) + x
        return tf.linalg.sqrtm(a[:2, :2]), tf.linalg.sqrtm(b[:2, :2]), tf.reduce_sum(a @ b @ a @ b)

    first, second, _ = roots(3.0 * tf.eye(300, dtype=tf.float64))
    assert first.dtype == second.dtype == tf.float64


def test_an_error_in_a_kernel_ends_the_making_of_a_program():
    with pytest.raises(tf.errors.InvalidArgumentError, match="complex64, complex128"):
        tf.function(tf.linalg.logm)(tf.eye(2))
