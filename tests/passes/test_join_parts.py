"""Parts that are added to zeros, each in its place."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.passes.lowering.pad_add_to_concat import PadAddToConcat
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.passes.texts import becomes, program, stays

JOIN = PadAddToConcat()
BOTH = '{spec=(("slice", none, none, none), ("slice", %s, %s, none))}'
LATER, FIRST = BOTH % (3, "none"), BOTH % ("none", 3)


def sums(first: str = LATER, second: str = FIRST, number: str = "0.0", results: str = "%b", q: str = "N, 3") -> str:
    return f"""%n: int(N), %p: float32[N, 5], %q: float32[{q}]
        %c: float32[] = constant() {{value=float32[]({number})}}
        %z: float32[N, 8] = full(%c, %n) {{shape=(none, 8)}}
        %a: float32[N, 8] = index_add(%z, %p) {first}
        %b: float32[N, 8] = index_add(%a, %q) {second}
        return {results}"""


def test_parts_that_cover_all_are_joined() -> None:
    becomes(
        JOIN,
        sums(),
        """%n: int(N), %p: float32[N, 5], %q: float32[N, 3]
        %c: float32[] = constant() {value=float32[](0.0)}
        %y: float32[N, 3] = broadcast(%c, %n) {shape=(none, 3)}
        %d: float32[N, 3] = add(%q, %y)
        %x: float32[N, 5] = broadcast(%c, %n) {shape=(none, 5)}
        %e: float32[N, 5] = add(%p, %x)
        %b: float32[N, 8] = concat(%d, %e) {axis=1}
        return %b""",
    )


@pytest.mark.parametrize(
    "text",
    [
        sums(number="1.0"),
        sums(number="-0.0"),
        sums(results="%a, %b"),
        sums(results="%z, %b"),
        sums(BOTH % (2, 7)),
        sums(q="1, 3"),
        sums(second=FIRST.replace("none, 3", "1, 4")),
    ],
    ids=["ones", "negative zeros", "a sum is read", "the zeros are read", "they overlap", "one is repeated", "a hole"],
)
def test_others_stay(text: str) -> None:
    stays(JOIN, text)


@pytest.mark.parametrize("rows", [0, 1, 2, 15, 17])
def test_the_same_bits_natively(rows: int, rng: np.random.Generator) -> None:
    made = program(sums())
    p, q = (rng.normal(size=(rows, n)).astype(np.float32) for n in (5, 3))
    if rows:
        p[0, 0], q[0, :2] = -0.0, (np.nan, -np.inf)
    (want,), (got,) = (plan.run([rows, p, q]) for plan in (compile_plan(made), NativePlan(made)))
    np.testing.assert_array_equal(got.view(np.int32), want.view(np.int32))


def test_gradients_of_what_is_cut_are_joined(rng: np.random.Generator) -> None:
    def gates(z):
        return (paddle.tanh(z[:, :32]) * z[:, 32:80].sum(1, keepdim=True) + z[:, 80:]).sum()

    z = paddle.to_tensor(rng.normal(size=(4, 112)).astype("float32"), stop_gradient=False)
    static = paddle.jit.to_static(lambda z: paddle.grad(gates(z), [z])[0], full_graph=True)
    for _ in range(3):
        np.testing.assert_allclose(static(z).numpy(), paddle.grad(gates(z), [z])[0].numpy(), rtol=1e-5, atol=1e-6)
