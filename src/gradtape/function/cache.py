"""Compiling: a word if it takes long, and a folder where other processes find what this one has compiled."""

from __future__ import annotations

import contextlib
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
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


class _Checked:
    """jax's folder of programs, with a checksum at the end of each: what is damaged there is compiled again, and never run.

    Of jax's own only the compression may have one: zlib has, zstd has not.
    """

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    @property
    def _path(self) -> Any:
        return self._cache._path

    def get(self, key: str) -> bytes | None:
        value = self._cache.get(key)
        if value is None or value[-4:] == _checksum(value[:-4]):
            return value and value[:-4]
        logger.warning("tf.function: a program in %s is damaged, and is compiled again: %s", self._path, key)
        for path in Path(self._path).glob(f"{key}-*"):  # jax writes over nothing that is there
            path.unlink(missing_ok=True)
        return None

    def put(self, key: str, value: bytes) -> None:
        self._cache.put(key, value + _checksum(value))


def _checksum(value: bytes) -> bytes:
    return zlib.crc32(value).to_bytes(4, "little")


@contextlib.contextmanager
def _kept() -> Iterator[None]:
    """While inside, jax looks for programs in our folder, and writes new ones there."""
    if settings.compile_cache is None:
        yield
        return
    import jax
    from jax._src import compilation_cache  # what is public of it takes a folder, and nothing that reads one

    options = {**_OPTIONS, "jax_compilation_cache_dir": settings.compile_cache}
    with _lock:
        before = {name: getattr(jax.config, name) for name in options}
        try:
            for name, value in options.items():
                jax.config.update(name, value)
            compilation_cache.reset_cache()  # jax opens its folder once, and would stay with it
            compilation_cache._initialize_cache()
            if compilation_cache._cache is not None:
                compilation_cache._cache = _Checked(compilation_cache._cache)  # type: ignore[assignment]
            yield
        finally:
            for name, value in before.items():
                jax.config.update(name, value)
            compilation_cache.reset_cache()


_NAMED = 8
"""How many kinds of arrays a message lists."""


class _Compilation:
    """Something that somebody waits for."""

    def __init__(self, piece: Any, name: str) -> None:
        self.piece, self.name, self.start, self.told = piece, name, time.perf_counter(), False

    def tell(self) -> None:
        kinds = Counter(f"{kind.dtype.name} {kind.shape}" for kind in self.piece.types).most_common()
        arrays = ", ".join(f"{count} x {kind}" if count > 1 else kind for kind, count in kinds[:_NAMED]) or "no arrays"
        arrays += f" and {len(kinds) - _NAMED} other kinds" if len(kinds) > _NAMED else ""
        what = f"{self.piece.size} operations on {arrays}"
        logger.warning("tf.function: compiling %s takes more than %g s: %s", self.name, SLOW, what)


class _Watch:
    """One thread that speaks for all compilations which take long; it begins with the first of them, and never ends."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open: list[_Compilation] = []
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def over(self, piece: Any, name: str) -> Iterator[None]:
        """While inside, somebody waits: after a while, say for what."""
        compilation = _Compilation(piece, name)
        with self._changed:
            self._open.append(compilation)
            if self._thread is None or not self._thread.is_alive():  # the second: in a forked process
                self._thread = threading.Thread(target=self._run, name="gradtape compilation watch", daemon=True)
                self._thread.start()
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._open.remove(compilation)
            if compilation.told:
                seconds = time.perf_counter() - compilation.start
                logger.warning("tf.function: %s was compiled in %.1f s", name, seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                silent = [c for c in self._open if not c.told]
                due = [c for c in silent if time.perf_counter() - c.start >= SLOW]
                if not due:
                    self._changed.wait(SLOW / 4 if silent else None)
                for compilation in due:
                    compilation.told = True
            for compilation in due:
                compilation.tell()


_watch = _Watch()


def compile_at_first_run(piece: Any, name: str) -> None:
    """Let the first run of a piece compile it by itself, before it touches its inputs."""

    def first(*inputs: Any) -> Any:
        with _watch.over(piece, name), _kept():
            piece.compiled.lower(*inputs).compile()
        piece.run = piece.compiled
        return piece.run(*inputs)

    piece.run = first
