"""`tf.test`: gradient checks with TensorFlow's names."""

from __future__ import annotations

from typing import Any

from gradtape.testing.jacobians import compute_gradient, max_error

__all__ = [
    "compute_gradient",
    "gpu_device_name",
    "is_built_with_cuda",
    "is_built_with_gpu_support",
    "is_built_with_rocm",
    "is_built_with_xla",
    "is_gpu_available",
    "max_error",
]


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """False: eager work runs on NumPy."""
    return False


def is_built_with_cuda() -> bool:
    """False: there is nothing built in; compiled programs use what jax finds."""
    return False


is_built_with_rocm = is_built_with_gpu_support = is_built_with_cuda


def is_built_with_xla() -> bool:
    """Whether compiled programs can run: jax is installed."""
    from importlib.util import find_spec

    return find_spec("jax") is not None


def gpu_device_name() -> str:
    """The empty string: no GPU serves eager ops."""
    return ""
