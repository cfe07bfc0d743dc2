"""Golden cases of A7: what gradient gives and refuses."""

from __future__ import annotations

import collections

import numpy as np

from spec.cases import USED, case, slices, square_of, vector_tape

Point = collections.namedtuple("Point", "x y")


# A7 gradient: state


@case("A7.1", says=USED)
def second_gradient(tf):
    tape, x, y = square_of(tf)
    tape.gradient(y, x)
    tape.gradient(y, x)


@case("A7.1", says=USED)
def gradient_never_entered(tf):
    x = tf.constant(1.0)
    tf.GradientTape(persistent=True).gradient(x, x)


@case("A7.2")
def gradient_inside_the_context(tf):
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        return tape.gradient(y, x)


@case("A7.3")
def persistent_inside_and_outside(tf):
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x**3
        inside = tape.gradient(y, x)
    outside = tape.gradient(y, x)
    return inside, tape.gradient(inside, x), outside, tape.gradient(outside, x)


@case("A7.4", says="Argument `target` should be a list or nested structure of Tensors, Variables or CompositeTensors to be")
def target_none(tf):
    tape, x, _ = square_of(tf)
    tape.gradient(None, x)


@case("A7.4")
def target_none_does_not_consume(tf):
    tape, x, y = square_of(tf)
    try:
        tape.gradient(None, x)
    except TypeError:
        return tape.gradient(y, x)


@case("A7.5")
def errors_before_the_sweep_leave_the_tape(tf):
    tape, x, y = square_of(tf)
    try:
        tape.gradient(y, x, unconnected_gradients="nonsense")
    except ValueError:
        return tape.gradient(y, x)


# A7 targets


@case("A7.6")
def nested_targets(tf):
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y, z = x * x, 2.0 * x
    return tape.gradient({"a": [y], "b": (z,)}, x)


@case("A7.7")
def targets_are_summed(tf):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = tf.reduce_sum(x) * x
    return tape.gradient(y, x), tape.gradient([y, z], x), tape.gradient([y, y, y], x)


@case("A7.8")
def target_that_is_a_source(tf):
    x, u = tf.constant([1.0, 2.0]), tf.constant(5.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        x * x
    return tape.gradient(x, x), tape.gradient(u, u), tape.gradient(u, x), tape.gradient([u, x], [x, u])


@case("A7.9")
def variable_as_target(tf):
    v, w = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = v * v
        w * w
    return tape.gradient(v, v), tape.gradient(v, w), tape.gradient([v, y], v)


@case("A7.10")
def targets_of_other_dtypes(tf):
    i, b, s = tf.constant([1, 2]), tf.constant([True, False]), tf.constant("text")
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        n = tf.cast(x, tf.int32)
    return [tape.gradient(i, i), tape.gradient(b, b), tape.gradient(s, s), tape.gradient(n, x)]


@case("A7.11", says="'float' object has no attribute '_id'", differs="a TypeError that names the value and what to do")
def target_float(tf):
    tape, x, _ = square_of(tf)
    tape.gradient(1.0, x)


@case("A7.12", says="has no attribute '_id'")
def target_indexed_slices(tf):
    tape, x, _ = square_of(tf)
    tape.gradient(slices(tf, [1.0], [0], [2]), x)


@case("A7.13")
def no_targets(tf):
    tape, x, _ = square_of(tf)
    return tape.gradient([], [x])


# A7 sources


@case("A7.14")
def structures_of_sources(tf):
    a, b = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([a, b])
        y = a * a * b
    nests = [
        a,
        [a, b],
        (a, b),
        [a, [b]],
        Point(a, b),
        {"z": a, "a": b},
        collections.OrderedDict([("z", a), ("a", b)]),
        {"z": a, "a": b}.values(),
        [],
        (),
    ]
    return [tape.gradient(y, n) for n in nests]


@case("A7.15")
def repeated_sources(tf):
    tape, x, y = square_of(tf)
    g = tape.gradient(y, [x, x])
    return g, g[0] is g[1]


@case("A7.16")
def intermediates_and_constants_as_sources(tf):
    x, c = tf.constant(3.0), tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * c
        z = y * y
    return tape.gradient(z, [x, y, c])


@case("A7.17", says="", differs="a TypeError that names the value and what to do")
def source_array(tf):
    tape, _, y = square_of(tf)
    try:
        tape.gradient(y, np.ones(2))
    except Exception as error:
        return type(error).__name__


@case("A7.18")
def shape_and_dtype_of_the_source(tf):
    x = tf.constant([[1.0], [2.0]], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.cast(x + tf.ones((3, 1, 4), tf.float64), tf.float16) * 2.0
    return tape.gradient(y, x)


@case("A7.18")
def casts_between_floats(tf):
    x = tf.constant(1.5, tf.float16)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.cast(tf.cast(x, tf.float64) ** 2, tf.float32)
    return tape.gradient(y, x)


# A7 output gradients


@case("A7.20")
def output_gradients_of_many_kinds(tf):
    tape, x, y = vector_tape(tf, persistent=True)
    given = [tf.constant([1.0, 10.0, 100.0]), np.float32([1.0, 10.0, 100.0]), tf.Variable([1.0, 10.0, 100.0]), [tf.ones(3)]]
    return [tape.gradient(y, x, output_gradients=g) for g in given]


@case("A7.20", says="was expected to be a double tensor but is a float tensor")
def output_gradient_of_another_dtype(tf):
    tape, x, y = vector_tape(tf)
    tape.gradient(y, x, output_gradients=np.ones(3))


@case("A7.21", differs="a Python list for one vector target is read as that vector")
def list_for_one_vector_target(tf):
    tape, x, y = vector_tape(tf)
    return tape.gradient(y, x, output_gradients=[1.0, 10.0, 100.0])


@case("A7.22")
def scalar_output_gradient_broadcasts(tf):
    tape, x, y = vector_tape(tf)
    return tape.gradient(y, x, output_gradients=tf.constant(2.0))


@case("A7.22", says="Incompatible shapes: [2] vs. [3]")
def output_gradient_of_another_shape(tf):
    tape, x, y = vector_tape(tf)
    tape.gradient(y, x, output_gradients=tf.ones(2))


@case("A7.23")
def extra_output_gradients(tf):
    tape, x, y = vector_tape(tf)
    return tape.gradient(y, x, output_gradients=[tf.ones(3), tf.ones(5)])


@case("A7.24", says="Attempt to convert a value (None)", differs="None stands for ones")
def none_among_output_gradients(tf):
    tape, x, y = vector_tape(tf)
    return tape.gradient(y, x, output_gradients=[None])


@case("A7.25")
def output_gradient_of_a_source(tf):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.gradient([x, y], x, output_gradients=[tf.constant([10.0, 20.0]), tf.ones(2)])


# A7 unconnected


@case("A7.26", says="Unknown value for unconnected_gradients: 'nonsense'")
def unconnected_nonsense(tf):
    tape, x, y = square_of(tf)
    tape.gradient(y, x, unconnected_gradients="nonsense")


@case("A7.26", says="Unknown value for unconnected_gradients: None")
def unconnected_none_object(tf):
    tape, x, y = square_of(tf)
    tape.gradient(y, x, unconnected_gradients=None)


@case("A7.26", says="Unknown value for unconnected_gradients: 'ZERO'")
def unconnected_is_case_sensitive(tf):
    tape, x, y = square_of(tf)
    tape.gradient(y, x, unconnected_gradients="ZERO")


@case("A7.27")
def unconnected_zero(tf):
    tape, x, y = square_of(tf, persistent=True)
    sources = [x, tf.constant([1, 2]), tf.constant(["a"]), tf.Variable([[1.0], [2.0]]), tf.constant(True)]
    zero = tape.gradient(y, sources, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    return zero, tape.gradient(y, sources, unconnected_gradients="none")


@case("A7.27")
def connected_zero_is_a_tensor(tf):
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * 0.0
    return tape.gradient(y, x), tape.gradient(y, x, unconnected_gradients="zero")


@case("A7.28")
def unconnected_enum(tf):
    return {member.name: member.value for member in tf.UnconnectedGradients}


@case("A7")
def unused_output_as_source(tf):
    x = tf.constant([1.0, 2.0, 3.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        first, second = tf.split(x, 2)
        y = first * first
    return tape.gradient(y, [second, first])


# A7 complex numbers


@case("A7.29")
def complex_convention(tf):
    z = tf.constant(1 + 2j, tf.complex128)
    functions = [
        lambda z: z * z,
        tf.abs,
        tf.math.real,
        tf.math.imag,
        tf.math.conj,
        tf.math.angle,
        tf.exp,
        lambda z: tf.math.real(z * tf.math.conj(z)),
        lambda z: 1.0 / z,
        lambda z: z**3,
        tf.sin,
        tf.math.log,
        tf.sqrt,
        tf.tanh,
        tf.square,
        tf.negative,
        lambda z: z - 2.0 * z,
        tf.reduce_sum,
        tf.math.reciprocal,
    ]
    found = []
    for f in functions:
        with tf.GradientTape() as tape:
            tape.watch(z)
            y = f(z)
        found.append(tape.gradient(y, z))
    return found


@case("A7.29")
def complex_matmul_division_and_power(tf):
    a = tf.constant([[1 + 1j, 2 - 1j], [0.5j, 3 + 0j]], tf.complex64)
    b = tf.constant([[2 + 0j, 1j], [1 - 1j, 1 + 2j]], tf.complex64)
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        y = tf.abs(tf.reduce_sum(tf.matmul(a, b) / (a + 2.0) ** 2))
    return tape.gradient(y, [a, b])


@case("A7.30")
def complex_target(tf):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.complex(x, x * x) * tf.constant(2 + 3j, tf.complex64)
    return tape.gradient(y, x)


@case("A7.31")
def parts_of_a_complex_number(tf):
    a, b = tf.constant(1.0), tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        y = tf.complex(a, b) ** 2
    return tape.gradient(y, [a, b])


# A7 IndexedSlices


@case("A7.32")
def gather_from_a_source(tf):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.gather(x, [[2, 0], [2, 1]]) * tf.constant([[[1.0], [2.0]], [[3.0], [4.0]]])
    return tape.gradient(y, x)


@case("A7.32")
def lookups_of_a_variable(tf):
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    found = []
    for read in (
        lambda: tf.gather(v, [1, 1]),
        lambda: tf.nn.embedding_lookup(v, [2, 0]),
        lambda: v.sparse_read(tf.constant([1], tf.int64)),
        lambda: tf.gather(v, 1),
    ):
        with tf.GradientTape() as tape:
            y = read() * 2.0
        found.append(tape.gradient(y, v))
    return found


@case("A7.32")
def gather_nd_of_a_tensor(tf):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.gather_nd(x, [[1], [0]]) * 2.0
        z = tf.gather_nd(x, [[1, 0], [0, 1]]) * 2.0
    return tape.gradient(y, x), tape.gradient(z, x)


@case("A7.33")
def gather_from_an_intermediate(tf):
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.gather(x * 2.0, [0, 0, 2])
    return tape.gradient(y, x)


@case("A7.34")
def dense_lookups(tf):
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    found = []
    for read in (lambda: tf.gather(v, [1, 1], axis=1), lambda: v.gather_nd([[1], [0]]), lambda: v[0], lambda: v[:, 1]):
        with tf.GradientTape() as tape:
            y = read() * 2.0
        found.append(tape.gradient(y, v))
    return found


@case("A7.35")
def aggregation(tf):
    v = tf.Variable([[1.0], [2.0], [3.0]])
    with tf.GradientTape(persistent=True) as tape:
        a = tf.gather(v, [0, 2])
        b = tf.gather(v, tf.constant([2], tf.int64)) * 3.0
        c = tf.gather(v, [1]) * 5.0
        d = v * 2.0

    def rows(g):  # in no particular order
        pairs = sorted(zip(g.indices.numpy().tolist(), g.values.numpy().tolist()))
        return g.indices.dtype.name, g.dense_shape, [str(p) for p in pairs]

    return rows(tape.gradient([a, c], v)), tape.gradient([a, d], v), tape.gradient([a], v), rows(tape.gradient([b, a], v))


@case("A7.36")
def indexed_slices_to_tensor(tf):
    s = slices(tf, [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [2, 0, 2], [3, 2])
    n = -s
    return [
        tf.convert_to_tensor(s),
        tf.reduce_sum(s),
        tf.ones((3, 2)) * s,
        n,
        s.shape.as_list(),
        s.dtype.name,
        s.dense_shape,
        np.array(tf.convert_to_tensor(s)),
    ]


@case("A7.36", says="unsupported operand type(s)")
def indexed_slices_have_no_arithmetic(tf):
    slices(tf, [1.0], [0], [2]) * 2.0


@case("A7.36", says="Tensor conversion requested for IndexedSlices for argument `value` without dense_shape")
def indexed_slices_without_shape(tf):
    tf.convert_to_tensor(slices(tf, [1.0], [0]))


@case("A7.36", says="Incompatible tensor conversion requested to `dtype`")
def indexed_slices_to_another_dtype(tf):
    tf.convert_to_tensor(slices(tf, [1.0], [0], [2]), tf.float64)


@case("A7.37")
def jacobian_of_a_gather_is_dense(tf):
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.gather(x, [2, 2, 0]) ** 2
    return tape.jacobian(y, x)


# A7 ops without gradient


@case("A7.38")
def nondifferentiable_ops(tf):
    x = tf.constant([1.5, -2.5])
    found = {}
    functions = {
        "floor": tf.floor,
        "ceil": tf.math.ceil,
        "round": tf.round,
        "rint": tf.math.rint,
        "sign": tf.sign,
        "zeros_like": tf.zeros_like,
        "ones_like": tf.ones_like,
        "floordiv": lambda x: x // 2.0,
        "stop": tf.stop_gradient,
        "argmax": lambda x: tf.cast(tf.argmax(x), tf.float32),
        "less": lambda x: tf.cast(x < 1.0, tf.float32),
        "shape": lambda x: tf.cast(tf.shape(x), tf.float32),
        "size": lambda x: tf.cast(tf.size(x), tf.float32),
        "rank": lambda x: tf.cast(tf.rank(x), tf.float32),
        "equal": lambda x: tf.cast(x == x, tf.float32),
    }
    for name, f in functions.items():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x) * 1.0
        found[name] = tape.gradient(y, x)
    return found


@case("A7.41", says="my own text")
def errors_in_a_rule_propagate(tf):
    @tf.custom_gradient
    def f(x):
        def grad(dy):
            raise KeyError("my own text")

        return x * 2.0, grad

    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    tape.gradient(y, x)
