"""Programs of many functions follow TensorFlow's run of the same text, step by step."""

from __future__ import annotations

import json

import numpy as np
import pytest
from program_curves import GOLDENS, PROGRAMS, curves, flat, shape

import gradtape as tf

RECORDED = json.loads(GOLDENS.read_text())["programs"]
# Each training step amplifies float32 rounding (6e-8); a wrong function is off by far more within these few steps.
TOLERANCE = 1e-4


def test_every_program_is_recorded():
    assert sorted(RECORDED) == PROGRAMS


@pytest.mark.parametrize("name", PROGRAMS)
def test_follows_tensorflow(name):
    ours, theirs = curves(tf, name), RECORDED[name]
    assert ours.keys() == theirs.keys()
    for key, expected in theirs.items():
        assert shape(ours[key]) == shape(expected), key
        leaves = flat(expected)
        if isinstance(leaves[0], str):
            assert flat(ours[key]) == leaves, key
        else:
            scale = max(1.0, float(np.max(np.abs(leaves))))
            np.testing.assert_allclose(flat(ours[key]), leaves, rtol=TOLERANCE, atol=TOLERANCE * scale, err_msg=key)
