"""Devices: the CPU, where eager work runs on NumPy arrays; and those that jax reports, where it runs on jax arrays."""

from __future__ import annotations

import functools
import os
import sys
import threading
from importlib.util import find_spec
from typing import Any, NamedTuple

from gradtape.errors import InvalidArgumentError, message, shown
from gradtape.ops import elementwise, placing
from gradtape.ops.execution import staging
from gradtape.values.placement import HOST, here
from gradtape.values.tensor import Tensor

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
                parts["device_type"], parts["device_index"] = rest[0].upper(), rest[1]
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


# What there is


def has_jax() -> bool:
    """Whether jax is installed; it is not loaded for that."""
    return sys.modules.get("jax") is not None or find_spec("jax") is not None


def accelerators() -> list[tuple[str, int]]:
    """(type, index) of the accelerators that jax reports; none if it is not installed. Imports jax."""
    if not has_jax():
        return []
    from gradtape.xp import jax_devices

    return [name for name in jax_devices.found() if name[0] != "CPU"]


def number_of_cpus() -> int:
    """How many CPU devices there are: one, unless the program or jax's environment variables ask for more."""
    asked = any(len(parts) > 1 for device, parts in settings.configurations.items() if device.device_type == "CPU")
    flags = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    if not (asked or flags or "JAX_NUM_CPU_DEVICES" in os.environ) or not has_jax():
        return 1
    from gradtape.xp import jax_devices

    return max(1, len([name for name in jax_devices.found() if name[0] == "CPU"]))


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
        text = "The CPU cannot be hidden."
        raise ValueError(message(text, why="eager operations run on it", fix="add tf.config.list_physical_devices('CPU')[0]"))
    settings.visible = [*others, *chosen]
    _choose_default()


def _choose_default() -> None:
    """Let compiled programs run on the first device that is visible, if the first of all is hidden."""
    there, seen = accelerators(), [place_of(d) for d in visible_devices() if d.device_type != "CPU"]
    if there:
        from gradtape.xp import jax_devices

        first = seen[0] if seen else ("CPU", 0)
        jax_devices.prefer(device=None if first == there[0] else _of_jax(*first))


def place_of(device: PhysicalDevice) -> tuple[str, int]:
    """Its type and number."""
    return device.device_type, int(device.name.rpartition(":")[2])


def logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The devices that `device` accepts."""
    names = [f"/device:CPU:{i}" for i in range(number_of_cpus())] if device_type in (None, "CPU") else []
    counts: dict[str, int] = {}
    for device in visible_devices(device_type):
        if device.device_type != "CPU":
            number = counts[device.device_type] = counts.get(device.device_type, -1) + 1
            names.append(f"/device:{device.device_type}:{number}")
    return [LogicalDevice(name, name.split(":")[1]) for name in names]


def known(device: Any) -> PhysicalDevice:
    """The device, if it is one of this machine's."""
    if device not in physical_devices(getattr(device, "device_type", None)):
        raise ValueError(message(f"Unrecognized device: {device!r}", expected=f"one of {[d.name for d in physical_devices()]}"))
    return device


def configure(device: Any, parts: Any) -> None:
    """Let the CPU count as several devices, or note the memory limit of a device."""
    parts = list(parts)
    if known(device).device_type == "CPU":
        if any(part.memory_limit is not None for part in parts):
            text = "Setting memory limit on CPU virtual devices is currently not supported"
            raise ValueError(message(text, received=shown(parts), fix="tf.config.LogicalDeviceConfiguration() without a limit"))
        _divide_cpu(len(parts))
    elif len(parts) > 1:
        raise ValueError(
            message(
                f"{device.name} cannot be divided into {len(parts)} logical devices.",
                expected="one LogicalDeviceConfiguration",
                fix="tests of several devices can divide the CPU",
            )
        )
    settings.configurations[device] = parts


def _divide_cpu(number: int) -> None:
    if number == number_of_cpus():
        return
    needs_jax("Several CPU devices")
    from gradtape.xp import jax_devices

    try:
        jax_devices.divide_cpu(number)
    except RuntimeError as error:
        raise RuntimeError(
            message(
                "Virtual devices cannot be modified after being initialized",
                received=f"{number} CPU devices, when jax has begun to use {number_of_cpus()}",
                fix="call set_logical_device_configuration first of all",
            )
        ) from error


def needs_jax(what: str) -> None:
    """Say what to install for a feature that needs jax, if it is not there."""
    if not has_jax():
        raise RuntimeError(message(f"{what} needs jax.", fix='pip install "gradtape[xla]"'))


def find(spec: DeviceSpec) -> Any:
    """The device that a name means, as jax's object or HOST; None if there is no such device."""
    kind, index = spec.device_type or "CPU", spec.device_index or 0
    if (kind, index) == ("CPU", 0):
        return HOST
    if f"/device:{kind}:{index}" not in [d.name for d in logical_devices(kind)] or not has_jax():
        return None
    if kind != "CPU":
        _, index = place_of(visible_devices(kind)[index])
    return _of_jax(kind, index)


def _of_jax(kind: str, index: int) -> Any:
    from gradtape.xp import jax_devices

    return jax_devices.found().get((kind, index))


# Choosing one


_OPEN = DeviceSpec()
_parsed = functools.lru_cache(64)(DeviceSpec.from_string)


class _Placement(threading.local):
    spec: DeviceSpec = _OPEN


_placement = _Placement()


class device:
    """Context manager: operations run, and tensors and variables are made, on the named device.

    Operands that are elsewhere are copied there, and gradients flow back through the copies. `None` ends the choice of a
    surrounding block: operations then run where their operands are. Inside a compiled function it has no effect.

    >>> with device("/CPU:0"):
    ...     pass
    """

    def __init__(self, device_name: Any) -> None:
        if callable(device_name) and not hasattr(device_name, "to_string"):
            raise RuntimeError(message("tf.device does not support functions.", fix="the name of a device: '/GPU:0'"))
        self._name = device_name
        self._saved: list[tuple[DeviceSpec, Any]] = []

    def __enter__(self) -> None:
        spec, chosen = _meant(self._name)
        self._saved.append((_placement.spec, here.device))
        _placement.spec = spec
        if not staging.inside:
            placing.change(here.device, chosen)

    def __exit__(self, *_: object) -> None:
        _placement.spec, before = self._saved.pop()
        if here.device is not before:
            placing.change(here.device, before)


def current_device() -> DeviceSpec:
    """The device that the innermost `device` of this thread names; open parts if there is none."""
    return _placement.spec


def _meant(name: Any) -> tuple[DeviceSpec, Any]:
    """A name with the parts that it leaves open filled in by the surrounding one, and the device that it means."""
    if name is None:
        return _OPEN, None
    name = getattr(name, "name", name)
    name = name.to_string() if isinstance(name, DeviceSpec) else name
    if not isinstance(name, str):
        raise ValueError(
            message(f"Expecting a string device name. Got {type(name)}({name})", expected="a name such as '/GPU:0', or None")
        )
    spec, around = _parsed(name), _placement.spec
    if around is not _OPEN:
        if spec.device_type not in (None, around.device_type):
            around = around.replace(device_index=None)
        spec = around.make_merged_spec(spec)
    if spec.job not in (None, "localhost") or spec.replica or spec.task:
        raise InvalidArgumentError(message(f"{spec.to_string()} unknown device.", expected="a device of this process"))
    if spec.device_index is not None and spec.device_index < 0:
        text = f"Malformed device specification '{_HOST}{spec.to_string()}'"
        raise InvalidArgumentError(message(text, received=repr(name), expected="an index of 0 or more: '/GPU:0'"))
    if spec.device_type is None:
        return spec, here.device
    found = find(spec)
    if found is None and not settings.soft_placement:
        raise missing(spec)
    return spec, HOST if found is None else found


def missing(spec: DeviceSpec) -> InvalidArgumentError:
    """The error for a device that is not there."""
    there = logical_devices()
    fix = "name one of these, or tf.config.set_soft_device_placement(True)"
    return InvalidArgumentError(
        message(
            f"Could not satisfy device specification '{_HOST}/device:{spec.device_type}:{spec.device_index or 0}'. "
            f"enable_soft_placement=0. Supported device types [{', '.join(sorted({d.device_type for d in there}))}]. "
            f"All available devices [{', '.join(_HOST + d.name for d in there)}].",
            fix=fix if has_jax() else 'pip install "gradtape[xla]", without which only the CPU is used',
        )
    )


# Methods of tensors


def cpu(tensor: Tensor) -> Tensor:
    """The tensor in the memory of the CPU; itself if it is there."""
    return tensor if type(tensor) is Tensor else _copied(tensor, HOST)


def gpu(tensor: Tensor, gpu_index: int = 0) -> Tensor:
    """The tensor on a GPU."""
    found = find(DeviceSpec(device_type="GPU", device_index=gpu_index))
    if found is None:
        needs_jax("A GPU")
        there = ", ".join(d.name for d in logical_devices())
        raise RuntimeError(message(f"GPU:{gpu_index} unknown device.", expected=f"one of {there}"))
    return _copied(tensor, found)


def _copied(tensor: Tensor, to: Any) -> Tensor:
    before = here.device
    placing.change(before, to)
    try:
        return elementwise.identity(tensor)
    finally:
        placing.change(to, before)
