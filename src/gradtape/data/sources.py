"""Where elements come from: arrays, ranges, generators and files."""

from __future__ import annotations

import contextlib
import glob
import gzip
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from gradtape.data import ragged, structure
from gradtape.data.cursor import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Columns,
    Cursor,
    ElementCursor,
    Node,
    Pass,
    RangeColumns,
    RowCursor,
    packer,
)
from gradtape.errors import DataLossError, InvalidArgumentError, NotFoundError, message, shown
from gradtape.ops.ragged import RaggedTensor
from gradtape.values import dtypes, nest
from gradtape.values.convert import convert_to_tensor, string_scalar
from gradtape.values.spec import TensorSpec
from gradtape.values.tensor import Tensor, wrap

_ENDLESS = 2**62


@dataclass(eq=False)
class Rows(Node):
    """The first ``count`` rows of columns; None: without end."""

    columns: Columns
    count: int | None
    described: Any

    def cursor(self, run: Pass) -> Cursor:
        return RowCursor(self.columns, _ENDLESS if self.count is None else self.count)

    def cardinality(self) -> int:
        return INFINITE_CARDINALITY if self.count is None else self.count

    def spec(self, probe: bool) -> Any:
        return self.described


def slices(tensors: Any) -> Rows:
    """The rows of a structure of tensors of equal length."""
    element = structure.normalize(tensors)
    leaves = nest.flatten(element)
    if not leaves:
        text = "Invalid `element`. `element` should not be empty."
        raise ValueError(message(text, received="nothing", expected="an array, or a nest of arrays of one length"))
    arrays = [structure.column(leaf) for leaf in leaves]
    if not all(array.ndim for array in arrays):
        raise ValueError(
            message(
                "Unbatching a tensor is only supported for rank >= 1",
                received=f"shapes {[array.shape for array in arrays]}",
                fix="from_tensors keeps values whole",
            )
        )
    for array in arrays:
        if len(array) != len(arrays[0]):
            raise ValueError(
                message(
                    f"Dimensions {len(arrays[0])} and {len(array)} are not compatible",
                    received=f"shapes {[array.shape for array in arrays]}",
                    expected="the same first length in all of them",
                )
            )
    return Rows(ragged.columns(element, arrays), len(arrays[0]), structure.sliced(structure.spec_of(element)))


def whole(tensors: Any) -> Rows:
    """One element."""
    element = structure.normalize(tensors)
    spec = structure.spec_of(element)
    leaves = nest.flatten(element)
    arrays = [ragged.alone(x) if isinstance(x, RaggedTensor) else structure._host(x)[np.newaxis] for x in leaves]
    return Rows(ragged.columns(element, arrays), 1, spec)


def integers(start: int, stop: int | None, step: int, dtype: Any) -> Rows:
    """start, start + step, … before ``stop``; None: without end."""
    if step == 0:
        raise InvalidArgumentError(message("step must be a non-zero integer.", received="step=0", expected="a step up or down"))
    kind = dtypes.as_dtype(dtype)
    count = None if stop is None else len(range(start, stop, step))
    return Rows(RangeColumns(start, step, kind.numpy), count, TensorSpec([], kind))


# Generators


@dataclass(eq=False)
class Stream(Node):
    """Elements of a Python iterator, which ``open`` begins anew for each pass."""

    open: Callable[[], Iterator]
    described: Any

    def cursor(self, run: Pass) -> Cursor:
        return _StreamCursor(self.open)

    def cardinality(self) -> int:
        return UNKNOWN_CARDINALITY

    def spec(self, probe: bool) -> Any:
        return self.described


class _StreamCursor(ElementCursor):
    def __init__(self, open: Callable[[], Iterator]) -> None:
        self.open = open
        self.iterator: Iterator | None = None

    def element(self) -> Any:
        if self.iterator is None:
            self.iterator = self.open()
        return next(self.iterator)


class Fitted:
    """An iterator of what a generator yields, as tensors that fit the specs; a value that does not is an error of its turn."""

    def __init__(self, values: Iterator, spec: Any) -> None:
        self.values, self.spec, self.pack = values, spec, packer(spec)

    def __iter__(self) -> Fitted:
        return self

    def __next__(self) -> Any:
        value = next(self.values)
        try:
            parts = structure.leaves_like(self.spec, value, "element")
        except (TypeError, ValueError, KeyError):
            wanted = f"The expected structure was {self.spec}, but"
            raise _wrong("did not match the expected structure", wanted, value) from None
        return self.pack([_fitted(part, leaf) for part, leaf in zip(parts, nest.flatten(self.spec))])


def _fitted(value: Any, spec: Any) -> Any:
    if not isinstance(spec, TensorSpec):
        return value
    try:
        tensor = wrap(_converted(value, spec.dtype))
    except (TypeError, ValueError):
        wanted = f"The expected type was {spec.dtype.name}, but"
        raise _wrong("could not be converted to the expected type", wanted, value) from None
    if not spec.shape.is_compatible_with(tensor.shape):
        raise InvalidArgumentError(
            message(
                f"TypeError: `generator` yielded an element of shape {tuple(tensor.shape)} where an element of shape "
                f"{spec.shape} was expected.",
                received=shown(tensor),
                fix="None in the shape of output_signature allows any length",
            )
        )
    return tensor


def _converted(value: Any, dtype: dtypes.DType) -> np.ndarray:
    """Python and NumPy values bend to the dtype as NumPy converts them."""
    if dtype is dtypes.string:
        return convert_to_tensor(value, dtype)._host()
    array = value._host() if isinstance(value, Tensor) else np.asarray(value)
    if array.dtype.kind in "OSU":
        array = np.asarray(value, dtype.numpy)
    return array.astype(dtype.numpy)


def _wrong(what: str, expected: str, value: Any) -> InvalidArgumentError:
    return InvalidArgumentError(
        message(
            f"TypeError: `generator` yielded an element that {what}. {expected} the yielded element was {value!r}.",
            received=shown(value),
            fix="make output_signature say what the generator yields",
        )
    )


# Files


def matching_files(patterns: Any) -> list[bytes]:
    """The files that a pattern, or any of several, matches; sorted, and an error if there are none."""
    texts = [text.decode() for text in convert_to_tensor(patterns)._host().ravel().tolist()]
    found = sorted({name for text in texts for name in glob.glob(os.path.expanduser(text), include_hidden=True)})
    if not found:
        text = f"No files matched pattern: {', '.join(texts)}"
        raise InvalidArgumentError(
            message(text, received=f"working directory {os.getcwd()}", fix="check the pattern: tf.io.gfile.glob(pattern)")
        )
    return [name.encode() for name in found]


def file_names(value: Any) -> list[str]:
    """Names from a string, a list, a tensor, a path, or a dataset of strings."""
    if hasattr(value, "_node"):
        return [text for element in value for text in file_names(element)]
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    elif isinstance(value, (list, tuple)):
        value = [os.fspath(part) if isinstance(part, os.PathLike) else part for part in value]
    tensor = convert_to_tensor(value, dtypes.string if isinstance(value, list) and not value else None)
    if tensor.dtype is not dtypes.string:
        text = f"The `filenames` argument must contain `tf.string` elements. Got {tensor.dtype!r} elements."
        raise TypeError(message(text, received=f"{tensor.dtype!r}", expected="names of files"))
    return [text.decode() for text in tensor._host().ravel().tolist()]


@contextlib.contextmanager
def opened(name: str, compression: str | None) -> Iterator[BinaryIO]:
    """A file for reading, decompressed."""
    try:
        with _opened(name, compression) as file:
            yield file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        text = f"Unable to decompress {name}: {error}"
        raise DataLossError(
            message(text, received=f"{name!r}", expected=f"a {compression} file, whole", fix="copy or write it again")
        ) from error


def _opened(name: str, compression: str | None) -> BinaryIO:
    kind = (compression or "").upper()
    if kind not in ("", "GZIP", "ZLIB"):
        raise InvalidArgumentError(message(f"Unsupported compression_type: {compression}.", expected="'', 'GZIP' or 'ZLIB'"))
    try:
        if kind == "GZIP":
            return gzip.open(name, "rb")  # type: ignore[return-value]
        file = open(name, "rb")  # noqa: SIM115 - the caller closes it
    except FileNotFoundError:
        text = f"{name}; No such file or directory"
        raise NotFoundError(
            message(text, received=f"{name!r}, from {os.getcwd()}", fix="tf.io.gfile.exists(name) asks first")
        ) from None
    if kind == "ZLIB":
        import io

        with file:
            return io.BytesIO(zlib.decompress(file.read()))
    return file


def lines(names: Iterable[str], compression: str | None) -> Iterator[Tensor]:
    """The lines of files, without their ends."""
    for name in names:
        with opened(name, compression) as file:
            for line in file:
                yield wrap(string_scalar(line.removesuffix(b"\n").replace(b"\r", b"")))


def records(names: Iterable[str], compression: str | None, size: int, header: int, footer: int) -> Iterator[Tensor]:
    """Pieces of ``size`` bytes between the header and the footer of files."""
    for name in names:
        with opened(name, compression) as file:
            content = file.read()
        body = content[header : len(content) - footer]
        if len(body) % size:
            text = (
                f"Excluding the header ({header} bytes) and footer ({footer} bytes), input file \"{name}\" has body length "
                f"{len(body)} bytes, which is not an exact multiple of the record length ({size} bytes)."
            )
            raise InvalidArgumentError(message(text, fix="another record_bytes, header_bytes or footer_bytes"))
        for start in range(0, len(body), size):
            yield wrap(string_scalar(body[start : start + size]))
