"""Reductions that no loop nest takes: over axes in the middle, over axes that are apart, of one number, over no axis.

Axes side by side are one run along an axis (scans.py), the last ones first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from dy2st.dtypes import DType, int64
from dy2st.ir.opdef import OpDef, lookup
from dy2st.ir.program import Operation, tensor_type
from dy2st.ir.traits import Monoid
from dy2st.ir.types import TensorType
from dy2st.ops.reduce.reduction import Max, Mean, Min, Top
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, in_register, is_native
from dy2st.runtime.backends.cpu.ops.matrix.complex_products import is_complex, whole
from dy2st.runtime.backends.cpu.ops.matrix.scans import Scan, run_scan
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import allocate, extents, product
from dy2st.runtime.backends.cpu.vector_ops.elementwise import converted
from dy2st.runtime.backends.cpu.vector_ops.load_store import load_element
from dy2st.runtime.backends.cpu.vector_ops.reductions import combined, identity
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

Made = Sequence[Components]


@rule("sum", "mean", "max", "top", "min", "prod", "all", "any")
def reduce(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a reduction, run after run; `eval` refuses the largest of nothing."""
    (value,), f = operation.operands, w.f
    t, made = value.type, tensor_type(operation.results[0])
    if operation.op.monoid == "mul" and operation.attributes["axis"] and is_complex(value):
        axes = sorted({a % tensor_type(value).rank for a in operation.attributes["axis"]})
        return [whole(w, value, operands[0], axes, _left(operation, extents(value, operands[0]), axes))]
    if not isinstance(t, TensorType) or not is_native(t.dtype) or not is_native(made.dtype):
        return host_rule(w, operation, operands)
    if in_register(t):
        return [(converted(VectorType(f, w.module, 1), operands[0][0], t.dtype, made.dtype),)]
    shape = extents(value, operands[0])
    if in_register(made) and operation.op.monoid == "mul":
        return [(_product_of_all(w, t.dtype, made.dtype, operands[0][1], product(w, shape)),)]
    if in_register(made):
        return host_rule(w, operation, operands)
    axes = sorted({a % t.rank for a in operation.attributes["axis"]})
    kept = _left(operation, shape, axes)

    def fast() -> Made:
        dtype, components, block = t.dtype, operands[0], "null"
        left = list(shape)
        for run in _runs(axes) or [range(t.rank, t.rank)]:
            sizes = [product(w, left[: run.start]), product(w, [left[i] for i in run]), product(w, left[run.stop :])]
            for i in run:
                left[i] = "1"
            result = allocate(w, made.dtype, left)
            _run_reduction(w, operation.op, dtype, made.dtype, (components[1], result[1]), sizes)
            f.call("void", "@dy2st.release", "ptr %context", f"ptr {block}")
            dtype, components, block = made.dtype, result, result[0]
        return [(*components[:2], *kept)]

    if not isinstance(operation.op, (Max, Min)) or isinstance(operation.op, Top):
        return fast()
    fine = all_of(f, "true", *(compare(f, "sgt", shape[i], 0) for i in axes))
    return w.guarded(operation, operands, fine, fast)


def _run_reduction(
    w: FunctionEmitter, op: OpDef, source: DType, made: DType, places: tuple[str, str], sizes: list[str]
) -> None:
    """Write a reduction of one run of axes, in the order of the elements, between two places in memory."""
    step, finish = partial(_step, op.monoid, source, made), _mean if isinstance(op, Mean) else None
    scan = Scan((source,), (made,), (identity(op.monoid, made),), step, (made,), at_end=True, finish=finish)
    run_scan(w, scan, f"{op.name}.{source.name}.{made.name}", places[:1], places[1:], sizes)


def _product_of_all(w: FunctionEmitter, source: DType, made: DType, data: str, count: str) -> str:
    """Write the product of so many elements, one after the other: in another order it may be another infinity or 0."""
    room = w.f.slot("i64")
    _run_reduction(w, lookup("prod"), source, made, (data, room), ["1", count, "1"])
    return load_element(w.f, made, room)


def _left(operation: Operation, shape: Sequence[str], axes: Sequence[int]) -> list[str]:
    """Return the extents of what is left of a shape without axes."""
    if operation.attributes["keepdim"]:
        return ["1" if i in axes else e for i, e in enumerate(shape)]
    return [e for i, e in enumerate(shape) if i not in axes]


def _runs(axes: Sequence[int]) -> list[range]:
    """Return ascending axes as ranges of neighbours, the last first.

    >>> _runs([0, 2, 3])
    [range(2, 4), range(0, 1)]
    """
    runs: list[range] = []
    for axis in reversed(axes):
        if runs and runs[-1].start == axis + 1:
            runs[-1] = range(axis, runs[-1].stop)
        else:
            runs.append(range(axis, axis + 1))
    return runs


def _step(
    monoid: Monoid, source: DType, made: DType, v: VectorType, kept: list[str], read: list[str], _: str
) -> tuple[list[str], list[str]]:
    return [combined(v, monoid, made, converted(v, read[0], source, made), kept[0])], []


def _mean(v: VectorType, dtype: DType, register: str, count: str) -> str:
    divisor = v.spread(converted(VectorType(v.f, v.module, 1), count, int64, dtype), dtype)
    return v.f.value(f"fdiv {v.of(dtype)} {register}, {divisor}")
