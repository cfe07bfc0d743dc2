"""Checkpoints that TensorFlow wrote, read without TensorFlow: ``prefix.index`` and ``prefix.data-00000-of-00001``.

The index is a sorted table (LevelDB's format, uncompressed) from names to places in the data files; one of the tensors is a
protocol buffer with the tree of objects. Blocks of the table, and tensors, have checksums.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gradtape.errors import DataLossError, UnimplementedError, message
from gradtape.ops.decoding import NAMES
from gradtape.ops.text import string_array
from gradtape.ops.wire import Reader, fields_of
from gradtape.train.crc32c import crc32c, mask
from gradtape.train.objects import VALUE
from gradtape.values import dtypes

INDEX = ".index"
_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
_FOOTER, _MAGIC = 48, 0xDB4775248B80FB57
_DAMAGED = (LookupError, ValueError, TypeError)  # what reading something else as a table or a protocol buffer raises


class Bundle:
    """A checkpoint of TensorFlow's, with the interface of `files.Index`."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.entries: dict[str, dict] = {}
        self._places: dict[str, dict[int, Any]] = {}
        self._shards = 1
        self._verified: set[str] = set()
        try:
            with open(prefix + INDEX, "rb") as file:
                for name, value in _table(file.read()):
                    self._add(name.decode("utf-8", "surrogateescape"), _fields(value))
        except _DAMAGED as error:
            raise self._damaged("index", prefix + INDEX, error) from error
        try:
            self.objects: list[dict] = self._objects() if _GRAPH in self._places else [{"path": ""}]
        except _DAMAGED as error:
            raise self._damaged("data", self._file(self._places[_GRAPH]), error) from error

    def _damaged(self, what: str, path: str, why: Any) -> DataLossError:
        text = f"Unable to read the checkpoint {what} {path}: {why}"
        expected, fix = "a checkpoint as TensorFlow writes it, whole", "copy it again, or restore an earlier one"
        return DataLossError(message(text, received=f"{path!r}", expected=expected, fix=fix))

    def _add(self, name: str, fields: dict[int, Any]) -> None:
        if not name:
            self._shards = fields.get(1, 1)
            return
        shape = [dict(fields_of(part)).get(1, 0) for field, part in fields_of(fields.get(2, b"")) if field == 2]
        self._places[name] = fields
        self.entries[name] = {"dtype": NAMES[fields[1]], "shape": shape, "crc32": fields.get(6, b"").hex()}

    def open(self) -> None:
        """Nothing to keep open."""

    def read(self, name: str) -> np.ndarray:
        """One tensor."""
        place, entry = self._places[name], self.entries[name]
        if 7 in place:
            text = f"{name} was saved in slices, which are not read here."
            raise UnimplementedError(message(text, received=self.prefix, fix="save it again from a model on one device"))
        data = self._bytes(name)
        if entry["dtype"] == "string":
            return _strings(data, entry["shape"])
        return np.frombuffer(data, dtypes.as_dtype(entry["dtype"]).numpy).reshape(entry["shape"]).copy()

    def verify(self) -> None:
        """Compare the checksums of what has not been read: damage is found before anything is restored."""
        for name in self._places.keys() - self._verified if len(self._verified) < len(self._places) else ():
            if 7 not in self._places[name]:
                self._bytes(name)
            self._verified.add(name)

    def _file(self, place: dict[int, Any]) -> str:
        return f"{self.prefix}.data-{place.get(3, 0):05d}-of-{self._shards:05d}"

    def _bytes(self, name: str) -> bytes:
        """What is stored for a tensor, as it was written."""
        place = self._places[name]
        path, size = self._file(place), place.get(5, 0)
        try:
            with open(path, "rb") as file:
                file.seek(place.get(4, 0))
                data = file.read(size)
        except OSError as error:
            raise self._damaged("data", path, error) from error
        if len(data) != size:
            raise self._damaged("data", path, f"it has {len(data)} bytes of {size} where its index says that {name} is")
        stored = int.from_bytes(place.get(6, b""), "little")
        try:
            summed = _summed(data, self.entries[name]) if self.entries[name]["dtype"] == "string" else data
        except _DAMAGED as error:
            raise self._damaged("data", path, f"{name}: {error}") from error
        if mask(crc32c(summed)) != stored:
            raise self._damaged("data", path, f"Checksum does not match: stored {stored} for tensor {name}")
        self._verified.add(name)
        return data

    def _objects(self) -> list[dict]:
        """The tree of objects: children by name, the tensor of a variable, the slots of an optimizer."""
        graph = self.read(_GRAPH).item()
        return [self._object(_repeated(node)) for field, node in fields_of(graph) if field == 1]

    def _object(self, node: dict[int, list]) -> dict:
        children = {part[2].decode(): part.get(1, 0) for part in map(_fields, node.get(1, ()))}
        values = [part[3].decode() for part in map(_fields, node.get(2, ())) if part.get(1) == b"VARIABLE_VALUE"]
        slots = [
            {"variable": part.get(1, 0), "name": part[2].decode(), "object": part.get(3, 0), "position": None}
            for part in map(_fields, node.get(3, ()))
        ]
        found: dict[str, Any] = {"path": values[0].removesuffix(VALUE) if values else "", "children": children, "slots": slots}
        return {**found, "tensor": values[0]} if values else found


def _fields(data: bytes) -> dict[int, Any]:
    return dict(fields_of(data))


def _repeated(data: bytes) -> dict[int, list]:
    """The contents of every field of a protocol buffer, by number."""
    found: dict[int, list] = {}
    for field, content in fields_of(data):
        found.setdefault(field, []).append(content)
    return found


def _lengths(read: Reader, shape: list[int]) -> list[int]:
    """The lengths of the strings of a tensor, which come first; a checksum of four bytes follows, then all texts."""
    return [read.varint() for _ in range(int(np.prod(shape, dtype=np.int64)))]


def _strings(data: bytes, shape: list[int]) -> np.ndarray:
    read = Reader(data)
    lengths = _lengths(read, shape)
    read.take(4)
    return string_array([read.take(length) for length in lengths], tuple(shape))


def _summed(data: bytes, entry: dict) -> bytes:
    """What the checksum of a tensor of strings is of: the lengths with four bytes each, or eight, and what follows them."""
    read = Reader(data)
    lengths = _lengths(read, entry["shape"])
    return b"".join(n.to_bytes(4 if n < 2**32 else 8, "little") for n in lengths) + data[read.position :]


def _table(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The (key, value) pairs of a sorted table."""
    if len(data) < _FOOTER or int.from_bytes(data[-8:], "little") != _MAGIC:
        raise ValueError("it does not end as a table of TensorFlow's does")
    footer = Reader(data[-_FOOTER:])
    footer.varint(), footer.varint()  # where the index of meta blocks is
    for _, handle in _entries(_block(data, footer)):
        yield from _entries(_block(data, Reader(handle)))


def _block(data: bytes, handle: Reader) -> bytes:
    """A block; behind it stand a byte, how it is compressed, and the checksum of both."""
    start, size = handle.varint(), handle.varint()
    end = start + size + 1
    block, stored = data[start:end], int.from_bytes(data[end : end + 4], "little")
    if len(block) != size + 1 or mask(crc32c(block)) != stored:
        raise ValueError(f"Checksum does not match: block at {start}")
    if block[-1] != 0:
        raise ValueError("it is compressed")
    return block[:-1]


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The pairs of a block; a key is written without the beginning that it shares with the one before."""
    restarts = int.from_bytes(block[-4:], "little")
    read, key = Reader(block[: len(block) - 4 * (restarts + 1)]), b""
    while read.position < len(read.data):
        shared, own, size = read.varint(), read.varint(), read.varint()
        key = key[:shared] + read.take(own)
        yield key, read.take(size)
