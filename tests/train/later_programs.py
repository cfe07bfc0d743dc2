"""Programs that put something into containers after a checkpoint was restored, and what TensorFlow answers.

Each takes the module, `tensorflow` or `gradtape`, and ``restored(module, other)``, which saves the one and restores it into the
other; it returns numbers. The answers were recorded with TensorFlow 2.21:
``check(tensorflow, folder)`` compares them.
"""

from __future__ import annotations

import collections

PROGRAMS: dict[str, tuple] = {}
Pair = collections.namedtuple("Pair", "left right")


def program(answer):
    """Decorator: an entry of the table."""

    def add(function):
        PROGRAMS[function.__name__] = function, answer
        return function

    return add


def run(tf, name, folder):
    """The answer of a program, whose checkpoints go to a folder."""

    def restored(module, other):
        """Restores into the second what was the first; the status."""
        return tf.train.Checkpoint(m=other).restore(tf.train.Checkpoint(m=module).save(f"{folder}/{name}"))

    return PROGRAMS[name][0](tf, restored)


def check(tf, folder):
    """The programs that answer otherwise, with what they answer."""
    found = {name: run(tf, name, folder) for name in PROGRAMS}
    return {name: value for name, value in found.items() if value != PROGRAMS[name][1]}


def module(tf, **attributes):
    made = tf.Module()
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def variables(tf, *values):
    return [tf.Variable(float(value)) for value in values]


def floats(parts):
    return [float(part) for part in parts]


def consumed(status):
    try:
        status.assert_consumed()
    except AssertionError:
        return False
    return True


def of_a_list(change):
    """A program: two variables are saved in a list; then ``change(tf, module)`` where the list was empty."""

    def function(tf, restored):
        other = module(tf, l=[])
        status = restored(module(tf, l=variables(tf, 1, 2)), other)
        change(tf, other)
        return floats(other.l), consumed(status)

    function.__name__ = change.__name__
    return function


@program(([1.0, 2.0], True))
@of_a_list
def append(tf, m):
    m.l.append(tf.Variable(0.0))
    m.l.append(tf.Variable(0.0))


@program(([1.0], False))
@of_a_list
def append_one_of_two(tf, m):
    m.l.append(tf.Variable(0.0))


@program(([1.0, 2.0], True))
@of_a_list
def extend(tf, m):
    m.l.extend(variables(tf, 0, 0))


@program(([1.0, 2.0], True))
@of_a_list
def add_in_place(tf, m):
    m.l += variables(tf, 0, 0)


@program(([1.0, 2.0, 5.0], False))
@of_a_list
def more_than_were_saved(tf, m):
    m.l.extend(variables(tf, 0, 0, 5))


@program(([1.0, 2.0], True))
@of_a_list
def through_another_name(tf, m):
    kept = m.l
    kept.append(tf.Variable(0.0))
    m.l.append(tf.Variable(0.0))


@program(([1.0, 2.0], True))
@of_a_list
def a_list_that_is_set_later(tf, m):
    m.other = m.l
    m.l.extend(variables(tf, 0, 0))


@program(([1.0, 2.0], True))
def a_list_that_is_made_later(tf, restored):
    other = tf.Module()
    status = restored(module(tf, l=variables(tf, 1, 2)), other)
    other.l = variables(tf, 0)
    other.l.append(tf.Variable(0.0))
    return floats(other.l), consumed(status)


@program(([1.0, 2.0], True))
def places_that_are_filled(tf, restored):
    other = module(tf, l=[None, None])
    status = restored(module(tf, l=variables(tf, 1, 2)), other)
    other.l[0] = tf.Variable(0.0)
    other.l[1] = tf.Variable(0.0)
    return floats(other.l), consumed(status)


@program([3.0, 2.0])
def a_number_before_a_variable(tf, restored):
    other = module(tf, l=[])
    restored(module(tf, l=variables(tf, 1, 2)), other).expect_partial()
    other.l.append(3.0)
    other.l.append(tf.Variable(0.0))
    return floats(other.l)


@program([7.0, 2.0])
def a_variable_in_place_of_a_restored_one(tf, restored):
    other = module(tf, l=[])
    restored(module(tf, l=variables(tf, 1, 2)), other)
    other.l.extend(variables(tf, 0, 0))
    other.l[0] = tf.Variable(7.0)
    return floats(other.l)


@program([9.0, 2.0])
def popped_and_appended_again(tf, restored):
    other = module(tf, l=[])
    restored(module(tf, l=variables(tf, 1, 2)), other)
    other.l.append(tf.Variable(0.0))
    other.l.pop()
    other.l.extend(variables(tf, 9, 8))
    return floats(other.l)


@program([6.0, 5.0])
def inserted(tf, restored):
    other = module(tf, l=[])
    restored(module(tf, l=variables(tf, 1, 2)), other).expect_partial()
    other.l.insert(0, tf.Variable(5.0))
    other.l.insert(0, tf.Variable(6.0))
    return floats(other.l)


@program([[0.0], [0.0]])
def appended_to_the_list_that_was_assigned(tf, restored):
    given = []
    other = module(tf, l=given)
    restored(module(tf, l=variables(tf, 1, 2)), other).expect_partial()
    given.append(tf.Variable(0.0))
    return [floats(given), floats(other.l)]


@program(([1.0, 2.0, 3.0], True))
def keys(tf, restored):
    a, b, c = variables(tf, 1, 2, 3)
    other = module(tf, d={})
    status = restored(module(tf, d={"a": a, "b": b, "c": c}), other)
    other.d["a"] = tf.Variable(0.0)
    other.d.update({"b": tf.Variable(0.0)})
    other.d.update(c=tf.Variable(0.0))
    return floats(other.d[key] for key in "abc"), consumed(status)


@program(([1.0], True))
def a_key_of_an_ordered_dictionary(tf, restored):
    other = module(tf, d=collections.OrderedDict())
    status = restored(module(tf, d=collections.OrderedDict(a=tf.Variable(1.0))), other)
    other.d["a"] = tf.Variable(0.0)
    return floats(other.d.values()), consumed(status)


@program(([1.0, 2.0, 3.0, 4.0], True))
def containers_in_containers(tf, restored):
    def nested(parts):
        return [{"x": parts[0]}, [parts[1]], (parts[2], [parts[3]])]

    other = module(tf, n=[{}, [], (tf.Variable(0.0), [])])
    status = restored(module(tf, n=nested(variables(tf, 1, 2, 3, 4))), other)
    other.n[0]["x"] = tf.Variable(0.0)
    other.n[1].append(tf.Variable(0.0))
    other.n[2][1].append(tf.Variable(0.0))
    return floats([other.n[0]["x"], other.n[1][0], other.n[2][0], other.n[2][1][0]]), consumed(status)


@program(([1.0, 2.0], True))
def containers_that_are_appended_empty(tf, restored):
    other = module(tf, n=[])
    status = restored(module(tf, n=[{"x": tf.Variable(1.0)}, [tf.Variable(2.0)]]), other)
    other.n.append({})
    other.n.append([])
    other.n[0]["x"] = tf.Variable(0.0)
    other.n[1].append(tf.Variable(0.0))
    return floats([other.n[0]["x"], other.n[1][0]]), consumed(status)


@program(([1.0, 2.0], True))
def a_list_in_a_named_tuple(tf, restored):
    other = module(tf, p=Pair(tf.Variable(0.0), []))
    status = restored(module(tf, p=Pair(tf.Variable(1.0), variables(tf, 2))), other)
    other.p.right.append(tf.Variable(0.0))
    return floats([other.p.left, other.p.right[0]]), consumed(status)


@program(([3.0, 4.0], True))
def attributes_of_modules_in_a_list(tf, restored):
    other = module(tf, l=[])
    saved = [module(tf, v=tf.Variable(3.0)), module(tf, inner=module(tf, v=tf.Variable(4.0)))]
    status = restored(module(tf, l=saved), other)
    other.l.append(tf.Module())
    other.l.append(module(tf, inner=tf.Module()))
    other.l[0].v = tf.Variable(0.0)
    other.l[1].inner.v = tf.Variable(0.0)
    return floats([other.l[0].v, other.l[1].inner.v]), consumed(status)


@program([10.0, 20.0])
def the_last_checkpoint_counts(tf, restored):
    other = module(tf, l=[])
    restored(module(tf, l=variables(tf, 1, 2)), other).expect_partial()
    restored(module(tf, l=variables(tf, 10, 20)), other)
    other.l.extend(variables(tf, 0, 0))
    return floats(other.l)


@program(([3.0, 3.0], 3.0))
def made_by_a_traced_function(tf, restored):
    other = module(tf, l=[])
    restored(module(tf, l=variables(tf, 1, 2)), other)

    @tf.function
    def total():
        if not other.l:
            other.l.extend([tf.Variable(0.0), tf.Variable(0.0)])
        return other.l[0] + other.l[1]

    return floats([total(), total()]), float(sum(floats(other.l)))


@program([True, True, True, 2])
def the_containers_are_containers(tf, restored):
    other = module(tf, l=[], d={})
    restored(module(tf, l=variables(tf, 1, 2), d={"a": tf.Variable(1.0)}), other).expect_partial()
    first = other.l == [] and other.d == {} and isinstance(other.l, list) and isinstance(other.d, dict)
    other.l.append(tf.Variable(0.0))
    other.d["a"] = tf.Variable(0.0)
    return [first, tf.nest.flatten(other.l)[0] is other.l[0], [*other.d] == ["a"], len(other.variables)]


@program(([1.0, 1.0], True))
def a_checkpoint_that_holds_the_list(tf, restored):
    first = tf.train.Checkpoint(l=variables(tf, 1))
    second = tf.train.Checkpoint(l=[])
    status = restored(first, second)
    second.l.append(tf.Variable(0.0))
    return floats([second.l[0], first.l[0]]), consumed(status)
