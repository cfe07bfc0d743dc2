"""Every refusal says what was received, and what was expected or how to mend it.

The calls are those that TensorFlow refuses in ``goldens/functions``; the words that it uses are compared there.
"""

from __future__ import annotations

import json

import pytest
from function_calls import FAMILIES, FOLDER, calls, outcome

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
}
"""Refusals in somebody else's words, and whose."""
