"""Steps that work in threads of their own: `prefetch`, and `map` with parallel calls. Both keep the order of elements."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from gradtape.data.cursor import AUTOTUNE, Cursor, ElementCursor, Pass
from gradtape.data.ordering import Step

_AUTOMATIC_BUFFER = 2  # one element in use, the next one ready


def workers(count: int) -> int:
    """A number of threads; AUTOTUNE is one for each processor."""
    return (os.cpu_count() or 1) if count == AUTOTUNE else count


@dataclass(eq=False)
class Prefetch(Step):
    size: int

    def cursor(self, run: Pass) -> Cursor:
        source = self.source.cursor(run)
        # Row numbers cost nothing: there is nothing to do ahead of time.
        return source if source.columns is not None else Background(source, self.size)


class Background(ElementCursor):
    """Elements that a thread draws ahead of time, at most ``size`` of them.

    The thread starts with the first element that is asked for. It ends with the data, when this object is dropped, or
    when the interpreter exits; it never holds this object, only what the two share.
    """

    def __init__(self, source: Cursor, size: int) -> None:
        self.source = source
        self.shared = _Shared(size if size > 0 else _AUTOMATIC_BUFFER)
        self.started = False

    def element(self) -> Any:
        if not self.started:
            self.started = True
            thread = threading.Thread(target=_produce, args=(self.source, self.shared), name="gradtape-prefetch", daemon=True)
            weakref.finalize(self, self.shared.stop)  # runs at exit too
            thread.start()
        return self.shared.take()

    def advance(self, count: int) -> int:
        return super().advance(count) if self.started else self.source.advance(count)


class _Shared:
    """A bounded queue of outcomes, (element, None) or (None, error), that either side can close."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.outcomes: deque[tuple[Any, Exception | None]] = deque()
        self.changed = threading.Condition()
        self.ended = self.stopped = False

    def put(self, outcome: tuple[Any, Exception | None]) -> bool:
        """Wait for room; False if nobody wants any more."""
        with self.changed:
            while len(self.outcomes) >= self.size and not self.stopped:
                self.changed.wait()
            self.outcomes.append(outcome)
            self.changed.notify_all()
            return not self.stopped

    def take(self) -> Any:
        with self.changed:
            while not self.outcomes and not self.ended:
                self.changed.wait()
            if not self.outcomes:
                raise StopIteration
            element, error = self.outcomes.popleft()
            self.changed.notify_all()
        if error is not None:
            raise error
        return element

    def end(self) -> None:
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def stop(self) -> None:
        with self.changed:
            self.stopped = True
            self.changed.notify_all()


def _produce(source: Cursor, shared: _Shared) -> None:
    wanted = True
    try:
        while wanted:
            try:
                outcome: tuple[Any, Exception | None] = source.element(), None
            except StopIteration:
                break
            except Exception as error:
                outcome = None, error
            wanted = shared.put(outcome)
    finally:
        shared.end()


class ParallelCalls(ElementCursor):
    """``call`` on each element, in a pool of threads; results come in order, or with ``ordered=False`` as they are ready.

    An error belongs to its element: it is raised in that element's turn, and the pass goes on after it.
    """

    def __init__(self, source: Cursor, call: Callable[[Any], Any], count: int, ordered: bool) -> None:
        self.source, self.call, self.count, self.ordered = source, call, count, ordered
        self.pool: ThreadPoolExecutor | None = None
        self.pending: deque[Future] = deque()
        self.ended = False

    def element(self) -> Any:
        self._submit()
        if not self.pending:
            raise StopIteration
        if not self.ordered:
            ready = wait(self.pending, return_when=FIRST_COMPLETED).done
            first = next(future for future in self.pending if future in ready)
            self.pending.remove(first)
            return first.result()
        return self.pending.popleft().result()

    def _submit(self) -> None:
        if self.pool is None:
            self.pool = ThreadPoolExecutor(self.count, thread_name_prefix="gradtape-map")
            weakref.finalize(self, self.pool.shutdown, wait=False, cancel_futures=True)
        while not self.ended and len(self.pending) < self.count:
            try:
                self.pending.append(self.pool.submit(self.call, self.source.element()))
            except StopIteration:
                self.ended = True
            except Exception as error:
                failed: Future = Future()
                failed.set_exception(error)
                self.pending.append(failed)

    def advance(self, count: int) -> int:
        return super().advance(count) if self.pool is not None else self.source.advance(count)
