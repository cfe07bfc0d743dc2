"""What input pipelines and value functions are told about the replicas they serve."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

from gradtape.errors import message


class InputContext:
    """Which of several input pipelines this is."""

    def __init__(self, num_input_pipelines: int = 1, input_pipeline_id: int = 0, num_replicas_in_sync: int = 1) -> None:
        self.num_input_pipelines = num_input_pipelines
        self.input_pipeline_id = input_pipeline_id
        self.num_replicas_in_sync = num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """The share of a global batch that one replica takes."""
        if global_batch_size % self.num_replicas_in_sync:
            text = (
                f"The `global_batch_size` {global_batch_size} is not divisible by `num_replicas_in_sync` "
                f"{self.num_replicas_in_sync}"
            )
            raise ValueError(message(text, fix=f"a multiple of {self.num_replicas_in_sync}"))
        return global_batch_size // self.num_replicas_in_sync

    def __str__(self) -> str:
        return f"tf.distribute.InputContext(input pipeline id {self.input_pipeline_id}, total: {self.num_input_pipelines})"


class ValueContext(NamedTuple):
    """Which replica a value is made for."""

    replica_id_in_sync_group: int = 0
    num_replicas_in_sync: int = 1


class InputReplicationMode(enum.Enum):
    """How often an input function is called."""

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


class InputOptions(NamedTuple):
    """Options of distributed datasets, accepted as they are."""

    experimental_fetch_to_device: bool = True
    experimental_replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER
    experimental_place_dataset_on_device: bool = False
    experimental_per_replica_buffer_size: int = 1


class RunOptions(NamedTuple):
    """Options of `Strategy.run`, accepted as they are."""

    experimental_enable_dynamic_batch_size: bool = True
    experimental_bucketizing_dynamic_shape: bool = False
    experimental_xla_options: Any = None
