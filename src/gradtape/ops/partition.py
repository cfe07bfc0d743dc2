"""How a sequence is cut into rows: ``splits[i] : splits[i + 1]`` is row i. Everything here is whole-array NumPy on the host."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradtape.errors import InvalidArgumentError, message

_INVALID = "Arguments to {} do not form a valid RaggedTensor"


def starting_at_zero(lengths: np.ndarray) -> np.ndarray:
    """Splits from row lengths."""
    splits = np.zeros(len(lengths) + 1, lengths.dtype if lengths.dtype in (np.int32, np.int64) else np.int64)
    np.cumsum(lengths, out=splits[1:])
    return splits


def row_ids(splits: np.ndarray) -> np.ndarray:
    """The row of every element."""
    return np.repeat(np.arange(len(splits) - 1, dtype=splits.dtype), np.diff(splits))


def columns(splits: np.ndarray) -> np.ndarray:
    """The place of every element in its row."""
    return np.arange(splits[-1], dtype=splits.dtype) - np.repeat(splits[:-1], np.diff(splits))


def longest(splits: np.ndarray) -> int:
    """The length of the longest row."""
    return int(np.diff(splits).max(initial=0))


def runs(starts: np.ndarray, lengths: np.ndarray, step: int = 1) -> np.ndarray:
    """start, start + step, … for each start, joined: ``lengths[i]`` numbers from ``starts[i]``."""
    splits = starting_at_zero(lengths)
    return np.repeat(starts, lengths) + step * columns(splits)


def pick(splits: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The splits of some rows, and the elements in them."""
    lengths = np.diff(splits)[rows]
    return starting_at_zero(lengths), runs(splits[:-1][rows], lengths)


def cut(splits: np.ndarray, part: slice) -> tuple[np.ndarray, np.ndarray]:
    """The same slice of every row: new splits, and the elements that stay."""
    lengths, kind = np.unique(np.diff(splits), return_inverse=True)
    ranges = [range(*part.indices(int(n))) for n in lengths]
    first = np.array([r.start for r in ranges], splits.dtype)[kind]
    kept = np.array([len(r) for r in ranges], splits.dtype)[kind]
    return starting_at_zero(kept), runs(splits[:-1] + first, kept, 1 if part.step is None else part.step)


def layout(nested: Sequence[np.ndarray], lengths: Sequence[int]) -> np.ndarray:
    """For every place of a dense array of these lengths the element that stands there, or -1."""
    place = np.arange(lengths[0], dtype=np.int64)
    place[place >= len(nested[0]) - 1] = -1
    for splits, length in zip(nested, lengths[1:]):
        starts, counts = np.append(splits[:-1], 0), np.append(np.diff(splits), 0)  # -1 finds an empty row
        offsets = np.arange(length)
        inside = offsets < counts[place][:, None]
        place = np.where(inside, starts[place][:, None] + offsets, -1).ravel()
    return place


def coordinates(nested: Sequence[np.ndarray]) -> np.ndarray:
    """The index vector of every element: one column per axis."""
    found = np.arange(len(nested[0]) - 1, dtype=np.int64)[:, None]
    for splits in nested:
        found = np.concatenate([found[row_ids(splits)], columns(splits)[:, None].astype(np.int64)], 1)
    return found


# Checks


def check_splits(splits: np.ndarray) -> None:
    """Refuse what does not start at zero or goes back."""
    if splits[0]:
        raise invalid("from_row_splits", f"zero\nrow_splits[0] = {splits[0]}", "row_splits that start at 0")
    if (np.diff(splits) < 0).any():
        raise invalid("from_row_splits", f"monotonic.\nrow_splits = {splits}", "row_splits that never fall")


def invalid(method: str, what: str, expected: str, kind: str = "RaggedTensor") -> InvalidArgumentError:
    """The error for a partition that is none."""
    text = _INVALID.format(method).replace("RaggedTensor", kind)
    return InvalidArgumentError(message(f"{text}:{what}", expected=expected))
