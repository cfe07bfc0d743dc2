"""Writers of event files, and the state of this thread: the writer, the step, and whether to record."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradtape.errors import message, shown
from gradtape.ops.files import path_of
from gradtape.values.naming import name_scope
from gradtape.values.tensor import Tensor, wrap

_MAX_QUEUE, _FLUSH_MILLIS = 10, 120_000
_numbers = itertools.count()


class _State(threading.local):
    writer: SummaryWriter | None = None
    step: Any = None
    recording: bool | Tensor | Callable[[], Any] = True


state = _State()


class SummaryWriter:
    """Where summaries go; made by `create_file_writer`. This one keeps nothing."""

    def set_as_default(self, step: Any = None) -> None:
        """Write the summaries of this thread here from now on."""

    @contextlib.contextmanager
    def as_default(self, step: Any = None) -> Iterator[SummaryWriter]:
        """Write the summaries of the block here; with ``step``, for that step."""
        yield self

    def init(self) -> None:
        """Nothing to do: a file is open from the start."""

    def flush(self) -> None:
        """Bring everything to the disk."""

    def close(self) -> None:
        """Write no more."""

    def add(self, event: Any) -> None:
        """Append an event."""


class FileWriter(SummaryWriter):
    """Writes an event file that TensorBoard reads, through tensorboardX."""

    def __init__(self, folder: str, max_queue: int, flush_millis: int, suffix: str) -> None:
        events = _events_writer()
        os.makedirs(folder, exist_ok=True)
        # Seconds and host name are in the name already; process and count keep two writers apart.
        unique = f".{os.getpid()}.{next(_numbers)}{suffix}"
        self._events = events(os.path.join(folder, "events"), unique)
        self._max_queue = max_queue
        self._flush_seconds = flush_millis / 1000
        self._waiting = 0
        self._flushed = time.monotonic()
        self._lock = threading.Lock()
        self._close = weakref.finalize(self, self._events.close)  # at exit too
        self._events.flush()

    def set_as_default(self, step: Any = None) -> None:
        self._check_open()
        state.writer = self
        if step is not None:
            state.step = step

    @contextlib.contextmanager
    def as_default(self, step: Any = None) -> Iterator[SummaryWriter]:
        self._check_open()
        before = state.writer, state.step
        state.writer = self
        if step is not None:
            state.step = step
        try:
            yield self
        finally:
            state.writer = before[0]
            if step is not None:
                state.step = before[1]
            self.flush()

    def _check_open(self) -> None:
        if not self._close.alive:
            raise RuntimeError(message(f"SummaryWriter {self!r} is already closed", fix="make a new one: a new event file"))

    def add(self, event: Any) -> None:
        self._check_open()
        with self._lock:
            self._events.write_event(event)
            self._waiting += 1
        if self._waiting >= self._max_queue or time.monotonic() - self._flushed > self._flush_seconds:
            self.flush()

    def flush(self) -> None:
        if self._close.alive:
            with self._lock:
                self._events.flush()
                self._waiting, self._flushed = 0, time.monotonic()

    def close(self) -> None:
        self._close()


def _events_writer() -> Any:
    try:
        from tensorboardX.event_file_writer import EventsWriter
    except ImportError as error:
        raise ImportError(
            message("tf.summary writes event files through tensorboardX.", fix="pip install gradtape[tensorboard]")
        ) from error
    return EventsWriter


def create_file_writer(
    logdir: Any,
    max_queue: int | None = None,
    flush_millis: int | None = None,
    filename_suffix: str | None = None,
    name: str | None = None,
    experimental_trackable: bool = False,
    experimental_mesh: Any = None,
) -> SummaryWriter:
    """A writer of a new event file in a folder; the file reaches the disk after ``max_queue`` events or ``flush_millis``.

    >>> import tempfile
    >>> writer = tf.summary.create_file_writer(tempfile.mkdtemp())
    >>> with writer.as_default():
    ...     written = tf.summary.scalar("loss", 0.5, step=1)
    >>> bool(written)
    True
    """
    if logdir is None:
        text = "Argument `logdir` cannot be None"
        raise ValueError(message(text, received="logdir=None", fix="tf.summary.create_file_writer('logs')"))
    if not isinstance(logdir, (str, bytes, os.PathLike, Tensor)):
        text = f"Cannot convert {logdir!r} to EagerTensor of dtype string"
        raise TypeError(message(text, received=shown(logdir), expected="a path"))
    return FileWriter(
        path_of(logdir),
        _MAX_QUEUE if max_queue is None else int(max_queue),
        _FLUSH_MILLIS if flush_millis is None else int(flush_millis),
        ".v2" if filename_suffix is None else filename_suffix,
    )


def create_noop_writer() -> SummaryWriter:
    """A writer that writes nothing."""
    return SummaryWriter()


def flush(writer: SummaryWriter | None = None, name: str | None = None) -> None:
    """Bring what a writer (default: this thread's) has to the disk."""
    writer = state.writer if writer is None else writer
    if writer is not None:
        writer.flush()


# Whether to record


def recording() -> bool:
    """Whether a summary written now would be recorded."""
    if state.writer is None:
        return False
    condition = state.recording
    return bool(condition() if callable(condition) else condition)


def should_record_summaries() -> Tensor:
    """Whether there is a writer, and `record_if` allows it, as a boolean tensor."""
    return wrap(np.asarray(recording()))


@contextlib.contextmanager
def record_if(condition: Any) -> Iterator[None]:
    """Record the summaries of the block only if the condition holds: a boolean, a tensor, or a function that gives one.

    >>> with tf.summary.record_if(False):
    ...     print(bool(tf.summary.should_record_summaries()))
    False
    """
    before = state.recording
    state.recording = condition
    try:
        yield
    finally:
        state.recording = before


# The step


def set_step(step: Any) -> None:
    """The step for summaries that are not given one; a variable is read at each summary."""
    state.step = step


def get_step() -> Any:
    """What `set_step` set, or None."""
    return state.step


def step_number(step: Any) -> int:
    """The step of a summary as a number."""
    step = state.step if step is None else step
    if step is None:
        raise ValueError(
            message(
                "No step set. Please specify one either through the `step` argument or through "
                "tf.summary.experimental.set_step()",
                fix="tf.summary.scalar(name, value, step=n)",
            )
        )
    return int(step)


@contextlib.contextmanager
def summary_scope(name: str, default_name: str = "summary", values: Any = None) -> Iterator[tuple[str, str]]:
    """(tag, scope) for a summary of this name inside the active name scopes."""
    with name_scope(name or default_name) as scope:
        yield scope.rstrip("/"), scope


