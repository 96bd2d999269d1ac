"""A scalar function over the lanes of vectors, one after the other: for rare cases, out of line."""

from __future__ import annotations

from dy2st.runtime.backends.cpu.libm.core.emitter import FormulaEmitter, VectorValue
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition


def each_lane(e: FormulaEmitter, scalar: Definition, *operands: VectorValue) -> VectorValue:
    """Write `scalar` (of doubles) of each lane of the operands (f64)."""
    if e.lanes == 1:
        return e.call(scalar, "f64", *operands)
    return e.call(_loop(scalar, e.lanes, len(operands)), "f64", *operands)


def _loop(scalar: Definition, lanes: int, arity: int) -> Definition:
    name, vector = f"{scalar.name}.{lanes}", f"<{lanes} x double>"
    parameters = ", ".join(f"{vector} %x{k}" for k in range(arity))
    reads = "\n".join(f"  %lane{k} = extractelement {vector} %x{k}, i32 %i" for k in range(arity))
    arguments = ", ".join(f"double %lane{k}" for k in range(arity))
    text = f"""define internal {vector} @{name}({parameters}) cold noinline nounwind {{
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %so_far = phi {vector} [ zeroinitializer, %entry ], [ %more, %loop ]
{reads}
  %y = call double @{scalar.name}({arguments})
  %more = insertelement {vector} %so_far, double %y, i32 %i
  %next = add i32 %i, 1
  %again = icmp ult i32 %next, {lanes}
  br i1 %again, label %loop, label %done
done:
  ret {vector} %more
}}"""
    return Definition(name, text, (scalar,))
