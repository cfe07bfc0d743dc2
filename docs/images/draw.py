"""Draws the pictures of the documentation: `make docs`."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
INK, BLUE, ORANGE, PAPER = "#22313f", "#1f6f8b", "#e07a3f", "#fdfcf9"


def tape_svg() -> str:
    """y = sum(tanh(x · w)): what the forward pass writes and the gradient reads."""
    stations = [("x, w", ""), ("x @ w", "keeps x, w"), ("tanh", "keeps its result"), ("sum", "keeps a shape"), ("y", "")]
    cotangents = ["∂y/∂w", "∂y/∂(x·w)", "∂y/∂tanh", "1"]
    width, height, gap, box = 860, 238, 172, 104
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="Helvetica, Arial, sans-serif">',
        f'<rect width="{width}" height="{height}" rx="10" fill="{PAPER}"/>',
        '<defs><marker id="b" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0 10 5 0 10z" fill="{BLUE}"/></marker>',
        '<marker id="o" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0 10 5 0 10z" fill="{ORANGE}"/></marker></defs>',
        f'<text x="34" y="34" fill="{BLUE}" font-size="15" font-weight="bold">with tf.GradientTape() as tape: writes →</text>',
        f'<text x="{width - 34}" y="216" fill="{ORANGE}" font-size="15" font-weight="bold" text-anchor="end">'
        "← tape.gradient(y, w) reads</text>",
    ]
    for i, (name, kept) in enumerate(stations):
        x = 34 + i * gap
        record = 0 < i < len(stations) - 1
        fill = "#dcebf0" if record else "#ffffff"
        parts.append(f'<rect x="{x}" y="76" width="{box}" height="62" rx="8" fill="{fill}" stroke="{INK}" stroke-width="1.2"/>')
        y = 103 if kept else 112
        parts.append(f'<text x="{x + box / 2}" y="{y}" fill="{INK}" font-size="17" text-anchor="middle">{name}</text>')
        parts.append(f'<text x="{x + box / 2}" y="124" fill="{INK}" font-size="11" text-anchor="middle">{kept}</text>')
        if i + 1 < len(stations):
            a, b = x + box + 6, x + gap - 6
            parts.append(f'<path d="M{a} 94H{b}" stroke="{BLUE}" stroke-width="2" marker-end="url(#b)"/>')
            parts.append(f'<path d="M{b} 121H{a}" stroke="{ORANGE}" stroke-width="2" marker-end="url(#o)"/>')
            middle, label = (a + b) / 2, cotangents[i]
            parts.append(f'<text x="{middle}" y="158" fill="{ORANGE}" font-size="12" text-anchor="middle">{label}</text>')
    return "\n".join([*parts, "</svg>", ""])


def two_spirals_png(path: Path) -> None:
    """The two pictures of `make demo`, side by side."""
    import matplotlib.pyplot as plt
    import two_spirals

    parts = path.parent / "parts"
    two_spirals.main(["--out", str(parts)])
    images = [plt.imread(parts / f"two_spirals_{name}.png") for name in ("loss", "map")]
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), dpi=100, facecolor=PAPER, width_ratios=[1.55, 1.0])
    for ax, image in zip(axes, images):
        ax.imshow(image)
        ax.set_axis_off()
    figure.subplots_adjust(left=0.01, right=0.99, top=0.98, bottom=0.02, wspace=0.02)
    figure.savefig(path, facecolor=PAPER)
    for part in parts.iterdir():
        part.unlink()
    parts.rmdir()


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parents[1] / "examples"))
    import burgers
    import dcgan
    import reaction_diffusion
    import vae

    (HERE / "tape.svg").write_text(tape_svg())
    two_spirals_png(HERE / "two_spirals.png")
    burgers.main(["--out", str(HERE)])
    dcgan.main(["--out", str(HERE)])
    reaction_diffusion.main(["--out", str(HERE)])
    vae.main(["--out", str(HERE)])
