"""WAV files of 16-bit samples, to tensors and back: (samples, channels), between -1 and 1."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from gradtape.errors import InvalidArgumentError, dims, message
from gradtape.ops.arguments import integer
from gradtape.ops.cutting import cutting
from gradtape.ops.text import string_tensor, texts
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor, wrap

_SCALE = 32768  # steps of a sample between 0 and 1


class DecodeWav(NamedTuple):
    """The samples of a file, and how many of them there are in a second."""

    audio: Tensor
    sample_rate: Tensor


def decode_wav(contents: Any, desired_channels: Any = -1, desired_samples: Any = -1) -> DecodeWav:
    """The samples of a WAV file in float32, cut or filled up where a number of them, or of channels, is wanted."""
    rate, samples = _parsed(_contents(contents))
    channels, count = integer(desired_channels), integer(desired_samples)
    for name, value in (("desired_channels", channels), ("desired_samples", count)):
        if value < -1:
            raise _invalid(f"{name} must be >= -1, got {value}", expected="a number, or -1 for as many as there are")
    if channels >= 0:  # the last channel stands for those that are missing
        samples = samples[:, np.minimum(np.arange(channels), samples.shape[1] - 1)]
    if count >= 0:
        samples = np.pad(samples[:count], ((0, max(count - len(samples), 0)), (0, 0)))
    return DecodeWav(wrap(samples.astype(np.float32) / _SCALE), wrap(np.array(rate, np.uint32).view(np.int32)))


def _invalid(text: str, label: str = "DecodeWav", **details: str) -> InvalidArgumentError:
    return InvalidArgumentError(message(f"{text} [Op:{label}]", **details))


def _contents(contents: Any) -> bytes:
    array = texts(contents, "DecodeWav")
    if array.ndim:
        fix = "decode one file at a time: tf.map_fn, or dataset.map before batch"
        raise _invalid(f"contents must be scalar, got shape {dims(array.shape)}", fix=fix)
    return array[()]


def _parsed(data: bytes) -> tuple[int, np.ndarray]:
    """Samples in a second, and all of them, (count, channels)."""
    for at, expected in ((0, b"RIFF"), (8, b"WAVE")):
        if data[at : at + 4] != expected:
            found = data[at : at + 4].decode("latin-1")
            text = f"Header mismatch: Expected {expected.decode()} but found {found}"
            raise _invalid(text, received=f"{len(data)} bytes", expected="the contents of a WAV file")
    rate = channels = None
    at = 12
    while at + 8 <= len(data):
        name, size = data[at : at + 4], struct.unpack_from("<I", data, at + 4)[0]
        body = data[at + 8 : at + 8 + size]
        if len(body) < size:
            text = "Data too short when trying to read string"
            raise _invalid(text, received=f"{len(body)} of {size} bytes", expected="a whole file")
        if name == b"fmt ":
            rate, channels = _format(body)
        elif name == b"data":
            if rate is None or channels is None:
                raise _invalid("Data chunk before the format chunk in WAV", expected="what the samples are, then the samples")
            return rate, np.frombuffer(body[: size // (2 * channels) * 2 * channels], "<i2").reshape(-1, channels)
        at += 8 + size + size % 2  # chunks begin at even places
    if rate is None:
        text = "Data too short when trying to read string"
        raise _invalid(text, received=f"{len(data)} bytes without a format chunk", expected="a whole file")
    raise _invalid("No data chunk found in WAV", received=f"{len(data)} bytes", expected="a whole file")


def _format(body: bytes) -> tuple[int, int]:
    if len(body) < 16:
        text = f"Bad format chunk size for WAV: Expected 16 or 18, but got {len(body)}"
        raise _invalid(text, expected="the contents of a WAV file")
    kind, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", body)
    if kind != 1:
        fix = "tools such as ffmpeg convert it: -c:a pcm_s16le"
        raise _invalid(f"Bad audio format for WAV: Expected 1 (PCM), but got {kind}", fix=fix)
    if bits != 16:
        raise _invalid(f"Can only read 16-bit WAV files, but received {bits}", fix="convert it: ffmpeg -c:a pcm_s16le")
    if not channels:
        raise _invalid("Bad number of channels for WAV: got 0", expected="1 or more")
    return rate, channels


@cutting
def encode_wav(audio: Any, sample_rate: Any) -> Tensor:
    """A WAV file of samples between -1 and 1; those beyond are cut off."""
    x = convert_to_tensor(audio, None if isinstance(audio, Tensor) else dtypes.float32)
    array, rate = np.asarray(x._host()), np.asarray(convert_to_tensor(sample_rate)._host())
    wrong = None
    if array.ndim != 2:
        wrong = f"audio must be 2-dimensional{dims(array.shape)}"
    elif rate.ndim:
        wrong = f"Input sample_rate should be a scalar tensor, got {dims(rate.shape)} instead."
    elif not 0 < rate < 2**32:
        wrong = f"sample_rate must be in (0, 2^32), got: {int(rate)}"
    elif not 0 < array.shape[1] < 2**16:
        wrong = f"num_channels must be in (0, 2^16), got: {array.shape[1]}"
    if wrong:
        raise _invalid(wrong, "EncodeWav", received=f"audio {array.shape}", expected="audio (samples, channels)")
    scaled = array.astype(np.float64) * _SCALE
    rounded = np.trunc(scaled + np.copysign(0.5, scaled))
    body = np.clip(np.nan_to_num(rounded), -_SCALE, _SCALE - 1).astype("<i2").tobytes()
    width = 2 * array.shape[1]
    header = struct.pack("<HHIIHH", 1, array.shape[1], int(rate), int(rate) * width & 0xFFFFFFFF, width, 16)
    chunks = b"WAVEfmt " + struct.pack("<I", len(header)) + header + b"data" + struct.pack("<I", len(body)) + body
    return string_tensor([b"RIFF" + struct.pack("<I", len(chunks)) + chunks], ())
