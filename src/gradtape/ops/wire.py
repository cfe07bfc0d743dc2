"""Protocol buffers by hand, as far as serialized tensors and checkpoints need them: numbers, and blocks of bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def varint(number: int) -> bytes:
    """A number, seven bits to a byte, the lowest first."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def block(field: int, content: bytes) -> bytes:
    """A field with bytes in it."""
    return varint(field << 3 | 2) + varint(len(content)) + content


def fields_of(data: bytes) -> Iterator[tuple[int, Any]]:
    """(number, content) of the fields of a protocol buffer."""
    read = Reader(data)
    while read.position < len(data):
        tag = read.varint()
        yield tag >> 3, _WIRE[tag & 7](read)


class Reader:
    """Reads numbers and bytes one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def varint(self) -> int:
        number = shift = 0
        while True:
            byte = self.data[self.position]
            self.position += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    def take(self, size: int) -> bytes:
        if self.position + size > len(self.data):
            raise IndexError
        self.position += size
        return self.data[self.position - size : self.position]


_WIRE: dict[int, Callable[[Reader], Any]] = {
    0: Reader.varint, 1: lambda read: read.take(8), 2: lambda read: read.take(read.varint()), 5: lambda read: read.take(4),
}  # fmt: skip


def unpacked(content: bytes) -> list[int]:
    """The numbers of a packed field."""
    read, found = Reader(content), []
    while read.position < len(content):
        found.append(read.varint())
    return found
