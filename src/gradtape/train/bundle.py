"""Checkpoints that TensorFlow wrote, read without TensorFlow: ``prefix.index`` and ``prefix.data-00000-of-00001``.

The index is a sorted table (LevelDB's format, uncompressed) from names to places in the data files; one of the tensors is a
protocol buffer with the tree of objects. Checksums are not verified.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gradtape.errors import DataLossError, UnimplementedError, message
from gradtape.ops.decoding import NAMES
from gradtape.ops.text import string_array
from gradtape.ops.wire import Reader, fields_of
from gradtape.train.objects import VALUE
from gradtape.values import dtypes

INDEX = ".index"
_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
_FOOTER, _MAGIC = 48, 0xDB4775248B80FB57


class Bundle:
    """A checkpoint of TensorFlow's, with the interface of `files.Index`."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.entries: dict[str, dict] = {}
        self._places: dict[str, dict[int, Any]] = {}
        self._shards = 1
        try:
            with open(prefix + INDEX, "rb") as file:
                for name, value in _table(file.read()):
                    self._add(name.decode(), _fields(value))
        except (IndexError, KeyError, ValueError) as error:
            text = f"Unable to read the checkpoint index {prefix + INDEX}: {error}"
            raise DataLossError(
                message(text, received=f"{prefix!r}", expected="a checkpoint as TensorFlow writes it, whole")
            ) from error
        self.objects: list[dict] = self._objects() if _GRAPH in self._places else [{"path": ""}]

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
        data = self._bytes(place)
        dtype = dtypes.as_dtype(entry["dtype"])
        if dtype is dtypes.string:
            return _strings(data, entry["shape"])
        return np.frombuffer(data, dtype.numpy).reshape(entry["shape"]).copy()

    def _bytes(self, place: dict[int, Any]) -> bytes:
        path = f"{self.prefix}.data-{place.get(3, 0):05d}-of-{self._shards:05d}"
        try:
            with open(path, "rb") as file:
                file.seek(place.get(4, 0))
                data = file.read(place.get(5, 0))
        except OSError as error:
            text = f"Unable to read the checkpoint data {path}: {error}"
            raise DataLossError(message(text, received=f"{path!r}", expected="the data file beside the index")) from error
        if len(data) != place.get(5, 0):
            text = f"Unable to read the checkpoint data {path}: it is shorter than its index says"
            raise DataLossError(
                message(text, received=f"{len(data)} bytes", expected=f"{place.get(5, 0)}", fix="copy the data file again")
            )
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


def _strings(data: bytes, shape: list[int]) -> np.ndarray:
    """All lengths, a checksum of four bytes, all texts."""
    read = Reader(data)
    lengths = [read.varint() for _ in range(int(np.prod(shape, dtype=np.int64)))]
    read.take(4)
    return string_array([read.take(length) for length in lengths], tuple(shape))


def _table(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The (key, value) pairs of a sorted table."""
    if len(data) < _FOOTER or int.from_bytes(data[-8:], "little") != _MAGIC:
        raise ValueError("it does not end as a table of TensorFlow's does")
    footer = Reader(data[-_FOOTER:])
    footer.varint(), footer.varint()  # where the index of meta blocks is
    for _, handle in _entries(_block(data, footer)):
        yield from _entries(_block(data, Reader(handle)))


def _block(data: bytes, handle: Reader) -> bytes:
    start, size = handle.varint(), handle.varint()
    if data[start + size] != 0:
        raise ValueError("it is compressed")
    return data[start : start + size]


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The pairs of a block; a key is written without the beginning that it shares with the one before."""
    restarts = int.from_bytes(block[-4:], "little")
    read, key = Reader(block[: len(block) - 4 * (restarts + 1)]), b""
    while read.position < len(read.data):
        shared, own, size = read.varint(), read.varint(), read.varint()
        key = key[:shared] + read.take(own)
        yield key, read.take(size)
