"""Pulses that divide: a stiff reaction-diffusion equation by an implicit method, with sparse Jacobians.

    python examples/reaction_diffusion.py

The Gray-Scott equations on a line. Each time step solves a nonlinear system by Newton's method; its Jacobian has four numbers
a row. The pattern is read from a recording once, coloured once, and then every Jacobian costs as many products as there
are colours, whatever the number of unknowns. Leaves a picture in ``out/`` if matplotlib is there.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.sparse import eye_array
from scipy.sparse.linalg import spsolve

import gradtape as tf

CELLS, LENGTH = 600, 60.0
FEED, KILL = 0.04, 0.08
DIFFUSION = np.array([[1.0], [0.01]])


def rate(state: tf.Tensor) -> tf.Tensor:
    """du/dt and dv/dt of the two substances, [2, CELLS], on a ring."""
    u, v = state[0], state[1]
    curvature = (tf.roll(state, 1, axis=1) - 2.0 * state + tf.roll(state, -1, axis=1)) * (CELLS / LENGTH) ** 2
    reaction = u * v * v
    return tf.stack([FEED * (1.0 - u) - reaction, reaction - KILL * v]) + DIFFUSION * curvature


def implicit_step(state: tf.Tensor, step: float, colors: tf.autodiff.Coloring) -> tuple[tf.Tensor, int]:
    """Solve new = state + step · rate(new) by Newton's method; also how many iterations it took."""
    new, identity = state, eye_array(2 * CELLS, format="csr")
    for iteration in range(1, 21):
        with tf.GradientTape() as tape:
            tape.watch(new)
            change = rate(new)
        jacobian = tape.sparse_jacobian(change, new, colors)
        residual = (new - state - step * change).numpy().ravel()
        update = spsolve((identity - step * jacobian).tocsc(), residual)
        new = new - update.reshape(2, CELLS)
        if np.abs(update).max() < 1e-8:
            return new, iteration
    raise RuntimeError("Newton's method did not converge; take smaller steps")


def start() -> tf.Tensor:
    """Everything at rest, but for one pulse in the middle."""
    x = np.linspace(0.0, LENGTH, CELLS, endpoint=False) - LENGTH / 2
    bump = np.exp(-((x / 1.5) ** 2))
    return tf.constant(np.stack([1.0 - 0.5 * bump, 0.5 * bump]))


def draw(history: np.ndarray, duration: float, path: Path) -> None:
    """Where the second substance is, at what time."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.colors import LinearSegmentedColormap

    ink, paper = "#22313f", "#fdfcf9"
    colors = LinearSegmentedColormap.from_list("pulses", [paper, "#9fcbd8", "#1f6f8b", ink])
    figure, axes = plt.subplots(figsize=(7.2, 5.4), dpi=120, facecolor=paper)
    axes.imshow(history, aspect="auto", cmap=colors, extent=(0, LENGTH, duration, 0), interpolation="bilinear")
    axes.set(xlabel="place", ylabel="time")
    axes.set_title("Gray-Scott: one pulse becomes many", loc="left", color=ink, fontsize=13, fontweight="bold")
    axes.spines[:].set_visible(False)
    axes.tick_params(colors=ink)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, facecolor=paper)
    plt.close(figure)
    print(f"picture             {path}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--size", type=float, default=2.0, help="length of a time step")
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args(arguments)

    state = start()
    colors = tf.autodiff.coloring(tf.autodiff.jacobian_sparsity(rate, state))
    print(colors)
    history, iterations = [state[1].numpy()], 0
    for _ in range(options.steps):
        state, needed = implicit_step(state, options.size, colors)
        history.append(state[1].numpy())
        iterations += needed
    v = history[-1]
    pulses = int(np.sum((v > 0.05) & (v >= np.roll(v, 1)) & (v > np.roll(v, -1))))

    stable = (LENGTH / CELLS) ** 2 / (2 * DIFFUSION.max())
    duration = options.steps * options.size
    print(f"implicit steps      {options.steps} of length {options.size:g}, {iterations / options.steps:.1f} Jacobians each")
    print(f"explicit ones       {duration / stable:,.0f} would be needed: longer than {stable:.4f} they explode")
    print(f"pulses              1 at the start, {pulses} at time {duration:g}")
    try:
        draw(np.array(history), duration, options.out / "reaction_diffusion.png")
    except ImportError:
        print("matplotlib is not installed: no picture")
    return pulses


if __name__ == "__main__":
    main()
