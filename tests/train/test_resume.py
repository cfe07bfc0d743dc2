"""Training that is killed and restored goes on bit for bit as if nothing had happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import gradtape as tf

STEPS, SAVE_EVERY = 14, 3


class Batches:
    """Shuffled batches of an array, forever; the position is a state that a checkpoint saves."""

    def __init__(self, data, size, seed):
        self.data, self.size = data, size
        self.random = np.random.default_rng(seed)
        self.order, self.at = self.random.permutation(len(data)), 0

    def __next__(self):
        if self.at + self.size > len(self.data):
            self.order, self.at = self.random.permutation(len(self.data)), 0
        self.at += self.size
        return tf.constant(self.data[self.order[self.at - self.size : self.at]])

    def _state(self):
        return {"order": self.order, "at": self.at, "random": self.random.bit_generator.state}

    def _restore(self, state):
        self.order, self.at = state["order"], state["at"]
        self.random.bit_generator.state = state["random"]


class Net(tf.Module):
    """Two layers, of which the second is made when it is first needed."""

    def __init__(self):
        super().__init__()
        self.first = tf.Variable(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))

    def __call__(self, x, noise):
        if not hasattr(self, "second"):
            self.second = tf.Variable(np.linspace(0, 1, 4, dtype=np.float32))
        return tf.tensordot(tf.tanh(x @ self.first) + noise, self.second, 1)


def data():
    return np.random.RandomState(0).normal(size=(17, 3)).astype(np.float32)


def own_batches():
    return Batches(data(), 4, seed=1)


def dataset():
    return iter(tf.data.Dataset.from_tensor_slices(data()).shuffle(17, seed=3).batch(4).repeat())


class Training:
    def __init__(self, folder, batches):
        self.net, self.batches, self.noise = Net(), batches(), tf.random.Generator.from_seed(5)
        schedule = tf.optimizers.schedules.ExponentialDecay(0.05, 3, 0.9)
        self.optimizer = tf.optimizers.Adam(schedule, use_ema=True, ema_overwrite_frequency=5)
        self.step = tf.Variable(0)
        checkpoint = tf.train.Checkpoint(
            net=self.net, optimizer=self.optimizer, batches=self.batches, noise=self.noise, step=self.step
        )
        self.manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)

    def run(self, until=STEPS, after_step=lambda step: None):
        self.manager.restore_or_initialize()
        while int(self.step) < until:
            x = next(self.batches)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self.net(x, self.noise.normal([4], stddev=0.1)) - x[:, 0]))
            variables = self.net.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            self.step.assign_add(1)
            if int(self.step) % SAVE_EVERY == 0:
                self.manager.save()
            after_step(int(self.step))

    def outcome(self):
        variables = [*self.net.variables, *self.optimizer.variables, self.noise.state]
        return [v.numpy().tobytes() for v in variables]


def needs(batches):
    if batches is dataset:
        try:
            tf.data.Dataset  # noqa: B018
        except AttributeError:
            pytest.skip("there is no tf.data yet")


@pytest.mark.parametrize("batches", [own_batches, dataset])
@pytest.mark.parametrize("stop", range(1, STEPS))
def test_a_run_that_stops_and_goes_on(tmp_path, batches, stop):
    needs(batches)
    straight = Training(tmp_path / "straight", batches)
    straight.run()
    Training(tmp_path / "resumed", batches).run(until=stop)
    resumed = Training(tmp_path / "resumed", batches)
    resumed.run()
    assert resumed.outcome() == straight.outcome()


CHILD = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import test_resume
def killed(step):
    if step == {step}:
        os.kill(os.getpid(), signal.SIGKILL)
test_resume.Training({folder!r}, test_resume.{batches}).run(after_step=killed)
"""


@pytest.mark.slow
@pytest.mark.parametrize("batches", [own_batches, dataset])
def test_a_run_that_is_killed_several_times(tmp_path, batches):
    needs(batches)
    straight = Training(tmp_path / "straight", batches)
    straight.run()
    folder = str(tmp_path / "killed")
    for step in (1, 5, 7, 12):
        code = CHILD.format(tests=os.path.dirname(__file__), step=step, folder=folder, batches=batches.__name__)
        assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
    resumed = Training(folder, batches)
    resumed.run()
    assert resumed.outcome() == straight.outcome()
