"""Tensors made from numbers: `arange`, `linspace`, `eye`, `one_hot`, `diagonal_embed`."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.dtypes import DType, bool_, float64, int64
from dy2st.ir.program import Operation, tensor_type
from dy2st.ir.types import ScalarType
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.emitter.shared_routines import clear, each_element, routine
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, least, minus, most, plus, times
from dy2st.runtime.backends.cpu.llvm_ir.literals import element
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, element_kind, in_register, is_native
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import allocate, are_ints, extents, product
from dy2st.runtime.backends.cpu.vector_ops.elementwise import converted
from dy2st.runtime.backends.cpu.vector_ops.load_store import load_element, store_element
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

Made = Sequence[Components]
_MOST = 2**40
"""How many elements a made tensor has at most; `eval` says that there is no memory for more."""


@rule("arange")
def arange(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write start + i * step, of ints or of floats; `eval` refuses a step of 0."""
    f, dtype = w.f, operation.attributes["dtype"]
    if not is_native(dtype) or dtype.is_bool:
        return host_rule(w, operation, operands)
    if not are_ints(operation.operands):
        return _arange_of_floats(w, operation, operands)
    start, stop, step = (c[0] for c in operands)
    near = [compare(f, "ult", plus(f, n, 2**61), 2**62) for n in (start, stop, step)]
    up = compare(f, "sgt", step, 0)
    length = f.value(f"select i1 {up}, i64 {minus(f, stop, start)}, i64 {minus(f, start, stop)}")
    size = f.value(f"select i1 {up}, i64 {step}, i64 {minus(f, 0, step)}")
    iterations = f.value(f"sdiv i64 {plus(f, length, minus(f, size, 1))}, {most(f, size, 1)}")
    count = most(f, 0, iterations)
    return _progression(w, operation, operands, count, [*near, compare(f, "ne", step, 0)], int64)


def _arange_of_floats(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    f = w.f
    if any(not isinstance(v.type, ScalarType) or v.type.kind == "bool" for v in operation.operands):
        return host_rule(w, operation, operands)
    start, stop, step = numbers = _as_floats(w, operation, operands)
    span = f.value(f"fdiv double {f.value(f'fsub double {stop}, {start}')}, {step}")
    iterations = f.call("double", "@llvm.ceil.f64", f"double {span}")
    w.unit.module.add("llvm.ceil.f64", "declare double @llvm.ceil.f64(double)")
    fine = [
        f.value(f"fcmp olt double {iterations}, {element(_MOST, float64)}"),
        f.value(f"fcmp ogt double {iterations}, {element(-_MOST, float64)}"),
        f.value(f"fcmp one double {step}, 0.0"),
    ]
    safe = f.value(f"select i1 {all_of(f, *fine)}, double {iterations}, double 0.0")
    count = most(f, 0, f.value(f"fptosi double {safe} to i64"))
    return _progression(w, operation, operands, count, fine, float64, numbers)


def _as_floats(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> list[str]:
    """Return numbers of Python as floats."""
    return [
        c[0] if v.type.kind == "float" else w.f.value(f"sitofp i64 {c[0]} to double")  # type: ignore[union-attr]
        for v, c in zip(operation.operands, operands, strict=True)
    ]


def _progression(
    w: FunctionEmitter, operation: Operation, operands: list[Components], count: str, fine: list[str], within: DType,
    numbers: Sequence[str] = (),
) -> Made:  # fmt: skip
    """Write start + i * step in the numbers of `within`, then rounded."""
    f, dtype = w.f, operation.attributes["dtype"]
    start, _, step = numbers or [c[0] for c in operands]
    kind, word = element_kind(within), "f" * within.is_floating

    def terms(g: LLVMFunction) -> None:
        def term(v: VectorType, i: str) -> str:
            scaled = g.value(f"{word}mul {v.of(within)} {_places(v, i, within)}, {v.spread('%step', within)}")
            total = g.value(f"{word}add {v.of(within)} {scaled}, {v.spread('%start', within)}")
            return converted(v, total, within, dtype)

        each_element(g, w.unit.kernels, w.unit.target, dtype, "%to", "%count", term)

    def fast() -> Made:
        made = allocate(w, dtype, [count])
        parameters = [("ptr", "%to"), ("i64", "%count"), (kind, "%start"), (kind, "%step")]
        name = routine(w, f"arange.{within.name}.{dtype.name}", parameters, terms)
        f.call("void", name, f"ptr {made[1]}", f"i64 {count}", f"{kind} {start}", f"{kind} {step}")
        return [made]

    return w.guarded(operation, operands, all_of(f, *fine, compare(f, "ult", count, _MOST)), fast)


def _places(v: VectorType, first: str, within: DType) -> str:
    """Write the numbers first, first + 1, ... in as many lanes as there are."""
    return converted(v, v.line(first), int64, within)


@rule("linspace")
def linspace(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write equal steps; the last number is `stop` itself. `eval` makes none, or refuses."""
    f, dtype = w.f, operation.attributes["dtype"]
    kinds = [v.type.kind if isinstance(v.type, ScalarType) else "" for v in operation.operands]
    if not is_native(dtype) or dtype.is_bool or not {*kinds[:2]} <= {"int", "float"} or kinds[2] != "int":
        return host_rule(w, operation, operands)
    start, stop, _ = _as_floats(w, operation, operands)
    count = operands[2][0]

    def terms(g: LLVMFunction) -> None:
        steps = g.value(f"sitofp i64 {minus(g, '%count', 1)} to double")
        length = g.value("fsub double %stop, %start")
        step = g.value(f"fdiv double {length}, {steps}")

        def term(v: VectorType, i: str) -> str:
            place, kind = _places(v, i, float64), v.of(float64)
            near = g.value(f"fmul {kind} {place}, {v.spread(step, float64)}")
            part = g.value(f"fdiv {kind} {place}, {v.spread(steps, float64)}")
            tiny = g.value(f"fmul {kind} {part}, {v.spread(length, float64)}")
            nothing = v.spread(g.value(f"fcmp oeq double {step}, 0.0"), bool_)
            moved = v.select(nothing, tiny, near, float64)
            return converted(v, g.value(f"fadd {kind} {moved}, {v.spread('%start', float64)}"), float64, dtype)

        each_element(g, w.unit.kernels, w.unit.target, dtype, "%to", "%count", term)
        ends = converted(VectorType(g, w.unit.kernels, 1), "%stop", float64, dtype)
        single = compare(g, "eq", "%count", 1)
        first = converted(VectorType(g, w.unit.kernels, 1), "%start", float64, dtype)
        last = g.value(f"select i1 {single}, {element_kind(dtype)} {first}, {element_kind(dtype)} {ends}")
        store_element(g, dtype, last, g.offset("%to", times(g, minus(g, "%count", 1), dtype.itemsize)))

    def fast() -> Made:
        made = allocate(w, dtype, [count])
        parameters = [("ptr", "%to"), ("i64", "%count"), ("double", "%start"), ("double", "%stop")]
        name = routine(w, f"linspace.{dtype.name}", parameters, terms)
        f.call("void", name, f"ptr {made[1]}", f"i64 {count}", f"double {start}", f"double {stop}")
        return [made]

    return w.guarded(operation, operands, compare(f, "ult", minus(f, count, 1), _MOST), fast)


@rule("eye")
def eye(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write zeros, and ones on the diagonal."""
    f, dtype = w.f, operation.attributes["dtype"]
    if not is_native(dtype) or not are_ints(operation.operands):
        return host_rule(w, operation, operands)
    (rows,), (columns,) = operands

    def fast() -> Made:
        made = allocate(w, dtype, [rows, columns])
        clear(w, made[1], product(w, [rows, columns, str(dtype.itemsize)]))
        with f.loop(least(f, rows, columns), hint="one") as i:
            place = plus(f, times(f, i, columns), i)
            store_element(f, dtype, element(1, dtype), f.offset(made[1], times(f, place, dtype.itemsize)))
        return [made]

    fine = all_of(f, *(compare(f, "ult", extent, _MOST) for extent in (rows, columns)))
    return w.guarded(operation, operands, fine, fast)


@rule("one_hot")
def one_hot(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write zeros, and a one at each class; `eval` says which number is no class."""
    (value, *rest), f, dtype = operation.operands, w.f, operation.attributes["dtype"]
    t, classes = tensor_type(value), operation.attributes["num_classes"]
    if not is_native(dtype) or not is_native(t.dtype) or not are_ints(rest):
        return host_rule(w, operation, operands)
    classes = operands[1][0] if classes is None else classes
    shape = [] if in_register(t) else extents(value, operands[0])
    count = product(w, shape)

    def place(i: str) -> str:
        number = operands[0][0]
        if not in_register(t):
            number = load_element(f, t.dtype, f.offset(operands[0][1], times(f, i, t.dtype.itemsize)))
        return converted(VectorType(f, w.module, 1), number, t.dtype, int64)

    inside = f.slot("i1")
    f.store("i1", all_of(f, compare(f, "sgt", classes, 0), compare(f, "ult", classes, _MOST)), inside)
    with f.loop(count, hint="check") as i:
        f.store("i1", all_of(f, f.load("i1", inside), compare(f, "ult", place(i), classes)), inside)

    def fast() -> Made:
        made = allocate(w, dtype, [*shape, str(classes)])
        clear(w, made[1], product(w, [count, str(classes), str(dtype.itemsize)]))
        with f.loop(count, hint="one") as i:
            at = plus(f, times(f, i, classes), place(i))
            store_element(f, dtype, element(1, dtype), f.offset(made[1], times(f, at, dtype.itemsize)))
        return [made]

    return w.guarded(operation, operands, f.load("i1", inside), fast)


@rule("diagonal_embed")
def diagonal_embed(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write zeros, and the operand on the diagonal; `eval` says that it is not as long."""
    value, f, offset = operation.operands[0], w.f, operation.attributes["offset"]
    t = tensor_type(value)
    if not is_native(t.dtype) or in_register(t) or not are_ints(operation.operands[1:]):
        return host_rule(w, operation, operands)
    shape, dims = extents(value, operands[0]), iter(operands[1:])
    target = [next(dims)[0] if e is None else str(e) for e in operation.attributes["shape"]]
    rows, columns = (a % len(target) for a in operation.attributes["axes"])
    below, right = max(-offset, 0), max(offset, 0)
    length = most(f, 0, least(f, minus(f, target[rows], below), minus(f, target[columns], right)))
    rest = [i for i in range(len(target)) if i not in (rows, columns)]
    fine = [compare(f, "eq", length, shape[-1])]
    fine += [compare(f, "eq", target[axis], extent) for axis, extent in zip(rest, shape, strict=False)]
    fine += [compare(f, "ult", extent, _MOST) for extent in target]

    def fast() -> Made:
        made = allocate(w, t.dtype, target)
        size = t.dtype.itemsize
        clear(w, made[1], product(w, [*target, str(size)]))
        apart = [product(w, [*target[axis + 1 :]]) for axis in range(len(target))]

        def write(axes: list[int], source: str, at: str) -> None:
            if axes:
                with f.loop(target[axes[0]], hint="embed") as i:
                    number = plus(f, times(f, source, target[axes[0]]), i)
                    write(axes[1:], number, plus(f, at, times(f, i, apart[axes[0]])))
                return
            with f.loop(length, hint="diagonal") as i:
                number = load_element(
                    f, t.dtype, f.offset(operands[0][1], times(f, plus(f, times(f, source, length), i), size))
                )
                place = plus(f, at, times(f, i, plus(f, apart[rows], apart[columns])))
                store_element(f, t.dtype, number, f.offset(made[1], times(f, place, size)))

        write(rest, "0", plus(f, times(f, apart[rows], below), times(f, apart[columns], right)))
        return [made]

    return w.guarded(operation, operands, all_of(f, *fine), fast)
