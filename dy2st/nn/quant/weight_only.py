"""Weights of linear layers as integers of 8 or 4 bits, and products with them.

A weight [in, out] becomes rows of integers [out, in]; of 4 bits, [out / 2, in], a byte holds rows 2i and 2i + 1, the
even one in its low half. A scale is the largest magnitude of a row, or of a group of 64 or 128 of its elements, over
127 (7): the integers are symmetric about 0. PaddlePaddle lays the rows out anew for a generation of GPUs, which `arch`
names; here they stay as they are, and `arch` changes nothing. T. Dettmers et al., "LLM.int8(): 8-bit Matrix
Multiplication for Transformers at Scale" (2022), is what `llm_int8_linear` follows.
"""

from __future__ import annotations

from typing import Any

from dy2st import dtypes
from dy2st.functions.core.operands import cast_to, floating, op, tensor
from dy2st.functions.math.math import round_half_away
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor

_PRODUCT, _NUMBERS = op("quantized_matmul"), op("dequantize")
_BITS = {"weight_only_int8": 8, "weight_only_int4": 4, "llm.int8": 8}
_OF_DTYPE = {"int8": 8, "int4": 4}
_GROUPS = (-1, 64, 128)


def weight_quantize(
    x: Tensor, algo: str = "weight_only_int8", arch: int | None = None, group_size: int = -1
) -> tuple[Tensor, Tensor]:
    """Return a weight [in, out] as integers [out, in] ([out / 2, in] of 4 bits) and their scales.

    Parameters
    ----------
    x
        The weight, of any float dtype.
    algo
        "weight_only_int8", "weight_only_int4", or "llm.int8", whose scales are float32; else they have x's dtype.
    group_size
        -1 for a scale for each output, [out]; 64 or 128 for one for each so many inputs, [in / group_size, out].

    ValueError where the extents do not divide into groups, or into pairs of rows.

    >>> import dy2st as paddle
    >>> w = paddle.to_tensor([[1.0, -0.5], [0.5, 2.0], [-2.0, 0.25]])
    >>> integers, scale = paddle.nn.quant.weight_quantize(w)
    >>> integers.tolist(), [round(127 * s, 4) for s in scale.tolist()]
    ([[64, 32, -127], [-32, 127, 16]], [2.0, 2.0])
    """
    x, bits = floating(x, "weight_quantize"), _bits(algo, "weight_quantize")
    _check_group(group_size, "weight_quantize")
    if x.ndim != 2:
        raise ValueError(f"weight_quantize takes a weight [in, out], not one of shape {x.shape}")
    inputs, outputs = x.shape
    most = 2 ** (bits - 1) - 1
    rows = cast_to(x, dtypes.float32).transpose([1, 0])
    grouped = rows if group_size == -1 else rows.reshape([outputs, _whole(inputs, group_size), group_size])
    wanted = dtypes.float32 if algo == "llm.int8" else x.dtype
    scale = cast_to(cast_to(grouped.abs().max(-1) / most, wanted), dtypes.float32)
    by = (scale + cast_to(scale == 0, scale.dtype)).unsqueeze(-1)
    integers = cast_to(round_half_away(grouped / by).clip(-most - 1, most), dtypes.int32).reshape([outputs, inputs])
    made = cast_to(integers if bits == 8 else _packed(integers), dtypes.int8)
    return made, cast_to(scale if group_size == -1 else scale.transpose([1, 0]), wanted)


def weight_dequantize(
    x: Tensor, scale: Tensor, algo: str = "weight_only_int8", out_dtype: Any = None, group_size: int = -1
) -> Tensor:
    """Return the weight [in, out] that integers and scales of `weight_quantize` stand for.

    It has the dtype of the scales, or `out_dtype`.

    >>> import dy2st as paddle
    >>> w = paddle.to_tensor([[0.5, -1.0], [1.0, 0.25]])
    >>> made = paddle.nn.quant.weight_dequantize(*paddle.nn.quant.weight_quantize(w))
    >>> bool((made - w).abs().max() < 0.004)
    True
    """
    _check_group(group_size, "weight_dequantize")
    made = apply(_NUMBERS, tensor(x, "weight_dequantize"), floating(scale, "weight_dequantize"),
                 bits=_bits(algo, "weight_dequantize"), group=max(group_size, 0)).transpose([1, 0])  # fmt: skip
    return made if out_dtype is None else cast_to(made, dtypes.dtype(out_dtype))


def weight_only_linear(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, weight_scale: Tensor | None = None,
    weight_dtype: str = "int8", arch: int | None = None, group_size: int = -1,
) -> Tensor:  # fmt: skip
    """Return x @ (weight as numbers) + bias, in the dtype of x, [..., in]; gradients flow to x, bias and scales.

    Native code reads the integers and computes in float32.

    >>> import dy2st as paddle
    >>> integers, scale = paddle.nn.quant.weight_quantize(paddle.to_tensor([[1.0], [2.0]]))
    >>> y = paddle.nn.quant.weight_only_linear(paddle.ones([3, 2]), integers, weight_scale=scale)
    >>> y.shape, round(float(y[0, 0]), 2)
    ([3, 1], 3.01)
    """
    x, bits = floating(x, "weight_only_linear"), _OF_DTYPE.get(str(weight_dtype).removeprefix("paddle."))
    if bits is None:
        raise ValueError(f"weight_only_linear: weight_dtype is 'int8' or 'int4', not {weight_dtype!r}")
    if weight_scale is None:
        raise ValueError("weight_only_linear needs the scales of the weight: `weight_scale`")
    _check_group(group_size, "weight_only_linear")
    return _product(x, weight, weight_scale, bias, bits, max(group_size, 0))


def llm_int8_linear(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, weight_scale: Tensor | None = None, threshold: float = 6.0
) -> Tensor:
    """Return x @ (weight as numbers) + bias, where x is rounded to 8 bits too, but for its outliers.

    Inputs (columns of x) of which an element is larger than `threshold` stay as they are; each row of the others is
    rounded to 127 steps of its largest magnitude.

    >>> import dy2st as paddle
    >>> integers, scale = paddle.nn.quant.weight_quantize(paddle.to_tensor([[1.0], [2.0]]), "llm.int8")
    >>> y = paddle.nn.quant.llm_int8_linear(paddle.to_tensor([[1.0, 100.0]]), integers, weight_scale=scale)
    >>> round(float(y), 2)
    201.01
    """
    x = floating(x, "llm_int8_linear")
    if weight_scale is None:
        raise ValueError("llm_int8_linear needs the scales of the weight: `weight_scale`")
    flat = x.reshape([-1, x.shape[-1]])
    outlier = cast_to(flat.abs().max(0, keepdim=True) > threshold, x.dtype)
    inner = flat * (1 - outlier)
    step = inner.abs().max(-1, keepdim=True) / 127
    step = step + cast_to(step == 0, step.dtype)
    rounded = round_half_away(inner / step) * step + flat * outlier
    return _product(rounded.reshape(x.shape), weight, weight_scale, bias, 8, 0)


def _product(x: Tensor, weight: Tensor, scale: Tensor, bias: Tensor | None, bits: int, group: int) -> Tensor:
    """Return the product, flat for the kernel, with the scales in the dtype of x."""
    flat = x if x.ndim == 2 else x.reshape([-1, x.shape[-1]])
    out = apply(_PRODUCT, flat, weight, cast_to(scale, x.dtype), bits=bits, group=group)
    if x.ndim != 2:
        out = out.reshape([*x.shape[:-1], out.shape[-1]])
    return out if bias is None else out + cast_to(bias, out.dtype)


def _packed(integers: Tensor) -> Tensor:
    """Return integers of 4 bits, two rows in each row of bytes."""
    if isinstance(integers.shape[0], int) and integers.shape[0] % 2:
        raise ValueError(f"a weight of 4 bits has pairs of outputs, and there are {integers.shape[0]}")
    return integers[1::2] * 16 + integers[0::2] % 16


def _bits(algo: str, name: str) -> int:
    if algo not in _BITS:
        raise ValueError(f"{name}: algo is one of {', '.join(map(repr, _BITS))}, not {algo!r}")
    return _BITS[algo]


def _check_group(size: int, name: str) -> None:
    if size not in _GROUPS:
        raise ValueError(f"{name}: group_size is -1, 64 or 128, not {size}")


def _whole(inputs: Any, size: int) -> Any:
    if isinstance(inputs, int) and inputs % size:
        raise ValueError(f"weight_quantize: {inputs} inputs do not divide into groups of {size}")
    return inputs // size
