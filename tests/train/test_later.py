"""What is put into lists and dictionaries after a checkpoint was restored receives its value then."""

from __future__ import annotations

import collections
import copy
import gc
import json
import logging
import os
import pickle
from pathlib import Path

import later_programs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradtape as tf
from gradtape.train.growing import Growing, growing

pytestmark = pytest.mark.tiny
TENSORFLOW_S = Path(__file__).parents[1] / "goldens" / "checkpoint"


@pytest.fixture(autouse=True)
def _files_need_not_survive_a_crash(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda file: None)


@pytest.fixture
def restored(tmp_path):
    """Restores into the second object what the first is; the status."""
    count = iter(range(9))

    def restored(saved, other):
        return tf.train.Checkpoint(m=other).restore(tf.train.Checkpoint(m=saved).write(str(tmp_path / f"c{next(count)}")))

    return restored


def module(**attributes):
    return later_programs.module(tf, **attributes)


def variables(*values):
    return later_programs.variables(tf, *values)


def floats(parts):
    return [float(part) for part in parts]


@pytest.mark.parametrize("name", later_programs.PROGRAMS)
def test_as_tensorflow(name, tmp_path):
    if name == "made_by_a_traced_function":
        pytest.importorskip("jax")
    assert later_programs.run(tf, name, tmp_path) == later_programs.PROGRAMS[name][1]


# The model: a place that was saved gives its value to the first that is put there

SAVED = 5
CHANGES = {
    "append": lambda parts, n, make: parts.append(make()),
    "extend": lambda parts, n, make: parts.extend([make() for _ in range(n)]),
    "extend by a generator": lambda parts, n, make: parts.extend(make() for _ in range(n)),
    "set": lambda parts, n, make: parts.__setitem__(n % len(parts), make()) if parts else None,
    "set from the end": lambda parts, n, make: parts.__setitem__(-1 - n % len(parts), make()) if parts else None,
    "slice": lambda parts, n, make: parts.__setitem__(slice(n, None), [make() for _ in range(2)]),
    "insert": lambda parts, n, make: parts.insert(n, make()),
    "pop": lambda parts, n, make: parts.pop(n % len(parts)) if parts else None,
    "delete": lambda parts, n, make: parts.__delitem__(slice(n, None)),
    "clear": lambda parts, n, make: parts.clear(),
    "reverse": lambda parts, n, make: parts.reverse(),
    "none": lambda parts, n, make: parts.append(None),
    "remove": lambda parts, n, make: parts.remove(parts[0]) if parts else None,
}
PLACED = {"append", "extend", "extend by a generator", "set", "set from the end", "slice"}


def expected(changes):
    """The values in the list, by the rule."""
    fresh = iter(range(-1, -1000, -1))
    parts: list = []
    given: set = set()
    for name, n in changes:
        before = list(parts)
        CHANGES[name](parts, n, lambda: {"value": float(next(fresh))})
        for place, part in enumerate(parts):
            new = name in PLACED and part is not None and not any(part is old for old in before)
            if new and place < SAVED and place not in given:
                part["value"] = float(place)
                given.add(place)
    return [part and part["value"] for part in parts]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A checkpoint with a list and a dictionary."""
    saved = module(l=variables(*range(SAVED)), d=dict(zip("abc", variables(1, 2, 3))))
    return tf.train.Checkpoint(m=saved).write(str(tmp_path_factory.mktemp("later") / "c"))


@given(changes=st.lists(st.tuples(st.sampled_from(sorted(CHANGES)), st.integers(0, 3)), max_size=8))
def test_lists_as_the_model(changes, written):
    other = module(l=[])
    tf.train.Checkpoint(m=other).restore(written).expect_partial()
    fresh = iter(range(-1, -1000, -1))
    for name, n in changes:
        CHANGES[name](other.l, n, lambda: tf.Variable(float(next(fresh))))
    assert [part and float(part) for part in other.l] == expected(changes)


@given(
    names=st.lists(st.sampled_from("a b c d".split()), unique=True),
    how=st.sampled_from(["[]", "update", "keywords", "setdefault", "or"]),
    kind=st.sampled_from([dict, collections.OrderedDict]),
)
def test_keys_in_any_order_and_way(names, how, kind, written):
    other = module(d=kind())
    tf.train.Checkpoint(m=other).restore(written).expect_partial()
    for name in names:
        part = tf.Variable(0.0)
        if how == "[]":
            other.d[name] = part
        elif how == "update":
            other.d.update([(name, part)])
        elif how == "keywords":
            other.d.update(**{name: part})
        elif how == "setdefault":
            assert other.d.setdefault(name, part) is part
        else:
            other.d |= {name: part}
    assert floats(other.d.values()) == [{"a": 1, "b": 2, "c": 3}.get(name, 0) for name in names]
    assert list(other.d) == names


# The containers

OPERATIONS = """
len(x); list(x); [*x]; tuple(x); repr(x); str(x); f'{x}'; bool(x); x == y; y == x; x != y; x == []; sorted(x, key=str)
json.dumps(x); copy.deepcopy(x); pickle.loads(pickle.dumps(x)); isinstance(x, (list, dict)); 1 in x; x.copy()
copy.copy(x); iter(x).__next__(); tf.nest.flatten(x)
tf.nest.map_structure(str, x); tf.nest.pack_sequence_as(x, [1] * 3); max(x)
list(reversed(x)); x[0]; x['a']; type(x)(x)
"""
OF_LISTS = """
np.array(x).tolist(); [0] + x; x + [0]; x + x; x * 2; 2 * x; x < [5]; [0] < x; x[::-1]; x[-1]; x.index(2); x.count(1); x[7]
[].extend(x); (lambda *a: a)(*x); [9][:0] + list(x); x.append(4); x.extend(x); x.__iadd__([7]); x.insert(1, 8); x.pop()
x.pop(0); x.remove(2); x.remove(9); x.reverse(); x.sort(reverse=True); x.clear(); x.__setitem__(0, 5); x.extend(None)
x.__setitem__(slice(1, 2), [5, 6]); x.__delitem__(0); x.__imul__(2); sum(x); x.__setitem__('a', 1)
x.extend(1 / n for n in (1, 0))
"""
OF_DICTIONARIES = """
{**x}; dict(x); (lambda **k: k)(**x); x | {'z': 1}; {'z': 1} | x; list(x.items()); list(x.values()); x.get('a')
x.get('z', 5); x.pop('a'); x.pop('z'); x.popitem(); x.setdefault('a', 7); x.setdefault('z', 7); x.update(a=9)
x.update({'a': 9}, z=1); x.clear(); x.keys() & {'a'}; x.__setitem__('z', 1); x.__delitem__('a'); x.__ior__({'z': 1})
x.update(None); x.fromkeys('ab')
"""


def outcome(operation, x, y):
    """What an operation gives, and what the container is afterwards; or the error."""
    names = {"x": x, "y": y, "json": json, "copy": copy, "pickle": pickle, "np": np, "tf": tf}
    try:
        result = eval(operation, names)
    except Exception as error:
        return type(error), str(error), list(y), y
    return type(result), result, y


@pytest.mark.parametrize("make", [
    lambda: [1, 2, 3], lambda: {"a": 1, "b": 2, "c": 3}, lambda: collections.OrderedDict(c=1, a=2, b=3), list, dict,
], ids=["list", "dict", "ordered", "empty list", "empty dict"])  # fmt: skip
def test_a_stand_in_is_what_it_stands_for(make):
    text = OPERATIONS + (OF_LISTS if isinstance(make(), list) else OF_DICTIONARIES)
    for operation in text.replace("\n", "; ").strip("; ").split("; "):
        kept, like = make(), make()
        found, wanted = outcome(operation, growing(kept), kept), outcome(operation, like, like)
        assert found == wanted, operation
    with pytest.raises(TypeError, match="unhashable"):
        hash(growing(make()))


def test_there_are_stand_ins_only_while_something_is_lacking(restored):
    given, keys, both = [], {}, (1, [])
    other = module(l=given, d=keys, t=both, free=[])
    status = restored(module(l=variables(1), d={"a": tf.Variable(1.0)}, t=(1, variables(2))), other)
    assert all(isinstance(part, Growing) for part in (other.l, other.d, other.t[1]))
    assert type(other.free) is list
    other.l.append(tf.Variable(0.0))
    assert other.l is given
    other.d["a"] = tf.Variable(0.0)
    assert other.d is keys
    other.t[1].append(tf.Variable(0.0))
    assert other.t is both
    assert [*floats(given), float(keys["a"]), float(both[1][0])] == [1.0, 1.0, 2.0]
    status.assert_consumed()


def test_additions_in_place_leave_a_list_behind(restored):
    given = []
    other = module(l=given)
    restored(module(l=variables(1, 2)), other)
    other.l += variables(0)
    assert isinstance(other.l, Growing)
    other.l += variables(0)
    assert other.l is given
    assert floats(given) == [1.0, 2.0]


def test_the_list_that_was_assigned_has_the_same_contents(restored):
    given = []
    other = module(l=given)
    status = restored(module(l=variables(1, 2)), other)
    given.append(tf.Variable(0.0))  # does not tell
    other.l.append(tf.Variable(0.0))
    assert floats(given) == floats(other.l) == [0.0, 2.0]
    assert len(other.variables) == 2
    status.assert_consumed()  # looks again
    assert floats(given) == [1.0, 2.0]
    assert other.l is given


def test_what_is_inserted_is_restored_when_the_status_is_asked(restored):
    other = module(l=[])
    status = restored(module(l=variables(1, 2)), other)
    other.l.insert(0, tf.Variable(5.0))
    other.l.insert(0, tf.Variable(6.0))
    assert floats(other.l) == [6.0, 5.0]
    status.assert_consumed()
    assert floats(other.l) == [1.0, 2.0]


def test_a_list_with_two_names(restored):
    saved, given = variables(1), []
    other = module(a=given, b=given)
    status = restored(module(a=saved, b=saved), other)
    assert other.a is other.b
    other.a.append(tf.Variable(0.0))
    assert other.a is other.b is given
    assert float(other.b[0]) == 1.0
    status.assert_consumed()


def test_a_list_that_two_objects_have(restored):
    def pair(parts):
        return module(a=module(l=parts), b=module(l=parts))

    given = []
    other = pair(given)
    status = restored(pair(variables(1, 2)), other)
    assert other.a.l is other.b.l
    other.a.l.append(tf.Variable(0.0))
    other.b.l.append(tf.Variable(0.0))
    assert floats(given) == [1.0, 2.0]
    assert other.a.l is other.b.l is given
    status.assert_consumed()


def test_another_checkpoint_while_something_is_lacking(restored):
    def pair(parts, inner):
        return module(a=module(l=parts), b=module(l=parts), t=(inner, [inner]))

    given, inner = [], []
    other = pair(given, inner)
    restored(pair(variables(1, 2, 3), variables(4, 5)), other).expect_partial()
    other.a.l.append(tf.Variable(0.0))
    other.t[0].append(tf.Variable(0.0))
    status = restored(pair(variables(6, 7), variables(8, 9)), other)
    assert floats(given) == [6.0]
    other.b.l.append(tf.Variable(0.0))
    other.t[1][0].append(tf.Variable(0.0))
    assert [*floats(given), *floats(inner)] == [6.0, 7.0, 8.0, 9.0]
    assert other.a.l is other.b.l is given
    assert other.t[0] is other.t[1][0] is inner
    status.assert_consumed()


def test_lists_of_other_objects(restored):
    class Plain:
        def __init__(self):
            self.v, self.l = tf.Variable(0.0), []

    saved, other = Plain(), Plain()
    saved.l.append(tf.Variable(2.0))
    status = restored(saved, other)
    other.l.append(tf.Variable(0.0))
    assert floats(other.l) == [2.0]
    status.assert_consumed()


def test_optimizers_in_a_list(restored):
    def trained(steps):
        optimizer, v = tf.optimizers.Adam(0.1), tf.Variable([1.0, 2.0])
        for _ in range(steps):
            optimizer.apply_gradients([(v * 2, v)])
        return optimizer, v

    optimizer, v = trained(3)
    other, w = module(l=[]), tf.Variable([0.0, 0.0])
    other.w = w
    status = restored(module(l=[optimizer], w=v), other)
    other.l.append(tf.optimizers.Adam(0.5))
    for each, variable in ((optimizer, v), (other.l[0], w)):
        each.apply_gradients([(variable * 2, variable)])
    assert w.numpy().tobytes() == v.numpy().tobytes()
    assert int(other.l[0].iterations) == 4
    status.assert_consumed()


def test_a_root_that_stands_for_its_attributes(tmp_path):
    path = tf.train.Checkpoint(module(l=variables(1))).write(str(tmp_path / "c"))
    other = module(l=[])
    status = tf.train.Checkpoint(other).restore(path)
    other.l.append(tf.Variable(0.0))
    assert floats(other.l) == [1.0]
    status.assert_consumed()


def test_a_list_that_is_replaced(restored):
    other = module(l=[])
    restored(module(l=variables(1, 2)), other)
    other.l = [*other.l, tf.Variable(0.0)]
    other.l = [*other.l, tf.Variable(0.0)]
    assert floats(other.l) == [1.0, 2.0]


def test_checkpoints_of_tensorflow():
    other = module(layers=[], many=[])
    status = tf.train.Checkpoint(net=other).restore(tf.train.latest_checkpoint(TENSORFLOW_S)).expect_partial()
    other.layers.append({})
    other.layers[0]["kernel"] = tf.Variable(0, dtype=tf.int64)
    other.layers.append(tf.Variable([0.0, 0.0], dtype=tf.bfloat16))
    other.many.extend(tf.Variable(0) for _ in range(40))
    assert int(other.layers[0]["kernel"]) == 7
    assert other.layers[1].numpy().tolist() == [1.0, 2.0]
    assert [int(v) for v in other.many] == list(range(40))
    status.assert_existing_objects_matched()


def test_what_does_not_fit_is_an_error_where_it_is_appended(restored):
    other = module(l=[])
    restored(module(l=variables(1, 2)), other)
    with pytest.raises(ValueError, match=r"incompatible tensor with shape \(\) .* shape \(2,\)"):
        other.l.append(tf.Variable([1.0, 2.0]))
    assert len(other.l) == 1
    other.l.append(tf.Variable(0.0))
    assert float(other.l[1]) == 2.0


def test_a_variable_that_has_its_value_keeps_it(restored):
    first = tf.Variable(0.0)
    other = module(v=first, l=[])
    restored(module(v=tf.Variable(5.0), l=variables(1, 2)), other).expect_partial()
    other.l.append(first)
    other.l.append(tf.Variable(0.0))
    assert floats(other.l) == [5.0, 2.0]


def test_lists_that_hold_themselves(restored):
    saved, given = variables(1), variables(0)
    saved += [saved, *variables(2)]
    given.append(given)
    other = module(l=given)
    status = restored(module(l=saved), other)
    other.l.append(tf.Variable(0.0))
    assert floats([given[0], given[2]]) == [1.0, 2.0]
    assert other.l is given
    assert given[1] is given
    status.assert_consumed()


def test_copies_of_a_module_that_waits_have_lists(restored):
    other = module(l=[], d={})
    restored(module(l=variables(1), d={"a": tf.Variable(1.0)}), other).expect_partial()
    for made in (copy.deepcopy(other), pickle.loads(pickle.dumps(other))):
        assert (type(made.l), type(made.d)) == (list, dict)
        made.l.append(tf.Variable(0.0))
        assert floats(made.l) == [0.0]
    assert other.l == []


def test_saving_while_something_is_lacking(restored, tmp_path):
    other = module(l=[], again=None)
    restored(module(l=variables(1, 2, 3)), other).expect_partial()
    other.l.append(tf.Variable(0.0))
    path = tf.train.Checkpoint(m=other).write(str(tmp_path / "again"))
    assert [name for name, _ in tf.train.list_variables(path)] == ["m/l/0/.ATTRIBUTES/VARIABLE_VALUE"]
    third = module(l=variables(0))
    tf.train.Checkpoint(m=third).restore(path).assert_consumed()
    assert floats(third.l) == [1.0]


def test_what_was_never_appended_is_logged(restored, caplog):
    other = module(l=[])
    with caplog.at_level(logging.WARNING, "gradtape"):
        restored(module(l=variables(1, 2)), other)
        other.l.append(tf.Variable(0.0))
        del other
        gc.collect()
    assert "values that were not restored: 'm/l/1'" in caplog.records[-1].getMessage()
