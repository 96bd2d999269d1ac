"""Parts of a tensor that are still needed when it is written are copied, not the tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.ir.parser import parse
from dy2st.runtime.backends.cpu.fusion.grouping import schedule
from dy2st.runtime.backends.cpu.fusion.view_copies import copied_views
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan

PART = '{spec=(("int", "?"),)}'
SET = f"%y: float32[9, 32] = index_set(%x, %b, %i) {PART}"


def copies(body: str) -> int:
    """Return how many parts are copied of a Program that has two, %a and %b, of the rows i and j of x."""
    text = f"""program main
    func main(%x: float32[9, 32], %i: int, %j: int) {{
    %a: float32[32] = index(%x, %i) {PART}
    %b: float32[32] = index(%x, %j) {PART}
    {body}
    }}"""
    made = parse(text)
    inputs = [np.arange(9 * 32, dtype="float32").reshape(9, 32), 2, 5]
    for got, want in zip(NativePlan(made).run(inputs), compile_plan(made).run(inputs), strict=True):
        np.testing.assert_array_equal(got, want)
    return len(copied_views(schedule(made.block), made.block.results))


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (f"{SET}\n%z: float32[9, 32] = index_set(%y, %a, %j) {PART}\nreturn %z", 2),
        (f"{SET}\nreturn %y, %a", 2),
        (f"%e: float32[32] = neg(%a)\n{SET.replace('%b', '%e')}\nreturn %y", 0),
        (f"%e: float32[32] = neg(%a)\n{SET}\n%g: float32[32] = add(%e, %a)\nreturn %y, %g", 2),
        ("%e: float32[32] = neg(%a)\n%g: float32[32] = add(%e, %b)\nreturn %g", 0),
        (f"%v: float32[3] = index(%a) {{spec=((\"slice\", 1, 4, 1),)}}\n{SET}\nreturn %y, %v", 1),
    ],
    ids=["swap", "a result", "computed before", "read behind", "no write", "a part of a part in registers"],
)  # fmt: skip
def test_which_are_copied(body: str, count: int) -> None:
    assert copies(body) == count


def swapped(x: Any, n: Any) -> Any:
    for i in range(1, n):
        row = x[i] * 1.0
        x[i] = x[i - 1]
        x[i - 1] = row
    return x


def shifted(x: Any, n: Any) -> Any:
    for i in range(1, n):
        part = x[i - 1, 2:]
        x[i, :-2] = part
        x[i, -2:] = part[:2]
    return x


@pytest.mark.parametrize("function", [swapped, shifted], ids=lambda f: f.__name__)
def test_rows_in_a_loop(function: Any, each_cpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", "native")
    static = paddle.jit.to_static(function, full_graph=True)
    for rows, columns in ((0, 5), (1, 5), (7, 17), (6, 33)):
        x = paddle.to_tensor(np.random.default_rng(0).normal(size=(rows, columns)).astype("float32"))
        want = function(x.clone(), rows)
        got = static(x.clone(), paddle.to_tensor(rows))
        np.testing.assert_array_equal(got.numpy(), want.numpy())


def test_gradients_through_a_list_are_native_and_take_the_list_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", "native")

    @paddle.jit.to_static(full_graph=True)
    def slope(x: Any, n: Any) -> Any:
        w = paddle.ones([8])
        w.stop_gradient = False
        hs = [x[0]]
        for i in range(1, n):
            hs.append(hs[i - 1] * w)
        return paddle.grad(paddle.stack(hs).sum(), w)[0]

    x = paddle.ones([3, 8])
    for n in (1, 2, 9, 50):
        np.testing.assert_allclose(slope(x, paddle.to_tensor(n)).numpy(), np.full(8, n * (n - 1) / 2))
    assert "Python for" not in str(slope.explain())
    text = str(slope.concrete_program.main_program)
    assert 0 < text.index("list_take") < text.index("list_clear")
