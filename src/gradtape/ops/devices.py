"""Devices: eager work runs on the CPU, so there is one CPU; GPUs are those that jax reports, for compiled programs."""

from __future__ import annotations

import sys
import threading
from importlib.util import find_spec
from typing import Any, NamedTuple

from gradtape.errors import InvalidArgumentError, message

_HOST = "/job:localhost/replica:0/task:0"


class PhysicalDevice(NamedTuple):
    """A device of this machine."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device that programs may name."""

    name: str
    device_type: str


class LogicalDeviceConfiguration(NamedTuple):
    """What part of a physical device a logical one may use."""

    memory_limit: int | None = None
    experimental_priority: int | None = None
    experimental_device_ordinal: int | None = None


class DeviceSpec:
    """A device by its parts, any of which may be open.

    >>> DeviceSpec.from_string("/GPU:1").to_string()
    '/device:GPU:1'
    """

    __slots__ = ("device_index", "device_type", "job", "replica", "task")

    def __init__(
        self, job: str | None = None, replica: Any = None, task: Any = None, device_type: str | None = None,
        device_index: Any = None,
    ) -> None:  # fmt: skip
        self.job = job
        self.replica, self.task, self.device_index = (None if n is None else int(n) for n in (replica, task, device_index))
        self.device_type = device_type

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """From ``/job:name/replica:0/task:0/device:CPU:0``, or any part of it; ``/CPU:0`` and ``cpu`` will do."""
        parts: dict[str, Any] = {}
        for word in filter(None, spec.split("/")):
            key, *rest = word.split(":")
            if key in ("job", "replica", "task") and len(rest) == 1:
                parts[key] = rest[0]
            elif key == "device" and len(rest) == 2:
                parts["device_type"], parts["device_index"] = rest
            elif key.upper() in ("CPU", "GPU", "TPU") and len(rest) < 2:
                parts["device_type"], parts["device_index"] = key.upper(), rest[0] if rest else None
            else:
                raise ValueError(
                    message(
                        f"Unknown attribute '{key}' is encountered while parsing the device spec: '{spec}'.",
                        expected="a name such as '/CPU:0' or '/GPU:0'",
                    )
                )
        if parts.get("device_index") == "*":
            parts["device_index"] = None
        return cls(**parts)

    parse_from_string = from_string

    def _parts(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("job", "replica", "task", "device_type", "device_index")}

    def to_string(self) -> str:
        words = [f"/{key}:{self._parts()[key]}" for key in ("job", "replica", "task") if self._parts()[key] is not None]
        if self.device_type is not None:
            index = "*" if self.device_index is None else self.device_index
            words.append(f"/device:{self.device_type}:{index}")
        return "".join(words)

    def make_merged_spec(self, dev: DeviceSpec) -> DeviceSpec:
        """This one with the parts that ``dev`` has in their place."""
        return DeviceSpec(**{**self._parts(), **{k: v for k, v in dev._parts().items() if v is not None}})

    def replace(self, **parts: Any) -> DeviceSpec:
        """This one with other parts."""
        return DeviceSpec(**{**self._parts(), **parts})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceSpec) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self.to_string())

    def __repr__(self) -> str:
        return f"<DeviceSpec({', '.join(f'{key}={value}' for key, value in self._parts().items())})>"


class _Settings:
    """What the program has set; for the whole process, as in TensorFlow."""

    soft_placement = True
    visible: list[PhysicalDevice] | None = None  # None: all
    configurations: dict[PhysicalDevice, list[LogicalDeviceConfiguration]] = {}
    memory_growth: dict[PhysicalDevice, bool] = {}


settings = _Settings()


def accelerators() -> list[tuple[str, int]]:
    """(type, index) of the accelerators that jax reports; none if it is not installed. Imports jax."""
    if "jax" not in sys.modules and find_spec("jax") is None:
        return []
    from gradtape.xp import jax_devices

    return jax_devices.accelerators()


def physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The CPU and the accelerators; asking for CPUs alone does not load jax."""
    found = [("CPU", 0)]
    if device_type != "CPU":
        found += accelerators()
    return [PhysicalDevice(f"/physical_device:{kind}:{i}", kind) for kind, i in found if device_type in (None, kind)]


def visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices that programs see."""
    if settings.visible is None:
        return physical_devices(device_type)
    return [device for device in settings.visible if device_type in (None, device.device_type)]


def set_visible(devices: Any, device_type: str | None = None) -> None:
    """Let programs see these devices only; with a type, of this type only these."""
    chosen = list(devices) if isinstance(devices, (list, tuple)) and not hasattr(devices, "device_type") else [devices]
    for device in chosen:
        known(device)
    others = [d for d in visible_devices() if device_type is not None and d.device_type != device_type]
    if not any(d.device_type == "CPU" for d in (*others, *chosen)):
        raise ValueError(message("The CPU cannot be hidden.", why="eager operations run on it"))
    settings.visible = [*others, *chosen]


def logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The devices that `device` accepts."""
    names = [d.name.replace("/physical_device:", "/device:") for d in visible_devices(device_type)]
    return [LogicalDevice(name, name.split(":")[1]) for name in names]


def known(device: Any) -> PhysicalDevice:
    """The device, if it is one of this machine's."""
    if device not in physical_devices(getattr(device, "device_type", None)):
        raise ValueError(
            message(f"Unrecognized device: {device!r}", expected=f"one of {[d.name for d in physical_devices()]}")
        )
    return device


def configure(device: Any, parts: Any) -> None:
    """Note the memory limit of a device; a device cannot be divided into several."""
    parts = list(parts)
    if known(device).device_type == "CPU" and any(part.memory_limit is not None for part in parts):
        raise ValueError("Setting memory limit on CPU virtual devices is currently not supported")
    if len(parts) > 1:
        raise ValueError(
            message(
                f"{device.name} cannot be divided into {len(parts)} logical devices.",
                expected="one LogicalDeviceConfiguration",
                fix="for tests of several devices set XLA_FLAGS=--xla_force_host_platform_device_count=N and use jax's devices",
            )
        )
    settings.configurations[device] = parts


class _Placement(threading.local):
    spec: DeviceSpec = DeviceSpec()


_placement = _Placement()


class device:
    """Context manager: run operations on the named device.

    Eager operations run on the CPU; the name is checked, and an accelerator that is there serves compiled programs.

    >>> with device("/CPU:0"):
    ...     pass
    """

    def __init__(self, device_name: Any) -> None:
        if callable(device_name) and not hasattr(device_name, "to_string"):
            raise RuntimeError("tf.device does not support functions.")
        self._name = device_name

    def __enter__(self) -> None:
        self._saved = _placement.spec
        _placement.spec = _found(self._name)

    def __exit__(self, *_: object) -> None:
        _placement.spec = self._saved


def current_device() -> DeviceSpec:
    """The device that the innermost `device` of this thread names; open parts if there is none."""
    return _placement.spec


def _found(name: Any) -> DeviceSpec:
    if name is None:
        return DeviceSpec()
    name = getattr(name, "name", name)
    name = name.to_string() if isinstance(name, DeviceSpec) else name
    if not isinstance(name, str):
        raise ValueError(f"Expecting a string device name. Got {type(name)}({name})")
    spec = DeviceSpec.from_string(name)
    if spec.job not in (None, "localhost") or spec.replica or spec.task:
        raise InvalidArgumentError(message(f"{spec.to_string()} unknown device.", expected="a device of this process"))
    if spec.device_type not in (None, "CPU") or spec.device_index:
        _check_there(spec)
    return spec


def _check_there(spec: DeviceSpec) -> None:
    if settings.soft_placement:  # then the CPU serves, as in TensorFlow
        return
    there = logical_devices()
    wanted = f"/device:{spec.device_type}:{spec.device_index or 0}"
    if wanted not in [d.name for d in there]:
        raise InvalidArgumentError(
            message(
                f"Could not satisfy device specification '{_HOST}{wanted}'. enable_soft_placement=0. Supported device types "
                f"[{', '.join(sorted({d.device_type for d in there}))}]. All available devices "
                f"[{', '.join(_HOST + d.name for d in there)}].",
                fix="name one of these, or tf.config.set_soft_device_placement(True)",
            )
        )
