"""Inverse, solution, determinant, factors and eigenvalues of matrices, by the loops of NumPy's linear algebra.

They compute in float64, as NumPy does; `decompose.py` puts casts around those on float32. What LAPACK cannot do
gives NaN: then `eval` looks at the operands again, and raises the error with the user's line.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.dtypes import complex128, float64
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.records import record
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.emitter.shared_routines import copy as copied
from dy2st.runtime.backends.cpu.emitter.shared_routines import routine
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, least, negation, plus, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, in_register
from dy2st.runtime.backends.cpu.ops.numpy_ufunc_loops import UfuncLoop, has_nan, matrix_shape, room, row_major
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import allocate, product
from dy2st.runtime.backends.cpu.vector_ops.load_store import load_element

Made = Sequence[Components]


@record(frozen=True)
class _Form:
    """A loop, and the core axes of its operands and results: one letter an axis, equal letters equal extents."""

    loop: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    cores: str
    """The letters in the order of the ufunc's signature; p is the lesser of m and n."""
    step: int
    """Picoseconds for m^2 n."""
    may_fail: bool = True
    symmetric: bool = False
    """Whether the loop reads one half of what `eval` takes the symmetric part of."""
    finite: bool = False
    """Whether LAPACK must not see an infinity or a NaN: it would write where nothing is. NumPy refuses them."""


_FORMS = {
    "inverse": _Form("linalg.inv", ("mm",), ("mm",), "m", 200),
    "solve": _Form("linalg.solve", ("mm", "mn"), ("mn",), "mn", 200),
    "det": _Form("linalg.det", ("mm",), ("",), "m", 100, may_fail=False),
    "slogdet": _Form("linalg.slogdet", ("mm",), ("", ""), "m", 100, may_fail=False),
    "cholesky": _Form("linalg.cholesky_lo", ("mm",), ("mm",), "m", 50, symmetric=True),
    "eigh": _Form("linalg.eigh_lo", ("mm",), ("m", "mm"), "m", 2000, symmetric=True),
    "svd": _Form("linalg.svd_s", ("mn",), ("mp", "p", "pn"), "mnp", 3000, finite=True),
    "eig": _Form("linalg.eig", ("mm",), ("m", "mm"), "m", 5000, finite=True),
}
_LETTERS = {float64: "d", complex128: "D"}


@rule(*_FORMS)
def factor(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a run of a loop over a batch of matrices."""
    form, f, values = _FORMS[operation.op.name], w.f, operation.operands
    if any(tensor_type(v).dtype is not float64 for v in values):
        return host_rule(w, operation, operands)
    letters = ["".join(_LETTERS[tensor_type(v).dtype] for v in side) for side in (values, operation.results)]
    loop = UfuncLoop(w, f"{form.loop}.{'->'.join(letters)}")
    cores, batch, fine = _extents(w, form, values, operands)
    if form.finite:
        (size,) = (product(w, [*batch, *(cores[c] for c in axes)]) for axes in form.operands)
        fine = all_of(f, fine, negation(f, has_nan(w, operands[0][1], size, or_infinity=True)))
    made = [room(w, v, [*batch, *(cores[c] for c in axes)])
            for v, axes in zip(operation.results, form.results, strict=True)]  # fmt: skip
    failed = f.slot("i1")
    f.store("i1", "true", failed)
    with f.when(all_of(f, fine, loop.there)):
        _run(w, form, loop, operation, operands, made, cores, batch)
        count = product(w, [*batch, *(cores[c] for c in form.results[0])])
        count = count if tensor_type(operation.results[0]).dtype is float64 else product(w, [count, "2"])
        f.store("i1", has_nan(w, made[0][1], count) if form.may_fail else "false", failed)
    bad = f.load("i1", failed)
    with f.when(bad):
        for value, components in zip(operation.results, made, strict=True):
            if not in_register(value.type):
                f.call("void", "@dy2st.release", "ptr %context", f"ptr {components[0]}")

    def results() -> Made:
        return [
            (load_element(f, float64, c[1]),) if in_register(v.type) else c
            for v, c in zip(operation.results, made, strict=True)
        ]

    return w.guarded(operation, operands, negation(f, bad), results)


@rule("qr")
def qr(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write Q and R of a batch: the loops take a matrix, which the first overwrites, and the factors of reflections."""
    (value,), f = operation.operands, w.f
    if tensor_type(value).dtype is not float64:
        return host_rule(w, operation, operands)
    raw, reduced = UfuncLoop(w, "linalg.qr_r_raw.d->d"), UfuncLoop(w, "linalg.qr_reduced.dd->d")
    batch, (rows, columns) = matrix_shape(value, operands[0], 2)
    count, k = product(w, batch), least(f, rows, columns)
    fine = all_of(f, compare(f, "sgt", k, 0), raw.there, reduced.there)

    def fast() -> Made:
        copy, factors = (allocate(w, float64, [*batch, *shape]) for shape in ((rows, columns), (k,)))
        q, r = (allocate(w, float64, [*batch, *shape]) for shape in ((rows, k), (k, columns)))
        copied(w, copy[1], operands[0][1], product(w, [*batch, rows, columns, "8"]))
        whole, row, reflections = times(f, rows, columns, 8), times(f, columns, 8), times(f, k, 8)
        cost = plus(f, times(f, rows, columns, k, 300), 1_000_000)
        raw.call([copy[1], factors[1]], count, [rows, columns, k], [whole, reflections, row, 8, 8], cost)
        reduced.call([copy[1], factors[1], q[1]], count, [rows, columns, k],
                     [whole, reflections, times(f, rows, reflections), row, 8, 8, reflections, 8], cost)  # fmt: skip
        _upper(w, copy[1], r[1], [count, rows, columns, k])
        for block in (copy[0], factors[0]):
            f.call("void", "@dy2st.release", "ptr %context", f"ptr {block}")
        return [q, r]

    return w.guarded(operation, operands, fine, fast)


def _upper(w: FunctionEmitter, source: str, to: str, extents: Sequence[str]) -> None:
    """Write the first k rows of matrices, with zeros below the diagonal."""

    def write(f: LLVMFunction) -> None:
        with f.loop("%count") as number, f.loop("%k") as i, f.loop("%columns") as j:
            row = plus(f, times(f, number, "%rows"), i)
            x = f.load("double", f.offset("%x", plus(f, times(f, row, "%columns"), j), "double"))
            x = f.value(f"select i1 {compare(f, 'slt', j, i)}, double 0.0, double {x}")
            row = plus(f, times(f, number, "%k"), i)
            f.store("double", x, f.offset("%y", plus(f, times(f, row, "%columns"), j), "double"))

    names = ("count", "rows", "columns", "k")
    name = routine(w, "upper", [("ptr", "%x"), ("ptr", "%y"), *(("i64", f"%{n}") for n in names)], write)
    w.f.call("void", name, f"ptr {source}", f"ptr {to}", *(f"i64 {n}" for n in extents))


def _extents(
    w: FunctionEmitter, form: _Form, values: Sequence[Value], operands: Sequence[Components]
) -> tuple[dict[str, str], list[str], str]:
    """Write what each letter is; return it, the batch, and whether all extents fit and are not 0."""
    f, cores, batch, fine = w.f, dict[str, str](), list[str](), "true"
    for value, components, axes in zip(values, operands, form.operands, strict=True):
        outer, inner = matrix_shape(value, components, len(axes))
        pairs = list(zip(outer, batch, strict=True)) if batch else []
        batch = batch or outer
        pairs += [(cores.setdefault(c, e), e) for c, e in zip(axes, inner, strict=True)]
        fine = all_of(f, fine, *(compare(f, "eq", a, b) for a, b in pairs if a != b))
    if "p" in form.cores:
        cores["p"] = least(f, cores["m"], cores["n"])
    return cores, batch, all_of(f, fine, *(compare(f, "sgt", cores[c], 0) for c in form.cores))


def _run(
    w: FunctionEmitter, form: _Form, loop: UfuncLoop, operation: Operation, operands: Sequence[Components],
    made: Sequence[Components], cores: dict[str, str], batch: Sequence[str],
) -> None:  # fmt: skip
    f, count = w.f, product(w, batch)
    places = [c[1] for c in operands]
    half = None
    if form.symmetric:
        half = allocate(w, float64, [*batch, cores["m"], cores["m"]])
        _symmetric(w, places[0], half[1], count, cores["m"])
        places = [half[1]]
    outer: list[str | int] = []
    inner: list[str | int] = []
    for value, axes in zip((*operation.operands, *operation.results), (*form.operands, *form.results), strict=True):
        step, *rest = row_major([cores[c] for c in axes], tensor_type(value).dtype.itemsize, f)
        outer.append(step)
        inner += rest
    cost = times(f, cores["m"], cores["m"], cores.get("n", cores["m"]), form.step)
    loop.call([*places, *(c[1] for c in made)], count, [cores[c] for c in form.cores], [*outer, *inner],
              plus(f, cost, 1_000_000))  # fmt: skip
    if half is not None:
        f.call("void", "@dy2st.release", "ptr %context", f"ptr {half[0]}")


def _symmetric(w: FunctionEmitter, source: str, to: str, count: str, extent: str) -> None:
    """Write the symmetric parts of so many matrices: (a + a^T) / 2."""

    def write(f: LLVMFunction) -> None:
        size = times(f, "%m", "%m")
        with f.loop("%count") as number, f.loop("%m") as i, f.loop("%m") as j:
            before = times(f, number, size)
            there, across = (
                f.load("double", f.offset("%x", plus(f, before, times(f, row, "%m"), column), "double"))
                for row, column in ((i, j), (j, i))
            )
            mean = f.value(f"fmul double {f.value(f'fadd double {there}, {across}')}, 0.5")
            f.store("double", mean, f.offset("%y", plus(f, before, times(f, i, "%m"), j), "double"))

    parameters = [("ptr", "%x"), ("ptr", "%y"), ("i64", "%count"), ("i64", "%m")]
    name = routine(w, "symmetric", parameters, write)
    w.f.call("void", name, f"ptr {source}", f"ptr {to}", f"i64 {count}", f"i64 {extent}")
