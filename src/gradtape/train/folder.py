"""The file ``checkpoint`` in a folder of checkpoints: which there are, and which is the latest. TensorFlow's text format."""

from __future__ import annotations

import ast
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from gradtape.train import files


@dataclass
class CheckpointState:
    """What the file says."""

    model_checkpoint_path: str = ""
    all_model_checkpoint_paths: list[str] = field(default_factory=list)
    all_model_checkpoint_timestamps: list[float] = field(default_factory=list)
    last_preserved_timestamp: float = 0.0


def update(
    folder: str, latest: str, every: list[str], timestamps: list[float] | None = None, preserved: float | None = None
) -> None:
    """Write the file; paths inside the folder are noted relative to it, so that the folder can be moved."""
    lines = [("model_checkpoint_path", _quoted(latest, folder))]
    lines += [("all_model_checkpoint_paths", _quoted(path, folder)) for path in every]
    lines += [("all_model_checkpoint_timestamps", repr(float(moment))) for moment in timestamps or ()]
    lines += [("last_preserved_timestamp", repr(float(preserved)))] if preserved is not None else []
    files.write_text(os.path.join(folder, "checkpoint"), "".join(f"{name}: {value}\n" for name, value in lines))


def _quoted(path: str, folder: str) -> str:
    relative = os.path.relpath(path, folder or ".")
    text = path if relative.startswith("..") else relative
    return '"' + text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") + '"'


_LINE = re.compile(r'(\w+):\s*("(?:[^"\\]|\\.)*"|\S+)')
_KINDS: dict[str, Callable] = {
    "model_checkpoint_path": ast.literal_eval, "all_model_checkpoint_paths": ast.literal_eval,
    "all_model_checkpoint_timestamps": float, "last_preserved_timestamp": float,
}  # fmt: skip


def get_checkpoint_state(checkpoint_dir: Any, latest_filename: str | None = None) -> CheckpointState | None:
    """What the file ``checkpoint`` of a folder says, with paths that include the folder; None if there is no such file."""
    folder = os.fsdecode(checkpoint_dir)
    path = os.path.join(folder, latest_filename or "checkpoint")
    try:
        with open(path, "rb") as file:
            text = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        lines = (line.strip() for line in text.decode().split("\n"))
        return _state(folder, [_parsed(line) for line in lines if line and not line.startswith("#")])
    except (ValueError, SyntaxError) as error:  # as if there were none, a run would begin anew, and write over the others
        fix = f"delete it, or write the name of a checkpoint there into it: {next(iter(_KINDS))}: \"ckpt-3\""
        raise files.damaged("state of checkpoints", path, error, "the file that tf.train.Checkpoint.save wrote", fix) from error


def _parsed(line: str) -> tuple[str, Any]:
    """The name and the value of a line."""
    match = _LINE.fullmatch(line)
    if match is None or match[1] not in _KINDS:
        raise ValueError(f"a line reads {line!r}")
    value = _KINDS[match[1]](match[2])
    if type(value) is not (float if _KINDS[match[1]] is float else str):
        raise ValueError(f"a line reads {line!r}")
    return match[1], value


def _state(folder: str, lines: list[tuple[str, Any]]) -> CheckpointState | None:
    found = CheckpointState()
    for name, value in lines:
        value = os.path.join(folder, value) if isinstance(value, str) else value
        if isinstance(getattr(found, name), list):
            getattr(found, name).append(value)
        else:
            setattr(found, name, value)
    return found if found.model_checkpoint_path else None


def latest_checkpoint(checkpoint_dir: Any, latest_filename: str | None = None) -> str | None:
    """The path of the last checkpoint in a folder, or None."""
    found = get_checkpoint_state(checkpoint_dir, latest_filename)
    if found is None or not files.exists(found.model_checkpoint_path):
        return None
    return found.model_checkpoint_path


def checkpoints_iterator(
    checkpoint_dir: Any, min_interval_secs: float = 0, timeout: float | None = None, timeout_fn: Callable | None = None
) -> Iterator[str]:
    """New checkpoints as they appear.

    Waits at most ``timeout`` seconds for the next one; then ``timeout_fn`` (default: always True) says whether to stop.
    """
    last: str | None = None
    while True:
        path = _wait_for_new(checkpoint_dir, last, timeout)
        if path is None:
            if timeout_fn is None or timeout_fn():
                return
            continue
        started, last = time.time(), path
        yield path
        time.sleep(max(0.0, started + min_interval_secs - time.time()))


def _wait_for_new(folder: Any, last: str | None, timeout: float | None) -> str | None:
    pause = 1.0 if timeout is None else min(1.0, timeout / 10)
    stop = float("inf") if timeout is None else time.time() + timeout
    while True:
        path = latest_checkpoint(folder)
        if path is not None and path != last:
            return path
        if time.time() >= stop:
            return None
        time.sleep(pause)
