"""Boxes of detectors: their codes beside priors, priors of a map, and what YOLO's map says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dy2st.functions.aliases import as_tensor
from dy2st.functions.core.operands import cast_to, floating, tensor
from dy2st.functions.math.comparison import where
from dy2st.functions.math.math import clip, exp, log, minimum
from dy2st.functions.shape.broadcasting import expand
from dy2st.functions.shape.concat_split import concat, stack
from dy2st.functions.shape.creation import arange, zeros_like
from dy2st.functions.shape.from_data import to_tensor
from dy2st.functions.shape.manipulation import reshape, transpose
from dy2st.nn.functional.activation import sigmoid
from dy2st.runtime.eager.tensor import Tensor


def _middles(boxes: Tensor, more: float) -> tuple[Tensor, Tensor]:
    """Return the middles and the extents, [..., 2] each, of boxes (x1, y1, x2, y2)."""
    extents = boxes[..., 2:] - boxes[..., :2] + more
    return boxes[..., :2] + extents * 0.5, extents


def box_coder(
    prior_box: Any, prior_box_var: Any, target_box: Any, code_type: str = "encode_center_size",
    box_normalized: bool = True, name: str | None = None, axis: int = 0,
) -> Tensor:  # fmt: skip
    """Return boxes as distances of middles and logarithms of extents from priors, or boxes from such codes.

    Parameters
    ----------
    prior_box, prior_box_var
        [m, 4]; what the codes are divided by: [m, 4], four numbers, or None.
    target_box
        To encode boxes [n, 4]: the result is [n, m, 4]. To decode codes [n, m, 4], beside priors along axis 1, or
        with `axis` 1 along axis 0.

    >>> import dy2st as paddle
    >>> box = paddle.to_tensor([[0.0, 0, 2, 2]])
    >>> box_coder(box, None, paddle.to_tensor([[1.0, 0, 3, 2]])).tolist()
    [[[0.5, 0.0, 0.0, 0.0]]]
    """
    prior, target = floating(prior_box, "box_coder"), floating(target_box, "box_coder")
    spread = 1.0 if prior_box_var is None else as_tensor(prior_box_var, prior.dtype)
    more = 0.0 if box_normalized else 1.0
    middles, extents = _middles(prior, more)
    if code_type == "encode_center_size":
        centers = (target[:, :2] + target[:, 2:]) * 0.5
        sides = target[:, 2:] - target[:, :2] + more
        moved = (centers[:, None] - middles) / extents
        return concat([moved, log((sides[:, None] / extents).abs())], -1) / spread
    if code_type != "decode_center_size":
        raise ValueError(f"box_coder: code_type is encode_center_size or decode_center_size, not {code_type!r}")
    if axis == 1:
        middles, extents = middles[:, None], extents[:, None]
        spread = spread[:, None] if isinstance(spread, Tensor) and spread.ndim == 2 else spread
    codes = target * spread
    middle, half = codes[..., :2] * extents + middles, exp(codes[..., 2:]) * extents * 0.5
    return concat([middle - half, middle + half - more], -1)


def prior_box(
    input: Any, image: Any, min_sizes: Sequence[float], max_sizes: Sequence[float] | None = None,
    aspect_ratios: Any = (1.0,), variance: Sequence[float] = (0.1, 0.1, 0.2, 0.2), flip: bool = False,
    clip: bool = False, steps: Sequence[float] = (0.0, 0.0), offset: float = 0.5,
    min_max_aspect_ratios_order: bool = False, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the priors of a map, [height, width, priors, 4] in shares of the image, and their variances (SSD).

    >>> import dy2st as paddle
    >>> made, _ = prior_box(paddle.zeros([1, 1, 1, 1]), paddle.zeros([1, 3, 4, 4]), [2.0])
    >>> made.tolist()
    [[[[0.25, 0.25, 0.75, 0.75]]]]
    """
    (height, width), (tall, wide) = input.shape[2:], image.shape[2:]
    ratios = _ratios([aspect_ratios] if isinstance(aspect_ratios, (int, float)) else aspect_ratios, flip)
    sides: list[tuple[float, float]] = []
    for i, least in enumerate([min_sizes] if isinstance(min_sizes, (int, float)) else min_sizes):
        shaped = [(least * math.sqrt(r), least / math.sqrt(r)) for r in ratios]
        square = [(math.sqrt(least * max_sizes[i]), math.sqrt(least * max_sizes[i]))] if max_sizes else []
        sides += [shaped[0], *square, *shaped[1:]] if min_max_aspect_ratios_order else [*shaped, *square]
    step_x, step_y = steps[0] or wide / width, steps[1] or tall / height
    dtype = floating(input, "prior_box").dtype
    x = (cast_to(arange(width), dtype) + offset) * step_x
    y = (cast_to(arange(height), dtype) + offset) * step_y
    half = to_tensor(sides, dtype) * 0.5
    shape = [height, width, len(sides)]
    x, y = expand(x[None, :, None], shape), expand(y[:, None, None], shape)
    (w, h) = half[:, 0], half[:, 1]
    made = stack([(x - w) / wide, (y - h) / tall, (x + w) / wide, (y + h) / tall], -1)
    made = made.clip(0.0, 1.0) if clip else made
    return made, expand(to_tensor(list(variance), dtype), [*shape, 4])


def _ratios(given: Sequence[float], flip: bool) -> list[float]:
    found = [1.0]
    for ratio in given:
        if all(abs(ratio - r) >= 1e-6 for r in found):
            found += [float(ratio), 1.0 / ratio] if flip else [float(ratio)]
    return found


def yolo_box(
    x: Any, img_size: Any, anchors: Sequence[int], class_num: int, conf_thresh: float, downsample_ratio: int,
    clip_bbox: bool = True, name: str | None = None, scale_x_y: float = 1.0, iou_aware: bool = False,
    iou_aware_factor: float = 0.5,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the boxes [batch, anchors height width, 4] in pixels, and their scores by class, of YOLOv3's map.

    Parameters
    ----------
    x
        [batch, anchors (5 + class_num), height, width]; with `iou_aware` the overlaps of all anchors come before.
    img_size
        [batch, 2]: height and width of each image.
    conf_thresh
        Boxes of less confidence, and their scores, are 0.
    """
    x, img_size = floating(x, "yolo_box"), tensor(img_size, "yolo_box")
    count = len(anchors) // 2
    n, _, height, width = x.shape
    overlap = sigmoid(x[:, :count]) if iou_aware else None
    x = x[:, count:] if iou_aware else x
    parts = transpose(reshape(x, [n, count, 5 + class_num, height, width]), [0, 1, 3, 4, 2])
    tall, wide = (cast_to(img_size[:, i], x.dtype).reshape([-1, 1, 1, 1]) for i in (0, 1))
    shift = (scale_x_y - 1.0) * 0.5
    column, row = cast_to(arange(width), x.dtype), cast_to(arange(height), x.dtype)[:, None]
    middle_x = (sigmoid(parts[..., 0]) * scale_x_y - shift + column) * wide / width
    middle_y = (sigmoid(parts[..., 1]) * scale_x_y - shift + row) * tall / height
    sides = to_tensor(list(anchors), x.dtype).reshape([count, 2, 1, 1])
    half_w = exp(parts[..., 2]) * sides[:, 0] * wide / (downsample_ratio * width) * 0.5
    half_h = exp(parts[..., 3]) * sides[:, 1] * tall / (downsample_ratio * height) * 0.5
    left, top, right, bottom = middle_x - half_w, middle_y - half_h, middle_x + half_w, middle_y + half_h
    if clip_bbox:
        left, top = clip(left, min=0.0), clip(top, min=0.0)
        right, bottom = minimum(right, wide - 1.0), minimum(bottom, tall - 1.0)
    sure = sigmoid(parts[..., 4])
    if overlap is not None:
        sure = sure ** (1.0 - iou_aware_factor) * overlap**iou_aware_factor
    sure = sure[..., None]
    boxes, scores = stack([left, top, right, bottom], -1), sure * sigmoid(parts[..., 5:])
    boxes, scores = (where(sure < conf_thresh, zeros_like(v), v) for v in (boxes, scores))
    return reshape(boxes, [n, -1, 4]), reshape(scores, [n, -1, class_num])
