"""Elements that tensors name: where `x[...]` with integer tensors or a mask points, and loops over those places.

The tensors in the index expression become one table of element numbers, made once. A loop nest then runs over the axes
in front of the table's, the table, and the axes behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dy2st.dtypes import DType, int64
from dy2st.ir.program import Value, tensor_type
from dy2st.records import record
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter
from dy2st.runtime.backends.cpu.emitter.shared_routines import shared
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, most, plus, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, StridedTensor, in_register
from dy2st.runtime.backends.cpu.ops.tensors import allocate_bytes, extents, product
from dy2st.runtime.backends.cpu.ops.views import StridedAxis, front_of, parts_of, sliced, strides
from dy2st.runtime.backends.cpu.vector_ops.elementwise import converted
from dy2st.runtime.backends.cpu.vector_ops.load_store import load_element
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType


@record
class IndexTable:
    """Element numbers in memory, made of what tensors say; their axes are those of the tensors, or one of a mask."""

    block: str
    data: str
    shape: list[str]
    inside: str
    """Whether all of them are inside of their axes, and the tensors fit together."""

    @property
    def count(self) -> str:
        """The only extent of a table that a mask has made."""
        return self.shape[0]


@record
class ScatteredElements:
    """Elements of a tensor: axes in front of a table's, the table, axes behind it; numbers begin at `first`."""

    first: str
    before: list[StridedAxis]
    table: IndexTable
    after: list[StridedAxis]
    inside: str
    whole: int = 0
    """How many of the last axes are one run of elements side by side."""

    @property
    def shape(self) -> list[str]:
        """The extents of what is read here."""
        return [*(a.extent for a in self.before), *self.table.shape, *(a.extent for a in self.after)]


def scattered(
    w: FunctionEmitter, value: Value, components: Components, spec: Sequence[Any], values: Sequence[Value],
    operands: Sequence[Components],
) -> ScatteredElements | None:  # fmt: skip
    """Write where a spec points that has tensors, or one mask; None for what has neither or has both."""
    parts = parts_of(w, spec, values, operands)
    if parts is None:
        return None
    tensors = [p for p in parts if p[0] == "tensor"]
    masks = [p for p in parts if p[0] == "mask"]
    if (len(masks) != 1 if masks else not tensors) or (masks and tensors):
        return None
    f, shape, apart = w.f, extents(value, components), strides(w, value, components)
    first, inside, axis = "0", "true", 0
    kept: list[tuple[int, StridedAxis]] = []  # with the number of the part
    numbered: list[int] = []
    terms: list[IndexTerm] = []
    mask: IndexTable | None = None
    for at, part in enumerate(parts):
        if part[0] == "new":
            kept.append((at, StridedAxis("1", "0")))
            continue
        if part[0] == "slice":
            start, found = sliced(w, shape[axis], apart[axis], *part[1:])
            if isinstance(part[3], str):
                inside = all_of(f, inside, compare(f, "ne", part[3], 0))
            kept.append((at, found))
            first = plus(f, first, start)
            axis += 1
            continue
        numbered.append(at)
        if part[0] == "int":
            number = front_of(w, part[1], shape[axis])
            inside = all_of(f, inside, compare(f, "ult", number, shape[axis]))
            first = plus(f, first, times(f, number, apart[axis]))
        elif part[0] == "tensor":
            terms.append(_term(w, part[1], part[2], shape[axis], apart[axis]))
        else:
            rank = tensor_type(part[1]).rank
            mask = masked(w, part[1], part[2], shape[axis : axis + rank], apart[axis : axis + rank])
            axis += rank - 1
        axis += 1
    kept += [(len(parts), StridedAxis(e, s)) for e, s in zip(shape[axis:], apart[axis:], strict=True)]
    together = numbered[-1] - numbered[0] + 1 == len(numbered)
    front = numbered[0] if together else -1
    table = mask or listed(w, terms)
    before, after = [a for at, a in kept if at < front], [a for at, a in kept if at >= front]
    untouched = len(shape) - axis
    for part in reversed(parts):
        if part != ("slice", None, None, None):
            break
        untouched += 1
    whole = 0 if isinstance(components, StridedTensor) else untouched
    return ScatteredElements(first, before, table, after, all_of(f, inside, table.inside), whole)


# ---- tables ----------------------------------------------------------------------------------------------------------
@record(frozen=True)
class IndexTerm:
    """Places on one axis: integers in memory, and the axis that they are places of."""

    dtype: DType
    data: str
    shape: Sequence[str]
    apart: Sequence[str]
    """How many integers the axes of `shape` are apart."""
    extent: str
    stride: str


def _term(w: FunctionEmitter, value: Value, components: Components, extent: str, stride: str) -> IndexTerm:
    shape = extents(value, components)
    apart = [product(w, shape[i + 1 :]) for i in range(len(shape))]
    return IndexTerm(tensor_type(value).dtype, components[1], shape, apart, extent, stride)


def listed(w: FunctionEmitter, terms: Sequence[IndexTerm]) -> IndexTable:
    """Write a table of the sums of what tensors say, broadcast together."""
    rank = max(len(term.shape) for term in terms)
    shape: list[str] = ["1"] * rank
    fits: list[str] = []
    for term in terms:
        for i, extent in enumerate(term.shape, rank - len(term.shape)):
            if extent == "1":
                continue
            if shape[i] == "1":
                shape[i] = extent
            elif shape[i] != extent:
                fits.append(compare(w.f, "eq", shape[i], extent))
    block, data = allocate_bytes(w, times(w.f, most(w.f, 1, product(w, shape)), 8))
    inside = all_of(w.f, "true", *fits)
    iterations = list(shape)
    if fits:  # where they do not fit, nothing is read
        iterations[0] = w.f.value(f"select i1 {inside}, i64 {shape[0]}, i64 0")
    for number, term in enumerate(terms):
        inside = all_of(w.f, inside, _add_term(w, term, iterations, data, number > 0))
    return IndexTable(block, data, shape, inside)


def _add_term(w: FunctionEmitter, term: IndexTerm, shape: Sequence[str], data: str, add: bool) -> str:
    """Write the places of a tensor, or add them to what is there; return whether all are inside of their axis."""
    lead = len(shape) - len(term.shape)
    apart = ["0" if i < lead or term.shape[i - lead] == "1" else term.apart[i - lead] for i in range(len(shape))]

    def write(f: LLVMFunction) -> None:
        inside = f.slot("i1")
        f.store("i1", "true", inside)

        def iteration(counters: list[str]) -> None:
            number, at = "0", "0"
            for i, counter in enumerate(counters):
                number = plus(f, times(f, number, f"%extent.{i}"), counter)
                at = plus(f, at, times(f, counter, f"%stride.{i}"))
            given = load_element(f, term.dtype, element_at(f, "%places", at, term.dtype))
            place = converted(VectorType(f, w.unit.kernels, 1), given, term.dtype, int64)
            behind = compare(f, "slt", place, 0)
            front = f.value(f"select i1 {behind}, i64 {plus(f, place, '%extent')}, i64 {place}")
            f.store("i1", all_of(f, f.load("i1", inside), compare(f, "ult", front, "%extent")), inside)
            room = f.offset("%table", number, "i64")
            moved = times(f, front, "%stride")
            f.store("i64", plus(f, f.load("i64", room), moved) if add else moved, room)

        nest(f, [f"%extent.{i}" for i in range(len(shape))], iteration)
        f.ret("i1", f.load("i1", inside))

    numbers = ["%extent", "%stride", *(f"%{what}.{i}" for what in ("extent", "stride") for i in range(len(shape)))]
    name = shared(w, [("ptr", "%places"), ("ptr", "%table"), *(("i64", n) for n in numbers)], write, "i1")
    given = [f"i64 {n}" for n in (term.extent, term.stride, *shape, *apart)]
    return w.f.call("i1", name, f"ptr {term.data}", f"ptr {data}", *given)


def masked(
    w: FunctionEmitter, value: Value, components: Components, shape: Sequence[str], apart: Sequence[str]
) -> IndexTable:
    """Write a table of the places where a mask is true; it has to have the extents of the axes that it spans."""
    own = [] if in_register(tensor_type(value)) else extents(value, components)
    inside = all_of(w.f, "true", *(compare(w.f, "eq", a, b) for a, b in zip(own, shape, strict=True) if a != b))
    block, data = allocate_bytes(w, times(w.f, most(w.f, 1, product(w, own)), 8))
    if not own:
        w.f.store("i64", "0", data)
        return IndexTable(block, data, [w.f.value(f"zext i1 {components[0]} to i64")], inside)
    rank = len(own)

    def write(f: LLVMFunction) -> None:
        count = f.slot("i64")
        f.store("i64", "0", count)

        def iteration(counters: list[str]) -> None:
            number, place = "0", "0"
            for i, counter in enumerate(counters):
                number = plus(f, times(f, number, f"%extent.{i}"), counter)
                place = plus(f, place, times(f, counter, f"%stride.{i}"))
            so_far = f.load("i64", count)
            f.store("i64", place, f.offset("%table", so_far, "i64"))
            chosen = f.load("i8", f.offset("%mask", number))
            f.store("i64", plus(f, so_far, f.value(f"zext i1 {f.value(f'icmp ne i8 {chosen}, 0')} to i64")), count)

        nest(f, [f"%extent.{i}" for i in range(rank)], iteration)
        f.ret("i64", f.load("i64", count))

    numbers = [f"%{what}.{i}" for what in ("extent", "stride") for i in range(rank)]
    name = shared(w, [("ptr", "%mask"), ("ptr", "%table"), *(("i64", n) for n in numbers)], write, "i64")
    given = [f"i64 {n}" for n in (*own, *apart)]
    return IndexTable(block, data, [w.f.call("i64", name, f"ptr {components[1]}", f"ptr {data}", *given)], inside)


def nest(
    f: LLVMFunction, shape: Sequence[str], iteration: Callable[[list[str]], None], counters: Sequence[str] = ()
) -> None:
    """Write loops over extents, and inside of them what is done with their counters."""
    if len(counters) == len(shape):
        iteration(list(counters))
        return
    with f.loop(shape[len(counters)], hint="axis") as i:
        nest(f, shape, iteration, [*counters, i])


# ---- loops over places -----------------------------------------------------------------------------------------------
Body = Callable[[LLVMFunction, str, str, str], None]
"""Writes what is done: (function, number of the first element of a run in the result, in the tensor, in the value)."""


def each_place(
    w: FunctionEmitter, where: ScatteredElements, pointers: Sequence[str], apart: Sequence[str], body: Body
) -> None:
    """Write loops over all runs of elements; the body finds `pointers` as %p0, %p1, ... and the length as %run.

    `apart` says how far each axis of a value is apart that is broadcast to the shape; the table counts as one axis.
    """
    looped = len(where.after) - where.whole
    run = product(w, [axis.extent for axis in where.after[looped:]])
    axes = [*where.before, StridedAxis(product(w, where.table.shape), ""), *where.after[:looped]]
    middle, rank = len(where.before), len(axes)

    def write(f: LLVMFunction) -> None:
        def iteration(counters: list[str]) -> None:
            number, place, other = "0", "%first", "0"
            for i, counter in enumerate(counters):
                number = plus(f, times(f, number, f"%extent.{i}"), counter)
                other = plus(f, other, times(f, counter, f"%value.{i}"))
                step = (
                    f.load("i64", f.offset("%table", counter, "i64"))
                    if i == middle
                    else times(f, counter, f"%stride.{i}")
                )
                place = plus(f, place, step)
            body(f, times(f, number, "%run"), place, other)

        nest(f, [f"%extent.{i}" for i in range(rank)], iteration)

    named = [*((a.extent, f"%extent.{i}") for i, a in enumerate(axes)),
             *((a.stride, f"%stride.{i}") for i, a in enumerate(axes) if i != middle),
             *((s, f"%value.{i}") for i, s in enumerate([*apart, *["0"] * rank][:rank])), (run, "%run")]  # fmt: skip
    parameters = [("ptr", "%table"), ("i64", "%first"), *(("ptr", f"%p{i}") for i in range(len(pointers)))]
    name = shared(w, [*parameters, *(("i64", n) for _, n in named)], write)
    w.f.call("void", name, f"ptr {where.table.data}", f"i64 {where.first}", *(f"ptr {p}" for p in pointers),
             *(f"i64 {given}" for given, _ in named))  # fmt: skip


def element_at(f: LLVMFunction, base: str, number: str, dtype: DType) -> str:
    """Write the address of an element."""
    return f.offset(base, times(f, number, dtype.itemsize))
