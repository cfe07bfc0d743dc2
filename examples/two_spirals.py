"""Train a classifier on two interleaved spirals, then draw what it learned.

    python examples/two_spirals.py

A plain loop around a tape: no model class, no compiler, nothing below it but NumPy. Leaves two pictures in ``out/``.
"""

from __future__ import annotations

import argparse
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


def two_spirals(count: int, noise: float = 0.08, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
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
        for i, (n_in, n_out) in enumerate(zip(widths, widths[1:]))
    ]


def logits_of(layers: list[tuple[tf.Variable, tf.Variable]], x: tf.Tensor) -> tf.Tensor:
    for kernel, bias in layers[:-1]:
        x = tf.nn.relu(x @ kernel + bias)
    kernel, bias = layers[-1]
    return x @ kernel + bias


def train(layers: list, x: tf.Tensor, labels: tf.Tensor, steps: int) -> list[float]:
    """The whole method: record the loss, ask for its gradients, apply them."""
    variables = [v for pair in layers for v in pair]
    optimizer = tf.optimizers.Adam(learning_rate=0.01)
    losses = []
    progress = trange(steps, desc="two spirals", unit="step", leave=True)
    for step in progress:
        with tf.GradientTape() as tape:
            logits = logits_of(layers, x)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables))
        losses.append(float(loss))
        if step % 25 == 0 or step == steps - 1:
            progress.set_postfix(loss=f"{losses[-1]:.4f}")
    return losses


def draw_loss(losses: list[float], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(7.2, 4.2), dpi=150, facecolor=PAPER)
    axes.set_facecolor(PAPER)
    steps = np.arange(1, len(losses) + 1)
    axes.plot(steps, losses, color=BLUE, linewidth=1.6)
    axes.fill_between(steps, losses, min(losses) * 0.5, color=BLUE, alpha=0.10, linewidth=0)
    axes.annotate(
        f"{losses[-1]:.4f}", (steps[-1], losses[-1]), xytext=(0, 9), textcoords="offset points",
        color=BLUE, ha="right", fontsize=10, fontweight="bold",
    )  # fmt: skip
    axes.set(yscale="log", xlabel="step", ylabel="cross-entropy", xlim=(1, max(2, len(losses))), ylim=(min(losses) * 0.5, None))
    axes.set_title("Two spirals: training loss", loc="left", color=INK, fontsize=13, fontweight="bold", pad=12)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(which="major", color=INK, alpha=0.08)
    axes.tick_params(colors=INK)
    figure.tight_layout()
    figure.savefig(path, facecolor=PAPER)
    plt.close(figure)


def draw_map(layers: list, points: np.ndarray, labels: np.ndarray, accuracy: float, path: Path) -> None:
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
    axes.text(0, 1.02, f"accuracy {accuracy:.1%} on {len(points)} points · line: undecided", transform=axes.transAxes, color=INK)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, facecolor=PAPER)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args(arguments)

    tf.random.set_seed(0)
    points, labels = two_spirals(200)
    x, y = tf.constant(points), tf.constant(labels)
    layers = make_layers([2, 64, 64, 1])
    losses = train(layers, x, y, options.steps)
    accuracy = float(np.mean((logits_of(layers, x).numpy() > 0) == (labels > 0.5)))

    options.out.mkdir(parents=True, exist_ok=True)
    loss_png, map_png = options.out / "two_spirals_loss.png", options.out / "two_spirals_map.png"
    draw_loss(losses, loss_png)
    draw_map(layers, points, labels, accuracy, map_png)
    print(f"accuracy      {accuracy:.1%}")
    print(f"loss curve    {loss_png}")
    print(f"decision map  {map_png}")
    return accuracy


if __name__ == "__main__":
    main()
