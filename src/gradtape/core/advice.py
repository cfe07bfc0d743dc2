"""What to do about an error that a kernel met: kernels know arrays, and say only what is wrong."""

from __future__ import annotations

_ADVICE = {
    "allowed values": "tf.cast(x, tf.float32) first",
    "division by zero": "tf.where(y == 0, tf.ones_like(y), y) as divisor, or divide floats, which gives inf and nan",
    "negative integer powers": "tf.pow(tf.cast(x, tf.float32), y)",
    "boolean": "tf.logical_not, tf.logical_or and tf.logical_and work on booleans; numbers come from tf.cast(x, tf.int32)",
    "'bytes'": "tf.strings.to_number(x) makes numbers of strings, tf.strings.join([x, y]) joins them",
    "Matrix size-incompatible": "the first needs as many columns as the second has rows; transpose_b=True exchanges those",
    "ndims must be": "give vectors an axis, x[tf.newaxis, :], or use tf.tensordot(x, y, 1)",
    "out of bounds": "count axes from 0, or from -1 backwards, up to the rank of the input",
    "into shape": "tf.size(x) must be the product of the new lengths; one of them may be -1",
}


def advice(text: str) -> str:
    """How to avoid the error with this text; empty for one that is not known."""
    return next((fix for phrase, fix in _ADVICE.items() if phrase in text), "")
