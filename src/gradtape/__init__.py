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
from gradtape.core.tape import GradientTape, UnconnectedGradients
from gradtape.core.variable import Variable, VariableAggregation, VariableSynchronization
from gradtape.ops import methods as _methods  # installs the operators
from gradtape.ops.elementwise import cast, stop_gradient
from gradtape.ops.graph_gradients import gradients, hessians
from gradtape.ops.module import Module
from gradtape.ops.placing import convert_to_tensor
from gradtape.tangents import methods as _jacobians  # says how tapes compute them
from gradtape.values import nest
from gradtape.values.convert import constant
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
from gradtape.derivatives import methods as _tape_methods  # installs methods of GradientTape that load when called
from gradtape.inspect import methods as _explaining_methods  # and those by which it explains itself

__version__ = "0.1.0"
newaxis = None

# Written out, so that type checkers and editors know the names too.
__all__ = [
    "__version__", "Assert", "DType", "DeviceSpec", "GradientTape", "Graph", "IndexedSlices", "IndexedSlicesSpec", "Module",
    "RaggedTensor", "RaggedTensorSpec", "RegisterGradient", "SparseTensor", "SparseTensorSpec", "Tensor", "TensorArray",
    "TensorArraySpec", "TensorShape", "TensorSpec", "TypeSpec", "UnconnectedGradients", "Variable", "VariableAggregation",
    "VariableSpec", "VariableSynchronization", "abs", "acos", "acosh", "add", "add_n", "argmax", "argmin", "argsort",
    "as_dtype", "as_string", "asin", "asinh", "assert_equal", "assert_greater", "assert_less", "assert_rank", "atan", "atan2",
    "atanh", "batch_to_space", "bfloat16", "bitcast", "bool", "boolean_mask", "broadcast_dynamic_shape",
    "broadcast_static_shape", "broadcast_to", "case", "cast", "clip_by_global_norm", "clip_by_norm", "clip_by_value",
    "complex", "complex128", "complex64", "concat", "cond", "constant", "constant_initializer", "control_dependencies",
    "convert_to_tensor", "cos", "cosh", "cumsum", "custom_gradient", "device", "divide", "double", "dynamic_partition",
    "dynamic_stitch", "einsum", "ensure_shape", "equal", "errors", "executing_eagerly", "exp", "expand_dims", "eye", "fill",
    "float16", "float32", "float64", "floor", "foldl", "foldr", "gather", "gather_nd", "get_current_name_scope", "get_logger",
    "get_static_value", "grad_pass_through", "gradients", "greater", "greater_equal", "group", "guarantee_const", "half",
    "hessians", "histogram_fixed_width", "histogram_fixed_width_bins", "identity", "identity_n", "init_scope",
    "inside_function", "install_as_tensorflow", "int16", "int32", "int64", "int8", "is_symbolic_tensor", "is_tensor",
    "less", "less_equal", "linspace",
    "logical_and", "logical_not", "logical_or", "map_fn", "matmul", "maximum", "meshgrid", "minimum", "multiply",
    "name_scope", "negative", "nest", "newaxis", "no_gradient", "no_op", "norm", "not_equal", "numpy_function", "one_hot",
    "ones", "ones_initializer", "ones_like", "pad", "parallel_stack", "pow", "print", "py_function",
    "random_normal_initializer", "random_uniform_initializer", "range", "rank", "realdiv", "recompute_grad", "reduce_all",
    "reduce_any", "reduce_logsumexp", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum", "repeat",
    "required_space_to_batch_paddings", "reshape", "reverse", "reverse_sequence", "roll", "round", "saturate_cast",
    "scalar_mul", "scan", "scatter_nd", "searchsorted", "sequence_mask", "shape", "shape_n", "sigmoid", "sign", "sin", "sinh",
    "size", "slice", "sort", "space_to_batch", "space_to_batch_nd", "split", "sqrt", "square", "squeeze", "stack",
    "stop_gradient", "strided_slice", "string", "subtract", "switch_case", "tan", "tanh", "tensor_scatter_nd_add",
    "tensor_scatter_nd_max", "tensor_scatter_nd_min", "tensor_scatter_nd_sub", "tensor_scatter_nd_update", "tensordot",
    "tile", "timestamp", "transpose", "truediv", "truncatediv", "truncatemod", "tuple", "type_spec_from_value", "uint16",
    "uint32", "uint64", "uint8", "unique", "unique_with_counts", "unravel_index", "unstack", "vectorized_map", "where",
    "while_loop", "zeros", "zeros_initializer", "zeros_like",
]  # fmt: skip


# What fewer programs need, by the module that has it (as ``its name:our name`` where they differ): loaded when touched.
_LAZY = {
    "imports": "install_as_tensorflow",
    "ops.checks": "Assert assert_equal assert_greater assert_less assert_rank",
    "ops.control_flow": "case cond foldl foldr map_fn scan switch_case while_loop",
    "ops.described": "IndexedSlicesSpec RaggedTensorSpec SparseTensorSpec VariableSpec type_spec_from_value",
    "ops.devices": "DeviceSpec device",
    "ops.execution": "Graph control_dependencies executing_eagerly get_current_name_scope get_logger init_scope "
    "inside_function is_symbolic_tensor",
    "ops.host": "group no_op numpy_function py_function",
    "ops.initializers": "Constant:constant_initializer Ones:ones_initializer RandomNormal:random_normal_initializer "
    "RandomUniform:random_uniform_initializer Zeros:zeros_initializer",
    "ops.printing": "print",
    "ops.ragged": "RaggedTensor",
    "ops.sparse": "SparseTensor",
    "ops.tensor_array": "TensorArray TensorArraySpec",
    "ops.vectorized": "vectorized_map",
    "strings": "as_string",
    "toplevel": "batch_to_space bitcast guarantee_const parallel_stack required_space_to_batch_paddings space_to_batch "
    "space_to_batch_nd timestamp",
    "values.spec": "TensorSpec TypeSpec",
}
_HOME = {name.split(":")[-1]: (module, name.split(":")[0]) for module, names in _LAZY.items() for name in names.split()}

_SUBMODULES = frozenset(
    (
        "audio autodiff autograph bitwise compat config data debugging distribute dtypes errors experimental extend "
        "function image inspect io keras linalg lookup math nest nn optimizers quantization ragged random saved_model sets "
        "signal sparse strings summary sysconfig test testing train values version"
    ).split()
)


# What TensorFlow takes from Keras: loading it loads Keras.
_FROM_KERAS = frozenset({"initializers", "losses", "metrics"})

if _typing.TYPE_CHECKING:
    from gradtape import (
        audio, autodiff, autograph, bitwise, compat, config, data, debugging, distribute, dtypes, extend, image, io, linalg,
        lookup, math, nn, optimizers, quantization, random, saved_model, sets, signal, strings, summary, sysconfig, test,
        testing, train, version,
    )
    from gradtape.ops.checks import Assert, assert_equal, assert_greater, assert_less, assert_rank
    from gradtape.ops.control_flow import case, cond, foldl, foldr, map_fn, scan, switch_case, while_loop
    from gradtape.ops.described import (
        IndexedSlicesSpec, RaggedTensorSpec, SparseTensorSpec, VariableSpec, type_spec_from_value,
    )
    from gradtape.ops.devices import DeviceSpec, device
    from gradtape.ops.execution import (
        Graph, control_dependencies, executing_eagerly, get_current_name_scope, get_logger, init_scope, inside_function,
        is_symbolic_tensor,
    )
    from gradtape.ops.host import group, no_op, numpy_function, py_function
    from gradtape.ops.initializers import Constant as constant_initializer
    from gradtape.ops.initializers import Ones as ones_initializer
    from gradtape.ops.initializers import RandomNormal as random_normal_initializer
    from gradtape.ops.initializers import RandomUniform as random_uniform_initializer
    from gradtape.ops.initializers import Zeros as zeros_initializer
    from gradtape.ops.printing import print
    from gradtape.ops.tensor_array import TensorArray, TensorArraySpec
    from gradtape.ops.vectorized import vectorized_map
    from gradtape.strings import as_string
    from gradtape.toplevel import (
        batch_to_space, bitcast, guarantee_const, parallel_stack, required_space_to_batch_paddings, space_to_batch,
        space_to_batch_nd, timestamp,
    )
    from gradtape.values.spec import TensorSpec, TypeSpec


def __getattr__(name: str) -> _typing.Any:
    """Load a submodule when it is first touched; name the nearest spellings of what does not exist."""
    if name in _SUBMODULES:
        import importlib

        return importlib.import_module(f"gradtape.{name}")
    if name in _HOME:
        import importlib

        module, own = _HOME[name]
        value = globals()[name] = getattr(importlib.import_module(f"gradtape.{module}"), own)
        return value
    if name in _FROM_KERAS:
        from gradtape import keras

        return getattr(keras, name)
    from gradtape.scope import missing

    return missing(__name__, [*__all__, *_SUBMODULES, *_FROM_KERAS])(name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUBMODULES, *_FROM_KERAS, *(name for name in globals() if name.startswith("__"))})
