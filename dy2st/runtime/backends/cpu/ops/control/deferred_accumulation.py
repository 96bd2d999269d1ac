"""Sums of products that a loop carries and nobody reads before its end: a few rows of many iterations are added at
once.

    for turn in ...:
        dw = dw + x.T @ dy        # x and dy have one row: this reads and writes all of dw

The rows of x and dy are put by, and their product is added when there are enough of them, and after the last iteration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.ops.linalg.matmul import MatMulAdd
from dy2st.records import record
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import HEAD
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter
from dy2st.runtime.backends.cpu.gemm.epilogue import NOTHING
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare, negation, plus, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, is_small
from dy2st.runtime.backends.cpu.ops.control.prepacked_weights import FLOATS
from dy2st.runtime.backends.cpu.ops.tensors import allocate_bytes, alone, product

_ROWS = 32
"""So many rows are put by; an iteration that has them by itself adds them at once."""


@record
class MatrixRows:
    """A matrix as its rows lie: where it begins, and how many elements they are apart."""

    data: str
    apart: str


@record
class DeferredSum:
    """Slots for the blocks of the rows that were put by, and for how many there are."""

    type: TensorType
    left: str
    right: str
    count: str


@contextmanager
def deferred_sums(w: FunctionEmitter, loop: Operation, kept: list[list[str]]) -> Iterator[None]:
    """Let what is written inside, a loop, put by what it adds; `kept` are the slots of what it carries."""
    f, mine = w.f, list[tuple[DeferredSum, list[str]]]()
    for operation, place in _sums(loop):
        t = tensor_type(operation.results[0])
        one = DeferredSum(t, f.slot("ptr"), f.slot("ptr"), f.slot("i64"))
        for slot in (one.left, one.right):
            f.store("ptr", "null", slot)
        f.store("i64", "0", one.count)
        w.later[operation] = one
        mine.append((one, kept[place]))
    yield
    for one, slots in mine:
        with f.when(compare(f, "sgt", f.load("i64", one.count), 0), "left"):
            w.put(slots, one.type, _flushed(w, one, w.get(slots, one.type)))
        for slot in (one.left, one.right):
            f.call("void", "@dy2st.release", "ptr %context", f"ptr {f.load('ptr', slot)}")


def _sums(loop: Operation) -> Iterator[tuple[Operation, int]]:
    """Yield the sums of a loop that only its next iteration uses, to add to; and which of the carried values each
    is.
    """
    (body,), first = loop.blocks, int(loop.op.is_counted)
    uses = Counter(v for operation in body.operations for v in operation.operands) + Counter(body.results)
    carried = {v: i for i, v in enumerate(body.arguments[first : first + loop.attributes["carried"]])}
    following = body.results[1 - first :]
    for operation in body.operations:
        if not isinstance(operation.op, MatMulAdd):
            continue
        made, total = operation.results[0], operation.operands[2]
        t, flags = tensor_type(made), operation.attributes
        if not flags["transpose_x"] or flags["transpose_y"] or t.rank != 2 or t.dtype.name not in FLOATS or is_small(t):
            continue
        if total in carried and uses[total] == 1 and uses[made] == 1 and following[carried[total]] is made:
            yield operation, carried[total]


def defer(w: FunctionEmitter, one: DeferredSum, total: Value, components: Components, factors: tuple[MatrixRows,
        MatrixRows],
           count: str) -> Components:  # fmt: skip
    """Write that the product of `count` rows is added to a matrix, now or later."""
    f, slots = w.f, w.slots(one.type)
    w.put(slots, one.type, w.owned(total, components))
    many = compare(f, "sge", count, _ROWS)
    with f.when(many, "now"):
        w.put(slots, one.type, _added(w, one, w.get(slots, one.type), factors, count))
    with f.when(negation(f, many), "later"):
        full = compare(f, "sgt", plus(f, f.load("i64", one.count), count), _ROWS)
        with f.when(full, "full"):
            w.put(slots, one.type, _flushed(w, one, w.get(slots, one.type)))
        _, _, m, n = w.get(slots, one.type)
        before = f.load("i64", one.count)
        for slot, rows, extent in zip((one.left, one.right), factors, (m, n), strict=True):
            _copy(w, one, slot, rows, extent, before, count)
        f.store("i64", plus(f, before, count), one.count)
    return w.get(slots, one.type)


def _copy(
    w: FunctionEmitter, one: DeferredSum, slot: str, rows: MatrixRows, extent: str, before: str, count: str
) -> None:
    """Write a copy of some rows behind those that were put by."""
    f, size = w.f, str(one.type.dtype.itemsize)
    length = product(w, [extent, size])
    with f.when(f.value(f"icmp eq ptr {f.load('ptr', slot)}, null"), "first"):
        f.store("ptr", allocate_bytes(w, times(f, length, _ROWS))[0], slot)
    there = f.offset(f.offset(f.load("ptr", slot), HEAD), times(f, before, length))
    with f.loop(count, hint="row") as i:
        source, target = f.offset(rows.data, product(w, [i, rows.apart, size])), f.offset(there, times(f, i, length))
        f.call("void", "@llvm.memcpy.p0.p0.i64", f"ptr {target}", f"ptr {source}", f"i64 {length}", "i1 false")


def _flushed(w: FunctionEmitter, one: DeferredSum, total: Components) -> Components:
    """Write the sum with the product of all rows that were put by."""
    f, (_, _, m, n) = w.f, total
    left, right = (f.offset(f.load("ptr", slot), HEAD) for slot in (one.left, one.right))
    count = f.load("i64", one.count)
    f.store("i64", "0", one.count)
    return _added(w, one, total, (MatrixRows(left, m), MatrixRows(right, n)), count)


def _added(
    w: FunctionEmitter, one: DeferredSum, total: Components, factors: tuple[MatrixRows, MatrixRows], count: str
) -> Components:
    """Write the sum of a matrix, which is held here alone or copied, and a product."""
    f, (left, right) = w.f, factors
    made = alone(w, one.type, total)
    _, data, m, n = made
    kernel = f"gemm.{FLOATS[one.type.dtype.name]}.tn"
    sizes = [f"i64 {e}" for e in (m, n, count)]
    block, scratch = allocate_bytes(w, f.call("i64", w.library(f"{kernel}.scratch"), *sizes))
    f.call("void", w.library(kernel), f"ptr {left.data}", f"i64 {left.apart}", f"ptr {right.data}",
           f"i64 {right.apart}", f"ptr {data}", f"i64 {n}", *sizes, f"ptr {scratch}", "i1 true", NOTHING)  # fmt: skip
    f.call("void", "@dy2st.release", "ptr %context", f"ptr {block}")
    return made
