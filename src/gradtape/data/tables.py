"""Comma-separated files: `CsvDataset` and `make_csv_dataset`."""

from __future__ import annotations

import csv
import io
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradtape.data import functional, sources
from gradtape.data.dataset import Dataset
from gradtape.errors import InvalidArgumentError, message
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor, string_scalar
from gradtape.values.spec import TensorSpec
from gradtape.values.tensor import Tensor, wrap

_TYPES = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.string)


class _Column:
    """How the text of a field becomes a scalar, and what an empty field stands for."""

    def __init__(self, default: Any) -> None:
        self.default: Tensor | None = None
        if isinstance(default, dtypes.DType):
            self.dtype = default
        else:
            tensor = convert_to_tensor(default)
            self.dtype = tensor.dtype
            if tensor._host().size:  # an empty default says that the field is required
                self.default = wrap(tensor._host().reshape(-1)[:1].reshape(()))
        if self.dtype not in _TYPES:
            raise ValueError(
                message(
                    f"Each record_defaults must be one of {[t.name for t in _TYPES]}.",
                    received=f"{self.dtype!r}",
                    fix="a default of one of these types, or the type itself where a field must be there",
                )
            )

    def parse(self, text: str, position: int, missing: str) -> Tensor:
        if text in ("", missing):
            if self.default is None:
                raise InvalidArgumentError(
                    message(
                        f"Field {position} is required but missing in record!",
                        received=f"an empty field {position}",
                        fix="a default for it in record_defaults: [0] instead of tf.int32",
                    )
                )
            return self.default
        if self.dtype is dtypes.string:
            return wrap(string_scalar(text.encode("utf-8", "surrogateescape")))
        try:
            return wrap(np.asarray(self.dtype.numpy.type(text)))
        except (ValueError, OverflowError):
            raise InvalidArgumentError(
                message(
                    f"Field {position} in record is not a valid {self.dtype.word}: {text}",
                    received=f"{text!r}",
                    expected=f"a {self.dtype.name}",
                    fix="na_value= names a text that stands for a missing value",
                )
            ) from None


def _rows(name: str, compression: str | None, header: bool, delimiter: str, quoted: bool) -> Iterator[list[str]]:
    """The fields of the lines of a file; bytes that are no UTF-8 stay what they are."""
    with (
        sources.opened(name, compression) as file,
        io.TextIOWrapper(file, "utf-8", errors="surrogateescape", newline="") as text,
    ):
        reader = csv.reader(text, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE)
        rows = (row for row in reader if row)
        try:
            if header:
                next(rows, None)
            yield from rows
        except csv.Error as error:
            at = f"line {reader.line_num}"
            raise InvalidArgumentError(message(f"{name}: {error}", received=at, expected="lines of fields")) from error


class CsvDataset(Dataset):
    """The rows of comma-separated files, each a tuple of scalars.

    ``record_defaults`` has for each column its dtype, where a value is required, or the value of an empty field.
    """

    def __init__(
        self, filenames: Any, record_defaults: Any, compression_type: str | None = None, buffer_size: Any = None,
        header: bool = False, field_delim: str = ",", use_quote_delim: bool = True, na_value: str = "", select_cols: Any = None,
        exclude_cols: Any = None,
    ) -> None:  # fmt: skip
        if select_cols is not None and exclude_cols is not None:
            text = "Either select_cols or exclude_cols should be empty"
            raise InvalidArgumentError(message(text, received="select_cols and exclude_cols", fix="give one of them"))
        names, columns = sources.file_names(filenames), [_Column(default) for default in record_defaults]
        selected = None if select_cols is None else [int(k) for k in select_cols]
        excluded = set() if exclude_cols is None else {int(k) for k in exclude_cols}

        def rows() -> Iterator[list[str]]:
            for name in names:
                yield from _rows(name, compression_type, header, field_delim, use_quote_delim)

        def parse(row: list[str]) -> tuple[Tensor, ...]:
            chosen = range(len(row)) if selected is None else selected
            fields = [row[k] for k in chosen if k not in excluded and k < len(row)]
            if len(fields) != len(columns):
                text = f"Expect {len(columns)} fields but have {len(fields)} in record"
                raise InvalidArgumentError(
                    message(text, received=f"{fields!r}", expected=f"{len(columns)} fields, one per default")
                )
            return tuple(column.parse(text, k, na_value) for k, (column, text) in enumerate(zip(columns, fields)))

        spec = tuple(TensorSpec([], column.dtype) for column in columns)
        super().__init__(_Parsed(sources.Stream(rows, spec), parse))


class _Parsed(functional.Map):
    """A map whose specs are known: a row that cannot be parsed is an error of its own turn."""

    def call(self, element: Any) -> Any:
        return self.function(element)

    def spec(self, probe: bool) -> Any:
        return self.source.spec(probe)


def make_csv_dataset(
    file_pattern: Any, batch_size: int, column_names: Any = None, column_defaults: Any = None, label_name: str | None = None,
    select_columns: Any = None, field_delim: str = ",", use_quote_delim: bool = True, na_value: str = "", header: bool = True,
    num_epochs: int | None = None, shuffle: bool = True, shuffle_buffer_size: int = 10000, shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None, num_parallel_reads: int | None = None, sloppy: bool = False,
    num_rows_for_inference: int | None = 100, compression_type: str | None = None, ignore_errors: bool = False,
    encoding: str = "utf-8",
) -> Dataset:  # fmt: skip
    """Batches of columns by name, with their types found from the data; with ``label_name`` pairs of columns and label."""
    files = [name.decode() for name in sources.matching_files(file_pattern)]
    if column_names is None and not header:
        text = "Expected `column_names` or `header=True`: the names of the columns are needed."
        raise ValueError(
            message(text, received="column_names=None, header=False", fix="header=True, or column_names=['a', 'b']")
        )
    read = lambda name: _rows(name, compression_type, False, field_delim, use_quote_delim)
    names = list(column_names) if column_names is not None else next(read(files[0]))
    if len(set(names)) != len(names):
        text = "Cannot have duplicate column names."
        raise ValueError(message(text, received=f"{names}", fix="column_names= gives each its own"))
    if label_name is not None and label_name not in names:
        raise ValueError(
            message("`label_name` provided must be one of the columns.", received=f"{label_name!r}", expected=f"one of {names}")
        )
    selected = list(range(len(names))) if select_columns is None else sorted(_position(names, c) for c in select_columns)
    if column_defaults is None:
        column_defaults = _inferred(files, read, header, selected, na_value, num_rows_for_inference)
    chosen = [names[k] for k in selected]
    rows = CsvDataset(
        files, column_defaults, compression_type, header=header, field_delim=field_delim, use_quote_delim=use_quote_delim,
        na_value=na_value, select_cols=selected,
    )  # fmt: skip
    dataset: Dataset = rows.ignore_errors() if ignore_errors else rows
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    dataset = dataset.repeat(num_epochs).batch(batch_size, drop_remainder=num_epochs is None)
    dataset = dataset.map(_by_name(chosen, label_name))
    return dataset.prefetch(1 if prefetch_buffer_size is None else prefetch_buffer_size)


def _by_name(names: list[str], label: str | None) -> Callable:
    def arrange(*columns: Tensor) -> Any:
        features = OrderedDict(zip(names, columns))
        return features if label is None else (features, features.pop(label))

    return arrange


def _position(names: list[str], column: Any) -> int:
    if isinstance(column, str):
        if column not in names:
            raise ValueError(message(f"Value {column!r} is not a column.", received=f"{column!r}", expected=f"one of {names}"))
        return names.index(column)
    return int(column)


def _inferred(
    files: list[str], read: Callable, header: bool, selected: list[int], missing: str, limit: int | None
) -> list[Any]:  # fmt: skip
    """For each selected column the default of the narrowest type that all its fields fit."""
    found: list[Any] = [None] * len(selected)
    seen = 0
    for name in files:
        rows = read(name)
        if header:
            next(rows, None)
        for row in rows:
            for column, position in enumerate(selected):
                if position < len(row) and row[position] not in ("", missing):
                    found[column] = max(_rank(row[position]), found[column] or 0)
            seen += 1
            if limit is not None and seen >= limit:
                return [_default(rank) for rank in found]
    return [_default(rank) for rank in found]


_RANKED = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.string)


def _rank(text: str) -> int:
    try:
        number = int(text)
        return 0 if -(2**31) <= number < 2**31 else 1 if -(2**63) <= number < 2**63 else 4
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        return 4
    return 2 if not np.isfinite(value) or abs(value) <= float(np.finfo(np.float32).max) else 3


def _default(rank: int | None) -> Any:
    dtype = _RANKED[4 if rank is None else rank]
    return convert_to_tensor([""] if dtype is dtypes.string else np.zeros(1, dtype.numpy))
