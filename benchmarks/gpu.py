"""Training steps on a GPU: `tf.function` against the same steps for `jax.jit`, PyTorch and torch.compile.

    PYTHONPATH=src python benchmarks/gpu.py              # all cases, all contestants that are installed
    PYTHONPATH=src python benchmarks/gpu.py --markdown   # the tables of docs/performance.md
    PYTHONPATH=src python benchmarks/gpu.py --small      # tiny sizes, to try the script where there is no GPU

Needs jax, numpy, scipy and ml_dtypes; PyTorch joins if it is there. Parameters and activations are bfloat16, sums, norms and
losses float32, the update is plain gradient descent. Each contestant keeps its parameters on the device, and turns of some
steps are taken one after the other, each ended by reading the loss; ratios are of medians over the rounds. Before that, all
must have found the same loss after five steps.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.45")  # the rest is PyTorch's

import numpy as np

RATE = 0.01
BUDGETS = {"jax.jit": 1.03, "PyTorch": 1.0, "torch.compile": 1.05}


@dataclass(frozen=True)
class Case:
    """A step: named parameters, one batch, and the loss in three dialects."""

    name: str
    parameters: dict[str, np.ndarray]
    batch: np.ndarray
    sizes: dict[str, int]


def _normal(generator: np.random.Generator, *shape: int) -> np.ndarray:
    fan_in = math.prod(shape[:-1])
    return (generator.standard_normal(shape, np.float32) / math.sqrt(fan_in)).astype(np.float32)


def cases(small: bool) -> list[Case]:
    rng = np.random.default_rng(0)
    width, rows, layers = (32, 16, 2) if small else (4096, 4096, 4)
    mlp = {f"w{i}": _normal(rng, width, width) for i in range(layers)} | {
        f"b{i}": np.zeros(width, np.float32) for i in range(layers)
    }
    examples, length, features, heads = (2, 16, 32, 2) if small else (16, 1024, 1024, 16)
    block = {
        "qkv": _normal(rng, features, 3 * features), "out": _normal(rng, features, features),
        "up": _normal(rng, features, 4 * features), "down": _normal(rng, 4 * features, features),
        "gain1": np.ones(features, np.float32), "bias1": np.zeros(features, np.float32),
        "gain2": np.ones(features, np.float32), "bias2": np.zeros(features, np.float32),
    }  # fmt: skip
    images, side, channels, blocks = (2, 8, 8, 1) if small else (128, 28, 128, 4)
    convolutions = {}
    for i in range(2 * blocks):
        convolutions[f"w{i}"] = _normal(rng, 3, 3, channels, channels)
        convolutions[f"gain{i}"] = np.ones(channels, np.float32)
        convolutions[f"bias{i}"] = np.zeros(channels, np.float32)
    draw = lambda *shape: rng.standard_normal(shape, np.float32)
    return [
        Case("MLP", mlp, draw(rows, width), {"layers": layers}),
        Case("transformer block", block, draw(examples, length, features), {"heads": heads}),
        Case("residual convolutions", convolutions, draw(images, side, side, channels), {"blocks": blocks}),
    ]


# gradtape


def with_gradtape(case: Case) -> Callable[[], Any]:
    import gradtape as tf

    def mlp(p: dict, x: Any) -> Any:
        for i in range(case.sizes["layers"]):
            x = tf.nn.relu(x @ p[f"w{i}"] + p[f"b{i}"])
        return x

    def norm(x: Any, gain: Any, bias: Any) -> Any:
        wide = tf.cast(x, tf.float32)
        mean, variance = tf.nn.moments(wide, -1, keepdims=True)
        return tf.cast((wide - mean) * tf.math.rsqrt(variance + 1e-5), tf.bfloat16) * gain + bias

    def transformer(p: dict, x: Any) -> Any:
        heads = case.sizes["heads"]
        batch, length, features = x.shape
        parts = tf.split(norm(x, p["gain1"], p["bias1"]) @ p["qkv"], 3, axis=-1)
        q, k, v = (tf.reshape(part, (batch, length, heads, features // heads)) for part in parts)
        mixed = tf.reshape(tf.nn.dot_product_attention(q, k, v, is_causal=True), (batch, length, features))
        x = x + mixed @ p["out"]
        hidden = tf.nn.gelu(norm(x, p["gain2"], p["bias2"]) @ p["up"], approximate=True)
        return x + hidden @ p["down"]

    def convolutions(p: dict, x: Any) -> Any:
        def layer(x: Any, i: int) -> Any:
            wide = tf.cast(tf.nn.conv2d(x, p[f"w{i}"], 1, "SAME"), tf.float32)
            mean, variance = tf.nn.moments(wide, (0, 1, 2))
            return tf.cast((wide - mean) * tf.math.rsqrt(variance + 1e-5), tf.bfloat16) * p[f"gain{i}"] + p[f"bias{i}"]

        for i in range(case.sizes["blocks"]):
            x = tf.nn.relu(x + layer(tf.nn.relu(layer(x, 2 * i)), 2 * i + 1))
        return x

    model = {"MLP": mlp, "transformer block": transformer, "residual convolutions": convolutions}[case.name]
    variables = {name: tf.Variable(tf.cast(value, tf.bfloat16)) for name, value in case.parameters.items()}
    optimizer = tf.optimizers.SGD(RATE)
    gpu = tf.config.list_physical_devices("GPU")
    with tf.device("/GPU:0" if gpu else "/CPU:0"):
        batch = tf.identity(tf.cast(case.batch, tf.bfloat16))

    @tf.function
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.cast(model(variables, x), tf.float32)))
        optimizer.apply_gradients(zip(tape.gradient(loss, list(variables.values())), variables.values()))
        return loss

    return lambda: step(batch)


# jax, by hand


def with_jax(case: Case) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    def mlp(p: dict, x: Any) -> Any:
        for i in range(case.sizes["layers"]):
            x = jax.nn.relu(x @ p[f"w{i}"] + p[f"b{i}"])
        return x

    def norm(x: Any, gain: Any, bias: Any) -> Any:
        wide = x.astype(jnp.float32)
        mean, variance = wide.mean(-1, keepdims=True), wide.var(-1, keepdims=True)
        return ((wide - mean) * jax.lax.rsqrt(variance + 1e-5)).astype(jnp.bfloat16) * gain + bias

    fused = "cudnn" if jax.default_backend() == "gpu" else "xla"

    def transformer(p: dict, x: Any) -> Any:
        heads = case.sizes["heads"]
        batch, length, features = x.shape
        parts = jnp.split(norm(x, p["gain1"], p["bias1"]) @ p["qkv"], 3, axis=-1)
        q, k, v = (part.reshape(batch, length, heads, features // heads) for part in parts)
        mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation=fused)
        x = x + mixed.reshape(batch, length, features) @ p["out"]
        hidden = jax.nn.gelu(norm(x, p["gain2"], p["bias2"]) @ p["up"], approximate=True)
        return x + hidden @ p["down"]

    def convolutions(p: dict, x: Any) -> Any:
        def layer(x: Any, i: int) -> Any:
            wide = jax.lax.conv_general_dilated(x, p[f"w{i}"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            wide = wide.astype(jnp.float32)
            mean, variance = wide.mean((0, 1, 2)), wide.var((0, 1, 2))
            scaled = ((wide - mean) * jax.lax.rsqrt(variance + 1e-5)).astype(jnp.bfloat16)
            return scaled * p[f"gain{i}"] + p[f"bias{i}"]

        for i in range(case.sizes["blocks"]):
            x = jax.nn.relu(x + layer(jax.nn.relu(layer(x, 2 * i)), 2 * i + 1))
        return x

    model = {"MLP": mlp, "transformer block": transformer, "residual convolutions": convolutions}[case.name]

    def loss_of(p: dict, x: Any) -> Any:
        return jnp.mean(jnp.square(model(p, x).astype(jnp.float32)))

    def update(p: dict, x: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(p, x)
        return loss, {name: value - jnp.asarray(RATE, jnp.bfloat16) * gradients[name] for name, value in p.items()}

    compiled = jax.jit(update, donate_argnums=0)
    parameters = {name: jnp.asarray(value, jnp.bfloat16) for name, value in case.parameters.items()}
    batch = jnp.asarray(case.batch, jnp.bfloat16)

    def step() -> Any:
        nonlocal parameters
        loss, parameters = compiled(parameters, batch)
        return loss

    return step


# PyTorch


def with_torch(case: Case, compiled: bool) -> Callable[[], Any]:
    import torch
    from torch.nn import functional as F

    device = "cuda" if torch.cuda.is_available() else "cpu"
    images = case.name == "residual convolutions"

    def mlp(p: dict, x: Any) -> Any:
        for i in range(case.sizes["layers"]):
            x = torch.relu(torch.addmm(p[f"b{i}"], x, p[f"w{i}"]))
        return x

    def transformer(p: dict, x: Any) -> Any:
        heads = case.sizes["heads"]
        batch, length, features = x.shape
        parts = (F.layer_norm(x, (features,), p["gain1"], p["bias1"]) @ p["qkv"]).split(features, -1)
        q, k, v = (part.view(batch, length, heads, features // heads).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + mixed.transpose(1, 2).reshape(batch, length, features) @ p["out"]
        hidden = F.gelu(F.layer_norm(x, (features,), p["gain2"], p["bias2"]) @ p["up"], approximate="tanh")
        return x + hidden @ p["down"]

    def convolutions(p: dict, x: Any) -> Any:
        def layer(x: Any, i: int) -> Any:
            return F.batch_norm(F.conv2d(x, p[f"w{i}"], padding=1), None, None, p[f"gain{i}"], p[f"bias{i}"], True)

        for i in range(case.sizes["blocks"]):
            x = torch.relu(x + layer(torch.relu(layer(x, 2 * i)), 2 * i + 1))
        return x

    def placed(value: np.ndarray) -> Any:
        tensor = torch.tensor(value, device=device).to(torch.bfloat16)
        if tensor.dim() == 4:
            order = (3, 2, 0, 1) if tensor.shape[0] == 3 else (0, 3, 1, 2)
            return tensor.permute(order).contiguous(memory_format=torch.channels_last)
        return tensor

    model = {"MLP": mlp, "transformer block": transformer, "residual convolutions": convolutions}[case.name]
    parameters = {name: placed(value).requires_grad_() for name, value in case.parameters.items()}
    batch = placed(case.batch) if images else torch.tensor(case.batch, device=device).to(torch.bfloat16)
    optimizer = torch.optim.SGD(parameters.values(), RATE, foreach=True)

    def loss_of(x: Any) -> Any:
        return model(parameters, x).float().square().mean()

    forward = torch.compile(loss_of) if compiled else loss_of

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        loss = forward(batch)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


# Taking turns


def contestants(case: Case, wanted: set[str]) -> dict[str, Callable[[], Any]]:
    found = {"gradtape": with_gradtape(case), "jax.jit": with_jax(case)}
    try:
        import torch  # noqa: F401
    except ImportError:
        return found
    if "PyTorch" in wanted:
        found["PyTorch"] = with_torch(case, compiled=False)
    if "torch.compile" in wanted:
        found["torch.compile"] = with_torch(case, compiled=True)
    return found


def seconds(step: Callable[[], Any], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        loss = step()
    float(loss)
    return (time.perf_counter() - start) / count


def measured(case: Case, wanted: set[str], rounds: int, turn: float) -> dict[str, list[float]]:
    steps = contestants(case, wanted)
    losses = {name: [float(step()) for _ in range(5)][-1] for name, step in steps.items()}
    reference = losses["jax.jit"]
    for name, loss in losses.items():
        if not math.isclose(loss, reference, rel_tol=0.03):
            raise SystemExit(f"{case.name}: {name} has the loss {loss}, jax.jit {reference}")
    counts = {name: max(1, round(turn / min(seconds(step, 5) for _ in range(3)))) for name, step in steps.items()}
    samples: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            samples[name].append(seconds(step, counts[name]))
    return samples


def device_name() -> str:
    import jax

    device = jax.devices()[0]
    return f"{device.device_kind}, jax {jax.__version__}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="tiny sizes, to try the script")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--turn", type=float, default=0.25, help="seconds per turn")
    parser.add_argument("--case", action="append", help="part of a case's name; repeatable")
    parser.add_argument("--without", action="append", default=[], help="a contestant to leave out; repeatable")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    wanted = set(BUDGETS) - set(options.without)
    print(f"on {device_name()}", flush=True)
    if options.markdown:
        print("| step | gradtape, ms | " + " | ".join(f"÷ {name} (≤ {limit})" for name, limit in BUDGETS.items()) + " |")
        print("|---|---|" + "---|" * len(BUDGETS))
    for case in cases(options.small):
        if options.case and not any(part in case.name for part in options.case):
            continue
        samples = measured(case, wanted, options.rounds, options.turn)
        ours = statistics.median(samples["gradtape"])
        ratios = {name: ours / statistics.median(times) for name, times in samples.items() if name != "gradtape"}
        if options.markdown:
            cells = [f"{ratios[name]:.3f}" if name in ratios else "" for name in BUDGETS]
            print(f"| {case.name} | {ours * 1e3:.2f} | " + " | ".join(cells) + " |", flush=True)
            continue
        for name, value in ratios.items():
            spread = [a / b for a, b in zip(samples["gradtape"], samples[name])]
            details = f"budget {BUDGETS[name]}; rounds {min(spread):.3f} to {max(spread):.3f}; {ours * 1e3:.2f} ms"
            print(f"{case.name:22} ÷ {name:14} {value:6.3f}  ({details})", flush=True)


if __name__ == "__main__":
    main()
