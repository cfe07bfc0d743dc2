"""The local file system with TensorFlow's error classes."""

from __future__ import annotations

import contextlib
import errno
import glob as globbing
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gradtape.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnimplementedError,
    UnknownError,
    dims,
    message,
)
from gradtape.ops.text import string_array, texts
from gradtape.values.convert import Convertible
from gradtape.values.tensor import Tensor, wrap

_CLASSES: dict[int, type[OpError]] = {
    errno.ENOENT: NotFoundError, errno.EEXIST: AlreadyExistsError, errno.EACCES: PermissionDeniedError,
    errno.EPERM: PermissionDeniedError, errno.EISDIR: FailedPreconditionError, errno.ENOTDIR: FailedPreconditionError,
    errno.ENOTEMPTY: FailedPreconditionError, errno.ENOSPC: ResourceExhaustedError, errno.EROFS: PermissionDeniedError,
}  # fmt: skip


def path_of(path: Any) -> str:
    """A local path from a string, bytes, a path object or a scalar string tensor; ``file://`` is taken off."""
    if isinstance(path, (Tensor, Convertible)):
        path = texts(path, "ReadFile")[()]
    text = os.fsdecode(path)
    scheme, separator, rest = text.partition("://")
    if not separator:
        return text
    if scheme != "file":
        raise UnimplementedError(
            message(
                f"File system scheme '{scheme}' not implemented (file: '{text}')",
                expected="a path on the local file system",
                fix="copy or mount the files first",
            )
        )
    return rest


@contextlib.contextmanager
def _named(path: str) -> Iterator[None]:
    """Turn the system's errors into TensorFlow's, with the path in front."""
    try:
        yield
    except OSError as error:
        kind = _CLASSES.get(error.errno or 0, UnknownError)
        missing = "tf.io.gfile.exists(path) asks first, tf.io.gfile.makedirs(folder) makes folders"
        fix = missing if kind is NotFoundError else "another path, or other rights on it"
        text = f"{path}; {error.strerror or error}"
        raise kind(message(text, received=f"{os.fspath(path)!r}, from {os.getcwd()!r}", fix=fix)) from None


# Whole files


def _one(value: Any, what: str, label: str) -> bytes:
    array = texts(os.fspath(value) if isinstance(value, os.PathLike) else value, label)
    if array.ndim:
        text = f"{what} tensor must be scalar, but had shape: {dims(array.shape)} [Op:{label}]"
        raise InvalidArgumentError(
            message(text, received=f"{what} of shape {array.shape}", expected="one string", fix="tf.map_fn reads several")
        )
    return array[()]


def read_file(name: Any) -> Tensor:
    """The bytes of a file as a scalar string."""
    path = path_of(_one(name, "Input filename", "ReadFile"))
    with _named(path), open(path, "rb") as file:
        return wrap(string_array([file.read()], ()))


def write_file(name: Any, contents: Any) -> None:
    """Write bytes to a file; folders are made as needed."""
    path, data = path_of(_one(name, "Input filename", "WriteFile")), _one(contents, "Contents", "WriteFile")
    with _named(path):
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)


def matching_files(pattern: Any) -> Tensor:
    """The sorted paths that match one pattern or several."""
    found = sorted(path for one in texts(pattern, "MatchingFiles").ravel() for path in globbing.glob(path_of(one)))
    return wrap(string_array([os.fsencode(path) for path in found], (len(found),)))


def check_archive(path: Any) -> None:
    """Read all of a zip file, and raise if a checksum does not match, or if it has other than the entries that it counts."""
    import zipfile

    with zipfile.ZipFile(path) as archive:
        wrong, count = archive.testzip(), len(archive.infolist())
    if wrong is not None:
        raise zipfile.BadZipFile(f"Bad CRC-32 for file {wrong!r}")
    with open(path, "rb") as file:
        file.seek(-22, os.SEEK_END)
        end = file.read()
    noted = int.from_bytes(end[10:12], "little")
    if end.startswith(b"PK\5\6") and count != noted < 0xFFFF:  # else it has a comment, or more files
        raise zipfile.BadZipFile(f"{count} files of {noted}")  # a length that is too large hides the entries behind it


# Files that stay open


class GFile:
    """A file as TensorFlow opens it: at the first read or write; text unless the mode has a "b"."""

    def __init__(self, name: Any, mode: str = "r") -> None:
        if mode.replace("b", "") not in ("r", "w", "a", "r+", "w+", "a+"):
            text = "mode is not 'r' or 'w' or 'a' or 'r+' or 'w+' or 'a+'"
            raise InvalidArgumentError(
                message(text, received=repr(mode), expected="'r', 'w', 'a', 'r+', 'w+' or 'a+', and b for bytes")
            )
        self._name = name
        self._mode = mode
        self._path = path_of(name)
        self._file: Any = None

    @property
    def name(self) -> Any:
        return self._name

    @property
    def mode(self) -> str:
        return self._mode

    def _opened(self) -> Any:
        if self._file is None:
            with _named(self._path):
                text: dict[str, Any] = {} if "b" in self._mode else {"encoding": "utf-8", "newline": ""}
                self._file = open(self._path, self._mode, **text)  # noqa: SIM115 - closed by close()
        return self._file

    def _reading(self) -> Any:
        if not (self._mode.startswith("r") or "+" in self._mode):
            text = "File isn't open for reading"
            raise PermissionDeniedError(message(text, received=f"mode {self._mode!r}", fix="tf.io.gfile.GFile(name, 'r')"))
        return self._opened()

    def size(self) -> int:
        """The length in bytes."""
        return stat(self._path).length

    def read(self, n: int = -1) -> Any:
        """The rest of the file, or so many characters or bytes of it."""
        return self._reading().read(n)

    def readline(self) -> Any:
        return self._reading().readline()

    def readlines(self) -> list:
        return self._reading().readlines()

    def write(self, file_content: Any) -> None:
        """Append to what was written before; text is encoded as UTF-8."""
        if self._mode in ("r", "rb"):
            text = "File isn't open for writing"
            raise PermissionDeniedError(
                message(text, received=f"mode {self._mode!r}", fix="tf.io.gfile.GFile(name, 'w'), or 'a' to append")
            )
        if isinstance(file_content, (Tensor, Convertible)):
            file_content = texts(file_content, "WriteFile")[()]
        binary = "b" in self._mode
        if binary and isinstance(file_content, str):
            file_content = file_content.encode()
        elif not binary and isinstance(file_content, bytes):
            file_content = file_content.decode()
        self._opened().write(file_content)

    def seek(self, offset: int = 0, whence: int = 0) -> None:
        self._opened().seek(offset, whence)

    def tell(self) -> int:
        return self._opened().tell()

    def seekable(self) -> bool:
        return True

    def flush(self) -> None:
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def __iter__(self) -> GFile:
        return self

    def __next__(self) -> Any:
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    next = __next__

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


# Folders and names


@dataclass
class FileStatistics:
    """What `stat` tells of a path."""

    length: int
    mtime_nsec: int
    is_directory: bool


def stat(path: Any) -> FileStatistics:
    """Length, time of change, and whether it is a folder."""
    local = path_of(path)
    with _named(local):
        found = os.stat(local)
    return FileStatistics(found.st_size, found.st_mtime_ns, os.path.isdir(local))


def exists(path: Any) -> bool:
    """Whether there is such a path."""
    return os.path.exists(path_of(path))


def isdir(path: Any) -> bool:
    """Whether the path is a folder."""
    return os.path.isdir(path_of(path))


def listdir(path: Any) -> list[str]:
    """The names in a folder."""
    local = path_of(path)
    if not os.path.isdir(local):
        text = f"Could not find directory {local}"
        raise NotFoundError(
            message(text, received=f"{local!r}", fix="tf.io.gfile.makedirs(path) makes it; tf.io.gfile.exists(path) asks")
        )
    return sorted(os.listdir(local))


def mkdir(path: Any) -> None:
    """Make a folder inside an existing one; nothing happens if it is there already."""
    local = path_of(path)
    if not os.path.isdir(local):
        with _named(local):
            os.mkdir(local)


def makedirs(path: Any) -> None:
    """Make a folder and those above it; nothing happens if it is there already."""
    local = path_of(path)
    if os.path.exists(local) and not os.path.isdir(local):
        text = f"{local} is not a directory"
        raise FailedPreconditionError(message(text, received=f"{local!r}, a file", expected="the name of a directory"))
    with _named(local):
        os.makedirs(local, exist_ok=True)


def remove(path: Any) -> None:
    """Delete a file."""
    local = path_of(path)
    if os.path.isdir(local):
        raise FailedPreconditionError(message(f"{local}; Is a directory", fix="tf.io.gfile.rmtree deletes folders"))
    with _named(local):
        os.remove(local)


def rmtree(path: Any) -> None:
    """Delete a folder and everything in it."""
    local = path_of(path)
    if not os.path.exists(local):
        raise NotFoundError(message(f"{local} not found", received=f"{local!r}", fix="tf.io.gfile.exists(path) asks first"))
    with _named(local):
        shutil.rmtree(local)


def _not_over(target: str, overwrite: bool) -> None:
    if not overwrite and os.path.exists(target):
        raise AlreadyExistsError(message("file already exists", received=target, fix="overwrite=True"))


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Give a file or folder another name."""
    source, target = path_of(src), path_of(dst)
    _not_over(target, overwrite)
    with _named(source):
        os.replace(source, target)


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copy a file."""
    source, target = path_of(src), path_of(dst)
    _not_over(target, overwrite)
    with _named(source):
        shutil.copyfile(source, target)


def glob(pattern: Any) -> list[str]:
    """The paths that match a pattern, or one of several."""
    patterns = pattern if isinstance(pattern, (list, tuple)) else [pattern]
    return [path for one in patterns for path in sorted(globbing.glob(path_of(one)))]


def walk(top: Any, topdown: bool = True, onerror: Callable | None = None) -> Iterator[tuple[str, list[str], list[str]]]:
    """(folder, names of folders, names of files) for a folder and all below it."""
    for folder, folders, names in os.walk(path_of(top), topdown=topdown, onerror=onerror):
        folders.sort()
        yield folder, folders, sorted(names)


def join(path: Any, *paths: Any) -> str:
    """Parts of a path put together."""
    return os.path.join(os.fsdecode(path), *map(os.fsdecode, paths))


def get_registered_schemes() -> list[str]:
    """The file systems there are."""
    return ["", "file"]
