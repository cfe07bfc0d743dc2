"""Compiling: a word if it takes long, and a folder where other processes find what this one has compiled."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

from gradtape.core.callsite import logger
from gradtape.ops.execution import settings

SLOW = 2.0
"""Seconds after which a compilation says what it is doing."""

_OPTIONS = {  # jax's defaults leave out what compiles in less than a second
    "jax_enable_compilation_cache": True, "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1, "jax_persistent_cache_enable_xla_caches": "none",
}  # fmt: skip


_lock = threading.RLock()


@contextlib.contextmanager
def _kept() -> Iterator[None]:
    """While inside, jax looks for programs in our folder, and writes new ones there."""
    if settings.compile_cache is None:
        yield
        return
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    options = {**_OPTIONS, "jax_compilation_cache_dir": settings.compile_cache}
    with _lock:
        before = {name: getattr(jax.config, name) for name in options}
        try:
            for name, value in options.items():
                jax.config.update(name, value)
            compilation_cache.reset_cache()  # jax opens its folder once, and would stay with it
            yield
        finally:
            for name, value in before.items():
                jax.config.update(name, value)
            compilation_cache.reset_cache()


@contextlib.contextmanager
def _watched(piece: Any, name: str) -> Iterator[None]:
    """While inside, somebody waits: after a while, say for what."""
    start, told = time.perf_counter(), threading.Event()

    def tell() -> None:
        told.set()
        what = f"{piece.size} operations on {', '.join(f'{t.dtype.name} {t.shape}' for t in piece.types) or 'no arrays'}"
        logger.warning("tf.function: compiling %s takes more than %g s: %s", name, SLOW, what)

    timer = threading.Timer(SLOW, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if told.is_set():
            logger.warning("tf.function: %s was compiled in %.1f s", name, time.perf_counter() - start)


def compile_at_first_run(piece: Any, name: str) -> None:
    """Let the first run of a piece compile it by itself, before it touches its inputs."""

    def first(*inputs: Any) -> Any:
        with _watched(piece, name), _kept():
            piece.compiled.lower(*inputs).compile()
        piece.run = piece.compiled
        return piece.run(*inputs)

    piece.run = first
