"""Draws the pictures of pictures.md and monitoring.md; needs Graphviz, Chromium and playwright.

python docs/images/screenshots.py
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SHOTS = {  # name: colour scheme, and what to do first
    "page": ("light", "gradtape.view.moveTo(gradtape.view.x, gradtape.view.y, false)"),
    "page_op": ("dark", "gradtape.reveal(gradtape.tape.nodes.findIndex((n) => n.name === 'relu'))"),
    "page_modules": ("light", "gradtape.setLevel(3); gradtape.setColour('gradient')"),
}


def shoot(page: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (scheme, action) in SHOTS.items():
            view = browser.new_page(viewport={"width": 1280, "height": 760}, color_scheme=scheme, reduced_motion="reduce")
            view.goto(page.as_uri())
            view.evaluate(action)
            view.wait_for_timeout(300)
            view.screenshot(path=HERE / f"{name}.png")
        browser.close()


def small_tape() -> None:
    """The picture of a tape that fits a page of text."""
    import numpy as np

    import gradtape as tf

    x = tf.constant(np.linspace(-1, 1, 24).reshape(8, 3), dtype="float32")
    w = tf.Variable(np.ones((3, 2)) / 3, dtype="float32", name="w")
    b = tf.Variable([0.1, 0.2], name="b")
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.tanh(x @ w + b) - 0.5) ** 2)
    tape.draw(HERE / "draw.svg", loss, layout="layered")


if __name__ == "__main__":
    os.chdir(HERE.parents[1])  # the page shows paths from here
    sys.path.insert(0, str(HERE.parents[1] / "examples"))
    import look_inside

    with tempfile.TemporaryDirectory() as folder:
        look_inside.main(["--out", folder])
        shoot(Path(folder) / "tape.html")
        shutil.copy(Path(folder) / "gradients.png", HERE / "monitor.png")
    small_tape()
