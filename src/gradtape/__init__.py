"""gradtape: TensorFlow's GradientTape without TensorFlow.

>>> import gradtape as tf
>>> x = tf.Variable(3.0)
>>> with tf.GradientTape() as tape:
...     y = x**2
>>> float(tape.gradient(y, x))
6.0

The names are TensorFlow's. What every program needs is loaded here; the submodules in `_SUBMODULES` load when touched.
"""

import typing as _typing

from gradtape import errors
from gradtape.core.custom import RegisterGradient, custom_gradient, grad_pass_through, no_gradient, recompute_grad
from gradtape.core.indexed_slices import IndexedSlices
from gradtape.core.module import Module
from gradtape.core.tape import GradientTape, UnconnectedGradients, gradients, hessians
from gradtape.core.variable import Variable, VariableAggregation, VariableSynchronization
from gradtape.ops import methods as _methods  # installs the operators
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

from gradtape.dtypes import complex, saturate_cast
from gradtape.linalg import einsum, eye, matmul, norm, tensordot
from gradtape.math import (
    abs, acos, acosh, add, add_n, argmax, argmin, asin, asinh, atan, atan2, atanh, cos, cosh, cumsum, divide, equal, exp,
    floor, greater, greater_equal, less, less_equal, logical_and, logical_not, logical_or, maximum, minimum, multiply,
    negative, not_equal, pow, reduce_all, reduce_any, reduce_logsumexp, reduce_max, reduce_mean, reduce_min, reduce_prod,
    reduce_sum, round, scalar_mul, sigmoid, sign, sin, sinh, sqrt, square, subtract, tan, tanh, truediv,
)
from gradtape.toplevel import (
    argsort, boolean_mask, broadcast_dynamic_shape, broadcast_static_shape, broadcast_to, clip_by_global_norm,
    clip_by_norm, clip_by_value, concat, dynamic_partition, dynamic_stitch, ensure_shape, expand_dims, fill,
    gather, gather_nd, get_static_value, histogram_fixed_width, histogram_fixed_width_bins, identity, identity_n,
    is_tensor, linspace, meshgrid, one_hot, ones, ones_like, pad, range, rank, realdiv, repeat,
    reshape, reverse, reverse_sequence, roll, scatter_nd, searchsorted, sequence_mask, shape, shape_n,
    size, slice, sort, split, squeeze, stack, strided_slice, tensor_scatter_nd_add, tensor_scatter_nd_max,
    tensor_scatter_nd_min, tensor_scatter_nd_sub, tensor_scatter_nd_update, tile, transpose, truncatediv,
    truncatemod, tuple, unique, unique_with_counts, unravel_index, unstack, where, zeros, zeros_like,
)

__version__ = "0.1.0"
newaxis = None

# Written out, so that type checkers and editors know the names too.
__all__ = [
    "__version__", "DType", "GradientTape", "IndexedSlices", "Module", "RegisterGradient", "Tensor", "TensorShape",
    "UnconnectedGradients", "Variable", "VariableAggregation", "VariableSynchronization", "abs", "acos", "acosh", "add",
    "add_n", "argmax", "argmin", "argsort", "as_dtype", "asin", "asinh", "atan", "atan2", "atanh", "bfloat16", "bool",
    "boolean_mask", "broadcast_dynamic_shape", "broadcast_static_shape", "broadcast_to", "cast", "clip_by_global_norm",
    "clip_by_norm", "clip_by_value", "complex", "complex128", "complex64", "concat", "constant", "convert_to_tensor", "cos",
    "cosh", "cumsum", "custom_gradient", "divide", "double", "dynamic_partition", "dynamic_stitch", "einsum",
    "ensure_shape", "equal", "errors", "exp", "expand_dims", "eye", "fill", "float16", "float32", "float64", "floor",
    "gather", "gather_nd", "get_static_value", "grad_pass_through", "gradients", "greater", "greater_equal", "half",
    "hessians", "histogram_fixed_width", "histogram_fixed_width_bins", "identity", "identity_n", "int16", "int32", "int64",
    "int8", "is_tensor", "less", "less_equal", "linspace", "logical_and", "logical_not", "logical_or", "matmul", "maximum",
    "meshgrid", "minimum", "multiply", "name_scope", "negative", "nest", "newaxis", "no_gradient", "norm", "not_equal",
    "one_hot", "ones", "ones_like", "pad", "pow", "range", "rank", "realdiv", "recompute_grad", "reduce_all", "reduce_any",
    "reduce_logsumexp", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum", "repeat", "reshape",
    "reverse", "reverse_sequence", "roll", "round", "saturate_cast", "scalar_mul", "scatter_nd", "searchsorted",
    "sequence_mask", "shape", "shape_n", "sigmoid", "sign", "sin", "sinh", "size", "slice", "sort", "split", "sqrt",
    "square", "squeeze", "stack", "stop_gradient", "strided_slice", "string", "subtract", "tan", "tanh",
    "tensor_scatter_nd_add", "tensor_scatter_nd_max", "tensor_scatter_nd_min", "tensor_scatter_nd_sub",
    "tensor_scatter_nd_update", "tensordot", "tile", "transpose", "truediv", "truncatediv", "truncatemod", "tuple",
    "uint16", "uint32", "uint64", "uint8", "unique", "unique_with_counts", "unravel_index", "unstack", "where", "zeros",
    "zeros_like",
]  # fmt: skip

_SUBMODULES = frozenset(
    "autodiff dtypes errors extend linalg math nest nn optimizers random test testing values".split()
)


_PLANNED = {
    "function": "compiled functions are planned; eager code gives the same results without the decorator",
    "keras": "Keras on gradtape is planned; tf.Module, tf.nn and tf.optimizers are here",
    "data": "datasets are planned; a generator of NumPy batches serves until then",
    "train": "checkpoints are planned; variables can be pickled",
    "summary": "event files are planned; log the numbers as you like",
    "distribute": "distribution is planned",
    "image": "image ops are planned",
    "signal": "Fourier transforms are planned",
    "while_loop": "use Python's while: eager code records what runs",
    "cond": "use Python's if: eager code records what runs",
    "map_fn": "use tf.stack([f(x) for x in xs])",
    "vectorized_map": "use tf.stack([f(x) for x in xs])",
    "py_function": "call the Python function: eager code needs no wrapper",
}

if _typing.TYPE_CHECKING:
    from gradtape import autodiff, dtypes, extend, linalg, math, nn, optimizers, random, test, testing


def __getattr__(name: str) -> _typing.Any:
    """Load a submodule when it is first touched; name the nearest spellings of what does not exist."""
    if name in _SUBMODULES:
        import importlib

        return importlib.import_module(f"gradtape.{name}")
    if name in _PLANNED:
        raise AttributeError(f"tf.{name} is not there yet: {_PLANNED[name]}.")
    import difflib

    near = difflib.get_close_matches(name, [*__all__, *_SUBMODULES], n=3)
    hint = f" Did you mean {' or '.join(f'tf.{n}' for n in near)}?" if near else ""
    raise AttributeError(f"module 'gradtape' has no attribute {name!r}.{hint}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUBMODULES, *(name for name in globals() if name.startswith("__"))})
