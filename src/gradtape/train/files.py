"""A checkpoint on disk: tensors in a safetensors file, everything else in a JSON index, both replaced atomically.

``prefix`` stands for two files. ``prefix.safetensors`` has the values; ``prefix.index.json`` names that file, the objects
that were saved and the tensors with their dtypes, shapes and checksums. A checkpoint exists once its index does: each file
is written under a temporary name, synced, and renamed, the index last. When a prefix is written again, the new values go to
``prefix~1.safetensors`` (the first free number), so that the index in place always describes whole data.

Format 2 has a checksum for each JSON file, at its end, and for the lengths of strings. Format 1 had neither; it is read with
the checksums that it has, those of the values.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.errors import DataLossError, NotFoundError, message
from gradtape.ops.text import string_array
from gradtape.train import bundle
from gradtape.values import dtypes
from gradtape.values.sharing import new_lock

FORMAT = 2
INDEX, DATA, TEMPORARY = ".index.json", ".safetensors", ".tmp"
_CHECKSUM = ',"crc32":'
LENGTHS = "/.LENGTHS"  # beside the bytes of a string tensor: how long each string is

# Element types that safetensors does not know through NumPy are stored as others of the same bits, flat.
_STORED_AS = {
    "bfloat16": np.uint16, "float8_e4m3fn": np.uint8, "float8_e5m2": np.uint8, "complex64": np.float32,
    "complex128": np.float64,
}  # fmt: skip


# Writing

_WRITING = new_lock()  # threads that write the same file, or the same checkpoint, do so one after the other


def atomically(path: str, write: Callable[[str], None]) -> None:
    """Let ``write(temporary name)`` make a file, bring it to the disk, and only then give it its name."""
    temporary = f"{path}.{os.getpid()}{TEMPORARY}"
    with _WRITING:
        try:
            write(temporary)
            _sync(temporary)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        if os.name == "posix":  # elsewhere folders cannot be opened
            _sync(os.path.dirname(path) or ".")


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(path: str, text: str) -> None:
    """Replace a text file atomically."""

    def write(temporary: str) -> None:
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)

    atomically(path, write)


def write_json(path: str, about: dict) -> None:
    """Replace a JSON file atomically; its last entry is the checksum of all that stands before it."""
    text = json.dumps({"format": FORMAT, **about}, ensure_ascii=False, separators=(",", ":"))[:-1]
    write_text(path, f"{text}{_CHECKSUM}{zlib.crc32(text.encode())}}}")


def write(prefix: str, arrays: dict[str, np.ndarray], objects: list[dict]) -> None:
    """Write a checkpoint; until the last rename a checkpoint that was there stays as it was."""
    from safetensors.numpy import save_file

    os.makedirs(os.path.dirname(prefix) or ".", exist_ok=True)
    stored: dict[str, np.ndarray] = {}
    entries = {name: _encode(name, array, stored) for name, array in arrays.items()}
    with _WRITING:
        data = _free_name(prefix)
        atomically(data, lambda temporary: save_file(stored, temporary))
        write_json(prefix + INDEX, {"data": os.path.basename(data), "objects": objects, "tensors": entries})
        for leftover in _own(prefix, _ANY) - {data, prefix + INDEX}:
            with contextlib.suppress(OSError):
                os.unlink(leftover)


_NUMBERED = r"(~\d+)?" + re.escape(DATA)
_ANY = rf"({_NUMBERED}|{re.escape(INDEX)})(\.\d+{re.escape(TEMPORARY)})?"  # leftovers of a crash too


def _own(prefix: str, endings: str) -> set[str]:
    """The files of this prefix with such endings."""
    wanted = re.compile(re.escape(os.path.basename(prefix)) + endings)
    folder = os.path.dirname(prefix)
    return {os.path.join(folder, name) for name in os.listdir(folder or ".") if wanted.fullmatch(name)}


def _free_name(prefix: str) -> str:
    taken = _own(prefix, _NUMBERED)
    names = (prefix + (f"~{n}" if n else "") + DATA for n in range(len(taken) + 1))
    return next(name for name in names if name not in taken)


def remove(prefix: str) -> None:
    """Delete a checkpoint, the index first: no index is ever left without its data."""
    for path in (prefix + INDEX, *_own(prefix, _NUMBERED)):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def exists(prefix: str) -> bool:
    """Whether there is a checkpoint under this prefix, ours or TensorFlow's."""
    return os.path.exists(prefix + INDEX) or os.path.exists(prefix + bundle.INDEX)


def index(prefix: str) -> Index | bundle.Bundle:
    """What the checkpoint under this prefix says of itself."""
    if not os.path.exists(prefix + INDEX) and os.path.exists(prefix + bundle.INDEX):
        return bundle.Bundle(prefix)
    return Index(prefix)


def _encode(name: str, array: np.ndarray, stored: dict[str, np.ndarray]) -> dict:
    dtype: Any = dtypes.of(array.dtype)
    also: dict[str, int] = {}
    if dtype is dtypes.string:
        texts = array.ravel().tolist()
        stored[name + LENGTHS] = lengths = np.array([len(text) for text in texts], np.int64)
        also["lengths"] = _checksum(lengths)
        raw = np.frombuffer(b"".join(texts), np.uint8)
    else:
        raw = array if array.flags.c_contiguous else array.copy(order="C")
        if dtype.name in _STORED_AS:
            raw = raw.reshape(-1).view(_STORED_AS[dtype.name])
    stored[name] = raw
    return {"dtype": dtype.name, "shape": list(array.shape), "crc32": _checksum(raw), **also}


def _checksum(array: np.ndarray) -> int:
    return zlib.crc32(array.reshape(-1).view(np.uint8).data)


# Reading


def damaged(what: str, path: str, why: Any, expected: str = "", fix: str = "") -> DataLossError:
    """The error for a file that is not as it was written."""
    text = f"Unable to read the {what} {path}: {why}"
    return DataLossError(message(text, received=f"{path!r}", expected=expected, fix=fix))


def read_json(path: str, what: str, expected: str) -> dict:
    """What a JSON file of ours says; a DataLossError if it is damaged, or of a format that is not known here."""
    try:
        with open(path, "rb") as file:
            raw = file.read()
        about = json.loads(raw.decode())
        if not isinstance(about, dict):
            raise ValueError(f"a {type(about).__name__} in place of a dictionary")
        text, _, end = raw.rpartition(_CHECKSUM.encode())
        if ("crc32" in about or about.get("format") == FORMAT) and end != b"%d}" % zlib.crc32(text):
            raise ValueError("its checksum does not match")
    except FileNotFoundError:
        raise
    except (ValueError, OSError, RecursionError) as error:
        raise damaged(what, path, error, expected) from error
    if about.get("format") not in (1, FORMAT):
        raise DataLossError(
            message(
                f"{path} is not a {what} of a format that is known here.",
                received=f"format {about.get('format')!r}",
                expected=f"format {FORMAT}, or an earlier one",
                fix="a newer gradtape may have written it",
            )
        )
    return about


class Index:
    """What a checkpoint says of itself, and its tensors, read one by one as they are asked for."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        expected = "a checkpoint that tf.train.Checkpoint wrote, whole"
        try:
            index = read_json(prefix + INDEX, "checkpoint index", expected)
        except FileNotFoundError:
            raise _not_found(prefix) from None
        try:
            whole = _is_whole(index["objects"], index["tensors"]) and os.path.basename(index["data"]) == index["data"]
            self._data = os.path.join(os.path.dirname(prefix), index["data"])
        except (LookupError, TypeError, AttributeError):
            whole = False
        if not whole:
            raise damaged("checkpoint index", prefix + INDEX, "something in it is missing", expected)
        self.objects: list[dict] = index["objects"]
        self.entries: dict[str, dict] = index["tensors"]
        self._verified: set[str] = set()
        self._file: Any = None

    def open(self) -> Any:
        """The data file; it stays readable even when the checkpoint is deleted meanwhile."""
        if self._file is None:
            from safetensors import SafetensorError, safe_open

            try:
                self._file = safe_open(self._data, framework="numpy")
            except (SafetensorError, OSError) as error:
                raise damaged("checkpoint data", self._data, error, "the data file beside the index, whole") from error
        return self._file

    def read(self, name: str) -> np.ndarray:
        """One tensor."""
        entry = self.entries[name]
        raw = self._stored(name, entry["crc32"])
        self._verified.add(name)
        dtype = dtypes.as_dtype(entry["dtype"])
        try:
            if dtype is dtypes.string:
                lengths = self._stored(name + LENGTHS, entry.get("lengths")).view(np.int64)
                return _strings(raw.tobytes(), lengths, entry["shape"])
            return raw.view(dtype.numpy).reshape(entry["shape"])
        except ValueError as error:  # in format 1 the lengths of strings have no checksum
            raise damaged("checkpoint data", self._data, f"{name}: {error}") from error

    def _stored(self, name: str, checksum: int | None) -> np.ndarray:
        """The bytes of an array of the data file, whatever its header says that they are."""
        from safetensors import SafetensorError

        try:
            raw = self.open().get_tensor(name).reshape(-1).view(np.uint8)
        except (SafetensorError, ValueError, TypeError, LookupError, AttributeError) as error:
            raise damaged("checkpoint data", self._data, error, "the data file beside the index, whole") from error
        if checksum is not None and _checksum(raw) != checksum:
            raise DataLossError(
                message(
                    f"Checksum does not match: stored {checksum} for tensor {name} in {self._data}",
                    fix="the file was damaged; restore an earlier checkpoint",
                )
            )
        return raw

    def verify(self) -> None:
        """Read what has not been read: damage is found before anything is restored, not when the program makes a variable."""
        for name in self.entries.keys() - self._verified if len(self._verified) < len(self.entries) else ():
            self.read(name)


def _is_whole(nodes: list[dict], entries: dict[str, dict]) -> bool:
    """Whether every object and every tensor that something refers to is there; format 1 has no checksum that would say so."""
    slots = [slot for node in nodes for slot in node.get("slots", ())]
    below = [number for node in nodes for number in node.get("children", {}).values()] + [slot["object"] for slot in slots]
    return (
        bool(nodes)
        and all({"path", "kind"} <= node.keys() and ("tensor" not in node or node["tensor"] in entries) for node in nodes)
        and all({"position", "name", "variable"} <= slot.keys() for slot in slots)
        and all(type(number) is int and 0 <= number < len(nodes) for number in below)
        and all({"dtype", "shape", "crc32"} <= entry.keys() for entry in entries.values())
    )


def _strings(text: bytes, lengths: np.ndarray, shape: list[int]) -> np.ndarray:
    if (lengths < 0).any() or lengths.sum() != len(text):
        raise ValueError(f"its strings have {lengths.sum()} bytes instead of {len(text)}")
    ends = np.cumsum(lengths).tolist()
    parts = [text[start:end] for start, end in zip([0, *ends], ends)]
    return string_array(parts, tuple(shape))


def _not_found(prefix: str) -> NotFoundError:
    summary = f"Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {prefix}"
    folder = os.path.dirname(prefix) or "."
    there = sorted(name[: -len(INDEX)] for name in os.listdir(folder) if name.endswith(INDEX)) if os.path.isdir(folder) else []
    return NotFoundError(
        message(
            summary,
            received=f"no file {prefix + INDEX}",
            expected=f"one of the checkpoints in {folder}: {', '.join(there[:8])}" if there else None,
            fix="double-check the path; it needs the number at its end (ckpt-1), and tf.train.latest_checkpoint finds the last",
        )
    )
