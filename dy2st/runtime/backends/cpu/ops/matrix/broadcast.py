"""Broadcasts, and sums that undo them, of which it is known only at run time whether they repeat (sum) anything.

Where all extents are equal the result is the operand. Else a broadcast is a view with strides of 0, which is copied;
those whose axes the types tell apart never come here: they are part of a loop nest (grouping.py). A matrix that is
repeated for products of batches is a view with strides of 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.dtypes import DType
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import lookup
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.fusion.batch_broadcasts import repeats_whole
from dy2st.runtime.backends.cpu.fusion.grouping import FusedGroup, schedule
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, StridedTensor, in_register
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import are_ints, extents, viewed
from dy2st.runtime.backends.cpu.ops.views import is_memory, strides
from dy2st.shapes import Shape

Made = Sequence[Components]


def _target(operation: Operation, operands: list[Components]) -> list[str]:
    dims = iter(operands[1:])
    return [next(dims)[0] if e is None else str(e) for e in operation.attributes["shape"]]


def _same(w: FunctionEmitter, shape: Sequence[str], target: Sequence[str]) -> str:
    """Write whether two shapes of one rank are equal."""
    fine = "true"
    for extent, wanted in zip(shape, target, strict=True):
        fine = w.f.value(f"and i1 {fine}, {w.f.value(f'icmp eq i64 {extent}, {wanted}')}")
    return fine


@rule("broadcast")
def broadcast(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a broadcast; `eval` says that the shapes do not fit."""
    value, f = operation.operands[0], w.f
    if not are_ints(operation.operands[1:]) or not is_memory(value):
        return host_rule(w, operation, operands)
    shape, target = extents(value, operands[0]), _target(operation, operands)
    lead = len(target) - len(shape)
    if lead < 0:  # in a branch that is not taken
        return host_rule(w, operation, operands)
    if repeats_whole(operation):
        return [_repeated(w, operation, operands, target[:lead])]
    fine = "true"
    for extent, wanted in zip(shape, target[lead:], strict=True):
        one = f.value(f"icmp eq i64 {extent}, 1")
        fits = f.value(f"or i1 {one}, {f.value(f'icmp eq i64 {extent}, {wanted}')}")
        fine = f.value(f"and i1 {fine}, {fits}")
    for extent in target:
        fine = f.value(f"and i1 {fine}, {f.value(f'icmp ult i64 {extent}, {2**40}')}")

    def repeated() -> Components:
        apart = strides(w, value, operands[0])
        steps = [
            f.value(f"select i1 {f.value(f'icmp eq i64 {extent}, {wanted}')}, i64 {step}, i64 0")
            for extent, wanted, step in zip(shape, target[lead:], apart, strict=True)
        ]
        return _copy(w, operation.results[0], operands[0], target, ["0"] * lead + steps, f"{shape[-1]}", target[-1])

    def fast() -> Made:
        if lead:
            return [repeated()]
        t = operation.results[0].type
        kept = w.slots(t)
        whole, part, join = f.label("whole"), f.label("part"), f.label("join")
        f.branch(_same(w, shape, target), whole, part)
        f.start(whole)
        w.retain(value.type, operands[0])
        w.put(kept, t, (*operands[0][:2], *target))
        f.jump(join)
        f.start(part)
        w.put(kept, t, repeated())
        f.start(join)
        return [w.get(kept, t)]

    return w.guarded(operation, operands, fine, fast)


def _repeated(w: FunctionEmitter, operation: Operation, operands: list[Components], times: list[str]) -> Components:
    """Write a view of a tensor that is repeated whole; where there is no such number of times, `eval` says so."""
    f, value = w.f, operation.operands[0]
    fine = "true"
    for extent in times:
        fine = f.value(f"and i1 {fine}, {f.value(f'icmp ult i64 {extent}, {2**40}')}")
    w.demand(fine)
    made = viewed(w, value, operands[0], operands[0][1], [*times, *extents(value, operands[0])])
    return StridedTensor.of(made, [*["0"] * len(times), *strides(w, value, operands[0])])


def _copy(w: FunctionEmitter, made: Value, source: Components, target: list[str], steps: list[str], last: str,
          wanted: str) -> Components:  # fmt: skip
    """Write a copy of a view; where its rows lie together, the code knows that they do."""
    f, t = w.f, made.type
    kept = w.slots(t)
    beside, apart, join = f.label("beside"), f.label("apart"), f.label("join")
    f.branch(f.value(f"icmp eq i64 {last}, {wanted}"), beside, apart)
    f.start(beside)
    w.put(kept, t, w.copied(made, StridedTensor.of((*source[:2], *target), [*steps[:-1], "1"])))
    f.jump(join)
    f.start(apart)
    w.put(kept, t, w.copied(made, StridedTensor.of((*source[:2], *target), [*steps[:-1], "0"])))
    f.start(join)
    return w.get(kept, t)


@rule("sum_to")
def sum_to(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a sum over the axes in front that a broadcast has added; where it has repeated others, `eval` sums."""
    value = operation.operands[0]
    t, made = tensor_type(value), tensor_type(operation.results[0])
    if not are_ints(operation.operands[1:]) or in_register(t) or t.rank < made.rank:
        return host_rule(w, operation, operands)
    target, lead = _target(operation, operands), t.rank - made.rank
    same = _same(w, extents(value, operands[0])[lead:], target)
    if not lead:
        return w.guarded(operation, operands, same, lambda: [viewed(w, value, operands[0], operands[0][1], target)])
    group = _sum_in_front(t.dtype, t.shape[:lead], made.shape)
    if group is None:
        return host_rule(w, operation, operands)
    return w.guarded(operation, operands, same, lambda: w.unit.group_rule(w, group, [operands[0]]))


def _sum_in_front(dtype: DType, front: Shape, shape: Shape) -> FusedGroup | None:
    """Return a loop nest that adds a tensor up along its first axes; None where there is none."""
    b = Builder()
    x = b.argument(TensorType(dtype, (*front, *shape)))
    axes = {"axis": tuple(range(len(front))), "keepdim": False}
    b.block.results = b.operation(lookup("sum"), [x], axes).results
    step, *others = schedule(b.block)
    return step if isinstance(step, FusedGroup) and not others else None
