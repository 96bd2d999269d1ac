"""Convolutions, normalizations, embeddings, resizing, attention."""

from __future__ import annotations

from typing import Any

from dy2st import tensor as T
from dy2st.nn import functional as F
from dy2st.paddle_files.runner import Node, operator

_ORDERS = {
    **dict.fromkeys(("NCHW", "NCDHW", "AnyLayout"), ("NCHW", "NCDHW")),
    **dict.fromkeys(("NHWC", "NDHWC"), ("NHWC", "NDHWC")),
}
"""The order of axes for images and for volumes; files say of either as of the other."""


def layout(node: Node, rank: int) -> str:
    """Return the order of axes that an attribute names."""
    said = node.get("data_format", default="AnyLayout")
    if said not in _ORDERS:
        raise node.fail(f"the data format {said!r:.40}")
    return _ORDERS[said][rank - 4]


def padding(node: Node) -> Any:
    """Return the padding as functions take it: a word, or widths."""
    said = node.get("padding_algorithm", default="EXPLICIT")
    return said if said in ("SAME", "VALID") else list(node.get("paddings"))


def padded(node: Node, x: Any, kernel: list[Any], form: str, value: float) -> tuple[Any, Any]:
    """Return x and how to pad it; where SAME depends on extents that are not known, x is padded here."""
    said, first = padding(node), 1 if form.endswith("C") else 2
    strides = node.get("strides")
    open_axes = [i for i, s in enumerate(strides) if s > 1 and not isinstance(x.shape[first + i], int)]
    if said != "SAME" or not open_axes or any(k < s for k, s in zip(kernel, strides, strict=True)):
        return x, said
    for axis, (k, s) in enumerate(zip(kernel, strides, strict=True), first):
        shape = list(x.shape)
        whole = k - ((shape[axis] - 1) % s + 1)
        parts = [
            T.full([*shape[:axis], n, *shape[axis + 1 :]], value, x.dtype) for n in (whole // 2, whole - whole // 2)
        ]
        x = T.concat([parts[0], x, parts[1]], axis)
    return x, 0


def _conv(name: str, dims: int) -> None:
    def rule(node: Node, x: Any, w: Any, bias: Any = None) -> Any:
        conv = F.conv2d if dims == 2 else F.conv3d
        form, groups = layout(node, dims + 2), node.get("groups", default=1)
        x, around = padded(node, x, list(w.shape[2:]), form, 0.0)
        dilations = (
            [1] * dims if padding(node) == "SAME" else node.get("dilations")
        )  # PaddlePaddle's kernels set them to 1
        return conv(x, w, bias, node.get("strides"), around, dilations, groups, form)

    operator(name)(rule)


_conv("conv2d", 2)
_conv("depthwise_conv2d", 2)
_conv("conv3d", 3)


@operator("conv2d_transpose", "depthwise_conv2d_transpose")
def _conv2d_transpose(node: Node, x: Any, w: Any, size: Any = None) -> Any:
    wanted = node.ints(2) or None
    more = 0 if wanted else node.get("output_padding", default=[]) or 0
    return F.conv2d_transpose(x, w, None, node.get("strides"), padding(node), more, node.get("dilations"),
                              node.get("groups", default=1), wanted, layout(node, 4))  # fmt: skip


@operator("conv3d_transpose")
def _conv3d_transpose(node: Node, x: Any, w: Any) -> Any:
    wanted = node.get("output_size", default=[]) or None
    more = 0 if wanted else node.get("output_padding", default=[]) or 0
    return F.conv3d_transpose(x, w, None, node.get("strides"), padding(node), more, node.get("groups", default=1),
                              node.get("dilations"), wanted, layout(node, 5))  # fmt: skip


@operator("batch_norm")
def _batch_norm(node: Node, x: Any, mean: Any, variance: Any, scale: Any, bias: Any) -> Any:
    fixed = bool(node.get("is_test") or node.get("use_global_stats"))
    last = node.get("data_format", default="NCHW").endswith("C")
    form = {2: "NC", 3: "NLC" if last else "NCL", 4: "NHWC" if last else "NCHW"}.get(
        x.ndim, "NDHWC" if last else "NCDHW"
    )
    momentum, epsilon = node.get("momentum", default=0.9), node.get("epsilon", default=1e-5)
    return F.batch_norm(x, mean, variance, scale, bias, not fixed, momentum, epsilon, form)


@operator("layer_norm")
def _layer_norm(node: Node, x: Any, scale: Any, bias: Any) -> Any:
    over = list(x.shape[node.get("begin_norm_axis", default=1) :])
    if scale is None and bias is None:
        return F.layer_norm(x, over, None, None, node.get("epsilon", default=1e-5))
    if len(over) == 1:
        over = list((scale if scale is not None else bias).shape)
    scale, bias = (w if w is None or w.ndim == len(over) else T.reshape(w, over) for w in (scale, bias))
    return F.layer_norm(x, over, scale, bias, node.get("epsilon", default=1e-5))


@operator("group_norm")
def _group_norm(node: Node, x: Any, scale: Any, bias: Any) -> Any:
    form = node.get("data_format", default="NCHW")
    return F.group_norm(x, node.get("groups"), node.get("epsilon", default=1e-5), scale, bias, form)


@operator("instance_norm")
def _instance_norm(node: Node, x: Any, scale: Any, bias: Any) -> Any:
    return F.instance_norm(x, weight=scale, bias=bias, eps=node.get("epsilon", default=1e-5))


@operator("fused_rms_norm_quant")
def _rms_norm(node: Node, x: Any, bias: Any, residual: Any, scale: Any, shift: Any) -> Any:
    """Return the norm of x and what is added to it, and that sum."""
    if node.get("quant_scale", default=-1.0) > 0:
        raise node.fail("a result in int8")
    for more in (bias, residual):
        x = x if more is None else x + more
    made = F.rms_norm(x, list(x.shape[node.get("begin_norm_axis", default=1) :]), scale, node.get("epsilon"))
    return made if shift is None else made + shift, x


@operator("embedding")
def _embedding(node: Node, ids: Any, table: Any) -> Any:
    said = node.get("padding_idx", default=-1)
    ids = T.squeeze(ids, [-1]) if node.operation.said == "lookup_table" else ids
    return F.embedding(ids, table, None if said == -1 else said)


_MODES = ("nearest", "bilinear", "bicubic", "linear", "trilinear")


@operator("interpolate", *(f"{mode}_interp" for mode in _MODES))
def _interpolate(node: Node, x: Any, out_size: Any = None, sizes: Any = None, scale: Any = None) -> Any:
    """Resize: to extents that are computed, else to those of the file, else by factors."""
    mode, rank = node.get("interp_method", default="bilinear"), x.ndim - 2
    size = node.ints(2) or node.ints(1)
    if size is None:
        size = [node.get(name, default=-1) for name in ("out_d", "out_h", "out_w")[3 - rank :]]
        size = size if all(e > 0 for e in size) else None
    factors = None
    if size is None:
        factors = node.get("scale") if scale is None else [float(e) for e in scale.numpy().reshape(-1)]
        factors = factors[0] if factors is not None and len(factors) == 1 else factors
    form = {"NCHW": {1: "NCW", 2: "NCHW", 3: "NCDHW"}, "NHWC": {1: "NWC", 2: "NHWC", 3: "NDHWC"}}.get(
        node.get("data_format", default="NCHW"), {}
    ).get(rank, node.get("data_format"))
    corners, align = bool(node.get("align_corners")), node.get("align_mode", default=1)
    return F.interpolate(x, size, factors, mode, corners, align if not corners else 0, form)


@operator("grid_sample")
def _grid_sample(node: Node, x: Any, grid: Any) -> Any:
    mode, around = node.get("mode", default="bilinear"), node.get("padding_mode", default="zeros")
    return F.grid_sample(x, grid, mode, around, bool(node.get("align_corners", default=True)))


@operator("affine_grid")
def _affine_grid(node: Node, theta: Any, shape: Any) -> Any:
    return F.affine_grid(theta, node.ints(1), bool(node.get("align_corners", default=True)))


@operator("pixel_shuffle")
def _pixel_shuffle(node: Node, x: Any) -> Any:
    return F.pixel_shuffle(x, node.get("upscale_factor", default=1), node.get("data_format", default="NCHW"))


@operator("pixel_unshuffle")
def _pixel_unshuffle(node: Node, x: Any) -> Any:
    return F.pixel_unshuffle(x, node.get("downscale_factor", default=1), node.get("data_format", default="NCHW"))


@operator("channel_shuffle")
def _channel_shuffle(node: Node, x: Any) -> Any:
    return F.channel_shuffle(x, node.get("groups", default=1), node.get("data_format", default="NCHW"))


@operator("temporal_shift")
def _temporal_shift(node: Node, x: Any) -> Any:
    turns, share = node.get("seg_num", default=1), node.get("shift_ratio", default=0.25)
    return F.temporal_shift(x, turns, share, data_format=node.get("data_format", default="NCHW"))


@operator("unfold")
def _unfold(node: Node, x: Any) -> Any:
    return F.unfold(x, *(node.get(name) for name in ("kernel_sizes", "strides", "paddings", "dilations")))
