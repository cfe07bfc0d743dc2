"""Samples of the Fourier transforms, and of the derivative of gamma samples."""

from __future__ import annotations


def add_transforms(add, floats, complexes):
    for name in ("fft", "ifft"):
        add(name, complexes(2, 4), axis=1)
        add(name, complexes(3, 2), axis=-2)
        add(name, complexes(5, dtype="complex64"), axis=0, tolerance=1e-5)
    add("rfft", floats(2, 4), axis=1)
    add("rfft", floats(3, 2), axis=-2)
    add("rfft", floats(5, dtype="float32"), axis=0, tolerance=1e-5)
    add("irfft", complexes(2, 3), axis=1, n=4)
    add("irfft", complexes(3, 2), axis=-2, n=5)
    add("irfft", complexes(3, dtype="complex64"), axis=0, n=5, tolerance=1e-5)
    add("gamma_sample", floats(3, low=0.5, high=4), floats(2, 3, low=0.2, high=5))
    parameters = floats(), floats(low=0.5), floats(1, high=-1.0), floats(3, low=1.0)
    add("truncated_sample", *parameters, floats(3, low=0.1, high=0.9), floats(3))
    # XLA integrates a series of its own.
    add("random_gamma_grad", floats(2, 3, low=0.5, high=4), floats(2, 3, low=0.2, high=5), tolerance=1e-9)
    add("random_gamma_grad", floats(3, low=0.5, high=4, dtype="float32"), floats(3, low=0.2, dtype="float32"), tolerance=1e-4)
