"""Rows that are added at places: `take_add`, `index_add` of rows, in vectors, one after the other."""

import numpy as np
import pytest

from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.passes.texts import program
from tests.runtime.backends.cpu.native import thread_counts

SIZES = (0, 1, 2, 15, 16, 17, 255)
FORMS = {
    "rows": ("V, D", "N, D", "take_add(%x, %v, %i) {axis=0}"),
    "columns": ("D, V", "D, N", "take_add(%x, %v, %i) {axis=1}"),
    "a middle axis": ("2, V, D", "2, N, D", "take_add(%x, %v, %i) {axis=1}"),
    "brackets": ("V, D", "N, D", 'index_add(%x, %v, %i) {spec=(("tensor",),)}'),
    "brackets behind an axis": (
        "2, V, D", "2, N, D", 'index_add(%x, %v, %i) {spec=(("slice", none, none, none), ("tensor",))}'
    ),
    "coordinates": ("V, D", "N, D", "scatter_nd_add(%x, %v, %j) {depth=1}"),
}  # fmt: skip


def check(form: str, dtype: str, count: int, length: int, rng: np.random.Generator) -> bytes:
    """Check that every place, which comes up several times, has what the interpreter gives; return its bits."""
    table, values, line = FORMS[form]
    p = program(
        f"%x: {dtype}[{table}], %v: {dtype}[{values}], %i: int64[N]\n%j: int64[N, 1] = expand_dims(%i) {{axes=(1,)}}\n"
        f"%y: {dtype}[{table}] = {line}\nreturn %y"
    )
    sizes = {"V": 4, "D": length, "N": count}
    shapes = [[int(sizes.get(e, e)) for e in text.split(", ")] for text in (table, values)]
    x, v = ((rng.normal(size=s) * 9).astype(dtype) for s in shapes)
    if v.size and v.dtype.kind == "f":
        v.reshape(-1)[:3] = [np.nan, -np.inf, -0.0][: v.size]
    given = [x, v, rng.integers(-4, 4, size=count)]
    (found,), (wanted,) = NativePlan(p).run([*given]), compile_plan(p).run([*given])
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-4)
    return found.tobytes()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("form", FORMS)
def test_rows_of_every_size(form: str, size: int, rng: np.random.Generator) -> None:
    check(form, "float32", size, 5, rng)
    check(form, "float32", 9, size, rng)


@pytest.mark.parametrize("dtype", ["float64", "int8", "uint8", "int16", "int32", "int64"])
def test_every_dtype(dtype: str, rng: np.random.Generator) -> None:
    for form in FORMS:
        check(form, dtype, 9, 37, rng)


def test_every_cpu_within_its_memory(each_cpu: str, rng: np.random.Generator, guarded: None) -> None:
    for form in FORMS:
        for size in SIZES:
            check(form, "float32", 6, size, rng)


def test_any_number_of_threads_gives_the_same() -> None:
    for form in FORMS:
        assert len({check(form, "float32", 300, 70, np.random.default_rng(5)) for _ in thread_counts()}) == 1
