"""gradtape: TensorFlow's GradientTape without TensorFlow.

>>> import gradtape as tf
>>> x = tf.Variable(3.0)
>>> with tf.GradientTape() as tape:
...     y = x**2
>>> float(tape.gradient(y, x))
6.0
"""

from __future__ import annotations

from gradtape import errors
from gradtape.core.indexed_slices import IndexedSlices
from gradtape.core.tape import GradientTape, UnconnectedGradients
from gradtape.core.variable import Variable, VariableAggregation, VariableSynchronization
from gradtape.ops import contract, creation, elementwise, indexing, methods, reduce, shape  # defines the ops
from gradtape.ops.elementwise import cast, stop_gradient
from gradtape.values import nest
from gradtape.values.convert import constant, convert_to_tensor
from gradtape.values.dtypes import (
    DType,
    as_dtype,
    bfloat16,
    complex64,
    complex128,
    double,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)
from gradtape.values.dtypes import bool_ as bool
from gradtape.values.naming import name_scope
from gradtape.values.shape import TensorShape
from gradtape.values.tensor import Tensor

__version__ = "0.1.0"
newaxis = None
