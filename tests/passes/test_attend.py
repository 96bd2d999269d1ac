"""Attention brought together: fires, stays away, values."""

import numpy as np
import pytest

from dy2st.passes import optimise
from dy2st.passes.simplify.fuse_attention import FuseAttention, bring_together
from dy2st.runtime.interpreter.reference import evaluate
from tests.passes.texts import becomes, program, stays

ATTEND = FuseAttention()
PLAIN = """
func main(%q: float32[B, N, 4], %k: float32[B, M, 4], %v: float32[B, M, 2]) {
  %s: float32[B, N, M] = matmul(%q, %k) {transpose_x=false, transpose_y=true}
  %w: float32[B, N, M] = softmax(%s) {axis=2}
  %y: float32[B, N, 2] = matmul(%w, %v) {transpose_x=false, transpose_y=false}
  return %y
}
"""
MASKED = """
func main(%q: float32[B, 3, 4], %k: float32[B, 3, 4], %v: float32[B, 3, 2], %mask: float32[1, 3, 3], %n: int(B)) {
  %s: float32[B, 3, 3] = matmul(%q, %k) {transpose_x=false, transpose_y=true}
  %m: float32[B, 3, 3] = broadcast(%mask, %n) {shape=(none, 3, 3)}
  %t: float32[B, 3, 3] = add(%s, %m)
  %w: float32[B, 3, 3] = softmax(%t) {axis=2}
  %y: float32[B, 3, 2] = matmul(%w, %v) {transpose_x=false, transpose_y=false}
  return %y
}
"""


def test_products_and_softmax_become_one():
    becomes(
        ATTEND,
        PLAIN,
        """
func main(%q: float32[B, N, 4], %k: float32[B, M, 4], %v: float32[B, M, 2]) {
  %y: float32[B, N, 2] = attention(%q, %k, %v) {causal=false}
  return %y
}
""",
    )


@pytest.mark.parametrize("turned", [False, True])
def test_a_mask_goes_in_as_it_is(turned):
    text = MASKED.replace("add(%s, %m)", "add(%m, %s)") if turned else MASKED
    made, x = program(text), np.random.default_rng(0).normal(size=(2, 3, 4)).astype("f")
    mask = np.array([[[0, -1e9, -1e9], [0, 0, -1e9], [0, 0, 0]]], np.float32)
    inputs = [x, x, x[..., :2].copy(), mask, 2]
    wanted = evaluate(program(text), inputs)[0]
    assert ATTEND.apply(made)
    assert [o.name for o in made.block.operations] == ["attention"]
    assert np.allclose(evaluate(made, inputs)[0], wanted)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("return %y", "return %y, %w"),
        ("return %y", "return %y, %s"),
        ("axis=2", "axis=1"),
        ("%k: float32[B, M, 4]", "%k: float32[B, M, D]"),
        ("%v: float32[B, M, 2]", "%v: float32[B, L, 2]"),
    ],
)
def test_other_programs_stay(before, after):
    stays(ATTEND, PLAIN.replace(before, after))


def test_a_mask_of_fewer_axes_gets_them():
    text = MASKED.replace("%mask: float32[1, 3, 3]", "%mask: float32[3, 3]")
    made, x = program(text), np.random.default_rng(1).normal(size=(2, 3, 4)).astype("f")
    inputs = [x, x, x[..., :2].copy(), np.eye(3, dtype=np.float32), 2]
    wanted = evaluate(program(text), inputs)[0]
    assert ATTEND.apply(made)
    assert [o.name for o in made.block.operations] == ["expand_dims", "attention"]
    assert np.allclose(evaluate(made, inputs)[0], wanted)


def test_a_mask_of_unknown_extents_goes_in_as_it_is_added():
    text = MASKED.replace("%mask: float32[1, 3, 3]", "%mask: float32[C, 3, 3]")
    made, x = program(text), np.random.default_rng(1).normal(size=(2, 3, 4)).astype("f")
    inputs = [x, x, x[..., :2].copy(), np.eye(3, dtype=np.float32)[None], 2]
    wanted = evaluate(program(text), inputs)[0]
    assert ATTEND.apply(made)
    assert [o.name for o in made.block.operations] == ["broadcast", "attention"]
    assert np.allclose(evaluate(made, inputs)[0], wanted)


def test_the_mask_of_an_attention_is_what_was_broadcast():
    becomes(
        ATTEND,
        """
func main(%q: float32[2, 3, 4], %k: float32[2, 5, 4], %v: float32[2, 5, 2], %mask: float32[1, 5]) {
  %m: float32[2, 3, 5] = broadcast(%mask) {shape=(2, 3, 5)}
  %y: float32[2, 3, 2] = attention(%q, %k, %v, %m) {causal=false}
  return %y
}
""",
        """
func main(%q: float32[2, 3, 4], %k: float32[2, 5, 4], %v: float32[2, 5, 2], %mask: float32[1, 5]) {
  %m: float32[2, 3, 5] = broadcast(%mask) {shape=(2, 3, 5)}
  %n: float32[1, 1, 5] = expand_dims(%mask) {axes=(0,)}
  %y: float32[2, 3, 2] = attention(%q, %k, %v, %n) {causal=false}
  return %y
}
""",
    )


def test_the_mask_of_a_cotangent_of_an_attention_is_what_was_broadcast():
    before = """
func main(%q: float32[2, 3, 4], %k: float32[2, 5, 4], %v: float32[2, 5, 2], %a: float32[1, 5], %c: float32[2, 3, 2]) {
  %m: float32[2, 3, 5] = broadcast(%a) {shape=(2, 3, 5)}
  %x: float32[2, 3, 4], %y: float32[2, 5, 4], %z: float32[2, 5, 2] = attention_grad(%q, %k, %v, %c, %m) {causal=false}
  return %x, %y, %z
}
"""
    made = program(before)
    assert ATTEND.apply(made)
    assert [o.name for o in made.block.operations] == ["broadcast", "expand_dims", "attention_grad"]


MASK_GRAD = """
func main(%q: float32[2, 3, 4], %k: float32[2, 5, 4], %v: float32[2, 5, 2], %a: float32[1, 5], %c: float32[2, 3, 2]) {
  %m: float32[2, 3, 5] = broadcast(%a) {shape=(2, 3, 5)}
  %g: float32[2, 3, 5] = attention_mask_grad(%q, %k, %v, %c, %m) {causal=false}
  %s: float32[1, 5] = sum_to(%g) {shape=(1, 5)}
  return RESULTS
}
"""


def test_a_cotangent_of_a_mask_is_that_of_what_was_broadcast_where_it_is_only_added_up():
    made = program(MASK_GRAD.replace("RESULTS", "%s"))
    assert ATTEND.apply(made)
    stays(ATTEND, MASK_GRAD.replace("RESULTS", "%s, %g"))


def test_inside_a_branch():
    made = program("""
func main(%c: bool[], %x: float32[2, 3, 3]) {
  %r: float32[2, 3, 3] = cond(%c, %x) {
    then(%x1: float32[2, 3, 3]) {
      %s: float32[2, 3, 3] = matmul(%x1, %x1) {transpose_x=false, transpose_y=true}
      %w: float32[2, 3, 3] = softmax(%s) {axis=2}
      %y: float32[2, 3, 3] = matmul(%w, %x1) {transpose_x=false, transpose_y=false}
      return %y
    }
    else(%x2: float32[2, 3, 3]) {
      return %x2
    }
  }
  return %r
}
""")
    assert ATTEND.apply(made)
    assert [o.name for o in made.block.operations[0].blocks[0].operations] == ["attention"]


@pytest.mark.parametrize(("scale", "op"), [("div", "div"), ("mul", "mul")])
def test_scaled_scores_are_those_of_scaled_queries(scale, op):
    text = PLAIN.replace(
        "  %w: float32[B, N, M] = softmax(%s)",
        "  %c: float32[] = constant() {value=float32[](3.0)}\n"
        "  %i: int(B) = dim(%q) {axis=0}\n  %j: int(N) = dim(%q) {axis=1}\n  %l: int(M) = dim(%k) {axis=1}\n"
        "  %f: float32[B, N, M] = broadcast(%c, %i, %j, %l) {shape=(none, none, none)}\n"
        f"  %t: float32[B, N, M] = {scale}(%s, %f)\n  %w: float32[B, N, M] = softmax(%t)",
    )
    made, rng = program(text), np.random.default_rng(2)
    inputs = [rng.normal(size=shape).astype("f") for shape in ((2, 3, 4), (2, 5, 4), (2, 5, 2))]
    wanted = evaluate(program(text), inputs)[0]
    assert ATTEND.apply(made)
    names = [o.name for o in made.block.operations]
    assert names[-2:] == [op, "attention"]
    assert "softmax" not in names
    assert np.allclose(evaluate(made, inputs)[0], wanted, rtol=1e-5)


def test_scores_over_a_number_on_the_left_stay():
    stays(ATTEND, PLAIN.replace("softmax(%s)", "softmax(%r)").replace(
        "  %w:", "  %r: float32[B, N, M] = div(%s, %s)\n  %w:"))  # fmt: skip


def test_transposed_keys_are_turned_back():
    text = PLAIN.replace("%k: float32[B, M, 4]", "%k: float32[B, 4, M]").replace(
        "transpose_y=true", "transpose_y=false"
    )
    made, rng = program(text), np.random.default_rng(3)
    inputs = [rng.normal(size=shape).astype("f") for shape in ((2, 3, 4), (2, 4, 5), (2, 5, 2))]
    wanted = evaluate(program(text), inputs)[0]
    assert ATTEND.apply(made)
    assert [o.name for o in made.block.operations] == ["transpose", "attention"]
    assert np.allclose(evaluate(made, inputs)[0], wanted, rtol=1e-5)


def test_a_transpose_of_keys_goes():
    becomes(
        ATTEND,
        PLAIN.replace("  %s:", "  %kt: float32[B, 4, M] = transpose(%k) {perm=(0, 2, 1)}\n  %s:").replace(
            "matmul(%q, %k) {transpose_x=false, transpose_y=true}",
            "matmul(%q, %kt) {transpose_x=false, transpose_y=false}",
        ),
        """
func main(%q: float32[B, N, 4], %k: float32[B, M, 4], %v: float32[B, M, 2]) {
  %y: float32[B, N, 2] = attention(%q, %k, %v) {causal=false}
  return %y
}
""",
    )


def test_values_that_are_needed_are_in_no_chain():
    made = program(PLAIN)
    weights = made.block.operations[1].results[0]
    assert bring_together(made.block, [weights]) == []
    assert [o.name for o in bring_together(made.block)] == ["softmax", "matmul"]
    assert [o.name for o in made.block.operations] == ["matmul", "softmax", "attention"]


CAUSAL = """
func main(%q: float32[B, 3, 4], %k: float32[B, 5, 4], %v: float32[B, 5, 2], %n: int(B)) {
  %s: float32[B, 3, 5] = matmul(%q, %k) {transpose_x=false, transpose_y=true}
MASK
  %m: float32[B, 3, 5] = broadcast(%mask, %n) {shape=(none, 3, 5)}
  %t: float32[B, 3, 5] = add(%s, %m)
  %w: float32[B, 3, 5] = softmax(%t) {axis=2}
  %y: float32[B, 3, 2] = matmul(%w, %v) {transpose_x=false, transpose_y=false}
  return %y
}
"""
LOWER = """  %true: bool[] = constant() {value=bool[](true)}
  %all: bool[3, 5] = full(%true) {shape=(3, 5)}
  %low: bool[3, 5] = tril(%all) {diagonal=0}
  %f: float32[3, 5] = cast(%low) {dtype=float32}
  %one: float32[] = constant() {value=float32[](1.0)}
  %ones: float32[3, 5] = broadcast(%one) {shape=(3, 5)}
  %off: float32[3, 5] = sub(%f, %ones)
  %large: float32[] = constant() {value=float32[](1000000000.0)}
  %larges: float32[3, 5] = broadcast(%large) {shape=(3, 5)}
  %mask: float32[3, 5] = mul(%off, %larges)"""
UPPER = """  %low: float32[] = constant() {value=float32[](-1000000000.0)}
  %lows: float32[3, 5] = full(%low) {shape=(3, 5)}
  %mask: float32[3, 5] = triu(%lows) {diagonal=1}"""


def causal_inputs():
    rng = np.random.default_rng(4)
    return [*(rng.normal(size=shape).astype("f") for shape in ((2, 3, 4), (2, 5, 4), (2, 5, 2))), 2]


@pytest.mark.parametrize("mask", [LOWER, UPPER], ids=["lower", "upper"])
@pytest.mark.parametrize("folded", [False, True])
def test_a_causal_mask_need_not_be_there(mask, folded):
    text = CAUSAL.replace("MASK", mask)
    made, inputs = program(text), causal_inputs()
    if folded:
        made = optimise(made)
        assert "tril" not in [o.name for o in made.walk()]
    wanted = evaluate(program(text), inputs)[0]
    assert ATTEND.apply(made)
    last = made.block.operations[-1]
    assert (last.name, last.attributes, len(last.operands)) == ("attention", {"causal": True}, 3)
    assert np.allclose(evaluate(made, inputs)[0], wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("old", "new"),
    [("tril(%all) {diagonal=0}", "tril(%all) {diagonal=1}"), ("1000000000.0", "3.0"), ("bool[](true)", "bool[](false)"),
     ("float32[](1.0)", "float32[](0.5)")],
)  # fmt: skip
def test_other_masks_stay_masks(old, new):
    text = CAUSAL.replace("MASK", LOWER).replace(old, new)
    for made in (program(text), optimise(program(text))):
        inputs, wanted = causal_inputs(), evaluate(program(text), causal_inputs())[0]
        assert ATTEND.apply(made)
        assert made.block.operations[-1].attributes == {"causal": False}
        assert np.allclose(evaluate(made, inputs)[0], wanted, rtol=1e-5)


DROPPED = """
func main(%q: float32[B, N, 4], %k: float32[B, M, 4], %v: float32[B, M, 2], %seed: int, %draw: int, %more: float32[]) {
  %s: float32[B, N, M] = matmul(%q, %k) {transpose_x=false, transpose_y=true}
  %w: float32[B, N, M] = softmax(%s) {axis=2}
  %i: int(B) = dim(%q) {axis=0}
  %j: int(N) = dim(%q) {axis=1}
  %l: int(M) = dim(%k) {axis=1}
  %c: float32[] = constant() {value=float32[](0.75)}
  %p: float32[B, N, M] = full(%c, %i, %j, %l) {shape=(none, none, none)}
  %d: float32[B, N, M] = random_bernoulli(%seed, %draw, %p)
  %f: float32[B, N, M] = broadcast(%c, %i, %j, %l) {shape=(none, none, none)}
  %e: float32[B, N, M] = div(%d, %f)
  %x: float32[B, N, M] = mul(%e, %w)
  %y: float32[B, N, 2] = matmul(%x, %v) {transpose_x=false, transpose_y=false}
  return %y
}
"""


def test_weights_that_are_dropped_go_in_with_their_draw():
    made, rng = program(DROPPED), np.random.default_rng(0)
    inputs = [*(rng.normal(size=s).astype("f") for s in ((2, 3, 4), (2, 5, 4), (2, 5, 2))), 7, 3, np.float32(1)]
    wanted = evaluate(program(DROPPED), inputs)[0]
    assert ATTEND.apply(made)
    assert {"softmax", "random_bernoulli"}.isdisjoint(o.name for o in optimise(made).walk())
    assert np.allclose(evaluate(made, inputs)[0], wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("return %y", "return %y, %d"),
        ("return %y", "return %y, %w"),
        ("full(%c,", "full(%more,"),
        ("= mul(%e, %w)", "= mul(%w, %w)"),
        ("= mul(%e, %w)", "= add(%e, %w)"),
        ("div(%d, %f)", "div(%f, %d)"),
        ("div(%d, %f)", "mul(%d, %d)"),
        ("broadcast(%c,", "broadcast(%more,"),
    ],
)
def test_weights_that_are_changed_otherwise_stay(before, after):
    stays(ATTEND, DROPPED.replace(before, after))
