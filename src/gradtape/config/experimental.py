"""`tf.config.experimental`: memory of devices, older names, and switches that are accepted."""

from __future__ import annotations

from typing import Any

from gradtape.errors import message
from gradtape.ops import devices
from gradtape.ops.devices import LogicalDeviceConfiguration as VirtualDeviceConfiguration
from gradtape.ops.devices import PhysicalDevice
from gradtape.ops.devices import logical_devices as list_logical_devices
from gradtape.ops.devices import physical_devices as list_physical_devices
from gradtape.ops.devices import set_visible as set_visible_devices
from gradtape.ops.devices import visible_devices as get_visible_devices
from gradtape.scope import missing
from gradtape.values.placement import HOST

__all__ = [
    "VirtualDeviceConfiguration", "enable_op_determinism", "enable_tensor_float_32_execution", "get_device_details",
    "get_device_policy", "get_memory_growth", "get_memory_info", "get_memory_usage", "get_synchronous_execution",
    "get_virtual_device_configuration", "get_visible_devices", "list_logical_devices", "list_physical_devices",
    "reset_memory_stats", "set_device_policy", "set_memory_growth", "set_synchronous_execution",
    "set_virtual_device_configuration", "set_visible_devices", "tensor_float_32_execution_enabled",
]  # fmt: skip
__getattr__ = missing(__name__, __all__)

_POLICIES = ("silent", "silent_for_int32", "warn", "explicit")
_settings: dict[str, Any] = {"policy": "silent", "synchronous": True, "tensor_float_32": True}


def set_memory_growth(device: PhysicalDevice, enable: bool) -> None:
    """Accepted for accelerators: jax allocates as its own environment variables say."""
    if devices.known(device).device_type == "CPU":
        raise ValueError(
            message(
                "Cannot set memory growth on non-GPU and non-Pluggable devices",
                received=f"{device}",
                fix="tf.config.list_physical_devices('GPU') lists devices whose memory can grow",
            )
        )
    devices.settings.memory_growth[device] = bool(enable)


def get_memory_growth(device: PhysicalDevice) -> bool:
    """Whether memory growth was asked for."""
    if devices.known(device).device_type == "CPU":
        raise ValueError(
            message(
                "Cannot set memory growth on non-GPU and non-Pluggable devices",
                received=f"{device}",
                fix="tf.config.list_physical_devices('GPU') lists devices whose memory can grow",
            )
        )
    return devices.settings.memory_growth.get(device, False)


def get_memory_info(device: str) -> dict[str, int]:
    """The bytes in use on a device, now and at most; zeros for the CPU."""
    found = devices.find(devices.DeviceSpec.from_string(device))
    if found is None:
        raise ValueError(
            message(f"No matching devices found for '{device}'", expected=f"one of {[d.name for d in list_logical_devices()]}")
        )
    if found is HOST:
        return {"current": 0, "peak": 0}
    from gradtape.xp import jax_devices

    return jax_devices.memory(found)


def get_memory_usage(device: str) -> int:
    """The bytes in use on a device."""
    return get_memory_info(device)["current"]


def reset_memory_stats(device: str) -> None:
    """Accepted: jax keeps its own statistics."""
    get_memory_info(device)


def get_device_details(device: PhysicalDevice) -> dict[str, Any]:
    """What jax says about a device; nothing about the CPU."""
    if devices.known(device).device_type == "CPU":
        return {}
    from gradtape.xp import jax_devices

    return jax_devices.details(*devices.place_of(device))


def get_virtual_device_configuration(device: PhysicalDevice) -> Any:
    """The parts that a device was divided into; None if it was not."""
    return devices.settings.configurations.get(devices.known(device))


def set_virtual_device_configuration(device: PhysicalDevice, logical_devices: Any) -> None:
    """Let the CPU count as several devices (before jax is used), or note the memory limit of a device."""
    devices.configure(device, logical_devices)


def enable_op_determinism() -> None:
    """Accepted: eager operations give the same bits every time."""


def enable_tensor_float_32_execution(enabled: bool) -> None:
    """Whether products of float32 may run in the reduced precision that some GPUs have for it; on the CPU they never do."""
    _settings["tensor_float_32"] = bool(enabled)
    if devices.has_jax():
        from gradtape.xp import jax_devices

        jax_devices.prefer(precision=None if enabled else "highest")


def tensor_float_32_execution_enabled() -> bool:
    """Whether reduced precision was allowed."""
    return _settings["tensor_float_32"]


def get_device_policy() -> str:
    """What happens to operands on different devices, as it was set."""
    return _settings["policy"]


def set_device_policy(device_policy: str | None) -> None:
    """Accepted: operands on different devices are copied silently."""
    if device_policy not in (*_POLICIES, None):
        raise ValueError(
            message(f"Invalid argument `device_policy`: {device_policy!r}.", expected=f"one of {', '.join(_POLICIES)}")
        )
    _settings["policy"] = device_policy or "silent"


def get_synchronous_execution() -> bool:
    """Whether operations wait for their results, as it was set; they do."""
    return _settings["synchronous"]


def set_synchronous_execution(enable: bool) -> None:
    """Accepted: operations wait for their results."""
    _settings["synchronous"] = bool(enable)
