"""Damage in the files of Keras is found before it is read: by the checksums of `.keras` archives, and by our own of HDF5 files.

HDF5 has none, and its library does not survive every damaged file: it may go round for ever, take all memory, or end the
process. So a checksum stands behind the end of those written here. Whatever reads HDF5 does not look there, and whatever
writes into such a file cuts it off: then there is none, and the file is read as it is.
"""

from __future__ import annotations

import functools
import glob
import inspect
import mmap
import os
import traceback
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

from gradtape.errors import DataLossError, InvalidArgumentError, OpError, message
from gradtape.ops.files import check_archive

_HDF5 = (".h5", ".hdf5")
_MARK, _DIGITS = b"gradtape crc32 ", 8
_HEAP = b"GCOL\1\0\0\0"  # how a heap begins, with its version, and three bytes that are zero
_PIECE = 1 << 24
_AGAIN = "save the model again, or load an earlier file"


def adding(save: Callable) -> Callable:
    """With a checksum behind the HDF5 files that a function of Keras writes."""
    find = _finder(save)

    @functools.wraps(save)
    def saving(*args: Any, **kwargs: Any) -> Any:
        result = save(*args, **kwargs)
        for path in _files(find(args, kwargs)):
            if os.path.isfile(path) and not _marked(path):
                text = _MARK + b"%0*x\n" % (_DIGITS, _summed(path, os.path.getsize(path)))
                with open(path, "ab") as file:
                    file.write(text)
        return result

    return saving


def checked(load: Callable) -> Callable:
    """With an error of ours for a damaged file."""
    find = _finder(load)

    @functools.wraps(load)
    def loading(*args: Any, **kwargs: Any) -> Any:
        path = find(args, kwargs)
        if path.endswith(".keras") and os.path.isfile(path):
            _check_archive(path)
        try:
            for part in _files(path):
                if os.path.isfile(part):
                    _check_hdf5(part)
            return load(*args, **kwargs)
        except (OpError, FileNotFoundError, PermissionError, ImportError):
            raise
        except Exception as error:
            if not _files(path):
                raise
            raise _unreadable(path, error) from error

    return loading


def _finder(function: Callable) -> Callable[[tuple, dict], str]:
    """From the arguments of a call the path, if one is given."""
    position = list(inspect.signature(function).parameters).index("filepath")

    def find(args: tuple, kwargs: dict) -> str:
        given = args[position] if len(args) > position else kwargs.get("filepath")
        return os.fsdecode(given) if isinstance(given, (str, os.PathLike)) else ""

    return find


def _files(path: str) -> list[str]:
    """The HDF5 files of what is saved under this path: itself, or the parts that large weights are divided into."""
    if path.endswith(".weights.json"):
        return glob.glob(f"{glob.escape(path.removesuffix('.weights.json'))}_*.weights.h5")
    return [path] if path.endswith(_HDF5) else []


# Checking


def _check_archive(path: str) -> None:
    """Compare all checksums of a `.keras` file: what HDF5 reads here and there in it, nobody would compare."""
    if not zipfile.is_zipfile(path):
        size = os.path.getsize(path)
        text = message(
            f"The file {path} is not a `.keras` zip file.",
            received=f"{size} bytes that end without a table of contents" if size else "an empty file",
            why="it is damaged, or writing or copying it was broken off",
            fix=_AGAIN,
        )
        raise _both(DataLossError, ValueError)(text)
    try:
        check_archive(path)
    except Exception as error:  # there is hardly a kind that a damaged archive cannot raise
        raise _both(DataLossError, zipfile.BadZipFile)(_damaged(path, error)) from error


def _check_hdf5(path: str) -> None:
    marked = _marked(path)
    if marked and marked != b"%0*x\n" % (_DIGITS, _summed(path, os.path.getsize(path) - len(_MARK) - len(marked))):
        raise _both(DataLossError, OSError)(_damaged(path, "its checksum does not match"))
    if not marked and os.path.getsize(path):
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            _check_heaps(path, data)
        import h5py

        with h5py.File(path, "r") as opened:
            _check_types(path, opened, h5py)


def _marked(path: str) -> bytes:
    """The checksum that stands at the end of a file, with the end of its line."""
    with open(path, "rb") as file:
        file.seek(-min(os.path.getsize(path), len(_MARK) + _DIGITS + 1), os.SEEK_END)
        end = file.read()
    return end.removeprefix(_MARK) if end.startswith(_MARK) else b""


def _summed(path: str, size: int) -> int:
    """The checksum of so many bytes of a file."""
    crc = 0
    with open(path, "rb") as file:
        while size > 0 and (piece := file.read(min(size, _PIECE))):
            crc, size = zlib.crc32(piece, crc), size - len(piece)
    return crc


def _check_heaps(path: str, data: Any) -> None:
    """Walk through the texts in an HDF5 file: where their lengths are damaged, the library goes round for ever."""
    at = data.find(_HEAP)
    while at >= 0:
        if not _is_heap(data, at):
            raise _both(DataLossError, OSError)(_damaged(path, f"the lengths of the texts at {at} are wrong"))
        at = data.find(_HEAP, at + 8)


def _is_heap(data: Any, at: int) -> bool:
    """Whether the texts of a heap, each with its number and its size before it, end where the heap does."""
    place, end = at + 16, at + int.from_bytes(data[at + 8 : at + 16], "little")
    while place + 16 <= min(end, len(data)):
        number, size = (int.from_bytes(data[place + k : place + k + n], "little") for k, n in ((0, 2), (8, 8)))
        step = 16 + (size + 7) // 8 * 8 if number else size  # number 0 is what is free, its head included
        if not step:
            return False
        place += step
    return place <= end <= len(data)


def _check_types(path: str, opened: Any, h5py: Any) -> None:
    """Refuse attributes that Keras does not write: what HDF5 takes for lists of any length may end the process."""
    room = os.path.getsize(path)

    def check(part: Any, name: str, is_packed: bool = False) -> None:
        kind, count = part.get_type(), part.get_space().get_simple_extent_npoints()
        fits = is_packed or 0 <= count * kind.get_size() <= room  # HDF5 counts in 63 bits, and below 0 beyond them
        if kind.get_class() == h5py.h5t.VLEN or not fits:
            raise _both(DataLossError, OSError)(_damaged(path, f"{name!r} is not of a kind or a size that Keras writes"))

    def visit(name: str, found: Any) -> None:
        for attribute in found.attrs:
            check(found.attrs.get_id(attribute), f"{name}.{attribute}")
        if isinstance(found, h5py.Dataset):  # what is compressed, or was never written, has less room than it needs
            plan = found.id.get_create_plist()
            check(found.id, name, bool(plan.get_nfilters()) or plan.get_layout() != h5py.h5d.CONTIGUOUS)

    visit("", opened)
    opened.visititems(visit)


# Errors


def _damaged(path: str, why: Any) -> str:
    text = f"Unable to read the model in {path}: {why}"
    return message(text, received=f"{path!r}", expected="a file that Keras saved, whole", fix=_AGAIN)


def _unreadable(path: str, error: Exception) -> Exception:
    """The error for an HDF5 file without a checksum. Whether it is damaged, or another model's, only HDF5 may notice."""
    kinds = (ValueError, TypeError, LookupError, AttributeError, RuntimeError, OSError, Exception)
    kind = next(kind for kind in kinds if isinstance(error, kind))
    last = list(traceback.walk_tb(error.__traceback__))[-1][0]
    if "h5py" in last.f_code.co_filename:
        return _both(DataLossError, kind)(_damaged(path, error))
    return _both(InvalidArgumentError, kind)(str(error))


@functools.cache
def _both(ours: type[OpError], theirs: type[Exception]) -> type[OpError]:
    """An error of ours that is caught as well where Keras's own is expected."""
    return type(ours.__name__, (ours, theirs), {"__module__": __name__})
