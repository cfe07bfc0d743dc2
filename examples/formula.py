"""Kepler's equation by Newton's method, with the derivative as a formula: recorded once, then run as plain NumPy.

python examples/formula.py        (needs SymPy: pip install 'gradtape[symbolic]')
"""

from __future__ import annotations

import argparse

import numpy as np
import sympy

import gradtape as tf
from gradtape.experimental import to_sympy


def kepler(anomaly: tf.Tensor, eccentricity: tf.Tensor, mean: tf.Tensor) -> tf.Tensor:
    """Zero where the planet is: E − e · sin E − M."""
    return anomaly - eccentricity * tf.sin(anomaly) - mean


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=8)
    options = parser.parse_args(arguments)

    sources = {"E": tf.constant(1.0), "e": tf.constant(0.5), "M": tf.constant(0.3)}
    with tf.GradientTape() as tape:
        tape.watch(sources)
        residual = kepler(*(sources[name] for name in ("E", "e", "M")))
    formula = to_sympy(tape, residual, sources)
    print("f     =", formula.value)
    print("∂f/∂E =", formula.gradients["E"])

    symbols = [formula.symbols[name] for name in ("E", "e", "M")]
    newton = sympy.lambdify(symbols, symbols[0] - formula.value / formula.gradients["E"])
    value = sympy.lambdify(symbols, formula.value)
    mean = np.linspace(0, 2 * np.pi, 1001)
    anomaly = mean + 0.6  # of a thousand planets at once
    for step in range(options.steps):
        anomaly = newton(anomaly, 0.6, mean)
        print(f"step {step}  largest |f| {np.abs(value(anomaly, 0.6, mean)).max():.1e}")
    return float(np.abs(value(anomaly, 0.6, mean)).max())


if __name__ == "__main__":
    main()
