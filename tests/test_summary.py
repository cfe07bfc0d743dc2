"""Event files, read back by TensorBoard's own reader."""

from __future__ import annotations

import io
import os
import threading

import numpy as np
import pytest

import gradtape as tf

pytest.importorskip("tensorboardX")
accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
tensor_util = pytest.importorskip("tensorboard.util.tensor_util")


class Log:
    """What TensorBoard finds in a folder."""

    def __init__(self, folder):
        self.found = accumulator.EventAccumulator(str(folder), size_guidance={accumulator.TENSORS: 0})
        self.found.Reload()

    def tags(self):
        return sorted(self.found.Tags()["tensors"])

    def values(self, tag):
        return [(event.step, tensor_util.make_ndarray(event.tensor_proto)) for event in self.found.Tensors(tag)]

    def plugin(self, tag):
        return self.found.SummaryMetadata(tag).plugin_data.plugin_name


@pytest.fixture
def writer(tmp_path):
    writer = tf.summary.create_file_writer(str(tmp_path))
    yield writer
    writer.close()
    tf.summary.experimental.set_step(None)


def test_scalars(writer, tmp_path):
    with writer.as_default():
        for step in range(30):
            assert bool(tf.summary.scalar("loss", tf.constant(step / 2, tf.float64), step=step, description="how far"))
        tf.summary.scalar("from variables", tf.Variable(3), step=tf.Variable(7, dtype=tf.int64))
    log = Log(tmp_path)
    assert [(step, float(value)) for step, value in log.values("loss")] == [(n, n / 2) for n in range(30)]
    assert log.values("loss")[0][1].dtype == np.float32
    assert log.plugin("loss") == "scalars"
    assert log.found.SummaryMetadata("loss").summary_description == "how far"
    assert log.values("from variables") == [(7, np.float32(3))]


def test_names_in_scopes(writer, tmp_path):
    with writer.as_default(), tf.name_scope("train"), tf.name_scope("inner"):
        tf.summary.scalar("loss", 1.0, step=0)
    with writer.as_default(), tf.summary.experimental.summary_scope("outer") as (tag, scope):
        assert (tag, scope) == ("outer", "outer/")
        tf.summary.scalar("loss", 1.0, step=0)
    assert Log(tmp_path).tags() == ["outer/loss", "train/inner/loss"]


def test_histograms(writer, tmp_path):
    data = np.array([1.0, 2.0, 2.0, 3.0, 9.0], np.float32)
    with writer.as_default(step=1):
        tf.summary.histogram("all", data)
        tf.summary.histogram("two", tf.constant([1, 2, 3]), buckets=2)
        tf.summary.histogram("equal", [2.0, 2.0], buckets=3)
        tf.summary.histogram("none", [], buckets=3)
        tf.summary.histogram("no buckets", [1.0], buckets=0)
    log = Log(tmp_path)
    ((_, table),) = log.values("all")
    assert table.shape == (30, 3)
    assert table[:, 2].sum() == 5
    assert (table[0, 0], table[-1, 1]) == (1.0, 9.0)
    assert log.values("two")[0][1].tolist() == [[1.0, 2.0, 1.0], [2.0, 3.0, 2.0]]
    assert log.values("equal")[0][1].tolist() == [[2, 2, 0], [2, 2, 0], [2, 2, 2]]
    assert log.values("none")[0][1].tolist() == [[0, 0, 0]] * 3
    assert log.values("no buckets")[0][1].shape == (0, 3)
    assert log.plugin("all") == "histograms"


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_images(writer, tmp_path, channels):
    image = pytest.importorskip("PIL.Image")
    data = np.random.RandomState(0).randint(0, 256, (5, 3, 4, channels), np.uint8)
    with writer.as_default(step=0):
        tf.summary.image("bytes", data, max_outputs=2)
        tf.summary.image("floats", (data / np.float32(255)).astype(np.float32))
        tf.summary.image("outside", np.full((1, 1, 1, channels), 7.0, np.float32))
    log = Log(tmp_path)
    for tag, count in (("bytes", 2), ("floats", 3)):
        width, height, *pictures = log.values(tag)[0][1].tolist()
        assert (width, height, len(pictures)) == (b"4", b"3", count)
        for picture, expected in zip(pictures, data):
            found = np.asarray(image.open(io.BytesIO(picture))).reshape(3, 4, channels)
            assert np.array_equal(found, expected)
    assert np.all(np.asarray(image.open(io.BytesIO(log.values("outside")[0][1][2]))) == 255)
    assert log.plugin("bytes") == "images"


def test_texts_sounds_and_tensors(writer, tmp_path):
    wave = pytest.importorskip("wave")
    sound = np.array([0.0, 0.5, -1.0, 1.0], np.float32).reshape(1, 4, 1)
    with writer.as_default(step=2):
        tf.summary.text("text", "# hello ä")
        tf.summary.text("table", [["a", "b"], ["c", "d"]])
        tf.summary.audio("sound", sound, 8000)
        tf.summary.write("tensor", tf.constant([[1, 2]], tf.int64), step=9)
        tf.summary.write("made when needed", lambda: tf.constant(1.0))
    log = Log(tmp_path)
    assert log.values("text")[0][1].item().decode() == "# hello ä"
    assert log.values("table")[0][1].tolist() == [[b"a", b"b"], [b"c", b"d"]]
    (((data, _),),) = (log.values("sound")[0][1].tolist(),)
    with wave.open(io.BytesIO(data)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (8000, 1, 2)
        assert np.frombuffer(file.readframes(4), "<i2").tolist() == [0, 16384, -32768, 32767]
    ((step, tensor),) = log.values("tensor")
    assert (step, tensor.tolist(), tensor.dtype) == (9, [[1, 2]], np.int64)
    assert log.values("made when needed")[0][0] == 2


def test_summaries_made_elsewhere(writer, tmp_path):
    from tensorboardX.summary import scalar

    with writer.as_default(step=1):
        tf.summary.experimental.write_raw_pb(scalar("old", 2.5).SerializeToString())
    assert Log(tmp_path).found.Scalars("old")[0].value == 2.5


def test_when_nothing_is_recorded(writer, tmp_path):
    assert not bool(tf.summary.scalar("no writer", 1.0))  # not even a step is needed
    assert not bool(tf.summary.should_record_summaries())
    with writer.as_default(step=0):
        assert bool(tf.summary.should_record_summaries())
        for condition in (False, lambda: False, tf.constant(False), lambda: tf.constant(False)):
            with tf.summary.record_if(condition):
                assert not bool(tf.summary.should_record_summaries())
                assert not bool(tf.summary.scalar("not wanted", 1.0))
        step = tf.Variable(0)
        with tf.summary.record_if(lambda: tf.equal(step % 2, 0)):
            written = [bool(tf.summary.scalar("even", 1.0, step=step)) for _ in range(4) if step.assign_add(1) is not None]
        assert written == [False, True, False, True]
        with tf.summary.create_noop_writer().as_default():
            assert bool(tf.summary.should_record_summaries())
    assert Log(tmp_path).tags() == ["even"]


def test_the_step(writer, tmp_path):
    with writer.as_default():
        with pytest.raises(ValueError, match="No step set"):
            tf.summary.scalar("x", 1.0)
        step = tf.Variable(3, dtype=tf.int64)
        tf.summary.experimental.set_step(step)
        tf.summary.scalar("x", 1.0)
        step.assign(4)
        tf.summary.scalar("x", 2.0)
        with writer.as_default(step=9):
            tf.summary.scalar("x", 3.0)
        assert tf.summary.experimental.get_step() is step
    assert [n for n, _ in Log(tmp_path).values("x")] == [3, 4, 9]


def test_each_thread_has_its_own_writer(writer):
    found = []
    with writer.as_default(step=1):
        other = threading.Thread(target=lambda: found.append(bool(tf.summary.should_record_summaries())))
        other.start()
        other.join()
    assert found == [False]


def test_a_writer_set_for_good(tmp_path):
    writer = tf.summary.create_file_writer(tmp_path, filename_suffix=".mine", max_queue=1)
    writer.set_as_default(step=1)
    try:
        tf.summary.scalar("x", 1.0)
        assert Log(tmp_path).tags() == ["x"]  # on the disk at once: the queue is one long
        tf.summary.flush()
    finally:
        from gradtape.summary.writer import state

        state.writer = state.step = None
        writer.close()
    assert all(name.endswith(".mine") for name in os.listdir(tmp_path))


def test_two_writers_in_one_folder_are_two_files(tmp_path):
    first, second = tf.summary.create_file_writer(tmp_path), tf.summary.create_file_writer(tmp_path)
    assert len(os.listdir(tmp_path)) == 2
    assert all(name.startswith("events.out.tfevents.") and name.endswith(".v2") for name in os.listdir(tmp_path))
    first.close()
    second.close()


def test_a_closed_writer(tmp_path):
    writer = tf.summary.create_file_writer(tmp_path)
    writer.init()
    with writer.as_default(step=0):
        tf.summary.scalar("x", 1.0)
        writer.close()
        with pytest.raises(RuntimeError, match="is already closed"):
            tf.summary.scalar("x", 1.0)
    writer.close()
    writer.flush()
    with pytest.raises(RuntimeError, match="is already closed"), writer.as_default():
        pass
    assert Log(tmp_path).tags() == ["x"]


def test_wrong_input(writer):
    with writer.as_default(step=0):
        with pytest.raises(ValueError, match=r"Expected scalar shape, saw shape: \(2,\)"):
            tf.summary.scalar("x", [1.0, 2.0])
        with pytest.raises(tf.errors.UnimplementedError, match="Cast string to float"):
            tf.summary.scalar("x", "text")
        with pytest.raises(TypeError, match=r"must be of type tf\.string; got tf\.float32"):
            tf.summary.text("x", 1.0)
        with pytest.raises(ValueError, match="must have rank 4"):
            tf.summary.image("x", np.zeros((2, 2, 3)))
        with pytest.raises(ValueError, match="1, 2, 3, or 4 channels; got 5"):
            tf.summary.image("x", np.zeros((1, 2, 2, 5)))
        with pytest.raises(ValueError, match="must have rank 3"):
            tf.summary.audio("x", np.zeros((2, 2)), 8000)
        with pytest.raises(ValueError, match="Unknown encoding"):
            tf.summary.audio("x", np.zeros((1, 2, 1)), 8000, encoding="mp3")
    with pytest.raises(ValueError, match="`logdir` cannot be None"):
        tf.summary.create_file_writer(None)
    with pytest.raises(TypeError, match="Cannot convert 3"):
        tf.summary.create_file_writer(3)


def test_traces_and_graphs_say_what_is_not_there():
    with pytest.raises(ValueError, match="Must enable trace before export"):
        tf.summary.trace_export("x", step=0)
    with pytest.warns(UserWarning, match="graphs and profiles are not written"):
        tf.summary.trace_on(graph=True, profiler=True)
    tf.summary.trace_export("x", step=0, profiler_outdir="nowhere")
    with pytest.warns(UserWarning, match="trace_export will add nothing"):
        tf.summary.trace_on()
    tf.summary.trace_off()
    with pytest.raises(ValueError, match=r"is not tf\.Graph"):
        tf.summary.graph(None)
