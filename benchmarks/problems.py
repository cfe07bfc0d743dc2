"""The problems every contestant gets: the same numbers, made with NumPy alone. Importable in any interpreter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LEARNING_RATE = 0.01


@dataclass(frozen=True)
class Training:
    """A regression: tanh layers of the given widths, mean squared error, SGD."""

    batch: int
    widths: tuple[int, ...]

    def arrays(self) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """Weights [kernel, bias, kernel, bias, …], inputs and targets, float32."""
        rng = np.random.default_rng(0)
        weights: list[np.ndarray] = []
        for n_in, n_out in zip(self.widths, self.widths[1:]):
            weights.append((rng.normal(size=(n_in, n_out)) / n_in**0.5).astype(np.float32))
            weights.append(np.zeros(n_out, np.float32))
        x = rng.normal(size=(self.batch, self.widths[0])).astype(np.float32)
        y = rng.normal(size=(self.batch, self.widths[-1])).astype(np.float32)
        return weights, x, y


@dataclass(frozen=True)
class Jacobian:
    """Two layers from ``inputs`` to ``outputs``: every output by every input."""

    inputs: int
    hidden: int
    outputs: int

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rng = np.random.default_rng(0)
        first = (rng.normal(size=(self.inputs, self.hidden)) / self.inputs**0.5).astype(np.float32)
        second = (rng.normal(size=(self.hidden, self.outputs)) / self.hidden**0.5).astype(np.float32)
        return first, second, rng.normal(size=(1, self.inputs)).astype(np.float32)


@dataclass(frozen=True)
class Convolution:
    """A square image of some channels through one layer of square filters, padded to keep its size."""

    batch: int
    length: int
    channels: int
    outputs: int
    size: int

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Images and filters, float32."""
        rng = np.random.default_rng(0)
        images = rng.normal(size=(self.batch, self.length, self.length, self.channels))
        filters = rng.normal(size=(self.size, self.size, self.channels, self.outputs)) / (self.size * self.channels**0.5)
        return images.astype(np.float32), filters.astype(np.float32)


@dataclass(frozen=True)
class Pipeline:
    """One pass over rows in random order, in batches."""

    rows: int
    width: int
    batch: int

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(0)
        return rng.random((self.rows, self.width), np.float32), rng.integers(10, size=self.rows)


@dataclass(frozen=True)
class Scan:
    """A recurrence h ← tanh(h·w + x) over ``steps`` inputs."""

    steps: int
    batch: int
    width: int

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """The matrix and the inputs, float32."""
        rng = np.random.default_rng(0)
        matrix = rng.normal(size=(self.width, self.width)) / (2 * self.width**0.5)
        return matrix.astype(np.float32), rng.normal(size=(self.steps, self.batch, self.width)).astype(np.float32)


@dataclass(frozen=True)
class Products:
    """A network of tanh layers, of which products with derivatives are taken."""

    batch: int
    widths: tuple[int, ...]

    def arrays(self) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """Kernels, inputs and a direction for the inputs, float32."""
        rng = np.random.default_rng(0)
        kernels = [rng.normal(size=(n, m)) / n**0.5 for n, m in zip(self.widths, self.widths[1:])]
        x, v = rng.normal(size=(2, self.batch, self.widths[0])).astype(np.float32)
        return [k.astype(np.float32) for k in kernels], x, v


PRODUCTS = Products(256, (32, 64, 64, 1))
EXAMPLES = Products(256, (16, 32, 32, 1))
ORDER = 6  # of a Taylor series
BAND = np.sin(np.arange(100_000))  # the state of a reaction with diffusion
TRAINING = {"tiny": Training(8, (4, 16, 16, 1)), "medium": Training(64, (784, 256, 256, 1))}
JACOBIAN = Jacobian(1000, 256, 100)
CONVOLUTION = Convolution(32, 32, 32, 64, 3)
PIPELINE = Pipeline(60000, 784, 128)
SCAN = Scan(1000, 8, 16)
