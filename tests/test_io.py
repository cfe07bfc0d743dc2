"""Files on the local disk, and bytes that become tensors; calls are compared with TensorFlow in goldens/functions/io.txt."""

from __future__ import annotations

import contextlib
import csv
import io
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import gradtape as tf

pytestmark = pytest.mark.tiny
gfile = tf.io.gfile


def test_whole_files(tmp_path):
    path = tmp_path / "deep" / "er" / "file"
    tf.io.write_file(str(path), b"a\0b\n")
    assert tf.io.read_file(str(path)).numpy() == b"a\0b\n"
    assert tf.io.read_file(path).numpy() == tf.io.read_file(tf.constant(str(path))).numpy()
    assert tf.io.read_file(f"file://{path}").numpy() == b"a\0b\n"
    assert tf.io.matching_files(str(tmp_path / "*" / "*" / "f*")).numpy().tolist() == [str(path).encode()]
    with pytest.raises(tf.errors.FailedPreconditionError, match="Is a directory"):
        tf.io.read_file(str(tmp_path))


def test_text_and_binary(tmp_path):
    path = str(tmp_path / "f")
    with gfile.GFile(path, "w") as file:
        file.write("one\n")
        file.write("zwei ä\n")
        file.flush()
        assert file.size() == 12
    with gfile.GFile(path) as file:
        assert (file.name, file.mode, file.seekable()) == (path, "r", True)
        assert file.read(2) == "on"
        assert file.readline() == "e\n"
        file.seek(0)
        assert file.tell() == 0
        assert list(file) == ["one\n", "zwei ä\n"]
        assert file.readlines() == []
    with gfile.GFile(path, "rb") as file:
        assert file.readlines() == [b"one\n", "zwei ä\n".encode()]
    with gfile.GFile(path, "a") as file:
        file.write("three\r\n")
    assert gfile.GFile(path).read() == "one\nzwei ä\nthree\r\n"
    with gfile.GFile(path, "w+") as file:
        file.write(tf.constant("x"))
        file.seek(0)
        assert file.read() == "x"


def test_a_file_is_opened_when_it_is_used(tmp_path):
    file = gfile.GFile(tmp_path / "none")
    with pytest.raises(tf.errors.NotFoundError, match="No such file or directory"):
        file.read()
    with pytest.raises(tf.errors.PermissionDeniedError, match="isn't open for writing"):
        file.write("x")
    with pytest.raises(tf.errors.PermissionDeniedError, match="isn't open for reading"):
        gfile.GFile(tmp_path / "none", "w").read()
    with pytest.raises(tf.errors.InvalidArgumentError, match="mode is not"):
        gfile.GFile(tmp_path / "none", "x")


def test_folders(tmp_path):
    top = str(tmp_path / "top")
    gfile.makedirs(gfile.join(top, "a", "b"))
    gfile.makedirs(top)
    gfile.mkdir(top)
    gfile.mkdir(gfile.join(top, "c"))
    for name in ("x.txt", "a/y.txt", "a/b/z.txt"):
        tf.io.write_file(gfile.join(top, name), name)
    assert gfile.listdir(top) == ["a", "c", "x.txt"]
    assert list(gfile.walk(top)) == [
        (top, ["a", "c"], ["x.txt"]), (f"{top}/a", ["b"], ["y.txt"]), (f"{top}/a/b", [], ["z.txt"]), (f"{top}/c", [], []),
    ]  # fmt: skip
    assert [folder for folder, _, _ in gfile.walk(top, topdown=False)][-1] == top
    assert gfile.glob(top + "/*.txt") == [top + "/x.txt"]
    assert gfile.glob([top + "/a/*.txt", top + "/*.txt"]) == [top + "/a/y.txt", top + "/x.txt"]
    assert gfile.isdir(top)
    assert gfile.stat(top).is_directory
    assert gfile.stat(top + "/x.txt").length == 5
    assert gfile.exists(top + "/x.txt")
    gfile.remove(top + "/x.txt")
    assert not gfile.exists(top + "/x.txt")
    with pytest.raises(tf.errors.FailedPreconditionError, match=r"Is a directory[\s\S]*rmtree"):
        gfile.remove(top)
    gfile.rmtree(top)
    assert not gfile.exists(top)
    assert set(gfile.get_registered_schemes()) == {"", "file"}


def test_copying_and_renaming(tmp_path):
    one, two, three = (str(tmp_path / name) for name in ("one", "two", "three"))
    tf.io.write_file(one, "1")
    gfile.copy(one, two)
    for action in (gfile.copy, gfile.rename):
        with pytest.raises(tf.errors.AlreadyExistsError, match="file already exists"):
            action(one, two)
    tf.io.write_file(one, "new")
    gfile.copy(one, two, overwrite=True)
    assert gfile.GFile(two).read() == "new"
    gfile.rename(two, three)
    gfile.rename(one, three, overwrite=True)
    assert sorted(os.listdir(tmp_path)) == ["three"]


def test_folders_and_files_in_each_other_s_place(tmp_path):
    tf.io.write_file(str(tmp_path / "file"), "")
    with pytest.raises(tf.errors.FailedPreconditionError, match="is not a directory"):
        gfile.makedirs(tmp_path / "file")
    with pytest.raises(tf.errors.FailedPreconditionError):
        gfile.makedirs(tmp_path / "file" / "below")
    with pytest.raises(tf.errors.NotFoundError, match="Could not find directory"):
        gfile.listdir(tmp_path / "file")


@pytest.mark.parametrize("scheme", ["gs", "s3", "hdfs"])
def test_other_file_systems(scheme):
    with pytest.raises(tf.errors.UnimplementedError, match=f"File system scheme '{scheme}' not implemented"):
        gfile.exists(f"{scheme}://bucket/x")


NUMBERS = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


SHAPES = arrays.array_shapes(min_dims=0, min_side=0)


@given(st.sampled_from([*NUMBERS, "bool", "complex64", "complex128"]).flatmap(lambda dtype: arrays.arrays(dtype, SHAPES)))
def test_serialized_tensors_come_back(array):
    back = tf.io.parse_tensor(tf.io.serialize_tensor(array), array.dtype)
    assert back.numpy().tobytes() == array.tobytes()
    assert back.shape == array.shape


@given(st.lists(st.binary(max_size=300), max_size=4))
def test_serialized_strings_and_base64_come_back(texts):
    tensor = tf.constant(texts, tf.string)
    assert tf.io.parse_tensor(tf.io.serialize_tensor(tensor), tf.string).numpy().tolist() == texts
    for pad in (False, True):
        assert tf.io.decode_base64(tf.io.encode_base64(tensor, pad=pad)).numpy().tolist() == texts


@given(st.binary(max_size=40))
def test_any_bytes_are_parsed_or_refused(data):
    with contextlib.suppress(tf.errors.InvalidArgumentError):
        assert tf.io.parse_tensor(data, tf.float32).dtype == tf.float32


FIELD = st.text(st.characters(blacklist_characters="\r\n\0", blacklist_categories=["Cs"]), min_size=1, max_size=6)


@given(st.lists(st.lists(FIELD, min_size=2, max_size=2), min_size=1, max_size=4))
def test_csv_written_by_python_comes_back(rows):
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    columns = tf.io.decode_csv(out.getvalue().split("\n")[:-1], ["", ""])
    found = [[text.decode() for text in column.numpy()] for column in columns]
    assert [list(row) for row in zip(*found)] == rows


def test_raw_bytes_are_numpy_s():
    data = np.arange(6, dtype="<f4")
    assert np.array_equal(tf.io.decode_raw([data.tobytes()] * 2, tf.float32).numpy(), np.stack([data] * 2))
    big = tf.io.decode_raw(data.astype(">f4").tobytes(), tf.float32, little_endian=False)
    assert np.array_equal(big.numpy(), data)


@pytest.mark.parametrize("name", ["TFRecordWriter", "FixedLenFeature", "parse_single_example", "decode_proto"])
def test_out_of_scope(name):
    with pytest.raises(AttributeError, match=rf"tf\.io\.{name} is out of scope"):
        getattr(tf.io, name)
