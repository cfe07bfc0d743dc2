"""Every refusal says what was received, and what was expected or how to mend it.

The calls are those that TensorFlow refuses in ``goldens/functions`` and ``goldens/spec.json``; its words are compared there.
"""

from __future__ import annotations

import json

import pytest
from function_calls import FAMILIES, FOLDER, calls, outcome
from spec import all_cases  # noqa: F401  # registers the cases
from spec.cases import CASES
from spec.cases import outcome as spec_outcome

import gradtape as tf
from gradtape.errors import message, shown

pytestmark = pytest.mark.tiny

NOT_OURS = {
    "next(iter(tf.data.Dataset.range(0)))": "StopIteration, which ends a for loop",
    "nth(tf.data.Dataset.from_tensor_slices((v,i)).map(lambda a: a))": "the user's function",
    "nth(tf.data.Dataset.range(2).map(lambda a,b: a))": "the user's function",
    "tf.while_loop(lambda i: tf.reduce_all(i < 3), lambda i: i + 1, [[0,1]])": "the user's function",
    "tf.numpy_function(lambda a: a, v, tf.float32)": "the user's function",
    "tf.numpy_function(lambda a: 1/0, [v], tf.float32)": "the user's function",
    "tf.numpy_function(lambda a: int('z'), [v], tf.float32)": "the user's function",
    "tf.numpy_function(lambda a: [][1], [v], tf.float32)": "the user's function",
    "tf.TensorArray(tf.float32, 3).unstack(v).close().size()": "Python, of None",
    "len(tf.TensorArray(tf.float32, 2))": "Python: the class has no such operator",
    "tf.TensorArray(tf.float32, 2)[0]": "Python: the class has no such operator",
    "len(tf.ragged.constant([[1]]))": "Python: the class has no such operator",
    "tf.SparseTensor([[0,1]],[1.],[3,4])+1.": "Python: the class has no such operator",
    "-tf.SparseTensor([[0,1]],[1.],[3,4])": "Python: the class has no such operator",
    "tf.TypeSpec()": "Python: an abstract class",
    "tf.data.Options().experimental_nothing": "Python: no such attribute",
    "C1.11 errors_in_grad_fn": "the user's function",
    "A7.41 errors_in_a_rule_propagate": "the user's function",
    "D2.6 format_of_a_variable": "Python: the class has no such operator",
    "D5.5 no_length": "Python: the class has no such operator",
    "D4.3 slices_have_no_assign_add": "Python: no such attribute",
}
"""Refusals in somebody else's words, and whose."""


def refusals(family: str) -> dict[str, str]:
    """The text of each refusal of a family, by its call; what TensorFlow does not refuse is left out for speed."""
    recorded = json.loads((FOLDER / f"{family}.json").read_text())["calls"]
    outcomes = {call: outcome(tf, call) for call in calls(family) if "error" in recorded[call]}
    return {call: found["text"] for call, found in outcomes.items() if "error" in found}


def lacking(found: dict[str, str]) -> dict[str, str]:
    """Those that do not say what was received, or neither what was expected nor what to do."""
    told = {call for call, text in found.items() if "\n  Expected:" in text or "\n  Fix:" in text}
    return {call: text for call, text in found.items() if call not in told or "\n  Received:" not in text}


def check(found: dict[str, str]) -> None:
    wrong = lacking(found)
    assert wrong.keys() == found.keys() & NOT_OURS.keys(), "\n".join(f"{call}: {text}" for call, text in wrong.items())


@pytest.mark.parametrize("family", FAMILIES)
def test_refusals_say_what_was_received_and_what_to_do(family):
    check(refusals(family))


def test_so_do_those_of_the_tape_and_of_variables():
    outcomes = {name: spec_outcome(case.run, tf) for name, case in CASES.items()}
    check({name: found["text"] for name, found in outcomes.items() if "error" in found})


# What was received


def received(call):
    with pytest.raises((ValueError, TypeError, tf.errors.OpError)) as caught:
        call()
    (line,) = [line for line in str(caught.value).splitlines() if line.startswith("  Received:")]
    return line.removeprefix("  Received: ")


def test_arguments_are_shown_by_name_with_dtypes_and_shapes():
    x = tf.ones((2, 3))
    assert received(lambda: tf.matmul(x, b=x)) == "a=float32 (2, 3), b=float32 (2, 3)"  # those at their defaults are left out
    assert received(lambda: x + tf.constant([1.0, 2.0])) == "x=float32 (2, 3), y=float32 (2,) [1.0, 2.0]"
    assert received(lambda: tf.nn.gelu(tf.constant(1))) == "features=int32 () 1"


def test_the_call_that_is_shown_is_the_user_s_not_ours_inside():
    image = tf.ones((2, 2, 2))
    assert received(lambda: tf.image.rgb_to_grayscale(image)) == "images=float32 (2, 2, 2)"  # a matmul inside of it refuses


def test_the_call_that_is_shown_is_the_innermost_of_the_user_s():
    rows = tf.ones((2, 3))
    assert received(lambda: tf.map_fn(lambda row: row + tf.ones(2), rows)).startswith("x=float32 (3,)")


class Hostile:
    """An object that answers no question."""

    def __getattr__(self, name):
        raise ValueError(message("no", fix="none"))

    def __repr__(self):
        raise RuntimeError


def test_values_are_shown_briefly_whatever_they_are():
    assert shown(["SAME", None, tf.ones((2, 2))]) == "['SAME', None, float32 (2, 2)]"
    assert len(shown(list(range(10**6)))) < 100
    assert len(shown("a" * 1000)) < 100
    assert shown(lambda: 0) == "<lambda>"
    assert shown(object()) == "object"
    assert shown(tf.Variable([1.0], name="w")) == "Variable 'w:0' float32 (1,)"
    assert "Hostile" in shown(Hostile())


def test_a_tensor_is_asked_nothing_that_it_refuses(monkeypatch):
    """Its refusal would have to show it again."""
    monkeypatch.setattr(tf.Tensor, "name", property(lambda self: pytest.fail("asked for its name")))
    assert shown(tf.constant(1.0)) == "float32 () 1.0"
