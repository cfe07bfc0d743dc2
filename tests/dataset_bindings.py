"""Programs whose functions see names that change between `Dataset.map` and the flow of the data, and what TensorFlow answers.

Each takes the module, `tensorflow` or `gradtape`, and returns lists of numbers. The answers were recorded with TensorFlow 2.21:
``check(tensorflow)`` compares them.
"""

# ruff: noqa: B023 - functions that name what changes are what this is about

from __future__ import annotations

import functools

PROGRAMS: dict[str, tuple] = {}
K = 0
SCALE = 0


def program(answer):
    """Decorator: an entry of the table."""

    def add(function):
        PROGRAMS[function.__name__] = function, answer
        return function

    return add


def check(tf):
    """The programs that answer otherwise, with what they answer."""
    found = {name: function(tf) for name, (function, _) in PROGRAMS.items()}
    return {name: value for name, value in found.items() if value != PROGRAMS[name][1]}


def values(dataset):
    return [element.tolist() for element in dataset.as_numpy_iterator()]


def rebind(value):
    global K
    K = value


@program([111, 112, 113])
def a_loop_of_maps(tf):
    dataset = tf.data.Dataset.range(3)
    for k in (1, 10, 100):
        dataset = dataset.map(lambda x: x + k)
    return values(dataset)


@program([10, 20])
def a_loop_of_filters(tf):
    dataset = tf.data.Dataset.range(1, 41)
    for k in (2, 5):
        dataset = dataset.filter(lambda x: x % k == 0)
    return values(dataset.take(2))


@program([0, 3, 6])
def a_global(tf):
    rebind(3)
    dataset = tf.data.Dataset.range(3).map(lambda x: x * K)
    rebind(7)
    return values(dataset)


@program([5, 6, 7])
def a_global_of_a_function_inside(tf):
    def shifted(x):
        by = lambda: K
        return x + by()

    rebind(5)
    dataset = tf.data.Dataset.range(3).map(shifted)
    rebind(7)
    return values(dataset)


@program([6, 7, 8])
def a_global_of_a_comprehension(tf):
    def shifted(x):
        return x + sum([K * n for n in range(3)])

    rebind(2)
    dataset = tf.data.Dataset.range(3).map(shifted)
    rebind(7)
    return values(dataset)


@program([[4, 5, 6], [8, 9, 10]])
def a_closure_that_is_assigned_again(tf):
    k = 4
    shift = lambda x: x + k
    first = tf.data.Dataset.range(3).map(shift)
    k = 8
    second = tf.data.Dataset.range(3).map(shift)
    k = 12
    return [values(first), values(second)]


@program([2, 3, 4])
def defaults(tf):
    def shift(x, k=2, *, more=0):
        return x + k + more

    dataset = tf.data.Dataset.range(3).map(shift)
    shift.__defaults__, shift.__kwdefaults__ = (9,), {"more": 90}
    return values(dataset)


@program([0, 2, 4])
def a_keyword_default(tf):
    def scale(x, *, k=2):
        return x * k

    dataset = tf.data.Dataset.range(3).map(scale)
    scale.__kwdefaults__["k"] = 9
    return values(dataset)


@program([0, 4, 8])
def a_partial(tf):
    rebind(2)
    scale = functools.partial(lambda by, x, more: x * by * K + more, 2, more=0)
    dataset = tf.data.Dataset.range(3).map(scale)
    scale.keywords["more"] = 50
    rebind(7)
    return values(dataset)


class Shift:
    """Methods and a `__call__` that read a global."""

    def __init__(self, own):
        self.own = own

    def by(self, x):
        return x + self.own + K

    @staticmethod
    def plainly(x):
        return x + K

    @classmethod
    def twice(cls, x):
        return x + 2 * K

    def __call__(self, x):
        return x + 10 * self.own + K


@program([[11, 12], [1, 2], [2, 3], [101, 102]])
def methods_and_callable_objects(tf):
    rebind(1)
    shift, source = Shift(10), tf.data.Dataset.range(2)
    datasets = [source.map(f) for f in (shift.by, shift.plainly, Shift.twice, shift)]
    rebind(1000)
    return [values(dataset) for dataset in datasets]


@program([31, 32])
def objects_in_a_loop(tf):
    rebind(0)
    dataset = tf.data.Dataset.range(2)
    for own in (1, 10, 20):
        shift = Shift(own)
        dataset = dataset.map(lambda x: shift.by(x))
    return values(dataset)


@program([1, 2])
def a_class_replaced_by_another(tf):
    class Add:
        def __call__(self, x):
            return x + 1

    def apply(x):
        return Add()(x)

    dataset = tf.data.Dataset.range(2).map(apply)

    class Add:  # noqa: F811
        def __call__(self, x):
            return x + 50

    return values(dataset)


@program([3, 4, 5])
def a_decorated_function(tf):
    def doubled(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args) + 0

        return wrapper

    @doubled
    def shift(x):
        return x + K

    rebind(3)
    dataset = tf.data.Dataset.range(3).map(shift)
    rebind(7)
    return values(dataset)


@program([12, 13])
def a_function_that_calls_itself(tf):
    def shift(x, depth=3):
        return x if depth == 0 else shift(x, depth - 1) + K

    rebind(4)
    dataset = tf.data.Dataset.range(2).map(shift)
    rebind(7)
    return values(dataset)


@program([3, 5])
def super_in_a_method(tf):
    class Base:
        def shift(self, x):
            return x + 1

    class Derived(Base):
        def shift(self, x):
            return super().shift(x) * K

    rebind(1)
    dataset = tf.data.Dataset.range(2, 6, 2).map(Derived().shift)
    rebind(7)
    return values(dataset)


@program([0, 1, 0, 1, 2])
def flat_map_with_a_map_inside(tf):
    k = 0
    dataset = tf.data.Dataset.range(2, 4).flat_map(lambda n: tf.data.Dataset.range(n).map(lambda x: x + k))
    k = 9
    return values(dataset)


@program([2, 2, 2, 2])
def interleave(tf):
    rebind(2)
    dataset = tf.data.Dataset.range(2).interleave(lambda n: tf.data.Dataset.from_tensors(K).repeat(K), cycle_length=2)
    rebind(9)
    return values(dataset)


@program([1, 3, 6])
def scan(tf):
    k = 1
    add = lambda state, x: (state + k * x, state + k * x)
    dataset = tf.data.Dataset.range(1, 4).scan(tf.constant(0, tf.int64), add)
    k = 5
    return values(dataset)


@program([0, 1])
def take_while(tf):
    k = 2
    dataset = tf.data.Dataset.range(9).take_while(lambda x: x < k)
    k = 5
    return values(dataset)


@program([[0, 2], [1, 3], [4], [5]])
def group_by_window(tf):
    size, modulus = 2, 2
    dataset = tf.data.Dataset.range(6).group_by_window(
        lambda x: x % modulus, lambda key, group: group.batch(size), window_size_func=lambda key: tf.constant(size, tf.int64)
    )
    size, modulus = 3, 1
    return values(dataset)


@program([[[1], [1]], [[1, 1, 1], [1, 1, 1]]])
def bucket_by_sequence_length(tf):
    rows = tf.data.Dataset.from_tensor_slices([1, 3, 1, 3]).map(lambda n: tf.ones([n], tf.int32))
    k = 1
    dataset = rows.bucket_by_sequence_length(lambda row: tf.shape(row)[0] * k, [2], [2, 2])
    k = -1
    return values(dataset)


@program([2, 3, 6])
def reduces(tf):
    def total(dataset):
        for k in (1, 2):
            dataset = dataset.map(lambda x: x * k)
        return int(dataset.reduce(tf.constant(0, tf.int64), lambda state, x: state + x * K))

    found = []
    for value in (1, 1, 3):
        rebind(value)
        found.append(total(tf.data.Dataset.range(2 + (len(found) == 1))))
    return [found[0], found[1] // 2, found[2]]


@program([[0, 2], [0, 2], [3, 4]])
def older_spellings(tf):
    k = 2
    source = tf.data.Dataset.range(2)
    first = source.apply(tf.data.experimental.map_and_batch(lambda x: x * k, 2))
    transformation = tf.data.experimental.take_while(lambda x: x < k)
    k = 3
    second = source.map(lambda x: x + k)
    taken = tf.data.Dataset.range(9).apply(transformation)
    k = 4
    return [*values(first), values(taken)[::2], values(second)]


@program([4, 5])
def a_function_of_tensorflow(tf):
    k = 4

    @tf.function
    def shift(x):
        return x + k

    dataset = tf.data.Dataset.range(2).map(shift)
    k = 9
    return values(dataset)


@program([4, 5])
def a_method_that_is_a_function_of_tensorflow(tf):
    class Module(tf.Module):
        @tf.function
        def __call__(self, x):
            return x + K

    rebind(4)
    dataset = tf.data.Dataset.range(2).map(Module())
    rebind(9)
    return values(dataset)


@program([7, 14])
def variables_keep_their_value_in_the_object(tf):
    v = tf.Variable(1, dtype=tf.int64)
    dataset = tf.data.Dataset.range(1, 3).map(lambda x: x * v)
    v.assign(7)
    kept = values(dataset)
    v = tf.Variable(9, dtype=tf.int64)
    assert values(dataset) == kept
    return kept


@program([9])
def a_generator_is_called_late(tf):
    k = 1
    dataset = tf.data.Dataset.from_generator(lambda: iter([k]), output_signature=tf.TensorSpec([], tf.int64))
    k = 9
    return values(dataset)
