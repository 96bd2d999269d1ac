"""Type rules of ops on axes, matrices and windows: reductions, scans, products, norms, convolution and pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dy2st.dtypes import bool_, complex64, complex128, float32, float64, int8, int32, int64
from dy2st.ir.checker.elementwise import accumulated
from dy2st.ir.checker.shapes import typed
from dy2st.ir.checker.type_join import Known
from dy2st.ir.checker.typed_operation import TypedOperation, rule
from dy2st.ir.types import TensorType, Type
from dy2st.shapes import Extent

_MOST = 2**31


# ---- along axes ----------------------------------------------------------------------------------------------------
def _without(shape: Sequence[Known], axes: Sequence[int], keep: bool) -> list[Known]:
    return [1 if i in axes else e for i, e in enumerate(shape) if keep or i not in axes]


@rule("sum mean prod max top min all any logsumexp", 1)
def _reduction(g: TypedOperation) -> Sequence[Type]:
    x = g.tensor(0)
    dtype = x.dtype
    if g.name in ("sum", "prod"):
        dtype = accumulated(x).dtype
    elif g.name in ("all", "any"):
        dtype = bool_
    elif g.name == "mean":
        dtype = float32 if x.dtype.kind in "biu" else x.dtype
    return (typed(dtype, _without(x.shape, g.axes("axis", x.rank), g.attributes["keepdim"])),)


@rule("argmax argmin", 1)
def _extreme_place(g: TypedOperation) -> Sequence[Type]:
    x = g.tensor(0)
    axes = tuple(range(x.rank)) if g.attribute("axis") is None else (g.axis("axis", x.rank),)
    return (typed(int64, _without(x.shape, axes, g.attributes["keepdim"])),)


@rule("cumsum cumprod cummax cummin linear_scan:2 softmax log_softmax sort argsort fft", 1)
def _along(g: TypedOperation) -> Sequence[Type]:
    name = g.name
    kinds = {"softmax": "f", "log_softmax": "f", "fft": "c", "linear_scan": "fc"}
    x = g.tensor(0, kinds.get(name, "biufc"), least=1)
    g.axis("axis", x.rank)
    if name == "fft":
        g.text("norm", "backward", "ortho", "forward")
    if name == "linear_scan":
        g.like(1, x.dtype)
        g.same_shape(1)
    if name in ("cummax", "cummin"):
        return (x, TensorType(int64, x.shape))
    return (
        TensorType(int64, x.shape) if name == "argsort" else accumulated(x) if name in ("cumsum", "cumprod") else x,
    )


@rule("topk", 1)
def _topk(g: TypedOperation) -> Sequence[Type]:
    x = g.tensor(0, least=1)
    axis, k = g.axis("axis", x.rank), g.whole("k", 0, _MOST)
    extent = x.shape[axis]
    g.require(not isinstance(extent, int) or k <= extent, f"{k} of {extent}")
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return (TensorType(x.dtype, shape), TensorType(int64, shape))


@rule("softmax_cross_entropy", 2)
def _cross_entropy(g: TypedOperation) -> Sequence[Type]:
    x, labels = g.tensor(0, "f", least=1), g.tensor(1, "iu")
    axis = g.axis("axis", x.rank)
    g.whole("ignore_index")
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    g.equals(labels.shape, shape)
    return (TensorType(x.dtype, shape),)


@rule("layer_norm batch_norm_train batch_norm_infer:5", 3)
def _norm(g: TypedOperation) -> Sequence[Type]:
    x = g.tensor(0, "f", least=1)
    if g.name == "layer_norm":
        first = x.rank - g.whole("rank", 0, x.rank)
        axes = tuple(range(first, x.rank))
        small = TensorType(x.dtype, (*x.shape[:first], *(1,) * len(axes)))
    else:
        axes = (g.axis("axis", x.rank),)
        small = TensorType(x.dtype, (x.shape[axes[0]],))
    for i in range(1, len(g.types)):
        g.equals(g.like(i, x.dtype).shape, [x.shape[axis] for axis in axes])
    return (x,) if g.name == "batch_norm_infer" else (x, small, small)


# ---- matrices ------------------------------------------------------------------------------------------------------
@rule("matmul:2 matmul_add:3")
def _matmul(g: TypedOperation) -> Sequence[Type]:
    x = g.tensor(0, least=2)
    made = _product(g, x, 1, g.attributes["transpose_x"], g.attributes["transpose_y"])
    if g.name == "matmul":
        return (made,)
    z = g.like(2, x.dtype)
    g.equals(z.shape, made.shape)
    return (z,)


def _product(g: TypedOperation, x: TensorType, i: int, left: bool, right: bool) -> TensorType:
    """Return the type of a product of x, as many matrices as the first operand is, and operand i."""
    y = g.tensor(i)
    g.require(x.dtype is y.dtype and x.rank == y.rank >= 2, f"{x} and {y}")
    rows, inner = (x.shape[-1], x.shape[-2]) if left else (x.shape[-2], x.shape[-1])
    other, columns = (y.shape[-1], y.shape[-2]) if right else (y.shape[-2], y.shape[-1])
    g.equal(inner, other, "inner extents")
    g.stacked(i)
    return TensorType(x.dtype, (*x.shape[:-2], rows, columns))


@rule("dequantize:2 quantized_matmul:3")
def _quantized(g: TypedOperation) -> Sequence[Type]:
    """Rows of int8, or two of 4 bits in each, and a scale for each row, or for each group in it."""
    at = len(g.types) - 2  # a product has what it multiplies in front of these two
    weight, bits, group = g.like(at, int8), g.whole("bits", 4, 8), g.whole("group", 0, _MOST)
    of_matrix = group > 0 or at == 1
    g.require(bits in (4, 8) and group % 16 == 0, f"{bits} bits in groups of {group}")
    g.require(weight.rank == 2 if of_matrix else weight.rank > 0, f"a weight {weight}")
    scale = g.tensor(at + 1, "f", 2 if group else 1)
    rows, inner = _times(weight.shape[0], 8 // bits), weight.shape[1:]
    g.equal(rows, scale.shape[-1], "rows")
    if group and isinstance(inner[0], int) and isinstance(scale.shape[0], int):
        g.require(scale.shape[0] * group == inner[0], f"{scale.shape[0]} groups of {group} in {inner[0]}")
    if at == 0:
        return (typed(scale.dtype, [rows, *inner]),)
    x = g.like(0, scale.dtype, 2)
    g.equal(x.shape[1], inner[0], "inner extents")
    return (typed(x.dtype, [x.shape[0], rows]),)


def _times(extent: Known, count: int) -> Known:
    return None if extent is None else extent * count


@rule("attention attention_grad attention_mask_grad")
def _attention(g: TypedOperation) -> Sequence[Type]:
    fixed = {"attention": 3, "attention_grad": 4, "attention_mask_grad": 4}[g.name]
    q, k, v, *rest = [g.tensor(i, "f", least=2) for i in range(fixed)]
    more = len(g.types) - fixed
    masks, drops = more % (2 + q.rank), more // (2 + q.rank)
    g.require(masks < 2 and drops < 2 and (masks == 1 or g.name != "attention_mask_grad"), f"{len(g.types)} operands")
    scores = _product(g, q, 1, False, True)
    if masks:
        g.fits(g.like(fixed, q.dtype, q.rank).shape, scores.shape)
    for i in range(fixed + masks, len(g.types)):  # seed and draw, what is kept and its factor, extents
        g.number(i, "float" if i - fixed - masks in (2, 3) else "int")
    made = _product(g, scores, 2, False, False)
    if not rest:
        return (made,)
    ct = rest[0]
    g.require(ct.dtype is q.dtype, f"a cotangent of type {ct}")
    g.stacked(3)
    g.equals(ct.shape[-2:], made.shape[-2:])
    batch = q.shape[:-2]
    if g.name == "attention_mask_grad":
        return (g.tensor(4),)
    rows, columns = ct.shape[-2], v.shape[-2]
    return (
        TensorType(q.dtype, (*batch, rows, k.shape[-1])),
        TensorType(q.dtype, (*batch, scores.shape[-1], q.shape[-1])),
        TensorType(q.dtype, (*batch, columns, ct.shape[-1])),
    )


@rule("inverse det slogdet cholesky eigh eig matrix_exp lu qr svd adjugate", 1)
@rule("solve matrix_exp_slope adjugate_slope", 2)
def _linear_algebra(g: TypedOperation) -> Sequence[Type]:
    name = g.name
    a = g.tensor(0, "fc", least=2)
    batch, (rows, columns) = a.shape[:-2], a.shape[-2:]
    if name in ("lu", "qr", "svd"):
        least: Known = rows if rows == columns else None
        if isinstance(rows, int) and isinstance(columns, int):
            least = min(rows, columns)
        if name == "lu":
            return (a, typed(int32, (*batch, least)))
        left, right = typed(a.dtype, (*batch, rows, least)), typed(a.dtype, (*batch, least, columns))
        return (left, right) if name == "qr" else (left, typed(a.dtype, (*batch, least)), right)
    g.equal(rows, columns, "rows and columns")
    if rows != columns:
        g.stacked(0, square=True)
        a, columns = typed(a.dtype, (*batch, rows, rows)), rows
    if name in ("det", "slogdet"):
        return (TensorType(a.dtype, batch),) * (1 if name == "det" else 2)
    if name == "eigh":
        return (TensorType(a.dtype, a.shape[:-1]), a)
    if name == "eig":
        dtype = complex128 if a.dtype is float64 else complex64
        return (TensorType(dtype, a.shape[:-1]), TensorType(dtype, a.shape))
    if name == "solve":
        y = g.like(1, a.dtype, a.rank)
        g.equal(y.shape[-2], columns)
        g.stacked(1)
        return (typed(a.dtype, (*batch, *y.shape[-2:])),)
    if name in ("matrix_exp_slope", "adjugate_slope"):
        e = g.like(1, a.dtype, a.rank)
        g.stacked(1, square=True)
        return (typed(a.dtype, (*batch, e.shape[-2], e.shape[-2])),)
    return (a,)


# ---- windows -------------------------------------------------------------------------------------------------------
def _steps(g: TypedOperation, rank: int, *names: str) -> list[tuple[int, ...]]:
    return [g.wholes(name, 1, _MOST, rank) for name in names]


def _windows(
    extent: Known, kernel: Known, stride: int, padding: tuple[int, int], dilation: int, g: TypedOperation
) -> Known:
    if extent is None or kernel is None:
        return None
    room: Extent = extent + sum(padding) - ((kernel - 1) * dilation + 1)
    g.require(not isinstance(room, int) or room >= 0, "a window that does not fit")
    return (room + stride) // stride


@rule("conv:2 conv_input_grad conv_weight_grad")
def _conv(g: TypedOperation) -> Sequence[Type]:
    plain = g.name == "conv"
    a, b = g.tensor(0, "biufc", least=3), g.tensor(1, least=3)
    g.require(a.rank == b.rank <= 5 and a.dtype is b.dtype, f"{a} and {b}")
    rank = a.rank - 2
    stride, dilation = _steps(g, rank, "stride", "dilation")
    padding, groups = g.pairs("padding", rank), g.whole("groups", 1, _MOST)
    if plain:
        _channels(g, a.shape, b.shape, groups)
        axes = zip(a.shape[2:], b.shape[2:], stride, padding, dilation, strict=True)
        return (typed(a.dtype, (a.shape[0], b.shape[0], *(_windows(n, k, s, p, d, g) for n, k, s, p, d in axes))),)
    shape = g.shape("shape", 2, a.rank)
    if g.name == "conv_input_grad":
        _channels(g, shape, b.shape, groups)
        g.equal(a.shape[1], b.shape[0])
    else:
        _channels(g, a.shape, shape, groups)
        g.equal(b.shape[1], shape[0])
    return (typed(a.dtype, shape),)


def _channels(g: TypedOperation, x: Sequence[Known], w: Sequence[Known], groups: int) -> None:
    g.require(not isinstance(w[0], int) or w[0] % groups == 0, f"{w[0]} filters in {groups} groups")
    if isinstance(w[1], int):
        g.equal(x[1], w[1] * groups, "channels")


_MOST_IN_WINDOW = 1 << 22
"""How many elements a window of a file's pooling has: the interpreter takes a step for each."""


@rule("max_pool:1 avg_pool:1 avg_pool_grad")
def _pool(g: TypedOperation) -> Sequence[Type]:
    x = g.tensor(0, "biuf", least=3)
    rank = x.rank - 2
    kernel, stride = _steps(g, rank, "kernel", "stride")
    padding = g.pairs("padding", rank)
    g.require(math.prod(kernel) <= _MOST_IN_WINDOW, f"a window of {math.prod(kernel)} elements")
    g.require(all(max(p) < k for p, k in zip(padding, kernel, strict=True)), "padding as wide as the window")
    if g.name == "avg_pool_grad":
        return (typed(x.dtype, g.shape("shape", 1, x.rank)),)
    counts: list[Known] = []
    for extent, k, s, (low, high) in zip(x.shape[2:], kernel, stride, padding, strict=True):
        if not g.attributes["ceil_mode"]:
            counts.append(_windows(extent, k, s, (low, high), 1, g))
        elif isinstance(extent, int):
            g.require(extent + low + high >= 1, "a window that does not fit")
            count = max(0, -(-(extent + low + high - k) // s)) + 1
            counts.append(count - 1 if (count - 1) * s >= extent + low else count)
        else:
            counts.append(None)
    shape = (*x.shape[:2], *counts)
    return (typed(x.dtype, shape), typed(int64, shape)) if g.name == "max_pool" else (typed(x.dtype, shape),)


@rule("adaptive_avg_pool:1 adaptive_max_pool:1 adaptive_avg_pool_grad")
def _adaptive_pool(g: TypedOperation) -> Sequence[Type]:
    x = g.tensor(0, "biuf", least=3)
    output = g.wholes("output", 1, _MOST, x.rank - 2)
    if g.name == "adaptive_avg_pool_grad":
        g.equals(x.shape[2:], output)
        return (typed(x.dtype, g.shape("shape", 1, x.rank)),)
    g.require(not any(e == 0 for e in x.shape[2:]), "an extent of 0")
    made = TensorType(x.dtype, (*x.shape[:2], *output))
    return (made, TensorType(int64, made.shape)) if g.name == "adaptive_max_pool" else (made,)
