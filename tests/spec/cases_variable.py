"""Golden cases of part D: variables."""

from __future__ import annotations

import copy
import pickle  # the fact is that variables can be pickled

import numpy as np

from spec.cases import case, slices


@case("D1.1", says="The `initial_value` arg to `tf.Variable` must be specified except when you are not providing a")
def without_a_value(tf):
    tf.Variable()


@case("D1.2")
def kinds_of_initial_values(tf):
    t = tf.constant(2.0)
    given = [t, tf.Variable(3.0), np.arange(3), [1, 2], [t, t], lambda: tf.ones(2), [[1.0], [t]]]
    return [tf.Variable(g) for g in given]


@case("D1.3")
def inferred_dtypes(tf):
    given = [1, 1.0, True, 1j, np.float64(1.0), np.arange(2), [1, 2.5], "text", np.float16([1.0])]
    return [tf.Variable(g).dtype.name for g in given]


@case("D1.4")
def given_dtypes(tf):
    return (
        tf.Variable(np.float64([1.5]), dtype=tf.float32),
        tf.Variable(1, dtype="float64"),
        tf.Variable([1, 2], dtype=tf.int64),
    )


@case("D1.4", says="Cannot convert 1.5 to EagerTensor of dtype int32")
def float_for_an_integer_variable(tf):
    tf.Variable(1.5, dtype=tf.int32)


@case("D1.4", says="Tensor conversion requested dtype float64 for Tensor with dtype float32")
def tensor_of_another_dtype(tf):
    tf.Variable(tf.constant(1.0), dtype=tf.float64)


@case("D1.5")
def free_shapes(tf):
    v, w = tf.Variable([1.0], shape=tf.TensorShape(None)), tf.Variable([1.0, 2.0], shape=[None])
    v.assign([[1.0, 2.0], [3.0, 4.0]])
    w.assign([5.0, 6.0, 7.0])
    return v, w, str(v.shape), str(w.shape)


@case("D1.5", says="In this `tf.Variable` creation, the initial value's shape ((2,)) is not compatible with the explicitly")
def incompatible_shape(tf):
    tf.Variable([1.0, 2.0], shape=[3])


@case("D1.6")
def trainable_by_default(tf):
    on_read = tf.VariableSynchronization.ON_READ
    return (
        tf.Variable(1.0).trainable,
        tf.Variable(1.0, trainable=False).trainable,
        tf.Variable(1.0, synchronization=on_read).trainable,
    )


@case("D1.6", says="")
def trainable_is_read_only(tf):
    try:
        tf.Variable(1.0).trainable = False
    except AttributeError:
        return "AttributeError"


@case("D1.7")
def names(tf):
    with tf.name_scope("a"), tf.name_scope("c"):
        scoped = tf.Variable(1.0, name="b").name
    return tf.Variable(1.0).name, tf.Variable(1.0).name, tf.Variable(1.0, name="w x!").name, scoped


@case("D1.8", says="Argument `constraint` must be None or a callable.")
def constraint_must_be_callable(tf):
    tf.Variable(1.0, constraint=3)


@case("D1.8")
def constraint_is_only_stored(tf):
    v = tf.Variable(-1.0, constraint=abs)
    v.assign(-2.0)
    return v, v.constraint is abs


@case("D2.1")
def initializer_and_is_initialized(tf):
    v = tf.Variable(1.0)
    return v.initializer, v.is_initialized()


@case("D2.1", says="is not supported when eager execution is enabled")
def initial_value(tf):
    tf.Variable(1.0).initial_value  # noqa: B018


@case("D2.1", says="is not supported when eager execution is enabled")
def evaluated(tf):
    tf.Variable(1.0).eval()


@case("D2.2")
def snapshots_stay(tf):
    v = tf.Variable([1.0, 2.0])
    taken = [v.value(), v.read_value(), v.numpy(), v + 0.0, tf.convert_to_tensor(v), tf.identity(v), v[:], np.array(v)]
    v.assign_add([10.0, 10.0])
    v[0].assign(5.0)
    v.scatter_add(slices(tf, [1.0], [1]))
    v.assign_sub([1.0, 1.0])
    return taken, v


@case("D2.2")
def numpy_is_a_copy(tf):
    v = tf.Variable([1.0, 2.0])
    v.numpy()[:] = 7.0
    return v


@case("D2.3")
def attributes(tf):
    v = tf.Variable([1.0])
    v.foo = 3
    return v.foo, [hasattr(v, n) for n in ("ndim", "T", "size", "astype")]


@case("D2.4")
def references(tf):
    v, w = tf.Variable(1.0), tf.Variable(1.0)
    return v.ref() == v.ref(), v.ref() == w.ref(), v.ref().deref() is v, len({v.ref(), v.ref(), w.ref()})


@case("D2.4", says="Variable is unhashable. Instead, use variable.ref() as the key. (Variable: ")
def unhashable(tf):
    hash(tf.Variable(1.0))


@case("D2.5")
def copies(tf):
    v = tf.Variable([1.0, 2.0], name="w", trainable=False)
    d = copy.deepcopy(v)
    v.assign([3.0, 4.0])
    p = pickle.loads(pickle.dumps(v))
    return copy.copy(v) is v, d is v, d, d.name, d.trainable, p, p.name, p.trainable


@case("D2.6")
def texts(tf):
    many = [
        tf.Variable([1.0, 2.0], name="w"),
        tf.Variable(3),
        tf.Variable([[True]]),
        tf.Variable("a"),
        tf.Variable(1.5, dtype="float64"),
    ]
    return [repr(v) for v in many] + [str(many[0])]


@case("D2.6", says="unsupported format string passed to")
def format_of_a_variable(tf):
    return f"{tf.Variable(1.0):.2f}"


@case("D3.1")
def assigned_values_are_converted(tf):
    f, i = tf.Variable(0.0), tf.Variable(0)
    found = []
    for v, value in ((f, 3), (f, np.float64(2.5)), (f, np.int64(4)), (i, np.float32(7.9)), (i, 5), (f, True)):
        v.assign(value)
        found.append(v.read_value())
    return found


@case("D3.1", says="Cannot convert 2.5 to EagerTensor of dtype int32")
def float_assigned_to_integer(tf):
    tf.Variable(1).assign(2.5)


@case("D3.1", says="Tensor conversion requested dtype float32 for Tensor with dtype float64")
def tensor_of_another_dtype_assigned(tf):
    tf.Variable(1.0).assign(tf.constant(1.0, tf.float64))


@case("D3.1", says="float64")
def variable_of_another_dtype_assigned(tf):
    tf.Variable(1.0).assign(tf.Variable(1.0, dtype=tf.float64))


@case(
    "D3.2",
    says="Cannot assign value to variable ' Variable:0': Shape mismatch.The variable shape (2,), and the assigned",
)
def assigned_shape(tf):
    tf.Variable([1.0, 2.0]).assign([1.0, 2.0, 3.0])


@case("D3.2", says="Shape mismatch.The variable shape (2,), and the assigned value shape () are incompatible.")
def assign_does_not_broadcast(tf):
    tf.Variable([1.0, 2.0]).assign(1.0)


@case("D3.3", says="Cannot update variable with shape [2] using a Tensor with shape [], shapes must be equal.")
def assign_add_does_not_broadcast(tf):
    tf.Variable([1.0, 2.0]).assign_add(1.0)


@case("D3.3", says="Cannot update variable with shape [2] using a Tensor with shape [3], shapes must be equal.")
def assign_sub_shape(tf):
    tf.Variable([1.0, 2.0]).assign_sub([1.0, 2.0, 3.0])


@case("D3.4")
def assignments_chain(tf):
    v = tf.Variable(1.0)
    result = v.assign(2.0).assign_add(3.0).assign_sub(1.0)
    v.assign_add(10.0)
    return result, isinstance(result, tf.Variable), v.assign(1.0, read_value=False), v.assign_add(1.0, read_value=False)


@case("D4.1")
def scatter_updates(tf):
    delta = slices(tf, [2.0, 3.0, 5.0], [0, 2, 0])
    found = {}
    for name in ("add", "sub", "mul", "div", "max", "min"):
        v = tf.Variable([10.0, 20.0, 30.0])
        getattr(v, f"scatter_{name}")(delta)
        found[name] = v
    u = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    u.scatter_update(slices(tf, [[9.0, 8.0]], [1]))
    b = tf.Variable([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    b.batch_scatter_update(slices(tf, [[10.0], [20.0]], [[2], [0]]))
    return found, u, b


@case("D4.1", says="Argument `sparse_delta` must be a `tf.IndexedSlices`. Received arg:")
def scatter_needs_indexed_slices(tf):
    tf.Variable([1.0]).scatter_add([1.0])


@case("D4.1", says="indices[0] = 5 is not in [0, 2)")
def scatter_out_of_range(tf):
    tf.Variable([1.0, 2.0]).scatter_add(slices(tf, [1.0], [5]))


@case("D4.2")
def scatter_nd_updates(tf):
    found = {}
    for name in ("add", "sub", "update", "max", "min"):
        v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
        getattr(v, f"scatter_nd_{name}")([[0, 0], [1, 1]], [10.0, -20.0])
        found[name] = v
    v = tf.Variable([1.0, 2.0])
    v.scatter_nd_add([[0], [0]], [5.0, 6.0])
    return found, v


@case("D4.3")
def slice_assignment(tf):
    v = tf.Variable([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    v[0].assign([7.0, 8.0, 9.0])
    v[:, 1].assign([0.0, 0.0])
    v[1, 0].assign(50.0)
    whole = v[1:, 1:].assign([[1.0, 2.0]])
    v[..., -1].assign(3.0)
    return v, whole.shape.as_list()


@case("D4.3", says="into final shape")
def slice_assignment_shape(tf):
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    v[0].assign([1.0, 2.0, 3.0])


@case("D4.3", says="assign_add")
def slices_have_no_assign_add(tf):
    tf.Variable([1.0, 2.0])[0].assign_add(1.0)


@case("D4.4")
def sparse_reads(tf):
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    return v.sparse_read([1, 0, 1]), v.gather_nd([[1, 0]]), v.gather_nd([[1]])


@case("D5.1")
def operators(tf):
    v, w = tf.Variable(7.0), tf.Variable(2.0)
    t = tf.constant(3.0)
    found = [
        v + w,
        v - t,
        t * v,
        2.0 / v,
        v // w,
        v % w,
        v**w,
        -v,
        abs(-v),
        v < w,
        v >= 7.0,
        1.0 + v,
        2**w,
        np.float32(2.0) - v,
    ]
    m = tf.Variable([[1.0, 2.0]])
    return found, m @ tf.ones((2, 1)), max([v, w]) is v


@case("D5.2", says="`variable += value` with `tf.Variable`s is not supported. Use `variable.assign_add(value)`")
def in_place_add(tf):
    v = tf.Variable(1.0)
    v += 1.0


@case("D5.2", says="`variable -= value` with `tf.Variable`s is not supported. Use `variable.assign_sub(value)`")
def in_place_subtract(tf):
    v = tf.Variable(1.0)
    v -= 1.0


@case("D5.2", says="`var *= value`")
def in_place_multiply(tf):
    v = tf.Variable(1.0)
    v *= 1.0


@case("D5.2", says="`var /= value`")
def in_place_divide(tf):
    v = tf.Variable(1.0)
    v /= 1.0


@case("D5.2", says="`var **= value`")
def in_place_power(tf):
    v = tf.Variable(1.0)
    v **= 1.0


@case("D5.3", says="object does not support item assignment")
def item_assignment(tf):
    tf.Variable([1.0])[0] = 2.0


@case("D5.4")
def comparisons(tf):
    v = tf.Variable([1.0, 2.0])
    return v == [1.0, 3.0], v != tf.constant([1.0, 3.0]), v == tf.ones(3), v != tf.ones(3)


@case("D5.4", says="None")
def comparison_with_none(tf):
    tf.Variable(1.0) == None  # noqa: B015, E711


@case("D5.5")
def python_numbers(tf):
    return (
        bool(tf.Variable(1.0)),
        float(tf.Variable(1.5)),
        int(tf.Variable(3)),
        complex(tf.Variable(1.5)),
        list(tf.Variable([1.0, 2.0])),
    )


@case("D5.5", says="has no len()")
def no_length(tf):
    len(tf.Variable([1.0]))


@case("D5.5", says="Cannot iterate over a scalar tensor.")
def iteration_over_a_scalar(tf):
    list(tf.Variable(1.0))


@case("D5.5", says="The truth value of an array with more than one element is ambiguous")
def truth_of_a_vector(tf):
    bool(tf.Variable([1.0, 2.0]))


@case("D5.6")
def numpy_functions(tf):
    v = tf.Variable([1.0, 2.0])
    return np.array(v), np.asarray(v, np.float64), np.sum(v), np.ones(2, np.float32) + v, np.float32([2.0, 2.0]) * v


@case("D5.7", says="Incompatible type conversion requested to type float64 for `tf.Variable of type float32")
def conversion_to_another_dtype(tf):
    tf.convert_to_tensor(tf.Variable(1.0), tf.float64)


@case("D5.7")
def is_tensor(tf):
    v = tf.Variable(1.0)
    return tf.is_tensor(v), isinstance(v, tf.Tensor), tf.is_tensor(tf.constant(1.0)), tf.is_tensor(1.0)


@case("D5.7", says="cannot compute AddV2 as input #1(zero-based) was expected to be a float tensor but is a double tensor")
def variable_plus_tensor_of_another_dtype(tf):
    tf.Variable(1.0) + tf.constant(1.0, tf.float64)


@case("D6")
def modules(tf):
    class Dense(tf.Module):
        def __init__(self, name=None):
            super().__init__(name)
            self.w = tf.Variable([[2.0]], name="w")
            self.b = tf.Variable([1.0], name="b")

        def __call__(self, x):
            return x @ self.w + self.b

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.layers = [Dense("first"), Dense("second")]
            self.head = {"out": Dense("head")}
            self.count = tf.Variable(0, trainable=False, name="count")

        def __call__(self, x):
            for layer in self.layers:
                x = layer(x)
            return self.head["out"](x)

    model = Model()
    with tf.GradientTape() as tape:
        y = model(tf.constant([[1.0]]))
    grads = tape.gradient(y, model.trainable_variables)
    return (
        [v.name for v in model.variables],
        [v.name for v in model.trainable_variables],
        grads,
        [m.name for m in model.submodules],
        model.name,
        [v.name for v in model.non_trainable_variables],
    )
