"""Golden cases of part E: eager tensors, conversion, operators, indexing, shapes, dtypes, nests."""

from __future__ import annotations

import copy
import pickle  # the fact is that tensors can be pickled

import numpy as np

from spec.cases import case, failing

NONE = None  # what == makes of it is the point here


# E1 Creation and conversion


@case("E1.1")
def constants(tf):
    given = [
        1,
        2**40,
        -(2**31),
        1.5,
        True,
        2j,
        "a",
        [1, 2.5],
        [[True]],
        np.float64(1.0),
        np.int8([1]),
        [],
        [[]],
        b"b",
        ["a", "b"],
    ]
    return [tf.constant(g) for g in given]


@case("E1.1")
def constant_shapes(tf):
    return tf.constant(3.0, shape=(2, 2)), tf.constant([1, 2, 3, 4], shape=[2, 2]), tf.constant(1, tf.float64, [1])


@case("E1.1", says="Eager execution of tf.constant with unsupported shape. Tensor")
def constant_of_wrong_shape(tf):
    tf.constant([1, 2, 3], shape=(2, 2))


@case("E1.2", says="Cannot convert 1.5 to EagerTensor of dtype int32")
def float_to_integer(tf):
    tf.constant(1.5, tf.int32)


@case("E1.2")
def arrays_bend(tf):
    return tf.constant(np.array([1.7, -1.7]), tf.int32), tf.constant(np.array([1, 2]), tf.float16), tf.constant(1, tf.complex64)


@case("E1.2", says="with dtype tf.float64, but got dtype tf.float32.")
def constant_of_a_tensor(tf):
    tf.constant(tf.constant(1.0), tf.float64)


@case("E1.3", says="Tensor conversion requested dtype float64 for Tensor with dtype float32")
def converted_to_another_dtype(tf):
    tf.convert_to_tensor(tf.constant(1.0), tf.float64)


@case("E1.3")
def hints_are_soft(tf):
    return tf.convert_to_tensor(1, dtype_hint=tf.float32), tf.convert_to_tensor(1.5, dtype_hint=tf.int32)


@case("E1.3", says="Attempt to convert a value (None) with an unsupported type (<class 'NoneType'>) to a Tensor.")
def convert_none(tf):
    tf.convert_to_tensor(None)


@case("E1.3", says="with an unsupported type (<class 'object'>) to a Tensor.")
def convert_object(tf):
    tf.convert_to_tensor(object())


@case("E1.4", says="Can't convert non-rectangular Python sequence to Tensor.")
def ragged(tf):
    tf.constant([[1.0], [1.0, 2.0]])


@case("E1.4", says="Can't convert non-rectangular Python sequence to Tensor.")
def ragged_depth(tf):
    tf.convert_to_tensor([[1.0], 2.0])


@case("E1.4", says="to Tensor")
def mixed_types(tf):
    tf.constant([1.0, "a"])


@case("E1.5")
def lists_of_tensors_are_packed(tf):
    a, b = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([a, b])
        y = tf.convert_to_tensor([a * b, [1.0][0], b]) * tf.constant([1.0, 2.0, 3.0])
        z = tf.reduce_sum([[a, b], [b, 1.0]])
    return y, tape.gradient(y, [a, b]), tape.gradient(z, [a, b])


@case("E1.5", says="")
def constant_refuses_lists_of_tensors(tf):
    t = tf.constant([1.0])
    return failing(lambda: tf.constant([t, t]))


@case("E1.6")
def tensor_class(tf):
    return isinstance(tf.constant(1.0), tf.Tensor), isinstance(tf.constant(1.0) + 1.0, tf.Tensor), isinstance(1.0, tf.Tensor)


@case("E1.7")
def casts(tf):
    x = tf.constant([1.9, -1.9, 0.0])
    return tf.cast(x, tf.int32), tf.cast(x, tf.bool), tf.cast(x, tf.complex64), tf.cast([1, 0], tf.bool), tf.cast(3, tf.float64)


# E2 Operators


@case("E2.1")
def operators(tf):
    x, y = tf.constant([7.0, -7.0]), tf.constant([2.0, 3.0])
    i, j = tf.constant([7, -7]), tf.constant([2, 3])
    p, q = tf.constant([True, False]), tf.constant([True, True])
    return [
        x + y,
        x - y,
        x * y,
        x / y,
        x // y,
        x % y,
        abs(x) ** y,
        -x,
        abs(x),
        x < y,
        x <= y,
        x > y,
        x >= y,
        x == y,
        x != y,
        1 + x,
        1 - x,
        2 * x,
        2 / x,
        7 // x,
        7 % x,
        2**x,
        i & j,
        i | j,
        i ^ j,
        ~i,
        p & q,
        p | q,
        p ^ q,
        ~p,
        i // j,
        i % j,
        -i,
        i**j,
        (1.0, 2.0) * x,
        x * [2.0, 3.0],
        tf.ones((1, 2)) @ tf.ones((2, 3)),
        True & p,
        3 & i,
    ]


@case("E2.1")
def absent_operators(tf):
    x, b = tf.constant(1.0), tf.constant(True)
    return failing(
        lambda: +x, lambda: tf.constant(1) << 1, lambda: tf.constant(1) >> 1, lambda: divmod(x, x), lambda: x & x, lambda: -b
    )


@case("E2.2")
def division(tf):
    found = [tf.constant(7, d) / tf.constant(2, d) for d in ("int8", "int16", "int32", "int64", "uint8", "float16")]
    with np.errstate(all="ignore"):
        found += [tf.constant(1.0) / 0.0, tf.constant(-1.0) / 0.0, tf.constant(0.0) / 0.0]
    return [
        *found,
        tf.constant(-7) // 2,
        tf.constant(-7) % 3,
        tf.constant(-7.5) // 2.0,
        tf.constant(-7.5) % 2.0,
        7 / tf.constant(2),
    ]


@case("E2.2", says="`x` and `y` must have the same dtype, got tf.float32 != tf.int32.")
def division_of_different_dtypes(tf):
    tf.constant(1.0) / tf.constant(1)


@case("E2.2", says="Integers to negative integer powers are not allowed")
def negative_integer_power(tf):
    tf.constant(2) ** tf.constant(-1)


@case("E2.2", says="Integer division by zero")
def integer_division_by_zero(tf):
    tf.constant(1) // tf.constant(0)


@case("E2.3", says="must be == 2: 1")
def matmul_of_vectors(tf):
    tf.ones(2) @ tf.ones(2)


@case("E2.3", says="Matrix size-incompatible: In[0]: [2,3], In[1]: [2,3]")
def matmul_of_wrong_sizes(tf):
    tf.ones((2, 3)) @ tf.ones((2, 3))


@case("E2.4", says="Incompatible shapes: [3] vs. [2] [Op:AddV2]")
def unbroadcastable(tf):
    tf.ones(3) + tf.ones(2)


@case("E2.4")
def equality_never_fails(tf):
    x = tf.ones(3)
    return x == tf.ones(2), x != tf.ones(2), x == NONE, x != NONE, x == tf.ones((2, 1))


@case("E2.5")
def in_place_operators_rebind(tf):
    x = tf.constant(1.0)
    y = x
    y += 1.0
    y *= 3.0
    return x, y


@case("E2.5", says="object does not support item assignment")
def item_assignment(tf):
    tf.constant([1.0])[0] = 2.0


@case("E2.6")
def arrays_and_tensors(tf):
    t = tf.constant([1.0, 2.0])
    return np.float32([1.0, 1.0]) + t, np.ones(2) * t, np.float64(2.0) * t, t - np.ones(2)


@case("E2.6")
def numpy_functions_of_tensors(tf):
    t = tf.constant([1.0, 2.0])
    return np.multiply(t, 2), np.sin(t), np.mean(t)


@case("E2.6", differs="NumPy's functions of a watched tensor are recorded and give tensors")
def numpy_functions_of_watched_tensors(tf):
    t = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(t)
        return np.multiply(t, 2), np.sin(t), np.mean(t)


# E3 Dtype rules


@case(
    "E3.1",
    says="cannot compute AddV2 as input #1(zero-based) was expected to be a float tensor but is a int32 tensor [Op:AddV2]",
)
def float_plus_integer(tf):
    tf.constant(1.0) + tf.constant(1)


@case("E3.1", says="cannot compute Mul as input #1(zero-based) was expected to be a half tensor but is a bfloat16 tensor")
def half_times_bfloat16(tf):
    tf.constant(1.0, tf.float16) * tf.constant(1.0, tf.bfloat16)


@case("E3.1", says="cannot compute Sub as input #1(zero-based) was expected to be a int32 tensor but is a int64 tensor")
def integers_of_two_widths(tf):
    tf.constant(1) - tf.constant(1, tf.int64)


@case("E3.1", says="cannot compute ConcatV2 as input #1(zero-based) was expected to be a float tensor but is a double tensor")
def concat_of_dtypes(tf):
    tf.concat([tf.ones(1), tf.ones(1, tf.float64)], 0)


@case("E3.1", says="cannot compute Pack as input #1(zero-based) was expected to be a float tensor but is a double tensor")
def stack_of_dtypes(tf):
    tf.stack([tf.ones(1), tf.ones(1, tf.float64)])


@case("E3.1", says="cannot compute SelectV2 as input #2(zero-based) was expected to be a float tensor but is a double tensor")
def where_of_dtypes(tf):
    tf.where(tf.constant(True), tf.ones(1), tf.ones(1, tf.float64))


@case("E3.1", says="cannot compute Less as input #1(zero-based) was expected to be a float tensor but is a int32 tensor")
def comparison_of_dtypes(tf):
    tf.constant(1.0) < tf.constant(1)  # noqa: B015


@case("E3.1", says="cannot compute MatMul as input #1(zero-based) was expected to be a float tensor but is a double tensor")
def matmul_of_dtypes(tf):
    tf.matmul(tf.ones((1, 1)), tf.ones((1, 1), tf.float64))


@case("E3.2")
def python_values_bend(tf):
    f, i, d = tf.constant(1.5), tf.constant(3), tf.constant(1.5, tf.float64)
    return f + 1, f + True, 1 + f, 2**f, d * 2, i + 1, 1 - i, i * True, f * [1, 2], tf.constant(1j, tf.complex64) + 2.0


@case("E3.2", says="was expected to be a int32 tensor but is a float tensor")
def integer_plus_python_float(tf):
    tf.constant(1) + 1.5


@case("E3.2", says="Cannot convert 1.5 to EagerTensor of dtype int32")
def python_float_plus_integer(tf):
    1.5 + tf.constant(1)


@case("E3.2")
def other_python_values_fail(tf):
    return failing(
        lambda: tf.constant(1) + 2.0,
        lambda: tf.constant(1.0) + 1j,
        lambda: tf.constant(1.0) + "a",
        lambda: tf.constant(1.0) + None,
    )


@case("E3.3")
def numpy_values_bend(tf):
    f, i = tf.constant([1.5, 2.5]), tf.constant([1, 2])
    return (
        f + np.ones(2),
        np.ones(2) + f,
        i + np.array([1, 2]),
        f * np.float64(2.0),
        np.float64(2.0) * f,
        i * np.int64(3),
        f + np.arange(2),
    )


@case("E3.5")
def op_errors(tf):
    try:
        tf.ones(3) + tf.ones(2)
    except tf.errors.InvalidArgumentError as error:
        return [
            isinstance(error, tf.errors.OpError),
            isinstance(error, ValueError),
            error.error_code,
            error.op,
            error.node_def,
            "Incompatible shapes" in error.message,
        ]


# E4 Python protocol


@case("E4.1")
def numpy_of_tensors(tf):
    return (
        tf.constant([1.0, 2.0]).numpy(),
        tf.constant(1.5).numpy(),
        tf.constant("a").numpy(),
        np.array(tf.constant([1, 2])),
        tf.constant(2).numpy(),
    )


@case("E4.1")
def numpy_is_a_copy(tf):
    t = tf.constant([1.0, 2.0])
    t.numpy()[:] = 9.0
    np.array(t)[:] = 9.0
    return t


@case("E4.2")
def truth(tf):
    return [bool(tf.constant(v)) for v in (1.0, 0, [3], [[0.0]], True)] + [bool(tf.zeros((0,)))]


@case("E4.2", says="The truth value of an array with more than one element is ambiguous")
def truth_of_a_vector(tf):
    bool(tf.constant([1.0, 2.0]))


@case("E4.3")
def length_and_iteration(tf):
    t = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    a, b = t
    return len(t), list(t), a, b, list(tf.zeros((0, 2)))


@case("E4.3", says="Scalar tensor has no `len()`")
def length_of_a_scalar(tf):
    len(tf.constant(1.0))


@case("E4.3", says="Cannot iterate over a scalar tensor.")
def iteration_over_a_scalar(tf):
    list(tf.constant(1.0))


@case("E4.4")
def python_numbers(tf):
    return (
        float(tf.constant(1.5)),
        int(tf.constant(2.9)),
        complex(tf.constant(1.5)),
        [10, 20, 30][tf.constant(1)],
        list(range(tf.constant(3))),
    )


@case("E4.4", says="")
def index_of_a_float(tf):
    return failing(lambda: [1, 2][tf.constant(1.0)], lambda: float(tf.constant([1.0, 2.0])))[1:]


@case("E4.5", says="Tensor is unhashable. Instead, use tensor.ref() as the key.")
def unhashable(tf):
    hash(tf.constant(1.0))


@case("E4.5")
def references(tf):
    t = tf.constant(1.0)
    return t.ref() == t.ref(), t.ref() == tf.constant(1.0).ref(), t.ref().deref() is t, len({t.ref(), t.ref()})


@case("E4.6")
def membership(tf):
    t = tf.constant(1.0)
    return t in [tf.constant(1.0)], t in [tf.constant(2.0)], failing(lambda: tf.ones(2) in [tf.ones(2)])


@case("E4.7")
def texts(tf):
    many = [
        tf.constant(v)
        for v in ([1.0, 2.0, 3.0], 1.5, 3, [True], "a", [["a", "b"]], 1 + 2j, np.float64(2.0), [], [[1, 2], [3, 4]])
    ]
    return [repr(t) for t in many] + [str(t) for t in many] + [f"{many[1]:.3f}", f"{many[0]}", f"{many[2]:d}"]


@case("E4.7")
def texts_of_half_types(tf):
    return [repr(tf.constant([1.0, 2.5], d)) for d in ("float16", "float64")], str(tf.constant(1.5, tf.bfloat16))


@case("E4.8")
def copies(tf):
    t = tf.constant([1.0, 2.0])
    return copy.copy(t) is t, copy.deepcopy(t) is t, pickle.loads(pickle.dumps(t))


@case("E4.9")
def attributes(tf):
    t = tf.constant([[1.0, 2.0]])
    names = [
        "backing_device",
        "consumers",
        "cpu",
        "device",
        "dtype",
        "experimental_ref",
        "get_shape",
        "is_packed",
        "ndim",
        "numpy",
        "ref",
        "set_shape",
        "shape",
    ]
    return [hasattr(t, n) for n in names], t.ndim, t.shape.as_list(), t.get_shape().as_list(), t.dtype.name, "CPU" in t.device


@case("E4.9", says="Tensor.name is undefined when eager execution is enabled.")
def no_name(tf):
    tf.constant(1.0).name  # noqa: B018


@case("E4.9")
def no_graph(tf):
    t = tf.constant(1.0)
    return failing(lambda: t.op, lambda: t.graph, lambda: t.value_index, lambda: t.eval())


@case("E4.9", differs="NumPy's method names work on tensors where the library offers them")
def numpy_like_names(tf):
    t = tf.constant([1.0])
    return [hasattr(t, n) for n in ("T", "size", "reshape", "astype", "ravel", "transpose", "clip", "tolist", "data")]


@case("E4.9", says="Tensor's shape (3,) is not compatible with supplied shape (4,).")
def set_shape(tf):
    tf.ones(3).set_shape((4,))
