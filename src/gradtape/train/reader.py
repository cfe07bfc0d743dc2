"""Looking into a checkpoint: the names, shapes and values of its tensors."""

from __future__ import annotations

import difflib
import os
from typing import Any

from gradtape.errors import NotFoundError, message
from gradtape.train import files
from gradtape.train.folder import latest_checkpoint
from gradtape.train.objects import ATTRIBUTES
from gradtape.values.dtypes import as_dtype


class CheckpointReader:
    """The tensors of a checkpoint by name."""

    def __init__(self, index: Any) -> None:
        self._index = index

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        return {name: list(entry["shape"]) for name, entry in self._index.entries.items()}

    def get_variable_to_dtype_map(self) -> dict[str, Any]:
        return {name: as_dtype(entry["dtype"]) for name, entry in self._index.entries.items()}

    def has_tensor(self, tensor_str: str) -> bool:
        return tensor_str in self._index.entries

    def get_tensor(self, tensor_str: str) -> Any:
        """An array; a NumPy scalar or bytes where the tensor has rank 0."""
        if tensor_str not in self._index.entries:
            short = {name.partition(ATTRIBUTES)[0]: name for name in self._index.entries}
            near = difflib.get_close_matches(tensor_str, short, n=3)
            expected = f"one of its names, such as {', '.join(short[name] for name in near)}" if near else None
            raise NotFoundError(message(f"Key {tensor_str} not found in checkpoint", expected=expected))
        array = self._index.read(tensor_str)
        return array if array.ndim else array[()]


def load_checkpoint(ckpt_dir_or_file: Any) -> CheckpointReader:
    """A reader for a checkpoint, for the latest one in a folder, or for a saved model."""
    path = os.fsdecode(ckpt_dir_or_file)
    if os.path.isdir(path):
        path = latest_checkpoint(path) or os.path.join(path, "variables", "variables")
    return CheckpointReader(files.index(path))


def list_variables(ckpt_dir_or_file: Any) -> list[tuple[str, list[int]]]:
    """Names and shapes of what is in a checkpoint, sorted by name."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


def load_variable(ckpt_dir_or_file: Any, name: str) -> Any:
    """One value of a checkpoint, by its name in `list_variables`."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))
