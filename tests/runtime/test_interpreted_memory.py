"""What the interpreter holds at a time, as types and extents tell."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.executor.tiering import TieredProgram
from dy2st.runtime.interpreter.memory_model import peak
from tests.passes.texts import program

KB = 4 * 1000


@pytest.mark.parametrize(
    ("text", "tensors"),
    [
        ("%x: float32[N]\n  %y: float32[N] = exp(%x)\n  return %y", 1),
        ("%x: float32[N]\n  %y: float32[N] = exp(%x)\n  %z: float32[N] = exp(%y)\n  return %z", 2),
        ("%x: float32[N]\n  %a: float32[N] = exp(%x)\n  %b: float32[N] = exp(%a)\n  %c: float32[N] = exp(%b)\n"
         "  return %c", 2),
        ("%x: float32[N]\n  %a: float32[N] = exp(%x)\n  %b: float32[N] = exp(%a)\n  %c: float32[N] = exp(%b)\n"
         "  %d: float32[N] = add(%a, %c)\n  return %d", 3),
        ("%x: float32[N]\n  return %x", 0),
    ],
    ids=["one", "two", "freed", "held", "none"],
)  # fmt: skip
def test_results_are_held_up_to_their_last_use(text, tensors):
    assert peak(program(text), {"N": 1000}) == tensors * KB


def test_a_view_holds_what_it_is_of():
    text = """%x: float32[N, 2]
  %a: float32[N, 2] = exp(%x)
  %t: float32[2, N] = transpose(%a) {perm=(1, 0)}
  %b: float32[N, 2] = exp(%x)
  %c: float32[2, N] = exp(%t)
  return %c"""
    assert peak(program(text), {"N": 500}) == 2 * KB  # b goes before c comes; a is held for the view


def test_a_branch_holds_as_much_as_the_larger_one():
    made = program("""
func main(%c: bool[], %x: float32[N]) {
  %r: float32[N] = cond(%c, %x) {
    then(%x1: float32[N]) {
      %a: float32[N] = exp(%x1)
      %b: float32[N] = exp(%a)
      return %b
    }
    else(%x2: float32[N]) {
      return %x2
    }
  }
  return %r
}
""")
    assert peak(made, {"N": 1000}) == 3 * KB


def test_nothing_is_said_of_lists():
    made = program("%x: float32[N]\n  %l: list<float32[N]> = list_new(%x) {type=!list<float32[N]>}\n  return %l")
    assert peak(made, {"N": 1000}) == 0


@pytest.mark.one_tier("looks at what was kept")
def test_a_report_of_the_interpreter_has_it():
    def f(x):
        return paddle.exp(x) + 1

    static = paddle.jit.to_static(f, full_graph=True)
    static(paddle.ones([1000]))
    runner = TieredProgram(static.concrete_program.main_program)
    runner.run([np.ones(1000, "float32")])
    assert runner.report().peak >= 2 * KB
    assert "operation by operation; about" in str(runner.report())
    assert "beside the inputs" in str(runner.report())
