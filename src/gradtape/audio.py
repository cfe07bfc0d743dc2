"""`tf.audio`: WAV files, to tensors and back."""

from __future__ import annotations

from typing import Any

from gradtape.ops import audio as _audio
from gradtape.scope import missing
from gradtape.values.tensor import Tensor

__all__ = ["decode_wav", "encode_wav"]


def decode_wav(
    contents: Any, desired_channels: Any = -1, desired_samples: Any = -1, name: str | None = None
) -> _audio.DecodeWav:
    """The samples of a 16-bit WAV file, (samples, channels) between -1 and 1, and the number of them in a second.

    >>> audio, rate = tf.audio.decode_wav(tf.audio.encode_wav([[0.0], [0.5], [-1.0]], 8000))
    >>> audio.numpy().ravel(), int(rate)
    (array([ 0. ,  0.5, -1. ], dtype=float32), 8000)
    """
    return _audio.decode_wav(contents, desired_channels, desired_samples)


def encode_wav(audio: Any, sample_rate: Any, name: str | None = None) -> Tensor:
    """The contents of a 16-bit WAV file of samples (samples, channels) between -1 and 1."""
    return _audio.encode_wav(audio, sample_rate)


__getattr__ = missing(__name__, __all__)
