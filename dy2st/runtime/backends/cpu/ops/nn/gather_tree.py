"""`gather_tree`: each beam's words, read from the last step back along its parents."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.dtypes import DType, int64
from dy2st.ir.program import Operation, tensor_type
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.emitter.shared_routines import routine, split_routine
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction, LLVMModule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, minus, plus, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components
from dy2st.runtime.backends.cpu.ops.indexing.advanced_indexing import element_at
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import allocate, extents, product
from dy2st.runtime.backends.cpu.ops.views import is_memory
from dy2st.runtime.backends.cpu.vector_ops.elementwise import converted
from dy2st.runtime.backends.cpu.vector_ops.load_store import load_element, store_element
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

Made = Sequence[Components]
_COST = 2_000
"""How many picoseconds a step of a beam takes, roughly."""
_EXTENTS = ("steps", "batch", "beams")


@rule("gather_tree")
def gather_tree(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the sequences; `eval` says which parent is outside, or that the extents differ."""
    ids, parents = operation.operands
    words, links = tensor_type(ids).dtype, tensor_type(parents).dtype
    if not is_memory(ids) or not is_memory(parents) or not links.is_integer:
        return host_rule(w, operation, operands)
    shape, other = (extents(v, c) for v, c in zip(operation.operands, operands, strict=True))
    same = all_of(w.f, "true", *(compare(w.f, "eq", a, b) for a, b in zip(shape, other, strict=True)))
    fine = all_of(w.f, same, _are_inside(w, links, operands[1][1], product(w, other), shape[2]))

    def fast() -> Made:
        made = allocate(w, words, shape)
        parameters = [("ptr", "%ids"), ("ptr", "%parents"), ("ptr", "%made"), *(("i64", f"%{n}") for n in _EXTENTS)]
        name = split_routine(
            w, f"gather_tree.{words.name}.{links.name}", parameters,
            lambda f: ("%batch", times(f, "%steps", "%beams", _COST)),
            lambda f: _sequences(f, w.unit.kernels, words, links),
        )  # fmt: skip
        addresses = (operands[0][1], operands[1][1], made[1])
        w.f.call("void", name, *(f"ptr {a}" for a in addresses), *(f"i64 {e}" for e in shape))
        return [made]

    return w.guarded(operation, operands, fine, fast)


def _sequences(f: LLVMFunction, kernels: LLVMModule, words: DType, links: DType) -> None:
    """Write the sequences of a range of the batch."""
    beam = f.slot("i64")
    with f.loop("%to", start="%from", hint="batch") as number, f.loop("%beams", hint="beam") as column:
        f.store("i64", column, beam)
        with f.loop("%steps", hint="step") as turn:
            step = minus(f, minus(f, "%steps", turn), 1)
            row = times(f, plus(f, times(f, step, "%batch"), number), "%beams")
            at = plus(f, row, f.load("i64", beam))
            word = load_element(f, words, element_at(f, "%ids", at, words))
            store_element(f, words, word, element_at(f, "%made", plus(f, row, column), words))
            f.store("i64", _front(f, _link(f, kernels, links, "%parents", at), "%beams"), beam)


def _are_inside(w: FunctionEmitter, links: DType, address: str, count: str, extent: str) -> str:
    """Write whether all parents are beams, counted from the front or from the end."""

    def write(f: LLVMFunction) -> None:
        inside = f.slot("i1")
        f.store("i1", "true", inside)
        with f.loop("%count") as i:
            front = _front(f, _link(f, w.unit.kernels, links, "%x", i), "%extent")
            f.store("i1", all_of(f, f.load("i1", inside), compare(f, "ult", front, "%extent")), inside)
        f.store("i1", f.load("i1", inside), "%made")

    made, parameters = w.f.slot("i1"), [("ptr", "%x"), ("i64", "%count"), ("i64", "%extent"), ("ptr", "%made")]
    name = routine(w, f"are_inside.{links.name}", parameters, write)
    w.f.call("void", name, f"ptr {address}", f"i64 {count}", f"i64 {extent}", f"ptr {made}")
    return w.f.load("i1", made)


def _link(f: LLVMFunction, kernels: LLVMModule, links: DType, base: str, at: str) -> str:
    return converted(VectorType(f, kernels, 1), load_element(f, links, element_at(f, base, at, links)), links, int64)


def _front(f: LLVMFunction, place: str, extent: str) -> str:
    return f.value(f"select i1 {compare(f, 'slt', place, 0)}, i64 {plus(f, place, extent)}, i64 {place}")
