"""Attention brought together: fires, stays away, values."""

import numpy as np
import pytest

from dy2st.passes.attend import Attend
from dy2st.runtime.interpreter import evaluate
from tests.passes.texts import becomes, program, stays

ATTEND = Attend()
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
  %y: float32[B, N, 2] = attention(%q, %k, %v)
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


def test_a_mask_of_unknown_extents_stays():
    stays(ATTEND, MASKED.replace("%mask: float32[1, 3, 3]", "%mask: float32[C, 3, 3]"))


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
