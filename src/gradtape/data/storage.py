"""Elements in a file: one NumPy archive, no pickle, written to a temporary name and renamed when complete."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gradtape.data.cursor import packer
from gradtape.errors import DataLossError, message
from gradtape.ops.files import check_archive
from gradtape.values import dtypes, nest
from gradtape.values.tensor import Tensor, wrap

_DESCRIPTION = "description"


def save(file: Path, elements: list) -> None:
    """Write elements of equal structure; each leaf is one flat array, with the shapes beside it."""
    template = elements[0] if elements else ()
    columns = list(zip(*map(nest.flatten, elements))) if elements else []
    description = {
        "structure": _outline(template),
        "count": len(elements),
        "dtypes": [column[0].dtype.name for column in columns],
    }
    parts = {_DESCRIPTION: np.frombuffer(json.dumps(description).encode(), np.uint8)}
    for position, column in enumerate(columns):
        parts |= {f"{name}{position}": array for name, array in _encoded(column).items()}
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f"{file.name}.{os.getpid()}.part")
    with open(temporary, "wb") as stream:
        np.savez(stream, **parts)  # type: ignore[arg-type]
    os.replace(temporary, file)


def load(file: Path, structure: Any = None) -> list:
    """The elements of a file, arranged like ``structure``; without one, in tuples and dicts as they were saved."""
    try:
        own, count, columns = _read(file)
    except FileNotFoundError:
        raise
    except Exception as error:  # there is hardly a kind that a damaged archive cannot raise
        text = f"Unable to read the saved elements {file}: {error}"
        expected = "a file that Dataset.save or Dataset.cache wrote, whole"
        fix = "copy it again, or delete it and let it be written anew"
        raise DataLossError(message(text, received=f"{str(file)!r}", expected=expected, fix=fix)) from error
    template = own if structure is None else structure
    pack = packer(template)
    return [pack(list(leaves)) for leaves in zip(*columns)] if columns else [template] * count


def _read(file: Path) -> tuple[Any, int, list[list[Tensor]]]:
    """The structure of the elements, their number, and each of their parts in all of them."""
    check_archive(file)  # before anything is made of lengths that may be wrong
    with np.load(file, allow_pickle=False) as parts:
        description = json.loads(parts[_DESCRIPTION].tobytes())
        columns = [
            _decoded(parts[f"data{position}"], parts[f"shapes{position}"], dtypes.as_dtype(dtype))
            for position, dtype in enumerate(description["dtypes"])
        ]
    return _template(description["structure"]), description["count"], columns


def _encoded(column: tuple[Tensor, ...]) -> dict[str, np.ndarray]:
    """Rank and lengths of each array, and all numbers in one; strings as their lengths followed by their bytes."""
    arrays = [leaf._host() for leaf in column]
    shapes = np.array([n for array in arrays for n in (array.ndim, *array.shape)], np.int64)
    if arrays[0].dtype.kind != "O":
        return {"data": np.concatenate([array.ravel() for array in arrays]).view(np.uint8), "shapes": shapes}
    texts = [text for array in arrays for text in array.ravel().tolist()]
    lengths = np.array([len(text) for text in texts], np.int64)
    return {"data": np.concatenate([lengths.view(np.uint8), np.frombuffer(b"".join(texts), np.uint8)]), "shapes": shapes}


def _decoded(data: np.ndarray, shapes: np.ndarray, dtype: dtypes.DType) -> list[Tensor]:
    found, position = [], 0
    while position < len(shapes):
        rank = int(shapes[position])
        found.append(tuple(shapes[position + 1 : position + 1 + rank].tolist()))
        position += 1 + rank
    sizes = [math.prod(shape) for shape in found]
    flat = _texts(data, sum(sizes)) if dtype is dtypes.string else data.view(dtype.numpy)
    return [wrap(part.reshape(shape)) for part, shape in zip(np.split(flat, np.cumsum(sizes)[:-1]), found)]


def _texts(data: np.ndarray, count: int) -> np.ndarray:
    lengths, everything = data[: 8 * count].view(np.int64), data[8 * count :].tobytes()
    texts = np.empty(count, object)
    for position, (end, length) in enumerate(zip(np.cumsum(lengths).tolist(), lengths.tolist())):
        texts[position] = everything[end - length : end]
    return texts


def _outline(structure: Any) -> Any:
    """A structure as JSON: a list for a tuple, a dict for a mapping, null for a leaf."""
    if isinstance(structure, Mapping):
        return {str(key): _outline(value) for key, value in structure.items()}
    return [_outline(value) for value in structure] if isinstance(structure, tuple) else None


def _template(outline: Any) -> Any:
    if isinstance(outline, dict):
        return {key: _template(value) for key, value in outline.items()}
    return tuple(map(_template, outline)) if isinstance(outline, list) else None
