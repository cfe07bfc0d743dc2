"""The same objects made with TensorFlow (tools/record_checkpoint_golden.py) and with gradtape (test_bundle.py)."""

from __future__ import annotations

from typing import Any

import numpy as np


def objects(tf: Any, empty: bool = False) -> dict[str, Any]:
    """Variables of many kinds in modules, lists and dictionaries; ``empty``: with zeros for values."""

    def variable(value: Any, dtype: str) -> Any:
        array = np.array(value)
        array = np.where(array == array, "", "") if empty and dtype == "string" else np.zeros_like(array) if empty else array
        return tf.Variable(tf.constant(array.tolist(), dtype))

    net = tf.Module()
    net.w = variable([[0.5, 1.5, -2.0], [3.0, 4.0, 5.0]], "float32")
    net.layers = [{"kernel": variable(7, "int64")}, variable([1.0, 2.0], "bfloat16"), (variable([1 + 2j], "complex128"),)]
    net.texts = variable(["a", "", "longer"], "string")
    net.flag = variable(True, "bool")
    net.tied = net.w
    net.many = [variable(n, "int32") for n in range(40)]  # enough for keys that share their beginnings
    return {"net": net, "step": variable(5, "int32"), "generator": tf.random.Generator.from_seed(0 if empty else 3)}
