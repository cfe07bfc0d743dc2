"""Bounding boxes (y1, x1, y2, x2): non-maximum suppression, drawing, random boxes. Choices are made on the host."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gradtape.errors import InvalidArgumentError, dims, message
from gradtape.ops import elementwise
from gradtape.ops.arguments import integer, integers
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor, wrap

# Non-maximum suppression


def _overlap(box: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Intersection over union of one box with each of the others; corners may come in any order."""
    low, high = np.minimum(box[:2], box[2:]), np.maximum(box[:2], box[2:])
    lows, highs = np.minimum(others[:, :2], others[:, 2:]), np.maximum(others[:, :2], others[:, 2:])
    common = np.maximum(np.minimum(high, highs) - np.maximum(low, lows), 0).prod(1)
    union = (high - low).prod() + (highs - lows).prod(1) - common
    return np.divide(common, union, out=np.zeros_like(common), where=union > 0)


def _suppressed(
    overlap: Any, scores: np.ndarray, count: int, threshold: float, score_threshold: float, sigma: float = 0.0
) -> tuple[list[int], list[float]]:
    """Indices and scores, best first: each lowers the scores of what it overlaps, to nothing above the threshold.

    ``overlap(i)`` is the overlap of box i with every box; ``sigma`` > 0 lowers by exp(-overlap² / (2 sigma)) below it.
    """
    left = np.where(scores > score_threshold, scores, -np.inf)
    chosen: list[int] = []
    values: list[float] = []
    while len(chosen) < count and left.size:
        best = int(np.argmax(left))
        if not left[best] > score_threshold:
            break
        chosen.append(best)
        values.append(float(left[best]))
        shared = overlap(best)
        factor = np.exp(-np.square(shared) / (2 * sigma)) if sigma > 0 else np.ones_like(shared)
        with np.errstate(invalid="ignore"):
            left = np.where(shared > threshold, -np.inf, left * factor)
        left[best] = -np.inf
    return chosen, values


def _boxes_and_scores(boxes: Any, scores: Any, count: Any, threshold: Any, label: str) -> tuple[np.ndarray, np.ndarray, int]:
    found = np.asarray(convert_to_tensor(boxes, dtype_hint=dtypes.float32)._host())
    rated = np.asarray(convert_to_tensor(scores, dtype_hint=dtypes.float32)._host())
    number, limit = integer(count), float(convert_to_tensor(threshold)._host())
    wrong = None
    if found.ndim != 2:
        wrong = f"boxes must be 2-D{dims(found.shape)} (Shape must be rank 2 but is rank {found.ndim})"
    elif found.shape[1] != 4:
        wrong = f"boxes must have 4 columns (Dimension must be 4 but is {found.shape[1]})"
    elif rated.shape != found.shape[:1]:
        wrong = f"scores has incompatible shape (Dimensions must be equal, but are {len(found)} and {rated.size})"
    elif number < 0:
        wrong = "output size must be non-negative"
    elif not 0 <= limit <= 1:
        wrong = "iou_threshold must be in [0, 1]"
    if wrong:
        raise InvalidArgumentError(message(f"{wrong} [Op:{label}]", expected="boxes (n, 4) and scores (n,)"))
    return found, rated, number


def _number(value: Any) -> float:
    return float(convert_to_tensor(value)._host())


def non_max_suppression(
    boxes: Any, scores: Any, count: Any, iou_threshold: Any = 0.5, score_threshold: Any = -math.inf
) -> Tensor:
    """Indices of boxes, best first, none of which overlaps a better one by more than the threshold."""
    found, rated, number = _boxes_and_scores(boxes, scores, count, iou_threshold, "NonMaxSuppressionV3")
    overlap = lambda i: _overlap(found[i], found)
    chosen, _ = _suppressed(overlap, rated, number, _number(iou_threshold), _number(score_threshold))
    return wrap(np.array(chosen, np.int32))


def non_max_suppression_with_scores(
    boxes: Any, scores: Any, count: Any, iou_threshold: Any = 0.5, score_threshold: Any = -math.inf, soft_nms_sigma: Any = 0.0
) -> tuple[Tensor, Tensor]:
    """`non_max_suppression` with scores, which overlaps lower by exp(-iou² / (2 sigma)) if a sigma is given."""
    found, rated, number = _boxes_and_scores(boxes, scores, count, iou_threshold, "NonMaxSuppressionV5")
    limits = (_number(iou_threshold), _number(score_threshold), _number(soft_nms_sigma))
    chosen, values = _suppressed(lambda i: _overlap(found[i], found), rated, number, *limits)
    return wrap(np.array(chosen, np.int32)), wrap(np.array(values, rated.dtype))


def non_max_suppression_overlaps(
    overlaps: Any, scores: Any, count: Any, overlap_threshold: Any = 0.5, score_threshold: Any = -math.inf
) -> Tensor:
    """`non_max_suppression` with the overlaps (n, n) given."""
    table = np.asarray(convert_to_tensor(overlaps, dtypes.float32)._host())
    rated = np.asarray(convert_to_tensor(scores, dtypes.float32)._host())
    if table.ndim != 2 or table.shape[0] != table.shape[1]:
        text = f"overlaps must be square{dims(table.shape)} [Op:NonMaxSuppressionWithOverlaps]"
        raise InvalidArgumentError(message(text, received=f"overlaps of shape {table.shape}", expected="(boxes, boxes)"))
    if rated.shape != table.shape[:1]:
        text = "scores has incompatible shape [Op:NonMaxSuppressionWithOverlaps]"
        raise InvalidArgumentError(
            message(text, received=f"scores {rated.shape} for overlaps {table.shape}", expected="one score per box")
        )
    limits = (_number(overlap_threshold), _number(score_threshold))
    chosen, _ = _suppressed(lambda i: table[i], rated, integer(count), *limits)
    return wrap(np.array(chosen, np.int32))


def non_max_suppression_padded(
    boxes: Any, scores: Any, count: Any, iou_threshold: Any = 0.5, score_threshold: Any = -math.inf, pad: bool = False
) -> tuple[Tensor, Tensor]:
    """Indices and how many of them are valid; with ``pad`` exactly ``count`` indices, and boxes may come in batches."""
    found = convert_to_tensor(boxes, dtype_hint=dtypes.float32)._host()
    rated = convert_to_tensor(scores, dtype_hint=dtypes.float32)._host()
    number = integer(count)
    if not pad:
        if found.ndim != 2:
            text = f"'pad_to_max_output_size' (value {pad}) must be True for batched input"
            raise ValueError(message(text, received=f"{found.shape}", fix="pad_to_max_output_size=True"))
        chosen = non_max_suppression(found, rated, number, iou_threshold, score_threshold)
        return chosen, wrap(np.array(len(chosen._array), np.int32))
    lead = found.shape[:-2]
    rows = zip(found.reshape(-1, *found.shape[-2:]), rated.reshape(-1, rated.shape[-1]))
    picked = [non_max_suppression(b, s, number, iou_threshold, score_threshold)._array for b, s in rows]
    table = np.zeros((len(picked), number), np.int32)
    for row, indices in zip(table, picked):
        row[: len(indices)] = indices
    valid = np.array([len(indices) for indices in picked], np.int32)
    return wrap(table.reshape(*lead, number)), wrap(valid.reshape(lead))


class CombinedNonMaxSuppression(NamedTuple):
    """What `combined_non_max_suppression` answers."""

    nmsed_boxes: Tensor
    nmsed_scores: Tensor
    nmsed_classes: Tensor
    valid_detections: Tensor


def combined_non_max_suppression(
    boxes: Any, scores: Any, per_class: Any, total: Any, iou_threshold: float = 0.5, score_threshold: float = -math.inf,
    pad_per_class: bool = False, clip_boxes: bool = True,
) -> CombinedNonMaxSuppression:  # fmt: skip
    """Suppression for each class by itself, and of all classes the best boxes; padded with zeros.

    Boxes are (batch, n, 1 or classes, 4), scores (batch, n, classes).
    """
    found = np.asarray(convert_to_tensor(boxes, dtypes.float32)._host())
    rated = np.asarray(convert_to_tensor(scores, dtypes.float32)._host())
    if found.ndim != 4 or found.shape[3] != 4 or rated.ndim != 3 or found.shape[2] not in (1, rated.shape[2]):
        raise InvalidArgumentError(
            message(
                "boxes must be 4-D and scores 3-D [Op:CombinedNonMaxSuppression]",
                received=f"boxes {found.shape}, scores {rated.shape}",
                expected="(batch, n, 1 or classes, 4) and (batch, n, classes)",
            )
        )
    each, size = integer(per_class), integer(total)
    size = min(size, each * rated.shape[2]) if pad_per_class else size
    best: tuple = (
        np.zeros((len(found), size, 4), np.float32), np.zeros((len(found), size), np.float32),
        np.zeros((len(found), size), np.float32), np.zeros(len(found), np.int32),
    )  # fmt: skip
    for i in range(len(found)):
        rows = []
        for kind in range(rated.shape[2]):
            own = found[i, :, min(kind, found.shape[2] - 1)]
            chosen, values = _suppressed(
                lambda j, own=own: _overlap(own[j], own), rated[i, :, kind], each, iou_threshold, score_threshold
            )
            rows += [(-value, kind, index, own[index]) for index, value in zip(chosen, values)]
        rows = sorted(rows, key=lambda row: row[:3])[:size]
        for place, (value, kind, _, box) in enumerate(rows):
            best[0][i, place] = np.clip(box, 0, 1) if clip_boxes else box
            best[1][i, place], best[2][i, place] = -value, kind
        best[3][i] = len(rows)
    return CombinedNonMaxSuppression(*map(wrap, best))


# Drawing

_COLOURS = np.array(
    [
        [1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0.5, 0, 0.5, 1],
        [0.5, 0.5, 0, 1], [0.5, 0, 0, 1], [0, 0, 0.5, 1], [0, 1, 1, 1], [1, 0, 1, 1],
    ], np.float32,
)  # fmt: skip


def draw_bounding_boxes(images: Any, boxes: Any, colors: Any = None) -> Tensor:
    """Images with the outlines of boxes, in fractions of height and width; colours take turns."""
    x = convert_to_tensor(images)
    places = np.asarray(convert_to_tensor(boxes, dtypes.float32)._host())
    shape = x._array.shape
    given = np.zeros((0, 0)) if colors is None else np.asarray(convert_to_tensor(colors, dtypes.float32)._host())
    _check_drawing(x, places, given)
    table = given.reshape(-1, given.shape[-1]) if given.size else _COLOURS.copy()
    if not given.size and shape[3] == 1:
        table[:, 0] = 1
    paint, drawn = np.zeros(shape, x._array.dtype), np.zeros((*shape[:3], 1), bool)
    for i, own in enumerate(places):
        for k, box in enumerate(own):
            outline = _outline(box, shape[1], shape[2])
            paint[i][outline] = table[k % len(table), : shape[3]]
            drawn[i, ..., 0] |= outline
    return elementwise.where(wrap(drawn), wrap(paint), x)


def _outline(box: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Where the four sides of a box lie in the image."""
    lengths = np.array([rows, columns, rows, columns], np.float32)
    out = np.zeros((rows, columns), bool)
    if not np.isfinite(box).all():
        return out
    top, left, bottom, right = np.trunc(box * (lengths - 1)).astype(np.int64)
    if top > bottom or left > right or top >= rows or bottom < 0 or left >= columns or right < 0:
        return out
    span, reach = slice(max(left, 0), right + 1), slice(max(top, 0), bottom + 1)
    for row in {top, bottom}:
        if 0 <= row < rows:
            out[row, span] = True
    for column in {left, right}:
        if 0 <= column < columns:
            out[reach, column] = True
    return out


def _check_drawing(x: Tensor, boxes: np.ndarray, colours: np.ndarray) -> None:
    shape, wrong = x._array.shape, None
    if x.dtype not in (dtypes.float32, dtypes.float16):
        text = f"Value for attr 'T' of {x.dtype.word} is not in the list of allowed values: float, half"
        raise InvalidArgumentError(message(text, fix="tf.image.convert_image_dtype(images, tf.float32)"))
    if len(shape) != 4:
        wrong = "The rank of the images should be 4"
    elif boxes.ndim != 3:
        wrong = "The rank of the boxes tensor should be 3"
    elif len(boxes) != shape[0]:
        wrong = "The batch sizes should be the same"
    elif shape[3] not in (1, 3, 4):
        wrong = "Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)"
    elif boxes.shape[2] != 4:
        wrong = "boxes must have 4 columns"
    elif colours.size and colours.shape[-1] < shape[3]:
        wrong = f"colors must have equal or more channels than the image provided: {dims(colours.shape)}"
    if wrong:
        received = f"images {shape}, boxes {boxes.shape}"
        raise InvalidArgumentError(
            message(
                f"{wrong} [Op:DrawBoundingBoxesV2]",
                received=received,
                expected="images (batch, height, width, 1, 3 or 4), boxes (batch, count, 4), colors (count, channels)",
            )
        )


# Random boxes


class DistortedBox(NamedTuple):
    """A crop: where it begins and its size, as arguments of `tf.slice`, and the same as a box in fractions."""

    begin: Tensor
    size: Tensor
    bboxes: Tensor


def distorted_box(
    draw: Any, image_size: Any, bounding_boxes: Any, min_object_covered: float = 0.1, aspect_ratio_range: Any = None,
    area_range: Any = None, max_attempts: int | None = None, use_image_if_no_bounding_boxes: bool | None = None,
) -> DistortedBox:  # fmt: skip
    """A random rectangle of the image that covers enough of one of the boxes; the whole image if no attempt finds one.

    ``draw(low, high)`` gives a uniform number.
    """
    kind, lengths = convert_to_tensor(image_size)._array.dtype, integers(image_size)
    boxes = np.asarray(convert_to_tensor(bounding_boxes, dtypes.float32)._host())
    ratios, areas = tuple(aspect_ratio_range or (0.75, 1.33)), tuple(area_range or (0.05, 1.0))
    _check_distortion(lengths, boxes, ratios, areas, use_image_if_no_bounding_boxes)
    rows, columns, _ = lengths
    scale = np.array([rows, columns, rows, columns], np.float64)
    objects = boxes.reshape(-1, 4) * scale if boxes.size else np.array([[0, 0, rows, columns]], np.float64)
    found = (0, 0, rows, columns)
    for _ in range(max_attempts or 100):
        crop = _random_rectangle(draw, rows, columns, ratios, areas)
        if crop is not None and _covered(crop, objects) >= float(min_object_covered):
            found = crop
            break
    top, left, height, width = found
    corners = np.array([top, left, top + height, left + width]) / scale
    return DistortedBox(
        wrap(np.array([top, left, 0], kind)), wrap(np.array([height, width, -1], kind)),
        wrap(corners.astype(np.float32).reshape(1, 1, 4)),
    )  # fmt: skip


def _random_rectangle(draw: Any, rows: int, columns: int, ratios: tuple, areas: tuple) -> tuple[int, int, int, int] | None:
    """(top, left, height, width) of a random aspect ratio and a random area that it allows, or None if none fits."""
    ratio = draw(*ratios)
    area = draw(areas[0], areas[1]) * rows * columns
    height, width = round(math.sqrt(area / ratio)), round(math.sqrt(area * ratio))
    if not (0 < height <= rows and 0 < width <= columns):
        return None
    return int(draw(0, rows - height + 1)), int(draw(0, columns - width + 1)), height, width


def _covered(crop: tuple[int, int, int, int], objects: np.ndarray) -> float:
    """The largest part of an object that a crop covers."""
    top, left, height, width = crop
    low, high = np.array([top, left]), np.array([top + height, left + width])
    common = np.maximum(np.minimum(objects[:, 2:], high) - np.maximum(objects[:, :2], low), 0).prod(1)
    whole = (objects[:, 2:] - objects[:, :2]).prod(1)
    return float((common / np.where(whole > 0, whole, np.inf)).max())


def _check_distortion(
    lengths: tuple[int, ...], boxes: np.ndarray, ratios: tuple, areas: tuple, whole_image: bool | None
) -> None:
    wrong = None
    if len(lengths) != 3:
        wrong = f"image_size must contain 3 elements{dims((len(lengths),))}"
    elif boxes.ndim != 3 or boxes.shape[-1] != 4:
        wrong = f"input boxes must be 3-dimensional [batch, num_boxes, coords]: {dims(boxes.shape)}"
    elif not boxes.size and not whole_image:
        wrong = (
            "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes "
            "if you wish to not provide any bounding boxes."
        )
    elif boxes.size and not ((boxes >= 0) & (boxes <= 1)).all():
        wrong = f"All bounding box coordinates must be in [0.0, 1.0]: {boxes.flat[int(np.argmax(np.abs(boxes - 0.5)))]:g}"
    elif len(ratios) != 2 or min(ratios) <= 0 or ratios[0] > ratios[1]:
        wrong = f"Aspect ratio must be a pair of positive numbers, the smaller first: {ratios}"
    elif not 0 < areas[0] <= areas[1] <= 1:
        wrong = f"Area range must be non-negative: [{areas[0]:g}, {areas[1]:g}], in (0, 1], the smaller first"
    if wrong:
        raise InvalidArgumentError(
            message(
                f"{wrong} [Op:SampleDistortedBoundingBoxV2]",
                expected="image_size (height, width, channels), boxes (batch, count, 4) as fractions, ranges (low, high)",
            )
        )
