"""What is active in this thread: the recorders (tapes, and whatever else listens to operations)."""

from __future__ import annotations

import threading


class _Thread(threading.local):
    recorders: tuple = ()  # in order of entry; class attribute: the default of every new thread


thread = _Thread()


class suspended:
    """Context manager: silence every recorder of this thread; re-entrant."""

    def __enter__(self) -> None:
        self._saved = thread.recorders
        thread.recorders = ()

    def __exit__(self, *_: object) -> None:
        thread.recorders = self._saved
