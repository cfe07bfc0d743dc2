"""Strategies: one replica, in this process. Code written for many replicas runs on one, and gives the same numbers.

Who is where is per thread: inside ``strategy.scope()`` the caller speaks for all replicas (cross-replica context), inside
``strategy.run(f)`` the function speaks for its own (replica context).
"""

from __future__ import annotations

import enum
import json
import os
import threading
from collections.abc import Callable
from typing import Any

from gradtape.distribute.inputs import InputContext, ValueContext
from gradtape.errors import message, shown
from gradtape.ops.devices import DeviceSpec, logical_devices
from gradtape.ops.reduce import mean, sum
from gradtape.values import nest
from gradtape.values.convert import convert_to_tensor

_CROSS = "Method requires being in cross-replica context, use get_replica_context().merge_call()"


class ReduceOp(enum.Enum):
    """How values of replicas become one."""

    SUM = "SUM"
    MEAN = "MEAN"

    @classmethod
    def of(cls, value: Any) -> ReduceOp:
        """From a member or its name, in any case."""
        if isinstance(value, cls):
            return value
        try:
            return cls(str(value).upper())
        except ValueError as error:
            raise ValueError(message(str(error), received=f"{value!r}", expected="'SUM' or 'MEAN'")) from None


class _Thread(threading.local):
    strategy: Any = None  # None: the default strategy
    replica: Any = None  # the context inside of run


_thread = _Thread()


class ReplicaContext:
    """What a function inside `Strategy.run` knows of its replica."""

    def __init__(self, strategy: Strategy, replica_id_in_sync_group: int = 0) -> None:
        self._strategy = strategy
        self._id = replica_id_in_sync_group

    @property
    def strategy(self) -> Strategy:
        return self._strategy

    @property
    def replica_id_in_sync_group(self) -> int:
        return self._id

    @property
    def num_replicas_in_sync(self) -> int:
        return self._strategy.num_replicas_in_sync

    @property
    def devices(self) -> list[str]:
        return [self._strategy.device]

    def all_reduce(self, reduce_op: Any, value: Any, options: Any = None) -> Any:
        """The sum or mean over replicas; of one replica, its own value."""
        ReduceOp.of(reduce_op)
        return nest.map_structure(convert_to_tensor, value)

    def all_gather(self, value: Any, axis: int, options: Any = None) -> Any:
        """The values of all replicas joined; of one replica, its own."""
        return nest.map_structure(convert_to_tensor, value)

    def merge_call(self, merge_fn: Callable, args: tuple = (), kwargs: dict | None = None) -> Any:
        """``merge_fn(strategy, *args)`` in cross-replica context."""
        with _context(self._strategy, None):
            return merge_fn(self._strategy, *args, **(kwargs or {}))


class _context:
    """Context manager: this strategy, and this replica or none, in this thread."""

    def __init__(self, strategy: Any, replica: Any) -> None:
        self._now = strategy, replica

    def __enter__(self) -> Any:
        self._before = _thread.strategy, _thread.replica
        _thread.strategy, _thread.replica = self._now
        return self._now[0]

    def __exit__(self, *_: object) -> None:
        _thread.strategy, _thread.replica = self._before


class StrategyExtended:
    """What library code asks of a strategy."""

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy

    @property
    def worker_devices(self) -> tuple[str, ...]:
        return (self._strategy.device,)

    parameter_devices = worker_devices
    experimental_require_static_shapes = False
    experimental_between_graph = False
    experimental_should_init = should_checkpoint = should_save_summary = True

    def call_for_each_replica(self, fn: Callable, args: tuple = (), kwargs: dict | None = None) -> Any:
        return self._strategy.run(fn, args, kwargs)

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any = None, options: Any = None) -> Any:
        return self._strategy.reduce(reduce_op, value, axis=None)

    def batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Any, options: Any = None) -> list:
        return [self.reduce_to(reduce_op, value) for value, _ in value_destination_pairs]

    def update(self, var: Any, fn: Callable, args: tuple = (), kwargs: dict | None = None, group: bool = True) -> Any:
        """``fn(var, *args)``: the update of the one copy there is."""
        return fn(var, *args, **(kwargs or {}))

    def colocate_vars_with(self, colocate_with_variable: Any) -> Any:
        return _context(self._strategy, None)

    def variable_created_in_scope(self, v: Any) -> bool:
        return True

    def value_container(self, value: Any) -> Any:
        return value

    def broadcast_to(self, tensor: Any, destinations: Any = None) -> Any:
        return tensor


class Strategy:
    """Where variables live and where `run` runs: here, one device."""

    def __init__(self, device: str = "/device:CPU:0") -> None:
        self.device = device
        self._extended = StrategyExtended(self)

    @property
    def extended(self) -> StrategyExtended:
        return self._extended

    @property
    def num_replicas_in_sync(self) -> int:
        return 1

    @property
    def cluster_resolver(self) -> None:
        return None

    def scope(self) -> Any:
        """Context manager: this strategy is the current one."""
        if _thread.strategy is not None and _thread.strategy is not self:
            text = f"Mixing different tf.distribute.Strategy objects: {_thread.strategy} is not {self}"
            raise RuntimeError(message(text, received=f"{self}", fix="leave the scope of the other first"))
        self._require_cross_replica()
        return _context(self, None)

    def _require_cross_replica(self) -> None:
        if _thread.replica is not None:
            raise RuntimeError(
                message(_CROSS, received="a call inside strategy.run", fix="call it outside the function that replicas run")
            )

    def run(self, fn: Callable, args: tuple = (), kwargs: dict | None = None, options: Any = None) -> Any:
        """``fn(*args, **kwargs)`` in the replica's context."""
        if not callable(fn):
            text = f"'{type(fn).__name__}' object is not callable"
            raise TypeError(message(text, received=shown(fn), fix="strategy.run(function, args=(x,))"))
        self._require_cross_replica()
        with _context(self, ReplicaContext(self)):
            return fn(*args, **(kwargs or {}))

    def reduce(self, reduce_op: Any, value: Any, axis: Any) -> Any:
        """The sum or mean over replicas, and over ``axis`` of each value unless it is None."""
        self._require_cross_replica()
        over = {ReduceOp.SUM: sum, ReduceOp.MEAN: mean}[ReduceOp.of(reduce_op)]
        if axis is None:
            return value
        axes = tuple(axis) if isinstance(axis, (list, tuple)) else int(axis)
        return nest.map_structure(lambda x: over(convert_to_tensor(x), axis=axes), value)

    def gather(self, value: Any, axis: int) -> Any:
        """The values of all replicas joined along an axis: of one replica, its own."""
        self._require_cross_replica()
        return convert_to_tensor(value)

    def experimental_local_results(self, value: Any) -> tuple:
        """The values of the replicas of this process."""
        return (value,)

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        """The dataset: one replica takes all of each batch."""
        return dataset

    def distribute_datasets_from_function(self, dataset_fn: Callable, options: Any = None) -> Any:
        """``dataset_fn(InputContext())``."""
        return dataset_fn(InputContext())

    experimental_distribute_datasets_from_function = distribute_datasets_from_function

    def experimental_distribute_values_from_function(self, value_fn: Callable) -> Any:
        """``value_fn(ValueContext())``, the value of the one replica."""
        return value_fn(ValueContext())

    def __repr__(self) -> str:
        return f"<tf.distribute.{type(self).__name__} on {self.device}>"


class _DefaultStrategy(Strategy):
    """What is in place when nobody has chosen a strategy: never cross-replica."""

    def scope(self) -> Any:
        return _context(_thread.strategy, _thread.replica)

    def _require_cross_replica(self) -> None:
        """Everything is allowed."""

    def run(self, fn: Callable, args: tuple = (), kwargs: dict | None = None, options: Any = None) -> Any:
        return fn(*args, **(kwargs or {}))


class MirroredStrategy(Strategy):
    """Copies of the variables on each of several devices: here on one."""

    def __init__(self, devices: Any = None, cross_device_ops: Any = None) -> None:
        super().__init__(_only(devices, "MirroredStrategy"))


class OneDeviceStrategy(Strategy):
    """Everything on one device."""

    def __init__(self, device: str) -> None:
        super().__init__(_only([device], "OneDeviceStrategy"))


class CentralStorageStrategy(Strategy):
    """Variables on the CPU, computation on one device."""

    def __init__(self, compute_devices: Any = None, parameter_device: Any = None) -> None:
        super().__init__(_only(compute_devices, "CentralStorageStrategy"))


class MultiWorkerMirroredStrategy(Strategy):
    """Copies of the variables in each of several processes: here in one."""

    def __init__(self, cluster_resolver: Any = None, communication_options: Any = None, communication: Any = None) -> None:
        workers = json.loads(os.environ.get("TF_CONFIG") or "{}").get("cluster", {}).get("worker", [])
        if len(workers) > 1:
            raise ValueError(
                message(
                    "MultiWorkerMirroredStrategy runs one worker here.",
                    received=f"TF_CONFIG with {len(workers)} workers",
                    fix="unset TF_CONFIG, or give each process its own share of the work",
                )
            )
        super().__init__()


def _only(devices: Any, what: str) -> str:
    """The one device that was asked for, by its full name."""
    asked = [devices] if isinstance(devices, str) else list(devices or ["/device:CPU:0"])
    names = [DeviceSpec.from_string(name).replace(job=None, replica=None, task=None).to_string() for name in asked]
    there = [device.name for device in logical_devices("CPU" if all(":CPU:" in name for name in names) else None)]
    if len(names) > 1 or names[0] not in there:
        raise ValueError(
            message(
                f"{what} runs one replica, on a device of this machine.",
                received=f"{asked}",
                expected=f"one of {there}",
                fix=f"tf.distribute.{what}(['/CPU:0'])" if what != "OneDeviceStrategy" else "OneDeviceStrategy('/CPU:0')",
            )
        )
    return names[0]


_default = _DefaultStrategy()


def get_strategy() -> Strategy:
    """The current strategy; the default one outside of every scope."""
    return _thread.strategy or _default


def has_strategy() -> bool:
    """Whether a strategy other than the default is in place."""
    return _thread.strategy is not None


def get_replica_context() -> ReplicaContext | None:
    """The context of the replica that is running; None in cross-replica context."""
    if _thread.replica is None and _thread.strategy is None:
        return ReplicaContext(_default)
    return _thread.replica


def in_cross_replica_context() -> bool:
    """Whether the caller speaks for all replicas."""
    return _thread.strategy is not None and _thread.replica is None


def experimental_set_strategy(strategy: Strategy | None) -> None:
    """Make a strategy the current one without a scope; None returns to the default."""
    if _thread.replica is not None:
        raise RuntimeError(
            message(_CROSS, received="a call inside strategy.run", fix="call it outside the function that replicas run")
        )
    _thread.strategy = None if strategy is _default else strategy
