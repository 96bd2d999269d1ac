"""Slices, parts and permuted axes: views of a tensor, with gaps between their elements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ir.types import ScalarType, TensorType
from dy2st.records import record
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, StridedTensor, in_register, is_native, is_small
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import extents, index_leading, number_of, product, viewed

Made = Sequence[Components]
_ALL = ("slice", None, None, None)


def strides(w: FunctionEmitter, value: Value, components: Components) -> list[str]:
    """Return how many elements the axes of a tensor are apart."""
    if isinstance(components, StridedTensor):
        return list(components.strides)
    shape = extents(value, components)
    return [product(w, shape[i + 1 :]) for i in range(len(shape))]


def is_memory(value: Value) -> bool:
    """Return whether a value is a tensor in memory with native elements."""
    return isinstance(value.type, TensorType) and not in_register(value.type) and is_native(value.type.dtype)


@rule("transpose", reads_gaps=True)
def transpose(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a view with permuted axes."""
    (value,), perm = operation.operands, operation.attributes["perm"]
    if not is_memory(value):
        return host_rule(w, operation, operands)
    apart, shape = strides(w, value, operands[0]), extents(value, operands[0])
    made = viewed(w, value, operands[0], operands[0][1], [shape[p] for p in perm])
    return [StridedTensor.of(made, [apart[p] for p in perm])]


@rule("split", reads_gaps=True)
def split(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write views of consecutive parts; `eval` says that they are not as long as the axis."""
    value, f = operation.operands[0], w.f
    if not is_memory(value):
        return host_rule(w, operation, operands)
    axis, dims = operation.attributes["axis"], iter(operands[1:])
    sections = [next(dims)[0] if e is None else str(e) for e in operation.attributes["sections"]]
    shape, apart = extents(value, operands[0]), strides(w, value, operands[0])
    starts, total, fine = [], "0", "true"
    for section in sections:
        starts.append(total)
        fine = f.value(f"and i1 {fine}, {f.value(f'icmp sge i64 {section}, 0')}")
        total = f.value(f"add i64 {total}, {section}")
    fine = f.value(f"and i1 {fine}, {f.value(f'icmp eq i64 {total}, {shape[axis]}')}")
    with w.unlikely(f.value(f"xor i1 {fine}, true"), "wrong"):
        dense = w.copied(value, operands[0]) if isinstance(operands[0], StridedTensor) else operands[0]
        host_rule(w, operation, [dense, *operands[1:]])
    made: list[Components] = []
    size = str(tensor_type(value).dtype.itemsize)
    for start, section in zip(starts, sections, strict=True):
        w.retain(value.type, operands[0])
        data = f.offset(operands[0][1], product(w, [start, apart[axis], size]))
        part = (operands[0][0], data, *shape[:axis], section, *shape[axis + 1 :])
        made.append(StridedTensor.of(part, apart))
    return made


def index(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a view by ints, tensors of rank 0 and slices; other index expressions are `eval`'s."""
    value = operation.operands[0]
    spec = operation.attributes["spec"]
    if not is_memory(value):
        return host_rule(w, operation, operands)
    plain = not isinstance(operands[0], StridedTensor) and all(p[0] in ("int", "tensor") or p == _ALL for p in spec)
    firsts = [i for i, p in enumerate(spec) if p[0] != "slice"]
    if plain and firsts == list(range(len(firsts))) and firsts:
        return index_leading(w, operation, operands)
    if not in_register(operation.results[0].type):
        where = region(w, value, operands[0], spec, operation.operands[1:], operands[1:])
        if where is not None:
            return _view(w, operation, operands, where)
    dense = w.copied(value, operands[0]) if isinstance(operands[0], StridedTensor) else operands[0]
    write = index_leading if in_register(operation.results[0].type) else host_rule
    made = write(w, operation, [dense, *operands[1:]])
    if dense is not operands[0]:
        w.release(value.type, dense)
    return made


def parts_of(
    w: FunctionEmitter, spec: Sequence[Any], values: Sequence[Value], operands: Sequence[Components]
) -> list[Any] | None:
    """Return the spec with the registers of its run-time ints and the tensors and masks themselves.

    An integer tensor of rank 0 is an int. None where a tensor has elements that native code does not compute with.
    """
    rest = iter(zip(values, operands, strict=True))
    made: list[Any] = []
    for part in spec:
        if part[0] in ("tensor", "mask"):
            value, components = next(rest)
            t = tensor_type(value)
            if not is_native(t.dtype):
                return None
            if part[0] == "tensor" and in_register(t):
                made.append(("int", number_of(w, t.dtype, components[0])))
            else:
                made.append((part[0], value, components))
            continue
        seen: list[Any] = [part[0]]
        for number in part[1:]:
            if number != "?":
                seen.append(number)
                continue
            value, components = next(rest)
            if not isinstance(value.type, ScalarType) or value.type.kind != "int":
                return None
            seen.append(components[0])
        made.append(tuple(seen))
    return made


@record(frozen=True)
class StridedAxis:
    """An axis of what is read or written: its extent, and how many elements it is apart."""

    extent: str
    stride: str


@record
class Region:
    """A part of a tensor by ints and slices: its first element's number, its extents, how far its axes are apart."""

    first: str
    shape: list[str]
    strides: list[str]
    inside: str
    """Whether all ints are inside of their axes, and no step is 0."""


def region(
    w: FunctionEmitter, value: Value, components: Components, spec: Sequence[Any], values: Sequence[Value],
    operands: Sequence[Components],
) -> Region | None:  # fmt: skip
    """Write where a spec of ints and slices points; None for other specs."""
    parts = parts_of(w, spec, values, operands)
    if parts is None or any(part[0] in ("tensor", "mask") for part in parts):
        return None
    f = w.f
    shape, apart = extents(value, components), strides(w, value, components)
    made, axis = Region("0", [], [], "true"), 0
    for part in parts:
        if part[0] == "new":
            made.shape.append("1")
            made.strides.append("0")
            continue
        if part[0] == "int":
            start = front_of(w, str(part[1]), shape[axis])
            made.inside = f.value(f"and i1 {made.inside}, {f.value(f'icmp ult i64 {start}, {shape[axis]}')}")
            first = f.value(f"mul i64 {start}, {apart[axis]}")
        else:
            first, kept = sliced(w, shape[axis], apart[axis], *part[1:])
            if isinstance(part[3], str):
                made.inside = f.value(f"and i1 {made.inside}, {f.value(f'icmp ne i64 {part[3]}, 0')}")
            made.shape.append(kept.extent)
            made.strides.append(kept.stride)
        made.first = f.value(f"add i64 {made.first}, {first}")
        axis += 1
    made.shape += shape[axis:]
    made.strides += apart[axis:]
    return made


def _view(w: FunctionEmitter, operation: Operation, operands: list[Components], where: Region) -> Made:
    value, f = operation.operands[0], w.f
    if where.inside != "true":
        with w.unlikely(f.value(f"xor i1 {where.inside}, true"), "outside"):
            dense = w.copied(value, operands[0]) if isinstance(operands[0], StridedTensor) else operands[0]
            host_rule(w, operation, [dense, *operands[1:]])
    data = f.offset(operands[0][1], f.value(f"mul i64 {where.first}, {tensor_type(value).dtype.itemsize}"))
    made = operation.results[0].type
    if is_small(made):
        return [w.fitted(made, StridedTensor.of(("null", data, *where.shape), where.strides), own=False)]
    if not isinstance(operands[0], StridedTensor) and _stays_dense(operation.attributes["spec"]):
        return [viewed(w, value, operands[0], data, where.shape)]
    return [StridedTensor.of(viewed(w, value, operands[0], data, where.shape), where.strides)]


def _stays_dense(spec: Sequence[Any]) -> bool:
    """Return whether what this index expression takes of a tensor without gaps has none: ints, then one slice by steps
    of 1.
    """
    ints = list(takewhile(lambda part: part[0] in ("int", "tensor"), spec))
    first, *others = [*spec[len(ints) :], _ALL]
    return first[0] == "slice" and first[3] in (None, 1) and all(part == _ALL for part in others)


def front_of(w: FunctionEmitter, number: str, extent: str) -> str:
    """Return a place that may be counted from the end, counted from the front."""
    behind = w.f.value(f"icmp slt i64 {number}, 0")
    return w.f.value(f"select i1 {behind}, i64 {w.f.value(f'add i64 {number}, {extent}')}, i64 {number}")


def sliced(w: FunctionEmitter, extent: str, stride: str, *bounds: Any) -> tuple[str, StridedAxis]:
    """Write the number of the first element that a slice of an axis takes, and the axis that it leaves."""
    start, count, step = _bounds(w, extent, *bounds)
    apart = stride if step == 1 else w.f.value(f"mul i64 {stride}, {step}")
    return start if start == "0" else w.f.value(f"mul i64 {start}, {stride}"), StridedAxis(count, apart)


def _bounds(
    w: FunctionEmitter, extent: str, start: Any, stop: Any, step: int | str | None
) -> tuple[str, str, int | str]:
    """Return where a slice starts, how many it takes, and its step, by Python's rules.

    A step known only at run time may be 0, which is refused elsewhere.
    """
    f, by = w.f, 1 if step is None else step
    if start is None and stop is None and by == 1:
        return "0", extent, 1
    up = f.value(f"icmp sgt i64 {by}, 0") if isinstance(by, str) else str(by > 0).lower()

    def either(upward: str, downward: str) -> str:
        """Return one number for a step up and another for a step down."""
        return {"true": upward, "false": downward}.get(up) or f.value(f"select i1 {up}, i64 {upward}, i64 {downward}")

    top = extent if up == "true" else f.value(f"sub i64 {extent}, 1")
    low, high = either("0", "-1"), either(extent, top)

    def clipped(number: Any, left_out: str) -> str:
        if number is None:
            return left_out
        front = front_of(w, str(number), extent)
        least = f.call("i64", "@llvm.smax.i64", f"i64 {front}", f"i64 {low}")
        return f.call("i64", "@llvm.smin.i64", f"i64 {least}", f"i64 {high}")

    first, last = clipped(start, either(low, high)), clipped(stop, either(high, low))
    length = f.value(f"sub i64 {either(last, first)}, {either(first, last)}")
    if isinstance(by, str):
        length = _turns(w, length, by)
    elif abs(by) != 1:
        length = f.value(f"sdiv i64 {f.value(f'add i64 {length}, {abs(by) - 1}')}, {abs(by)}")
    return first, f.call("i64", "@llvm.smax.i64", f"i64 {length}", "i64 0"), by


def _turns(w: FunctionEmitter, length: str, step: str) -> str:
    """Write how many steps of a number of the run begin in a length: at most 0 where there is none."""
    f = w.f
    size = f.call("i64", "@llvm.umax.i64", f"i64 {f.call('i64', '@llvm.abs.i64', f'i64 {step}', 'i1 false')}", "i64 1")
    whole = f.value(f"udiv i64 {f.value(f'sub i64 {length}, 1')}, {size}")
    some = f.value(f"icmp sgt i64 {length}, 0")
    return f.value(f"select i1 {some}, i64 {f.value(f'add i64 {whole}, 1')}, i64 0")
