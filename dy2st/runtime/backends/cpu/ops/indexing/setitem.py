"""Writes in the index expression: `index_set` and `index_add` of ints and slices, in place where the tensor is held
once.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.ir.opdef import lookup
from dy2st.ir.program import Block, Operation, Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.ops.indexing.getitem import IndexAdd
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.fusion.index_maps import AxisMap, FusedGroup
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, StridedTensor, in_register
from dy2st.runtime.backends.cpu.ops.tensors import writable
from dy2st.runtime.backends.cpu.ops.views import is_memory, region
from dy2st.runtime.backends.cpu.vector_ops.load_store import load_element, store_element
from dy2st.runtime.backends.cpu.vector_ops.reductions import combined
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType
from dy2st.shapes import symbol

Made = Sequence[Components]


def write_region(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a region; `eval` does other index expressions, and says what is outside or does not fit."""
    value, new = operation.operands[:2]
    if operation in w.joined:
        w.takes(value)
        return [w.joined.pop(operation)]
    t, u = tensor_type(value), tensor_type(new)
    if not is_memory(value) or t.dtype is not u.dtype:
        return host_rule(w, operation, operands)
    where = region(w, value, operands[0], operation.attributes["spec"], operation.operands[2:], operands[2:])
    if where is None or u.rank > len(where.shape):
        return host_rule(w, operation, operands)
    f, fine = w.f, where.inside
    pairs = list(zip(reversed(operands[1][2:]), reversed(where.shape), strict=False)) if not in_register(u) else []
    for (extent, wanted), declared in zip(pairs, reversed(u.shape), strict=False):
        same = f.value(f"icmp eq i64 {extent}, {'1' if declared == 1 else wanted}")
        fine = f.value(f"and i1 {fine}, {same}")
    add = isinstance(operation.op, IndexAdd)

    def fast() -> Made:
        base = writable(w, value, operands[0])
        data = f.offset(base[1], f.value(f"mul i64 {where.first}, {t.dtype.itemsize}"))
        if not where.shape:
            number = operands[1][0]
            if add:
                number = combined(VectorType(f, w.module, 1), "add", t.dtype, load_element(w.f, t.dtype, data), number)
            store_element(w.f, t.dtype, number, data)
        else:
            target = StridedTensor.of(("null", data, *where.shape), where.strides)
            _into(w, t, target, new, operands[1], add)
        return [base]

    return w.guarded(operation, operands, fine, fast)


def _into(
    w: FunctionEmitter, t: TensorType, target: StridedTensor, new: Value, components: Components, add: bool
) -> None:
    """Write elements, repeated where they are fewer, into a region of memory (or add them there)."""
    rank = len(target.strides)
    space = tuple(symbol(f"extent{i}") for i in range(rank))
    block = Block()
    old = Value(TensorType(t.dtype, space), block)
    u = tensor_type(new)
    lead = rank - u.rank
    map_: AxisMap = tuple(None if e == 1 else lead + i for i, e in enumerate(u.shape))
    operation = Operation(lookup("add" if add else "detach"), [old, new] if add else [new], {}, [], None)
    made = Value(old.type, block, operation)
    operation.results.append(made)
    every = tuple(range(rank))
    group = FusedGroup(
        space, None, [operation], {old: every, made: every, new: map_}, operands=[old, new], results=[made]
    )
    w.unit.group_rule(w, group, [target, components], {made: target})
