"""Loops that do nothing but count: what they carry is known without running them.

    while i < n: i = i + 2; j = j - 1          ceil((n - i) / 2) turns, or one where the loop begins with i >= n

What each iteration leaves as one constant (which tensor it is, as an int) is that after the last one.
Floats count so as long as they are whole numbers without rounding. Where numbers are too large, the loop is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dy2st.dtypes import float32, float64
from dy2st.ir.program import Operation, Value
from dy2st.ir.types import ScalarType, TensorType, Type
from dy2st.ops.control.scalar_unary import ScalarToTensor
from dy2st.records import record
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, minus, most, plus, times
from dy2st.runtime.backends.cpu.llvm_ir.literals import double
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, kinds
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

_WHOLE = {"float": 2**24, "double": 2**53}
"""Up to where each whole number is a float."""
_LARGE, _MOST_ITERATIONS, _LONGEST_STEP = 2**61, 2**40, 2**20
"""Of ints up to these sizes, sums and products are ints of 64 bits."""
_INTS = ("i32", "i64")


@record
class InductionLoop:
    """A loop that counts: by how much each iteration changes what is carried, or what it always leaves there, and until
    what number which counter runs.
    """

    steps: list[int]
    settled: dict[int, int]
    """What iterations leave as the same int, by place; its step is 0."""
    driver: int
    limit: Value
    upwards: bool


def induction_loop(loop: Operation) -> InductionLoop | None:
    """Return what a `while` counts; None where it does anything else."""
    (body,), carried = loop.blocks, loop.attributes["carried"]
    predicate, *following = body.results
    order = predicate.operation
    if order is None or order.op.compares not in ("lt", "gt") or not all(_counts(v.type) for v in loop.results):
        return None
    constants = [_settled(a, v, loop) for a, v in zip(body.arguments, following, strict=False)]
    settled = {i: n for i, n in enumerate(constants) if n is not None}
    steps = [0 if i in settled else _step(body.arguments[i], v, loop) for i, v in enumerate(following)]
    known = [s for s in steps if s is not None]
    sides = [_unchanged(v) for v in order.operands]
    driver = next((i for i, v in enumerate(following) if v in sides and i not in settled), None)
    if driver is None or len(known) != len(steps):
        return None
    limit = sides[1 - sides.index(following[driver])]
    upwards = (order.op.compares == "lt") == (sides[0] is following[driver])
    used = {id(order), *(id(v.operation) for v in (*following, *order.operands))}
    others = [o for o in body.operations if id(o) not in used and not o.op.is_constant]
    fits = limit in body.arguments[carried:] and kinds(limit.type) == kinds(following[driver].type)
    if others or not fits or known[driver] * (1 if upwards else -1) <= 0:
        return None
    outside = loop.operands[1 + body.arguments.index(limit)]
    return InductionLoop(known, settled, driver, outside, upwards)


def _counts(t: Type) -> bool:
    return isinstance(t, (ScalarType, TensorType)) and len(kinds(t)) == 1 and kinds(t)[0] in (*_INTS, *_WHOLE)


def _unchanged(value: Value) -> Value:
    """Return the Python number of which a value is the tensor, or the value."""
    made = value.operation
    if made is None or not isinstance(made.op, ScalarToTensor) or kinds(made.operands[0].type) != kinds(value.type):
        return value
    return made.operands[0]


def _step(argument: Value, following: Value, loop: Operation) -> int | None:
    """Return the whole number that an iteration adds to a carried value; None where it does not."""
    made = following.operation
    if following is argument:
        return 0
    if made is None or not made.op.adds_second or kinds(following.type) != kinds(argument.type):
        return None
    left, right = made.operands
    if right is argument and made.op.adds_second > 0:
        left, right = right, left
    step = _literal(right, loop) if left is argument and kinds(right.type) == kinds(argument.type) else None
    if step is None or (step == 0 and kinds(argument.type)[0] in _WHOLE):  # -0.0 + 0.0 is 0.0
        return None
    return step * made.op.adds_second


def _settled(argument: Value, following: Value, loop: Operation) -> int | None:
    """Return the int that each iteration leaves in the place of a carried value; None where that is no constant int."""
    kind = kinds(following.type)
    number = _constant(following, loop) if kind == kinds(argument.type) and kind[0] in _INTS else None
    return None if number is None else int(number)


def _literal(value: Value, loop: Operation) -> int | None:
    """Return the whole number that a value is in every iteration; None where iterations may change it, or only a run
    tells it.
    """
    number = _constant(value, loop)
    if number is None or not float(number).is_integer() or abs(number) > _LONGEST_STEP:
        return None
    return int(number)


def _constant(value: Value, loop: Operation) -> Any:
    """Return the one number that a value is in every iteration; None where there is none."""
    if value.operation is None:
        number = loop.blocks[0].arguments.index(value)
        if number < loop.attributes["carried"]:  # what it begins with is not what it is in the next iteration
            return None
        value = loop.operands[1 + number]  # what stands outside of the loop
    made = value.operation
    if made is None or not made.op.is_constant:
        return None
    constant = np.asarray(made.attributes["value"])
    return constant.item() if constant.size == 1 else None


def write_closed_form(
    w: FunctionEmitter,
    loop: Operation,
    predicate: str,
    operands: Sequence[Components],
    kept: Sequence[Sequence[str]],
    done: str,
) -> None:
    """Write a leap over all iterations of a loop that counts, where its numbers are fit for that."""
    found = induction_loop(loop)
    if found is None:
        return
    f, given = w.f, dict(zip(loop.operands, operands, strict=True))
    counters = [(kinds(v.type)[0], c[0]) for v, c in zip(loop.results, operands[1:], strict=False)]
    kind, start = counters[found.driver]
    first, whole = _whole(w, kind, start)
    last, near = _whole(w, kind, given[found.limit][0], "ceil" if found.upwards else "floor")
    way, step = minus(f, last, first) if found.upwards else minus(f, first, last), abs(found.steps[found.driver])
    iterations = most(f, f.value(f"sdiv i64 {plus(f, way, step - 1)}, {step}"), 1)
    fine, made = all_of(f, predicate, whole, near, compare(f, "ule", iterations, _MOST_ITERATIONS)), list[str]()
    for (kind, start), step in zip(counters, found.steps, strict=True):
        begin, whole = _whole(w, kind, start)
        register, fits = _as_kind(f, kind, plus(f, begin, times(f, iterations, step)))
        fine = all_of(f, fine, whole, fits) if step else fine
        made.append(str(found.settled.get(len(made), register if step else start)))
    leapt, run = f.label("leapt"), f.label("run")
    f.branch(fine, leapt, run)
    f.start(leapt)
    for (slot,), register, (kind, _) in zip(kept, made, counters, strict=True):
        f.store(kind, register, slot)
    f.jump(done)
    f.start(run)


def _whole(w: FunctionEmitter, kind: str, number: str, rounding: str = "") -> tuple[str, str]:
    """Return a number as an i64, rounded where that is said, and whether it is a whole number far from overflow."""
    f = w.f
    if kind == "i32":
        return f.value(f"sext i32 {number} to i64"), "true"
    if kind == "i64":
        return number, compare(f, "ule", plus(f, number, _LARGE), 2 * _LARGE)
    lanes, dtype = VectorType(f, w.module, 1), {"float": float32, "double": float64}[kind]
    near = lanes.intrinsic(rounding or "trunc", dtype, number)
    size = lanes.intrinsic("fabs", dtype, near)
    fine = f.value(f"fcmp ole {kind} {size}, {double(_WHOLE[kind])}")
    if not rounding:
        fine = all_of(f, fine, f.value(f"fcmp oeq {kind} {near}, {number}"))
    return f.value(f"fptosi {kind} {f.value(f'select i1 {fine}, {kind} {near}, {kind} 0.0')} to i64"), fine


def _as_kind(f: LLVMFunction, kind: str, number: str) -> tuple[str, str]:
    """Return an i64 as what a loop carries, and whether it is the same number there."""
    if kind == "i64":
        return number, "true"
    if kind == "i32":
        made = f.value(f"trunc i64 {number} to i32")
        return made, compare(f, "eq", f.value(f"sext i32 {made} to i64"), number)
    fits = compare(f, "ule", plus(f, number, _WHOLE[kind]), 2 * _WHOLE[kind])
    return f.value(f"sitofp i64 {number} to {kind}"), fits
