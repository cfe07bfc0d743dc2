"""Devices, switches, names that are out of scope, and the small modules around them."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading

import numpy as np
import pytest

import gradtape as tf
from gradtape import autograph, compat, config, errors, sysconfig, test, version
from gradtape.ops import devices, execution
from gradtape.scope import OUT_OF_SCOPE, OutOfScopeError, missing, out_of_scope

pytestmark = pytest.mark.tiny

# Devices


@pytest.fixture(autouse=True)
def _settings_stay():
    before = dict(vars(devices.settings))
    yield
    vars(devices.settings).clear()
    vars(devices.settings).update(before)
    devices.settings.configurations.clear()


@pytest.fixture
def two_gpus(monkeypatch):
    monkeypatch.setattr(devices, "accelerators", lambda: [("GPU", 0), ("GPU", 1)])
    monkeypatch.setattr(devices, "_of_jax", lambda kind, index: (kind, index))
    monkeypatch.setattr(devices, "_choose_default", lambda: None)


def test_one_cpu_is_always_there():
    assert config.list_physical_devices("CPU") == [("/physical_device:CPU:0", "CPU")]
    assert [d.name for d in config.list_logical_devices("CPU")] == ["/device:CPU:0"]


def test_gpus_are_those_that_jax_reports(two_gpus):
    gpus = config.list_physical_devices("GPU")
    assert [gpu.name for gpu in gpus] == ["/physical_device:GPU:0", "/physical_device:GPU:1"]
    assert test.is_gpu_available()
    assert test.gpu_device_name() == "/device:GPU:0"
    config.set_visible_devices(gpus[1:], "GPU")
    assert config.get_visible_devices() == [("/physical_device:CPU:0", "CPU"), gpus[1]]
    config.experimental.set_memory_growth(gpus[0], True)
    assert config.experimental.get_memory_growth(gpus[0])
    config.set_visible_devices([], "GPU")
    assert config.list_logical_devices("GPU") == []
    with pytest.raises(ValueError, match="CPU cannot be hidden"):
        config.set_visible_devices([], "CPU")


def test_a_device_that_is_not_there(two_gpus):
    with devices.device("/GPU:7"):  # soft placement: the CPU serves
        assert devices.current_device().to_string() == "/device:GPU:7"
    config.set_soft_device_placement(False)
    with devices.device("/GPU:1"), devices.device("cpu"):
        assert devices.current_device().device_type == "CPU"
    with pytest.raises(errors.InvalidArgumentError, match=r"device:GPU:7.*All available devices \[.*CPU:0.*GPU:1\]"):
        devices.device("/GPU:7").__enter__()
    assert devices.current_device() == devices.DeviceSpec()


def test_device_names_that_cannot_be_meant():
    for name, error in (("foo", ValueError), (3, ValueError), ("/job:w/task:1/device:CPU:0", errors.InvalidArgumentError)):
        with pytest.raises(error):
            devices.device(name).__enter__()


def test_placement_is_per_thread():
    seen = []
    with devices.device("/CPU:0"):
        worker = threading.Thread(target=lambda: seen.append(devices.current_device().to_string()))
        worker.start()
        worker.join()
    assert seen == [""]


def test_listing_cpus_does_not_load_jax():
    code = "from gradtape import config; import sys; config.list_physical_devices('CPU'); print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_one_device_stays_one(two_gpus):
    cpu, gpu, _ = config.list_physical_devices()
    config.set_logical_device_configuration(cpu, [config.LogicalDeviceConfiguration()])
    assert config.get_logical_device_configuration(cpu) == [config.LogicalDeviceConfiguration()]
    config.set_logical_device_configuration(gpu, [config.LogicalDeviceConfiguration(memory_limit=1024)])
    with pytest.raises(ValueError, match="cannot be divided into 2"):
        config.set_logical_device_configuration(gpu, [config.LogicalDeviceConfiguration()] * 2)


def test_switches_remember():
    rare = config.experimental
    pairs = [
        (config.threading.set_inter_op_parallelism_threads, config.threading.get_inter_op_parallelism_threads, 3, 0),
        (config.threading.set_intra_op_parallelism_threads, config.threading.get_intra_op_parallelism_threads, 3, 0),
        (config.run_functions_eagerly, config.functions_run_eagerly, True, False),
        (rare.enable_tensor_float_32_execution, rare.tensor_float_32_execution_enabled, False, True),
        (rare.set_device_policy, rare.get_device_policy, "warn", "silent"),
        (rare.set_synchronous_execution, rare.get_synchronous_execution, False, True),
    ]
    for setter, getter, other, default in pairs:
        assert getter() == default
        setter(other)
        assert getter() == other
        setter(default)
    config.optimizer.set_jit(True)
    assert config.optimizer.get_jit() == "autoclustering"
    config.optimizer.set_jit(False)


# Names that are not there


def test_what_is_out_of_scope_says_why_and_what_instead():
    explain = missing("gradtape.train", ["Checkpoint", "CheckpointManager"])
    with pytest.raises(OutOfScopeError, match=r"^tf\.train\.Example is out of scope: .*\n  Fix: "):
        explain("Example")
    with pytest.raises(AttributeError, match=r"no attribute 'Chekpoint'. Did you mean tf\.train\.Checkpoint") as caught:
        explain("Chekpoint")
    assert not isinstance(caught.value, OutOfScopeError)
    assert "tf.tpu.experimental.Topology is out of scope" in out_of_scope("tf.tpu.experimental.Topology")
    assert out_of_scope("reduce_sum") is None


def test_nothing_that_exists_is_called_out_of_scope():
    def exists(path: str) -> bool:
        owner, _, name = f"gradtape.{path}".rpartition(".")
        try:
            return name in vars(importlib.import_module(owner))
        except ImportError:
            return False

    assert [path for path in OUT_OF_SCOPE if exists(path)] == []


@pytest.mark.parametrize("path", ["config.experimental_connect_to_cluster", "compat.v1", "distribute.TPUStrategy",
                                  "distribute.cluster_resolver.TPUClusterResolver"])  # fmt: skip
def test_touching_it_raises(path):
    owner, _, name = f"gradtape.{path}".rpartition(".")
    with pytest.raises(OutOfScopeError, match=rf"tf\.{path.replace('.', chr(92) + '.')} is out of scope"):
        getattr(importlib.import_module(owner), name)


def test_graphs_explain_themselves():
    with pytest.raises(OutOfScopeError, match="no graphs to build by hand"):
        execution.Graph().as_default()


# How code runs


def test_init_scope_is_unseen_by_tapes():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        with execution.init_scope():
            hidden = x * 3.0
        y = x * hidden
    assert float(tape.gradient(y, x)) == 6.0
    assert execution.executing_eagerly()
    assert not execution.inside_function()


def test_control_dependencies_order_nothing():
    with execution.control_dependencies([tf.constant(1)]):
        pass
    with pytest.raises(TypeError, match="not iterable"):
        execution.control_dependencies(3)
    with tf.name_scope("a"), tf.name_scope("b"):
        assert execution.get_current_name_scope() == "a/b"
    assert execution.get_logger().name == "gradtape"


def doubled(x):
    if x > 0:
        return x * 2
    return x


def test_autograph():
    assert autograph.to_graph(doubled)(2) == 4
    assert autograph.experimental.do_not_convert(doubled)(2) == 4
    assert autograph.experimental.do_not_convert()(len)([1]) == 1
    pytest.importorskip("malt")
    assert "if_stmt" in autograph.to_code(doubled)


# Small modules


def test_error_codes():
    assert errors.InvalidArgumentError(None, None, "m").error_code == errors.INVALID_ARGUMENT == 3
    assert errors.UnauthenticatedError("m").error_code == errors.UNAUTHENTICATED == 16
    assert errors.OpError(None, None, "m", errors.DATA_LOSS).error_code == 15
    assert errors.OpError("m").experimental_payloads == {}


def test_versions_and_strings():
    assert tf.__version__ == version.VERSION
    assert not sysconfig.get_build_info()["is_cuda_build"]
    assert compat.as_str_any(b"\xc3\xa9") == "é"
    assert isinstance(np.int32(3), compat.integral_types)
    assert compat.dimension_at_index(tf.TensorShape([1, None]), 1) is None


class Compared(test.TestCase):
    """Runs as a test of its own, too."""

    def test_comparisons(self):
        x = tf.constant([1.0, 2.0])
        self.assertAllClose({"a": [x, 1.0]}, {"a": [[1.0, 2.0 + 1e-7], 1.0]})
        self.assertAllEqual(x, [1.0, 2.0])
        self.assertNotAllClose(x, x + 1)
        self.assertNotAllEqual(x, x + 1)
        self.assertAllInRange(x, 1, 2)
        self.assertAllInSet(x, {1.0, 2.0})
        self.assertShapeEqual(x, np.zeros(2))
        self.assertDTypeEqual(x, tf.float32)
        self.assertNear(1.0, 1.05, 0.1)
        self.assertAllCloseAccordingToType(tf.constant(1.0, tf.float16), np.float16(1.0005))
        for wrong in (lambda: self.assertAllClose(x, x + 1), lambda: self.assertAllEqual(x, [1.0]),
                      lambda: self.assertAllGreater(x, 1), lambda: self.assertDTypeEqual(x, tf.int32)):  # fmt: skip
            with pytest.raises(AssertionError):
                wrong()
