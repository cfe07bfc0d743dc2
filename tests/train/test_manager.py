"""The manager: numbering, keeping, deleting, intervals, and taking over where another run stopped."""

from __future__ import annotations

import os
import threading
import time

import pytest

import gradtape as tf
from gradtape.train import manager as manager_module

pytestmark = pytest.mark.tiny


def made(folder, max_to_keep=2, **options):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(0))
    return tf.train.CheckpointManager(checkpoint, folder, max_to_keep, **options)


def names(paths):
    return [os.path.basename(path) for path in paths]


def indexes(folder):
    return sorted(name.removesuffix(".index.json") for name in os.listdir(folder) if name.endswith(".index.json"))


def test_the_last_ones_are_kept(tmp_path):
    manager = made(tmp_path)
    assert manager.latest_checkpoint is None
    assert manager.checkpoints == []
    assert names(manager.save() for _ in range(4)) == ["ckpt-1", "ckpt-2", "ckpt-3", "ckpt-4"]
    assert names(manager.checkpoints) == ["ckpt-3", "ckpt-4"]
    assert manager.latest_checkpoint == str(tmp_path / "ckpt-4")
    assert sorted(os.listdir(tmp_path)) == [
        "checkpoint", "ckpt-3.index.json", "ckpt-3.safetensors", "ckpt-4.index.json", "ckpt-4.safetensors",
    ]  # fmt: skip
    assert (manager.directory, manager.checkpoint_interval) == (str(tmp_path), None)


def test_the_state_file_is_tensorflow_s(tmp_path):
    manager = made(tmp_path)
    for _ in range(3):
        manager.save()
    lines = (tmp_path / "checkpoint").read_text().splitlines()
    assert lines[:3] == [
        'model_checkpoint_path: "ckpt-3"', 'all_model_checkpoint_paths: "ckpt-2"', 'all_model_checkpoint_paths: "ckpt-3"',
    ]  # fmt: skip
    rest = ["all_model_checkpoint_timestamps"] * 2 + ["last_preserved_timestamp"]
    assert [line.partition(":")[0] for line in lines[3:]] == rest
    state = tf.train.get_checkpoint_state(tmp_path)
    assert state.model_checkpoint_path == str(tmp_path / "ckpt-3")
    assert names(state.all_model_checkpoint_paths) == ["ckpt-2", "ckpt-3"]
    assert tf.train.get_checkpoint_state(tmp_path / "none") is None


def test_a_second_manager_takes_over(tmp_path):
    first = made(tmp_path)
    first.checkpoint.v.assign(7)
    for _ in range(2):
        first.save()
    second = made(tmp_path)
    assert second.checkpoints == first.checkpoints
    assert second.restore_or_initialize() == first.latest_checkpoint
    assert int(second.checkpoint.v) == 7
    assert names([second.save()]) == ["ckpt-3"]
    assert indexes(tmp_path) == ["ckpt-2", "ckpt-3"]


def test_the_folder_can_be_moved(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    made(old).save()
    old.rename(new)
    assert made(new).latest_checkpoint == str(new / "ckpt-1") == tf.train.latest_checkpoint(new)


def test_names_with_quotes_and_backslashes(tmp_path):
    manager = made(tmp_path, checkpoint_name='a "b" \\c ä')
    path = manager.save()
    assert tf.train.latest_checkpoint(tmp_path) == path == made(tmp_path).latest_checkpoint


def test_one_is_kept_for_good_every_so_often(tmp_path, monkeypatch):
    clock = iter(range(0, 100 * 3600, 1800))  # half an hour from save to save
    monkeypatch.setattr(manager_module.time, "time", lambda: float(next(clock)))
    manager = made(tmp_path, max_to_keep=1, keep_checkpoint_every_n_hours=2)
    for _ in range(12):
        manager.save()
    assert names(manager.checkpoints) == ["ckpt-12"]
    assert indexes(tmp_path) == ["ckpt-12", "ckpt-4", "ckpt-8"]


def test_all_are_kept_without_a_limit(tmp_path):
    manager = made(tmp_path, max_to_keep=None)
    for _ in range(4):
        manager.save()
    assert len(manager.checkpoints) == len(indexes(tmp_path)) == 4


@pytest.mark.parametrize("limit", [0, -1])
def test_limits_that_make_no_sense(tmp_path, limit):
    with pytest.raises(ValueError, match="Expected a positive integer or `None` for `max_to_keep`"):
        made(tmp_path, max_to_keep=limit)


def test_intervals(tmp_path):
    step = tf.Variable(0, dtype=tf.int64)
    manager = made(tmp_path, max_to_keep=None, checkpoint_interval=5, step_counter=step)
    saved = []
    for _ in range(12):
        step.assign_add(1)
        saved.append(manager.save())
    assert [n for n, path in enumerate(saved, 1) if path] == [1, 6, 11]
    assert manager.save(check_interval=False) is not None
    assert names([manager.save(77, check_interval=False)]) == ["ckpt-77"]
    with pytest.raises(ValueError, match="`step_counter` should be passed"):
        made(tmp_path, checkpoint_interval=5)


def test_init_fn_is_called_only_when_there_is_nothing(tmp_path):
    calls = []
    manager = made(tmp_path, init_fn=lambda: calls.append(1))
    assert manager.restore_or_initialize() is None
    manager.save()
    assert manager.restore_or_initialize() == manager.latest_checkpoint
    assert calls == [1]


def test_numbers_given_by_a_variable(tmp_path):
    manager = made(tmp_path)
    assert names([manager.save(tf.Variable(100)), manager.save(tf.constant(200))]) == ["ckpt-100", "ckpt-200"]
    assert int(manager.checkpoint.save_counter) == 2


def test_saving_the_same_number_again_replaces_it(tmp_path):
    manager = made(tmp_path)
    for value in (1, 2, 3):
        manager.checkpoint.v.assign(value)
        manager.save(5)
        manager.checkpoint.v.assign(0)
        manager.checkpoint.restore(manager.latest_checkpoint).assert_consumed()
        assert int(manager.checkpoint.v) == value
        assert len([name for name in os.listdir(tmp_path) if name.endswith(".safetensors")]) == 1


def test_prefixes_that_begin_alike_do_not_touch_each_other(tmp_path):
    v = tf.Variable(0)
    checkpoint = tf.train.Checkpoint(v=v)
    prefixes = [str(tmp_path / name) for name in ("a", "a.1", "a-1", "a.index.json", "ab")]
    for _ in range(2):
        for n, prefix in enumerate(prefixes):
            v.assign(n)
            checkpoint.write(prefix)
    for n, prefix in enumerate(prefixes):
        checkpoint.read(prefix).assert_consumed()
        assert int(v) == n


def test_the_iterator_sees_new_checkpoints(tmp_path):
    manager = made(tmp_path, max_to_keep=None)

    def write():
        for _ in range(3):
            manager.save()
            time.sleep(0.05)

    writer = threading.Thread(target=write)
    writer.start()
    seen = []
    for path in tf.train.checkpoints_iterator(tmp_path, timeout=5):
        seen += names([path])
        if seen[-1] == "ckpt-3":
            break
    writer.join()
    assert seen == sorted(set(seen))
    assert seen[-1] == "ckpt-3"
    assert list(tf.train.checkpoints_iterator(tmp_path / "none", timeout=0)) == []
    answers = iter([False, True])
    assert list(tf.train.checkpoints_iterator(tmp_path / "none", timeout=0, timeout_fn=lambda: next(answers))) == []
