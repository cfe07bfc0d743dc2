"""Without jax: everything but devices and XLA works, and what does not says what to install."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

BLOCKED = """
import sys

for name in ("jax", "jaxlib", "malt"):
    sys.modules[name] = None  # as if it were not installed
"""
TESTS = Path(__file__).parent.parent


def run(code: str) -> str:
    """What a program prints where jax is not installed."""
    command = [sys.executable, "-W", "error", "-c", BLOCKED + textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=TESTS.parent, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_functions_run_as_they_are_written():
    out = run("""
        import numpy as np
        import gradtape as tf

        calls = []

        class Model(tf.Module):
            def __init__(self):
                self.w = tf.Variable(np.eye(2))
                self.optimizer = tf.optimizers.Adam(0.1)

            @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float64)])
            def step(self, x):
                calls.append(1)
                with tf.GradientTape() as tape:
                    loss = tf.reduce_sum((x @ self.w - 1.0) ** 2.0)
                self.optimizer.apply_gradients([(tape.gradient(loss, self.w), self.w)])
                return {"loss": loss, "none": None}

        model = Model()
        losses = [float(model.step(np.ones((3, 2)))["loss"]) for _ in range(5)]
        assert losses == sorted(losses, reverse=True), losses
        assert len(calls) == 5

        @tf.function(jit_compile=True)
        def branches(x):
            total = tf.constant(0.0)
            for value in x:
                if value > 0.0:
                    total += value
            while total > 10.0:
                total /= 2.0
            tf.print("total", total)
            return total

        assert float(branches(tf.constant([1.0, -1.0, 30.0]))) == 7.75
        x = tf.constant(2.0)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.function(lambda x: x**3.0)(x)
            slope = inner.gradient(y, x)
        assert (float(slope), float(outer.gradient(slope, x))) == (12.0, 12.0)
        v = tf.Variable(1.0)

        @tf.function
        def failing(x):
            v.assign(x)
            raise KeyError("mine")

        try:
            failing(x)
        except KeyError:
            pass
        print(model.step.explain(np.ones((3, 2))))
        print(branches.get_concrete_function(tf.TensorSpec([3], tf.float32))(tf.constant([1.0, 2.0, 3.0])).numpy())
        """)
    assert 'step runs as it is written: jax is not installed (pip install "gradtape[xla]").' in out
    assert "6.0" in out


def test_the_rest_of_the_library():
    run("""
        import tempfile
        import numpy as np
        import gradtape as tf

        x = tf.constant(np.linspace(-1.0, 1.0, 12).reshape(3, 4))
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = tf.linalg.det(tf.matmul(x, x, transpose_b=True) + tf.eye(3, dtype=x.dtype)) * tf.nn.softmax(x)
            z = tf.signal.rfft(x)
        assert tape.gradient(y, x).shape == x.shape
        assert tape.jacobian(y, x).shape == (3, 4, 3, 4)
        assert tape.gradient(z, x).dtype is tf.float64
        assert tf.vectorized_map(lambda row: tf.reduce_sum(row**2.0), x).shape == (3,)
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            y = tf.sin(x)
        assert accumulator.jvp(y).shape == x.shape
        assert tf.cond(tf.reduce_sum(x) > 1.0, lambda: 1, lambda: 2) == 2
        assert int(tf.while_loop(lambda i: i < 5, lambda i: (i + 1,), (tf.constant(0),))[0]) == 5
        assert tf.map_fn(lambda row: row * 2.0, x).shape == x.shape
        assert tf.random.normal([2]).shape == (2,)
        assert tf.random.Generator.from_seed(1).uniform([2]).shape == (2,)
        images = tf.nn.conv2d(tf.ones([1, 4, 4, 1]), tf.ones([2, 2, 1, 1]), 1, "SAME")
        assert tf.image.resize(images, [2, 2]).shape == (1, 2, 2, 1)
        batches = list(tf.data.Dataset.range(10).shuffle(10).batch(3))
        assert [len(b) for b in batches] == [3, 3, 3, 1]
        v = tf.Variable([1.0, 2.0])
        v.scatter_add(tf.IndexedSlices(tf.constant([1.0]), tf.constant([0])))
        with tempfile.TemporaryDirectory() as folder:
            path = tf.train.Checkpoint(v=v).save(folder + "/c")
            v.assign([0.0, 0.0])
            tf.train.Checkpoint(v=v).restore(path)
        assert v.numpy().tolist() == [2.0, 2.0]
        with tf.device("/CPU:0"):
            assert "CPU:0" in (x + 1.0).device
        assert [d.device_type for d in tf.config.list_physical_devices()] == ["CPU"]
        assert "jax" not in {name for name, module in sys.modules.items() if module is not None}
        """)


def test_what_needs_jax_says_what_to_install():
    out = run("""
        import gradtape as tf
        from gradtape import experimental

        def no_gpu():
            tf.config.set_soft_device_placement(False)
            with tf.device("/GPU:0"):
                tf.constant(1.0) + 1.0

        for need in (lambda: experimental.to_jax(lambda x: x), lambda: experimental.from_jax(lambda x: x), no_gpu):
            try:
                need()
            except Exception as error:
                print("said" if 'pip install "gradtape[xla]"' in str(error) else repr(error))
            else:
                print("nothing was raised")
        """)
    assert out.split("\n")[:-1] == ["said"] * 3


SUITES = [
    "test_toplevel.py", "test_control_flow.py", "test_regressions.py", "test_indexing.py", "test_data.py",
    "optimizers", "derivatives", "function",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_suites_pass_without_jax(suite):
    run(f"""
        import pytest

        code = pytest.main(["-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", {str(TESTS / suite)!r}, "--deselect",
                            {str(Path(__file__))!r}])
        sys.exit(0 if code in (0, 5) else int(code))  # 5: all of it needs jax
        """)
