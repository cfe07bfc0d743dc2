"""`tf.test`: gradient checks, test cases that compare arrays, and what is built in, with TensorFlow's names."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from gradtape.ops import devices as _devices
from gradtape.scope import missing
from gradtape.testing.case import Benchmark, TestCase
from gradtape.testing.jacobians import compute_gradient, max_error

__all__ = [
    "Benchmark", "TestCase", "compute_gradient", "gpu_device_name", "is_built_with_cuda", "is_built_with_gpu_support",
    "is_built_with_rocm", "is_built_with_xla", "is_cpu_target_available", "is_gpu_available", "main", "max_error",
]  # fmt: skip
__getattr__ = missing(__name__, __all__)


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """Whether jax finds a GPU; compiled programs use it, eager operations run on the CPU."""
    return bool(_devices.physical_devices("GPU"))


def gpu_device_name() -> str:
    """The name of the first GPU, or the empty string."""
    found = _devices.logical_devices("GPU")
    return found[0].name if found else ""


def is_built_with_cuda() -> bool:
    """False: there is nothing built in; compiled programs use what jax finds."""
    return False


is_built_with_rocm = is_built_with_gpu_support = is_built_with_cuda


def is_built_with_xla() -> bool:
    """Whether compiled programs can run: jax is installed."""
    return find_spec("jax") is not None


def is_cpu_target_available(target: str) -> bool:
    """Whether code for this kind of processor is there: what NumPy runs on."""
    import platform

    names = {"x86": ("x86_64", "AMD64"), "arm": ("arm64", "aarch64")}
    return platform.machine() in names.get(target, (target,))


def main(argv: Any = None) -> None:
    """Run the tests of the calling module."""
    import unittest

    unittest.main(argv=argv)
