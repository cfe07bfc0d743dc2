"""How Keras is reached: every spelling gives the one Keras, loaded on first touch, on this backend or not at all."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def run(program: str, **environment: str) -> subprocess.CompletedProcess:
    """A program in a Python of its own: what is imported first is the point here."""
    given = {**os.environ, **environment}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=given, check=False)


def holds(program: str, **environment: str) -> None:
    done = run(program, **environment)
    assert done.returncode == 0, done.stderr


def test_every_spelling_is_one_keras():
    holds("""
import gradtape as tf
from gradtape import keras
from gradtape.keras import layers
from gradtape.keras.layers import Dense
from gradtape.keras.preprocessing import sequence
import gradtape.keras as spelled
import gradtape.keras.backend as K
import keras as itself
assert tf.keras is keras is spelled
assert tf.keras.layers.Dense is Dense is layers.Dense is itself.layers.Dense
assert tf.losses.MeanSquaredError is keras.losses.MeanSquaredError
assert tf.metrics.Mean is keras.metrics.Mean
assert tf.initializers.GlorotUniform is keras.initializers.GlorotUniform
assert tf.optimizers.Adam is not keras.optimizers.Adam
assert keras.backend.backend() == keras.config.backend() == K.backend() == "gradtape"
assert isinstance(sequence.pad_sequences([[1], [2, 3]]).shape, tuple)
""")


def test_importing_gradtape_does_not_load_keras():
    holds("import gradtape, sys; assert not any(name.split('.')[0] in ('keras', 'h5py') for name in sys.modules)")


@pytest.mark.parametrize("first", ["numpy", "jax"])
def test_keras_that_computes_on_something_else_is_refused(first):
    if first == "jax":
        pytest.importorskip("jax")
    done = run("import keras, gradtape as tf; tf.keras", KERAS_BACKEND=first)
    assert done.returncode
    assert f"Keras is already imported, and computes on {first}" in done.stderr
    assert "import gradtape.keras before anything imports keras" in done.stderr


def test_the_environment_is_left_as_it_was():
    holds("""
import os, gradtape as tf
tf.keras
assert os.environ["KERAS_BACKEND"] == "jax"
""", KERAS_BACKEND="jax")


def test_without_keras_the_error_says_what_to_install():
    done = run("""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "keras":
            raise ModuleNotFoundError("No module named 'keras'", name="keras")
sys.meta_path.insert(0, Missing())
import gradtape as tf
tf.keras
""")
    assert "pip install 'gradtape[keras]'" in done.stderr


def test_a_failed_loading_can_be_tried_again():
    holds("""
import sys
class Broken:
    on = True
    def find_spec(self, name, path=None, target=None):
        if self.on and name == "keras.src.layers":
            raise OSError("the disk is gone")
broken = Broken()
sys.meta_path.insert(0, broken)
import gradtape as tf
try:
    tf.keras
except OSError:
    broken.on = False
assert "keras" not in sys.modules
assert tf.keras.backend.backend() == "gradtape"
""")


def test_scripts_that_one_cannot_edit():
    holds("""
import gradtape
gradtape.install_as_tensorflow()
gradtape.install_as_tensorflow()
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
from tensorflow.keras.layers import Dense
import tensorflow.keras.backend as K
from tensorflow.math import reduce_sum
import tensorflow.nn
assert tf is gradtape and Dense is gradtape.keras.layers.Dense and tf.nn.relu is gradtape.nn.relu
x = tf.Variable(3.0)
with tf.GradientTape() as tape:
    y = x * x
assert float(tape.gradient(y, x)) == 6.0
import numpy as np
assert type(np.sin(y)) is np.float32
with tf.GradientTape() as tape:
    squeezed = np.squeeze(tf.nn.softmax(x * np.ones((1, 2), "float32")))
    assert np.random.choice(2, p=squeezed) in (0, 1)
    clipped = np.clip(squeezed * x, 0, 1)
    clipped[0] = 2.0
    y = tf.reduce_sum(clipped)
assert tape.gradient(y, x) is None and "np.clip" in str(tape.explain(y, x))
try:
    import tensorflow.python.framework.ops
except ModuleNotFoundError as error:
    assert "gradtape in the place of tensorflow" in str(error) and error.name.startswith("tensorflow")
else:
    raise AssertionError("there is no such module")
""")


def test_the_real_tensorflow_is_not_replaced(tmp_path: Path):
    (tmp_path / "tensorflow.py").write_text("__version__ = '2.21.0'\n")
    done = run("import tensorflow, gradtape; gradtape.install_as_tensorflow()", PYTHONPATH=str(tmp_path))
    assert "The real TensorFlow is already imported" in done.stderr
    assert "2.21.0" in done.stderr
