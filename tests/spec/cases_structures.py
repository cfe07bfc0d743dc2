"""Golden cases of part E: indexing, shapes, dtypes, nests."""

from __future__ import annotations

import collections

import numpy as np

from spec.cases import case, failing

NONE = None  # what == makes of it is the point here


# E5 Indexing


@case("E5.1")
def indexing(tf):
    t = tf.reshape(tf.range(24.0), (2, 3, 4))
    i, j, k = tf.constant(1), tf.constant(2), tf.constant(1, tf.int64)
    return [
        t[1],
        t[-1, 0],
        t[np.int32(1)],
        t[i],
        t[i, j],
        t[k],
        t[:, 1:],
        t[:, ::-1, ::2],
        t[..., 0],
        t[1, ..., 1:3],
        t[:, tf.newaxis, 0],
        t[None][0, 0],
        t[:, i:j],
        t[1, tf.constant(0) : tf.constant(3) : i],
        t[t > 20.0],
        t[5:],
        t[:, 2:0:-1],
        t[0][1][2],
        t[:, -2:, -1:],
    ]


@case("E5.1")
def indexing_is_differentiable(tf):
    t = tf.reshape(tf.range(12.0), (3, 4))
    i = tf.constant(1)
    found = []
    for f in (
        lambda t: t[1],
        lambda t: t[i, 2],
        lambda t: t[::-1, 1:] ** 2,
        lambda t: t[..., 0] ** 2,
        lambda t: t[:, None, :2] * 3.0,
        lambda t: t[t > 5.0] ** 2,
        lambda t: t[i:, ::2] ** 2,
        lambda t: t[5:],
        lambda t: list(t)[2] ** 2,
    ):
        with tf.GradientTape() as tape:
            tape.watch(t)
            y = f(t)
        found.append(tape.gradient(y, t))
    return found


ONLY = (
    "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors are valid indices"
)


@case("E5.2", says=ONLY)
def index_by_float(tf):
    tf.ones(3)[1.0]


@case("E5.2", says=ONLY)
def index_by_text(tf):
    tf.ones(3)["a"]


@case("E5.2", says=ONLY)
def index_by_array(tf):
    tf.ones(3)[np.array([0, 1])]


@case("E5.2", says=ONLY)
def index_by_vector(tf):
    tf.ones(3)[tf.constant([0, 1])]


@case("E5.3", says="slice index 5 of dimension 0 out of bounds.")
def index_out_of_range(tf):
    tf.ones(3)[5]


@case("E5.3", says="of dimension 0 out of bounds.")
def negative_index_out_of_range(tf):
    tf.ones(3)[-4]


@case("E5.3", says="Index out of range using input dim 1; input has only 1 dims")
def too_many_indices(tf):
    tf.ones(3)[0, 0]


# E6 TensorShape


@case("E6.1")
def tensor_shapes(tf):
    s, u, p = tf.TensorShape([2, 3]), tf.TensorShape(None), tf.TensorShape([None, 3])
    more = [4]
    return [
        repr(s),
        str(s),
        repr(u),
        str(u),
        repr(p),
        str(p),
        s == [2, 3],
        s == (2, 3),
        s == [2, 4],
        len({s, tf.TensorShape((2, 3))}),
        s[0],
        s[-1],
        repr(s[1:]),
        len(s),
        list(s),
        repr(s + more),
        repr(more + s),
        repr(s.concatenate([5])),
        s.as_list(),
        s.rank,
        s.ndims,
        s.num_elements(),
        p.num_elements(),
        s.is_fully_defined(),
        p.is_fully_defined(),
        p.is_compatible_with(s),
        s.is_compatible_with([2, 4]),
        u.is_compatible_with(s),
        repr(p.merge_with([7, None])),
        repr(s.with_rank_at_least(2)),
        bool(tf.TensorShape([])),
        bool(u),
        u == NONE,
        u.rank,
        tf.zeros(s).shape.as_list(),
        p[0],
        p.as_list(),
    ]


@case("E6.1", says="Cannot take the length of shape with unknown rank.")
def length_of_an_unknown_shape(tf):
    len(tf.TensorShape(None))


@case("E6.1", says="as_list() is not defined on an unknown TensorShape.")
def list_of_an_unknown_shape(tf):
    tf.TensorShape(None).as_list()


@case("E6.1", says="must have rank at least 3")
def rank_of_a_shape(tf):
    tf.TensorShape([1, 2]).with_rank_at_least(3)


@case("E6.1", says="are incompatible")
def incompatible_shapes(tf):
    tf.TensorShape([1, 2]).assert_is_compatible_with([2, 2])


# E7 DType


@case("E7.1")
def dtypes(tf):
    f = tf.float32
    return [
        repr(f),
        str(f),
        f.name,
        f.as_numpy_dtype.__name__,
        f.is_floating,
        f.is_integer,
        tf.complex64.is_complex,
        tf.bool.is_bool,
        f.size,
        float(f.min),
        float(f.max),
        int(tf.int8.min),
        repr(tf.complex128.real_dtype),
        repr(f.base_dtype),
        f.is_compatible_with(tf.float64),
        f == "float32",
        f == np.float32,
        f == np.dtype("float32"),
        f == "nonsense",
        f == NONE,
        f != tf.float64,
        len({f, tf.as_dtype("float32")}),
        repr(tf.as_dtype(float)),
        repr(tf.as_dtype(bool)),
        repr(tf.as_dtype(np.dtype("int16"))),
        repr(tf.as_dtype("half")),
        repr(tf.string),
        repr(tf.bfloat16),
        tf.as_dtype("float32") is f,
        repr(tf.double),
        repr(tf.half),
        tf.bfloat16.is_floating,
        tf.uint8.is_unsigned,
    ]


@case("E7.1", says="Cannot convert the argument `type_value`: 'foo' to a TensorFlow DType.")
def unknown_dtype(tf):
    tf.as_dtype("foo")


@case("E7.1", says="Cannot convert the argument `type_value`: <class 'int'> to a TensorFlow DType.")
def python_int_is_no_dtype(tf):
    tf.as_dtype(int)


@case("E7.1")
def dtype_for_numpy(tf):
    return failing(lambda: np.zeros(2, dtype=tf.float32)), np.zeros(2, tf.float32.as_numpy_dtype)


# E8 nest

Pair = collections.namedtuple("Pair", "b a")


@case("E8.1")
def nests(tf):
    nest = tf.nest
    array = np.ones(2)
    return [
        nest.flatten({"b": 2, "a": [1, (None, "s")]}),
        nest.flatten(5),
        nest.flatten(array)[0] is array,
        len(nest.flatten({1, 2})),
        nest.map_structure(lambda x: x + 1, {"z": 1, "a": [2, Pair(3, 4)]}),
        nest.flatten(Pair(1, 2)),
        nest.pack_sequence_as({"z": 0, "a": (0, 0)}, [1, 2, 3]),
        nest.map_structure(lambda x, y: x * y, [1, 2], [3, 4]),
        nest.is_nested([1]),
        nest.is_nested(1),
        nest.is_nested("a"),
        nest.is_nested({}),
        nest.map_structure(lambda x: x, collections.OrderedDict([("z", 1), ("a", 2)])),
    ]


@case("E8.1")
def nest_errors(tf):
    nest = tf.nest
    return failing(
        lambda: nest.flatten({1: 2, "a": 3}),
        lambda: nest.assert_same_structure([1], (1,)),
        lambda: nest.assert_same_structure([1], [1, 2]),
        lambda: nest.pack_sequence_as([1, 2], [1]),
        lambda: nest.map_structure(lambda x, y: x, [1], [1, 2]),
        lambda: nest.map_structure(3, [1]),
    )
