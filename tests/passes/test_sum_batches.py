"""Sums over the batch of a product."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.passes.lowering.batched_wgrad import BatchedWeightGradient
from dy2st.runtime.backends.cpu.lowering import prepared
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.passes.texts import becomes, stays

SUM = BatchedWeightGradient()
PLAIN = "{transpose_x=true, transpose_y=false}"
HEAD = "%x: float32[B, T, M], %y: float32[B, T, N], %m: int(M), %n: int(N)\n"
TOTAL = "%s: float32[M, N] = sum_to(%p, %m, %n) {shape=(none, none)}\nreturn %s"
ROWS = """%b{0}: int(B) = dim({1}) {{axis=0}}
    %t{0}: int(T) = dim({1}) {{axis=1}}
    %l{0}: int({2}) = dim({1}) {{axis=2}}
    %r{0}: int(B*T) = scalar_mul(%b{0}, %t{0})
    %a{0}: float32[B*T, {2}] = reshape({1}, %r{0}, %l{0}) {{shape=(none, none)}}
"""


def test_a_sum_over_the_batch_is_one_product() -> None:
    before = f"{HEAD}%p: float32[B, M, N] = matmul(%x, %y) {PLAIN}\n{TOTAL}"
    after = f"""{HEAD}{ROWS.format(0, "%x", "M")}{ROWS.format(1, "%y", "N")}
        %q: float32[M, N] = matmul(%a0, %a1) {PLAIN}
        %s: float32[M, N] = reshape(%q, %m, %n) {{shape=(none, none)}}
        return %s"""
    becomes(SUM, before, after)


def test_a_product_that_others_use_stays() -> None:
    stays(SUM, f"{HEAD}%p: float32[B, M, N] = matmul(%x, %y) {PLAIN}\n{TOTAL}, %p")


def test_a_product_that_may_raise_stays() -> None:
    stays(SUM, f"{HEAD.replace('[B, T, N]', '[B, U, N]')}%p: float32[B, M, N] = matmul(%x, %y) {PLAIN}\n{TOTAL}")


def test_a_reshape_that_moves_the_batch_stays() -> None:
    text = f"""%x: float32[4, T, 2], %y: float32[4, T, 3]
        %p: float32[4, 2, 3] = matmul(%x, %y) {PLAIN}
        %r: float32[2, 4, 3] = reshape(%p) {{shape=(2, 4, 3)}}
        %s: float32[4, 3] = sum_to(%r) {{shape=(4, 3)}}
        return %s"""
    stays(SUM, text)


@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 3, 4, 5), (0, 4, 5), (3, 0, 5)])
def test_gradients_of_a_matrix_for_a_batch(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    def gradient(x: paddle.Tensor, w: paddle.Tensor) -> list[paddle.Tensor]:
        return paddle.grad((paddle.tanh(x @ w) ** 2).sum(), [x, w])

    inputs = [rng.normal(size=s).astype("float32") for s in (shape, (5, 6))]
    static = paddle.jit.to_static(gradient, full_graph=True)
    static(*[paddle.to_tensor(x, stop_gradient=False) for x in inputs])
    program = static.concrete_program.main_program
    assert not any(o.op.name == "sum_to" and len(o.operands[0].type.shape) > 2 and o.results[0].type.rank == 2
                   for o in prepared(program).walk())  # fmt: skip
    for got, want in zip(NativePlan(program).run(inputs), compile_plan(program).run(inputs), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
