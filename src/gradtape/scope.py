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
        near = difflib.get_close_matches(name, list(names), n=3)
        hint = f" Did you mean {' or '.join(prefix + n for n in near)}?" if near else ""
        raise AttributeError(f"module {module!r} has no attribute {name!r}.{hint}", name=name)

    return explain
