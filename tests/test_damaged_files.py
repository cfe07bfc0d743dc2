"""Bits that flip: what has checksums is refused or read right, what has none is refused or read as something else."""

from __future__ import annotations

import logging
import zlib
from collections import Counter

import damaged_files
import numpy as np
import pytest
from damaged_files import CHECKED, UNCHECKED, frozen
from hypothesis import given
from hypothesis import strategies as st

import gradtape as tf
from gradtape.train.crc32c import crc32c, mask

KINDS = {**CHECKED, **UNCHECKED}
CALLER_NAMES_IT = ("PNG", "PNG of 16 bits")  # bytes are decoded, of whatever file
SAMPLE = 40


def flips(size, sample):
    """Places and patterns: a bit of every byte, or of some, and all bits of it; of small files every bit, of large ones one."""
    generator = np.random.default_rng(size)
    places = range(size) if sample is None else sorted(generator.choice(size, min(size, sample), replace=False).tolist())
    for place in places:
        some = (1 << place % 8, 255)[: 1 if size > 8000 and sample is None else 2]
        for pattern in some if sample or size >= 1500 else (1, 2, 4, 8, 16, 32, 64, 128, 255):
            yield place, pattern


def read_damaged(kind, folder, sample):
    """How often each thing happened, for each file of a kind."""
    write, read = KINDS[kind]
    write(folder)
    right = frozen(read(folder))
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        whole = file.read_bytes()
        for place, pattern in flips(len(whole), sample):
            file.write_bytes(whole[:place] + bytes([whole[place] ^ pattern]) + whole[place + 1 :])
            try:
                yield file, place, pattern, "right" if frozen(read(folder)) == right else "other"
            except tf.errors.OpError as error:
                yield file, place, pattern, error
        file.write_bytes(whole)
    assert frozen(read(folder)) == right


def check(kind, folder, sample):
    seen = Counter()
    for file, place, pattern, result in read_damaged(kind, folder, sample):
        where = f"{file.relative_to(folder)}: byte {place} ^ {pattern}: {result}"
        seen[result if isinstance(result, str) else type(result).__name__] += 1
        if kind in CHECKED:
            assert not isinstance(result, str) or result == "right", where
        if kind in CHECKED and kind not in CALLER_NAMES_IT and not isinstance(result, str):
            assert isinstance(result, tf.errors.DataLossError), where
            assert str(file) in str(result), where
    return seen


QUIET = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning", "ignore::SyntaxWarning")


@QUIET
@pytest.mark.parametrize("kind", KINDS)
def test_some_bytes(kind, tmp_path, caplog):
    caplog.set_level(logging.CRITICAL)
    assert check(kind, tmp_path, 10 if "h5" in kind or "model" in kind or kind == "keras" else SAMPLE).total() > 9


@QUIET
@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "h5 of others"])  # in which HDF5's library may crash
def test_every_byte(kind, tmp_path, caplog):
    caplog.set_level(logging.CRITICAL)
    print(kind, dict(check(kind, tmp_path, None)))


# What stands behind it


def crc_by_bytes(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@given(st.binary(max_size=40), st.sampled_from([0, 1, 290 * 8 - 41, 290 * 8, 5000]))
def test_crc32c_of_bytes(data, more):
    data += bytes(range(256)) * (more // 256) + data[: more % 256]
    assert crc32c(data) == crc_by_bytes(data)


def test_crc32c_of_long_arrays():
    """A checksum is linear: what one flipped bit changes is the same wherever else bits are flipped."""
    assert crc32c(b"123456789") == 0xE3069283  # from RFC 3720
    long = np.random.default_rng(0).integers(0, 256, (1 << 19) * 3 + 5, np.uint8)
    zeros, base = np.zeros_like(long), crc32c(np.zeros_like(long))
    other = np.random.default_rng(1).integers(0, 256, long.size, np.uint8)
    assert crc32c(long ^ other) ^ base == crc32c(long) ^ crc32c(other)
    last = zeros.copy()
    last[-3000:] = tail = long[-3000:]
    assert crc32c(last) ^ base == crc32c(tail) ^ crc32c(np.zeros_like(tail))
    assert mask(0) == 0xA282EAD8


def test_a_checkpoint_of_the_first_format_is_read(tmp_path):
    """It has neither a checksum of the index nor of the lengths of strings."""
    damaged_files.write_checkpoint(tmp_path)
    index = tmp_path / "ckpt.index.json"
    right, text = frozen(damaged_files.read_checkpoint(tmp_path)), index.read_text()
    first = text.rpartition(',"crc32":')[0].replace('"format":2', '"format":1') + "}"
    index.write_text(first)
    assert frozen(damaged_files.read_checkpoint(tmp_path)) == right
    index.write_text(text.replace('"format":2', '"format":1'))  # it says so, but has a checksum
    with pytest.raises(tf.errors.DataLossError, match="checksum"):
        damaged_files.read_checkpoint(tmp_path)
    for part in ('"object":', '"dtype":', '"kind":', "/.ATTRIBUTES/VARIABLE_VALUE"):
        index.write_text(first.replace(part, part.swapcase(), 1))
        with pytest.raises(tf.errors.DataLossError, match=r"ckpt\.index\.json"):
            damaged_files.read_checkpoint(tmp_path)


def test_what_is_restored_later_is_read_before(tmp_path):
    """A damaged slot stops a restore into a program whose optimizer has no slots yet: nothing is changed."""
    damaged_files.write_checkpoint(tmp_path)
    data = tmp_path / "ckpt.safetensors"
    whole = data.read_bytes()
    momentum = tf.train.load_variable(tmp_path / "ckpt", _named(tmp_path / "ckpt", "momentum")).tobytes()
    at = whole.index(momentum)
    data.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    net, optimizer = tf.Module(), tf.optimizers.Adam(0.1)
    net.w = tf.Variable([0.0, 0.0])
    with pytest.raises(tf.errors.DataLossError, match="momentum"):
        tf.train.Checkpoint(net=net, optimizer=optimizer).restore(tmp_path / "ckpt")
    assert net.w.numpy().tolist() == [0.0, 0.0]
    assert tf.train.load_variable(tmp_path / "ckpt", "net/w/.ATTRIBUTES/VARIABLE_VALUE").shape == (2,)  # one by one


def _named(prefix, part):
    return next(name for name, _ in tf.train.list_variables(prefix) if part in name)


def test_a_damaged_program_is_compiled_again(tmp_path, caplog):
    pytest.importorskip("jax")

    def run():
        return tf.function(lambda x: tf.tanh(x) * 3.0)(tf.constant([0.5, -2.0])).numpy().tolist()

    before = tf.config.get_compile_cache()
    tf.config.set_compile_cache(tmp_path)
    try:
        right = run()
        (file,) = (path for path in tmp_path.iterdir() if path.name.endswith("-cache"))
        whole = file.read_bytes()
        assert int.from_bytes(whole[-4:], "little") == zlib.crc32(whole[:-4])
        for damaged in (b"", whole[:-9], b"\0" + whole[1:], whole[:99] + bytes([whole[99] ^ 8]) + whole[100:]):
            file.write_bytes(damaged)
            caplog.clear()
            assert run() == right
            assert "is damaged, and is compiled again" in caplog.text
            assert file.read_bytes() != damaged
            caplog.clear()
            assert run() == right
            assert not caplog.text
    finally:
        tf.config.set_compile_cache(before)


@pytest.mark.parametrize(
    "line", ["model_checkpoint_path", 'model_checkpoint_path: "', "model_checkpoint_path: 3", 'other: "x"', "\xff", ": 1"]
)
def test_a_state_of_checkpoints_that_makes_no_sense(line, tmp_path):
    """As if there were none, a run would begin anew, and write over the others."""
    (tmp_path / "checkpoint").write_text(f'model_checkpoint_path: "a"\n{line}\n', encoding="latin-1")
    for read in (tf.train.latest_checkpoint, tf.train.get_checkpoint_state):
        with pytest.raises(tf.errors.DataLossError, match=str(tmp_path)):
            read(tmp_path)
    (tmp_path / "checkpoint").write_text('# a comment\n\nmodel_checkpoint_path:   "a"\n')
    assert tf.train.get_checkpoint_state(tmp_path).model_checkpoint_path == str(tmp_path / "a")


def test_words_need_not_be_utf_8(tmp_path):
    path = str(tmp_path / "words")
    tf.io.write_file(path, b"one\xff\n\xc3\n")
    table = tf.lookup.StaticHashTable(
        tf.lookup.TextFileInitializer(path, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, -1), -7
    )
    assert table.lookup([b"one\xff", b"\xc3", b"one"]).numpy().tolist() == [0, 1, -7]
    tf.io.write_file(path, b"1,\xff\n2,b\xc3\x0c\n")
    rows = tf.data.experimental.CsvDataset(path, [tf.int32, tf.string])
    assert [text.numpy() for _, text in rows] == [b"\xff", b"b\xc3\x0c"]


def test_an_entry_of_an_archive_that_is_hidden(tmp_path):
    """The length of a comment in the table of contents swallows what follows."""
    damaged_files.write_keras(tmp_path)
    file = tmp_path / "model.keras"
    whole = bytearray(file.read_bytes())
    whole[whole.index(b"PK\1\2") + 32] ^= 128
    file.write_bytes(whole)
    with pytest.raises(tf.errors.DataLossError, match=r"model\.keras"):
        damaged_files.read_keras(tmp_path)
