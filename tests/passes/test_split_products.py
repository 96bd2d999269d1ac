"""Products in loops, cut where their left operand is joined of parts, or a product with a matrix that stays."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.passes.loops.split_matmul import SplitMatmul
from dy2st.runtime.backends.cpu.lowering import prepared
from dy2st.runtime.backends.cpu.shape_specialization import ShapeSpecializations
from dy2st.runtime.interpreter.reference import evaluate
from tests.in_threads import in_threads
from tests.passes.texts import becomes, program, stays

SPLIT = SplitMatmul()
PLAIN = "{transpose_x=false, transpose_y=false}"


def test_a_product_of_products_multiplies_what_stays_in_front_of_the_loop() -> None:
    before = f"""%k: int, %x: float32[4, 2], %m: float32[2, 3], %w: float32[3, 2]
        %r: float32[4, 2] = counted_while(%k, %x, %m, %w) {{carried=1, reverse=false}} {{
          body(%i: int, %x1: float32[4, 2], %m1: float32[2, 3], %w1: float32[3, 2]) {{
            %c: float32[4, 3] = matmul(%x1, %m1) {PLAIN}
            %z: float32[4, 2] = matmul(%c, %w1) {PLAIN}
            return %z
          }}
        }}
        return %r"""
    after = f"""%k: int, %x: float32[4, 2], %m: float32[2, 3], %w: float32[3, 2]
        %a: float32[2, 2] = matmul(%m, %w) {PLAIN}
        %r: float32[4, 2] = counted_while(%k, %x, %m, %w, %a) {{carried=1, reverse=false}} {{
          body(%i: int, %x1: float32[4, 2], %m1: float32[2, 3], %w1: float32[3, 2], %a1: float32[2, 2]) {{
            %c: float32[4, 3] = matmul(%x1, %m1) {PLAIN}
            %z: float32[4, 2] = matmul(%x1, %a1) {PLAIN}
            return %z
          }}
        }}
        return %r"""
    becomes(SPLIT, before, after)


def test_what_is_joined_is_cut_where_a_part_is_a_row_that_stays() -> None:
    before = f"""%k: int, %h: float32[4, 2], %x: float32[T, 4, 3], %w: float32[5, 2]
        %r: float32[4, 2] = counted_while(%k, %h, %x, %w) {{carried=1, reverse=false}} {{
          body(%i: int, %h1: float32[4, 2], %x1: float32[T, 4, 3], %w1: float32[5, 2]) {{
            %s: float32[4, 3] = index(%x1, %i) {{spec=(("int", "?"),)}}
            %j: float32[4, 5] = concat(%s, %h1) {{axis=1}}
            %z: float32[4, 2] = matmul(%j, %w1) {PLAIN}
            return %z
          }}
        }}
        return %r"""
    after = f"""%k: int, %h: float32[4, 2], %x: float32[T, 4, 3], %w: float32[5, 2]
        %a: float32[3, 2] = index(%w) {{spec=(("slice", 0, 3, none),)}}
        %b: float32[2, 2] = index(%w) {{spec=(("slice", 3, 5, none),)}}
        %r: float32[4, 2] = counted_while(%k, %h, %x, %w, %a, %b) {{carried=1, reverse=false}} {{
          body(%i: int, %h1: float32[4, 2], %x1: float32[T, 4, 3], %w1: float32[5, 2], %a1: float32[3, 2],
               %b1: float32[2, 2]) {{
            %s: float32[4, 3] = index(%x1, %i) {{spec=(("int", "?"),)}}
            %j: float32[4, 5] = concat(%s, %h1) {{axis=1}}
            %c: float32[4, 2] = matmul(%s, %a1) {PLAIN}
            %d: float32[4, 2] = matmul(%h1, %b1) {PLAIN}
            %z: float32[4, 2] = add(%c, %d)
            return %z
          }}
        }}
        return %r""".replace("\n               %b1", " %b1")
    becomes(SPLIT, before, after)


def looping(body: str, results: str = "%z") -> str:
    return f"""%k: int, %x: float32[4, 2], %m: float32[2, 3], %w: float32[3, 2], %n: float32[N, 2]
        %r: float32[4, 2] = counted_while(%k, %x, %m, %w, %n) {{carried=1, reverse=false}} {{
          body(%i: int, %x1: float32[4, 2], %m1: float32[2, 3], %w1: float32[3, 2], %n1: float32[N, 2]) {{
            {body}
            return {results}
          }}
        }}
        return %r"""


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"%c: float32[4, 3] = matmul(%x1, %m1) {PLAIN}\n%y: float32[4, 2] = matmul(%c, %w1) {PLAIN}\n"
                     "%e: float32[4, 2] = index(%c) {spec=((\"slice\", none, none, none), (\"slice\", 0, 2, none))}\n"
                     "%z: float32[4, 2] = add(%y, %e)", id="a product that is used elsewhere"),
        pytest.param(f"%c: float32[4, 2] = matmul(%x1, %n1) {PLAIN}\n%d: float32[4, 3] = matmul(%c, %m1) {PLAIN}\n"
                     f"%z: float32[4, 2] = matmul(%d, %w1) {PLAIN}"
                     .replace("%c, %m1", "%x1, %m1").replace("%d, %w1", "%f, %w1")
                     .replace("%z", "%f: float32[4, 3] = add(%d, %d)\n%z"), id="no product of what stays"),
        pytest.param("%h: float32[4, 4] = concat(%x1, %x1) {axis=1}\n"
                     "%z: float32[4, 2] = index(%h) {spec=((\"slice\", none, none, none), (\"slice\", 0, 2, none))}",
                     id="no product of what is joined"),
        pytest.param(f"%s: float32[3, 4] = matmul(%w1, %x1) {{transpose_x=false, transpose_y=true}}\n"
                     f"%t: float32[4, 3] = transpose(%s) {{perm=(1, 0)}}\n%z: float32[4, 2] = matmul(%t, %w1) {PLAIN}",
                     id="a left operand that stays"),
    ],
)  # fmt: skip
def test_what_would_be_no_better_stays(body: str) -> None:
    stays(SPLIT, looping(body))


def test_more_rows_than_both_matrices_have_elements_stay() -> None:
    text = looping(f"%c: float32[4, 3] = matmul(%x1, %m1) {PLAIN}\n%z: float32[4, 2] = matmul(%c, %w1) {PLAIN}")
    larger = (
        text.replace("[4, 2]", "[4, 90]")
        .replace("[2, 3]", "[90, 3]")
        .replace("%w: float32[3, 2]", "%w: float32[3, 90]")
        .replace("%w1: float32[3, 2]", "%w1: float32[3, 90]")
    )
    stays(SPLIT, larger)


# ---- the values of native code --------------------------------------------------------------------------------------
def attended(memory: Any, table: Any, w: Any, u: Any) -> Any:
    """A decoder that joins its last word with what it looks at."""
    h, token, i = paddle.zeros_like(memory[0]), paddle.zeros([], "int64"), paddle.zeros([])
    while i < 6:
        weights = paddle.nn.functional.softmax(memory @ h, 0)
        h = paddle.tanh(paddle.concat([table[token], weights @ memory]) @ w)
        token = (h @ u).argmax()
        i += 1
    return h


def attended_by_rows(memory: Any, table: Any, w: Any, u: Any) -> Any:
    q, i = table[:3], paddle.zeros([])
    while i < 5:
        weights = paddle.nn.functional.sigmoid(paddle.matmul(q, memory, transpose_y=True))
        q = paddle.tanh(paddle.concat([weights @ memory, q], axis=1) @ w)
        i += 1
    return q @ u


def recurrent(memory: Any, table: Any, w: Any, u: Any) -> Any:
    """A cell that joins a row of three, of each of the table's, with its state."""
    x = paddle.stack([table, table * 0.5, -table], axis=1)
    h = paddle.zeros([3, table.shape[1]])
    for i in range(x.shape[0]):
        h = paddle.tanh(paddle.concat([x[i], h], axis=-1) @ w)
    return h @ u + memory.sum()


def arrays(rows: int, width: int = 8, words: int = 9) -> list[paddle.Tensor]:
    rng = np.random.default_rng(5)
    shapes = (rows, width), (words, width), (2 * width, width), (width, words)
    return [paddle.to_tensor(rng.normal(size=s).astype("float32") * 0.4) for s in shapes]


@pytest.mark.parametrize("function", [attended, attended_by_rows, recurrent])
@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_values_and_gradients_are_those_of_eager_mode(
    function: Callable[..., Any], backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", backend)
    static = paddle.jit.to_static(function, full_graph=True)
    for rows in (3, 1, 70, 3):
        given = arrays(rows)
        np.testing.assert_allclose(static(*given).numpy(), function(*given).numpy(), rtol=1e-4, atol=1e-5)
        for x in given:
            x.stop_gradient = False
        found = [
            None if g is None else g.numpy()
            for f in (static, function)
            for g in paddle.grad(f(*given).sum(), given, allow_unused=True)
        ]
        for one, other in zip(found[: len(given)], found[len(given) :], strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                np.testing.assert_allclose(one, other, rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("rows", [0, 2, 90])
def test_no_rows_and_values_that_are_no_numbers(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", "native")
    static = paddle.jit.to_static(attended_by_rows, full_graph=True)
    given = arrays(rows)
    if rows:
        given[0][1, 3] = float("nan")
    with paddle.no_grad():
        for _ in range(2):
            found, wanted = static(*given).numpy(), attended_by_rows(*given).numpy()
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_threads_get_the_same_bits() -> None:
    static = paddle.jit.to_static(attended, full_graph=True)
    given = arrays(5)
    with paddle.no_grad():
        static(*given)
        wanted = static(*given).numpy()
    wrong: list[Any] = []

    def work() -> None:
        with paddle.no_grad():
            wrong.extend(found for _ in range(50) if not np.array_equal(found := static(*given).numpy(), wanted))

    in_threads(*[work] * 2)
    assert wrong == []


@pytest.mark.parametrize("function", [attended, attended_by_rows, recurrent])
def test_code_is_made_of_products_that_were_cut(function: Callable[..., Any]) -> None:
    static = paddle.jit.to_static(function, full_graph=True)
    with paddle.no_grad():
        static(*arrays(3))
    program = static.concrete_program
    inputs = [x.payload for x in [*arrays(3), *program.parameters]]
    plan = ShapeSpecializations(program.compiled.optimised).version(inputs[: len(program.main_program.block.arguments)])
    names = [o.op.name for o in prepared(plan.program).walk()]
    assert "concat" not in names
    assert names.count("matmul") > [o.op.name for o in prepared(plan.program, strict=True).walk()].count("matmul")


def test_an_extent_that_does_not_fit_is_refused_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", "native")
    static = paddle.jit.to_static(attended, full_graph=True)
    given = arrays(3)
    with paddle.no_grad():
        static(*given)
        given[2] = given[2][:-1]
        with pytest.raises(ValueError, match="matmul"):
            static(*given)


@pytest.mark.parametrize("parts", ["%c, %x1, %x1", "%x1, %x1, %c", "%c, %x1"])
def test_parts_that_are_not_cut_off_stay_joined(parts: str, rng: np.random.Generator) -> None:
    columns = sum(3 if part == "%c" else 2 for part in parts.split(", "))
    text = f"""%k: int, %x: float64[4, 2], %m: float64[2, 3], %w: float64[{columns}, 2]
        %r: float64[4, 2] = counted_while(%k, %x, %m, %w) {{carried=1, reverse=false}} {{
          body(%i: int, %x1: float64[4, 2], %m1: float64[2, 3], %w1: float64[{columns}, 2]) {{
            %c: float64[4, 3] = matmul(%x1, %m1) {PLAIN}
            %j: float64[4, {columns}] = concat({parts}) {{axis=1}}
            %z: float64[4, 2] = matmul(%j, %w1) {PLAIN}
            return %z
          }}
        }}
        return %r"""
    given = [3, *(rng.normal(size=shape) for shape in ((4, 2), (2, 3), (columns, 2)))]
    made = program(text)
    (wanted,) = evaluate(made, given)
    assert SPLIT.apply(made)
    np.testing.assert_allclose(evaluate(made, given)[0], wanted, rtol=1e-10)
