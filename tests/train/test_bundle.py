"""Checkpoints that TensorFlow wrote are read; tools/record_checkpoint_golden.py wrote the one here."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from bundle_program import objects

import gradtape as tf
from gradtape.train.objects import collect

pytestmark = pytest.mark.tiny
FOLDER = Path(__file__).parents[1] / "goldens" / "checkpoint"


def values(program):
    nodes = collect(tf.train.Checkpoint(**program))
    return {n.path: n.value.numpy() for n in nodes if isinstance(n.value, tf.Variable)}


def test_everything_comes_back():
    ours, theirs = objects(tf, empty=True), values(objects(tf))
    assert any(not np.array_equal(value, theirs[path]) for path, value in values(ours).items())
    path = tf.train.latest_checkpoint(FOLDER)
    tf.train.Checkpoint(**ours).restore(path).assert_consumed()
    found = values(ours)
    assert len(found) == 48
    for name, value in found.items():
        assert np.array_equal(value, theirs[name]), name


def test_what_is_made_later_is_restored_later():
    net = tf.Module()
    tf.train.Checkpoint(net=net).restore(tf.train.latest_checkpoint(FOLDER)).expect_partial()
    net.w = tf.Variable(tf.zeros([2, 3]))
    assert net.w.numpy()[1].tolist() == [3.0, 4.0, 5.0]


def test_looking_into_it():
    names = dict(tf.train.list_variables(FOLDER))
    assert names["net/w/.ATTRIBUTES/VARIABLE_VALUE"] == [2, 3]
    assert tf.train.load_variable(FOLDER, "net/texts/.ATTRIBUTES/VARIABLE_VALUE").tolist() == [b"a", b"", b"longer"]
    found = tf.train.load_checkpoint(FOLDER).get_variable_to_dtype_map()
    assert found["net/layers/1/.ATTRIBUTES/VARIABLE_VALUE"] == tf.bfloat16


def test_a_run_goes_on_in_our_own_format(tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(FOLDER, folder)
    program = objects(tf, empty=True)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(**program), folder, max_to_keep=5, checkpoint_name="theirs")
    assert manager.restore_or_initialize() == str(folder / "theirs-1")
    assert manager.save() == str(folder / "theirs-2")
    assert (folder / "theirs-2.index.json").exists()
    again = objects(tf, empty=True)
    tf.train.Checkpoint(**again).restore(manager.latest_checkpoint).assert_consumed()
    assert int(again["step"]) == 5


@pytest.mark.parametrize("suffix", [".index", ".data-00000-of-00001"])
def test_damaged_files(tmp_path, suffix):
    shutil.copytree(FOLDER, tmp_path / "copy")
    file = next((tmp_path / "copy").glob("*" + suffix))
    whole = file.read_bytes()
    for damaged in (b"", whole[:20], whole[: len(whole) // 2]):
        file.write_bytes(damaged)
        with pytest.raises(tf.errors.DataLossError, match="Unable to read the checkpoint"):
            tf.train.Checkpoint(**objects(tf, empty=True)).restore(str(tmp_path / "copy" / "theirs-1"))
    file.unlink()
    with pytest.raises((tf.errors.DataLossError, tf.errors.NotFoundError)):
        tf.train.Checkpoint(**objects(tf, empty=True)).restore(str(tmp_path / "copy" / "theirs-1"))
