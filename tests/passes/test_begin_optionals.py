"""Optionals that a loop begins without and sets in its first turn."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.passes.loops.peel_optional_cotangents import PeelOptionalCotangents
from tests.passes.texts import becomes, stays

BEGIN = PeelOptionalCotangents()
OPTIONAL = "variant<unset | float32[N]>"


def loop(
    body: str = "%s: float32[N] = optional_add(%b, %a)",
    begun: str = "tag=0",
    left: str = "%v",
    used: str = "%p",
) -> str:
    """Return a loop that carries a vector and an optional one."""
    given = "%x" if "1" in begun else ""
    return f"""%k: int, %x: float32[N]
        %u: {OPTIONAL} = variant_new({given}) {{type=!{OPTIONAL}, {begun}}}
        %p: float32[N], %q: {OPTIONAL} = counted_while(%k, %x, %u) {{carried=2, reverse=true}} {{
          body(%i: int, %a: float32[N], %b: {OPTIONAL}) {{
            {body}
            %v: {OPTIONAL} = variant_new(%s) {{type=!{OPTIONAL}, tag=1}}
            return %a, {left}
          }}
        }}
        return {used}"""


def test_a_sum_begins_with_zeros() -> None:
    after = f"""%k: int, %x: float32[N]
        %u: {OPTIONAL} = variant_new() {{type=!{OPTIONAL}, tag=0}}
        %d: int(N) = dim(%x) {{axis=0}}
        %n: float32[] = constant() {{value=float32[](-0.0)}}
        %z: float32[N] = broadcast(%n, %d) {{shape=(none,)}}
        %p: float32[N], %q: float32[N] = counted_while(%k, %x, %z) {{carried=2, reverse=true}} {{
          body(%i: int, %a: float32[N], %b: float32[N]) {{
            %s: float32[N] = add(%b, %a)
            %v: {OPTIONAL} = variant_new(%s) {{type=!{OPTIONAL}, tag=1}}
            return %a, %s
          }}
        }}
        return %p"""
    becomes(BEGIN, loop(), after)


@pytest.mark.parametrize(
    "text",
    [
        loop(used="%p, %q"),
        loop(begun="tag=1"),
        loop(left="%b"),
        loop(f"%s: float32[N] = optional_add(%b, %a)\n            %t: {OPTIONAL} = variant_new(%a) "
             f"{{type=!{OPTIONAL}, tag=1}}\n            %w: {OPTIONAL} = optional_add(%b, %t)"),
        loop("%s: float32[N] = variant_or_zeros(%b, %a) {tag=1}"),
    ],
    ids=["somebody reads it", "it is set", "a turn leaves it", "another optional is added", "it is asked for"],
)  # fmt: skip
def test_others_stay(text: str) -> None:
    stays(BEGIN, text)


def test_an_extent_that_nothing_tells_keeps_the_optional() -> None:
    text = loop("%y: float32[M] = list_get(%m, %i)\n            %s: float32[M] = optional_add(%b, %y)")
    text = text.replace(OPTIONAL, OPTIONAL.replace("N", "M")).replace("%k: int,", "%k: int, %l: list<float32[M]>,")
    text = text.replace("%x, %u)", "%x, %u, %l)").replace("float32[M]>) {", "float32[M]>, %m: list<float32[M]>) {")
    stays(BEGIN, text)


@pytest.mark.parametrize("turns", [1, 5])
def test_gradients_through_a_carried_cell_are_the_same_natively(turns: int, rng: np.random.Generator) -> None:
    def cell(x, h, c, u):
        i = 0
        while i < x.shape[0]:
            z = h @ u
            c = paddle.nn.functional.sigmoid(z) * c + x[i]
            h = paddle.tanh(c)
            i += 1
        return (h * h).sum()

    static = paddle.jit.to_static(lambda *inputs: paddle.grad(cell(*inputs), [inputs[-1]])[0], full_graph=True)
    shapes = ((turns, 3, 20), (3, 20), (3, 20), (20, 20))
    given = [paddle.to_tensor(rng.normal(size=s).astype("float32")) for s in shapes]
    given[-1].stop_gradient = False
    for _ in range(3):
        np.testing.assert_allclose(static(*given), paddle.grad(cell(*given), [given[-1]])[0], rtol=1e-4, atol=1e-5)
