"""Products that are added to what a loop carries."""

import numpy as np
import pytest

from dy2st.passes.lowering.matmul_accumulate import MatmulAccumulate
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.passes.texts import becomes, program, stays

ACCUMULATE = MatmulAccumulate()
PLAIN = "{transpose_x=true, transpose_y=false}"
LOOP = """%n: int, %x: float32[N, M], %y: float32[N, K], %w: float32[4, K]
        %out: float32[4, K] = counted_while(%n, %w, %x, %y) {{carried=1, reverse=false}} {{
          body(%i: int, %c: float32[4, K], %a: float32[N, M], %b: float32[N, K]) {{
            {}
            return %s
          }}
        }}
        return %out"""


def loop(body: str) -> str:
    return LOOP.format(body)


def test_a_sum_takes_the_product_in() -> None:
    for summands in ("%r, %c", "%c, %r"):
        before = f"""%k: int(K) = dim(%b) {{axis=1}}
            %p: float32[M, K] = matmul(%a, %b) {PLAIN}
            %r: float32[4, K] = reshape(%p, %k) {{shape=(4, none)}}
            %s: float32[4, K] = add({summands})"""
        after = f"%k: int(K) = dim(%b) {{axis=1}}\n%s: float32[4, K] = matmul_add(%a, %b, %c) {PLAIN}"
        becomes(ACCUMULATE, loop(before), loop(after))


def test_a_product_that_others_use_stays() -> None:
    body = f"""%p: float32[4, K] = matmul(%a, %b) {PLAIN}
            %q: float32[4, K] = add(%c, %p)
            %s: float32[4, K] = mul(%q, %p)"""
    stays(ACCUMULATE, loop(body).replace("[N, M]", "[N, 4]"))


def test_a_sum_that_others_read_on_stays() -> None:
    body = f"""%p: float32[4, K] = matmul(%a, %b) {PLAIN}
            %q: float32[4, K] = add(%c, %p)
            %s: float32[4, K] = mul(%q, %c)"""
    stays(ACCUMULATE, loop(body).replace("[N, M]", "[N, 4]"))


def test_a_reshape_that_moves_elements_stays() -> None:
    body = f"""%p: float32[8, 4] = matmul(%a, %b) {PLAIN}
            %r: float32[4, 8] = reshape(%p) {{shape=(4, 8)}}
            %s: float32[4, 8] = add(%c, %r)"""
    stays(ACCUMULATE, loop(body).replace("[N, M]", "[N, 8]").replace("[N, K]", "[N, 4]").replace("[4, K]", "[4, 8]"))


def test_outside_of_blocks_nothing_is_carried() -> None:
    stays(
        ACCUMULATE,
        f"""%a: float32[N, M], %b: float32[N, K], %c: float32[M, K]
        %p: float32[M, K] = matmul(%a, %b) {PLAIN}
        %s: float32[M, K] = add(%c, %p)
        return %s""",
    )


@pytest.mark.parametrize("columns", [4, 3])
def test_extents_that_do_not_fit_are_refused_as_before(columns: int) -> None:
    body = f"""%k: int(K) = dim(%b) {{axis=1}}
            %p: float32[M, K] = matmul(%a, %b) {PLAIN}
            %r: float32[4, K] = reshape(%p, %k) {{shape=(4, none)}}
            %s: float32[4, K] = add(%c, %r)"""
    made = program(loop(body))
    rng = np.random.default_rng(0)
    inputs = [3, *(rng.normal(size=shape).astype("float32") for shape in ((5, columns), (5, 6), (4, 6)))]
    native = NativePlan(made)
    assert any("gemm.f32.tn" in name for name in native.unit.library)
    if columns == 4:
        np.testing.assert_allclose(native.run(inputs)[0], compile_plan(made).run(inputs)[0], rtol=1e-5)
        return
    with pytest.raises(ValueError, match="reshape"):
        native.run(inputs)


def test_a_sum_that_is_a_factor_of_the_next_product() -> None:
    body = f"""%p: float32[4, 4] = matmul(%a, %b) {PLAIN}
            %q: float32[4, 4] = add(%c, %p)
            %r: float32[4, 4] = matmul(%q, %b) {PLAIN}
            %s: float32[4, 4] = add(%d, %r)"""
    text = f"""%n: int, %x: float32[4, 4], %w: float32[4, 4]
        %out: float32[4, 4], %o: float32[4, 4] = counted_while(%n, %w, %w, %x, %x) {{carried=2, reverse=false}} {{
          body(%i: int, %c: float32[4, 4], %d: float32[4, 4], %a: float32[4, 4], %b: float32[4, 4]) {{
            {body}
            return %s, %q
          }}
        }}
        return %out, %o"""
    becomes(ACCUMULATE, text, text.replace(body, f"""%q: float32[4, 4] = matmul_add(%a, %b, %c) {PLAIN}
            %s: float32[4, 4] = matmul_add(%q, %b, %d) {PLAIN}"""))  # fmt: skip
