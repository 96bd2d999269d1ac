"""Programs for inputs of which more is known."""

import pytest

from dy2st.ir.parser import parse
from dy2st.ir.verifier import verify
from dy2st.passes.specialize_shapes import narrowed
from dy2st.shapes import symbol

LOOP = """program main
func main(%x: float32[N], %w: float32[W], %n: int) {
  %0: float32[n2] = counted_while(%n, %x, %w) {carried=1, reverse=false} {
    body(%i: int, %1: float32[n1], %w: float32[W]) {
      %2: int(n1) = dim(%1) {axis=0}
      %3: int(W) = dim(%w) {axis=0}
      %4: int(bcast(W, n1)) = broadcast_extent(%2, %3)
      %5: float32[bcast(W, n1)] = broadcast(%1, %4) {shape=(none,)}
      %6: float32[bcast(W, n1)] = broadcast(%w, %4) {shape=(none,)}
      %7: float32[bcast(W, n1)] = add(%5, %6)
      return %7
    }
  }
  return %0
}
"""
CALL = """program main
func main(%x: float32[N], %w: float32[W]) {
  %0: float32[N] = call(%x) {function="f", types=(!float32[N],)}
  return %0
}
func f(%a: float32[W]) {
  return %a
}
"""


TAPE = """program main
func main(%x: float32[N], %w: float32[W], %n: int) {
  %0: list<float32[n1]> = list_new() {type=!list<float32[n1]>}
  %1: float32[n2], %2: list<float32[n1]> = counted_while(%n, %x, %0, %w) {carried=2, reverse=false} {
    body(%i: int, %3: float32[n1], %4: list<float32[n1]>, %w: float32[W]) {
      %5: list<float32[n1]> = list_append(%4, %3)
      %6: int(W) = dim(%w) {axis=0}
      %7: int(n1) = dim(%3) {axis=0}
      %8: int(bcast(W, n1)) = broadcast_extent(%6, %7)
      %9: float32[bcast(W, n1)] = broadcast(%3, %8) {shape=(none,)}
      return %9, %5
    }
  }
  %10: float32[N] = counted_while(%n, %x, %2) {carried=1, reverse=true} {
    body(%i_1: int, %11: float32[N], %12: list<float32[n1]>) {
      %13: float32[n1] = list_get(%12, %i_1)
      %14: float32[n1] = tanh(%13)
      %15: int(n1) = dim(%14) {axis=0}
      %16: int(bcast(N, n1)) = broadcast_extent(%15, %15)
      return %11
    }
  }
  return %10
}
"""


def types(program):
    return [str(v.type) for operation in program.walk() for v in operation.results]


def test_a_loop_carries_the_type_that_it_begins_with_where_the_body_gives_it_back():
    made = narrowed(parse(LOOP), {"W": symbol("N")})
    verify(made)
    assert types(made) == ["float32[N]", "int(N)", "int(N)", "int(N)", *["float32[N]"] * 3]


def test_a_loop_that_changes_what_it_carries_keeps_what_the_program_says():
    made = narrowed(parse(LOOP), {"N": 1})
    verify(made)
    assert types(made)[:2] == ["float32[n2]", "int(n1)"]


def test_what_a_loop_finds_out_of_its_symbols_holds_in_what_reads_its_lists():
    made = narrowed(parse(TAPE), {"W": symbol("N")})
    verify(made)
    found = types(made)
    assert [t for t in found if "n1" in t] == []
    assert found[-4:] == ["float32[N]", "float32[N]", "int(N)", "int(N)"]


def test_the_program_that_is_given_stays_as_it_is():
    program = parse(LOOP)
    narrowed(program, {"W": 1})
    assert str(program) == str(parse(LOOP))


def test_symbols_of_other_functions_are_their_own():
    made = narrowed(parse(CALL), {"N": 4, "W": 5})
    verify(made)
    assert [str(v.type) for v in made.functions["f"].arguments] == ["float32[W]"]
    assert types(made) == ["float32[4]"]


def test_inputs_that_no_operation_takes_are_refused():
    program = parse("""program main
func main(%x: float32[N]) {
  %0: float32[2, 3] = reshape(%x) {shape=(2, 3)}
  return %0
}
""")
    with pytest.raises(ValueError, match="cannot reshape a tensor of shape"):
        narrowed(program, {"N": 5})
