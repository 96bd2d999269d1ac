"""Simplification that keeps every bit."""

import numpy as np
import pytest

from dy2st import dtypes
from dy2st.ir.builder import Builder
from dy2st.ir.program import Program
from dy2st.ir.types import TensorType
from dy2st.passes.simplify.dce import RemoveDeadCode
from dy2st.passes.simplify.simplify import Simplify
from dy2st.runtime.interpreter.planned import compile_plan
from dy2st.runtime.interpreter.reference import evaluate
from tests.passes.texts import becomes, program, stays

SIMPLIFY = Simplify()
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3.4e38, -1.5], np.float32)


@pytest.mark.parametrize(
    ("op", "number", "left", "goes"),
    [
        ("mul", 1.0, False, True),
        ("mul", 1.0, True, True),
        ("div", 1.0, False, True),
        ("add", -0.0, False, True),
        ("add", -0.0, True, True),
        ("sub", 0.0, False, True),
        ("add", 0.0, False, False),  # -0.0 + 0.0 is 0.0
        ("sub", -0.0, False, False),
        ("sub", 0.0, True, False),
        ("div", 1.0, True, False),
        ("mul", 0.0, False, False),
        ("mul", 2.0, False, False),
    ],
)
def test_arithmetic_with_a_number_goes_only_where_that_is_exact(op: str, number: float, left: bool, goes: bool) -> None:
    b = Builder()
    x = b.argument(TensorType(dtypes.float32, (8,)))
    operands = (number, x) if left else (x, number)
    b.block.results = [b.neg(getattr(b, op)(*operands))]
    made = Program({"main": b.block})
    (before,) = evaluate(made, [SPECIAL])
    SIMPLIFY.apply(made)
    RemoveDeadCode().apply(made)
    (after,) = evaluate(made, [SPECIAL])
    assert (len(made.block.operations) == 1) is goes
    assert np.isnan(before).tolist() == np.isnan(after).tolist()
    assert before[~np.isnan(before)].tobytes() == after[~np.isnan(after)].tobytes()


def test_adding_0_to_integers_goes() -> None:
    becomes(
        SIMPLIFY,
        """%x: int64[2]
        %z: int64[2] = constant() {value=int64[2](0, 0)}
        %a: int64[2] = add(%x, %z)
        %b: int64[2] = neg(%a)
        return %b""",
        """%x: int64[2]
        %z: int64[2] = constant() {value=int64[2](0, 0)}
        %b: int64[2] = neg(%x)
        return %b""",
    )


def test_complex_products_with_1_stay() -> None:
    stays(
        SIMPLIFY,
        """%x: complex64[1]
        %z: complex64[1] = ones_like(%x)
        %a: complex64[1] = mul(%x, %z)
        %b: complex64[1] = neg(%a)
        return %b""",
    )


def test_pairs_become_one_or_nothing() -> None:
    becomes(
        SIMPLIFY,
        """%x: float32[2, 3, 4], %n: int
        %a: float32[3, 4, 2] = transpose(%x) {perm=(1, 2, 0)}
        %b: float32[4, 2, 3] = transpose(%a) {perm=(1, 2, 0)}
        %c: float32[2, 3, 4] = transpose(%b) {perm=(1, 2, 0)}
        %d: float32[6, 4] = reshape(%c) {shape=(6, 4)}
        %e: float32[24] = reshape(%d) {shape=(-1,)}
        %f: float32[24] = detach(%e)
        %g: float32[24] = detach(%f)
        %h: float32[24] = neg(%g)
        %i: float32[24] = neg(%h)
        %j: float32[24] = exp(%i)
        return %j""",
        """%x: float32[2, 3, 4], %n: int
        %a: float32[3, 4, 2] = transpose(%x) {perm=(1, 2, 0)}
        %b: float32[4, 2, 3] = transpose(%x) {perm=(2, 0, 1)}
        %d: float32[6, 4] = reshape(%x) {shape=(6, 4)}
        %e: float32[24] = reshape(%x) {shape=(-1,)}
        %f: float32[24] = detach(%e)
        %g: float32[24] = detach(%e)
        %h: float32[24] = neg(%g)
        %j: float32[24] = exp(%g)
        return %j""",
    )


def test_what_keeps_the_type_is_nothing() -> None:
    becomes(
        SIMPLIFY,
        """%x: float32[N, 4]
        %d: int(N) = dim(%x) {axis=0}
        %a: float32[N, 4] = cast(%x) {dtype=float32}
        %b: float32[N, 4] = broadcast(%a, %d) {shape=(none, 4)}
        %c: float32[N, 4] = sum_to(%b, %d) {shape=(none, 4)}
        %e: float32[N, 4] = reshape(%c, %d) {shape=(none, 4)}
        %f: float32[N, 4] = neg(%e)
        return %f""",
        """%x: float32[N, 4]
        %d: int(N) = dim(%x) {axis=0}
        %f: float32[N, 4] = neg(%x)
        return %f""",
    )


def test_a_copy_that_the_caller_sees_stays_a_copy() -> None:
    stays(
        SIMPLIFY,
        """%x: float32[N, 4]
        %a: float32[N, 4] = cast(%x) {dtype=float32}
        %b: float32[N, 4] = cast(%x) {dtype=float32}
        %c: float32[4, N] = transpose(%b) {perm=(1, 0)}
        return %a, %c""",
    )


def test_a_copy_of_what_nobody_else_sees_goes() -> None:
    becomes(
        SIMPLIFY,
        """%x: float32[N]
        %a: float32[N] = exp(%x)
        %b: float32[N] = cast(%a) {dtype=float32}
        return %b""",
        """%x: float32[N]
        %a: float32[N] = exp(%x)
        return %a""",
    )


def test_known_extents_are_constants() -> None:
    becomes(
        SIMPLIFY,
        """%x: float32[N, 4]
        %a: int(N) = dim(%x) {axis=0}
        %b: int(4) = dim(%x) {axis=1}
        %c: int(4*N) = scalar_mul(%a, %b)
        return %b, %c""",
        """%x: float32[N, 4]
        %a: int(N) = dim(%x) {axis=0}
        %b: int(4) = scalar_constant() {value=4}
        %c: int(4*N) = scalar_mul(%a, %b)
        return %b, %c""",
    )


def test_an_extent_that_is_known_though_its_check_may_raise() -> None:
    becomes(
        SIMPLIFY,
        """%x: float32[N], %y: float32[4]
        %a: int(N) = dim(%x) {axis=0}
        %b: int(4) = dim(%y) {axis=0}
        %c: int(4) = broadcast_extent(%a, %b)
        %d: int(4*N) = scalar_mul(%a, %c)
        return %d""",
        """%x: float32[N], %y: float32[4]
        %a: int(N) = dim(%x) {axis=0}
        %b: int(4) = scalar_constant() {value=4}
        %c: int(4) = broadcast_extent(%a, %b)
        %e: int(4) = scalar_constant() {value=4}
        %d: int(4*N) = scalar_mul(%a, %e)
        return %d""",
    )


def test_cond_of_a_constant_is_its_branch_also_inside_a_loop() -> None:
    becomes(
        SIMPLIFY,
        """%k: int, %x: float32[N]
        %r: float32[N] = counted_while(%k, %x) {carried=1, reverse=false} {
          body(%i: int, %s: float32[N]) {
            %p: bool = scalar_constant() {value=false}
            %t: float32[n0] = cond(%p, %s) {
              then(%a: float32[N]) {
                return %a
              }
              else(%b: float32[N]) {
                %c: float32[N] = neg(%b)
                return %c
              }
            }
            %u: float32[n0] = exp(%t)
            return %u
          }
        }
        return %r""",
        """%k: int, %x: float32[N]
        %r: float32[N] = counted_while(%k, %x) {carried=1, reverse=false} {
          body(%i: int, %s: float32[N]) {
            %p: bool = scalar_constant() {value=false}
            %c: float32[N] = neg(%s)
            %u: float32[N] = exp(%c)
            return %u
          }
        }
        return %r""",
    )


EQUAL = """{p}, %x: float32[N]
        %r: float32[N] = cond(%p, %x) {{
          then(%a: float32[N]) {{
            %c: float32[N] = neg(%a)
            return %c
          }}
          else(%b: float32[N]) {{
            %d: float32[N] = neg(%b)
            return %d
          }}
        }}
        return %r"""


def test_cond_of_equal_branches_is_one_of_them() -> None:
    becomes(SIMPLIFY, EQUAL.format(p="%p: bool"), "%p: bool, %x: float32[N]\n%c: float32[N] = neg(%x)\nreturn %c")


def test_a_predicate_of_several_elements_must_still_be_asked() -> None:
    stays(SIMPLIFY, EQUAL.format(p="%p: bool[M]"))


def test_loops_that_do_not_turn_are_nothing() -> None:
    becomes(
        SIMPLIFY,
        """%x: float32[N], %k: int
        %f: bool = scalar_constant() {value=false}
        %z: int(0) = scalar_constant() {value=0}
        %a: float32[N] = while_loop(%f, %x) {carried=1} {
          body(%u: float32[N]) {
            %t: bool = scalar_constant() {value=true}
            return %t, %u
          }
        }
        %b: float32[N] = counted_while(%z, %a) {carried=1, reverse=true} {
          body(%i: int, %v: float32[N]) {
            %w: float32[N] = neg(%v)
            return %w
          }
        }
        return %b""",
        """%x: float32[N], %k: int
        %f: bool = scalar_constant() {value=false}
        %z: int(0) = scalar_constant() {value=0}
        return %x""",
    )


def test_what_both_branches_pass_on_is_the_operand() -> None:
    becomes(
        SIMPLIFY,
        """%p: bool, %x: float32[N], %y: float32[N]
        %r: float32[N], %s: float32[N] = cond(%p, %x, %y) {
          then(%a: float32[N], %b: float32[N]) {
            return %a, %b
          }
          else(%c: float32[N], %d: float32[N]) {
            return %c, %c
          }
        }
        return %r, %s""",
        """%p: bool, %x: float32[N], %y: float32[N]
        %s: float32[N] = cond(%p, %x, %y) {
          then(%a: float32[N], %b: float32[N]) {
            return %b
          }
          else(%c: float32[N], %d: float32[N]) {
            return %c
          }
        }
        return %x, %s""",
    )


def test_variants_lists_and_tuples_that_were_just_made() -> None:
    becomes(
        SIMPLIFY,
        """%x: float32[N], %y: float32[N]
        %v: variant<unset | float32[N]> = variant_new(%x) {type=!variant<unset | float32[N]>, tag=1}
        %a: float32[N] = variant_get(%v) {tag=1, message="x"}
        %t: int = variant_tag(%v)
        %l: list<float32[N]> = list_new(%x, %y) {type=!list<float32[N]>}
        %n: int = list_len(%l)
        %i: int(-1) = scalar_constant() {value=-1}
        %g: float32[N] = list_get(%l, %i)
        %p: tuple<float32[N], int> = tuple_new(%a, %t)
        %q: float32[N], %u: int = tuple_get(%p)
        %s: float32[N] = add(%q, %g)
        return %s, %u, %n""",
        """%x: float32[N], %y: float32[N]
        %v: variant<unset | float32[N]> = variant_new(%x) {type=!variant<unset | float32[N]>, tag=1}
        %t: int(1) = scalar_constant() {value=1}
        %l: list<float32[N]> = list_new(%x, %y) {type=!list<float32[N]>}
        %n: int(2) = scalar_constant() {value=2}
        %i: int(-1) = scalar_constant() {value=-1}
        %p: tuple<float32[N], int> = tuple_new(%x, %t)
        %s: float32[N] = add(%x, %y)
        return %s, %t, %n""",
    )


@pytest.mark.parametrize(("asked", "folds"), [(1, True), (2, False)])
def test_the_tag_that_the_first_branch_gives_is_there_where_the_predicate_is(asked: int, folds: bool) -> None:
    text = """%p: bool, %x: float32[], %s: bool
        %v: variant<unset | float32[] | bool> = cond(%p, %x, %s) {
          then(%a: float32[], %b: bool) {
            %y: variant<unset | float32[] | bool> = variant_new(%a) {type=!variant<unset | float32[] | bool>, tag=1}
            return %y
          }
          else(%a: float32[], %b: bool) {
            %y: variant<unset | float32[] | bool> = variant_new(%b) {type=!variant<unset | float32[] | bool>, tag=2}
            return %y
          }
        }
        %t: int = variant_tag(%v)
        %k: int(ASKED) = scalar_constant() {value=ASKED}
        %e: bool = scalar_eq(%t, %k)
        return %v, %e""".replace("ASKED", str(asked))
    made = program(text)
    Simplify().apply(made)
    assert (made.block.results[1] is made.block.arguments[0]) == folds


def test_another_alternative_or_an_index_outside_stays_to_raise() -> None:
    stays(
        SIMPLIFY,
        """%x: float32[N]
        %v: variant<unset | float32[N]> = variant_new() {type=!variant<unset | float32[N]>, tag=0}
        %a: float32[N] = variant_get(%v) {tag=1, message="x"}
        %l: list<float32[N]> = list_new(%x) {type=!list<float32[N]>}
        %i: int(1) = scalar_constant() {value=1}
        %g: float32[N] = list_get(%l, %i)
        return %a, %g""",
    )


def test_a_folded_tensor_predicate_counts() -> None:
    constant = "%p: bool[1] = constant() {value=bool[1](true)}\n"
    made = program(EQUAL.format(p="%q: bool").replace("%r: float32[N] =", f"{constant}%r: float32[N] =", 1))
    assert SIMPLIFY.apply(made)
    assert [o.op.name for o in made.walk()] == ["constant", "neg"]


TAKEN = """%x: float32[2]
        %p: bool = scalar_constant() {{value=true}}
        %r: float32[2] = cond(%p, %x) {{
          then(%a: float32[2]) {{
            %c: float32[2] = exp(%a)
            return %c
          }}
          else(%b: float32[2]) {{
            return %b
          }}
        }}
        %z: float32[2] = constant() {{value=float32[2](-0.0, -0.0)}}
        %s: float32[2] = add(%r, %z)
        return {results}"""


def test_what_a_known_branch_gave_stands_in_too() -> None:
    made = program(TAKEN.format(results="%s"))
    assert SIMPLIFY.apply(made)
    RemoveDeadCode().apply(made)
    assert [o.op.name for o in made.walk()] == ["exp"]


def test_two_results_of_a_known_branch_stay_two_arrays() -> None:
    made = program(TAKEN.format(results="%r, %s"))
    for _ in range(3):
        SIMPLIFY.apply(made)
        RemoveDeadCode().apply(made)
    first, second = compile_plan(made).run([np.zeros(2, np.float32)])
    assert first.tolist() == second.tolist() == [1.0, 1.0]
    assert not np.shares_memory(first, second)
