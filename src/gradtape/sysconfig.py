"""`tf.sysconfig`: how it was built. It was not: gradtape is Python."""

from __future__ import annotations

from typing import Any

from gradtape.scope import missing

__all__ = ["get_build_info"]
__getattr__ = missing(__name__, __all__)


def get_build_info() -> dict[str, Any]:
    """What is built in: no accelerator code; jax brings its own."""
    return {"is_cuda_build": False, "is_rocm_build": False, "is_tensorrt_build": False}
