"""`CheckpointManager`: the last few checkpoints of a folder, and the latest to go on from."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from gradtape.core.variable import Variable
from gradtape.errors import message
from gradtape.train import files, folder
from gradtape.train.checkpoint import Checkpoint, CheckpointOptions


class CheckpointManager:
    """Saves numbered checkpoints, keeps the last ``max_to_keep`` of them (None: all) and deletes the others.

    Of those to be deleted, one is kept for good every ``keep_checkpoint_every_n_hours``. With ``checkpoint_interval``,
    `save` does nothing until the variable ``step_counter`` has advanced by so much.

    >>> import tempfile
    >>> step = tf.Variable(0)
    >>> manager = tf.train.CheckpointManager(tf.train.Checkpoint(step=step), tempfile.mkdtemp(), max_to_keep=2)
    >>> [os.path.basename(manager.save()) for _ in range(3)], len(manager.checkpoints)
    (['ckpt-1', 'ckpt-2', 'ckpt-3'], 2)
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: Any,
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        step_counter: Variable | None = None,
        checkpoint_interval: int | None = None,
        init_fn: Callable[[], Any] | None = None,
        last_checkpoint_step: int | None = None,
    ) -> None:
        if max_to_keep is not None and max_to_keep <= 0:
            text = f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep}."
            raise ValueError(message(text, received=f"max_to_keep={max_to_keep}", expected="1 or more, or None to keep all"))
        if checkpoint_interval is not None and step_counter is None:
            text = "`step_counter` should be passed if `checkpoint_interval` is not None."
            raise ValueError(
                message(text, received=f"checkpoint_interval={checkpoint_interval}", fix="step_counter=optimizer.iterations")
            )
        self._checkpoint = checkpoint
        self._directory = os.fsdecode(directory)
        self._max_to_keep = max_to_keep
        self._keep_hours = keep_checkpoint_every_n_hours
        self._prefix = os.path.join(self._directory, checkpoint_name)
        self._step_counter = step_counter
        self._interval = checkpoint_interval
        self._init_fn = init_fn
        self._last_step = last_checkpoint_step
        self._preserved = time.time()
        self._latest: str | None = None
        self._kept: dict[str, float] = {}  # path to the time of saving, oldest first
        self._resume()

    def _resume(self) -> None:
        """Take over what an earlier run left in the folder."""
        found = folder.get_checkpoint_state(self._directory)
        if found is None:
            return
        moments = found.all_model_checkpoint_timestamps or [self._preserved] * len(found.all_model_checkpoint_paths)
        self._kept = {path: at for path, at in zip(found.all_model_checkpoint_paths, moments) if files.exists(path)}
        self._latest = folder.latest_checkpoint(self._directory)
        if found.last_preserved_timestamp:
            self._preserved = found.last_preserved_timestamp

    @property
    def directory(self) -> str:
        return self._directory

    @property
    def checkpoint(self) -> Checkpoint:
        return self._checkpoint

    @property
    def checkpoint_interval(self) -> int | None:
        return self._interval

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the last checkpoint, of this run or of an earlier one in the folder."""
        return self._latest

    @property
    def checkpoints(self) -> list[str]:
        """The paths that are managed, oldest first; not those that are kept for good."""
        return list(self._kept)

    def save(
        self, checkpoint_number: Any = None, check_interval: bool = True, options: CheckpointOptions | None = None
    ) -> str | None:
        """Save, and delete what is too old; returns the path, or None if the interval has not passed yet."""
        step = None if self._step_counter is None else int(self._step_counter)
        if check_interval and self._is_too_soon(step):
            return None
        counter = self._checkpoint.save_counter
        counter.assign_add(1)
        number = int(counter) if checkpoint_number is None else int(checkpoint_number)
        try:
            path = self._checkpoint.write(f"{self._prefix}-{number}", options)
        except BaseException:
            counter.assign_sub(1)
            raise
        self._kept.pop(path, None)
        self._kept[path] = time.time()
        self._latest, self._last_step = path, step
        old = self._too_old()
        folder.update(self._directory, path, self.checkpoints, list(self._kept.values()), self._preserved)
        for prefix in old:  # only now: what the state file names is always there
            files.remove(prefix)
        return path

    def _is_too_soon(self, step: int | None) -> bool:
        if not self._interval or step is None or self._last_step is None:
            return False
        return step < self._last_step + self._interval

    def _too_old(self) -> list[str]:
        old = []
        while self._max_to_keep is not None and len(self._kept) > self._max_to_keep:
            path = next(iter(self._kept))
            moment = self._kept.pop(path)
            if self._keep_hours and moment - self._keep_hours * 3600 >= self._preserved:
                self._preserved = moment
            else:
                old.append(path)
        return old

    def restore_or_initialize(self) -> str | None:
        """Restore the latest checkpoint and return its path; if there is none, call ``init_fn`` and return None."""
        if self._latest is not None:
            self._checkpoint.restore(self._latest)
            if self._step_counter is not None:
                self._last_step = int(self._step_counter)
            return self._latest
        if self._init_fn is not None:
            self._init_fn()
        return None

    def sync(self) -> None:
        """Nothing to wait for: `save` returns when everything is on the disk."""

    def __repr__(self) -> str:
        return f"<CheckpointManager of {self._directory!r}: {len(self._kept)} checkpoints, latest {self._latest!r}>"
