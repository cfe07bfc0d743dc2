"""Fourier transforms along one axis of jax arrays."""

from __future__ import annotations

import jax.numpy as jnp


def fft(x, *, axis):
    return jnp.fft.fft(x, axis=axis) if x.size else jnp.asarray(x)


def ifft(x, *, axis):
    return jnp.fft.ifft(x, axis=axis) if x.size else jnp.asarray(x)


def rfft(x, *, axis):
    return jnp.fft.rfft(x, axis=axis)


def irfft(x, *, axis, n):
    return jnp.fft.irfft(x, n, axis=axis)
