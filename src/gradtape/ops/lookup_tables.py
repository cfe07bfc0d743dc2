"""Tables from keys to values: words to numbers and back. They live on the host; nothing is differentiated."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError, dims, message, shown
from gradtape.ops import files, hashing, text
from gradtape.ops.arguments import integer
from gradtape.ops.execution import on_the_host
from gradtape.ops.ragged import RaggedTensor
from gradtape.ops.sparse import SparseTensor
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor, wrap

_KEYS = (dtypes.string, dtypes.int32, dtypes.int64)


class _Lookup:
    """What all tables have in common: types, a name, and the way from keys in any structure to an array of them."""

    def __init__(self, key_dtype: Any, value_dtype: Any, name: str | None) -> None:
        self.key_dtype, self.value_dtype = dtypes.as_dtype(key_dtype), dtypes.as_dtype(value_dtype)
        self.name = name

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of keys, in the keys' shape; the default for those that are not there."""
        if isinstance(keys, RaggedTensor):
            return keys.with_flat_values(self.lookup(keys.flat_values))
        if isinstance(keys, SparseTensor):
            return SparseTensor(keys.indices, self.lookup(keys.values), keys.dense_shape)
        return wrap(self._found(self._checked(keys)))

    def __getitem__(self, keys: Any) -> Any:
        return self.lookup(keys)

    def _found(self, keys: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _checked(self, keys: Any) -> np.ndarray:
        on_the_host("tf.lookup")
        tensor = convert_to_tensor(keys, None if isinstance(keys, Tensor) else self.key_dtype)
        if tensor.dtype is not self.key_dtype:
            words = f"Dtype of argument `keys` must be {self.key_dtype}, received: {tensor.dtype}"
            way = "tf.strings.as_string(keys)" if self.key_dtype is dtypes.string else f"tf.cast(keys, {self.key_dtype!r})"
            raise TypeError(message(words, received=shown(keys), fix=way))
        return np.asarray(tensor._host())


class Table(_Lookup):
    """A dictionary of keys, and a default for all others."""

    def __init__(self, key_dtype: Any, value_dtype: Any, default_value: Any, name: str | None) -> None:
        super().__init__(key_dtype, value_dtype, name)
        if self.key_dtype not in _KEYS:
            words = f"Could not find device for node: a table with keys of {self.key_dtype.name}"
            raise NotFoundError(message(words, received=f"{self.key_dtype!r}", expected="tf.string, tf.int32 or tf.int64"))
        self._default = convert_to_tensor(default_value, self.value_dtype)
        self._rows: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self._rows)} keys, {self.key_dtype.name} to {self.value_dtype.name}>"

    def size(self, name: str | None = None) -> Tensor:
        """How many keys there are."""
        return wrap(np.array(len(self._rows), np.int64))

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys, and their values in the same order."""
        keys = np.empty(len(self._rows), self.key_dtype.numpy)
        keys[:] = list(self._rows)
        return wrap(keys), wrap(self._values(list(self._rows.values()), (len(keys),)))

    def _found(self, keys: np.ndarray) -> np.ndarray:
        default = self._default._host()[()]
        return self._values([self._rows.get(key, default) for key in keys.ravel().tolist()], keys.shape)

    def _values(self, values: list, shape: tuple[int, ...]) -> np.ndarray:
        inner = self._default._array.shape
        out = np.empty((len(values), *inner), self.value_dtype.numpy)
        for row, value in enumerate(values):
            out[row] = value
        return out.reshape(shape + inner)

    def _matched(self, keys: Any, values: Any, label: str) -> list[tuple[Any, Any]]:
        """Keys with their values, of the types of this table and of shapes that fit."""
        names = np.asarray(convert_to_tensor(keys, self.key_dtype)._host())
        array = np.asarray(convert_to_tensor(values, self.value_dtype)._host())
        expected = names.shape + self._default._array.shape
        if array.shape != expected:
            words = f"Expected shape {dims(expected)} for value, got {dims(array.shape)} [Op:{label}]"
            raise InvalidArgumentError(
                message(words, received=f"keys {names.shape}, values {array.shape}", expected="one value per key")
            )
        return list(zip(names.ravel().tolist(), array.reshape(names.size, *self._default._array.shape)))


class StaticHashTable(Table):
    """A table that is filled once.

    >>> table = StaticHashTable(KeyValueTensorInitializer(["a", "b"], [1, 2]), default_value=-1)
    >>> table.lookup(["b", "c"])
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([ 2, -1], dtype=int32)>
    """

    def __init__(
        self, initializer: Any, default_value: Any, name: str | None = None, experimental_is_anonymous: bool = False
    ) -> None:
        if not hasattr(initializer, "initialize"):
            words = f"{type(initializer).__name__!r} object is no initializer of a table"
            raise AttributeError(message(words, fix="tf.lookup.KeyValueTensorInitializer(keys, values)"))
        super().__init__(initializer.key_dtype, initializer.value_dtype, default_value, name)
        if self._default._array.ndim:
            words = f"Shapes {self._default.shape} and () are not compatible"
            raise ValueError(message(words, received=f"default_value={shown(default_value)}", expected="one value"))
        self._initializer = initializer
        initializer.initialize(self)

    def _fill(self, keys: Any, values: Any) -> None:
        for key, value in self._matched(keys, values, "LookupTableImportV2"):
            if self._rows.setdefault(key, value) != value:
                name_of_key = key.decode("utf-8", "replace") if isinstance(key, bytes) else key
                words = f"HashTable has different value for same key. Key {name_of_key} has {self._rows[key]} "
                words += f"and trying to add value {value} [Op:LookupTableImportV2]"
                raise FailedPreconditionError(message(words, received=f"{key!r} twice", fix="give each key once"))

    @property
    def default_value(self) -> Tensor:
        """The value of keys that are not there."""
        return self._default


class _Initializer:
    """Keys and values for a table. Subclasses elsewhere give their dtypes as properties, and may leave a table empty."""

    def __init__(self, key_dtype: Any, value_dtype: Any) -> None:
        self._key_dtype, self._value_dtype = dtypes.as_dtype(key_dtype), dtypes.as_dtype(value_dtype)

    @property
    def key_dtype(self) -> dtypes.DType:
        """The dtype of the table's keys."""
        return self._key_dtype

    @property
    def value_dtype(self) -> dtypes.DType:
        """The dtype of the table's values."""
        return self._value_dtype

    def initialize(self, table: StaticHashTable) -> None:
        """Fill a new table."""
        table._fill(*self._pairs())

    def _pairs(self) -> tuple[Any, Any]:
        raise NotImplementedError


class KeyValueTensorInitializer(_Initializer):
    """Keys and values for a table, given as tensors or lists."""

    def __init__(self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None, name: str | None = None) -> None:
        self._keys, self._values = convert_to_tensor(keys, key_dtype), convert_to_tensor(values, value_dtype)
        super().__init__(self._keys.dtype, self._values.dtype)

    def _pairs(self) -> tuple[Any, Any]:
        return self._keys, self._values


class TextFileIndex:
    """What of a line is meant, if not one of its columns."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class TextFileInitializer(_Initializer):
    """Keys and values from the lines of a file: columns by number, whole lines, or the numbers of lines."""

    def __init__(
        self, filename: Any, key_dtype: Any, key_index: int, value_dtype: Any, value_index: int, vocab_size: int | None = None,
        delimiter: str = "\t", name: str | None = None, value_index_offset: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(key_dtype, value_dtype)
        for what, at, dtype in (("key", key_index, self.key_dtype), ("value", value_index, self.value_dtype)):
            if at < -2:
                words = f"`{what}_index` should be >= -2, received: {at}."
                raise ValueError(message(words, expected="a column from 0, or one of tf.lookup.TextFileIndex"))
            if at == TextFileIndex.LINE_NUMBER and dtype is not dtypes.int64:
                words = f"`{what}_dtype` must be int64 if `{what}_index` is -1, received: {dtype}"
                raise ValueError(message(words, fix=f"{what}_dtype=tf.int64"))
        self._file, self._columns, self._size = filename, (key_index, value_index), vocab_size
        self._delimiter, self._offset = delimiter, value_index_offset

    def _pairs(self) -> tuple[Any, Any]:
        path = files.path_of(self._file)
        whole: Any = files.read_file(path)._host()[()]
        lines = whole.splitlines()  # of bytes: they need not be UTF-8, and a form feed ends no line
        if self._size is not None and len(lines) < self._size:
            words = f"Invalid vocab_size in {path}: expected {self._size} but got {len(lines)}"
            raise InvalidArgumentError(message(words, received=f"{len(lines)} lines", fix=f"vocab_size={len(lines)}"))
        lines = lines[: self._size]
        keys, values = (
            [self._part(path, number, line, at, dtype) for number, line in enumerate(lines)]
            for at, dtype in zip(self._columns, (self.key_dtype, self.value_dtype))
        )
        if self._columns[1] == TextFileIndex.LINE_NUMBER:
            values = [number + self._offset for number in values]
        return keys, values

    def _part(self, path: str, number: int, line: bytes, at: int, dtype: dtypes.DType) -> Any:
        if at == TextFileIndex.LINE_NUMBER:
            return number
        parts, shown = line.split(self._delimiter.encode()), line.decode(errors="replace")
        if at >= len(parts):
            words = f"Invalid number of columns in {path} line {number} ({shown}) : expected at least {at + 1} got {len(parts)}"
            raise InvalidArgumentError(message(words, received=f"{shown!r}", expected=f"columns parted by {self._delimiter!r}"))
        field = line if at == TextFileIndex.WHOLE_LINE else parts[at]
        if dtype is dtypes.string:
            return field
        try:
            return int(field) if dtype.is_integer else float(field)
        except ValueError:
            words = f"Field {field.decode(errors='replace')} in line {number} is not a valid {dtype.name}."
            raise InvalidArgumentError(message(words, received=f"{shown!r}", expected=f"a number in column {at}")) from None


class StaticVocabularyTable(_Lookup):
    """A table to numbers from 0, in which keys that are not there share some more numbers, by a hash of their text."""

    def __init__(
        self, initializer: Any, num_oov_buckets: Any, lookup_key_dtype: Any = None, name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:  # fmt: skip
        self._buckets = integer(num_oov_buckets)
        if self._buckets <= 0:
            words = "`num_oov_buckets` must be > 0; use StaticHashTable."
            raise ValueError(message(words, received=f"num_oov_buckets={self._buckets}", expected="1 or more"))
        if initializer is not None and initializer.value_dtype is not dtypes.int64:
            words = f"Invalid `value_dtype`, expected {dtypes.int64} but got {initializer.value_dtype}."
            raise TypeError(message(words, fix="KeyValueTensorInitializer(keys, values, value_dtype=tf.int64)"))
        self._table = None if initializer is None else StaticHashTable(initializer, -1)
        own = dtypes.string if initializer is None else initializer.key_dtype
        super().__init__(own if lookup_key_dtype is None else lookup_key_dtype, dtypes.int64, name)

    def __repr__(self) -> str:
        return f"<StaticVocabularyTable of {self._known()} keys and {self._buckets} numbers for others>"

    def size(self, name: str | None = None) -> Tensor:
        """How many numbers there are, those for other keys included."""
        return wrap(np.array(self._known() + self._buckets, np.int64))

    def _known(self) -> int:
        return 0 if self._table is None else len(self._table._rows)

    def _found(self, keys: np.ndarray) -> np.ndarray:
        texts = wrap(keys) if self.key_dtype is dtypes.string else text.from_numbers(wrap(keys), -1, False, False, -1, "")
        others = self._known() + hashing.buckets(texts, self._buckets)._host()
        if self._table is None:
            return others
        found = self._table._found(keys)
        return np.where(found < 0, others, found)


class MutableHashTable(Table):
    """A table that can be filled and emptied; a default of several numbers makes every value one of as many."""

    def __init__(
        self, key_dtype: Any, value_dtype: Any, default_value: Any, name: str = "MutableHashTable", checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(key_dtype, value_dtype, default_value, name)

    def insert(self, keys: Any, values: Any, name: str | None = None) -> None:
        """Set the values of keys, new or known."""
        on_the_host("tf.lookup")
        self._rows.update(self._matched(keys, values, "LookupTableInsertV2"))

    def remove(self, keys: Any, name: str | None = None) -> None:
        """Forget keys; those that are not there are left out."""
        for key in self._checked(keys).ravel().tolist():
            self._rows.pop(key, None)

    def lookup(  # type: ignore[override]
        self, keys: Any, dynamic_default_values: Any = None, name: str | None = None
    ) -> Any:
        """The values of keys; the default, or its own default for each key, for those that are not there."""
        if dynamic_default_values is None:
            return super().lookup(keys)
        array = self._checked(keys)
        pairs = self._matched(wrap(array), dynamic_default_values, "LookupTableFindV2")
        return wrap(self._values([self._rows.get(key, default) for key, default in pairs], array.shape))


class DenseHashTable(MutableHashTable):
    """A table that can be filled and emptied, in which two keys are never used, as TensorFlow's needs them."""

    def __init__(
        self, key_dtype: Any, value_dtype: Any, default_value: Any, empty_key: Any, deleted_key: Any,
        initial_num_buckets: int | None = None, name: str = "MutableDenseHashTable", checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(key_dtype, value_dtype, default_value, name)
        unused = (("empty_key", empty_key), ("deleted_key", deleted_key))
        self._unused = {convert_to_tensor(key, self.key_dtype)._host()[()]: what for what, key in unused}
        if len(self._unused) < 2:
            words = "Empty and deleted keys cannot be equal [Op:MutableDenseHashTableV2]"
            raise InvalidArgumentError(message(words, fix="two different keys that never occur"))

    def _checked(self, keys: Any) -> np.ndarray:
        array = super()._checked(keys)
        for key in array.ravel().tolist():
            if key in self._unused:
                words = f"Using the {self._unused[key]} as a table key is not allowed"
                raise InvalidArgumentError(message(words, received=f"{key!r}", fix=f"another {self._unused[key]}"))
        return array

    def insert(self, keys: Any, values: Any, name: str | None = None) -> None:
        """Set the values of keys, new or known."""
        self._checked(convert_to_tensor(keys, self.key_dtype))
        super().insert(keys, values)

    insert_or_assign = insert

    def erase(self, keys: Any, name: str | None = None) -> None:
        """Forget keys; those that are not there are left out."""
        self.remove(keys)
