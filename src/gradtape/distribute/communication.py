"""How replicas would exchange values. With one replica there is nothing to exchange: the choices are accepted."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

from gradtape.errors import message


class CrossDeviceOps:
    """A way to reduce values over devices."""

    def __init__(self, num_packs: int = 1) -> None:
        if num_packs < 0:
            text = f"NCCL all-reduce requires num_packs >= 0, but {num_packs} is specified"
            raise ValueError(message(text, received=f"num_packs={num_packs}", expected="0 or more"))


class HierarchicalCopyAllReduce(CrossDeviceOps):
    """Reduce in two steps, between neighbours first."""


class NcclAllReduce(CrossDeviceOps):
    """Reduce with NVIDIA's library."""


class ReductionToOneDevice(CrossDeviceOps):
    """Reduce on one device, then copy."""

    def __init__(self, reduce_to_device: Any = None, accumulation_fn: Any = None) -> None:
        super().__init__()


class CommunicationImplementation(enum.Enum):
    """The library that workers would exchange values with."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


class CommunicationOptions(NamedTuple):
    """Sizes and time limits of the exchange."""

    bytes_per_pack: int = 0
    timeout_seconds: float | None = None
    implementation: CommunicationImplementation = CommunicationImplementation.AUTO
