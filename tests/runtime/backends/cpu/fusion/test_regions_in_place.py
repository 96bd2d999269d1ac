"""What a loop nest makes for a region of a tensor: it writes it there, unless somebody would see that."""

from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu.fusion.concat_writes import regions_of
from dy2st.runtime.backends.cpu.fusion.grouping import schedule
from dy2st.runtime.backends.cpu.lowering import prepared
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.passes.texts import program
from tests.runtime.backends.cpu.native import thread_counts

SIZES = (0, 1, 2, 15, 16, 17, 255)
HEAD = "%x: float32[N, 24], %u: float32[N, 24], %i: int"
BASE = "%y: float32[N, 24] = cumsum(%x) {axis=1, reverse=false}"
ROWS = '("slice", none, none, none), '
WHERE = {
    "columns": (f'{{spec=({ROWS}("slice", 2, 22, none))}}', "N, 20", '("slice", 4, none, none)'),
    "every other column": (f'{{spec=({ROWS}("slice", none, none, 2))}}', "N, 12", '("slice", 12, none, none)'),
    "columns from the last": (f'{{spec=({ROWS}("slice", none, 3, -1))}}', "N, 20", '("slice", 4, none, none)'),
}


def text(where: str, between: str = "", nest: str = "%v: float32[{0}] = abs(%w)", more: str = "") -> str:
    """Return a nest that makes a value, a region that is set to it, and what stands between them."""
    spec, shape, taken = WHERE[where]
    lines = [
        BASE, f"%w: float32[{shape}] = index(%u) {{spec=({ROWS}{taken})}}", nest.format(shape), between,
        f"%z: float32[N, 24] = index_set(%y, %v) {spec}", f"return %z{more}",
    ]  # fmt: skip
    return "\n".join((HEAD, *lines))


def placed(body: str) -> int:
    block = prepared(program(body)).block
    return len(regions_of(schedule(block), block.results))


def check(body: str, rows: int, rng: np.random.Generator, at: int = 0) -> list[np.ndarray]:
    p = program(body)
    x, u = (rng.normal(size=(rows, 24)).astype("float32") for _ in range(2))
    if rows:
        u[0, :3] = np.nan, -np.inf, -0.0
    kept = x.copy(), u.copy()
    found, wanted = NativePlan(p).run([x, u, at]), compile_plan(p).run([*kept, at])
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got, want)
    assert x.tobytes() == kept[0].tobytes()
    assert u.tobytes() == kept[1].tobytes()
    return found


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("where", WHERE)
def test_regions_are_written_in_place(where: str, rows: int, rng: np.random.Generator) -> None:
    assert placed(text(where)) == 1
    check(text(where), rows, rng)


def test_every_cpu_within_its_memory(each_cpu: str, rng: np.random.Generator, guarded: None) -> None:
    for where in WHERE:
        for rows in SIZES:
            check(text(where), rows, rng)


def test_any_number_of_threads_gives_the_same(rng: np.random.Generator) -> None:
    for where in WHERE:
        seeds = [check(text(where), 9000, np.random.default_rng(3))[0].tobytes() for _ in thread_counts()]
        assert len(set(seeds)) == 1


@pytest.mark.parametrize(
    ("between", "more"),
    [
        ("", ", %v"),
        ("", ", %y"),
        (
            "%k: float32[N, 20] = neg(%w)\n%q: float32[N, 20] = add(%k, %v)\n"
            "%o: float32[N, 20] = cumsum(%q) {axis=0, reverse=false}\n"
            "%r: float32[N, 24] = cumsum(%y) {axis=0, reverse=false}",
            ", %r, %o",
        ),
        ("%r: float32[N, 20] = cumsum(%v) {axis=0, reverse=false}", ", %r"),
    ],
    ids=["the value is given too", "the tensor is given too", "the tensor is read between", "the value is read"],
)
def test_what_others_read_is_copied(between: str, more: str, rng: np.random.Generator) -> None:
    body = text("columns", between, more=more)
    assert placed(body) == 0
    for rows in SIZES:
        check(body, rows, rng)


def test_a_nest_that_reads_the_tensor_itself(rng: np.random.Generator) -> None:
    for source in ("%y", "%t"):
        view = f'%s: float32[N, 20] = index({source}) {{{{spec=({ROWS}("slice", 4, none, none))}}}}\n'
        lines = "%t: float32[N, 24] = detach(%y)\n" + view + "%v: float32[{0}] = add(%s, %w)"
        assert placed(text("columns", nest=lines)) == 0
        check(text("columns", nest=lines), 17, rng)


def test_a_view_that_somebody_holds_stays_what_it_was(rng: np.random.Generator) -> None:
    lines = '%h: float32[N] = index(%y) {{spec=(("slice", none, none, none), ("int", 3))}}\n%v: float32[{0}] = abs(%w)'
    body = text("columns", nest=lines, more=", %h")
    for rows in SIZES:
        check(body, rows, rng)


def test_arguments_are_copied_first(rng: np.random.Generator) -> None:
    for base in ("%x", "%t"):
        body = text("columns").replace(BASE, "%t: float32[N, 24] = detach(%x)").replace("set(%y", f"set({base}")
        assert placed(body) == 1
        for rows in SIZES:
            check(body, rows, rng)


def test_a_row_by_a_number(rng: np.random.Generator) -> None:
    body = (
        f'{HEAD}\n{BASE}\n%w: float32[24] = index(%u, %i) {{spec=(("int", "?"),)}}\n%v: float32[24] = abs(%w)\n'
        '%z: float32[N, 24] = index_set(%y, %v, %i) {spec=(("int", "?"),)}\nreturn %z'
    )
    assert placed(body) == 1
    for at in (0, 4, -1, -5):
        check(body, 5, rng, at)
    for at in (5, -6, 2**62):
        x = np.zeros((5, 24), "float32")
        with pytest.raises(IndexError, match=f"index {at} is out of range"):
            NativePlan(program(body)).run([x, x, at])


def test_a_value_that_does_not_fit() -> None:
    body = (
        "%x: float32[N, 24], %u: float32[M, 24]\n%y: float32[N, 24] = cumsum(%x) {axis=1, reverse=false}\n"
        '%v: float32[M, 24] = abs(%u)\n%z: float32[N, 24] = index_set(%y, %v) {spec=(("slice", 0, 3, none),)}\n'
        "return %z"
    )
    assert placed(body) == 1
    x, u = np.ones((7, 24), "float32"), np.full((3, 24), -2, "float32")
    plan = NativePlan(program(body))
    for value in (u, u[:1]):  # one row is repeated
        (found,) = plan.run([x, value])
        assert found[:3].tolist() == [[2.0] * 24] * 3
        assert found[3:].tolist() == [[*np.arange(1.0, 25)]] * 4
    with pytest.raises(ValueError, match=r"a value of shape \[2, 24\] does not fit the indexed shape \[3, 24\]"):
        plan.run([x, u[:2]])


def test_rows_of_a_loop(rng: np.random.Generator) -> None:
    def scaled(x: Any, w: Any) -> Any:
        y = paddle.zeros_like(x)
        for t in range(x.shape[0]):
            y[t] = paddle.exp(x[t]) * w
        return y

    def kept(x: Any, w: Any) -> Any:
        """Each turn's tensor is kept in a list: every one of them is another."""
        y, rows = paddle.zeros_like(x), []
        for t in range(x.shape[0]):
            y[t] = paddle.exp(x[t]) * w
            rows.append(y * 1)
        return paddle.stack(rows)

    for function in (scaled, kept):
        static = paddle.jit.to_static(function, full_graph=True)
        for rows in (1, 2, 17):
            x = paddle.to_tensor(rng.normal(size=(rows, 33)).astype("float32"))
            w = paddle.to_tensor(np.float32(0.5))
            for _ in range(3):
                np.testing.assert_allclose(static(x, w).numpy(), function(x, w).numpy(), rtol=2e-6)
