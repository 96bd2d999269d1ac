"""Order along one axis: `sort`, `argsort`, `topk`.

A line is brought into records of two numbers: a key, whose order as a whole number is that of the elements (NaN above
all others, both zeros alike; turned round for descending order), and the place. Merging keeps equal keys in order.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.dtypes import DType, int64
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ops.reduce.sorting import ArgSort
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.emitter.shared_routines import routine, split_routine
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare, least, minus, most, plus, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, element_kind, in_register, is_native
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import allocate, allocate_bytes, extents, product, thread_count
from dy2st.runtime.backends.cpu.vector_ops.elementwise import converted
from dy2st.runtime.backends.cpu.vector_ops.load_store import load_element, store_element
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

Made = Sequence[Components]
RECORD = 16
_FEW = 16
"""Up to so many of the first elements are found in one run through the line."""

_COST = 20_000
"""How many picoseconds an element takes, roughly."""


@rule("sort", "argsort")
def order(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the elements in order, or their places."""
    (value,) = operation.operands
    t = tensor_type(value)
    if in_register(t) or not is_native(t.dtype):
        return host_rule(w, operation, operands)
    shape, axis = extents(value, operands[0]), operation.attributes["axis"] % t.rank
    places = isinstance(operation.op, ArgSort)
    made = allocate(w, int64 if places else t.dtype, shape)
    rooms = ["null", made[1]] if places else [made[1], "null"]
    _ordered(w, value, operands[0][1], rooms, shape, axis, shape[axis], operation.attributes["descending"])
    return [made]


@rule("topk")
def first_ones(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the first elements of a line and their places; `eval` says that there are not so many."""
    (value,), f = operation.operands, w.f
    t, k = tensor_type(value), operation.attributes["k"]
    if in_register(t) or not is_native(t.dtype):
        return host_rule(w, operation, operands)
    shape, axis = extents(value, operands[0]), operation.attributes["axis"] % t.rank
    kept = [*shape[:axis], str(k), *shape[axis + 1 :]]

    def fast() -> Made:
        made = [allocate(w, dtype, kept) for dtype in (t.dtype, int64)]
        _ordered(w, value, operands[0][1], [c[1] for c in made], shape, axis, str(k), operation.attributes["largest"])
        return made

    return w.guarded(operation, operands, compare(f, "sge", shape[axis], k), fast)


def _ordered(
    w: FunctionEmitter, value: Value, source: str, rooms: Sequence[str], shape: Sequence[str], axis: int, kept: str,
    descending: bool,
) -> None:  # fmt: skip
    """Write the first `kept` elements of each line, in order, to one room, and their places to the other."""
    dtype, f, kernels = tensor_type(value).dtype, w.f, w.unit.kernels
    few = kept.isdigit() and kept != shape[axis] and 0 < int(kept) <= _FEW
    direction = "down" if descending else "up"
    parameters = [("ptr", "%x"), ("ptr", "%y"), ("ptr", "%places"), ("ptr", "%records"),
                  *(("i64", f"%{n}") for n in ("outer", "count", "inner", "kept", "room", "threads"))]  # fmt: skip
    if few:
        sorted_ = routine(w, "first.records", [("ptr", "%a"), ("i64", "%count"), ("i64", "%kept")], _insert)
    else:
        sorted_ = sorting_routine(w)

    def write(g: LLVMFunction) -> None:
        v, records = VectorType(g, kernels, 1), g.offset("%records", times(g, "%who", "%room"))
        with g.loop("%to", start="%from", hint="outer") as o, g.loop("%inner", hint="inner") as j:
            with g.loop("%count", hint="read") as i:
                element = load_element(g, dtype, _at(g, dtype, "%x", o, i, j, "%count"))
                record = g.offset(records, times(g, i, RECORD))
                g.store("i64", _key(v, dtype, element, descending), record)
                g.store("i64", i, g.offset(record, 8))
            g.call("void", sorted_, f"ptr {records}", "i64 %count", "i64 %kept")
            with g.loop("%kept", hint="write") as i:
                place = g.load("i64", g.offset(g.offset(records, times(g, i, RECORD)), 8))
                if rooms[0] != "null":
                    element = load_element(g, dtype, _at(g, dtype, "%x", o, place, j, "%count"))
                    store_element(g, dtype, element, _at(g, dtype, "%y", o, i, j, "%kept"))
                if rooms[1] != "null":
                    g.store("i64", place, _at(g, int64, "%places", o, i, j, "%kept"))

    made = "".join(letter for letter, room in zip("yp", rooms, strict=True) if room != "null")
    word = f"order.{dtype.name}.{direction}.{made}{'.few' * few}"
    name = split_routine(w, word, parameters, _units, write, "%threads")
    room, threads = product(w, [shape[axis], str(2 * RECORD)]), thread_count(w)
    block, records = allocate_bytes(w, times(f, room, threads))
    sizes = [product(w, shape[:axis]), shape[axis], product(w, shape[axis + 1 :]), kept, room, threads]
    f.call("void", name, *(f"ptr {p}" for p in (source, *rooms, records)), *(f"i64 {n}" for n in sizes))
    f.call("void", "@dy2st.release", "ptr %context", f"ptr {block}")


def _units(f: LLVMFunction) -> tuple[str, str]:
    return "%outer", times(f, "%count", "%inner", _COST)


def sorting_routine(w: FunctionEmitter) -> str:
    """Return the symbol of `(records, count, kept)`, which brings records into order; as many are free behind them."""
    return routine(w, "sort.records", [("ptr", "%a"), ("i64", "%count"), ("i64", "%kept")], _merge)


def _at(f: LLVMFunction, dtype: DType, base: str, outer: str, i: str, inner: str, count: str) -> str:
    number = plus(f, times(f, plus(f, times(f, outer, count), i), "%inner"), inner)
    return f.offset(base, times(f, number, dtype.itemsize))


def _key(v: VectorType, dtype: DType, element: str, descending: bool) -> str:
    """Write the whole number that stands for an element in comparisons."""
    f = v.f
    if dtype.is_floating:
        kind, whole = element_kind(dtype), f"i{dtype.bits}"
        top = 2 ** (dtype.bits - 1) - 1
        missing = f.value(f"fcmp uno {kind} {element}, {element}")
        bits = f.value(f"bitcast {kind} {f.value(f'fadd {kind} {element}, 0.0')} to {whole}")  # -0.0 becomes 0.0
        negative = f.value(f"icmp slt {whole} {bits}, 0")
        turned = f.value(f"xor {whole} {bits}, {top}")
        number = f.value(f"select i1 {negative}, {whole} {turned}, {whole} {bits}")
        number = f.value(f"select i1 {missing}, {whole} {top}, {whole} {number}")
        key = number if dtype.bits == 64 else f.value(f"sext {whole} {number} to i64")
    else:
        key = converted(v, element, dtype, int64)
    return f.value(f"xor i64 {key}, -1") if descending else key


def _record(f: LLVMFunction, base: str, i: str) -> tuple[str, str]:
    at = f.offset(base, times(f, i, RECORD))
    return f.load("i64", at), f.load("i64", f.offset(at, 8))


def _put(f: LLVMFunction, base: str, i: str, record: tuple[str, str]) -> None:
    at = f.offset(base, times(f, i, RECORD))
    f.store("i64", record[0], at)
    f.store("i64", record[1], f.offset(at, 8))


def _insert(f: LLVMFunction) -> None:
    """Write: bring the least `%kept` of `%count` records to the front, each put in where it belongs."""
    with f.loop("%count", start=1, hint="next") as i:
        last = least(f, minus(f, "%kept", 1), minus(f, i, 1))
        new, room = _record(f, "%a", i), f.slot("i64")
        full = compare(f, "sge", i, "%kept")
        below = compare(f, "slt", new[0], _record(f, "%a", last)[0])
        with f.when(f.value(f"or i1 {below}, {f.value(f'xor i1 {full}, true')}"), "enter"):
            f.store("i64", f.value(f"select i1 {full}, i64 {last}, i64 {i}"), room)
            test, move, done = f.label("test"), f.label("move"), f.label("found")
            f.start(test)
            at = f.load("i64", room)
            before = most(f, minus(f, at, 1), 0)
            earlier = _record(f, "%a", before)
            goes_on = f.value(f"and i1 {compare(f, 'sgt', at, 0)}, {compare(f, 'slt', new[0], earlier[0])}")
            f.branch(goes_on, move, done)
            f.start(move)
            _put(f, "%a", at, earlier)
            f.store("i64", before, room)
            f.jump(test)
            f.start(done)
            _put(f, "%a", f.load("i64", room), new)


def _merge(f: LLVMFunction) -> None:
    """Write: sort `%count` records, runs of 1, 2, 4, ... by turns; as many are free behind them."""
    source, target, width = f.slot("ptr"), f.slot("ptr"), f.slot("i64")
    f.store("ptr", "%a", source)
    f.store("ptr", f.offset("%a", times(f, "%count", RECORD)), target)
    f.store("i64", "1", width)
    test, turn, done = f.label("test"), f.label("turn"), f.label("sorted")
    f.start(test)
    size = f.load("i64", width)
    f.branch(compare(f, "slt", size, "%count"), turn, done)
    f.start(turn)
    of, to, step = f.load("ptr", source), f.load("ptr", target), times(f, size, 2)
    with f.loop("%count", step, hint="pair") as low:
        middle, high = least(f, plus(f, low, size), "%count"), least(f, plus(f, low, step), "%count")
        _merge_pair(f, of, to, low, middle, high)
    f.store("ptr", to, source)
    f.store("ptr", of, target)
    f.store("i64", step, width)
    f.jump(test)
    f.start(done)
    ended = f.load("ptr", source)
    with f.when(f.value(f"icmp ne ptr {ended}, %a"), "back"):
        bytes_ = times(f, "%count", RECORD)
        f.call("void", "@llvm.memcpy.p0.p0.i64", "ptr %a", f"ptr {ended}", f"i64 {bytes_}", "i1 false")


def _merge_pair(f: LLVMFunction, source: str, to: str, low: str, middle: str, high: str) -> None:
    """Write the merger of two runs, without a branch that depends on the elements."""
    left, right = f.slot("i64"), f.slot("i64")
    f.store("i64", low, left)
    f.store("i64", middle, right)
    with f.loop(high, start=low, hint="merge") as k:
        i, j = f.load("i64", left), f.load("i64", right)
        ended, inside = compare(f, "sge", i, middle), compare(f, "slt", j, high)
        one = _record(f, source, f.value(f"select i1 {ended}, i64 {low}, i64 {i}"))
        other = _record(f, source, f.value(f"select i1 {inside}, i64 {j}, i64 {low}"))
        first = f.value(f"and i1 {inside}, {compare(f, 'slt', other[0], one[0])}")
        first = f.value(f"or i1 {first}, {ended}")
        chosen = [f.value(f"select i1 {first}, i64 {b}, i64 {a}") for a, b in zip(one, other, strict=True)]
        _put(f, to, k, (chosen[0], chosen[1]))
        more = f.value(f"zext i1 {first} to i64")
        f.store("i64", plus(f, j, more), right)
        f.store("i64", plus(f, i, minus(f, 1, more)), left)
