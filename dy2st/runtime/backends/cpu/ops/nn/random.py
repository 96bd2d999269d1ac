"""Random tensors: the bits of `eval`, by the kernels of vector_ops/philox.py or by its functions within a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dy2st.dtypes import DType, int64
from dy2st.ir.program import Operation, tensor_type
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.emitter.shared_routines import each_element, routine, split_routine
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, minus, plus, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, in_register, is_native, is_small
from dy2st.runtime.backends.cpu.loop_nests.parallel_schedule import RANGE_UNIT, bounds, units
from dy2st.runtime.backends.cpu.ops.matrix.sorting import RECORD, sorting_routine
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import allocate, allocate_bytes, are_ints, extents, product
from dy2st.runtime.backends.cpu.vector_ops.elementwise import converted
from dy2st.runtime.backends.cpu.vector_ops.load_store import ElementAccess, RowPosition, load_element, store_element
from dy2st.runtime.backends.cpu.vector_ops.philox import random_words64
from dy2st.runtime.backends.cpu.vector_ops.random import FLOATS, chosen, drawn, waited, whole
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

Made = Sequence[Components]
_COST = 30_000
"""Picoseconds that a vector of numbers takes, and what is made of them."""


@rule("random_uniform", "random_normal")
def draw(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a draw into memory."""
    f, made = w.f, tensor_type(operation.results[0])
    if made.dtype.name not in FLOATS:
        return host_rule(w, operation, operands)
    seed, number = (c[0] for c in operands[:2])
    shape = _shape(w, operation, operands[2:])
    room = _room(w, operation, shape)
    kernel = w.library(f"{operation.op.name.replace('_', '.')}.{FLOATS[made.dtype.name]}.fill")
    f.call("void", kernel, f"ptr {room[1]}", f"i64 {product(w, shape)}", f"i64 {seed}", f"i64 {number}")
    return _made(w, operation, room)


def _shape(w: FunctionEmitter, operation: Operation, dims: Sequence[Components]) -> list[str]:
    rest = iter(dims)
    shape = [next(rest)[0] if e is None else str(e) for e in operation.attributes["shape"]]
    for extent in shape:
        w.demand(compare(w.f, "ult", extent, 2**40))
    return shape


def _room(w: FunctionEmitter, operation: Operation, shape: Sequence[str]) -> Components:
    """Return where a draw is to stand: in new memory, or on the stack where it is one number or a small tensor."""
    made = tensor_type(operation.results[0])
    if is_small(made):
        return w.stack_room(made)
    return ("", w.f.slot("i64", 8)) if in_register(made) else allocate(w, made.dtype, shape)


def _made(w: FunctionEmitter, operation: Operation, room: Components) -> Made:
    made = tensor_type(operation.results[0])
    return [(load_element(w.f, made.dtype, room[1]),)] if in_register(made) else [room]


Numbers = Callable[[VectorType, str], str]


def _drawn(
    w: FunctionEmitter, name: str, dtype: DType, room: str, count: str, given: Sequence[tuple[str, str, str]],
    numbers: Callable[[LLVMFunction], Numbers],
) -> None:  # fmt: skip
    """Write a call of a loop over `count` elements of a draw; `given` are (kind, parameter, argument).

    An element depends on its number alone, so the loop is split between threads.
    """
    target = w.unit.target
    cost = RANGE_UNIT // target.lanes(dtype.itemsize) * _COST

    def write(g: LLVMFunction) -> None:
        first, stop = bounds(g, "%count", RANGE_UNIT, "%from", "%to")
        start, element = g.offset("%out", times(g, first, dtype.itemsize)), numbers(g)
        each_element(g, w.unit.kernels, target, dtype, start, minus(g, stop, first),
                     lambda v, i: element(v, plus(v.f, i, first)))  # fmt: skip

    parameters = [("ptr", "%out"), ("i64", "%count"), *((kind, parameter) for kind, parameter, _ in given)]
    symbol = split_routine(w, name, parameters, lambda g: (units(g, "%count", RANGE_UNIT), str(cost)), write)
    arguments = (f"{kind} {argument}" for kind, _, argument in given)
    w.f.call("void", symbol, f"ptr {room}", f"i64 {count}", *arguments)


def _seeds(operands: Sequence[Components]) -> list[tuple[str, str, str]]:
    return [("i64", "%seed", operands[0][0]), ("i64", "%draw", operands[1][0])]


@rule("random_exponential")
def exponential(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write -log(1 - u) of uniform float64 numbers."""
    made = tensor_type(operation.results[0])
    if made.dtype.name not in FLOATS:
        return host_rule(w, operation, operands)
    shape = _shape(w, operation, operands[2:])
    room = _room(w, operation, shape)

    def numbers(g: LLVMFunction) -> Numbers:
        return lambda v, i: waited(v, made.dtype, "%seed", "%draw", i)

    name = f"random.exponential.{made.dtype.name}"
    _drawn(w, name, made.dtype, room[1], product(w, shape), _seeds(operands), numbers)
    return _made(w, operation, room)


@rule("random_int")
def integers(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write whole numbers of a range; `eval` says that there are none."""
    f, made = w.f, tensor_type(operation.results[0])
    if not is_native(made.dtype) or not are_ints(operation.operands):
        return host_rule(w, operation, operands)
    low, high = operands[2][0], operands[3][0]
    span = minus(f, high, low)

    def numbers(g: LLVMFunction) -> Numbers:
        return lambda v, i: whole(v, made.dtype, "%seed", "%draw", "%low", "%high", i)

    def fast() -> Made:
        shape = _shape(w, operation, operands[4:])
        room = _room(w, operation, shape)
        given = [*_seeds(operands), ("i64", "%low", low), ("i64", "%high", high)]
        _drawn(w, f"random.int.{made.dtype.name}", made.dtype, room[1], product(w, shape), given, numbers)
        return _made(w, operation, room)

    return w.guarded(operation, operands, all_of(f, compare(f, "slt", low, high), compare(f, "sgt", span, 0)), fast)


@rule("random_bernoulli")
def bernoulli(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write 1 where a uniform number is below the probability."""
    f, value = w.f, operation.operands[2]
    t = tensor_type(value)
    if t.dtype.name not in FLOATS:
        return host_rule(w, operation, operands)
    shape, source = [], operands[2][1] if not in_register(t) else f.slot("i64")
    if in_register(t):
        store_element(f, t.dtype, operands[2][0], source)
    else:
        shape = extents(value, operands[2])
    room = _room(w, operation, shape)

    def numbers(g: LLVMFunction) -> Numbers:
        def number(v: VectorType, i: str) -> str:
            limit = ElementAccess(g, w.unit.kernels, v.count).load(RowPosition("%p", i, t.dtype))
            return chosen(v, t.dtype, limit, "%seed", "%draw", i)

        return number

    given = [("ptr", "%p", source), *_seeds(operands)]
    _drawn(w, f"random.bernoulli.{t.dtype.name}", t.dtype, room[1], product(w, shape), given, numbers)
    return _made(w, operation, room)


@rule("random_permutation")
def permutation(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the order of random keys."""
    f, dtype, count = w.f, operation.attributes["dtype"], operands[2][0]
    if not is_native(dtype) or not are_ints(operation.operands):
        return host_rule(w, operation, operands)
    w.demand(compare(f, "ult", count, 2**40))
    made = allocate(w, dtype, [count])
    block, records = allocate_bytes(w, times(f, count, 2 * RECORD))
    sorted_ = sorting_routine(w)

    def write(g: LLVMFunction) -> None:
        v = VectorType(g, w.unit.kernels, 1)
        with g.loop("%count", hint="draw") as i:
            record = g.offset("%records", times(g, i, RECORD))
            word = drawn(v, random_words64(1), int64, "%seed", "%draw", i)
            g.store("i64", g.value(f"xor i64 {word}, {-(2**63)}"), record)  # unsigned order as that of signed numbers
            g.store("i64", i, g.offset(record, 8))
        g.call("void", sorted_, "ptr %records", "i64 %count", "i64 %count")
        with g.loop("%count", hint="write") as i:
            place = g.load("i64", g.offset(g.offset("%records", times(g, i, RECORD)), 8))
            store_element(g, dtype, converted(v, place, int64, dtype), g.offset("%to", times(g, i, dtype.itemsize)))

    parameters = [("ptr", "%to"), ("ptr", "%records"), *(("i64", f"%{n}") for n in ("count", "seed", "draw"))]
    name = routine(w, f"random.permutation.{dtype.name}", parameters, write)
    numbers = (f"i64 {n}" for n in (count, operands[0][0], operands[1][0]))
    f.call("void", name, f"ptr {made[1]}", f"ptr {records}", *numbers)
    f.call("void", "@dy2st.release", "ptr %context", f"ptr {block}")
    return [made]
