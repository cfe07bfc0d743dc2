"""What devices promise, checked on a real one: ``PYTHONPATH=src python tools/gpu_check.py``; one line per promise.

Needs jax, numpy, scipy and ml_dtypes, and neither pytest nor an installed gradtape. Without a GPU, ``--device CPU:1`` divides
the CPU into three devices and takes the second for the accelerator.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--device", default="GPU:0")
parser.add_argument("--width", type=int, default=1024, help="of the network that is timed")
parser.add_argument("--steps", type=int, default=100, help="to time")
options = parser.parse_args()
ON_CPU = options.device.startswith("CPU")
if ON_CPU:
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=3"

import numpy as np  # noqa: E402

import gradtape as tf  # noqa: E402
from gradtape.values.tensor import JaxTensor  # noqa: E402

NAME = "/" + options.device
FULL = f"/job:localhost/replica:0/task:0/device:{options.device}"
HOST = "/job:localhost/replica:0/task:0/device:CPU:0"
CHECKS: list[tuple[str, Callable[[], Any]]] = []


def check(promise: str) -> Callable:
    def add(function: Callable) -> Callable:
        CHECKS.append((promise, function))
        return function

    return add


def expect(condition: Any, *what: Any) -> None:
    if not condition:
        raise AssertionError(" ".join(map(str, what)))


def is_on(device: str, *values: Any) -> None:
    for value in values:
        expect(value.device == device, f"{value.device}, not {device}: {value!r}"[:300])


def close(received: Any, wanted: Any, tolerance: float = 2e-3) -> None:  # float32 products may run in TensorFloat-32
    np.testing.assert_allclose(np.asarray(received), np.asarray(wanted), rtol=tolerance, atol=tolerance)


def raises(kind: type[BaseException], words: str, function: Callable) -> None:
    try:
        function()
    except kind as error:
        expect(words in str(error), f"{words!r} is not in {error}")
        return
    raise AssertionError(f"no {kind.__name__}")


def numbers(*shape: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def programs() -> int:
    from gradtape.ops import compiled

    return compiled.BACKWARD.made


# Names and placement


@check("devices are listed, and all spellings of a name are the same device")
def _names() -> str:
    kind, _ = options.device.split(":")
    expect(f"/device:{options.device}" in [d.name for d in tf.config.list_logical_devices(kind)])
    for name in (NAME, NAME.lower(), options.device, options.device.lower(), f"/device:{options.device}", FULL):
        with tf.device(name):
            is_on(FULL, tf.constant(1.0))
    with tf.device(NAME):
        with tf.device(None), tf.device("/CPU:0"):
            is_on(HOST, tf.constant(1.0))
        with tf.device("/job:localhost"), tf.device(""):
            is_on(FULL, tf.constant(1.0))
    is_on(HOST, tf.constant(1.0))
    return ", ".join(d.name for d in tf.config.list_physical_devices())


@check("constants, variables, ops, random numbers and conversions are placed on the device")
def _placed() -> None:
    x = tf.constant(numbers(4, 4))
    with tf.device(NAME):
        v = tf.Variable(x)
        values = [
            tf.constant([1.0]), tf.convert_to_tensor(numbers(3)), tf.identity(x), x + x, x @ x, tf.nn.softmax(x), tf.zeros([2]),
            tf.range(3), tf.random.normal([3]), tf.random.uniform([3]), tf.reduce_sum(x), v + 1.0, tf.cast(x, tf.int32), v,
        ]  # fmt: skip
    is_on(FULL, *values)
    is_on(FULL, v * 2.0, v.read_value(), tf.reduce_mean(v))
    expect(all(type(t) is JaxTensor for t in values[:-1]))


@check("copies: identity under a scope, cpu(), gpu(); numpy() and float() come to the host")
def _copies() -> None:
    x = numbers(3, 3)
    with tf.device(NAME):
        there = tf.identity(tf.constant(x))
    with tf.device("/CPU:0"):
        back = tf.identity(there)
    is_on(FULL, there)
    is_on(HOST, back, there.cpu())
    if not ON_CPU:
        is_on(FULL, tf.constant(x).gpu(), tf.constant(x).gpu(0))
    close(back, x, 0)
    expect(type(there.numpy()) is np.ndarray and isinstance(float(tf.reduce_sum(there)), float))
    expect("numpy=" in repr(there) and "Tensor(" in str(there), repr(there))


@check("mixed operands: arrays on the host are copied to the device, silently")
def _mixed() -> None:
    a, b = numbers(64, 64), numbers(64, 64, seed=1)
    with tf.device(NAME):
        there = tf.constant(a)
    here = tf.constant(b)
    for result, wanted in ((there + here, a + b), (here - there, b - a), (there @ here, a @ b), (there * 2.0, a * 2)):
        is_on(FULL, result)
        close(result, wanted, 0.05 if result.shape == (64, 64) else 1e-6)
    is_on(FULL, there + b, tf.where(here > 0, there, 0.0), tf.concat([here, there], 0))
    with tf.device("/CPU:0"):
        is_on(HOST, there + here)


@check("float64, int64, complex128, float16, bfloat16 and bool stay what they are; jax's own setting is untouched")
def _precision() -> None:
    import jax.numpy as jnp

    for dtype in ("float64", "int64", "uint8", "complex64", "complex128", "float16", "bool"):
        value = np.array([1, 0, 3]).astype(dtype)
        with tf.device(NAME):
            t = tf.constant(value)
        expect(t.dtype == dtype and tf.identity(t).dtype == dtype and tf.stack([t, t]).dtype == dtype, dtype)
        expect((t.numpy() == value).all() and t.numpy().dtype == dtype)
        if dtype != "bool":
            expect((t + t).dtype == (t * 2).dtype == tf.reduce_sum(t).dtype == dtype, dtype)
    third = np.float64(1) / 3
    with tf.device(NAME):
        expect(float(tf.constant(third) * 1.0) == third, "float64 was rounded")
        expect(int(tf.constant(2**40 + 1) + 1) == 2**40 + 2)
        half = tf.cast(tf.constant([1.5]), tf.bfloat16) * 2
    expect(half.dtype is tf.bfloat16 and float(half[0]) == 3.0)
    expect(jnp.asarray(1.0).dtype == np.float32, "the user's jax has become 64-bit")


# Gradients


@check("gradients flow through copies, and the cotangent comes back to where its source is")
def _gradients() -> None:
    a, b = numbers(8, 8, dtype=np.float64), numbers(8, 8, seed=1, dtype=np.float64)
    here = tf.constant(a)
    with tf.device(NAME):
        there, v = tf.constant(b), tf.Variable(b)
    with tf.GradientTape() as tape:
        tape.watch([here, there])
        with tf.device(NAME):
            y = tf.tanh(here) * there * v
        with tf.device("/CPU:0"):
            loss = tf.reduce_sum(y * 2.0)
    is_on(HOST, loss)
    ga, gb, gv = tape.gradient(loss, [here, there, v])
    is_on(HOST, ga)
    is_on(FULL, gb, gv)
    close(ga, 2 * (1 - np.tanh(a) ** 2) * b * b, 1e-9)
    close(gb, 2 * np.tanh(a) * b, 1e-9)
    expect(gv.dtype is tf.float64)


@check("second derivatives, Jacobians, forward mode and sparse gradients on the device")
def _more_gradients() -> None:
    values = numbers(5, dtype=np.float64)
    with tf.device(NAME):
        x = tf.constant(values)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(x**3.0)
        slope = tape.gradient(y, x)
    curve = outer.gradient(slope, x)
    is_on(FULL, slope, curve)
    close(curve, 6 * values, 1e-9)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x**2.0
    matrix = tape.jacobian(y, x)
    is_on(FULL, matrix)
    close(matrix, np.diag(2 * values), 1e-9)
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as forward:
        y = tf.sin(x)
    close(forward.jvp(y), np.cos(values), 1e-9)
    with tf.device(NAME):
        table = tf.Variable(numbers(10, 3))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.gather(table, [1, 1, 4]) ** 2.0)
    g = tape.gradient(y, table)
    expect(isinstance(g, tf.IndexedSlices))
    close(tf.convert_to_tensor(g)[1], 4 * table.numpy()[1], 1e-5)


def network(width: int, layers: int = 3) -> tuple[list, list, Any, Any]:
    with tf.device(NAME):
        kernels = [tf.Variable(numbers(width, width, seed=i) / np.float32(np.sqrt(width))) for i in range(layers)]
        biases = [tf.Variable(tf.zeros([width])) for _ in range(layers)]
        x = tf.constant(numbers(256, width, seed=9))
        y = tf.constant(np.random.default_rng(8).integers(0, width, 256))
    return kernels, biases, x, y


def loss_of(kernels: list, biases: list, x: Any, y: Any) -> Any:
    for kernel, bias in zip(kernels, biases):
        x = tf.nn.relu(x @ kernel + bias)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, x))


def eager_step(kernels: list, biases: list, x: Any, y: Any, optimizer: Any) -> Any:
    with tf.GradientTape() as tape:
        loss = loss_of(kernels, biases, x, y)
    variables = kernels + biases
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


@check("the backward sweep is one program, compiled once and used again")
def _one_program() -> str:
    kernels, biases, x, y = network(64)
    optimizer = tf.optimizers.Adam(1e-2)
    before = programs()
    losses = [eager_step(kernels, biases, x, y, optimizer) for _ in range(10)]
    expect(programs() - before == 1, f"{programs() - before} programs for ten sweeps")
    is_on(FULL, *losses, *kernels, *biases)
    expect(float(losses[-1]) < float(losses[0]), [float(loss) for loss in losses])
    with tf.GradientTape() as tape:
        loss = loss_of(kernels[:2], biases[:2], x, y)
    tape.gradient(loss, kernels[:2])
    expect(programs() - before == 2, "another structure needs another program")
    return f"loss {float(losses[0]):.3f} to {float(losses[-1]):.3f}"


@check("the same training on the host and on the device: the same curve")
def _same_curve() -> None:
    curves = []
    for name in ("/CPU:0", NAME):
        with tf.device(name):
            w = tf.Variable(numbers(6, 6, dtype=np.float64))
            x = tf.constant(numbers(12, 6, seed=2, dtype=np.float64))
        optimizer = tf.optimizers.Adam(0.05, global_clipnorm=1.0, weight_decay=0.01)
        curve = []
        for _ in range(20):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.nn.softplus(x @ w) ** 2.0)
            optimizer.apply_gradients([(tape.gradient(loss, w), w)])
            curve.append(float(loss))
        curves.append(curve)
    close(curves[1], curves[0], 1e-6)


# Compiled functions


@check("a compiled function runs on the accelerator; its results and variables stay there")
def _function() -> None:
    kernels, biases, x, y = network(64)
    optimizer = tf.optimizers.SGD(0.1)

    @tf.function
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(kernels, biases, x, y)
        optimizer.apply_gradients(zip(tape.gradient(loss, kernels), kernels))
        return loss

    losses = [step(x, y) for _ in range(3)]
    is_on(FULL, *losses, *kernels)
    expect(step.experimental_get_tracing_count() <= 2)
    if not ON_CPU:
        plain = tf.Variable(numbers(4, 4))
        double = tf.function(lambda a: plain.assign(plain * a))
        is_on(FULL, tf.function(lambda a: a @ a)(numbers(4, 4)), double(2.0), plain)
    with tf.device("/CPU:0"):
        is_on(HOST, tf.function(lambda a: a + a)(tf.constant([1.0])))


@check("eager code after compiled code: print, assign, optimizers, gradients, checkpoints, datasets")
def _after_compiled() -> None:
    with tf.device(NAME):
        v = tf.Variable(numbers(4, 4))
    grow = tf.function(lambda a: v.assign_add(a * tf.ones_like(v)))
    grow(1.0)
    wanted = numbers(4, 4) + 1
    close(v, wanted, 1e-6)
    expect("numpy=" in repr(v), repr(v))
    tf.print(v[0, 0], output_stream=sys.stderr)
    v.assign(np.ones((4, 4)))
    v.assign_sub(np.full((4, 4), 0.5))
    v.scatter_add(tf.IndexedSlices(tf.ones([1, 4]), [0]))
    v[1, 1].assign(7.0)
    is_on(FULL, v)
    expect(float(v[0, 0]) == 1.5 and float(v[1, 1]) == 7.0, v)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(v * v)
    tf.optimizers.SGD(0.5).apply_gradients([(tape.gradient(loss, v), v)])
    is_on(FULL, v)
    close(v, np.zeros((4, 4)), 1e-6)
    grow(3.0)
    with tempfile.TemporaryDirectory() as folder:
        try:
            path = tf.train.Checkpoint(v=v).save(str(Path(folder) / "c"))
        except ModuleNotFoundError:  # safetensors is not installed
            path = None
        v.assign(np.zeros((4, 4)))
        if path is not None:
            tf.train.Checkpoint(v=v).restore(path)
            is_on(FULL, v)
            expect(float(v[0, 0]) == 3.0)
    rows = tf.data.Dataset.from_tensor_slices(tf.identity(v)).batch(2)
    total = [tf.reduce_sum(batch @ v) for batch in rows]
    expect(len(total) == 2)
    is_on(FULL, *total)


@check("a tape around a compiled function: one record, gradients on the device")
def _tape_around() -> None:
    with tf.device(NAME):
        x, v = tf.constant(numbers(4, 4)), tf.Variable(numbers(4, 4, seed=1))
    f = tf.function(lambda a: tf.reduce_sum(tf.tanh(a) * v))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x) * 2.0
    gx, gv = tape.gradient(y, [x, v])
    is_on(FULL, gx, gv)
    close(gv, 2 * np.tanh(numbers(4, 4)), 1e-4)


# What is said


@check("memory: info, growth, visible devices, soft placement")
def _memory() -> str:
    kind, _ = options.device.split(":")
    info = tf.config.experimental.get_memory_info(options.device)
    expect(set(info) == {"current", "peak"})
    if ON_CPU:
        return "not on a CPU"
    device = tf.config.list_physical_devices(kind)[0]
    tf.config.experimental.set_memory_growth(device, True)
    expect(tf.config.experimental.get_memory_growth(device))
    with tf.device(NAME):
        large = tf.zeros([64, 1024, 1024])
        large = large + 1.0
        float(large[0, 0, 0])
    grown = tf.config.experimental.get_memory_info(options.device)
    expect(grown["current"] - info["current"] >= 2**27, info, grown)
    expect(grown["peak"] >= grown["current"])
    details = tf.config.experimental.get_device_details(device)
    expect("device_name" in details, details)
    return f"{details['device_name']}, {grown['current'] / 2**20:.0f} MiB in use"


@check("a device that is not there: an error that lists those that are, or the CPU with soft placement")
def _missing() -> None:
    expect(tf.config.get_soft_device_placement())
    with tf.device("/GPU:77"):
        is_on(HOST, tf.constant(1.0) + 1.0)
    tf.config.set_soft_device_placement(False)
    try:
        raises(tf.errors.InvalidArgumentError, FULL, lambda: tf.device("/GPU:77").__enter__())
    finally:
        tf.config.set_soft_device_placement(True)
    raises(RuntimeError, "GPU:77 unknown device", lambda: tf.constant(1.0).gpu(77))


@check("hidden GPUs: everything runs on the CPU")
def _hidden() -> str:
    if ON_CPU:
        return "not on a CPU"
    code = (
        "import gradtape as tf; tf.config.set_visible_devices([], 'GPU')\n"
        "r = tf.function(lambda a: a + a)(tf.constant([1.0]))\n"
        "with tf.device('/GPU:0'): c = tf.constant(1.0)\n"
        "print(r.device, c.device, tf.config.list_logical_devices('GPU'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    expect(done.returncode == 0, done.stderr[-600:])
    expect(done.stdout.split() == [HOST, HOST, "[]"], done.stdout)
    return "in a process of its own"


# How fast


def timed(step: Callable[[], Any], wait: Callable[[Any], Any]) -> float:
    """Milliseconds per step, the best of three runs."""
    for _ in range(5):
        last = step()
    wait(last)
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(options.steps):
            last = step()
        wait(last)
        best = min(best, (time.perf_counter() - start) / options.steps)
    return 1e3 * best


def torch_step(width: int) -> Callable[[], Any]:
    import torch

    device = "cpu" if ON_CPU else "cuda"
    layers: list = []
    for i in range(3):
        layer = torch.nn.Linear(width, width)
        layer.weight.data = torch.tensor(numbers(width, width, seed=i).T / np.float32(np.sqrt(width)))
        layer.bias.data.zero_()
        layers += [layer, torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers).to(device)
    x = torch.tensor(numbers(256, width, seed=9), device=device)
    y = torch.tensor(np.random.default_rng(8).integers(0, width, 256), device=device)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)

    def step() -> Any:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


@check("timing: an eager training step with Adam (three layers, batch 256)")
def _timing() -> str:
    kernels, biases, x, y = network(options.width)
    optimizer = tf.optimizers.Adam(1e-3)
    ours = timed(lambda: eager_step(kernels, biases, x, y, optimizer), lambda loss: loss.numpy())
    compiled = tf.function(lambda: eager_step(kernels, biases, x, y, optimizer))
    whole = timed(compiled, lambda loss: loss.numpy())
    text = f"width {options.width}: eager {ours:.2f} ms, compiled {whole:.2f} ms"
    try:
        theirs = timed(torch_step(options.width), lambda loss: loss.item())
    except ImportError:
        return text + ", torch is not installed"
    return f"{text}, torch eager {theirs:.2f} ms: {ours / theirs:.2f} x torch"


def main() -> int:
    import jax

    print(f"python {sys.version.split()[0]}, jax {jax.__version__}, numpy {np.__version__}; {jax.devices()}", flush=True)
    failed = 0
    for promise, function in CHECKS:
        start = time.perf_counter()
        try:
            note = function() or ""
            verdict = "PASS"
        except BaseException:
            note, verdict = "\n" + traceback.format_exc(limit=-6), "FAIL"
            failed += 1
        print(f"{verdict} {promise} ({time.perf_counter() - start:.1f} s) {note}", flush=True)
    print(f"{len(CHECKS) - failed} of {len(CHECKS)} hold")
    return failed


if __name__ == "__main__":
    sys.exit(main())
