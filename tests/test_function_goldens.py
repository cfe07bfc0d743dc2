"""Every recorded call: values, dtypes, shapes, gradients and refusals as TensorFlow gives them.

Beside ``goldens/functions/<family>.txt`` (the calls) and ``.json`` (what TensorFlow did) a file ``.differs.txt`` may list,
as ``kind | call | why``, the calls that come out otherwise on purpose; what it lists must really differ.
"""

from __future__ import annotations

import json

import pytest
from function_calls import FAMILIES, FOLDER, calls, close, outcome

import gradtape as tf

pytestmark = pytest.mark.tiny

GOLDENS: dict[str, dict] = {}
DIFFERS: dict[str, tuple[str, str]] = {}
for _family in FAMILIES:
    GOLDENS |= json.loads((FOLDER / f"{_family}.json").read_text())["calls"]
    _file = FOLDER / f"{_family}.differs.txt"
    for _line in _file.read_text().splitlines() if _file.exists() else ():
        if _line.strip() and not _line.startswith("#"):
            _kind, _rest = _line.split(" | ", 1)
            _call, _why = _rest.rsplit(" | ", 1)
            DIFFERS[_call] = _kind, _why
CALLS = [call for family in FAMILIES for call in calls(family)]


def listed(kind: str) -> list[str]:
    return [call for call, (k, _) in DIFFERS.items() if k == kind]


def test_every_call_is_recorded_once():
    assert len(CALLS) == len(set(CALLS))
    assert set(CALLS) == set(GOLDENS)
    assert set(DIFFERS) <= set(CALLS)
    assert {kind for kind, _ in DIFFERS.values()} <= {"differs", "class", "words"}


@pytest.mark.parametrize("call", [c for c in CALLS if DIFFERS.get(c, ("",))[0] not in ("differs", "class")])
def test_as_tensorflow(call):
    ours, theirs = outcome(tf, call), GOLDENS[call]
    assert ours.get("error") == theirs.get("error"), (ours, theirs)
    if "value" in theirs:
        assert close(ours["value"], theirs["value"]), (ours, theirs)


@pytest.mark.parametrize("call", listed("differs"))
def test_where_we_differ_we_still_differ(call):
    ours, theirs = outcome(tf, call), GOLDENS[call]
    assert ours.get("error") != theirs.get("error") or not close(ours.get("value"), theirs.get("value"))


@pytest.mark.parametrize("call", listed("class"))
def test_refused_in_our_way(call):
    assert outcome(tf, call)["error"] == DIFFERS[call][1]


WORDINGS = [call for call in CALLS if GOLDENS[call].get("error") == "InvalidArgumentError"]


@pytest.mark.parametrize("call", [c for c in WORDINGS if c not in DIFFERS])
def test_tensorflow_s_words(call):
    words = GOLDENS[call]["text"].splitlines()[0].split(" allowed values")[0].strip(" .")
    assert words[:60] in outcome(tf, call)["text"]
