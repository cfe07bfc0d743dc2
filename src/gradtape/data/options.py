"""`Options`: settings that TensorFlow's runtime reads. They are kept, so that programs run; `deterministic` is honoured."""

from __future__ import annotations

import copy
import enum
from typing import TYPE_CHECKING, Any

from gradtape.errors import message


class _Settings:
    """A fixed set of attributes, None until set; anything else is refused."""

    _names: tuple[str, ...] = ()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self) -> None:
        for name in self._names:
            object.__setattr__(self, name, None)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._names:
            text = f"Cannot set the property {name} on {type(self).__name__}."
            raise AttributeError(message(text, received=f"{name}={value!r}", expected=f"one of {', '.join(self._names)}"))
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if value is not None)
        return f"{type(self).__name__}({given})"


class ThreadingOptions(_Settings):
    """How many threads TensorFlow's runtime would use."""

    _names = ("max_intra_op_parallelism", "private_threadpool_size")


class AutotuneOptions(_Settings):
    """What TensorFlow's runtime would tune by itself."""

    _names = ("autotune_algorithm", "cpu_budget", "enabled", "initial_parallelism", "min_parallelism", "ram_budget")


class AutoShardPolicy(enum.IntEnum):
    """Whether and how TensorFlow would shard a dataset over workers."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class DistributeOptions(_Settings):
    """How TensorFlow would divide a dataset between workers."""

    _names = ("auto_shard_policy", "num_devices")


class OptimizationOptions(_Settings):
    """Which rewrites TensorFlow would apply to a pipeline."""

    _names = (
        "apply_default_optimizations", "filter_fusion", "filter_parallelization", "inject_prefetch", "map_and_batch_fusion",
        "map_and_filter_fusion", "map_fusion", "map_parallelization", "noop_elimination", "parallel_batch",
        "seq_interleave_prefetch", "shuffle_and_repeat_fusion",
    )  # fmt: skip


class Options(_Settings):
    """Settings of a dataset, given with `Dataset.with_options`."""

    _names = (
        "autotune", "dataset_name", "deterministic", "experimental_deterministic", "experimental_distribute",
        "experimental_external_state_policy", "experimental_optimization", "experimental_slack",
        "experimental_symbolic_checkpoint", "experimental_threading", "experimental_warm_start", "framework_type", "threading",
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.autotune, self.threading = AutotuneOptions(), ThreadingOptions()
        self.experimental_threading = self.threading
        self.experimental_distribute, self.experimental_optimization = DistributeOptions(), OptimizationOptions()

    def merge(self, options: Options) -> Options:
        """These settings, overridden by what ``options`` sets."""
        merged = copy.deepcopy(self)
        for name, value in vars(options).items():
            if isinstance(value, _Settings):
                for part, given in vars(value).items():
                    if given is not None:
                        setattr(getattr(merged, name), part, given)
            elif value is not None:
                setattr(merged, name, value)
        return merged
