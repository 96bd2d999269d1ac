"""Attention, by the kernel of `attention/`."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ops.nn.attention import Attention, drop_of, mask_of
from dy2st.runtime.backends.cpu.attention.shape_descriptor import FIELDS, OPERANDS
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import any_of, compare, negation
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, StridedTensor
from dy2st.runtime.backends.cpu.ops.control.prepacked_weights import FLOATS
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import allocate, allocate_bytes, extents, product
from dy2st.runtime.backends.cpu.ops.views import strides

_MOST_RANK = 4


@rule("attention", "attention_grad", "attention_mask_grad", reads_gaps=True)
def attention(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Sequence[Components]:
    """Write softmax(q k^T + mask) v, or its VJP; heads that are views are read as they lie."""
    t = tensor_type(operation.operands[0])
    known = t.dtype.name in FLOATS and t.rank <= _MOST_RANK
    copies: list[tuple[Value, Components]] = []
    given: list[Components] = []
    for value, components in zip(operation.operands, operands, strict=True):
        if isinstance(components, StridedTensor) and not (known and _has_rows(value, components)):
            components = w.copied(value, components)
            copies.append((value, components))
        given.append(components)
    made = _run(w, operation, given) if known else host_rule(w, operation, given)
    for value, copy in copies:
        w.release(value.type, copy)
    return made


def _has_rows(value: Value, components: StridedTensor) -> bool:
    """Return whether the elements of a row lie together."""
    return components.strides[-1] == "1" or tensor_type(value).shape[-1] == 1


def _run(w: FunctionEmitter, operation: Operation, given: list[Components]) -> Sequence[Components]:
    """Write the row of extents and the call; where extents do not fit the interpreter takes over."""
    f, t, forward = w.f, tensor_type(operation.operands[0]), isinstance(operation.op, Attention)
    pairs = list(zip(operation.operands, given, strict=True))
    first = "qkv" if forward else ("q", "k", "v", "ct")
    more = pairs[len(first) :]
    values = dict((*zip(first, pairs, strict=False), *zip(("mask",), mask_of(more, t.rank), strict=False)))
    drop = [c[0] for _, c in drop_of(more, t.rank)]
    shapes = {of: extents(*pair) for of, pair in values.items()}
    for one, other in dict.fromkeys(pair for pair in _pairs(values, shapes) if pair[0] != pair[1]):
        w.demand(f.value(f"icmp eq i64 {one}, {other}"))
    row = f.slot("i64", len(FIELDS))
    numbers = _numbers(w, values, shapes) | {"causal": str(int(operation.attributes["causal"]))}
    if drop:
        numbers |= _draw(w, drop, shapes["q"][:-2])
    for at, number in enumerate(numbers.get(field, "0") for field in FIELDS):
        f.store("i64", number, f.offset(row, 8 * at))
    q, k, v = (shapes[of] for of in "qkv")
    wanted = [[*q[:-1], v[-1]]] if forward else [shapes["mask"]] if len(operation.results) == 1 else [q, k, v]
    made = [allocate(w, t.dtype, shape) for shape in wanted]
    kernel = f"{operation.op.name}{'_dropped' if drop else ''}.{FLOATS[t.dtype.name]}"
    block, scratch = allocate_bytes(w, f.call("i64", w.library(f"{kernel}.scratch"), f"ptr {row}"))
    order = ("q", "k", "v", "mask") if forward else OPERANDS
    data = [values[of][1][1] if of in values else "null" for of in order]
    f.call("void", w.library(kernel), *(f"ptr {p}" for p in (*data, *(m[1] for m in made), row, scratch)))
    f.call("void", "@dy2st.release", "ptr %context", f"ptr {block}")
    return made


def _draw(w: FunctionEmitter, drop: list[str], batch: list[str]) -> dict[str, str]:
    """Return the numbers by which weights are dropped for the row of the kernel."""
    seed, draw, keep, factor, *drawn = drop
    apart: list[str] = []
    for i, (own, extent) in enumerate(zip(drawn, batch, strict=True)):
        several = compare(w.f, "ne", own, 1)
        w.demand(any_of(w.f, negation(w.f, several), compare(w.f, "eq", own, extent)))
        apart.append(w.f.value(f"select i1 {several}, i64 {product(w, drawn[i + 1 :])}, i64 0"))
    numbers = dict(zip(("drawn_outer", "drawn_inner"), ["0", "0", *apart][-2:], strict=True))
    bits = {name: w.f.value(f"bitcast double {x} to i64") for name, x in (("keep", keep), ("factor", factor))}
    return {"seed": seed, "draw": draw} | numbers | bits


def _pairs(values: dict[str, tuple[Value, Components]], shapes: dict[str, list[str]]) -> list[tuple[str, str]]:
    """Return the extents that must be equal."""
    q, k, v = (shapes[of] for of in "qkv")
    pairs = [(q[-1], k[-1]), (k[-2], v[-2]), *zip(q[:-2] * 2, [*k[:-2], *v[:-2]], strict=True)]
    if "ct" in shapes:
        pairs += zip(shapes["ct"], [*q[:-1], v[-1]], strict=True)
    if "mask" in shapes:
        known = tensor_type(values["mask"][0]).shape
        spread = zip(known, shapes["mask"], [*q[:-1], k[-2]], strict=True)
        pairs += [(own, wanted) for extent, own, wanted in spread if extent != 1]
    return pairs


def _numbers(
    w: FunctionEmitter, values: dict[str, tuple[Value, Components]], shapes: dict[str, list[str]]
) -> dict[str, str]:
    """Return extents and steps for the row of the kernel."""
    q, v = shapes["q"], shapes["v"]
    numbers: dict[str, str] = dict(zip(("outer", "inner"), ["1", "1", *q[:-2]][-2:], strict=True))
    numbers |= {"queries": q[-2], "keys": v[-2], "features": q[-1], "values": v[-1]}
    for name, (value, components) in values.items():
        shape = tensor_type(value).shape
        apart = ["0" if e == 1 else s for e, s in zip(shape, strides(w, value, components), strict=True)]
        numbers |= dict(zip((f"{name}_outer", f"{name}_inner"), ["0", "0", *apart[:-2]][-2:], strict=True))
        numbers |= {f"{name}_row": apart[-2], f"{name}_column": apart[-1]}
    if "mask" in values:
        known, shape = tensor_type(values["mask"][0]).shape, shapes["mask"]
        apart = ["0" if e == 1 else product(w, shape[i + 1 :]) for i, e in enumerate(known)]
        axes = (f"slope_{axis}" for axis in ("outer", "inner", "row", "column"))
        numbers |= dict(zip(axes, ["0", "0", *apart][-4:], strict=True))
    return numbers
