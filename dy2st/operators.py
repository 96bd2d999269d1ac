"""`paddle._C_ops`: functions with the arguments, by position, that Paddle's operators have.

Where a public function takes them in the same order it is the answer; `_OTHER` has those whose operator orders them
otherwise or returns more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st import fft, linalg, nn, tensor
from dy2st.functions import face
from dy2st.functions.linalg.einsum import einsum as _einsum
from dy2st.functions.math import histograms
from dy2st.functions.shape import stacking
from dy2st.missing import no_attribute
from dy2st.nn import functional as F
from dy2st.runtime.eager.tensor import Tensor
from dy2st.vision import ops as vision
from dy2st.vision.ops.suppression import multiclass_nms


def _softmax_loss(
    logits: Any, label: Any, soft_label: bool = False, use_softmax: bool = True, numeric_stable_mode: bool = True,
    ignore_index: int = -100, axis: int = -1,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    how: dict[str, Any] = {"reduction": "none", "soft_label": soft_label, "axis": axis, "use_softmax": use_softmax}
    loss = F.cross_entropy(logits, label, ignore_index=ignore_index, **how)
    loss = loss if loss.ndim == logits.ndim else loss.unsqueeze(axis)
    return (F.softmax(logits, axis) if use_softmax else logits), loss


def _conv(rank: int) -> Callable[..., Tensor]:
    def conv(
        x: Any, weight: Tensor, strides: Any = 1, paddings: Any = 0, padding_algorithm: str = "EXPLICIT",
        dilations: Any = 1, groups: int = 1, data_format: str = "NCHW", *_: Any,
    ) -> Tensor:  # fmt: skip
        padding = paddings if padding_algorithm == "EXPLICIT" else padding_algorithm
        return getattr(F, f"conv{rank}d")(x, weight, None, strides, padding, dilations, groups, data_format)

    return conv


def _depthwise(
    x: Any, weight: Tensor, strides: Any = 1, paddings: Any = 0, algorithm: str = "EXPLICIT", groups: int = 1,
    dilations: Any = 1, data_format: str = "NCHW", *_: Any,
) -> Tensor:  # fmt: skip
    return _conv(2)(x, weight, strides, paddings, algorithm, dilations, groups, data_format)


def _pool2d(
    x: Any, kernel_size: Any, strides: Any, paddings: Any, ceil_mode: bool, exclusive: bool, data_format: str,
    pooling_type: str, global_pooling: bool, adaptive: bool, padding_algorithm: str = "EXPLICIT", *_: Any,
) -> Tensor:  # fmt: skip
    most = pooling_type == "max"
    if global_pooling or adaptive:
        size = 1 if global_pooling else kernel_size
        return F.adaptive_max_pool2d(x, size) if most else F.adaptive_avg_pool2d(x, size, data_format)
    padding = paddings if padding_algorithm == "EXPLICIT" else padding_algorithm
    if most:
        return F.max_pool2d(x, kernel_size, strides, padding, ceil_mode=ceil_mode, data_format=data_format)
    return F.avg_pool2d(x, kernel_size, strides, padding, ceil_mode, exclusive, data_format=data_format)


def _interpolate(mode: str) -> Callable[..., Tensor]:
    def resize(
        x: Any, out_size: Any, size_tensor: Any, scale_tensor: Any, data_format: str, out_d: int, out_h: int,
        out_w: int, scale: Any, interp_method: str = mode, align_corners: bool = True, align_mode: int = 1,
    ) -> Tensor:  # fmt: skip
        size = out_size if out_size is not None else [n for n in (out_d, out_h, out_w) if n and n > 0] or None
        return F.interpolate(x, size, None if size else scale, interp_method, align_corners, align_mode, data_format)

    return resize


def _slice(
    input: Tensor, axes: Any, starts: Any, ends: Any, infer_flags: Any = None, decrease_axis: Any = ()
) -> Tensor:
    made = face.slice(input, axes, starts, ends)
    return made.squeeze(list(decrease_axis)) if decrease_axis else made


def _dropout(
    x: Tensor, seed_tensor: Any, p: float, is_test: bool, mode: str, seed: int = 0, fix_seed: bool = False
) -> tuple[Tensor, Tensor]:
    """Return what is left of x, and where that is, from one draw."""
    if is_test:
        return (x if mode == "upscale_in_train" else x * (1.0 - p)), face.ones_like(x).astype("uint8")
    stays = face.cast(face.rand(x.shape) >= p, x.dtype)
    scale = 1.0 / (1.0 - p) if mode == "upscale_in_train" and p < 1.0 else 1.0
    return x * stays * scale, stays.astype("uint8")


def _layer_norm(
    x: Tensor, scale: Any, bias: Any, epsilon: float = 1e-5, begin_norm_axis: int = 1
) -> tuple[Tensor, Tensor, Tensor]:
    axes = list(range(begin_norm_axis, x.ndim))
    shape = x.shape[begin_norm_axis:]
    scale, bias = (None if p is None else p.reshape(shape) for p in (scale, bias))
    return F.layer_norm(x, shape, scale, bias, epsilon), x.mean(axes), x.var(axes, unbiased=False)


_OTHER: dict[str, Callable[..., Any]] = {
    "argsort": lambda x, axis=-1, descending=False, stable=False: (
        face.sort(x, axis, descending, stable), face.argsort(x, axis, descending, stable)
    ),
    "argmax": lambda x, axis, keepdims=False, flatten=False, dtype="int64": face.argmax(
        x, None if flatten else axis, keepdims, dtype
    ),
    "argmin": lambda x, axis, keepdims=False, flatten=False, dtype="int64": face.argmin(
        x, None if flatten else axis, keepdims, dtype
    ),
    "assign_value_": lambda output, shape, dtype, values, *_: output.set_value(
        face.to_tensor([float(v) for v in values], dtype).reshape(shape)
    ),
    "bce_loss": lambda input, label: F.binary_cross_entropy(input, label, reduction="none"),
    "bilinear_interp": _interpolate("bilinear"),
    "bicubic_interp": _interpolate("bicubic"),
    "nearest_interp": _interpolate("nearest"),
    "linear_interp": _interpolate("linear"),
    "trilinear_interp": _interpolate("trilinear"),
    "conv2d": _conv(2),
    "conv3d": _conv(3),
    "cross_entropy_with_softmax": _softmax_loss,
    "cumsum": lambda x, axis=-1, flatten=False, exclusive=False, reverse=False: _cumsum(
        x.flatten() if flatten else x, -1 if flatten else axis, exclusive, reverse
    ),
    "deformable_conv": lambda x, offset, filter, mask, strides, paddings, dilations, deformable_groups, groups, *_: (
        vision.deform_conv2d(x, offset, filter, None, strides, paddings, dilations, deformable_groups, groups, mask)
    ),
    "depthwise_conv2d": _depthwise,
    "dropout": _dropout,
    "einsum": lambda x, equation: (_einsum(equation, *x), None, None),
    "elementwise_pow": face.pow,
    "frobenius_norm": lambda x, axis, keepdim=False, reduce_all=False: (x * x).sum(
        None if reduce_all else axis, keepdim=keepdim
    ).sqrt(),
    "full_with_tensor": lambda value, shape, dtype: face.full(shape, value, dtype),
    "full_batch_size_like": lambda x, shape, dtype, value, input_dim_idx=0, output_dim_idx=0, *_: face.full(
        [x.shape[input_dim_idx] if i == output_dim_idx else n for i, n in enumerate(shape)], value, dtype
    ),
    "gaussian": lambda shape, mean, std, seed, dtype, *_: face.standard_normal(shape, dtype) * std + mean,
    "group_norm": lambda x, scale, bias, epsilon, groups, data_format="NCHW": F.group_norm(
        x, groups, epsilon, scale, bias, data_format
    ),
    "huber_loss": lambda input, label, delta: F.smooth_l1_loss(input, label, "none", delta),
    "instance_norm": lambda x, scale, bias, epsilon: F.instance_norm(x, weight=scale, bias=bias, eps=epsilon),
    "kldiv_loss": lambda x, label, reduction="mean", log_target=False: F.kl_div(x, label, reduction, log_target),
    "layer_norm": _layer_norm,
    "logsumexp": lambda x, axis, keepdim=False, reduce_all=False: face.logsumexp(
        x, None if reduce_all else axis, keepdim
    ),
    "matmul_v2": face.matmul,
    "mean_all": lambda x: x.mean(),
    "multiclass_nms3": multiclass_nms,
    "p_norm": lambda x, porder=2.0, axis=-1, epsilon=1e-12, keepdim=False, asvector=False: face.norm(
        x, porder, None if asvector else axis, keepdim
    ),
    "pad3d": lambda x, paddings, mode="constant", pad_value=0.0, data_format="NCDHW": F.pad(
        x, paddings, mode, pad_value, data_format
    ),
    "pool2d": _pool2d,
    "prod": lambda x, axis, keepdim=False, reduce_all=False: face.prod(x, None if reduce_all else axis, keepdim),
    "roi_align": lambda x, boxes, boxes_num, ph=1, pw=1, scale=1.0, ratio=-1, aligned=False: vision.roi_align(
        x, boxes, boxes_num, (ph, pw), scale, ratio, aligned
    ),
    "roi_pool": lambda x, boxes, boxes_num, ph=1, pw=1, scale=1.0: (
        vision.roi_pool(x, boxes, boxes_num, (ph, pw), scale), None
    ),
    "sigmoid_cross_entropy_with_logits": lambda x, label, pos_weight=None, normalize=False, ignore_index=-100: (
        F.binary_cross_entropy_with_logits(x, label, reduction="none", pos_weight=pos_weight)
        * (label != ignore_index).astype(x.dtype)
        / ((label != ignore_index).astype(x.dtype).sum().clip(1.0) if normalize else 1.0)
    ),
    "slice": _slice,
    "split_with_num": lambda x, num, axis=0: face.split(x, num, axis),
    "squared_l2_norm": lambda x: (x * x).sum().reshape([1]),
    "tril_triu": lambda x, diagonal=0, lower=True: (face.tril if lower else face.triu)(x, diagonal),
    "uniform": lambda shape, dtype, min, max, seed=0, *_: face.uniform(shape, dtype, min, max, seed),
    "unfold": F.unfold,
    "yolo_box": lambda x, size, anchors, count, thresh, ratio, clip=True, scale=1.0, aware=False, factor=0.5: (
        vision.yolo_box(x, size, anchors, count, thresh, ratio, clip, None, scale, aware, factor)
    ),
}  # fmt: skip
_MODULES = (face, F, tensor, linalg, fft, stacking, histograms, nn, vision)


def _cumsum(x: Tensor, axis: int, exclusive: bool, reverse: bool) -> Tensor:
    x = x.flip(axis) if reverse else x
    made = face.cumsum(x, axis)
    made = made - x if exclusive else made
    return made.flip(axis) if reverse else made


def __getattr__(name: str) -> Any:
    if name in _OTHER:
        return _OTHER[name]
    if not name.startswith("__"):
        for module in _MODULES:
            if callable(found := getattr(module, name, None)):
                return found
    raise no_attribute(__name__, name, __dir__())


def __dir__() -> list[str]:
    public = {n for m in _MODULES for n in dir(m) if n.islower() and callable(getattr(m, n, None))}
    return sorted({n for n in public if not n.startswith("_")} | _OTHER.keys())
