"""Golden cases of parts 0 and A: the tape."""

from __future__ import annotations

import collections
import contextlib

import numpy as np

from spec.cases import case, slices, square_of

Point = collections.namedtuple("Point", "x y")


# 0. Mental model


@case("0.3")
def integer_outputs_break_the_chain(tf):
    x = tf.constant(2.7)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.cast(tf.cast(x, tf.int32), tf.float32) * 2.0
    return tape.gradient(y, x)


@case("0.4")
def trainable_dtypes(tf):
    found = []
    for dtype in ("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "int32"):
        x = tf.constant(2, dtype)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        found.append(tape.gradient(y, x))
    return found


@case("0.5")
def identity_is_by_object(tf):
    x, twin = tf.constant(3.0), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * twin
    return tape.gradient(y, [x, twin])


@case("0.5")
def arithmetic_that_changes_nothing_makes_new_tensors(tf):
    x = tf.constant([1.0, 2.0])
    new = [x + 0, x - 0, x * 1, tf.identity(x), tf.reshape(x, (2,)), tf.stop_gradient(x)]
    same = [tf.cast(x, tf.float32), tf.convert_to_tensor(x), tf.constant(x)]
    return [t is x for t in new + same]


@case("0.6")
def every_read_of_a_variable_counts(tf):
    v = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = v * v + v.read_value() * v.value()
    return tape.gradient(y, v)


@case("0.7")
def unused_outputs_count_as_zeros(tf):
    x = tf.constant([1.0, 2.0, 3.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        first, _ = tf.split(x, 2)
        y = tf.reduce_sum(first * first)
    return tape.gradient(y, x)


@case("0.9")
def backward_is_recorded_by_the_other_tape(tf):
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x**3
        g = inner.gradient(y, x)
    return g, outer.gradient(g, x)


# A1, A2 Construction and context


@case("A1.1")
def positional_arguments(tf):
    v = tf.Variable(2.0)
    with tf.GradientTape(True, False) as tape:
        y = v * v
    return tape.gradient(y, v), tape.gradient(y, v), tape.watched_variables()


@case("A1.2")
def fresh_tape_has_no_variables(tf):
    return tf.GradientTape().watched_variables()


@case("A2.1")
def enter_returns_the_tape(tf):
    tape = tf.GradientTape()
    return tape.__enter__() is tape, tape.__exit__(None, None, None)


@case("A2.2")
def exception_in_the_body(tf):
    x = tf.constant(3.0)
    tape = tf.GradientTape()
    try:
        with tape:
            tape.watch(x)
            y = x * x
            raise KeyError("stop")
    except KeyError:
        pass
    return tape.gradient(y, x)


@case("A2.3", says="Tape is still recording, This can happen if you try to re-enter an already-active tape.")
def reentered_while_active(tf):
    with tf.GradientTape() as tape, tape:
        pass


@case("A2.4")
def reentered_after_exit_continues(tf):
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    with tape:
        z = y * x
    return tape.gradient(z, x)


@case("A2.5")
def consumed_tape_starts_anew(tf):
    tape, x, y = square_of(tf)
    first = tape.gradient(y, x)
    with tape:
        tape.watch(x)
        z = y * x
    return first, tape.gradient(z, x)


@case("A2.6")
def exit_without_enter(tf):
    tape = tf.GradientTape()
    tape.__exit__(None, None, None)
    with tape:
        pass
    return tape.__exit__(None, None, None)


@case("A2.7")
def exits_in_any_order(tf):
    x = tf.constant(3.0)
    a, b = tf.GradientTape(), tf.GradientTape()
    a.__enter__()
    b.__enter__()
    a.watch(x)
    b.watch(x)
    y = x * x
    a.__exit__(None, None, None)
    z = y * x
    b.__exit__(None, None, None)
    return a.gradient(y, x), a.watched_variables(), b.gradient(z, x)


@case("A2.8")
def independent_tapes_in_one_with(tf):
    x, y = tf.constant(3.0), tf.constant(4.0)
    with tf.GradientTape() as a, tf.GradientTape() as b:
        a.watch(x)
        b.watch(y)
        z = x * y
    return a.gradient(z, [x, y]), b.gradient(z, [x, y])


# A3 watch


@case("A3.1")
def watch_takes_nests(tf):
    a, b, c, d = (tf.constant(float(i)) for i in range(4))
    v = tf.Variable(5.0, trainable=False)
    with tf.GradientTape() as tape:
        tape.watch([a, (b, {"k": c}), Point(d, v)])
        y = a + 2.0 * b + 3.0 * c + 4.0 * d + 5.0 * v
    return tape.gradient(y, [a, b, c, d, v])


@case("A3.1")
def watch_takes_a_view_of_values(tf):
    parts = {"a": tf.constant(1.0), "b": tf.constant(2.0)}
    with tf.GradientTape() as tape:
        tape.watch(parts.values())
        y = parts["a"] * parts["b"]
    return tape.gradient(y, parts)


@case("A3.2", says="of type 'NoneType', not tf.Tensor or tf.Variable or ExtensionType.")
def watch_none(tf):
    with tf.GradientTape() as tape:
        tape.watch(None)


@case("A3.2", says="Passed in object 1.0 of type 'float', not tf.Tensor or tf.Variable or ExtensionType.")
def watch_float(tf):
    with tf.GradientTape() as tape:
        tape.watch(1.0)


@case("A3.2", says="of type 'ndarray', not tf.Tensor or tf.Variable or ExtensionType.")
def watch_array_on_a_tape_never_entered(tf):
    tf.GradientTape().watch(np.ones(2))


@case("A3.2", says="of type 'str', not tf.Tensor or tf.Variable or ExtensionType.")
def watch_text(tf):
    with tf.GradientTape() as tape:
        tape.watch("x")


@case("A3.2", says="of type 'set', not tf.Tensor or tf.Variable or ExtensionType.")
def watch_set(tf):
    with tf.GradientTape() as tape:
        tape.watch(set())


@case("A3.3")
def leaves_before_the_bad_one_stay_watched(tf):
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        with contextlib.suppress(ValueError):
            tape.watch([x, None])
        y = x * x
    return tape.gradient(y, x)


@case("A3.4")
def watch_integer(tf):
    x = tf.constant(3)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.cast(x, tf.float32) * 2.0
    return tape.gradient(y, x)


@case("A3.5")
def watch_twice_and_watch_intermediate(tf):
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        tape.watch(x)
        y = x * x
        tape.watch(y)
        z = y * y
    return tape.gradient(z, x), tape.gradient(z, y)


@case("A3.6")
def explicitly_watched_fixed_variable(tf):
    v = tf.Variable(2.0, trainable=False)
    with tf.GradientTape() as tape:
        tape.watch(v)
        y = v * v
    return tape.gradient(y, v), [w is v for w in tape.watched_variables()]


@case("A3.7")
def watched_late(tf):
    x, w = tf.constant(3.0), tf.constant(4.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * w
        tape.watch(w)
        z = y * w
    return tape.gradient(z, w)


@case("A3.7")
def operations_before_the_watch(tf):
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        y = x * x
        tape.watch(x)
        z = y * x
    return tape.gradient(z, x)


@case("A3.8", says="'NoneType' object has no attribute '_tape'", differs="a RuntimeError that says what to do")
def watch_on_a_tape_never_entered(tf):
    tf.GradientTape().watch(tf.constant(1.0))


@case("A3.9", differs="watch on an exited tape always takes effect")
def watch_after_exit(tf):
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        pass
    tape.watch(x)
    with tape:
        y = x * x
    return tape.gradient(y, x)


# A4 watched_variables


@case("A4.1")
def construction_order_without_duplicates(tf):
    a, b, c = (tf.Variable(float(i), name=n) for i, n in enumerate("abc"))
    with tf.GradientTape() as tape:
        c * a + b * c
    return [v.name for v in tape.watched_variables()], type(tape.watched_variables()).__name__


def _touches(tf):
    return {
        "arithmetic": lambda v: v + 1.0,
        "value": lambda v: v.value(),
        "read_value": lambda v: v.read_value(),
        "numpy": lambda v: v.numpy(),
        "convert": lambda v: tf.convert_to_tensor(v),
        "equal": lambda v: v == 1.0,
        "iterate": lambda v: list(v),
        "repr": repr,
        "shape function": lambda v: tf.shape(v),
        "sparse_read": lambda v: v.sparse_read([0]),
        "assign": lambda v: v.assign([1.0, 2.0]),
        "assign_add": lambda v: v.assign_add([1.0, 2.0]),
        "scatter": lambda v: v.scatter_add(slices(tf, [1.0], [0])),
        "construction": lambda v: tf.Variable(1.0),
        "attributes": lambda v: (v.shape, v.dtype, v.name, v.trainable),
        "is_initialized": lambda v: v.is_initialized(),
        "assign unread": lambda v: v.assign([1.0, 2.0], read_value=False),
        "assign_add unread": lambda v: v.assign_add([1.0, 2.0], read_value=False),
    }


@case("A4.2")
def what_counts_as_access(tf):
    found = {}
    for name, touch in _touches(tf).items():
        v = tf.Variable([1.0, 2.0])
        with tf.GradientTape() as tape:
            touch(v)
        found[name] = any(w is v for w in tape.watched_variables())
    return found


@case("A4.2")
def fixed_variables_and_closed_tapes_are_not_watched(tf):
    v, w = tf.Variable(1.0, trainable=False), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        v * v
    with tf.GradientTape(watch_accessed_variables=False) as closed:
        w * w
    return tape.watched_variables(), closed.watched_variables()


@case("A4.3")
def integer_variable(tf):
    v = tf.Variable(3)
    with tf.GradientTape() as tape:
        y = tf.cast(v, tf.float32) * 2.0
    return tape.gradient(y, v), len(tape.watched_variables())


@case("A4.4")
def remembered_after_use_forgotten_after_reset(tf):
    v = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = v * v
    tape.gradient(y, v)
    with tf.GradientTape() as other:
        v * v
        other.reset()
    return len(tape.watched_variables()), len(other.watched_variables())


# A5, A6 stop_recording and reset


@case("A5.1")
def stop_recording_suspends_this_tape_only(tf):
    x = tf.constant(3.0)
    with tf.GradientTape() as other, tf.GradientTape() as tape:
        tape.watch(x)
        other.watch(x)
        y = x * x
        try:
            with tape.stop_recording():
                z = x * x * x
                raise KeyError
        except KeyError:
            pass
        w = y * x + z
    return tape.gradient(w, x), other.gradient(w, x)


@case("A5.2", says="Trying to stop recording a tape which is not recording.")
def stop_recording_never_entered(tf):
    with tf.GradientTape().stop_recording():
        pass


@case("A5.3", says="Tape is not recording.")
def stop_recording_after_exit(tf):
    with tf.GradientTape() as tape:
        pass
    with tape.stop_recording():
        pass


@case("A5.3", says="Tape is not recording.")
def stop_recording_twice(tf):
    with tf.GradientTape() as tape, tape.stop_recording(), tape.stop_recording():
        pass


@case("A5.4")
def gradient_inside_stop_recording(tf):
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        with tape.stop_recording():
            g = tape.gradient(y, x)
        tape.watch(x)
        z = x * x * x
    return g, tape.gradient(z, x)


@case("A5.5")
def results_from_inside_are_constants(tf):
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tape.stop_recording():
            y = x * x
        z = y * x
    return tape.gradient(z, [x, y])


@case("A6.1", says="Tape is not recording.")
def reset_after_exit(tf):
    with tf.GradientTape() as tape:
        pass
    tape.reset()


@case("A6.2")
def reset_drops_records_and_watches(tf):
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        tape.reset()
        z = x * x
        tape.watch(x)
        w = x * x * x
    return [tape.gradient(t, x) for t in (y, z, w)]


# A12, A13, A14


@case("A12.1")
def value_at_forward_time(tf):
    v = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = v * v
        v.assign(10.0)
        z = v * v
    return tape.gradient(y, v), tape.gradient([y, z], v)


@case("A12.2")
def assignment_blocks(tf):
    v, x = tf.Variable(2.0), tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        w = v.assign(x * x)
        y = v * 2.0
        z = w * 5.0
    return tape.gradient(y, [x, v]), tape.gradient(z, [w, v])


@case("A12.3")
def read_before_the_tape(tf):
    v = tf.Variable(2.0)
    a = v.read_value()
    with tf.GradientTape() as tape:
        y = a * a
    return tape.gradient(y, v), tape.watched_variables()


@case("A12.4")
def rebound_variable(tf):
    v = tf.Variable(2.0)
    found = []
    for _ in range(2):
        with tf.GradientTape() as tape:
            y = v * v
        found.append(tape.gradient(y, v))
        v = v + 1.0
    return found


@case("A13.3")
def python_control_flow(tf):
    condition, a, b = tf.Variable(1.0), tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = a * a if condition > 0.5 else b * b
    return tape.gradient(y, [condition, a, b])


@case("A14.1")
def inner_gradient_where(tf):
    x = tf.constant(2.0)

    def second(inside):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = x**3
                if inside == "inner":
                    g = inner.gradient(y, x)
            if inside == "outer":
                g = inner.gradient(y, x)
        if inside == "none":
            g = inner.gradient(y, x)
        return g, outer.gradient(g, x)

    return [second(where) for where in ("inner", "outer", "none")]


@case("A14.2")
def inner_watch_of_an_outer_intermediate(tf):
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        y = x * x
        with tf.GradientTape() as inner:
            inner.watch(y)
            z = y**3
        g = inner.gradient(z, y)
    return g, outer.gradient(g, x)


@case("A14.3")
def any_order_on_one_tape(tf):
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        found = [x**4]
        for _ in range(5):
            found.append(tape.gradient(found[-1], x))
    return found


@case("A14.4")
def watched_by_the_other_tape_only(tf):
    x = tf.constant(2.0)
    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        outer.watch(x)
        y = x * x
    return inner.gradient(y, x)


@case("A12.3")
def read_before_the_outer_tape(tf):
    v = tf.Variable(3.0)
    with tf.GradientTape() as inner:
        y = v * v * v
    with tf.GradientTape() as outer:
        outer.watch(v)
        g = inner.gradient(y, v)
        z = g * v
    return g, outer.gradient(z, v)


@case("A14.1")
def computed_before_the_outer_tape(tf):
    x, w = tf.constant(3.0), tf.constant(5.0)
    with tf.GradientTape() as inner:
        inner.watch(x)
        y = x * x * w
    with tf.GradientTape() as outer:
        outer.watch([x, w])
        g = inner.gradient(y, x)
    return g, outer.gradient(g, [x, w])


@case("A14.2")
def constants_of_the_inner_tape(tf):
    x, w = tf.constant(3.0), tf.constant(5.0)
    with tf.GradientTape() as outer:
        outer.watch(w)
        with outer.stop_recording(), tf.GradientTape() as inner:
            inner.watch(x)
            y = x * x * w
        g = inner.gradient(y, x)
    return g, outer.gradient(g, w)


@case("A14.1")
def upstream_known_to_the_outer_tape(tf):
    x, w = tf.constant(3.0), tf.constant(5.0)
    with tf.GradientTape() as inner:
        inner.watch(x)
        y = x * x
    with tf.GradientTape() as outer:
        outer.watch(w)
        g = inner.gradient(y, x, output_gradients=w * w)
    return g, outer.gradient(g, w)


@case("A14.3")
def mixed_derivatives(tf):
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as inner:
            z = x * x * y + tf.sin(x * y)
        gx, gy = inner.gradient(z, [x, y])
    return [outer.gradient(g, [x, y]) for g in (gx, gy)]
