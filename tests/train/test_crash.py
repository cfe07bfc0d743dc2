"""A crash at any point leaves a whole checkpoint: the one before, or the new one."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import safetensors.numpy

import gradtape as tf


class Crash(BaseException):
    """The machine stops: not an error that anybody handles."""


class Machine:
    """Counts the calls that touch the disk, and stops for good at one of them."""

    def __init__(self, monkeypatch, last):
        self.left = last
        for module, name in [(os, n) for n in ("open", "fsync", "replace", "unlink", "makedirs", "listdir")]:
            monkeypatch.setattr(module, name, self.wrapped(getattr(module, name)))
        self.save_file = safetensors.numpy.save_file
        monkeypatch.setattr(safetensors.numpy, "save_file", self.partly)

    def step(self):
        self.left -= 1
        if self.left < 0:
            raise Crash

    def wrapped(self, function):
        def call(*args, **kwargs):
            self.step()  # before it happens ...
            return function(*args, **kwargs)

        return call

    def partly(self, arrays, path):
        self.save_file(arrays, path)
        if self.left <= 0:
            with open(path, "r+b") as file:  # half of it reached the disk
                file.truncate(os.path.getsize(path) // 2)
        self.step()


def consistent(folder):
    """The value that every element of the latest checkpoint has, as a new run would find it."""
    first, second = tf.Variable(np.zeros(50, np.float32)), tf.Variable(np.zeros((3, 7), np.float32))
    checkpoint = tf.train.Checkpoint(first=first, second=second)
    checkpoint.restore(tf.train.latest_checkpoint(folder)).assert_consumed()
    values = set(np.concatenate([first.numpy(), second.numpy().ravel()]).tolist())
    assert len(values) == 1
    return values.pop()


def run(folder, value, number):
    first, second = tf.Variable(np.full(50, value, np.float32)), tf.Variable(np.full((3, 7), value, np.float32))
    checkpoint = tf.train.Checkpoint(first=first, second=second)
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=1)
    checkpoint.save_counter.assign(value - 1)
    manager.save(number)


@pytest.mark.parametrize("number", [None, 1], ids=["new number", "same number"])
def test_a_crash_at_every_step(tmp_path, number):
    """Also when a checkpoint is written over another one of the same name."""
    outcomes = []
    for last in itertools.count():
        folder = tmp_path / str(last)
        run(folder, 1, number)
        with pytest.MonkeyPatch.context() as patch:
            machine = Machine(patch, last)
            with contextlib.suppress(Crash):
                run(folder, 2, number)
        outcomes.append(consistent(folder))
        if machine.left >= 0:
            break
        run(folder, 3, number)  # the next run goes on as if nothing had happened
        assert consistent(folder) == 3
    assert outcomes == sorted(outcomes)  # the old one up to some step, the new one from there on
    assert set(outcomes) == {1, 2}
    assert len(outcomes) > 12


def test_what_a_crash_leaves_behind_is_removed_by_the_next_write(tmp_path):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    for name in ("c.safetensors.123.tmp", "c.index.json.99.tmp", "c.safetensors", "c~1.safetensors.5.tmp"):
        (tmp_path / name).write_bytes(b"half")
    (tmp_path / "other.safetensors.123.tmp").write_bytes(b"somebody else's")
    checkpoint.write(tmp_path / "c")
    assert sorted(os.listdir(tmp_path)) == ["c.index.json", "c~1.safetensors", "other.safetensors.123.tmp"]
    checkpoint.read(tmp_path / "c").assert_consumed()


def test_an_error_while_writing_cleans_up_and_does_not_count(tmp_path, monkeypatch):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    manager = tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=3)
    manager.save()
    before = sorted(os.listdir(tmp_path))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        manager.save()
    monkeypatch.undo()
    assert sorted(os.listdir(tmp_path)) == before
    assert int(checkpoint.save_counter) == 1
    assert manager.save().endswith("ckpt-2")


CHILD = """
import sys, numpy as np, gradtape as tf
sys.path.insert(0, {tests!r})
from test_crash import run
value = int({start})
while True:
    value += 1
    run({folder!r}, value, None)
    print(value, flush=True)
"""


@pytest.mark.slow
def test_a_process_that_is_killed_again_and_again(tmp_path):
    folder, done = str(tmp_path / "run"), 0
    for n in range(12):
        code = CHILD.format(tests=os.path.dirname(__file__), folder=folder, start=done)
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        reported = int(child.stdout.readline())  # at least one was written
        time.sleep(0.003 * n)
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().split()
        child.wait()
        child.stdout.close()
        reported = int(rest[-1]) if rest else reported
        done = int(consistent(folder))
        assert done in (reported, reported + 1)
