"""What can be written: numbers, pictures, histograms, texts, sounds; as the same events that TensorFlow writes."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.errors import UnimplementedError, message
from gradtape.ops.decoding import serialized
from gradtape.ops.execution import on_the_host
from gradtape.ops.image_codec import encode_png
from gradtape.ops.image_color import convert_image_dtype
from gradtape.ops.text import string_tensor
from gradtape.summary.writer import recording, state, step_number
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.naming import scoped
from gradtape.values.tensor import Tensor, wrap

_WAV = b"\x10\x0b"  # field 2, encoding: 11


def _record(tag: str, make: Callable[[], Any], step: Any, plugin: str | None, description: Any, content: bytes = b"") -> Tensor:
    """Write a tensor, which is made only if it is wanted; whether it was written."""
    if not recording():
        return wrap(np.asarray(False))
    from tensorboardX.proto.summary_pb2 import SummaryMetadata

    number = step_number(step)
    metadata = SummaryMetadata()
    if plugin is not None:
        metadata.plugin_data.plugin_name = plugin
        metadata.plugin_data.content = content
        metadata.summary_description = "" if description is None else str(description)
    return _write(tag, convert_to_tensor(make()), number, metadata)


def _write(tag: str, tensor: Tensor, step: int, metadata: Any) -> Tensor:
    on_the_host("tf.summary")
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.proto.summary_pb2 import Summary
    from tensorboardX.proto.tensor_pb2 import TensorProto

    proto = TensorProto.FromString(serialized(tensor)._array[()])
    value = Summary.Value(tag=tag, tensor=proto, metadata=metadata)
    state.writer.add(Event(wall_time=time.time(), step=step, summary=Summary(value=[value])))  # type: ignore[union-attr]
    return wrap(np.asarray(True))


def write(tag: str, tensor: Any, step: Any = None, metadata: Any = None, name: str | None = None) -> Tensor:
    """Write a tensor under a tag as it is; ``metadata`` is a ``SummaryMetadata`` or its bytes."""
    if not recording():
        return wrap(np.asarray(False))
    from tensorboardX.proto.summary_pb2 import SummaryMetadata

    raw = metadata if isinstance(metadata, bytes) else b"" if metadata is None else metadata.SerializeToString()
    value = tensor() if callable(tensor) else tensor
    return _write(tag, convert_to_tensor(value), step_number(step), SummaryMetadata.FromString(raw))


def write_raw_pb(tensor: Any, step: Any = None, name: str | None = None) -> Tensor:
    """Write a serialized ``Summary``."""
    if not recording():
        return wrap(np.asarray(False))
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.proto.summary_pb2 import Summary

    summary = Summary.FromString(convert_to_tensor(tensor)._host()[()])
    state.writer.add(Event(wall_time=time.time(), step=step_number(step), summary=summary))  # type: ignore[union-attr]
    return wrap(np.asarray(True))


def scalar(name: str, data: Any, step: Any = None, description: str | None = None) -> Tensor:
    """Write a number, as float32. All of these return whether anything was written, as a boolean tensor."""

    def number() -> Tensor:
        array = convert_to_tensor(data)._host()
        if array.ndim:
            raise ValueError(
                message(f"Expected scalar shape, saw shape: {array.shape}.", fix="reduce it first: tf.reduce_mean(data)")
            )
        if array.dtype == object:
            raise UnimplementedError(message("Cast string to float is not supported", fix="tf.summary.text writes strings"))
        return wrap(array.astype(np.float32))

    return _record(scoped(name), number, step, "scalars", description)


def text(name: str, data: Any, step: Any = None, description: str | None = None) -> Tensor:
    """Write strings; TensorBoard shows them as Markdown, and those of higher rank as a table."""

    def strings() -> Tensor:
        tensor = convert_to_tensor(data)
        if tensor.dtype is not dtypes.string:
            text = f"tensor must be of type tf.string; got {tensor.dtype!r}"
            raise TypeError(message(text, received=f"{tensor.dtype!r}", fix="tf.strings.as_string(data)"))
        return tensor

    return _record(scoped(name), strings, step, "text", description)


def histogram(name: str, data: Any, step: Any = None, buckets: int | None = None, description: str | None = None) -> Tensor:
    """Write how values are distributed, over ``buckets`` (default 30) intervals of equal width."""
    count = 30 if buckets is None else int(buckets)
    return _record(scoped(name), lambda: _buckets(data, count), step, "histograms", description)


def _buckets(data: Any, count: int) -> Tensor:
    """Rows (left, right, number of values); all values go into the last bucket when they are equal."""
    values = np.asarray(convert_to_tensor(data)._host(), np.float64).ravel()
    if count <= 0 or not values.size:
        return wrap(np.zeros((max(count, 0), 3)))
    low, high = values.min(), values.max()
    edges = np.linspace(low, high, count + 1)
    if low == high:
        counts = np.zeros(count)
        counts[-1] = values.size
    else:
        width = (high - low) / count
        places = np.clip(np.floor((values - low) / width), 0, count - 1).astype(np.int64)
        counts = np.bincount(places, minlength=count).astype(np.float64)
    return wrap(np.stack([edges[:-1], edges[1:], counts], axis=1))


def image(name: str, data: Any, step: Any = None, max_outputs: int = 3, description: str | None = None) -> Tensor:
    """Write pictures (number, height, width, channels): floats between 0 and 1, or uint8; 1 to 4 channels."""
    return _record(scoped(name), lambda: _pictures(data, max_outputs), step, "images", description)


def _pictures(data: Any, most: int) -> Tensor:
    array = convert_to_tensor(data)._host()
    if array.ndim != 4:
        raise ValueError(
            message(
                f"Tensor  must have rank 4.  Received rank {array.ndim}, shape {array.shape}",
                expected="(number, height, width, channels)",
                fix="data[None] makes a batch of one picture",
            )
        )
    if most < 0:
        text = f"max_outputs must be non-negative. Received: {most}"
        raise ValueError(message(text, received=f"max_outputs={most}", expected="0 or more"))
    channels = array.shape[-1]
    if channels not in (1, 2, 3, 4):
        text = f"image must have 1, 2, 3, or 4 channels; got {channels}"
        raise ValueError(
            message(text, received=f"pictures of shape {array.shape}", expected="(count, height, width, channels)")
        )
    shown = convert_image_dtype(wrap(array[:most]), dtypes.uint8, saturate=True)
    files = encode_png(shown)._array.tolist() if shown._array.size else []
    parts = [str(array.shape[2]).encode(), str(array.shape[1]).encode(), *files]
    return string_tensor(parts, (len(parts),))


def audio(
    name: str, data: Any, sample_rate: Any, step: Any = None, max_outputs: int = 3, encoding: str | None = None,
    description: str | None = None,
) -> Tensor:  # fmt: skip
    """Write sounds (number, samples, channels) with values between -1 and 1."""
    if encoding not in (None, "wav"):
        raise ValueError(message(f"Unknown encoding: {encoding}", received=f"encoding={encoding!r}", expected="'wav' or None"))
    return _record(scoped(name), lambda: _sounds(data, int(sample_rate), max_outputs), step, "audio", description, _WAV)


def _sounds(data: Any, rate: int, most: int) -> Tensor:
    array = convert_to_tensor(data)._host()
    if array.ndim != 3:
        raise ValueError(
            message(
                f"Tensor  must have rank 3.  Received rank {array.ndim}, shape {array.shape}",
                expected="(number, samples, channels)",
            )
        )
    parts = [part for sound in array[:most] for part in (_wav(sound, rate), b"")]
    return string_tensor(parts, (len(parts) // 2, 2))


def _wav(sound: np.ndarray, rate: int) -> bytes:
    import wave

    samples = np.clip(np.rint(sound * 32768), -32768, 32767).astype("<i2")
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(sound.shape[1])
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.tobytes())
    return out.getvalue()


# Traces


def graph(graph_data: Any) -> None:
    """Not there: eager code has no graph to write."""
    raise ValueError(
        message(
            f"Argument 'graph_data' is not tf.Graph or tf.compat.v1.GraphDef. Received graph_data={graph_data!r} of type "
            f"{type(graph_data).__name__}.",
            why="there are no graph objects here",
            fix="print(tape) shows what a tape recorded",
        )
    )


_NO_TRACE = (
    "tf.summary.trace_on: graphs and profiles are not written to event files here, so that trace_export will add nothing. "
    "print(tape) shows what was recorded; Python's profilers, and jax.profiler inside compiled functions, show times."
)
_traced = False


def trace_on(graph: bool = True, profiler: bool = False, profiler_outdir: Any = None) -> None:
    """Accepted, with a warning: no graph and no profile will be written."""
    import warnings

    global _traced
    _traced = True
    warnings.warn(_NO_TRACE, stacklevel=2)


def trace_off() -> None:
    """Forget `trace_on`."""
    global _traced
    _traced = False


def trace_export(name: str, step: Any = None, profiler_outdir: Any = None) -> None:
    """Ends what `trace_on` began; nothing is written."""
    if not _traced:
        text = "Must enable trace before export through tf.summary.trace_on."
        raise ValueError(message(text, received="an export without trace_on", fix="tf.summary.trace_on() before the call"))
    trace_off()
