"""`print` for tensors: all elements or the first and last ones, as TensorFlow writes them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.context import thread
from gradtape.errors import message, shown
from gradtape.ops.execution import on_the_host, staging
from gradtape.values import nest
from gradtape.values.composite import Structured
from gradtape.values.convert import Convertible, convert_to_tensor
from gradtape.values.tensor import Tensor, wrap

_STREAMS = "sys.stdout, sys.stderr, a file object, a logging function, or 'file://' with a path"


def print(*inputs: Any, **kwargs: Any) -> None:
    """Print tensors and anything else to ``output_stream`` (standard error), separated by ``sep``, followed by ``end``.

    Of a long axis the first and last ``summarize`` elements are shown: 3; -1 shows all.
    """
    output_stream, end, sep = kwargs.pop("output_stream", None), kwargs.pop("end", "\n"), kwargs.pop("sep", " ")
    summarize = kwargs.pop("summarize", 3)
    kwargs.pop("name", None)
    if kwargs:
        text = f"Unrecognized keyword arguments for tf.print: {kwargs}"
        raise ValueError(message(text, received=f"{', '.join(kwargs)}", expected="output_stream, summarize, sep, end and name"))
    if not isinstance(sep, str):
        text = f"Expected a string for argument 'sep' not {sep!r}."
        raise TypeError(message(text, received=f"sep={sep!r}", expected="a string"))
    if not isinstance(summarize, (int, float, np.number)):
        raise TypeError(
            message(
                f"Expected int for argument 'summarize' not {summarize!r}.",
                received=f"summarize={summarize!r}",
                expected="how many elements to show at either end, or -1 for all",
            )
        )

    def write(values: Any) -> None:
        text = sep.join(_shown(value, int(summarize)) for value in values)
        _write(text + ("\n" if end is None else end), sys.stderr if output_stream is None else output_stream)

    if staging.inside:
        _at_each_call(write, inputs)
    else:
        write(inputs)


def _at_each_call(write: Callable[[Any], None], inputs: Any) -> None:
    """Print when the program runs that is being made, in the order of the program."""
    leaves = nest.flatten(inputs)
    if thread.batch or any(isinstance(leaf, Structured) for leaf in leaves):
        on_the_host("tf.print of a structured tensor, or in a batch")
    leaves = [convert_to_tensor(leaf) if isinstance(leaf, Convertible) else leaf for leaf in leaves]
    traced = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and leaf._is_traced()]

    def show(*arrays: Any) -> None:
        shown = list(leaves)
        for i, array in zip(traced, arrays):
            shown[i] = wrap(np.asarray(array))
        write(nest.pack_sequence_as(inputs, shown))

    staging.call(show, [leaves[i]._array for i in traced])


def _write(text: str, stream: Any) -> None:
    if isinstance(stream, str) and stream.startswith("file://"):
        with open(stream.removeprefix("file://"), "a", encoding="utf-8") as file:
            file.write(text)
    elif hasattr(stream, "write"):
        stream.write(text)
    elif callable(stream):  # logging.info and the like, which end the line themselves
        stream(text.rstrip("\n"))
    else:
        raise ValueError(
            message(
                f"Unsupported output stream, logging level, or file.{stream}. Supported streams are {_STREAMS}.",
                received=shown(stream),
                fix="output_stream=sys.stdout, or 'file:///tmp/log.txt'",
            )
        )


class _Text:
    """Prints as it stands inside a structure."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _shown(value: Any, summarize: int) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Structured):
        return _structured_text(value, summarize)
    if isinstance(value, (Tensor, Convertible)):
        return tensor_text(convert_to_tensor(value)._host(), summarize)
    if not nest.is_nested(value):
        return repr(value)
    import pprint

    def leaf(part: Any) -> Any:
        return _Text(_shown(part, summarize)) if isinstance(part, (Tensor, Convertible)) else part

    return pprint.pformat(nest.map_structure(leaf, value))


def _structured_text(value: Any, summarize: int) -> str:
    """A ragged tensor as nested lists, a sparse one by its parts."""
    if hasattr(value, "to_list"):
        return _list_text(value.to_list(), summarize)
    indices, values, lengths = (tensor_text(part._host(), summarize) for part in value._components())
    return f"'SparseTensor(indices={indices}, values={values}, shape={lengths})'"


def _list_text(value: Any, summarize: int) -> str:
    if isinstance(value, list):
        parts = [_list_text(part, summarize) for part in value]
        if summarize >= 0 and len(parts) > 2 * summarize:
            parts[summarize : len(parts) - summarize] = ["..."]
        return f"[{', '.join(parts)}]"
    if isinstance(value, bytes):
        return "'" + value.decode("utf-8", "backslashreplace") + "'"
    return f"{value:f}" if isinstance(value, float) else str(value).lower()


def tensor_text(array: np.ndarray, summarize: int = 3) -> str:
    """An array's elements in brackets, without commas; of a long axis ``summarize`` at each end, or all if negative.

    >>> tensor_text(np.arange(8.0))
    '[0 1 2 ... 5 6 7]'
    """
    if not array.ndim:
        value = array[()]
        return _escaped(value) if isinstance(value, bytes) and b"\n" in value else _element(value, quote="")
    return _rows(array, summarize, 1)


def _rows(array: np.ndarray, summarize: int, depth: int) -> str:
    if not array.ndim:
        return _element(array[()], quote='"')
    count, edge = len(array), summarize
    shown = list(range(count))
    if edge >= 0 and count > 2 * edge:
        shown = [*range(edge), -1, *range(count - edge, count)]
    parts = ["..." if i == -1 else _rows(array[i, ...], summarize, depth + 1) for i in shown]
    gap = " " if array.ndim == 1 else "\n" * (array.ndim - 1) + " " * depth
    return f"[{gap.join(parts)}]"


def _element(value: Any, quote: str) -> str:
    if isinstance(value, bytes):
        return _escaped(value) if quote else value.decode("utf-8", "backslashreplace")
    if isinstance(value, (bool, np.bool_)):
        return str(int(value))
    if np.iscomplexobj(value):
        return f"({_number(value.real)},{_number(value.imag)})"
    return str(value) if isinstance(value, np.integer) else _number(value)


def _escaped(value: bytes) -> str:
    text = value.decode("utf-8", "backslashreplace")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("'", "\\'").replace("\n", "\\n") + '"'


def _number(value: Any) -> str:
    """The shorter of two precisions if it reads back as the same number, else the longer."""
    if not isinstance(value, (np.float64, float)):
        value = np.float32(value)
    short, long = (15, 17) if isinstance(value, float) else (6, 9)
    text = f"{value:.{short}g}"
    return text if type(value)(text) == value or value != value else f"{value:.{long}g}"
