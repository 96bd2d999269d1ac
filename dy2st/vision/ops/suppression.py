"""Boxes that overlap better ones, left out (`nms`, `multiclass_nms`) or marked down (`matrix_nms`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dy2st.dtypes import int32
from dy2st.functions.core.operands import cast_to, floating, tensor
from dy2st.functions.linalg.linalg import matmul
from dy2st.functions.math.math import clip, exp, maximum, minimum
from dy2st.functions.math.search import argsort, nonzero, sort
from dy2st.functions.shape.concat_split import concat, stack
from dy2st.functions.shape.creation import full_like, ones_like, zeros_like
from dy2st.functions.shape.diagonals import tril, triu
from dy2st.functions.shape.gather_scatter import gather
from dy2st.ir.context import current
from dy2st.runtime.eager.tensor import Tensor
from dy2st.static.nn import while_loop


def overlaps(boxes: Tensor, others: Tensor, more: float = 0.0) -> Tensor:
    """Return [n, m]: the share of their union that two boxes (x1, y1, x2, y2) have in common.

    `more` is what is added to their sides: 1 where a box includes its last pixels.
    """
    low, high = maximum(boxes[:, None, :2], others[None, :, :2]), minimum(boxes[:, None, 2:], others[None, :, 2:])
    both = clip(high - low + more, min=0.0).prod(-1)
    areas = [(b[:, 2:] - b[:, :2] + more).prod(-1) for b in (boxes, others)]
    return both / (areas[0][:, None] + areas[1][None, :] - both)


def kept(boxes: Tensor, iou_threshold: float, alike: Any = None, more: float = 0.0) -> Tensor:
    """Return which boxes stay: those that overlap no better (earlier) one that stays by more than the threshold.

    Whether a box stays is settled when it is for all earlier ones: turns are as many as the longest chain of boxes.
    """
    over = overlaps(boxes, boxes, more) > iou_threshold
    over = over if alike is None else over.logical_and(alike)
    before = tril(cast_to(over, boxes.dtype), -1)
    stays = ones_like(boxes[:, :1])

    def turn(stays: Tensor, changed: Tensor) -> list[Tensor]:
        new = cast_to(matmul(before, stays) == 0.0, stays.dtype)
        return [new, (new != stays).any()]

    stays, _ = while_loop(lambda stays, changed: changed, turn, [stays, tensor(True, "nms")])
    return stays[:, 0] > 0.0


def nms(
    boxes: Any, iou_threshold: float = 0.3, scores: Any = None, category_idxs: Any = None,
    categories: Sequence[int] | None = None, top_k: int | None = None,
) -> Tensor:  # fmt: skip
    """Return the numbers of the boxes that stay, best first: without scores in the order in which they are given.

    Parameters
    ----------
    boxes
        [n, 4]: x1, y1, x2, y2.
    iou_threshold
        A box goes that overlaps a better one that stays by more.
    category_idxs, categories
        The category of each box, and those there are: boxes of one alone are compared.
    top_k
        So many stay at most.

    >>> import dy2st as paddle
    >>> boxes = paddle.to_tensor([[0.0, 0, 2, 2], [0, 0, 2, 1.9], [5, 5, 6, 6]])
    >>> nms(boxes, 0.5, paddle.to_tensor([0.5, 0.9, 0.1])).tolist()
    [1, 2]
    """
    boxes = floating(boxes, "nms").detach()
    if scores is None:
        return nonzero(kept(boxes, iou_threshold))[:, 0]
    order = argsort(tensor(scores, "nms").detach(), descending=True, stable=True)
    boxes, alike = gather(boxes, order), None
    if category_idxs is not None:
        if categories is None:
            raise ValueError("nms: category_idxs without categories, the list of those that there are")
        of = gather(tensor(category_idxs, "nms"), order)
        alike = of[:, None] == of[None, :]
    best = gather(order, nonzero(kept(boxes, iou_threshold, alike))[:, 0])
    return best if top_k is None else best[:top_k]


def matrix_nms(
    bboxes: Any, scores: Any, score_threshold: float, post_threshold: float, nms_top_k: int, keep_top_k: int,
    use_gaussian: bool = False, gaussian_sigma: float = 2.0, background_label: int = 0, normalized: bool = True,
    return_index: bool = False, return_rois_num: bool = True, name: str | None = None,
) -> Any:  # fmt: skip
    """Return boxes whose scores are less by their overlap with better ones of their class (Wang et al., 2020, SOLOv2).

    Parameters
    ----------
    bboxes, scores
        [batch, n, 4] and [batch, classes, n].
    score_threshold, post_threshold
        What a score must be above, before and after.
    nms_top_k, keep_top_k
        So many of a class are compared, and so many of an image stay; -1 for all.

    Returns
    -------
    tuple
        [m, 6] with class, score, x1, y1, x2, y2; the numbers of the boxes or None; how many of each image, or None.
    """
    bboxes, scores = floating(bboxes, "matrix_nms"), floating(scores, "matrix_nms")
    more = 0.0 if normalized else 1.0

    def decayed(boxes: Tensor, score: Tensor) -> tuple[Tensor, Tensor]:
        less = score * _decay(triu(overlaps(boxes, boxes, more), 1), use_gaussian, gaussian_sigma)
        return less, less > post_threshold

    def best(rows: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor]:
        order = argsort(rows[:, 1], descending=True, stable=True)
        order = order if keep_top_k < 0 else order[:keep_top_k]
        return gather(rows, order), gather(numbers, order)

    rows, index, counts = _of_each_image(bboxes, scores, decayed, best, score_threshold, nms_top_k, background_label)
    return rows, index if return_index else None, counts if return_rois_num else None


def multiclass_nms(
    bboxes: Any, scores: Any, rois_num: Any = None, score_threshold: float = 0.0, nms_top_k: int = -1,
    keep_top_k: int = -1, nms_threshold: float = 0.3, normalized: bool = True, nms_eta: float = 1.0,
    background_label: int = -1,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the boxes of each class that stay, by class and then best first (Paddle's operator multiclass_nms3).

    Parameters
    ----------
    bboxes, scores
        [batch, n, 4] and [batch, classes, n].
    rois_num
        None: how many boxes an image has is in the shape. NotImplementedError for a tensor.
    score_threshold, nms_threshold
        What a score must be above, and the overlap with a better box from which on a box goes.
    nms_top_k, keep_top_k
        So many of a class are compared, and so many of an image stay; -1 for all.
    nms_eta
        1: the threshold is the same for all boxes. NotImplementedError for less.

    Returns
    -------
    tuple
        [m, 6] with class, score, x1, y1, x2, y2; [m, 1], the numbers of the boxes; how many there are of each image.
    """
    if rois_num is not None or nms_eta != 1.0:
        raise NotImplementedError("multiclass_nms: boxes that are counted by rois_num, or nms_eta below 1")
    bboxes, scores = floating(bboxes, "multiclass_nms"), floating(scores, "multiclass_nms")
    more = 0.0 if normalized else 1.0

    def suppressed(boxes: Tensor, score: Tensor) -> tuple[Tensor, Tensor]:
        return score, kept(boxes, nms_threshold, more=more)

    def best(rows: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor]:
        if keep_top_k < 0:
            return rows, numbers
        order = sort(argsort(rows[:, 1], descending=True, stable=True)[:keep_top_k])
        return gather(rows, order), gather(numbers, order)

    return _of_each_image(bboxes, scores, suppressed, best, score_threshold, nms_top_k, background_label)


def _of_each_image(
    bboxes: Tensor, scores: Tensor, suppress: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    best: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]], score_threshold: float, nms_top_k: int, background: int,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return rows, numbers and counts: `suppress` says of boxes of one class their scores and which stay."""

    def image(bboxes: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        parts: list[tuple[Tensor, Tensor]] = []
        for label in (c for c in range(scores.shape[0]) if c != background):
            chosen = nonzero(scores[label] > score_threshold)[:, 0]
            order = argsort(gather(scores[label], chosen), descending=True, stable=True)
            chosen = gather(chosen, order if nms_top_k < 0 else order[:nms_top_k])
            boxes = gather(bboxes, chosen)
            score, stays = suppress(boxes, gather(scores[label], chosen))
            row = concat([stack([full_like(score, label), score], 1), boxes], 1)
            stay = nonzero(stays)[:, 0]
            parts.append((gather(row, stay), gather(chosen, stay)))
        rows, numbers = (concat([p[i] for p in parts]) for i in (0, 1))
        return best(rows, numbers)

    trace = current().trace
    return (_all_images if trace is None else trace.convert(_all_images))(bboxes, scores, image)


def _all_images(
    bboxes: Tensor, scores: Tensor, image: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
) -> tuple[Tensor, Tensor, Tensor]:
    """Join what images have; under a trace this source is converted."""
    rows: list[Tensor] = []
    numbers: list[Tensor] = []
    counts: list[Tensor] = []
    n = bboxes.shape[1]
    for i in range(bboxes.shape[0]):
        row, number = image(bboxes[i], scores[i])
        rows.append(row)
        numbers.append(number + i * n)
        counts.append(cast_to(ones_like(number).sum(), int32))
    return concat(rows), cast_to(concat(numbers), int32).reshape([-1, 1]), stack(counts)


_all_images.__dy2st_convert__ = True  # type: ignore[attr-defined]


def _decay(over: Tensor, gaussian: bool, sigma: float) -> Tensor:
    """Return what a score is times, from the overlaps [better, worse]: the least that a better box leaves of it."""
    none = zeros_like(over.sum(0, keepdim=True))  # so that there is a greatest and a least of no boxes
    most = concat([none, over]).max(0)[:, None]  # how much the better box itself is overlapped
    left = exp((most * most - over * over) * sigma) if gaussian else (1.0 - over) / (1.0 - most)
    return concat([none + 1.0, left]).min(0)
