"""Products of the rows that later iterations of a loop will ask for, made together with that of the first.

    while i < n:
        z = x[i] @ w + h @ u        # x and w stay: x[i:i + 128] @ w is one product, reading w once

An iteration that finds its product in the window takes a view of it. A window begins where an iteration finds none.
Where the loop ends with its count, the first one is for all iterations; elsewhere each is twice as long as the one
before: a loop that ends early, or does not ask in order, has done little in vain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dy2st.ir.program import Block, Operation, Value, tensor_type
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.control.scalar import ScalarAdd, ScalarSub
from dy2st.ops.indexing.getitem import Index
from dy2st.ops.linalg.matmul import MatMul
from dy2st.passes.loops.sink_broadcasts import handed_on
from dy2st.records import record
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import HEAD
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter
from dy2st.runtime.backends.cpu.gemm.epilogue import NOTHING
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, least, minus, most, negation, plus, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, StridedTensor, in_registers
from dy2st.runtime.backends.cpu.ops.control.loop_cost import counted_iterations
from dy2st.runtime.backends.cpu.ops.control.prepacked_weights import FLOATS, packed_form
from dy2st.runtime.backends.cpu.ops.tensors import allocate, allocate_bytes, extents, product
from dy2st.shapes import symbol

_ROWS = 128
"""So many rows keep two threads busy; an iteration that has them by itself gains nothing from the next one's."""


@record
class ProjectionWindow:
    """The products of some iterations: slots for their block, the number of the first, how many, and of the next
    window.
    """

    source: Value
    rows: Components
    number: Value
    """Which row an iteration asks for."""
    backwards: bool
    """Whether it is one less in each iteration."""
    iterations: str | None
    """How many turns the loop has, where that is known before it."""
    block: str
    first: str
    count: str
    following: str


@record
class ProjectionWeights:
    """The matrix that all iterations multiply by, turned with `swap`: its rows (columns, where `transposed`) lie
    `apart`.
    """

    value: Value
    components: Components
    swap: bool
    data: str
    columns: str
    apart: str
    transposed: bool


@contextmanager
def hoisted_projections(w: FunctionEmitter, loop: Operation, operands: Sequence[Components]) -> Iterator[None]:
    """Let what is written inside, a loop, make products for later iterations."""
    f, (body,) = w.f, loop.blocks
    stays = {inner: outer for outer, inner in handed_on(loop)}
    given = dict(zip(loop.operands, operands, strict=True))
    counters, mine = _counters(loop, body), list[ProjectionWindow]()
    iterations: str | None = None
    for operation in body.operations:
        row = operation.operands[0].operation if isinstance(operation.op, MatMul) else None
        if row is None or not isinstance(row.op, Index) or row.attributes["spec"] != (("int", "?"),):
            continue
        source, number = row.operands
        step = _step(number, counters)
        if source in stays and step and _pays(operation, source, w):
            iterations = iterations or counted_iterations(f, loop, operands)
            slots = [f.slot(kind) for kind in ("ptr", "i64", "i64", "i64")]
            starts = ("null", "0", "0", iterations or "2")
            for slot, kind, start in zip(slots, ("ptr", "i64", "i64", "i64"), starts, strict=True):
                f.store(kind, start, slot)
            w.ahead[operation] = ProjectionWindow(source, given[stays[source]], number, step < 0, iterations, *slots)
            mine.append(w.ahead[operation])
    yield
    for window in mine:
        f.call("void", "@dy2st.release", "ptr %context", f"ptr {f.load('ptr', window.block)}")


def _counters(loop: Operation, body: Block) -> dict[Value, int]:
    """Return the numbers of a loop that are one more, or one less, in each iteration."""
    if loop.op.is_counted:
        return {body.arguments[0]: -1 if loop.attributes["reverse"] else 1}
    found: dict[Value, int] = {}
    for argument, following in zip(body.arguments, body.results[1:], strict=False):
        step = following.operation
        if not isinstance(argument.type, ScalarType) or step is None or not isinstance(step.op, (ScalarAdd, ScalarSub)):
            continue
        one = step.operands[1].operation
        if step.operands[0] is argument and one is not None and one.attributes.get("value") == 1:
            found[argument] = 1 if isinstance(step.op, ScalarAdd) else -1
    return found


def _step(number: Value, counters: dict[Value, int]) -> int:
    """Return by how much a number differs from one iteration to the next, where that is 1 or -1; else 0.

    It is a counter, or a sum or difference with one: what else is in it stays, or the windows find that it does not.
    """
    made = number.operation
    if number in counters:
        return counters[number]
    if made is None or not isinstance(made.op, (ScalarAdd, ScalarSub)):
        return 0
    left, right = (counters.get(v, 0) for v in made.operands)
    step = left + right if isinstance(made.op, ScalarAdd) else left - right
    return step if abs(step) == 1 else 0


def _pays(operation: Operation, source: Value, w: FunctionEmitter) -> bool:
    t, right = source.type, (operation.operands[1], bool(operation.attributes["transpose_y"]))
    if not isinstance(t, TensorType) or t.rank != 3 or operation.attributes["transpose_x"] or right not in w.packed:
        return False
    if in_registers(t) or in_registers(right[0].type):
        return False
    return not (isinstance(t.shape[1], int) and t.shape[1] >= _ROWS)


def taken_from(w: FunctionEmitter, window: ProjectionWindow, right: ProjectionWeights) -> Components:
    """Write the product of this iteration: found in the window, or with those of the turns to come."""
    f, t = w.f, tensor_type(window.source)
    iterations, rows, _ = extents(window.source, window.rows)
    number = w.env[window.number][0]
    negative = compare(f, "slt", number, 0)
    at = f.value(f"select i1 {negative}, i64 {plus(f, number, iterations)}, i64 {number}")
    place = minus(f, at, f.load("i64", window.first))
    block = f.slot("ptr")
    f.store("ptr", f.load("ptr", window.block), block)
    found = compare(f, "ult", place, f.load("i64", window.count))
    with f.when(found, "made"):
        f.call("void", "@dy2st.retain", f"ptr {f.load('ptr', block)}")
    with f.when(negation(f, found), "ahead"):
        f.store("ptr", _made(w, window, right, at), block)
    before = product(w, [minus(f, at, f.load("i64", window.first)), rows, right.columns, str(t.dtype.itemsize)])
    made = f.load("ptr", block)
    return (made, f.offset(f.offset(made, HEAD), before), rows, right.columns)


def _made(w: FunctionEmitter, window: ProjectionWindow, right: ProjectionWeights, at: str) -> str:
    """Write a new window that begins with turn `at`; return its block, held for the caller and by the window."""
    f, t = w.f, tensor_type(window.source)
    iterations, rows, inner = extents(window.source, window.rows)
    longest = most(f, f.value(f"sdiv i64 {_ROWS}, {most(f, rows, 1)}"), 1)
    wanted = least(f, f.load("i64", window.following), longest)
    count = least(f, wanted, plus(f, at, 1) if window.backwards else minus(f, iterations, at))
    first = minus(f, plus(f, at, 1), count) if window.backwards else at
    f.store("i64", times(f, wanted, 2), window.following)
    f.call("void", "@dy2st.release", "ptr %context", f"ptr {f.load('ptr', window.block)}")
    f.store("ptr", "null", window.block)
    block, data, *_ = allocate(w, t.dtype, [count, rows, right.columns])
    a, copy = _rows_of(w, window, first, [count, rows, inner])
    _multiply(w, window, right, (a, data), (count, times(f, count, rows), inner))
    if copy is not None:
        f.call("void", "@dy2st.release", "ptr %context", f"ptr {copy}")
    f.store("i64", first, window.first)
    f.store("i64", "0", window.count)
    with f.when(compare(f, "sgt", count, 1), "many"):
        f.call("void", "@dy2st.retain", f"ptr {block}")
        f.store("ptr", block, window.block)
        f.store("i64", count, window.count)
    return block


def _multiply(
    w: FunctionEmitter,
    window: ProjectionWindow,
    right: ProjectionWeights,
    places: tuple[str, str],
    counts: tuple[str, str, str],
) -> None:
    """Write the products of some iterations: with the matrix as it lies where no other iteration is left, else with it
    packed.
    """
    f, (a, made), (count, rows, inner) = w.f, places, counts
    kernel, n = f"gemm.{FLOATS[tensor_type(window.source).dtype.name]}", right.columns
    again = "true"
    if window.iterations is not None:
        slot = w.packed[right.value, right.swap].block
        lies = f.value(f"icmp eq ptr {f.load('ptr', slot)}, null")
        once = all_of(f, lies, compare(f, "sge", count, window.iterations))
        again = negation(f, once)
        with f.when(once, "once"):
            name = f"{kernel}.n{'nt'[right.transposed]}"
            sizes = [f"i64 {e}" for e in (rows, n, inner)]
            block, scratch = allocate_bytes(w, f.call("i64", w.library(f"{name}.scratch"), *sizes))
            f.call("void", w.library(name), f"ptr {a}", f"i64 {inner}", f"ptr {right.data}",
                   f"i64 {right.apart}", f"ptr {made}", f"i64 {n}", *sizes, f"ptr {scratch}", "i1 false",
                   NOTHING)  # fmt: skip
            f.call("void", "@dy2st.release", "ptr %context", f"ptr {block}")
    with f.when(again, "again"):
        packed = packed_form(w, right.value, right.components, right.swap)
        f.call("void", w.library(f"{kernel}.packed.n"), f"ptr {a}", f"i64 {inner}", f"ptr {packed}", f"ptr {made}",
               f"i64 {n}", f"i64 {rows}", f"i64 {n}", f"i64 {inner}", "i1 false", "i64 0", NOTHING)  # fmt: skip


def _rows_of(w: FunctionEmitter, window: ProjectionWindow, first: str, shape: list[str]) -> tuple[str, str | None]:
    """Write where the rows of some iterations stand one after the other, and the block of a copy where they did not.

    Those of an iteration lie together.
    """
    f, t = w.f, tensor_type(window.source)
    if not isinstance(window.rows, StridedTensor):
        return f.offset(window.rows[1], product(w, [first, *shape[1:], str(t.dtype.itemsize)])), None
    apart, kept = window.rows.strides, [f.slot("ptr"), f.slot("ptr")]
    data = f.offset(window.rows[1], product(w, [first, apart[0], str(t.dtype.itemsize)]))
    for slot, value in zip(kept, ("null", data), strict=True):
        f.store("ptr", value, slot)
    with f.when(compare(f, "ne", apart[0], times(f, *shape[1:])), "apart"):  # a thread has some of an iteration's rows
        iterations = Value(TensorType(t.dtype, (symbol("turns"), *t.shape[1:])), window.source.block)
        copy = w.copied(iterations, StridedTensor.of(("null", data, *shape), apart))
        for slot, value in zip(kept, copy[:2], strict=True):
            f.store("ptr", value, slot)
    return f.load("ptr", kept[1]), f.load("ptr", kept[0])
