"""The devices that jax finds on this machine."""

from __future__ import annotations

import jax

_TYPES = {"gpu": "GPU", "cuda": "GPU", "rocm": "GPU", "tpu": "TPU"}


def accelerators() -> list[tuple[str, int]]:
    """(type, index) of every device that is not a CPU, with TensorFlow's names for the types."""
    kinds = [_TYPES.get(device.platform) for device in jax.local_devices()]
    return [(kind, kinds[:i].count(kind)) for i, kind in enumerate(kinds) if kind is not None]


def memory(index: int) -> dict[str, int]:
    """The bytes in use, now and at most, on an accelerator."""
    devices = [device for device in jax.local_devices() if device.platform in _TYPES]
    found = devices[index].memory_stats() or {}
    return {"current": found.get("bytes_in_use", 0), "peak": found.get("peak_bytes_in_use", 0)}
