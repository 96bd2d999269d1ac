"""What runs along one axis and keeps something: running sums, products and extrema.

A tensor is read as [outer, count, inner] with the axis in the middle; numbers side by side behind the axis are lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dy2st.dtypes import DType, int64
from dy2st.ir.program import Operation, tensor_type
from dy2st.ir.traits import Monoid
from dy2st.ops.reduce.scan import CumMax, CumProd
from dy2st.records import record
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.emitter.shared_routines import split_routine, stretches
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare, minus, plus, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, in_register, is_native
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import allocate, extents, product
from dy2st.runtime.backends.cpu.vector_ops.elementwise import converted
from dy2st.runtime.backends.cpu.vector_ops.load_store import ElementAccess, RowPosition
from dy2st.runtime.backends.cpu.vector_ops.reductions import combined
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

Made = Sequence[Components]
Step = Callable[[VectorType, list[str], list[str], str], tuple[list[str], list[str]]]
"""Writes one iteration: (lanes, what is kept, elements, place) -> (what is kept now, elements of the results)."""


_COST = 500
"""How many picoseconds an element takes, roughly."""


@record(frozen=True)
class Scan:
    """A run along an axis."""

    sources: tuple[DType, ...]
    kept: tuple[DType, ...]
    start: tuple[float | None, ...]
    """What is kept before the first iteration; None for the first element."""
    step: Step
    results: tuple[DType, ...]
    reverse: bool = False
    at_end: bool = False
    """The results are what is kept after the last iteration."""
    finish: Callable[[VectorType, DType, str, str], str] | None = None
    """What is done with a result at the end: (lanes, dtype, register, number of iterations) -> register."""

    def write(self, w: FunctionEmitter, f: LLVMFunction) -> None:
        """Write a range of lines of the routine: pointers of operands and of results, and the three extents."""
        lanes = w.unit.target.lanes(max(4, *(d.itemsize for d in (*self.sources, *self.results))))
        spans = stretches(f, "%inner", lanes)
        last = "%to"
        if None in self.start:  # without iterations there is no first element to read
            last = f.value(f"select i1 {compare(f, 'sgt', '%count', 0)}, i64 %to, i64 %from")
        with f.loop(last, start="%from", hint="outer") as o:
            for start, stop, count in spans:
                with f.loop(stop, count, start, hint="inner") as j:
                    self._line(w, f, VectorType(f, w.unit.kernels, count), o, j)

    def _line(self, w: FunctionEmitter, f: LLVMFunction, v: VectorType, outer: str, j: str) -> None:
        elements = ElementAccess(f, w.unit.kernels, v.count)

        def at(iteration: str) -> str:
            return plus(f, times(f, plus(f, times(f, outer, "%count"), iteration), "%inner"), j)

        def read(iteration: str) -> list[str]:
            return [elements.load(RowPosition(f"%x{i}", at(iteration), dtype)) for i, dtype in enumerate(self.sources)]

        def store(number: str, registers: Sequence[str]) -> None:
            for i, (dtype, register) in enumerate(zip(self.results, registers, strict=True)):
                elements.store(RowPosition(f"%y{i}", number, dtype), register)

        slots = [f.slot(v.of(dtype)) for dtype in self.kept]
        for slot, dtype, start in zip(slots, self.kept, self.start, strict=True):
            f.store(v.of(dtype), v.constant(start, dtype) if start is not None else read("0")[0], slot)
        with f.loop("%count", hint="along") as iteration:
            place = minus(f, minus(f, "%count", 1), iteration) if self.reverse else iteration
            kept = [f.load(v.of(dtype), slot) for dtype, slot in zip(self.kept, slots, strict=True)]
            kept, made = self.step(v, kept, read(place), place)
            for slot, dtype, register in zip(slots, self.kept, kept, strict=True):
                f.store(v.of(dtype), register, slot)
            if not self.at_end:
                store(at(place), made)
        if self.at_end:
            ends = [f.load(v.of(dtype), slot) for dtype, slot in zip(self.results, slots, strict=False)]
            if self.finish is not None:
                ends = [self.finish(v, dtype, end, "%count") for dtype, end in zip(self.results, ends, strict=True)]
            store(plus(f, times(f, outer, "%inner"), j), ends)


def run_scan(
    w: FunctionEmitter, scan: Scan, name: str, operands: Sequence[str], results: Sequence[str], sizes: list[str]
) -> None:
    """Write a call of a scan's routine."""
    run_lines(w, name, scan.write, operands, results, sizes)


def run_lines(
    w: FunctionEmitter, name: str, write: Callable[[FunctionEmitter, LLVMFunction], None], operands: Sequence[str],
    results: Sequence[str],
    sizes: list[str],
) -> None:  # fmt: skip
    """Write a call of a routine on lines of [outer, count, inner]; `write` writes a range of `outer`."""
    parameters = [*(("ptr", f"%x{i}") for i in range(len(operands))), *(("ptr", f"%y{i}") for i in range(len(results)))]
    parameters += [("i64", "%outer"), ("i64", "%count"), ("i64", "%inner")]
    symbol = split_routine(w, name, parameters, _units, lambda f: write(w, f))
    w.f.call("void", symbol, *(f"ptr {p}" for p in (*operands, *results)), *(f"i64 {n}" for n in sizes))


def _units(f: LLVMFunction) -> tuple[str, str]:
    return "%outer", times(f, "%count", "%inner", _COST)


def around(w: FunctionEmitter, shape: Sequence[str], axis: int) -> list[str]:
    """Return the extents of a tensor as [outer, count, inner] about an axis."""
    return [product(w, shape[:axis]), shape[axis], product(w, shape[axis + 1 :])]


# ---- running results -------------------------------------------------------------------------------------------------
def _running(w: FunctionEmitter, scan: Scan, operation: Operation, operands: list[Components]) -> Made:
    """Write a scan whose results have the extents of its operand."""
    value = operation.operands[0]
    t = tensor_type(value)
    shape = extents(value, operands[0])
    made = [allocate(w, dtype, shape) for dtype in scan.results]
    attributes = operation.attributes
    words = [operation.op.name, t.dtype.name, *(k for k in ("reverse", "exclusive") if attributes.get(k))]
    sizes = around(w, shape, attributes["axis"] % t.rank)
    run_scan(w, scan, ".".join(words), [c[1] for c in operands], [c[1] for c in made], sizes)
    return made


def _is_plain(operation: Operation) -> bool:
    types = [tensor_type(v) for v in operation.operands]
    return all(is_native(t.dtype) and not in_register(t) and t.shape == types[0].shape for t in types)


@rule("cumsum")
def cumulative(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write running sums or products, in the order in which NumPy adds; `exclusive` ones are those before."""
    if not _is_plain(operation):
        return host_rule(w, operation, operands)
    source, made = tensor_type(operation.operands[0]).dtype, tensor_type(operation.results[0]).dtype
    exclusive = operation.attributes.get("exclusive", False)
    monoid: Monoid = "mul" if isinstance(operation.op, CumProd) else "add"

    def step(v: VectorType, kept: list[str], read: list[str], _: str) -> tuple[list[str], list[str]]:
        total = combined(v, monoid, made, kept[0], converted(v, read[0], source, made))
        return [total, total], [kept[1] if exclusive else total]

    start = 1 if monoid == "mul" else -0.0 if made.is_floating else 0  # -0.0 changes no sum, 0.0 that of -0.0
    scan = Scan((source,), (made, made), (start, abs(start)), step, (made,), operation.attributes["reverse"])
    return _running(w, scan, operation, operands)


@rule("linear_scan")
def linear_scan(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the states of a linear recurrence."""
    dtype = tensor_type(operation.operands[0]).dtype
    if not _is_plain(operation) or not dtype.is_floating:
        return host_rule(w, operation, operands)

    def step(v: VectorType, kept: list[str], read: list[str], _: str) -> tuple[list[str], list[str]]:
        scaled = v.f.value(f"fmul {v.of(dtype)} {read[0]}, {kept[0]}")
        return [v.f.value(f"fadd {v.of(dtype)} {scaled}, {read[1]}")], kept

    scan = Scan((dtype, dtype), (dtype,), (0,), step, (dtype,), operation.attributes["reverse"])
    return _running(w, scan, operation, operands)


def better(v: VectorType, dtype: DType, largest: bool, one: str, other: str) -> str:
    """Write where `one` is a NaN or beyond the other, which is no NaN."""
    f = v.f
    if not dtype.is_floating:
        word = ("ugt" if largest else "ult") if dtype.kind in "bu" else ("sgt" if largest else "slt")
        return f.value(f"icmp {word} {v.of(dtype)} {one}, {other}")
    beyond = f.value(f"fcmp {'ugt' if largest else 'ult'} {v.of(dtype)} {one}, {other}")  # true where one is a NaN
    return f.value(f"and {v.kind('i1')} {beyond}, {f.value(f'fcmp ord {v.of(dtype)} {other}, {other}')}")


@rule("cummax", "cummin")
def running_extreme(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write running extrema and their places, the last of equal ones."""
    if not _is_plain(operation):
        return host_rule(w, operation, operands)
    dtype, largest = tensor_type(operation.operands[0]).dtype, isinstance(operation.op, CumMax)

    def step(v: VectorType, kept: list[str], read: list[str], place: str) -> tuple[list[str], list[str]]:
        stays = better(v, dtype, largest, kept[0], read[0])
        best = v.select(stays, kept[0], read[0], dtype)
        places = v.select(stays, kept[1], v.spread(place, int64), int64)
        return [best, places], [best, places]

    scan = Scan((dtype,), (dtype, int64), (None, 0), step, (dtype, int64))
    return _running(w, scan, operation, operands)
