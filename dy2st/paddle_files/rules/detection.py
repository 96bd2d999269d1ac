"""Heads of detectors: boxes of anchors, regions, suppression."""

from __future__ import annotations

from typing import Any

from dy2st.paddle_files.runner import Node, operator
from dy2st.vision import ops
from dy2st.vision.ops.suppression import multiclass_nms


@operator("yolo_box")
def _yolo_box(node: Node, x: Any, size: Any) -> Any:
    return ops.yolo_box(
        x, size, node.get("anchors"), node.get("class_num"), node.get("conf_thresh"), node.get("downsample_ratio"),
        bool(node.get("clip_bbox", default=True)), scale_x_y=node.get("scale_x_y", default=1.0),
        iou_aware=bool(node.get("iou_aware")), iou_aware_factor=node.get("iou_aware_factor", default=0.5),
    )  # fmt: skip


@operator("prior_box")
def _prior_box(node: Node, x: Any, image: Any) -> Any:
    return ops.prior_box(
        x, image, node.get("min_sizes"), node.get("max_sizes") or None, node.get("aspect_ratios"),
        node.get("variances"), bool(node.get("flip")), bool(node.get("clip")),
        [node.get("step_w", default=0.0), node.get("step_h", default=0.0)], node.get("offset", default=0.5),
        bool(node.get("min_max_aspect_ratios_order")),
    )  # fmt: skip


@operator("box_coder")
def _box_coder(node: Node, prior: Any, variance: Any, target: Any) -> Any:
    given = node.get("variance") or None if variance is None else variance
    kind, normal = (
        node.get("code_type", default="encode_center_size"),
        node.get("normalized", "box_normalized", default=True),
    )
    return ops.box_coder(prior, given, target, kind, bool(normal), axis=node.get("axis", default=0))


@operator("roi_align")
def _roi_align(node: Node, x: Any, boxes: Any, each: Any) -> Any:
    size = (node.get("pooled_height", default=1), node.get("pooled_width", default=1))
    scale, ratio = node.get("spatial_scale", default=1.0), node.get("sampling_ratio", default=-1)
    return ops.roi_align(x, boxes, each, size, scale, ratio, bool(node.get("aligned")))


@operator("deformable_conv")
def _deformable_conv(node: Node, x: Any, offset: Any, w: Any, mask: Any = None) -> Any:
    strides, around, dilations = (node.get(name) for name in ("strides", "paddings", "dilations"))
    return ops.deform_conv2d(x, offset, w, None, strides, around, dilations, node.get("deformable_groups", default=1),
                             node.get("groups", default=1), mask)  # fmt: skip


@operator("nms")
def _nms(node: Node, boxes: Any) -> Any:
    return ops.nms(boxes, node.get("threshold", default=1.0))


@operator("multiclass_nms3")
def _multiclass_nms(node: Node, boxes: Any, scores: Any, counts: Any = None) -> Any:
    """Return what is kept, its places, how many of each image."""
    if counts is not None or node.get("nms_eta", default=1.0) != 1.0:
        raise node.fail("boxes that are counted, or a threshold that falls")
    return multiclass_nms(
        boxes, scores, None, node.get("score_threshold"), node.get("nms_top_k"), node.get("keep_top_k"),
        node.get("nms_threshold", default=0.3), bool(node.get("normalized", default=True)), 1.0,
        node.get("background_label", default=0),
    )  # fmt: skip


@operator("matrix_nms")
def _matrix_nms(node: Node, boxes: Any, scores: Any) -> Any:
    """Return what is kept, its places, how many of each image."""
    kept, places, many = ops.matrix_nms(
        boxes, scores, node.get("score_threshold"), node.get("post_threshold", default=0.0), node.get("nms_top_k"),
        node.get("keep_top_k"), bool(node.get("use_gaussian")), node.get("gaussian_sigma", default=2.0),
        node.get("background_label", default=0), bool(node.get("normalized", default=True)), True, True,
    )  # fmt: skip
    return kept, places, many
