"""`tf.function` against the same step written by hand for `jax.jit` with donated parameters.

    python benchmarks/compiled.py            # one table of ratios
    python benchmarks/compiled.py --rounds 15

Contestants take turns as in `run.py`. Both wait for their result: tensors of a function are NumPy arrays when it returns.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from contestants import JACOBIAN, TRAINING, tensorflow_step, with_jax
from timing import Here, interleaved, ratio

BUDGETS = {"tiny": 1.5, "medium": 1.05, "jacobian": 1.1}


def with_function() -> dict[str, Callable]:
    import gradtape as tf

    first, second, x = (tf.constant(a) for a in JACOBIAN.arrays())

    @tf.function
    def jacobian(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            out = tf.tanh(tf.tanh(x @ first) @ second)
        return tape.jacobian(out, x)

    steps = {name: tf.function(tensorflow_step(tf, name)) for name in TRAINING}
    return {**steps, "jacobian": lambda: jacobian(x)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--sample", type=float, default=0.02, help="seconds per turn")
    options = parser.parse_args()
    by_hand = {name: _waiting(step) for name, step in with_jax().items()}
    contestants = {"function": Here(with_function()), "by hand": Here(by_hand)}
    for case, budget in BUDGETS.items():
        calls = 1 if case == "jacobian" else 5
        one, two = (np.asarray(c.result(case, calls)) for c in contestants.values())
        np.testing.assert_allclose(one.reshape(two.shape), two, 1e-3, 1e-5)
        samples = interleaved(contestants, lambda _, case=case: case, options.rounds, options.sample)
        value, low, high = ratio(samples["function"], samples["by hand"])
        micros = ", ".join(f"{name} {np.median(s) * 1e6:.0f} µs" for name, s in samples.items())
        spread = f"rounds {low:.2f} to {high:.2f}; {micros}"
        print(f"{case:10} under function ÷ jax.jit by hand  {value:5.2f}  (budget {budget}; {spread})")


def _waiting(step: Callable) -> Callable:
    return lambda: np.asarray(step())


if __name__ == "__main__":
    main()
