"""From a network's logits, a vector per frame, to sequences of labels; nothing flows back through a choice."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import FailedPreconditionError, InvalidArgumentError, dims, message
from gradtape.ops.arguments import integer, not_allowed
from gradtape.ops.execution import on_the_host
from gradtape.ops.sparse import SparseTensor
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor, wrap

Decoded = tuple[list[SparseTensor], Tensor]


def greedy(inputs: Any, lengths: Any, merge_repeated: bool, blank: Any) -> Decoded:
    """The best class of each frame, repetitions as one, without blanks; and minus the sum of their logits."""
    label = "CTCGreedyDecoder"
    logits, frames = _checked(label, inputs, lengths)
    time, batch, classes = logits.shape
    blank = -1 if blank is None else integer(blank)
    if not -classes <= blank < classes:
        text = f"blank_index expected to be between {-classes} and {classes - 1} but was {blank} [Op:{label}]"
        raise InvalidArgumentError(message(text, expected="the place of the class that stands for no label"))
    best, used = logits.argmax(axis=2), np.arange(time)[:, None] < frames
    kept = used & (best != blank % classes)
    if merge_repeated:
        kept[1:] &= best[1:] != best[:-1]
    score = 0 - np.where(used, logits.max(axis=2), 0).sum(axis=0)
    return [_sparse([best[kept[:, b], b] for b in range(batch)])], wrap(score[:, None].astype(logits.dtype))


def beam_search(inputs: Any, lengths: Any, beam_width: Any, top_paths: Any) -> Decoded:
    """The ``top_paths`` likeliest sequences among the ``beam_width`` that are followed, and log of their probabilities."""
    label = "CTCBeamSearchDecoder"
    width, count = integer(beam_width), integer(top_paths)
    for name, value in (("beam_width", width), ("top_paths", count)):
        if value < 1:
            text = f"Value for attr '{name}' of {value} must be at least minimum 1 [Op:{label}]"
            raise InvalidArgumentError(message(text, received=f"{name}={value}", expected="1 or more"))
    logits, frames = _checked(label, inputs, lengths)
    if count > width:
        text = f"requested more paths than the beam width. [Op:{label}]"
        raise InvalidArgumentError(message(text, received=f"top_paths={count}, beam_width={width}", fix=f"beam_width={count}"))
    with np.errstate(all="ignore"):  # nan and inf are answers
        found = [_paths(log_softmax(logits[: max(n, 0), b]), width, count, label) for b, n in enumerate(frames)]
    scores = np.array([[score for _, score in paths] for paths in found], logits.dtype).reshape(len(found), count)
    return [_sparse([paths[k][0] for paths in found]) for k in range(count)], wrap(scores)


def _checked(label: str, inputs: Any, lengths: Any) -> tuple[np.ndarray, np.ndarray]:
    """Logits (time, batch, classes), and the number of frames of each example."""
    on_the_host(f"tf.nn: {label}")
    x = convert_to_tensor(inputs)
    sizes = convert_to_tensor(lengths, None if isinstance(lengths, Tensor) else dtypes.int32)
    if x.dtype not in (dtypes.float32, dtypes.float64):
        raise not_allowed(label, x._array.dtype, "float, double")
    if sizes.dtype is not dtypes.int32:
        word = f"as input #1(zero-based) was expected to be a int32 tensor but is a {sizes.dtype.word} tensor"
        raise InvalidArgumentError(message(f"cannot compute {label} {word}", fix="tf.cast(sequence_length, tf.int32)"))
    logits, frames = np.asarray(x._host()), np.asarray(sizes._host())
    if logits.ndim != 3:
        text = f"inputs is not a 3-Tensor [Op:{label}]"
        raise InvalidArgumentError(message(text, received=f"shape {logits.shape}", expected="(time, batch, classes)"))
    if not logits.size:
        text = f"inputs must not be empty [Op:{label}]"
        raise InvalidArgumentError(message(text, received=f"shape {logits.shape}", expected="lengths of 1 or more"))
    time, batch, _ = logits.shape
    if frames.shape != (batch,):
        text = f"len(sequence_length) != batch_size.  len(sequence_length):  {frames.size} batch_size: {batch} [Op:{label}]"
        raise FailedPreconditionError(message(text, received=f"shape {dims(frames.shape)}", expected="one length per example"))
    if (frames > time).any():
        text = f"sequence_length({int(np.argmax(frames > time))}) <= {time} [Op:{label}]"
        raise FailedPreconditionError(message(text, received=f"{frames.tolist()}", expected=f"at most {time} frames"))
    return logits, frames


def _sparse(rows: list) -> SparseTensor:
    """Sequences of labels as the rows of a matrix."""
    places = [(b, k) for b, row in enumerate(rows) for k in range(len(row))]
    indices = np.array(places, np.int64).reshape(-1, 2)
    values = np.array([label for row in rows for label in row], np.int64)
    return SparseTensor(wrap(indices), wrap(values), np.array([len(rows), max(map(len, rows))], np.int64))


def log_softmax(x: np.ndarray) -> np.ndarray:
    """log of the probabilities of the classes by frame, in float64."""
    x = x.astype(np.float64) - x.max(axis=1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=1, keepdims=True))


def _paths(scores: np.ndarray, width: int, count: int, label: str) -> list[tuple[tuple[int, ...], float]]:
    """The best sequences of one example with log of their probabilities, from those of its classes by frame."""
    found = followed(scores, width)
    if len(found) < count:
        text = f"Less leaves in the beam search than requested. [Op:{label}]"
        raise InvalidArgumentError(
            message(text, received=f"top_paths={count}", expected=f"at most {len(found)} for this input")
        )
    return found[:count]


def followed(scores: np.ndarray, width: int) -> list[tuple[tuple[int, ...], float]]:
    """The sequences that a beam of this width is left with, the likeliest first; the last class is blank."""
    beams, paused, spoken = [()], np.zeros(1), np.full(1, -np.inf)  # log of how likely: the last frame is a blank, or a label
    for frame in scores:
        beams, paused, spoken = _step(beams, paused, spoken, frame, width)
    total = np.logaddexp(paused, spoken)
    return [(beams[k], total[k]) for k in np.argsort(-total, kind="stable")]


def _step(beams: list, paused: np.ndarray, spoken: np.ndarray, frame: np.ndarray, width: int) -> tuple:
    """One frame later: each sequence as it is, or longer by a label; the best ``width`` of them."""
    blank = len(frame) - 1
    number = {beam: k for k, beam in enumerate(beams)}
    total = np.logaddexp(paused, spoken)
    last = np.array([beam[-1] if beam else -1 for beam in beams])
    # A label after itself needs a blank in between: otherwise it is the same label going on.
    longer = np.where(np.arange(blank) == last[:, None], paused[:, None], total[:, None]) + frame[:blank]
    kept = spoken.copy()
    for k, beam in enumerate(beams):
        parent = number.get(beam[:-1]) if beam else None
        if parent is not None:  # another way to the same sequence
            kept[k] = np.logaddexp(kept[k], paused[parent] if last[parent] == last[k] else total[parent])
            longer[parent, last[k]] = -np.inf
    kept = np.where(last < 0, -np.inf, kept + frame[last])
    stays = total + frame[blank]
    rows, labels = np.nonzero(longer > -np.inf)
    new = longer[rows, labels]
    order = np.argsort(-np.concatenate([np.logaddexp(stays, kept), new]), kind="stable")[:width]
    names = [beams[k] if k < len(beams) else (*beams[rows[k - len(beams)]], int(labels[k - len(beams)])) for k in order]
    paused = np.concatenate([stays, np.full(len(new), -np.inf)])[order]
    return names, paused, np.concatenate([kept, new])[order]
