"""Losses over many classes by sampling a few of them, and the loss of unaligned label sequences (CTC)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, dims, message
from gradtape.ops import arguments, candidates, contract, control_flow, elementwise, indexing, nn, reduce
from gradtape.ops import shape as shapes
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor, wrap

# Sampled classes


def _sampled_logits(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: Any, num_classes: Any, num_true: int,
    sampled_values: Any, remove_accidental_hits: bool, seed: Any,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Logits of the true classes and of sampled ones, each less the log of its expected count, and their labels."""
    inputs = convert_to_tensor(inputs)
    labels = elementwise.cast(convert_to_tensor(labels), dtypes.int64)
    batch, width = inputs._array.shape
    if labels._array.shape != (batch, num_true):
        raise InvalidArgumentError(
            message(
                f"true_classes must be a matrix of {batch} rows and num_true = {num_true} columns",
                received=f"labels of shape {labels._array.shape}",
                fix="labels[:, tf.newaxis] for one class per example",
            )
        )
    if sampled_values is None:
        sampled_values = candidates.sample(
            "log_uniform", labels, num_true, num_sampled, True, candidates.log_uniform(arguments.integer(num_classes)), seed
        )
    sampled, true_expected, sampled_expected = (elementwise.stop_gradient(convert_to_tensor(v)) for v in sampled_values)
    sampled = elementwise.cast(sampled, dtypes.int64)
    every = shapes.concatenate(shapes.reshape(labels, shape=(-1,)), sampled, axis=0)
    rows, offsets = nn.embedding_lookup(weights, every), nn.embedding_lookup(biases, every)
    count = batch * num_true
    true_rows = shapes.reshape(indexing.getitem(rows, index=(slice(count),)), shape=(batch, num_true, width))
    true = reduce.sum(elementwise.multiply(true_rows, shapes.expand_dims(inputs, axis=1)), axis=2)
    true = true + shapes.reshape(indexing.getitem(offsets, index=(slice(count),)), shape=(batch, num_true))
    others = contract.matmul(inputs, shapes.matrix_transpose(indexing.getitem(rows, index=(slice(count, None),))))
    others = others + indexing.getitem(offsets, index=(slice(count, None),))
    if remove_accidental_hits:
        hits = reduce.any(elementwise.equal(shapes.expand_dims(labels, axis=2), sampled), axis=1)
        others = elementwise.where(hits, _filled(others, np.finfo(np.float32).min), others)
    kind = inputs.dtype
    true = true - elementwise.log(elementwise.cast(true_expected, kind))
    others = others - elementwise.log(elementwise.cast(sampled_expected, kind))
    parts = [np.full((batch, num_true), 1 / num_true), np.zeros(others._array.shape)]
    return shapes.concatenate(true, others, axis=1), wrap(np.concatenate(parts, 1).astype(inputs._array.dtype))


def _filled(like: Tensor, value: Any) -> Tensor:
    return wrap(np.full(like._array.shape, value, like._array.dtype))


def nce_loss(*given: Any) -> Tensor:
    """Noise-contrastive estimation: true classes told from sampled ones, one sigmoid each; per example."""
    logits, labels = _sampled_logits(*given)
    return reduce.sum(nn.sigmoid_cross_entropy(logits, labels), axis=1)


def sampled_softmax_loss(*given: Any) -> Tensor:
    """The softmax cross-entropy among the true classes and sampled ones; per example."""
    logits, labels = _sampled_logits(*given)
    return nn.softmax_cross_entropy(labels, logits)


def accidental_hits(true_classes: Any, sampled: Any, num_true: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Rows and columns where a sampled class is a true one, and for each a number that makes its logit vanish."""
    true, drawn = (np.asarray(convert_to_tensor(value)) for value in (true_classes, sampled))
    if true.ndim != 2 or true.shape[1] != arguments.integer(num_true):
        text = "true_classes must have num_true columns"
        raise InvalidArgumentError(
            message(text, received=f"shape {true.shape} with num_true={num_true}", expected=f"(batch, {num_true})")
        )
    rows, columns = np.nonzero((true[:, :, None] == drawn).any(axis=1))
    weights = np.full(rows.shape, np.finfo(np.float32).min, np.float32)
    return wrap(rows.astype(np.int32)), wrap(columns.astype(np.int64)), wrap(weights)


# Connectionist temporal classification. In log space, with a finite number for log 0: infinities would make the gradient of
# logsumexp nan, and e to this number is 0 in every dtype.

_LOG_ZERO = -1e30


def ctc_loss(
    labels: Any, logits: Any, label_length: Any, logit_length: Any, *, time_major: bool = True, blank: int | None = None
) -> Tensor:
    """-log of the probability of all alignments of the labels, one number per example; inf if none is long enough.

    The recursion over time runs on the labels with blanks between them: stay, move on, or skip a blank between labels that
    differ (Graves et al. 2006).
    """
    logits = convert_to_tensor(logits)
    if logits._array.ndim != 3:
        raise InvalidArgumentError(
            message(
                f"logits must be 3-dimensional: {dims(logits._array.shape)}", expected="(time, batch, classes), or batch first"
            )
        )
    kind = logits.dtype
    wide = elementwise.cast(logits, dtypes.float32) if kind.size == 2 else logits
    if not time_major:
        wide = shapes.transpose(wide, axes=(1, 0, 2))
    time, batch, classes = wide._array.shape
    blank = 0 if blank is None else blank % classes
    table, lengths, frames = _checked_labels(labels, label_length, logit_length, time, batch, classes)
    path = _with_blanks(table, blank)
    states = path._array.shape[1]
    scores = nn.log_softmax(wide, axis=-1)
    scores = indexing.take_along_axis(scores, shapes.broadcast_to(path, shape=(time, batch, states)), axis=2)
    last = _last_state(scores, _skips(table), frames)
    end = shapes.expand_dims(lengths * 2, axis=1)
    place = wrap(np.arange(states, dtype=np.int32))
    there = elementwise.logical_or(elementwise.equal(place, end), elementwise.equal(place, end - 1))
    kept = elementwise.where(there, last, _filled(last, _LOG_ZERO))
    loss = elementwise.negative(reduce.logsumexp(kept, axis=1))
    impossible = elementwise.greater(loss, -_LOG_ZERO / 2)
    loss = elementwise.where(impossible, _filled(loss, np.inf), loss)
    return elementwise.cast(loss, kind)


def _with_blanks(table: Tensor, blank: int) -> Tensor:
    """The path of an alignment: the labels, with a blank before, between and after them."""
    batch, count = table._array.shape
    blanks = wrap(np.full((batch, count), blank, np.int32))
    pairs = shapes.reshape(shapes.stack(blanks, table, axis=2), shape=(batch, 2 * count))
    return shapes.pad(pairs, widths=((0, 0), (0, 1)), value=blank)


def _skips(table: Tensor) -> Tensor:
    """Where on the path an alignment may come from two places before: to a label, over a blank, from another label."""
    batch, count = table._array.shape
    differs = elementwise.not_equal(table[:, 1:], table[:, :-1])
    pairs = shapes.stack(elementwise.zeros_like(differs), differs, axis=2)
    pairs = shapes.reshape(pairs, shape=(batch, 2 * max(count - 1, 0)))
    return shapes.pad(pairs, widths=((0, 0), (min(2, 2 * count), 1)), value=False)


def _last_state(scores: Tensor, skips: Tensor, frames: Tensor) -> Tensor:
    """log of the sum over all beginnings of alignments, by where on the path they stand after an example's last frame."""
    time, batch, states = scores._array.shape
    zero = wrap(np.full((batch, states), _LOG_ZERO, scores._array.dtype))
    if not time:
        return zero
    start = wrap(np.broadcast_to(np.arange(states) < 2, (batch, states)).copy())
    first = elementwise.where(start, scores[0], zero)
    lasts = elementwise.less(wrap(np.arange(1, time, dtype=np.int32)[:, None, None]), shapes.expand_dims(frames, axis=1))

    def step(state: Tensor, row: tuple[Tensor, Tensor]) -> Tensor:
        score, goes_on = row
        skipped = elementwise.where(skips, _shifted(state, 2), zero)
        reached = reduce.logsumexp(shapes.stack(state, _shifted(state, 1), skipped, axis=0), axis=0)
        return elementwise.where(goes_on, elementwise.add(reached, score), state)

    return control_flow.foldl(step, (scores[1:], lasts), first) if time > 1 else first


def _shifted(state: Tensor, step: int) -> Tensor:
    """What stood ``step`` places before on the path."""
    states = state._array.shape[1]
    return indexing.getitem(
        shapes.pad(state, widths=((0, 0), (step, 0)), value=_LOG_ZERO), index=(slice(None), slice(0, states))
    )


def _checked_labels(
    labels: Any, label_length: Any, logit_length: Any, time: int, batch: int, classes: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Labels as a matrix, zeros behind them, its rows' lengths and those of the logits."""
    if hasattr(labels, "dense_shape"):  # sparse: a row's entries are its labels
        at, values = np.asarray(labels.indices), np.asarray(labels.values)
        rows = np.zeros(tuple(int(n) for n in np.asarray(labels.dense_shape)), np.int32)
        rows[at[:, 0], at[:, 1]] = values
        given: tuple = (rows, np.bincount(at[:, 0], minlength=len(rows)), logit_length)
    else:
        given = (labels, label_length, logit_length)
    table, lengths, frames = (elementwise.cast(convert_to_tensor(value), dtypes.int32) for value in given)
    shape = table._array.shape
    if len(shape) != 2 or shape[0] != batch or lengths._array.shape != (batch,) or frames._array.shape != (batch,):
        raise InvalidArgumentError(
            message(
                "labels, label_length and logit_length must have one row per example",
                received=f"labels {shape}, label_length {lengths._array.shape}, logit_length {frames._array.shape}",
                expected=f"({batch}, …), ({batch},) and ({batch},)",
            )
        )
    used = elementwise.less(wrap(np.arange(shape[1], dtype=np.int32)), shapes.expand_dims(lengths, axis=1))
    if all(isinstance(part._array, np.ndarray) for part in (table, lengths, frames)):  # traced ones cannot be looked at
        _check_values(table._array, used._array, lengths._array, frames._array, time, classes)
    table = elementwise.where(used, table, elementwise.zeros_like(table))
    indexing.look_at(table._array, classes, always=True)
    return table, lengths, frames


def _check_values(
    table: np.ndarray, used: np.ndarray, lengths: np.ndarray, frames: np.ndarray, time: int, classes: int
) -> None:
    if (frames > time).any() or (lengths > table.shape[1]).any():
        raise InvalidArgumentError(
            message(
                "sequence lengths must not be longer than the sequences",
                received=f"label_length {lengths.tolist()} of {table.shape[1]}, logit_length {frames.tolist()} of {time}",
                expected="lengths within the arrays of labels and logits",
            )
        )
    wrong = table[used & ((table < 0) | (table >= classes))]
    if wrong.size:
        text = f"Received a label value of {wrong[0]} which is outside the valid range of [0, {classes})."
        raise InvalidArgumentError(
            message(text, received=f"labels from {table.min()} to {table.max()}", expected=f"classes from 0 to {classes - 1}")
        )


def collapse_repeated(labels: Any, lengths: Any) -> tuple[Tensor, Tensor]:
    """Runs of equal labels as one, each row filled up with zeros, and the new lengths."""
    table = convert_to_tensor(labels)
    array = np.asarray(table)
    used = np.arange(array.shape[1]) < np.asarray(convert_to_tensor(lengths))[:, None]
    used[:, 1:] &= array[:, 1:] != array[:, :-1]
    counts = used.sum(axis=1)
    out = np.zeros((len(array), counts.max(initial=0)), array.dtype)
    out[np.arange(out.shape[1]) < counts[:, None]] = array[used]
    return wrap(out), wrap(counts.astype(np.int32))


def unique_labels(labels: Any) -> tuple[Tensor, Tensor]:
    """The distinct labels of each row in the order in which they come, and where each label is among them."""
    array = np.asarray(convert_to_tensor(labels)).astype(np.int64)
    unique, places = np.zeros(array.shape, np.int64), np.zeros(array.shape, np.int32)
    for row, labels_of_row in enumerate(array):
        _, first, back = np.unique(labels_of_row, return_index=True, return_inverse=True)
        order = np.argsort(first)
        unique[row, : len(order)] = labels_of_row[first[order]]
        places[row] = np.argsort(order)[back]
    return wrap(unique), wrap(places)
