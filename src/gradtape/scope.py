"""What gradtape leaves out on purpose, with the reason and what to use instead; and what a wrong name is told.

A module ends with ``__getattr__ = missing(__name__, __all__)``: a name that is out of scope then raises `OutOfScopeError`,
any other that does not exist an AttributeError with the nearest names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gradtape.errors import message


class OutOfScopeError(AttributeError):
    """A TensorFlow name that gradtape does not provide, on purpose."""


_GRAPHS = "there are no graphs and sessions to build by hand: code runs as it is written"
_EAGERLY = "write it as eager code, and wrap it in tf.function where it should be compiled"
_COLUMNS = "feature columns belong to estimators, which TensorFlow itself has retired"
_TPU = "TPU systems are not set up from here"
_ONE = "tf.distribute here means the replicas of one process"
_PROTO = "protocol buffers are not parsed"
_ARRAYS = "numpy.savez and numpy.load keep and read arrays; tf.data.Dataset.from_tensor_slices takes them"
_RECORDS = "TFRecord files hold protocol buffers, which are not parsed"
_LITE = "models are not converted for other runtimes"

OUT_OF_SCOPE: dict[str, tuple[str, str]] = {
    "feature_column": (_COLUMNS, "use tf.one_hot, tf.nn.embedding_lookup, or Keras preprocessing layers"),
    "estimator": ("estimators were removed from TensorFlow", "write a training loop with tf.GradientTape, or Keras' fit"),
    "compat.v1": (_GRAPHS, _EAGERLY),
    "contrib": ("tf.contrib was removed from TensorFlow", "use the function's TensorFlow 2 name"),
    **dict.fromkeys(
        """Session InteractiveSession placeholder placeholder_with_default global_variables_initializer
        local_variables_initializer initialize_all_variables get_variable variable_scope get_default_graph reset_default_graph
        get_collection add_to_collection trainable_variables global_variables ConfigProto GPUOptions layers app flags
        import_graph_def graph_util""".split(),
        (_GRAPHS, _EAGERLY),
    ),
    **dict.fromkeys(
        """tpu distribute.TPUStrategy distribute.experimental.TPUStrategy
        distribute.cluster_resolver.TPUClusterResolver""".split(),
        (_TPU, "use tf.distribute.get_strategy(), or tf.function with jax installed for a TPU, which compiles for it"),
    ),
    **dict.fromkeys(
        """config.experimental_connect_to_cluster config.experimental_connect_to_host config.experimental.ClusterDeviceFilters
        distribute.ParameterServerStrategy distribute.experimental.ParameterServerStrategy distribute.Server
        distribute.coordinator distribute.experimental.coordinator distribute.experimental.partitioners
        distribute.experimental.rpc distribute.experimental.PreemptionCheckpointHandler
        distribute.experimental.PreemptionWatcher distribute.experimental.TerminationConfig
        distribute.cluster_resolver.GCEClusterResolver distribute.cluster_resolver.KubernetesClusterResolver
        distribute.cluster_resolver.KubernetesExecutableLocation distribute.cluster_resolver.SlurmClusterResolver
        distribute.cluster_resolver.ClusterResolver distribute.cluster_resolver.SimpleClusterResolver
        distribute.cluster_resolver.TFConfigClusterResolver distribute.cluster_resolver.UnionResolver
        train.ClusterDef train.JobDef train.ServerDef test.create_local_cluster""".split(),
        (_ONE, "use tf.distribute.MirroredStrategy() or tf.distribute.get_strategy()"),
    ),
    **dict.fromkeys(
        """train.Example train.Feature train.Features train.FeatureList train.FeatureLists train.SequenceExample
        train.BytesList train.FloatList train.Int64List io.parse_example io.parse_single_example io.parse_sequence_example
        io.parse_single_sequence_example io.FixedLenFeature io.FixedLenSequenceFeature io.VarLenFeature io.SparseFeature
        io.RaggedFeature io.decode_proto io.encode_proto io.decode_json_example io.write_graph make_tensor_proto
        make_ndarray""".split(),
        (_PROTO, _ARRAYS),
    ),
    **dict.fromkeys(
        "io.TFRecordWriter io.TFRecordOptions data.TFRecordDataset data.experimental.TFRecordWriter".split(),
        (_RECORDS, _ARRAYS),
    ),
    **dict.fromkeys("lite experimental.tensorrt".split(), (_LITE, "export the variables: variable.numpy() gives their arrays")),
    **dict.fromkeys(
        "experimental.dtensor dtensor".split(), (_ONE, "use tf.distribute, or jax's own sharding inside a compiled function")
    ),
    **dict.fromkeys(
        "load_library load_op_library raw_ops mlir".split(),
        ("there are no kernels to call by name", "use the public function; gradtape.extend adds new ops"),
    ),
}  # fmt: skip
"""By path below ``tf.``: why it is not there, and what to use instead."""


SPELLED_OTHERWISE: dict[str, str] = {
    "sum": "reduce_sum", "mean": "reduce_mean", "average": "reduce_mean", "prod": "reduce_prod", "max": "reduce_max",
    "amax": "reduce_max", "min": "reduce_min", "amin": "reduce_min", "all": "reduce_all", "any": "reduce_any",
    "std": "math.reduce_std", "var": "math.reduce_variance", "logsumexp": "reduce_logsumexp",
    "log": "math.log", "ln": "math.log", "log1p": "math.log1p", "expm1": "math.expm1", "erf": "math.erf",
    "lgamma": "math.lgamma", "digamma": "math.digamma", "reciprocal": "math.reciprocal", "isnan": "math.is_nan",
    "isinf": "math.is_inf", "isfinite": "math.is_finite", "fmod": "math.mod", "mod": "math.mod", "remainder": "math.mod",
    "power": "pow", "arctan2": "atan2", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh",
    "arccosh": "acosh", "arctanh": "atanh", "absolute": "abs", "clip": "clip_by_value", "clamp": "clip_by_value",
    "dot": "tensordot", "mm": "matmul", "bmm": "matmul", "mv": "linalg.matvec", "matvec": "linalg.matvec",
    "inner": "tensordot", "outer": "tensordot", "kron": "linalg.LinearOperatorKronecker", "det": "linalg.det",
    "inv": "linalg.inv", "inverse": "linalg.inv", "solve": "linalg.solve", "svd": "linalg.svd", "qr": "linalg.qr",
    "cholesky": "linalg.cholesky", "eigh": "linalg.eigh", "trace": "linalg.trace", "diag": "linalg.diag",
    "tril": "linalg.band_part", "triu": "linalg.band_part", "topk": "math.top_k", "array": "constant",
    "asarray": "convert_to_tensor", "tensor": "constant", "as_tensor": "convert_to_tensor",
    "from_numpy": "convert_to_tensor", "arange": "range", "full": "fill", "full_like": "fill", "empty": "zeros",
    "cat": "concat", "concatenate": "concat", "vstack": "concat", "hstack": "concat", "flatten": "reshape",
    "ravel": "reshape", "view": "reshape", "permute": "transpose", "swapaxes": "transpose", "moveaxis": "transpose",
    "unsqueeze": "expand_dims", "flip": "reverse", "take": "gather", "index_select": "gather", "nonzero": "where",
    "astype": "cast", "copy": "identity", "clone": "identity", "rand": "random.uniform", "randn": "random.normal",
    "randint": "random.uniform", "randperm": "random.shuffle", "manual_seed": "random.set_seed",
    "softmax": "nn.softmax", "log_softmax": "nn.log_softmax", "relu": "nn.relu", "gelu": "nn.gelu", "elu": "nn.elu",
    "silu": "nn.silu", "softplus": "nn.softplus", "leaky_relu": "nn.leaky_relu", "dropout": "nn.dropout",
    "cross_entropy": "nn.softmax_cross_entropy_with_logits", "jit": "function", "compile": "function",
    "vmap": "vectorized_map", "grad": "GradientTape", "value_and_grad": "autodiff.value_and_gradient",
    "jvp": "autodiff.jvp", "vjp": "autodiff.vjp", "jacfwd": "autodiff.jacobian", "jacrev": "autodiff.jacobian",
    "jacobian": "autodiff.jacobian", "hessian": "autodiff.hessian", "detach": "stop_gradient",
    "no_grad": "GradientTape.stop_recording",
    "checkpoint": "recompute_grad",
}  # fmt: skip
"""What NumPy, PyTorch and jax call by these names, by its path below ``tf.``."""


def out_of_scope(path: str) -> str | None:
    """Why a TensorFlow name such as ``"train.Example"`` is left out, and what to use instead; None if it is not.

    >>> out_of_scope("reduce_sum") is None
    True
    """
    parts = path.removeprefix("tf.").split(".")
    for count in range(1, len(parts) + 1):
        found = OUT_OF_SCOPE.get(".".join(parts[:count]))
        if found is not None:
            reason, instead = found
            return message(f"tf.{'.'.join(parts)} is out of scope: {reason}.", fix=instead)
    return None


def missing(module: str, names: Iterable[str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module: explains what is out of scope, and suggests names for what does not exist."""
    path = module.removeprefix("gradtape").lstrip(".")

    def explain(name: str) -> Any:
        if name.startswith("__"):  # the import system asks for __path__ and the like
            raise AttributeError(name)
        full = f"{path}.{name}".lstrip(".")
        text = out_of_scope(full)
        if text is not None:
            raise OutOfScopeError(text, name=name)
        import difflib

        prefix = f"tf.{path}." if path else "tf."
        near = [prefix + n for n in difflib.get_close_matches(name, list(names), n=3)]
        if name in SPELLED_OTHERWISE and path in ("", "math", "nn", "linalg"):
            near = [f"tf.{SPELLED_OTHERWISE[name]}"]
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise AttributeError(f"module {module!r} has no attribute {name!r}.{hint}", name=name)

    return explain
