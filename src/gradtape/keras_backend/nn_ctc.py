"""Connectionist temporal classification: labels without places in time. Logits are (batch, time, classes)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import message
from gradtape.keras_backend.numpy_promotion import in_dtype, result_type, tensor
from gradtape.ops import ctc_decoders, elementwise, indexing, losses, reduce
from gradtape.ops import shape as shapes
from gradtape.ops.execution import on_the_host
from gradtape.values.tensor import Tensor, wrap

__all__ = ["ctc_decode", "ctc_loss"]


def ctc_loss(target: Any, output: Any, target_length: Any, output_length: Any, mask_index: int = 0) -> Tensor:
    """-log of the probability of all alignments of the labels, one number per example; inf where there is none."""
    labels, sizes, frames = (in_dtype(value, "int32") for value in (target, target_length, output_length))
    return losses.ctc_loss(labels, _wide(output), sizes, frames, time_major=False, blank=mask_index)


def _wide(logits: Any) -> Tensor:
    logits = tensor(logits)
    return in_dtype(logits, result_type(logits.dtype, "float32"))


def ctc_decode(
    inputs: Any, sequence_lengths: Any, strategy: str = "greedy", beam_width: int = 100, top_paths: int = 1,
    merge_repeated: bool = True, mask_index: int | None = 0,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Likely sequences of labels (paths, batch, time), -1 behind them, and their scores (batch, paths)."""
    logits, frames = _wide(inputs), in_dtype(sequence_lengths, "int32")
    classes = logits._array.shape[-1]
    blank = classes - 1 if mask_index is None else mask_index % classes
    if strategy == "greedy":
        return _greedy(logits, frames, merge_repeated, blank)
    if strategy == "beam_search":
        return _beam_search(logits, frames, beam_width, top_paths, blank)
    text = f"Invalid strategy {strategy}. Supported values are 'greedy' and 'beam_search'."
    raise ValueError(message(text, received=f"strategy={strategy!r}"))


def _greedy(logits: Tensor, frames: Tensor, merge_repeated: bool, blank: int) -> tuple[Tensor, Tensor]:
    """The best class of each frame; the score is minus the sum of their logits."""
    time = logits._array.shape[1]
    used = elementwise.less(wrap(np.arange(time, dtype=np.int32)), shapes.expand_dims(frames, axis=1))
    best = elementwise.cast(reduce.argmax(logits, axis=2), "int32")
    kept = elementwise.logical_and(used, elementwise.not_equal(best, blank))
    if merge_repeated:
        before = shapes.pad(best[:, :-1], widths=((0, 0), (1, 0)), value=-1)
        kept = elementwise.logical_and(kept, elementwise.not_equal(best, before))
    labels = elementwise.where(kept, best, wrap(np.array(-1, np.int32)))
    order = indexing.argsort(elementwise.cast(elementwise.logical_not(kept), "int32"), axis=1)  # stable: what is kept, first
    labels = indexing.take_along_axis(labels, order, axis=1)
    score = reduce.max(logits, axis=2)
    score = reduce.sum(elementwise.where(used, score, elementwise.zeros_like(score)), axis=1, keepdims=True)
    return shapes.expand_dims(labels, axis=0), -score


def _beam_search(logits: Tensor, frames: Tensor, width: int, count: int, blank: int) -> tuple[Tensor, Tensor]:
    """The likeliest of the sequences that are followed, with log of their probabilities; -inf: there are no more."""
    on_the_host("keras.ops.ctc_decode")
    table = np.asarray(logits._host())
    batch, time, classes = table.shape
    names = np.r_[np.delete(np.arange(classes), blank), blank]  # the decoder has the blank last
    paths, scores = np.full((count, batch, time), -1, np.int32), np.full((batch, count), -np.inf, table.dtype)
    with np.errstate(all="ignore"):  # nan and inf are answers
        for example, length in enumerate(np.asarray(frames._host())):
            found = ctc_decoders.followed(ctc_decoders.log_softmax(table[example, : max(length, 0), names].T), width)
            for rank, (labels, score) in enumerate(found[:count]):
                paths[rank, example, : len(labels)] = names[list(labels)]
                scores[example, rank] = score
    return wrap(paths), wrap(scores)
