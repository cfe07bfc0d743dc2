"""The devices that jax finds on this machine, by TensorFlow's names, and arrays on them."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator
from typing import Any

import jax
import jaxlib

jit = jax.jit
_TYPES = {"cpu": "CPU", "gpu": "GPU", "cuda": "GPU", "rocm": "GPU", "tpu": "TPU"}


@functools.cache
def found() -> dict[tuple[str, int], Any]:
    """Every device of this process by its type and number; ``("CPU", 0)`` is the one whose memory NumPy shares."""
    devices = jax.local_devices()
    if all(device.platform != "cpu" for device in devices):
        with contextlib.suppress(RuntimeError):  # the user's JAX_PLATFORMS leaves it out
            devices = [*jax.local_devices(backend="cpu"), *devices]
    kinds = [_TYPES.get(device.platform, device.platform.upper()) for device in devices]
    return {(kind, kinds[:i].count(kind)): device for i, (kind, device) in enumerate(zip(kinds, devices))}


@functools.cache
def _names() -> dict[Any, tuple[str, int]]:
    return {device: name for name, device in found().items()}


@functools.cache
def several() -> bool:
    """Whether arrays can be on different devices; NumPy's memory does not count."""
    return len([name for name in found() if name != ("CPU", 0)]) > 1


_LIBRARY = "xla_cpu_experimental_ynn_fusion_type"
_OPTIONS: dict[str, dict[str, Any]] = {
    "gpu": {"xla_gpu_enable_triton_gemm": False},
    "cpu": {_LIBRARY: "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT,LIBRARY_FUSION_TYPE_REDUCE"},
}


@functools.cache
def compiler_options() -> dict[str, Any] | None:
    """How programs are compiled, where XLA's own choice is not the best and the user has not chosen (``XLA_FLAGS``).

    On a GPU products are left to cuBLAS: a product that XLA writes itself, for the sake of what it draws into it, takes more
    time than it saves (a transformer's step: 3.09 ms, without 2.98). On a CPU the library for products and sums is not used for
    convolutions: what XLA used before it takes half of the time for gradients of filters, or for many channels (design/0010).
    """
    options = _OPTIONS.get(jax.default_backend(), {})
    if jaxlib.version.__version_info__ < (0, 10, 2):  # which does not use that library for convolutions yet
        options = {name: value for name, value in options.items() if name != _LIBRARY}
    return {name: value for name, value in options.items() if name not in os.environ.get("XLA_FLAGS", "")} or None


@functools.cache
def _default() -> Any:
    """The device to which jax moves what nobody has placed."""
    return jax.local_devices()[0]


def divide_cpu(number: int) -> None:
    """Let the CPU count as several devices; a RuntimeError if it is too late for that."""
    jax.config.update("jax_num_cpu_devices", number)
    for memo in (found, _names, several, _default):
        memo.cache_clear()


def prefer(**preferences: Any) -> None:
    """What else holds inside our scopes: ``device``, on which programs run, and ``precision`` of float32 products."""
    from gradtape.xp import jax as JAX

    known = JAX._preferences
    known.update(preferences)
    for name in [name for name, value in known.items() if value is None]:
        del known[name]


def of(array: Any) -> Any:
    """The device that an array is on; None if it is on several, or a tracer."""
    device = getattr(array, "device", None)
    return device if device in _names() else None


def name_of(device: Any) -> tuple[str, int]:
    """Its type and number."""
    return _names()[device]


def on_host(array: Any) -> bool:
    """Whether an array is in the memory that NumPy arrays are in, or spread over CPUs."""
    devices = array.devices()
    if len(devices) > 1:
        return all(device.platform == "cpu" for device in devices)
    return all(_names().get(device) == ("CPU", 0) for device in devices)


def together(arrays: list, device: Any = None) -> list:
    """Arrays for one program: on ``device``, by default that of the first which is not in NumPy's memory.

    What jax has put on its default device because nobody said where gives way to what was placed.
    """
    if device is None:
        away = [(a, d) for a, d in zip(arrays, map(of, arrays)) if d is not None and _names()[d] != ("CPU", 0)]
        devices = [d for a, d in away if getattr(a, "committed", True)] or [d for _, d in away]
        if not devices:
            return arrays
        device = devices[0]
    return [put(array, device) for array in arrays]


def put(array: Any, device: Any) -> Any:
    """The array on a device ("host": the CPU that NumPy runs on): itself, if it is there."""
    device = found()["CPU", 0] if device == "host" else device
    if of(array) is device and (device is _default() or array.committed):
        return array
    from gradtape.xp import jax as JAX

    with JAX.scope():
        return jax.device_put(array, device)


@contextlib.contextmanager
def creating(device: Any) -> Iterator[Any]:
    """What is made of nothing inside is made on this device; gives the namespace."""
    from gradtape.xp import jax as JAX

    with JAX.scope(), jax.default_device(device):
        yield JAX


def symbols(lengths: Any, dtype: Any) -> Any:
    """A length, or several, that a program leaves open, as an array of it."""
    if not isinstance(lengths, tuple):
        return jax.numpy.asarray(lengths, dtype)
    return jax.numpy.stack([jax.numpy.asarray(n, dtype) for n in lengths])


def memory(device: Any) -> dict[str, int]:
    """The bytes in use, now and at most, on a device."""
    stats = device.memory_stats() or {}
    return {"current": stats.get("bytes_in_use", 0), "peak": stats.get("peak_bytes_in_use", 0)}


def details(kind: str, index: int) -> dict[str, Any]:
    """What jax says about a device."""
    device = found()[kind, index]
    known = {"device_name": device.device_kind, "compute_capability": getattr(device, "compute_capability", None)}
    return {name: value for name, value in known.items() if value is not None}
