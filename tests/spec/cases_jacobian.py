"""Golden cases of A8 and A9: Jacobians."""

from __future__ import annotations

import numpy as np

from spec.cases import USED, case, square_of, vector_tape

# A8, A9 Jacobians


@case("A8.1")
def jacobian_of_scalars_and_variables(tf):
    v, x = tf.Variable([1.0, 2.0]), tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.reduce_sum(v * v) * x
        z = v * x
    return tape.jacobian(y, v), tape.jacobian(z, {"x": x, "v": [v]}), tape.jacobian(v, v)


@case("A8.1", says="'list' object has no attribute 'shape'")
def jacobian_of_a_list(tf):
    tape, x, y = vector_tape(tf)
    tape.jacobian([y], x)


@case("A8.2")
def jacobian_shapes(tf):
    a, b = tf.ones((2, 3)), tf.ones((3, 4)) * 2.0
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([a, b])
        y = tf.matmul(a, b)
        empty = a[:0] * 2.0
    return [j.shape.as_list() for j in tape.jacobian(y, [a, b])], tape.jacobian(y, a), tape.jacobian(empty, a)


@case("A8.3")
def jacobian_unconnected(tf):
    tape, x, y = vector_tape(tf, persistent=True)
    u = tf.constant([[1.0, 2.0]])
    n = tf.cast(y, tf.int32)
    return tape.jacobian(y, [u, x]), tape.jacobian(y, u, unconnected_gradients="zero"), tape.jacobian(n, x)


@case("A8.4", says=USED)
def gradient_after_jacobian(tf):
    tape, x, y = vector_tape(tf)
    tape.jacobian(y, x)
    tape.gradient(y, x)


@case("A8.5", says="GradientTape must be created with persistent=True to compute the jacobian with eager execution")
def looped_jacobian_needs_persistence(tf):
    tape, x, y = vector_tape(tf)
    tape.jacobian(y, x, experimental_use_pfor=False)


@case("A8.7")
def jacobian_inside_the_context(tf):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x**3
        return tape.jacobian(y, x)


@case("A8.7")
def hessian_and_third_derivative(tf):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as t3:
        t3.watch(x)
        with tf.GradientTape() as t2:
            t2.watch(x)
            with tf.GradientTape() as t1:
                t1.watch(x)
                y = tf.reduce_sum(x**3) * x[0]
            g = t1.gradient(y, x)
        h = t2.jacobian(g, x)
    return h, t3.jacobian(h, x)


@case("A8.7")
def jacobian_on_a_recording_persistent_tape(tf):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x**3
        j = tape.jacobian(y, x)
    return tape.gradient(j, x)


@case("A8.8")
def looped_and_batched_agree(tf):
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.gather(v, [1, 0, 1]) ** 2
        z = v * v
    loop = {"experimental_use_pfor": False, "parallel_iterations": 1}
    return tape.jacobian(y, v), tape.jacobian(y, v, **loop), tape.jacobian(z, v, **loop)


@case("A9.1")
def batch_jacobian(tf):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.stack([x[:, 0] * x[:, 1], x[:, 0] ** 2, x[:, 1] * 3.0], axis=1)
    return tape.batch_jacobian(y, x)


@case("A9.1", says="'list' object has no attribute 'shape'", differs="a TypeError that names the value and what to do")
def batch_jacobian_of_a_list(tf):
    x = tf.ones((2, 2))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.batch_jacobian(y, [x])


@case("A9.2", says="Shape (2,) must have rank at least 2")
def batch_jacobian_rank(tf):
    tape, x, _ = square_of(tf, [1.0, 2.0])
    tape.batch_jacobian(x * x, x)


@case("A9.2", says="Need first dimension of target shape ((4, 2)) and source shape ((2, 2)) to match.")
def batch_jacobian_first_dimension(tf):
    tape, x, _ = square_of(tf, [[1.0, 2.0], [3.0, 4.0]])
    tape.batch_jacobian(tf.ones((4, 2)), x)


@case("A9.3")
def batch_jacobian_sums_cross_terms(tf):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * tf.reduce_sum(x)
    return tape.batch_jacobian(y, x)


@case("A9.4")
def batch_jacobian_unconnected(tf):
    tape, x, _ = square_of(tf, [[1.0, 2.0], [3.0, 4.0]])
    return tape.batch_jacobian(tf.ones((2, 3)), x)


@case("A9.5", says="A non-persistent GradientTape can only be used tocompute one set")
def batch_jacobian_used(tf):
    tape, x, y = square_of(tf, [[1.0, 2.0], [3.0, 4.0]])
    tape.gradient(y, x)
    tape.batch_jacobian(y, x)


@case("A9.6", says="GradientTape must be created with persistent=True to compute the batch_jacobian with eager execution")
def batch_jacobian_looped(tf):
    tape, x, y = square_of(tf, [[1.0, 2.0], [3.0, 4.0]])
    tape.batch_jacobian(y, x, experimental_use_pfor=False)


@case("A9.7", says="GradientTape must be created with persistent=True to compute the batch_jacobian with parallel_iterations.")
def batch_jacobian_parallel(tf):
    tape, x, y = square_of(tf, [[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]])
    tape.batch_jacobian(y, x, parallel_iterations=2)


@case("A9.8")
def batch_jacobian_empty(tf):
    tape, x, y = square_of(tf, np.zeros((1, 0), np.float32))
    return tape.batch_jacobian(y, x)


@case("A7.37")
def hessian_through_a_gather(tf):
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(tf.gather(v, [0, 2, 0]) ** 3)
        g = inner.gradient(y, v)
    return g, outer.jacobian(g, v)


@case("A8.8")
def looped_and_batched_agree_for_many_ops(tf):
    x = tf.constant([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])
    functions = [
        tf.nn.softmax,
        lambda x: tf.matmul(x, x, transpose_b=True),
        lambda x: tf.sin(x) * tf.reduce_sum(x),
        lambda x: tf.sort(x, axis=1) ** 2,
        lambda x: tf.gather(x, [1, 0, 1], axis=1) ** 2,
        lambda x: tf.concat([x, x * x], 1),
        lambda x: tf.reduce_max(x, axis=1),
        lambda x: tf.cumsum(x, axis=1) ** 2,
        lambda x: tf.norm(x, axis=1),
        lambda x: tf.reduce_logsumexp(x, axis=0),
        lambda x: x[:, ::-1][0] ** 2,
        lambda x: tf.boolean_mask(x, x > 0.0) ** 2,
        lambda x: tf.where(x > 0.0, x * x, x),
        lambda x: tf.einsum("ij,kj->ik", x, x),
        lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(tf.constant([0, 2]), x),
        lambda x: tf.split(x, 3, axis=1)[2] ** 2,
    ]
    found = []
    for f in functions:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = f(x)
        found.append([tape.jacobian(y, x, experimental_use_pfor=batched) for batched in (True, False)])
    return found


@case("A8.7")
def gradient_of_a_jacobian(tf):
    x = tf.constant([[1.0, -2.0], [0.5, 4.0]])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.matmul(tf.nn.softmax(x), x * x)
        j = inner.jacobian(y, x)
        z = tf.reduce_sum(j**2)
    return outer.gradient(z, x)
