"""Convolutions and pooling, by the kernels of `conv/`; `eval` does what does not fit, and says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.dtypes import int64
from dy2st.ir.program import Operation, tensor_type
from dy2st.ops.nn.adaptive_pooling import AdaptiveAvgPool
from dy2st.ops.nn.conv import ConvInputGrad
from dy2st.ops.nn.pooling import AvgPool
from dy2st.runtime.backends.cpu.conv.common.shape_descriptor import FIELDS
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components
from dy2st.runtime.backends.cpu.ops.matrix.matmul import After
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import allocate, allocate_bytes, extents

Made = Sequence[Components]
_FLOATS = {"float32": "f32", "float64": "f64"}


def _row(w: FunctionEmitter, **fields: Sequence[str | int]) -> str:
    """Write a row of extents as the kernels read it; missing spatial axes stand in front."""
    row = w.f.slot("i64", len(FIELDS))
    fill = {"low": "0", "high": "0", "after": "0"}
    for at, name in enumerate(FIELDS):
        base, axis = (name[:-1], int(name[-1])) if name[-1].isdigit() else (name, 0)
        given = list(fields.get(base, ()))
        if name[-1].isdigit():
            given = [fill.get(base, "1")] * (3 - len(given)) + given
        w.f.store("i64", str(given[axis] if given else fill.get(base, "1")), w.f.offset(row, 8 * at))
    return row


def _counts(
    w: FunctionEmitter, inside: Sequence[str], kernel: Sequence[str | int], attributes: dict[str, Any]
) -> tuple[list[str], str]:
    """Return how many windows fit along each axis, and whether one does along all."""
    f, counts, fine = w.f, list[str](), "true"
    dilation = attributes.get("dilation", (1,) * len(inside))
    for n, k, s, (low, high), d in zip(
        inside, kernel, attributes["stride"], attributes["padding"], dilation, strict=True
    ):
        span = f.value(f"mul i64 {f.value(f'sub i64 {k}, 1')}, {d}")
        room = f.value(f"sub i64 {f.value(f'add i64 {n}, {low + high - 1}')}, {span}")
        if attributes.get("ceil_mode"):
            fine = f.value(f"and i1 {fine}, {f.value(f'icmp sgt i64 {n}, 0')}")
            counts.append(_count_up(w, n, low, room, s))
            continue
        fine = f.value(f"and i1 {fine}, {f.value(f'icmp sge i64 {room}, 0')}")
        counts.append(f.value(f"sdiv i64 {f.value(f'add i64 {room}, {s}')}, {s}"))
    return counts, fine


def _count_up(w: FunctionEmitter, n: str, low: int, room: str, stride: int) -> str:
    """Return how many windows there are where a last one may reach over the end; it begins in front of that."""
    f = w.f
    rest = f.call("i64", "@llvm.smax.i64", f"i64 {f.value(f'add i64 {room}, {stride - 1}')}", "i64 0")
    last = f.value(f"udiv i64 {rest}, {stride}")
    begins = f.value(f"mul i64 {last}, {stride}")
    outside = f.value(f"icmp sge i64 {begins}, {f.value(f'add i64 {n}, {low}')}")
    return f.value(f"select i1 {outside}, i64 {last}, i64 {f.value(f'add i64 {last}, 1')}")


def _padding(attributes: dict[str, Any]) -> dict[str, list[int]]:
    return {"low": [p[0] for p in attributes["padding"]], "high": [p[1] for p in attributes["padding"]]}


def _fits(operation: Operation) -> bool:
    t = tensor_type(operation.operands[0])
    return t.dtype.name in _FLOATS and 3 <= t.rank <= 5


@rule("conv")
def convolution(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a convolution."""
    if not _fits(operation):
        return host_rule(w, operation, operands)
    return convolved(w, operation, operands)


def convolved(w: FunctionEmitter, operation: Operation, operands: list[Components], after: After | None = None) -> Made:
    """Write a convolution of numbers, and what is done with its channels."""
    x, filters = (extents(v, c) for v, c in zip(operation.operands, operands, strict=True))
    attributes, f = operation.attributes, w.f
    counts, fine = _counts(w, x[2:], filters[2:], attributes)
    groups = attributes["groups"]
    whole = f.value(f"icmp eq i64 {x[1]}, {f.value(f'mul i64 {filters[1]}, {groups}')}")
    even = f.value(f"icmp eq i64 {f.value(f'srem i64 {filters[0]}, {groups}')}, 0")
    fine = f.value(f"and i1 {fine}, {f.value(f'and i1 {whole}, {even}')}")

    def fast() -> Made:
        made = allocate(w, tensor_type(operation.operands[0]).dtype, [x[0], filters[0], *counts])
        row = _shape(w, x, filters, counts, attributes)
        if after is not None:
            f.store("ptr", after(made), f.offset(row, 8 * FIELDS.index("after")))
        _run(w, "conv", operation, row, (operands[0][1], operands[1][1], made[1]))
        return [made]

    if after is None:
        return w.guarded(operation, operands, fine, fast)
    with w.unlikely(f.value(f"xor i1 {fine}, true"), "wrong"):
        host_rule(w, operation, operands)
        w.demand("false")
    return fast()


@rule("conv_input_grad", "conv_weight_grad")
def gradients(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the transposes of a convolution in its input and in its filters."""
    if not _fits(operation):
        return host_rule(w, operation, operands)
    f, attributes = w.f, operation.attributes
    dims = iter(operands[2:])
    target = [next(dims)[0] if e is None else str(e) for e in attributes["shape"]]
    first, second = (extents(v, c) for v, c in zip(operation.operands[:2], operands[:2], strict=True))
    by_input = isinstance(operation.op, ConvInputGrad)
    x, filters, c = (target, second, first) if by_input else (first, target, second)
    counts, fine = _counts(w, x[2:], filters[2:], attributes)
    groups = attributes["groups"]
    pairs = [*zip(counts, c[2:], strict=True), (x[0], c[0]), (filters[0], c[1])]
    pairs.append((f.value(f"srem i64 {filters[0]}, {groups}"), "0"))
    for a, b in [*pairs, (x[1], f.value(f"mul i64 {filters[1]}, {groups}"))]:
        fine = f.value(f"and i1 {fine}, {f.value(f'icmp eq i64 {a}, {b}')}")

    def fast() -> Made:
        made = allocate(w, tensor_type(operation.results[0]).dtype, target)
        row = _shape(w, x, filters, counts, attributes)
        places = (made[1], operands[1][1], operands[0][1]) if by_input else (operands[0][1], made[1], operands[1][1])
        _run(w, operation.op.name, operation, row, places)
        return [made]

    return w.guarded(operation, operands, fine, fast)


def _shape(
    w: FunctionEmitter, x: Sequence[str], filters: Sequence[str], counts: Sequence[str], attributes: dict[str, Any]
) -> str:
    return _row(
        w, batch=[x[0]], channels=[x[1]], filters=[filters[0]], groups=[attributes["groups"]], kernel=filters[2:],
        out=counts, stride=attributes["stride"], dilation=attributes["dilation"], **_padding(attributes),
        **{"in": x[2:]},
    )  # fmt: skip


def _run(w: FunctionEmitter, name: str, operation: Operation, row: str, places: tuple[str, str, str]) -> None:
    dtype = _FLOATS[tensor_type(operation.operands[0]).dtype.name]
    size = w.f.call("i64", w.library(f"conv.{dtype}.scratch"), f"ptr {row}")
    block, data = allocate_bytes(w, size)
    w.f.call("void", w.library(f"{name}.{dtype}"), *(f"ptr {p}" for p in places), f"ptr {row}", f"ptr {data}")
    w.f.call("void", "@dy2st.release", "ptr %context", f"ptr {block}")


def _pool_shape(w: FunctionEmitter, x: Sequence[str], counts: Sequence[str], attributes: dict[str, Any]) -> str:
    return _row(
        w, batch=[x[0]], channels=[x[1]], kernel=attributes["kernel"], out=counts, stride=attributes["stride"],
        **_padding(attributes), **{"in": x[2:]},
    )  # fmt: skip


@rule("max_pool", "avg_pool")
def pooling(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the largest elements of windows and their places, or the means of windows."""
    attributes = operation.attributes
    if not _fits(operation):
        return host_rule(w, operation, operands)
    t, x = tensor_type(operation.operands[0]), extents(operation.operands[0], operands[0])
    counts, fine = _counts(w, x[2:], attributes["kernel"], attributes)
    name = f"{operation.op.name}.{_FLOATS[t.dtype.name]}"

    def fast() -> Made:
        shape = [*x[:2], *counts]
        row = _pool_shape(w, x, counts, attributes)
        made = allocate(w, t.dtype, shape)
        if isinstance(operation.op, AvgPool):
            exclusive = str(attributes["exclusive"]).lower()
            w.f.call(
                "void", w.library(name), f"ptr {operands[0][1]}", f"ptr {made[1]}", f"ptr {row}", f"i1 {exclusive}"
            )
            return [made]
        if not w.is_used(operation.results[1]):
            w.f.call("void", w.library(f"{name}.values"), *(f"ptr {p}" for p in (operands[0][1], made[1], row)))
            return [made, ("null", "null", *shape)]
        places = allocate(w, int64, shape)
        w.f.call("void", w.library(name), *(f"ptr {p}" for p in (operands[0][1], made[1], places[1], row)))
        return [made, places]

    return w.guarded(operation, operands, fine, fast)


@rule("avg_pool_grad")
def mean_gradient(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the transpose of `avg_pool`."""
    attributes = operation.attributes
    if not _fits(operation):
        return host_rule(w, operation, operands)
    t, c = tensor_type(operation.operands[0]), extents(operation.operands[0], operands[0])
    dims = iter(operands[1:])
    target = [next(dims)[0] if e is None else str(e) for e in attributes["shape"]]
    counts, fine = _counts(w, target[2:], attributes["kernel"], attributes)
    for a, b in zip([*target[:2], *counts], c, strict=True):
        fine = w.f.value(f"and i1 {fine}, {w.f.value(f'icmp eq i64 {a}, {b}')}")

    def fast() -> Made:
        row = _pool_shape(w, target, counts, attributes)
        made = allocate(w, t.dtype, target)
        exclusive = str(attributes["exclusive"]).lower()
        kernel = w.library(f"avg_pool_grad.{_FLOATS[t.dtype.name]}")
        w.f.call("void", kernel, f"ptr {made[1]}", f"ptr {operands[0][1]}", f"ptr {row}", f"i1 {exclusive}")
        return [made]

    return w.guarded(operation, operands, fine, fast)


@rule("adaptive_avg_pool", "adaptive_avg_pool_grad")
def adaptive_mean(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write means of cells of equal extents as those of windows side by side, and the transpose; else call `eval`."""
    attributes, f = operation.attributes, w.f
    if not _fits(operation):
        return host_rule(w, operation, operands)
    t, given = tensor_type(operation.operands[0]), extents(operation.operands[0], operands[0])
    forward = isinstance(operation.op, AdaptiveAvgPool)
    counts = [str(n) for n in attributes["output"]]
    dims = iter(operands[1:])
    target = given if forward else [next(dims)[0] if e is None else str(e) for e in attributes["shape"]]
    shape = [*target[:2], *counts]
    fine, cells = "true", list[str]()
    for n, count in zip(target[2:], counts, strict=True):
        cells.append(f.value(f"udiv i64 {n}, {count}"))
        whole = f.value(f"icmp eq i64 {f.value(f'mul i64 {cells[-1]}, {count}')}, {n}")
        some = f.value(f"icmp sgt i64 {cells[-1]}, 0")
        fine = f.value(f"and i1 {fine}, {f.value(f'and i1 {whole}, {some}')}")
    for a, b in zip(shape, shape if forward else given, strict=True):
        fine = f.value(f"and i1 {fine}, {f.value(f'icmp eq i64 {a}, {b}')}")

    def fast() -> Made:
        made = allocate(w, t.dtype, shape if forward else target)
        row = _row(
            w, batch=[shape[0]], channels=[shape[1]], kernel=cells, out=counts, stride=cells, **{"in": target[2:]}
        )
        kernel = w.library(f"{'avg_pool' if forward else 'avg_pool_grad'}.{_FLOATS[t.dtype.name]}")
        image, pooled = (operands[0], made) if forward else (made, operands[0])
        f.call("void", kernel, f"ptr {image[1]}", f"ptr {pooled[1]}", f"ptr {row}", "i1 true")
        return [made]

    return w.guarded(operation, operands, fine, fast)
