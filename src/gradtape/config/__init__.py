"""`tf.config`: which devices there are, and switches of the runtime."""

from __future__ import annotations

import os
from typing import Any

from gradtape.config import experimental, optimizer, threading
from gradtape.ops import devices
from gradtape.ops.devices import LogicalDevice, LogicalDeviceConfiguration, PhysicalDevice
from gradtape.ops.execution import settings
from gradtape.scope import missing

__all__ = [
    "LogicalDevice", "LogicalDeviceConfiguration", "PhysicalDevice", "experimental", "experimental_functions_run_eagerly",
    "experimental_run_functions_eagerly", "functions_run_eagerly", "get_compile_cache", "get_logical_device_configuration",
    "get_soft_device_placement", "get_visible_devices", "list_logical_devices", "list_physical_devices", "optimizer",
    "run_functions_eagerly", "set_compile_cache", "set_logical_device_configuration", "set_soft_device_placement",
    "set_visible_devices", "threading",
]  # fmt: skip
__getattr__ = missing(__name__, __all__)


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices of this machine: one CPU, and the accelerators that jax finds."""
    return devices.physical_devices(device_type)


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The devices that programs may name."""
    return devices.logical_devices(device_type)


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices that programs see."""
    return devices.visible_devices(device_type)


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Hide the devices that are not listed; with a type, of this type only."""
    _set_visible(devices, device_type)


_set_visible = devices.set_visible


def get_soft_device_placement() -> bool:
    """Whether the CPU serves where the device that is asked for is not there."""
    return devices.settings.soft_placement


def set_soft_device_placement(enabled: bool) -> None:
    """Let the CPU serve where the device that is asked for is not there, or make that an error."""
    devices.settings.soft_placement = bool(enabled)


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Run the bodies of compiled functions as they are written."""
    settings.run_eagerly = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    """Whether compiled functions run as they are written."""
    return settings.run_eagerly


experimental_run_functions_eagerly = run_functions_eagerly
experimental_functions_run_eagerly = functions_run_eagerly


def set_compile_cache(directory: str | os.PathLike | None) -> None:
    """Keep compiled functions in this folder, for later runs and other processes; None keeps them in memory only.

    jax's own settings, and what jax compiles outside of our calls, are left alone.
    """
    settings.compile_cache = None if directory is None else os.path.abspath(os.fspath(directory))


def get_compile_cache() -> str | None:
    """The folder in which compiled functions are kept, if there is one."""
    return settings.compile_cache


def get_logical_device_configuration(device: PhysicalDevice) -> list[LogicalDeviceConfiguration] | None:
    """The parts that a device was divided into; None if it was not."""
    return devices.settings.configurations.get(devices.known(device))


def set_logical_device_configuration(device: PhysicalDevice, logical_devices: Any) -> None:
    """Let the CPU count as several devices (before jax is used), or note the memory limit of a device."""
    devices.configure(device, logical_devices)
