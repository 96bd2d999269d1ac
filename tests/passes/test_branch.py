"""`where` on one number: what only one choice needs is computed where that is chosen."""

from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.passes.simplify.select_to_cond import SelectToCond
from dy2st.runtime.backends.cpu.lowering import prepared
from tests.passes.texts import becomes, stays

BRANCH = SelectToCond()
PLAIN = "{transpose_x=false, transpose_y=false}"
HEAD = """%p: bool[], %x: float32[2, 2], %w: float32[2, 2], %y: float32[2, 2]
%q: bool[2, 2] = broadcast(%p) {shape=(2, 2)}
"""


def test_a_product_that_may_not_be_chosen_goes_into_a_branch() -> None:
    becomes(
        BRANCH,
        f"""{HEAD}%a: float32[2, 2] = matmul(%x, %w) {PLAIN}
        %b: float32[2, 2] = exp(%a)
        %c: float32[2, 2] = neg(%y)
        %z: float32[2, 2] = where(%q, %b, %c)
        %r: float32[2, 2] = add(%z, %y)
        return %r""",
        f"""{HEAD}%z: float32[2, 2] = cond(%p, %x, %w, %y) {{
          then(%x1: float32[2, 2], %w1: float32[2, 2], %y1: float32[2, 2]) {{
            %a: float32[2, 2] = matmul(%x1, %w1) {PLAIN}
            %b: float32[2, 2] = exp(%a)
            return %b
          }}
          else(%x2: float32[2, 2], %w2: float32[2, 2], %y2: float32[2, 2]) {{
            %c: float32[2, 2] = neg(%y2)
            return %c
          }}
        }}
        %r: float32[2, 2] = add(%z, %y)
        return %r""",
    )


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"%a: float32[2, 2] = matmul(%x, %w) {PLAIN}\n%z: float32[2, 2] = where(%q, %a, %y)\n"
                     "%r: float32[2, 2] = add(%z, %a)\nreturn %r", id="used elsewhere"),
        pytest.param("%a: float32[2, 2] = exp(%x)\n%z: float32[2, 2] = where(%q, %a, %y)\nreturn %z", id="cheap"),
        pytest.param(f"%a: float32[2, 2] = matmul(%x, %w) {PLAIN}\n%t: float32[2, 2] = neg(%a)\n"
                     "%z: float32[2, 2] = where(%q, %a, %t)\nreturn %z", id="both choices need it"),
        pytest.param(f"%a: float32[2, 2] = matmul(%x, %w) {PLAIN}\n%z: float32[2, 2] = where(%q, %a, %a)\nreturn %z",
                     id="both choices are it"),
        pytest.param(f"%g: bool[2, 2] = lt(%x, %y)\n%a: float32[2, 2] = matmul(%x, %w) {PLAIN}\n"
                     "%z: float32[2, 2] = where(%g, %a, %y)\nreturn %z", id="a condition for each element"),
    ],
)  # fmt: skip
def test_other_choices_stay(body: str) -> None:
    stays(BRANCH, HEAD + body)


def test_a_product_that_may_raise_stays() -> None:
    stays(
        BRANCH,
        f"""%p: bool[], %x: float32[2, N], %w: float32[M, 2], %y: float32[2, 2]
        %q: bool[2, 2] = broadcast(%p) {{shape=(2, 2)}}
        %a: float32[2, 2] = matmul(%x, %w) {PLAIN}
        %z: float32[2, 2] = where(%q, %a, %y)
        return %z""",
    )


def chosen(x: Any, w: Any, u: Any) -> Any:
    a, b = paddle.tanh(x @ w), paddle.nn.functional.relu(x @ u)
    return paddle.where(x.sum() > 0, a, paddle.where(x[0, 0] > -1, b, b - a.mean()))


@pytest.mark.parametrize("first", [1.0, -0.5, -2.0, np.nan])
def test_values_and_gradients_are_those_of_eager_mode(first: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", "native")
    rng = np.random.default_rng(1)
    spec = [paddle.static.InputSpec([3, 3], "float32")] * 3
    static = paddle.jit.to_static(chosen, input_spec=spec, full_graph=True)
    given = [paddle.to_tensor(rng.normal(size=(3, 3)).astype("float32"), stop_gradient=False) for _ in range(3)]
    given[0] = paddle.to_tensor(np.full((3, 3), first, "float32"), stop_gradient=False)
    for _ in range(2):
        found, wanted = static(*given), chosen(*given)
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-6)
        for one, other in zip(paddle.grad(found.sum(), given), paddle.grad(wanted.sum(), given), strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-4, atol=1e-5)
    with paddle.no_grad():
        static(*given)
    names = [o.op.name for o in prepared(static.concrete_program.compiled.optimised).walk()]
    assert "cond" in names
