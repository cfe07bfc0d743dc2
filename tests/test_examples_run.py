"""Every example runs, and the ones that promise a result reach it."""

from __future__ import annotations

import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as tf

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
EAGER_TOO = [path for path in EXAMPLES if '"--eager"' in path.read_text()]


def run(path: Path, *arguments: str) -> Any:
    return runpy.run_path(str(path))["main"](list(arguments))


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example_runs(path: Path) -> None:
    run(path, "--steps", "2")


@pytest.mark.parametrize("path", EAGER_TOO, ids=lambda p: p.stem)
def test_example_runs_eagerly(path: Path, tmp_path: Path) -> None:
    run(path, "--steps", "2", "--eager")
    if '"--out"' in path.read_text():
        assert (tmp_path / "out" / f"{path.stem}.png").read_bytes().startswith(b"\x89PNG")


def test_every_example_is_listed() -> None:
    listed = (ROOT / "examples" / "README.md").read_text()
    assert [p.name for p in EXAMPLES if p.name not in listed] == []


PROMISES = {
    "two_spirals": lambda unseen: unseen > 0.97,
    "linear_regression": lambda line: abs(line[0] - 3) < 0.1 and abs(line[1] - 2) < 0.1,
    "newton": lambda value: value < 1e-12,
    "training_loop": lambda error: error < 0.3,
    "pinn": lambda error: error < 0.05,
    "maml": lambda losses: losses[1] < 0.6 * losses[0],
    "mixed_precision": lambda left: left[0] > 0.9 and left[1] < 0.3,
    "numpy_simulator": lambda found: abs(found[0] - 4.0) < 0.1 and abs(found[1] - 0.3) < 0.05,
    "formula": lambda residual: residual < 1e-12,
    "two_models": lambda made: abs(made[0] - 3.0) < 0.3 and abs(made[1] - 0.5) < 0.2,
    "conv_net": lambda accuracy: accuracy > 0.9,
    "vae": lambda explained: explained > 0.95,
    "per_example_gradients": lambda found: found[0] > 0.95 and found[1] > 0.8,
    "curvature": lambda largest: abs(largest[0] / largest[1] - 1) < 1e-8,
    "reaction_diffusion": lambda pulses: pulses == 8,
    "look_inside": lambda share: share < 0.05,
}


@pytest.mark.parametrize("name", PROMISES)
def test_example_keeps_its_promise(name: str) -> None:
    assert PROMISES[name](run(ROOT / "examples" / f"{name}.py"))


KERAS_PROMISES = {
    "digits": lambda accuracy: accuracy > 0.96,
    "dcgan": lambda judged: judged[0] > 0.3 and judged[1] >= 8,
    "wgan_gp": lambda judged: judged[0] > 0.85 and judged[1] == 8,
    "burgers": lambda error: error < 0.03,
    "cartpole": lambda moves: moves > 250,
    "saliency": lambda shares: shares[0] > 0.9 and shares[1] - shares[2] > 0.4,
    "character_lstm": lambda learned: learned[0] < 0.2 and learned[1] > 300,
    "transformer": lambda right: right > 0.98,
    "jacobian_monitor": lambda along: along[1] > along[0] + 0.15,
    "mixed_precision_keras": lambda learned: learned[0] > 0.95 and learned[1] <= 2.0**17,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KERAS_PROMISES)
def test_keras_example_keeps_its_promise(name: str) -> None:
    assert KERAS_PROMISES[name](run(ROOT / "examples" / f"{name}.py"))


def test_interrupted_training_goes_on_bit_for_bit(tmp_path: Path) -> None:
    training = runpy.run_path(str(ROOT / "examples" / "conv_net.py"))["Training"]

    def trained(folder: Path, *stops: int) -> list[np.ndarray]:
        tf.random.set_seed(0)
        for stop in stops:
            made_anew = training(str(folder))
            made_anew.run(until=stop)
        return [v.numpy() for v in made_anew.net.trainable_variables]

    straight, interrupted = trained(tmp_path / "straight", 8), trained(tmp_path / "interrupted", 3, 8)
    assert all(map(np.array_equal, straight, interrupted))


def test_example_leaves_its_picture(tmp_path: Path) -> None:
    run(ROOT / "examples" / "reaction_diffusion.py", "--steps", "2")
    assert (tmp_path / "out" / "reaction_diffusion.png").read_bytes().startswith(b"\x89PNG")


def test_demo_leaves_its_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(ROOT / "examples" / "two_spirals.py", "--steps", "2")
    printed = capsys.readouterr().out
    for name in ("out/two_spirals_loss.png", "out/two_spirals_map.png"):
        assert name in printed
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_benchmarks_compare_equals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    from contestants import with_gradtape, with_numpy
    from run import check_agreement
    from timing import Here

    check_agreement({"gradtape": Here(with_gradtape()), "NumPy by hand": Here(with_numpy())})


@pytest.mark.slow
def test_benchmarks_run(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "run.py"), "--quick", "--rounds", "2", "--json", "bench.json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "÷ NumPy by hand" in done.stdout
    assert "skipped" in done.stdout or "TensorFlow" in done.stdout
    assert (tmp_path / "bench.json").exists()
