"""Matrices that every turn of a loop multiplies by: packed once, for all turns.

A right operand of `matmul` that comes into a loop from outside is the same in every turn. The product that first needs
it packs it, so a loop without turns, or a branch that is not taken, packs nothing; the outermost loop around gives the
memory back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dy2st.ir.program import Block, Operation, Value, tensor_type
from dy2st.ops.linalg.matmul import MatMul
from dy2st.passes.loops.sink_broadcasts import handed_on
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import HEAD
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, PackedOperand
from dy2st.runtime.backends.cpu.gemm import packed_elements
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, StridedTensor
from dy2st.runtime.backends.cpu.ops.tensors import allocate_bytes, extents, product
from dy2st.runtime.backends.cpu.ops.views import strides

FLOATS = {"float32": "f32", "float64": "f64"}
"""How kernels of products name the dtypes that they have."""
_NARROW = 8
"""Fewer columns than that are read as they lie: packed, most of a vector would be empty."""


@contextmanager
def prepacked_weights(w: FunctionEmitter, loop: Operation) -> Iterator[None]:
    """Let what is written inside, a loop, pack each of its matrices once."""
    mine: list[str] = []
    factors = {key for block in loop.blocks for key in _factors(block)}
    for outer, inner in handed_on(loop):
        for swap in (False, True):
            if (outer, swap) in w.packed:
                w.packed[inner, swap] = w.packed[outer, swap]
            elif (inner, swap) in factors:
                kept = begun(w, "null")
                w.packed[inner, swap] = kept
                mine.append(kept.block)
    yield
    for slot in mine:
        w.f.call("void", "@dy2st.release", "ptr %context", f"ptr {w.f.load('ptr', slot)}")


def begun(w: FunctionEmitter, block: str) -> PackedOperand:
    """Write that a matrix is kept, packed in this block or not at all."""
    slot, orientation = w.f.slot("ptr"), w.f.slot("i64")
    w.f.store("ptr", block, slot)
    w.f.store("i64", "0", orientation)
    return PackedOperand(slot, orientation)


def hand_on_packed(w: FunctionEmitter, branch: Operation) -> None:
    """Let the blocks of a choice know what the loop around it packs."""
    for outer, inner in handed_on(branch):
        for swap in (False, True):
            if (outer, swap) in w.packed:
                w.packed[inner, swap] = w.packed[outer, swap]


def factors_outside(loop: Operation) -> list[tuple[Value, bool]]:
    """Return the matrices that a loop packs, as they are named outside of it."""
    factors = {key for block in loop.blocks for key in _factors(block)}
    found = [(outer, swap) for outer, inner in handed_on(loop) for swap in (False, True) if (inner, swap) in factors]
    return list(dict.fromkeys(found))


def _factors(block: Block) -> set[tuple[Value, bool]]:
    """Return the values that products in a block, or inside of it, have as right operands, with `transpose_y`."""
    found: set[tuple[Value, bool]] = set()
    for operation in block.operations:
        if isinstance(operation.op, MatMul):
            right, swap = operation.operands[1], bool(operation.attributes["transpose_y"])
            if _pays(right, swap):
                found.add((right, swap))
        elif operation.blocks:
            inside = {key for inner in operation.blocks for key in _factors(inner)}
            found |= {(outer, swap) for outer, inner in handed_on(operation) for swap in (False, True)
                      if (inner, swap) in inside}  # fmt: skip
    return found


def _pays(value: Value, swap: bool) -> bool:
    t = tensor_type(value)
    if t.rank != 2 or t.dtype.name not in FLOATS:
        return False
    columns = t.shape[0 if swap else 1]
    return not (isinstance(columns, int) and columns < _NARROW)


def backwards(w: FunctionEmitter, value: Value, swap: bool) -> str:
    """Write whether a product begins with the last columns of a packed matrix, a number: every other time."""
    slot = w.packed[value, swap].orientation
    orientation = w.f.load("i64", slot)
    w.f.store("i64", w.f.value(f"xor i64 {orientation}, 1"), slot)
    return orientation


def packed_form(w: FunctionEmitter, value: Value, components: Components, swap: bool) -> str | None:
    """Write the address of a matrix (turned, with `swap`) packed for products; None where no loop keeps it so."""
    if (value, swap) not in w.packed:
        return None
    slot, f, t = w.packed[value, swap].block, w.f, tensor_type(value)
    rows, columns = extents(value, components)
    n, k = (rows, columns) if swap else (columns, rows)
    with f.when(f.value(f"icmp eq ptr {f.load('ptr', slot)}, null"), "pack"):
        elements = packed_elements(f, w.unit.target.lanes(t.dtype.itemsize), n, k)
        block, data = allocate_bytes(w, product(w, [elements, str(t.dtype.itemsize)]))
        whole = isinstance(components, StridedTensor) and "1" not in components.strides
        source = w.copied(value, components) if whole else components
        apart = strides(w, value, source)
        lies = apart[1] == "1"
        f.call("void", w.library(f"gemm.{FLOATS[t.dtype.name]}.pack_b.{'nt'[swap == lies]}"), f"ptr {source[1]}",
               f"i64 {apart[0] if lies else apart[1]}", f"i64 {n}", f"i64 {k}", f"ptr {data}")  # fmt: skip
        if whole:
            w.release(t, source)
        f.store("ptr", block, slot)
    return f.offset(f.load("ptr", slot), HEAD)
