"""Fourier transforms along one axis of NumPy arrays; single precision stays single."""

from __future__ import annotations

import numpy as np


def _along(transform):
    """A transform that leaves arrays without elements alone: NumPy refuses an axis of length 0."""

    def call(x, *, axis):
        return transform(x, axis=axis) if x.size else x

    return call


fft, ifft = _along(np.fft.fft), _along(np.fft.ifft)


def rfft(x, *, axis):
    """The frequencies 0 … n // 2 of a real signal of length n."""
    return np.fft.rfft(x, axis=axis)


def irfft(x, *, axis, n):
    """The real signal of length n with the given frequencies 0 … n // 2."""
    return np.fft.irfft(x, n, axis=axis)
