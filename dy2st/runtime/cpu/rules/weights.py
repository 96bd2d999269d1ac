"""Matrices that every turn of a loop multiplies by: packed once, for all turns.

A right operand of `matmul` that comes into a loop from outside is the same in every turn. The product that first needs
it packs it, so a loop without turns, or a branch that is not taken, packs nothing; the outermost loop around gives the
memory back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dy2st.ir.program import Block, Operation, Value, tensor_type
from dy2st.runtime.cpu.gemm import packed_elements
from dy2st.runtime.cpu.memory import HEAD
from dy2st.runtime.cpu.representation import Components
from dy2st.runtime.cpu.rules.tensors import allocate_bytes, extents, product
from dy2st.runtime.cpu.writer import Writer

FLOATS = {"float32": "f32", "float64": "f64"}
"""How kernels of products name the dtypes that they have."""
_NARROW = 8
"""Fewer columns than that are read as they lie: packed, most of a vector would be empty."""


def handed_on(operation: Operation) -> Iterator[tuple[Value, Value]]:
    """Yield what an operation hands to its blocks, as they find it in every run, with the blocks' names for it."""
    name, operands = operation.op.name, operation.operands
    if name == "cond":
        for block in operation.blocks:
            yield from zip(operands[1:], block.arguments, strict=True)
    elif name in ("while_loop", "counted_while"):
        count, (body,) = operation.attributes["carried"], operation.blocks
        first = count + (name == "counted_while")
        yield from zip(operands[count + 1 :], body.arguments[first:], strict=True)


@contextmanager
def packed_once(w: Writer, loop: Operation) -> Iterator[None]:
    """Let what is written inside, a loop, pack each of its matrices once."""
    mine: list[str] = []
    factors = {key for block in loop.blocks for key in _factors(block)}
    for outer, inner in handed_on(loop):
        for swap in (False, True):
            if (outer, swap) in w.packed:
                w.packed[inner, swap] = w.packed[outer, swap]
            elif (inner, swap) in factors:
                slot = w.f.slot("ptr")
                w.f.store("ptr", "null", slot)
                w.packed[inner, swap] = slot
                mine.append(slot)
    yield
    for slot in mine:
        w.f.call("void", "@dy2st.release", "ptr %context", f"ptr {w.f.load('ptr', slot)}")


def hand_on_packed(w: Writer, branch: Operation) -> None:
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
        if operation.op.name == "matmul":
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


def packed_form(w: Writer, value: Value, components: Components, swap: bool) -> str | None:
    """Write the address of a matrix packed for products; None where no loop keeps it so."""
    slot = w.packed.get((value, swap))
    if slot is None:
        return None
    f, t = w.f, tensor_type(value)
    rows, columns = extents(value, components)
    n, k = (rows, columns) if swap else (columns, rows)
    with f.when(f.value(f"icmp eq ptr {f.load('ptr', slot)}, null"), "pack"):
        elements = packed_elements(f, w.unit.target.lanes(t.dtype.itemsize), n, k)
        block, data = allocate_bytes(w, product(w, [elements, str(t.dtype.itemsize)]))
        f.call("void", w.library(f"gemm.{FLOATS[t.dtype.name]}.pack_b.{'nt'[swap]}"), f"ptr {components[1]}",
               f"i64 {columns}", f"i64 {n}", f"i64 {k}", f"ptr {data}")  # fmt: skip
        f.store("ptr", block, slot)
    return f.offset(f.load("ptr", slot), HEAD)
