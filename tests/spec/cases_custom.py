"""Golden cases of part C: custom gradients and other ways to differentiate."""

from __future__ import annotations

import numpy as np

from spec.cases import case


def one(tf, f, x, **options):
    """The gradient of f at one watched x."""
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x, **options)


@case("C1.1")
def used_in_both_ways_and_on_methods(tf):
    class Owner:
        factor = 5.0

        @tf.custom_gradient
        def scaled(self, x):
            return x * 1.0, lambda dy: (None, dy * self.factor)

    @tf.custom_gradient()
    def called(x):
        return x * 1.0, lambda dy: dy * 7.0

    @tf.custom_gradient
    def bare(x):
        return x * 1.0, lambda dy: dy * 9.0

    return one(tf, called, 1.0), one(tf, bare, 1.0), bare.__name__, callable(bare.__wrapped__)


@case("C1.2", says="Cannot iterate over a scalar tensor.")
def must_return_a_pair(tf):
    tf.custom_gradient(lambda x: x * 2.0)(tf.constant(1.0))


@case("C1.3")
def arguments_arrive_unconverted(tf):
    seen = []

    @tf.custom_gradient
    def f(a, b, v):
        seen.extend([type(a).__name__, type(b).__name__, isinstance(v, tf.Variable)])
        return tf.constant(1.0), lambda dy: (None, None, None)

    f(1.0, np.ones(1), tf.Variable(1.0))
    return seen


@case("C1.4")
def nests_and_unused_outputs(tf):
    seen = []

    @tf.custom_gradient
    def f(parts):
        a, b = parts["a"], parts["b"]

        def grad(*dys):
            seen.extend(dys)
            return [dys[0] * 10.0, dys[0] * 20.0]

        return [a * b, a + b], grad

    a, b = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        y = f({"a": a, "b": b})[0] * 2.0
    return tape.gradient(y, [a, b]), seen


@case("C1.4", says="custom_gradient function expected to return 2 gradients, but returned 1 instead.")
def wrong_count_of_gradients(tf):
    @tf.custom_gradient
    def f(a, b):
        return a * b, lambda dy: dy

    a = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(a)
        y = f(a, a)
    tape.gradient(y, a)


@case("C1.5")
def gradient_entries_may_be_none(tf):
    @tf.custom_gradient
    def f(a, b):
        return a * b, lambda dy: (None, dy * 3.0)

    a, b = tf.constant(2.0), tf.constant(4.0)
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        y = f(a, b)
    return tape.gradient(y, [a, b])


@case("C1.6")
def keywords_need_no_gradient(tf):
    @tf.custom_gradient
    def f(x, factor=1.0):
        return x * factor, lambda dy: dy * factor * 10.0

    return one(tf, lambda x: f(x, factor=3.0), 2.0)


@case("C1.7", says="grad_fn must accept keyword argument 'variables'")
def variables_must_be_accepted(tf):
    v = tf.Variable(3.0)

    @tf.custom_gradient
    def f(x):
        return x * v, lambda dy: dy

    f(tf.constant(1.0))


@case("C1.7")
def variables_are_reported(tf):
    v, fixed = tf.Variable(3.0), tf.Variable(5.0, trainable=False)
    seen = []

    @tf.custom_gradient
    def f(x, w):
        def grad(dy, variables=None):
            seen.extend([len(variables), variables[0] is v])
            return (dy * 7.0, dy * 8.0), [dy * 9.0]

        return x * v * fixed * w, grad

    x, w = tf.constant(1.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x, w)
    return tape.gradient(y, [x, w, v, fixed]), seen


@case("C1.7", says="Must return gradient for each variable from @custom_gradient grad_fn.")
def variable_gradients_are_counted(tf):
    v = tf.Variable(3.0)

    @tf.custom_gradient
    def f(x):
        return x * v, lambda dy, variables=None: (dy, [])

    one(tf, f, 1.0)


@case("C1.7")
def unused_variables_keyword(tf):
    @tf.custom_gradient
    def f(x):
        return x * 2.0, lambda dy, variables=None: dy * (3.0 if variables is None else 5.0)

    return one(tf, f, 1.0)


@case("C1.8")
def outputs_are_new_tensors_in_their_structure(tf):
    @tf.custom_gradient
    def f(x):
        return x, lambda dy: dy

    @tf.custom_gradient
    def g(x):
        return {"b": np.float32(1.0), "a": (x, 2.0)}, lambda *dys: dys[0]

    x = tf.constant(3.0)
    return f(x) is x, f(x), g(x)


@case("C1.9")
def the_body_does_not_count(tf):
    @tf.custom_gradient
    def f(x):
        return x * x * x, lambda dy: dy * 100.0

    return one(tf, f, 2.0)


@case("C1.10")
def second_order(tf):
    @tf.custom_gradient
    def f(x):
        return x**3, lambda dy: dy * 10.0 * x * x

    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        g = inner.gradient(y, x)
    return g, outer.gradient(g, x)


@case("C1.10")
def second_order_overridden(tf):
    @tf.custom_gradient
    def slope(x):
        return 10.0 * x * x, lambda dy: dy * 777.0

    @tf.custom_gradient
    def f(x):
        return x**3, lambda dy: dy * slope(x)

    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        g = inner.gradient(y, x)
    return g, outer.gradient(g, x)


@case("C1.11", says="division by zero")
def errors_in_grad_fn(tf):
    one(tf, tf.custom_gradient(lambda x: (x * 2.0, lambda dy: 1 / 0)), 1.0)


@case("C2.1")
def recompute_runs_the_body_twice(tf):
    calls = []

    @tf.recompute_grad
    def f(x, unused):
        calls.append(1)
        return tf.sin(x) ** 2

    x, u = tf.constant(2.0), tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch([x, u])
        y = f(x, u)
    forward = len(calls)
    return tape.gradient(y, [x, u]), forward, len(calls), callable(f.__wrapped__)


@case("C2.2")
def recompute_with_variables(tf):
    v = tf.Variable(3.0)
    f = tf.recompute_grad(lambda x: tf.exp(x * v) * v)
    x = tf.constant(0.5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, [x, v])


@case("C2.2")
def recompute_twice_differentiated(tf):
    f = tf.recompute_grad(lambda x: tf.exp(x * 3.0))
    x = tf.constant(0.5)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        g = inner.gradient(y, x)
    return g, outer.gradient(g, x)


@case("C2.2", says="recompute_grad tried to transpose grad", differs="second order works with variables too")
def recompute_twice_differentiated_with_variables(tf):
    v = tf.Variable(3.0)
    f = tf.recompute_grad(lambda x: tf.exp(x * v) * v)
    x = tf.constant(0.5)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        g = inner.gradient(y, [x, v])
    return g, outer.gradient(g[0], [x, v])


@case("C2.2")
def recompute_with_nested_arguments(tf):
    f = tf.recompute_grad(lambda parts, scale=1.0: tf.reduce_sum(parts[0] * parts[1][0]) * scale)
    a, b = tf.constant([1.0, 2.0]), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        y = f([a, [b]], scale=2.0)
    return tape.gradient(y, [a, b])


@case("C3")
def stop_gradient(tf):
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        s = tf.stop_gradient(x * x)
        y = s * x
        tape.watch(s)
        z = s * s
    return tf.stop_gradient([1.0, 2.0]), tape.gradient(y, x), tape.gradient(z, x), tape.gradient(z, s)


@case("C4")
def grad_pass_through(tf):
    z, x = tf.Variable(3.0), tf.Variable(0.0)
    with tf.GradientTape() as tape:
        y = tf.grad_pass_through(x.assign)(z**2)
    return x, tape.gradient(y, [z, x])


@case("C4")
def straight_through_rounding(tf):
    return one(tf, lambda x: tf.grad_pass_through(tf.round)(x) * 2.0, [1.4, 2.6])


@case("C6", says="tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead.")
def gradients_function(tf):
    x = tf.constant(1.0)
    tf.gradients(x * x, x)


@case("C6", says="tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead.")
def hessians_function(tf):
    x = tf.constant(1.0)
    tf.hessians(x * x, x)


@case("C8")
def compute_gradient(tf):
    x, y = tf.constant([[1.0, 2.0], [3.0, 4.0]], tf.float64), tf.constant([[0.5], [2.0]], tf.float64)
    theoretical, numerical = tf.test.compute_gradient(tf.matmul, [x, y])
    return theoretical, [np.round(n, 6) for n in numerical]


@case("C8")
def compute_gradient_of_complex(tf):
    z = tf.constant([1 + 2j], tf.complex128)
    theoretical, numerical = tf.test.compute_gradient(lambda z: z * z, [z])
    return theoretical, [np.round(n, 6) for n in numerical]


@case("C8", says="")
def compute_gradient_needs_a_list(tf):
    try:
        tf.test.compute_gradient(tf.sin, tf.constant(1.0))
    except ValueError:
        return "ValueError"
