"""Saved models: the variables of objects that have no compiled function."""

from __future__ import annotations

import pytest

import gradtape as tf

pytestmark = pytest.mark.tiny


class Net(tf.Module):
    def __init__(self, value=0.0):
        super().__init__()
        self.w = tf.Variable([value, value], name="weights")
        self.frozen = tf.Variable(1, trainable=False)
        self.layers = [{"a": tf.Variable(value)}, (tf.Variable(value),)]
        self.tied = self.w
        self.me = self

    def __call__(self, x):
        return x * self.w


def test_the_variables_come_back_where_they_were(tmp_path):
    tf.saved_model.save(Net(3.0), tmp_path)
    assert tf.saved_model.contains_saved_model(tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    assert loaded.w.numpy().tolist() == [3.0, 3.0]
    assert loaded.w.name == "weights:0"
    assert not loaded.frozen.trainable
    assert float(loaded.layers[0]["a"]) == float(loaded.layers[1][0]) == 3.0
    assert loaded.tied is loaded.w
    assert loaded.me is loaded
    assert len(loaded.trainable_variables) == 3


def test_what_is_not_compiled_does_not_come_back(tmp_path):
    tf.saved_model.save(Net(), tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    with pytest.raises(tf.errors.UnimplementedError, match=r"cannot be called[\s\S]*make a Net"):
        loaded(1.0)
    with pytest.raises(AttributeError, match="no attribute 'train'"):
        loaded.train  # noqa: B018


def test_a_saved_model_is_a_checkpoint(tmp_path):
    tf.saved_model.save(Net(3.0), tmp_path)
    net = Net()
    tf.train.Checkpoint(net).restore(tmp_path).assert_consumed()
    assert net.w.numpy().tolist() == [3.0, 3.0]
    assert ("w/.ATTRIBUTES/VARIABLE_VALUE", [2]) in tf.train.list_variables(tmp_path)


def test_nothing_there_or_nothing_to_save(tmp_path):
    with pytest.raises(tf.errors.NotFoundError, match="SavedModel file does not exist"):
        tf.saved_model.load(tmp_path)
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(tf.errors.NotFoundError, match="TensorFlow's own saved models"):
        tf.saved_model.load(tmp_path)
    with pytest.raises(ValueError, match="Expected an object of type `Trackable`"):
        tf.saved_model.save(3, tmp_path)
    assert not tf.saved_model.contains_saved_model(tmp_path)


@pytest.mark.parametrize("text", ["", '{"format": 1, "cla', "[]", '{"format": 99}'], ids=["empty", "cut", "other", "newer"])
def test_a_damaged_description_is_noticed(text, tmp_path):
    tf.saved_model.save(Net(), tmp_path)
    (tmp_path / "saved_model.json").write_text(text)
    with pytest.raises(tf.errors.DataLossError, match="saved model"):
        tf.saved_model.load(tmp_path)


def test_a_missing_index_is_noticed(tmp_path):
    tf.saved_model.save(Net(), tmp_path)
    (tmp_path / "variables" / "variables.index.json").unlink()
    with pytest.raises(tf.errors.NotFoundError, match=r"no file .*variables\.index\.json"):
        tf.saved_model.load(tmp_path)
