"""`tf.distribute`: the strategies, with one replica in this process."""

from gradtape.distribute import cluster_resolver, experimental
from gradtape.distribute.communication import (
    CrossDeviceOps,
    HierarchicalCopyAllReduce,
    NcclAllReduce,
    ReductionToOneDevice,
)
from gradtape.distribute.inputs import InputContext, InputOptions, InputReplicationMode, RunOptions
from gradtape.distribute.strategy import (
    MirroredStrategy,
    MultiWorkerMirroredStrategy,
    OneDeviceStrategy,
    ReduceOp,
    ReplicaContext,
    Strategy,
    StrategyExtended,
    experimental_set_strategy,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from gradtape.distribute.values import DistributedDataset, DistributedIterator, DistributedValues
from gradtape.scope import missing

__all__ = [
    "CrossDeviceOps", "DistributedDataset", "DistributedIterator", "DistributedValues", "HierarchicalCopyAllReduce",
    "InputContext", "InputOptions", "InputReplicationMode", "MirroredStrategy", "MultiWorkerMirroredStrategy",
    "NcclAllReduce", "OneDeviceStrategy", "ReduceOp", "ReductionToOneDevice", "ReplicaContext", "RunOptions", "Strategy",
    "StrategyExtended", "cluster_resolver", "experimental", "experimental_set_strategy", "get_replica_context",
    "get_strategy", "has_strategy", "in_cross_replica_context",
]  # fmt: skip
__getattr__ = missing(__name__, __all__)
