"""Products of matrices, and of batches of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dy2st.dtypes import DType
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.records import record, replace
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.gemm.batched import batch_function
from dy2st.runtime.backends.cpu.gemm.tiling import tile
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, negation
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, StridedTensor, is_native
from dy2st.runtime.backends.cpu.ops.control.deferred_accumulation import MatrixRows, defer
from dy2st.runtime.backends.cpu.ops.control.input_projection_batching import ProjectionWeights, taken_from
from dy2st.runtime.backends.cpu.ops.control.prepacked_weights import FLOATS, backwards, packed_form
from dy2st.runtime.backends.cpu.ops.matrix.integer_matmul import complex_product, run_complex_product, whole_product
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import (
    allocate,
    allocate_bytes,
    extents,
    product,
    scratch_bytes,
    thread_count,
    writable,
)
from dy2st.runtime.backends.cpu.ops.views import strides

Made = Sequence[Components]
After = Callable[[Components], str]
"""Writes what is done with a result as its parts are finished (gemm/epilogue.py); returns the row's address."""


@record
class MatrixBatch:
    """A batch of matrices in memory: rows (or columns, where `transposed`), `apart` elements from each other."""

    data: str
    batch: list[str]
    batch_strides: list[str]
    rows: str
    columns: str
    apart: str
    transposed: bool
    lies_whole: bool
    """Whether the rows of all matrices lie one after the other."""


def _matrix(w: FunctionEmitter, value: Value, components: Components, swap: bool) -> tuple[MatrixBatch, str | None]:
    """Return an operand as the kernels read it, and the block of a copy where neither rows nor columns lie together."""
    apart, copy = strides(w, value, components), None
    if isinstance(components, StridedTensor) and "1" not in apart[-2:]:
        components = w.copied(value, components)
        apart, copy = strides(w, value, components), components[0]
    shape = extents(value, components)
    lies = apart[-1] == "1"
    rows, columns = (shape[-1], shape[-2]) if swap else (shape[-2], shape[-1])
    step = apart[-2] if lies else apart[-1]
    whole = not swap and (copy is not None or not isinstance(components, StridedTensor))
    return MatrixBatch(components[1], shape[:-2], apart[:-2], rows, columns, step, swap == lies, whole), copy


@rule("matmul", reads_gaps=True)
def matmul(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a product; `eval` says that inner extents differ."""
    return multiplied(w, operation, operands)


def multiplied(
    w: FunctionEmitter, operation: Operation, operands: list[Components], after: After | None = None
) -> Made:
    """Write a product, and what is done with its parts where they are numbers."""
    x, y = operation.operands
    t, f = tensor_type(x), w.f
    if t.dtype.name not in FLOATS:
        return _whole(w, operation, [_dense(w, v, c) for v, c in zip((x, y), operands, strict=True)])
    a, left = _matrix(w, x, operands[0], operation.attributes["transpose_x"])
    b, right = _matrix(w, y, operands[1], operation.attributes["transpose_y"])
    inner = [p for p in ((a.columns, b.rows), *zip(a.batch, b.batch, strict=True)) if p[0] != p[1]]
    if inner:
        fine = all_of(f, *(compare(f, "eq", one, other) for one, other in inner))
        with w.unlikely(negation(f, fine), "wrong"):
            host_rule(w, operation, [_dense(w, v, c) for v, c in zip((x, y), operands, strict=True)])
    swap = bool(operation.attributes["transpose_y"])
    if operation in w.ahead:
        matrix = ProjectionWeights(y, operands[1], swap, b.data, b.columns, b.apart, b.transposed)
        made = taken_from(w, w.ahead[operation], matrix)
    else:
        packed = packed_form(w, y, operands[1], swap)
        made = allocate(w, t.dtype, [*a.batch, a.rows, b.columns])
        then = f"ptr {'null' if after is None else after(made)}"
        _product(w, t.dtype, a, b, made, None if packed is None else (packed, backwards(w, y, swap)), then)
    _release(w, left, right)
    return [made]


def _whole(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a product of whole numbers, booleans or complex numbers; `eval` says that extents differ."""
    t, f = tensor_type(operation.operands[0]).dtype, w.f
    if not t.is_complex and not (is_native(t) and (t.is_integer or t.is_bool)):
        return host_rule(w, operation, operands)
    turned = [operation.attributes[name] for name in ("transpose_x", "transpose_y")]
    (*batch, m, k), (*others, l, n) = (extents(v, c) for v, c in zip(operation.operands, operands, strict=True))
    m, k = (k, m) if turned[0] else (m, k)
    l, n = (n, l) if turned[1] else (l, n)
    pairs = [(k, l), *zip(batch, others, strict=True)]
    loop = complex_product(w, t) if t.is_complex else None
    fine = all_of(f, loop.there if loop is not None else "true",
                  *(compare(f, "eq", one, other) for one, other in pairs if one != other))  # fmt: skip

    def fast() -> Made:
        made = allocate(w, t, [*batch, m, n])
        places = [(c[1], bool(swap)) for c, swap in zip(operands, turned, strict=True)]
        if loop is None:
            whole_product(w, t, places[0], places[1], made[1], batch, (m, n, k))
        else:
            run_complex_product(w, loop, t, places, made[1], product(w, batch), (m, n, k))
        return [made]

    return w.guarded(operation, operands, fine, fast)


def _product(
    w: FunctionEmitter,
    dtype: DType,
    a: MatrixBatch,
    b: MatrixBatch,
    made: Components,
    packed: tuple[str, str] | None,
    after: str,
) -> None:
    """Write the products of all matrices of a batch, or of one with a matrix that is packed, which way through it."""
    if a.lies_whole and all(step == "0" for step in b.batch_strides):  # all rows times one matrix
        a = replace(a, rows=product(w, [*a.batch, a.rows]), batch=[], batch_strides=[])
    if packed is None:
        _products(w, FLOATS[dtype.name], a, b, made[1], dtype.itemsize, after=after)
    else:
        w.f.call("void", w.library(f"gemm.{FLOATS[dtype.name]}.packed.{'nt'[a.transposed]}"), f"ptr {a.data}",
                 f"i64 {a.apart}", f"ptr {packed[0]}", f"ptr {made[1]}", f"i64 {b.columns}", f"i64 {a.rows}",
                 f"i64 {b.columns}", f"i64 {a.columns}", "i1 false", f"i64 {packed[1]}", after, "i64 0")  # fmt: skip


@rule("matmul_add", reads_gaps=True)
def matmul_add(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a product that is added to memory; where extents differ the interpreter takes over."""
    x, y, z = operation.operands
    t, f = tensor_type(x), w.f
    if t.dtype.name not in FLOATS:
        return host_rule(w, operation, [_dense(w, v, c) for v, c in zip((x, y, z), operands, strict=True)])
    a, left = _matrix(w, x, operands[0], operation.attributes["transpose_x"])
    b, right = _matrix(w, y, operands[1], operation.attributes["transpose_y"])
    total = extents(z, operands[2])
    pairs = [(a.columns, b.rows), *zip(a.batch, b.batch, strict=True),
             *zip((*a.batch, a.rows, b.columns), total, strict=True)]  # fmt: skip
    for one, other in dict.fromkeys(pair for pair in pairs if pair[0] != pair[1]):
        w.demand(f.value(f"icmp eq i64 {one}, {other}"))
    if operation in w.later and a.transposed and not b.transposed:
        rows = (MatrixRows(a.data, a.apart), MatrixRows(b.data, b.apart))
        made = defer(w, w.later[operation], z, operands[2], rows, a.columns)
        _release(w, left, right)
        return [made]
    made = w.copied(z, operands[2]) if isinstance(operands[2], StridedTensor) else writable(w, z, operands[2])
    _products(w, FLOATS[t.dtype.name], a, b, made[1], t.dtype.itemsize, accumulate=True)
    _release(w, left, right)
    return [made]


def _release(w: FunctionEmitter, *blocks: str | None) -> None:
    for block in blocks:
        if block is not None:
            w.f.call("void", "@dy2st.release", "ptr %context", f"ptr {block}")


def _dense(w: FunctionEmitter, value: Value, components: Components) -> Components:
    return w.copied(value, components) if isinstance(components, StridedTensor) else components


def _products(
    w: FunctionEmitter, dtype: str, a: MatrixBatch, b: MatrixBatch, made: str, itemsize: int, accumulate: bool = False,
    after: str = "ptr null",
) -> None:  # fmt: skip
    """Write the products of all matrices of a batch, or add them to what is there."""
    f = w.f
    name = f"gemm.{dtype}.{'nt'[a.transposed]}{'nt'[b.transposed]}"
    sizes = [f"i64 {n}" for n in (a.rows, b.columns, a.columns)]
    kernel, scratch_size = w.library(name), f.call("i64", w.library(f"{name}.scratch"), *sizes)
    matrices = (f"ptr {a.data}", f"i64 {a.apart}", f"ptr {b.data}", f"i64 {b.apart}", f"ptr {made}",
                f"i64 {b.columns}", *sizes)  # fmt: skip
    adds = f"i1 {str(accumulate).lower()}"
    if not a.batch:
        block, scratch = scratch_bytes(w, scratch_size)
        f.call("void", kernel, *matrices, f"ptr {scratch}", adds, after, "i64 0")
    else:
        threads, room = thread_count(w), f.value(f"and i64 {f.value(f'add i64 {scratch_size}, 63')}, -64")
        block, scratch = allocate_bytes(w, f.value(f"mul i64 {room}, {threads}"))
        steps = [product(w, [s, str(itemsize)]) for s in (*a.batch_strides, *b.batch_strides)]
        function = batch_function(w.unit.kernels, tile(dtype, w.unit.target), len(a.batch))
        f.call("void", f"@{function}", f"ptr {kernel}", f"ptr {scratch}", f"i64 {room}", *matrices, adds,
               after, f"i64 {threads}", *(f"i64 {n}" for n in (*a.batch, *steps)))  # fmt: skip
    f.call("void", "@dy2st.release", "ptr %context", f"ptr {block}")
