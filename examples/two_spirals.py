"""Train a classifier on two interleaved spirals, then draw what it learned.

    python examples/two_spirals.py

A plain loop around a tape: no model class, no compiler, nothing below it but NumPy. Leaves two pictures in ``out/``.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from tqdm import trange

import gradtape as tf

INK, PAPER = "#22313f", "#fdfcf9"
BLUE, ORANGE = "#1f6f8b", "#e07a3f"


def two_spirals(count: int, noise: float = 0.1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """``count`` points on each of two spirals (float32, labels 0 and 1)."""
    rng = np.random.default_rng(seed)
    angle = 3.5 * np.pi * np.sqrt(rng.uniform(0.02, 1.0, count))
    arm = np.stack([angle * np.cos(angle), angle * np.sin(angle)], axis=1) / 4.0
    points = np.concatenate([arm, -arm]) + noise * rng.normal(size=(2 * count, 2))
    labels = np.repeat([0.0, 1.0], count)[:, None]
    return points.astype(np.float32), labels.astype(np.float32)


def make_layers(widths: list[int]) -> list[tuple[tf.Variable, tf.Variable]]:
    """One (kernel, bias) pair per layer, scaled so that signals keep their size."""
    return [
        (
            tf.Variable(tf.random.normal([n_in, n_out], stddev=np.sqrt(2.0 / n_in)), name=f"kernel_{i}"),
            tf.Variable(tf.zeros([n_out]), name=f"bias_{i}"),
        )
        for i, (n_in, n_out) in enumerate(pairwise(widths))
    ]


def logits_of(layers: list[tuple[tf.Variable, tf.Variable]], x: tf.Tensor) -> tf.Tensor:
    for kernel, bias in layers[:-1]:
        x = tf.nn.silu(x @ kernel + bias)
    kernel, bias = layers[-1]
    return x @ kernel + bias


def train(layers: list, points: np.ndarray, labels: np.ndarray, steps: int) -> list[float]:
    """The whole method: record the loss of a batch, ask for its gradients, apply them."""
    rng = np.random.default_rng(0)
    variables = [v for pair in layers for v in pair]
    optimizer = tf.optimizers.Adam(learning_rate=0.01)
    losses = []
    progress = trange(steps, desc="two spirals", unit="step", leave=True)
    for step in progress:
        batch = rng.integers(0, len(points), 128)
        with tf.GradientTape() as tape:
            logits = logits_of(layers, tf.constant(points[batch]))
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels[batch], logits=logits))
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables))
        losses.append(float(loss))
        if step % 50 == 0 or step == steps - 1:
            progress.set_postfix(loss=f"{losses[-1]:.4f}")
    return losses


def draw_loss(losses: list[float], path: Path) -> None:
    """The loss of every batch, faint, and its running geometric mean."""
    steps = np.arange(1, len(losses) + 1)
    width = max(1, len(losses) // 30)
    padded = np.pad(np.log(losses), width, mode="edge")
    smooth = np.exp(np.convolve(padded, np.full(2 * width + 1, 1 / (2 * width + 1)), mode="valid"))

    figure, axes = plt.subplots(figsize=(7.2, 4.2), dpi=150, facecolor=PAPER)
    axes.set_facecolor(PAPER)
    axes.plot(steps, losses, color=BLUE, linewidth=0.6, alpha=0.35)
    axes.plot(steps, smooth, color=BLUE, linewidth=2.2)
    axes.plot(steps[-1:], smooth[-1:], "o", color=BLUE, markersize=6, clip_on=False)
    axes.set(yscale="log", xlabel="step", ylabel="cross-entropy", xlim=(1, max(2, len(losses))))
    axes.set_title("Two spirals: training loss", loc="left", color=INK, fontsize=13, fontweight="bold", pad=24)
    axes.text(0, 1.03, f"from {losses[0]:.2f} to {smooth[-1]:.1g} in {len(losses)} steps", transform=axes.transAxes, color=INK)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(INK)
    axes.grid(which="major", color=INK, alpha=0.08)
    axes.tick_params(which="both", colors=INK)
    figure.tight_layout()
    figure.savefig(path, facecolor=PAPER)
    plt.close(figure)


def accuracy_on(layers: list, points: np.ndarray, labels: np.ndarray) -> float:
    return float(np.mean((logits_of(layers, tf.constant(points)).numpy() > 0) == (labels > 0.5)))


def draw_map(layers: list, points: np.ndarray, labels: np.ndarray, caption: str, path: Path) -> None:
    reach = 1.12 * np.abs(points).max()
    axis = np.linspace(-reach, reach, 360, dtype=np.float32)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    chance = tf.sigmoid(logits_of(layers, tf.constant(grid))).numpy().reshape(len(axis), len(axis))

    colors = LinearSegmentedColormap.from_list("spirals", ["#9fcbd8", "#f6f1e7", "#f3c3a2"])
    figure, axes = plt.subplots(figsize=(6.4, 6.7), dpi=150, facecolor=PAPER)
    axes.imshow(chance, extent=(-reach, reach) * 2, origin="lower", cmap=colors, vmin=0, vmax=1, interpolation="bilinear")
    axes.contour(axis, axis, chance, levels=[0.5], colors=[INK], linewidths=1.1, alpha=0.75)
    for label, color in ((0.0, BLUE), (1.0, ORANGE)):
        mine = points[labels[:, 0] == label]
        axes.scatter(mine[:, 0], mine[:, 1], s=16, color=color, edgecolor="white", linewidth=0.5)
    axes.set_title("Two spirals: what the network believes", loc="left", color=INK, fontsize=13, fontweight="bold", pad=24)
    axes.text(0, 1.02, caption, transform=axes.transAxes, color=INK)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, facecolor=PAPER)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args(arguments)

    tf.random.set_seed(0)
    points, labels = two_spirals(200)
    layers = make_layers([2, 32, 32, 1])
    losses = train(layers, points, labels, options.steps)
    seen = accuracy_on(layers, points, labels)
    unseen = accuracy_on(layers, *two_spirals(1000, seed=1))

    options.out.mkdir(parents=True, exist_ok=True)
    loss_png, map_png = options.out / "two_spirals_loss.png", options.out / "two_spirals_map.png"
    draw_loss(losses, loss_png)
    draw_map(layers, points, labels, f"accuracy {seen:.1%} on these points, {unseen:.1%} on unseen ones", map_png)
    print(f"accuracy      {seen:.1%} on the training points, {unseen:.1%} on unseen ones")
    print(f"loss curve    {loss_png}")
    print(f"decision map  {map_png}")
    return unseen


if __name__ == "__main__":
    main()
