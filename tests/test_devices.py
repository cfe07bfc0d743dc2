"""Devices: in this process the CPU alone; in another, where the CPU counts as three, all of `tests/devices`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run(*command: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=ROOT, env={**os.environ, **environment}, timeout=540
    )


def lines(code: str, **environment: str) -> list[str]:
    done = run("-c", code, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("file", ["test_placement.py", "test_sweeps.py", "test_training.py"])
def test_three_devices(file):
    pytest.importorskip("jax")
    done = run("-m", "pytest", "-q", "-x", "-p", "no:xdist", "-p", "no:cacheprovider", f"tests/devices/{file}",
               XLA_FLAGS="--xla_force_host_platform_device_count=3")  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_the_program_can_ask_for_more_cpus():
    pytest.importorskip("jax")
    code = """
import gradtape as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
print(len(tf.config.list_logical_devices()), len(tf.config.get_logical_device_configuration(cpu)))
with tf.device("/CPU:1"):
    print(tf.constant(1.0).device)
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
try:
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 3)
except RuntimeError as error:
    print(str(error).splitlines()[0])
"""
    assert lines(code, XLA_FLAGS="") == [
        "2 2",
        "/job:localhost/replica:0/task:0/device:CPU:1",
        "Virtual devices cannot be modified after being initialized",
    ]


WITHOUT_JAX = """
import sys
sys.modules["jax"] = None  # importing it fails
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "jax" else find(name, *rest)
sys.modules.pop("jax")
import gradtape as tf
"""


def test_without_jax():
    code = (
        WITHOUT_JAX
        + """
print(tf.config.list_physical_devices(), tf.config.list_logical_devices("GPU"))
with tf.device("/CPU:0"):
    print((tf.constant(1.0) + 1.0).device)
with tf.device("/GPU:0"):
    print(tf.constant(1.0).device)
tf.config.set_soft_device_placement(False)
for ask in (lambda: tf.device("/GPU:0").__enter__(), lambda: tf.constant(1.0).gpu()):
    try:
        ask()
    except (tf.errors.InvalidArgumentError, RuntimeError) as error:
        print('pip install "gradtape[xla]"' in str(error))
print("jax" in sys.modules)
"""
    )
    cpu = "/job:localhost/replica:0/task:0/device:CPU:0"
    listed = "[PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')] []"
    assert lines(code) == [listed, cpu, cpu, "True", "True", "False"]


def test_the_cpu_does_not_load_jax():
    code = """
import sys
import gradtape as tf
with tf.device("/CPU:0"):
    v = tf.Variable([1.0])
    with tf.GradientTape() as tape:
        y = v * v
    tf.optimizers.Adam().apply_gradients([(tape.gradient(y, v), v)])
print(v.device, tf.config.experimental.get_memory_info("CPU:0"), "jax" in sys.modules)
"""
    assert lines(code, XLA_FLAGS="") == ["/job:localhost/replica:0/task:0/device:CPU:0 {'current': 0, 'peak': 0} False"]
