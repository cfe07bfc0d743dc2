"""Fourier transforms along one axis of NumPy arrays; single precision stays single."""

from __future__ import annotations

import numpy as np

# NOTE: np.fft loads when it is first touched (2 ms), so it is touched inside the functions. Arrays without elements are left
# alone: NumPy refuses an axis of length 0.


def fft(x, *, axis):
    return np.fft.fft(x, axis=axis) if x.size else x


def ifft(x, *, axis):
    return np.fft.ifft(x, axis=axis) if x.size else x


def rfft(x, *, axis):
    """The frequencies 0 … n // 2 of a real signal of length n."""
    return np.fft.rfft(x, axis=axis)


def irfft(x, *, axis, n):
    """The real signal of length n with the given frequencies 0 … n // 2."""
    return np.fft.irfft(x, n, axis=axis)
