"""Regions that a detector looks at: made of a map of codes, and handed to the levels of a pyramid."""

from __future__ import annotations

from typing import Any

from dy2st.dtypes import int32
from dy2st.functions.core.operands import cast_to, floating, tensor
from dy2st.functions.math.comparison import logical_and
from dy2st.functions.math.math import clip, floor, log2, minimum, sqrt
from dy2st.functions.math.reduction import cumsum
from dy2st.functions.math.search import argsort, nonzero, searchsorted
from dy2st.functions.shape.concat_split import concat, stack
from dy2st.functions.shape.creation import arange, ones_like
from dy2st.functions.shape.gather_scatter import gather
from dy2st.functions.shape.manipulation import reshape, transpose
from dy2st.runtime.eager.tensor import Tensor
from dy2st.vision.ops.boxes import box_coder
from dy2st.vision.ops.suppression import kept

_MOST = 4.135166556742356  # log(1000 / 16): the largest growth of a side


def distribute_fpn_proposals(
    fpn_rois: Any, min_level: int, max_level: int, refer_level: int, refer_scale: int, pixel_offset: bool = False,
    rois_num: Any = None, name: str | None = None,
) -> tuple[list[Tensor], Tensor, list[Tensor] | None]:  # fmt: skip
    """Return the regions of each level of a pyramid by their size, where each one went, and how many of each image.

    A region as large as `refer_scale` squared goes to `refer_level`, one of twice the side a level higher (Lin et
    al., 2017). `rois_num` says how many regions are of each image.

    >>> import dy2st as paddle
    >>> rois = paddle.to_tensor([[0.0, 0, 100, 100], [0, 0, 10, 10]])
    >>> levels, place, _ = distribute_fpn_proposals(rois, 2, 3, 3, 100)
    >>> [len(r) for r in levels], place.tolist()
    ([1, 1], [[1], [0]])
    """
    rois = floating(fpn_rois, "distribute_fpn_proposals")
    sides = rois[:, 2:] - rois[:, :2] + (1.0 if pixel_offset else 0.0)
    level = floor(log2(sqrt(sides.prod(-1)) / refer_scale + 1e-8) + refer_level)
    level = clip(level, float(min_level), float(max_level))
    numbers = [nonzero(level == float(i))[:, 0] for i in range(min_level, max_level + 1)]
    counts = None
    if rois_num is not None:
        total = tensor(rois_num, "distribute_fpn_proposals")
        image = searchsorted(cumsum(total), cast_to(arange(rois.shape[0]), total.dtype), right=True)
        each = arange(total.shape[0], dtype="int64")[:, None]
        counts = [cast_to((gather(image, n) == each).sum(-1), int32) for n in numbers]
    place = cast_to(argsort(concat(numbers)), int32).reshape([-1, 1])
    return [gather(rois, n) for n in numbers], place, counts


def generate_proposals(
    scores: Any, bbox_deltas: Any, img_size: Any, anchors: Any, variances: Any, pre_nms_top_n: int = 6000,
    post_nms_top_n: int = 1000, nms_thresh: float = 0.5, min_size: float = 0.1, eta: float = 1.0,
    pixel_offset: bool = False, return_rois_num: bool = False, name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor | None]:  # fmt: skip
    """Return the best regions of each image, their scores, and how many there are of each (Ren et al., 2015).

    Parameters
    ----------
    scores, bbox_deltas
        [batch, anchors, height, width] and [batch, 4 anchors, height, width].
    img_size
        [batch, 2]: height and width, within which regions are cut.
    anchors, variances
        [height, width, anchors, 4].
    """
    if eta != 1.0:
        raise ValueError(f"generate_proposals: a threshold that falls by eta={eta} is not here")
    scores, deltas = floating(scores, "generate_proposals"), floating(bbox_deltas, "generate_proposals")
    n, count, height, width = scores.shape
    flat = reshape(transpose(scores, [0, 2, 3, 1]), [n, -1])
    codes = reshape(transpose(reshape(deltas, [n, count, 4, height, width]), [0, 3, 4, 1, 2]), [n, -1, 4])
    priors, spread = (reshape(floating(a, "generate_proposals"), [-1, 4]) for a in (anchors, variances))
    more = 1.0 if pixel_offset else 0.0
    found: list[tuple[Tensor, Tensor]] = []
    for i in range(n):
        order = argsort(flat[i], descending=True, stable=True)[: pre_nms_top_n if pre_nms_top_n > 0 else None]
        code, var = gather(codes[i], order), gather(spread, order)
        code = concat([code[:, :2], minimum(code[:, 2:] * var[:, 2:], tensor(_MOST, "", code.dtype)) / var[:, 2:]], 1)
        boxes = box_coder(gather(priors, order), var, code[:, None], "decode_center_size", not pixel_offset, axis=1)[
            :, 0
        ]
        limits = concat([img_size[i, 1:2], img_size[i, :1]] * 2) - more
        boxes = minimum(clip(boxes, min=0.0), cast_to(limits, boxes.dtype))
        sides = boxes[:, 2:] - boxes[:, :2] + more
        large = nonzero(logical_and(*(sides[:, a] >= max(min_size, 1.0) for a in (0, 1))))[:, 0]
        boxes, best = gather(boxes, large), gather(gather(flat[i], order), large)
        stay = nonzero(kept(boxes, nms_thresh, more=more))[:, 0][:post_nms_top_n]
        found.append((gather(boxes, stay), gather(best, stay).reshape([-1, 1])))
    rois, probabilities = (concat([f[k] for f in found]) for k in (0, 1))
    counts = stack([cast_to(ones_like(f[1]).sum(), int32) for f in found]) if return_rois_num else None
    return rois, probabilities, counts
