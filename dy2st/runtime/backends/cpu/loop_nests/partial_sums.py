"""What blocks of rows have added up, made one: a function that nests with reductions over rows share.

    void @dy2st.add_up.<monoid>.<dtype>.<lanes>(ptr result, ptr sums, i64 number, i64 length)

`sums` has `number` rows of `length` elements; they are taken together in their order.
"""

from __future__ import annotations

from dy2st.dtypes import DType
from dy2st.ir.traits import Monoid
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction, LLVMModule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import rounded_down, times
from dy2st.runtime.backends.cpu.vector_ops.load_store import ElementAccess, RowPosition
from dy2st.runtime.backends.cpu.vector_ops.reductions import combined, identity
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

_PARAMETERS = (("ptr", "%result"), ("ptr", "%sums"), ("i64", "%number"), ("i64", "%length"))


def add_up(module: LLVMModule, monoid: Monoid, dtype: DType, count: int) -> str:
    """Return the name of the function for one reduction, `count` elements at a time."""
    name = f"dy2st.add_up.{monoid}.{dtype.name}.{count}"
    if name in module:
        return name
    f = LLVMFunction(name, _PARAMETERS, also="nounwind")
    whole = rounded_down(f, "%length", count)
    for lanes, start, stop in ((count, "0", whole), (1, whole, "%length"))[: 1 + (count > 1)]:
        with f.loop(stop, lanes, start) as i:
            _one_place(f, module, monoid, dtype, lanes, i)
    f.ret()
    return module.add(name, f.text())


def _one_place(f: LLVMFunction, module: LLVMModule, monoid: Monoid, dtype: DType, count: int, i: str) -> None:
    """Write what stands at one place of all rows, together."""
    lanes, elements = VectorType(f, module, count), ElementAccess(f, module, count)
    kind = lanes.of(dtype)
    total = f.slot(kind)
    f.store(kind, lanes.constant(identity(monoid, dtype), dtype), total)
    with f.loop("%number") as row:
        base = f.offset("%sums", times(f, row, "%length", dtype.itemsize))
        more = elements.load(RowPosition(base, i, dtype))
        f.store(kind, combined(lanes, monoid, dtype, f.load(kind, total), more), total)
    elements.store(RowPosition("%result", i, dtype), f.load(kind, total))
