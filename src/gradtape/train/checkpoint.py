"""`Checkpoint`: save what is reached from some objects, and put it back."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from gradtape.core.variable import Variable
from gradtape.errors import NotFoundError, message
from gradtape.train import files, folder, objects
from gradtape.train.restore import COUNTER, LoadStatus, NoCheckpoint, Restoration
from gradtape.values.convert import Convertible
from gradtape.values.tensor import Tensor


class CheckpointOptions:
    """How a checkpoint is written, as in TensorFlow. Here all writing is done when `save` returns, so none of it matters."""

    def __init__(
        self,
        experimental_io_device: Any = None,
        experimental_enable_async_checkpoint: bool = False,
        experimental_write_callbacks: Any = None,
        enable_async: bool = False,
        experimental_skip_slot_variables: bool = False,
        experimental_sharding_callback: Any = None,
    ) -> None:
        self.experimental_io_device = experimental_io_device
        self.experimental_enable_async_checkpoint = experimental_enable_async_checkpoint
        self.experimental_write_callbacks = experimental_write_callbacks
        self.enable_async = enable_async
        self.experimental_skip_slot_variables = experimental_skip_slot_variables
        self.experimental_sharding_callback = experimental_sharding_callback


class Checkpoint:
    """Saves and restores variables, modules, optimizers, data iterators, and lists and dictionaries of them.

    Everything is named by the path of attributes that leads to it, so restoring needs the same attribute names, not the
    same variable names. What the program makes after `restore` receives its value then.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> checkpoint = tf.train.Checkpoint(step=tf.Variable(7), weights=[tf.Variable([1.0, 2.0])])
    >>> path = checkpoint.save(folder + "/ckpt")
    >>> checkpoint.step.assign(0).numpy(), checkpoint.restore(path).assert_consumed() is not None, int(checkpoint.step)
    (np.int32(0), True, 7)
    """

    _deferred: Any = None
    _own = ("_root", "_save_counter", "_deferred")

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        self._root = root
        self._save_counter: Variable | None = None
        for name, value in {**({} if root is None else {"root": root}), **kwargs}.items():
            self._check(name, value)
        existing = {} if root is None else objects.children(root)
        for name, value in kwargs.items():
            if name in existing and existing[name] is not value:
                raise ValueError(
                    message(
                        f"Cannot create a Checkpoint with keyword argument {name} if root.{name} already exists.",
                        received=f"root.{name} and another object for {name}",
                        fix=f"another name than {name}, or tf.train.Checkpoint(root) alone",
                    )
                )
            setattr(self, name, value)

    def _check(self, name: str, value: Any) -> None:
        if not objects.can_be_named(value):
            raise ValueError(
                message(
                    f"`Checkpoint` was expecting {name} to be a trackable object (an object derived from `Trackable`), "
                    f"got {value!r}.",
                    expected="a variable, module, optimizer, iterator, or a list or dictionary of them",
                    fix=f"tf.Variable({value!r})" if isinstance(value, (int, float)) else None,
                )
            )

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if self._deferred is not None:
            self._deferred(self, name)

    def _owners(self) -> tuple[Any, ...]:
        return (self,) if self._root is None else (*objects.owners(self._root), self)

    def _checkpoint_children(self) -> dict[str, Any]:
        own = {name: value for name, value in vars(self).items() if name not in self._own}
        counter = {} if self._save_counter is None else {COUNTER: self._save_counter}
        return {**({} if self._root is None else objects.children(self._root)), **own, **counter}

    @property
    def save_counter(self) -> Variable:
        """How often `save` was called, over all restored runs; the number at the end of the next path, less one."""
        if self._save_counter is None:
            self._save_counter = Variable(np.int64(0), trainable=False, dtype="int64", name="save_counter")
            if self._deferred is not None:
                self._deferred(self)
        return self._save_counter

    # Writing

    def write(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Save under exactly this prefix, without counting; returns it."""
        prefix = _text(file_prefix)
        arrays, saved = snapshot(self)
        files.write(prefix, arrays, saved)
        return prefix

    def save(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Save under ``prefix-<number>`` and note it as the folder's latest; returns the path for `restore`."""
        prefix = _text(file_prefix)
        counter = self.save_counter
        counter.assign_add(1)
        try:
            path = self.write(f"{prefix}-{int(counter)}", options)
        except BaseException:
            counter.assign_sub(1)
            raise
        folder.update(os.path.dirname(prefix), path, [path])
        return path

    # Restoring

    def read(self, save_path: Any, options: CheckpointOptions | None = None) -> LoadStatus:
        """Restore what `write` saved. All shapes and dtypes are compared before anything changes."""
        return LoadStatus(Restoration(files.index(_prefix(_text(save_path))), self))

    def restore(self, save_path: Any, options: CheckpointOptions | None = None) -> Any:
        """Restore what `save` saved; None restores nothing. The status says what was not matched."""
        if save_path is None:
            return NoCheckpoint()
        try:
            index = files.index(_prefix(_text(save_path)))
        except NotFoundError as error:
            raise NotFoundError(
                f"Error when restoring from checkpoint or SavedModel at {_text(save_path)}: {error}"
            ) from None
        self.save_counter  # noqa: B018 - made, so that it is restored too
        return LoadStatus(Restoration(index, self))


def snapshot(root: Any) -> tuple[dict[str, np.ndarray], list[dict]]:
    """The arrays to save by name, and the objects that they belong to."""
    arrays: dict[str, np.ndarray] = {}
    saved: list[dict] = []
    for node in objects.collect(root):
        value = node.value
        about: dict[str, Any] = {"path": node.path, "kind": objects.kind(value)}
        if isinstance(value, Variable):
            arrays[node.key] = value.snapshot()._host()
            about |= {"tensor": node.key, "name": value.name.removesuffix(":0"), "trainable": value.trainable}
        elif objects.has_state(value):
            about["state"] = objects.pack(value._state(), node.path + objects.STATE, arrays)
        saved.append({**about, **{k: v for k, v in (("children", node.children), ("slots", node.slots)) if v}})
    return arrays, saved


def _prefix(path: str) -> str:
    """The prefix of a checkpoint, or of the variables in a saved model's folder."""
    inner = os.path.join(path, "variables", "variables")
    return inner if os.path.isdir(path) and files.exists(inner) else path


def _text(path: Any) -> str:
    """A path from a string, bytes, a path object or a string tensor."""
    if isinstance(path, Convertible):
        path = path._operand()
    if isinstance(path, Tensor):
        path = path.numpy()
    return os.fsdecode(path)
