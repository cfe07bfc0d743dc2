"""Strings; calls are compared with TensorFlow in goldens/functions/strings.txt."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradtape as tf
from gradtape.ops.hashing import fingerprint
from gradtape.ops.patterns import compiled

pytestmark = pytest.mark.tiny
TEXT = st.text(max_size=8)
FINGERPRINTS = [  # recorded from TensorFlow
    1936946117179621455, 2541178086691639310, 3752438123884194029, 925916839298926483,
    2853067518515412759, 3682008299450148630, 3627407742297948758, 2627555923116962026,
]  # fmt: skip


@given(TEXT, st.sampled_from(["utf-8", "utf-16-be", "utf-32-be"]))
def test_unicode_there_and_back(text, encoding):
    text = text.encode("utf-8", "ignore").decode()
    name = encoding.upper()
    codes = tf.strings.unicode_decode(text.encode(encoding), name)
    assert codes.numpy().tolist() == [ord(c) for c in text]
    assert tf.strings.unicode_encode(codes, name).numpy() == text.encode(encoding)
    assert tf.strings.unicode_transcode(text.encode(encoding), name, "UTF-8").numpy() == text.encode()


@given(st.binary(max_size=12))
def test_wrong_utf_8_is_replaced_as_python_does_it(data):
    codes, starts = tf.strings.unicode_decode_with_offsets(data, "UTF-8")
    assert "".join(map(chr, codes.numpy())) == data.decode("utf-8", "replace")
    assert all(a < b for a, b in zip(starts.numpy(), starts.numpy()[1:]))
    codes = tf.strings.unicode_decode(data, "UTF-8", errors="ignore")
    assert "".join(map(chr, codes.numpy())) == data.decode("utf-8", "ignore")


@given(st.lists(st.sampled_from(["a", "b", " ", "  ", "\t", ","]), max_size=8).map("".join))
def test_splitting_as_python_does_it(text):
    assert [part.decode() for part in tf.strings.split(text).numpy()] == text.split()
    assert [part.decode() for part in tf.strings.split(text, sep=",").numpy()] == text.split(",")
    for most in (1, 2):
        assert [part.decode() for part in tf.strings.split(text, sep=",", maxsplit=most).numpy()] == text.split(",", most)


@given(st.floats(width=32, allow_nan=False, allow_subnormal=False))
def test_numbers_there_and_back(number):
    text = tf.strings.as_string(tf.constant(number), precision=9, scientific=True)
    assert float(tf.strings.to_number(text)) == number


@given(st.integers(-(2**63), 2**63 - 1))
def test_integers_there_and_back(number):
    assert int(tf.strings.to_number(tf.strings.as_string(tf.constant(number, tf.int64)), tf.int64)) == number


def test_the_fingerprint_is_farmhash_s():
    """One string of each branch: no bytes, up to 3, 7, 16, 32, 64, more, and a multiple of 64."""
    texts = [bytes((n * 7 + k * k * 3) % 256 for k in range(n)) for n in (0, 2, 6, 12, 25, 50, 100, 128)]
    assert [fingerprint(text) % 2**62 for text in texts] == FINGERPRINTS


# Patterns


PATTERNS = r"a.c \d+ [^a-z] (a|b)* ^x x$ a{2,3} []a] [a-] \. (?i)AB [\[a] \bx"


@pytest.mark.parametrize("text", ["abc", "x12", "aab", "]a-.", "AB[", ""])
def test_ordinary_patterns_are_python_s(text):
    for pattern in PATTERNS.split():
        assert bool(compiled(pattern).search(text)) == bool(re.search(pattern, text))


@pytest.mark.parametrize(
    ("pattern", "text", "whole"),
    [
        (r"\d", "٣", False),  # ASCII alone
        (r"\w+", "é", False),
        ("[[:alpha:]]+", "abz", True),
        ("[[:^alpha:]]+", "12é", True),
        ("[^[:space:]x]+", "abc", True),
        (r"\pL+", "äß", True),
        (r"\PL+", "12", True),
        (r"\p{Lu}\p{Ll}+", "Äpfel", True),
        (r"\p{^Lu}", "a", True),
        (r"[\p{L}\d]+", "ä1", True),
        (r"\Qa.b\E+", "a.bb", True),
        (r"a\z", "a", True),
        ("[[]", "[", True),
        ("[]]", "]", True),
    ],
)
def test_what_re2_adds(pattern, text, whole):
    assert bool(tf.strings.regex_full_match(text, pattern)) is whole


@pytest.mark.parametrize("pattern", ["(", "[a", "a**", r"\p{Greek}", "[[:nothing:]]", "(?P<a"])
def test_wrong_patterns(pattern):
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid pattern"):
        tf.strings.regex_replace("x", pattern, "")


def test_wrong_rewrites():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"names group 2 of 1"):
        tf.strings.regex_replace("x", "(x)", r"\2")
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid rewrite pattern"):
        tf.strings.regex_replace("x", "(x)", "\\n")
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be scalar"):
        tf.strings.regex_replace("x", ["x"], "")


def test_a_group_that_did_not_take_part_is_empty():
    assert tf.strings.regex_replace("b", "(a)?b", r"<\1>").numpy() == b"<>"


# Elements


def test_zeros_at_the_end_of_a_string_are_kept():
    value = tf.constant([b"a\0", b"\0\0"])
    assert tf.strings.lower(value).numpy().tolist() == [b"a\0", b"\0\0"]
    assert tf.strings.join([value, "x"]).numpy().tolist() == [b"a\0x", b"\0\0x"]
    assert tf.strings.substr(b"a\0", 1, 1).numpy() == b"\0"


@given(st.lists(TEXT.map(str.encode), min_size=1, max_size=5))
def test_joining_along_an_axis_is_joining(texts):
    assert tf.strings.reduce_join(texts, separator="|").numpy() == b"|".join(texts)
    assert tf.strings.join([tf.constant(t) for t in texts], separator="|").numpy() == b"|".join(texts)


def test_numbers_are_refused_where_strings_are_needed():
    with pytest.raises(TypeError, match=r"Cannot convert 1\.0 to EagerTensor of dtype string"):
        tf.strings.lower(1.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"expected to be a string tensor[\s\S]*as_string"):
        tf.strings.length(tf.constant([1, 2]))


def test_variables_hold_strings_too():
    assert tf.strings.upper(tf.Variable(["a"])).numpy().tolist() == [b"A"]


def test_ragged_tensors_keep_their_rows():
    pytest.importorskip("gradtape.ops.ragged")
    words = tf.strings.split(["a b", "", "c"])
    assert tf.strings.upper(words).to_list() == [[b"A", b"B"], [], [b"C"]]
    assert tf.strings.length(words).to_list() == [[1, 1], [], [1]]
    assert tf.strings.join([words, "!"]).to_list() == [[b"a!", b"b!"], [], [b"c!"]]
    codes = tf.strings.unicode_decode(["ab", "ä"], "UTF-8")
    assert tf.strings.unicode_encode(codes, "UTF-8").numpy().tolist() == [b"ab", "ä".encode()]
    assert tf.strings.ngrams(words, 2).to_list() == [[b"a b"], [], []]
    assert np.asarray(tf.strings.split([["a b"], ["c"]]).flat_values).tolist() == [b"a", b"b", b"c"]


def test_nearest_names():
    with pytest.raises(AttributeError, match=r"Did you mean tf\.strings\.lower"):
        tf.strings.lowr  # noqa: B018
