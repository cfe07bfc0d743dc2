"""`assert_shapes`: several shapes at once, with letters for lengths that must agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gradtape.errors import message
from gradtape.ops.checks import assert_rank_in
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor

_ANY = (".", None)
_LEADING = (Ellipsis, "...", "*")


def assert_shapes(
    shapes: Any, data: Any = None, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> None:
    """Raise ValueError unless the tensors have these shapes.

    ``shapes`` holds pairs (tensor, lengths). A length is a number, a symbol that stands for the same number wherever it
    occurs, or None or ``"."`` for any; ``"..."`` or ``"*"`` in front stands for any number of axes.

    >>> assert_shapes([([[1, 2], [3, 4]], ("n", "n")), ([5, 6], ("n",))])
    """
    prefix = f"{message}.  " if message else ""
    known: dict[Any, tuple[int, str]] = {}
    for value, lengths in shapes.items() if isinstance(shapes, Mapping) else shapes:
        tensor = convert_to_tensor(value)
        label = f"shape={tensor._array.shape} dtype={tensor.dtype.name}"
        for axis, length in _required(tensor, lengths, label, message):
            _check(tensor, axis, length, label, known, prefix)


def _required(tensor: Tensor, lengths: Any, label: str, text: str | None) -> list[tuple[int, Any]]:
    """The axes of a tensor with what is required of each."""
    prefix = f"{text}.  " if text else ""
    if not isinstance(lengths, Iterable):
        raise ValueError(
            message(
                f"{prefix}Tensor {label}.  Specified shape must be an iterable.  An iterable has the attribute `__iter__` or "
                f"`__getitem__`.  Received specified shape: {lengths}",
                received=f"{lengths!r}",
                expected="a list or tuple of lengths and names: (x, ('N', 3))",
            )
        )
    wanted = list(lengths)
    for i, length in enumerate(wanted):
        if i and any(length is sign or (isinstance(length, str) and length == sign) for sign in _LEADING):
            raise ValueError(
                message(
                    f"{prefix}Tensor {label} specified shape index {i}.  Symbol `...` or `*` for a variable number of "
                    "unspecified dimensions is only allowed as the first entry",
                    received=f"{lengths!r}",
                    fix="move it to the front: ('...', 'N', 3)",
                )
            )
    shape = tensor._array.shape
    if wanted and wanted[0] in _LEADING:
        wanted = wanted[1:]
        if len(shape) < len(wanted):
            raise ValueError(
                message(
                    f"{prefix}Tensor {label} must have rank at least {len(wanted)}.  Received rank {len(shape)}",
                    received=f"shape {shape}",
                    expected=f"at least {len(wanted)} axes",
                )
            )
        return list(zip(range(len(shape) - len(wanted), len(shape)), wanted))
    if len(wanted) < 2:  # a scalar counts as one element
        assert_rank_in(tensor, (0, 1), message=text)
        return [(0, wanted[0] if wanted else 1)]
    if len(shape) != len(wanted):
        raise ValueError(
            message(
                f"{prefix}Tensor {label} must have rank {len(wanted)}.  Received rank {len(shape)}, shape {shape}",
                received=f"shape {shape}",
                expected=f"{len(wanted)} axes",
            )
        )
    return list(enumerate(wanted))


def _check(tensor: Tensor, axis: int, length: Any, label: str, known: dict, prefix: str) -> None:
    if length in _ANY:
        return
    shape = tensor._array.shape
    found = shape[axis] if shape else 1
    if isinstance(length, (int, float)):
        wanted, source = int(length), "Specified explicitly"
    else:
        wanted, source = known.setdefault(length, (found, f"Specified by tensor {label} dimension {axis}"))
    if found != wanted:
        text = (
            f"{prefix}{source}.  Tensor {label} dimension {axis} must have size {wanted}.  "
            f"Received size {found}, shape {shape}"
        )
        raise ValueError(message(text, received=f"shape {shape}", expected=f"{wanted} at axis {axis}"))
