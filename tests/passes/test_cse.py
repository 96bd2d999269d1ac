"""Common subexpressions."""

import numpy as np
import pytest

from dy2st import dtypes
from dy2st.ir.program import Operation
from dy2st.ir.verifier import verify
from dy2st.passes.core.rewrite import Renaming
from dy2st.passes.simplify.cse import MergeCommonSubexpressions, identity
from tests.passes.texts import becomes, program, stays

CSE = MergeCommonSubexpressions()


def test_equal_operations_become_one() -> None:
    becomes(
        CSE,
        """%x: float32[N]
        %a: float32[N] = exp(%x)
        %b: float32[N] = exp(%x)
        %c: float32[N] = neg(%a)
        %d: float32[N] = neg(%b)
        %e: float32[N] = add(%c, %d)
        return %e""",
        """%x: float32[N]
        %a: float32[N] = exp(%x)
        %c: float32[N] = neg(%a)
        %e: float32[N] = add(%c, %c)
        return %e""",
    )


def test_what_may_raise_is_merged() -> None:
    becomes(
        CSE,
        """%n: int, %m: int
        %a: int = scalar_floordiv(%n, %m)
        %b: int = scalar_floordiv(%n, %m)
        %c: int = scalar_add(%a, %b)
        return %c""",
        """%n: int, %m: int
        %a: int = scalar_floordiv(%n, %m)
        %c: int = scalar_add(%a, %a)
        return %c""",
    )


def test_other_attributes_or_operands_are_not_merged() -> None:
    stays(
        CSE,
        """%x: float32[N, N]
        %a: float32[N, N] = transpose(%x) {perm=(0, 1)}
        %b: float32[N, N] = transpose(%x) {perm=(1, 0)}
        %c: float32[N, N] = sub(%a, %b)
        %d: float32[N, N] = sub(%b, %a)
        %e: float32[] = constant() {value=float32[](0.0)}
        %f: float32[] = constant() {value=float32[](-0.0)}
        return %c, %d, %e, %f""",
    )


def test_two_results_stay_two_arrays() -> None:
    stays(
        CSE,
        """%x: float32[N]
        %a: float32[N] = exp(%x)
        %b: float32[N] = exp(%x)
        return %a, %b""",
    )


def test_symbols_of_merged_values_become_one() -> None:
    becomes(
        CSE,
        """%x: bool[N]
        %a: int64[n0, 1] = nonzero(%x)
        %b: int64[n1, 1] = nonzero(%x)
        %c: int64[n1, 1] = neg(%b)
        %d: int(n1) = dim(%c) {axis=0}
        return %a, %d""",
        """%x: bool[N]
        %a: int64[n0, 1] = nonzero(%x)
        %c: int64[n0, 1] = neg(%a)
        %d: int(n0) = dim(%c) {axis=0}
        return %a, %d""",
    )


def test_arguments_that_take_the_same_value_become_one_in_nested_blocks() -> None:
    becomes(
        CSE,
        """%k: int, %p: bool, %x: float32[N]
        %r: float32[N] = counted_while(%k, %x, %x, %x, %p) {carried=1, reverse=false} {
          body(%i: int, %s: float32[N], %u: float32[N], %v: float32[N], %q: bool) {
            %t: float32[N] = cond(%q, %s, %u, %v) {
              then(%s1: float32[N], %u1: float32[N], %v1: float32[N]) {
                %a: float32[N] = mul(%u1, %v1)
                return %a
              }
              else(%s2: float32[N], %u2: float32[N], %v2: float32[N]) {
                return %s2
              }
            }
            return %t
          }
        }
        return %r""",
        """%k: int, %p: bool, %x: float32[N]
        %r: float32[N] = counted_while(%k, %x, %x, %p) {carried=1, reverse=false} {
          body(%i: int, %s: float32[N], %u: float32[N], %q: bool) {
            %t: float32[N] = cond(%q, %s, %u) {
              then(%s1: float32[N], %u1: float32[N]) {
                %a: float32[N] = mul(%u1, %u1)
                return %a
              }
              else(%s2: float32[N], %u2: float32[N]) {
                return %s2
              }
            }
            return %t
          }
        }
        return %r""",
    )


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (1, 1.0, False),
        (1, True, False),
        (0.0, -0.0, False),
        (float("nan"), float("nan"), True),
        ((1, (2,)), (1, (2,)), True),
        (np.zeros(2, np.float32), np.zeros(2, np.float32), True),
        (np.zeros(2, np.float32), np.zeros(2, np.int32), False),
        (np.zeros(2), -np.zeros(2), False),
        (dtypes.float32, dtypes.float32, True),
        (dtypes.float32, dtypes.float64, False),
    ],
)
def test_identity_of_attributes(a: object, b: object, same: bool) -> None:
    assert (identity({"value": a}) == identity({"value": b})) is same


def test_renaming_extents_does_not_go_through_the_function_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    renamed: list[Operation] = []
    said_by = Renaming.said_by

    def counted(self: Renaming, operation: Operation) -> None:
        renamed.append(operation)
        said_by(self, operation)

    monkeypatch.setattr(Renaming, "said_by", counted)
    count, lines, last = 60, list[str](), "%x"
    for i in range(count):
        lines.append(f"%m{i}: bool[4] = ne(%x, {last if i else '%y'})")
        for side in "ab":
            lines.append(f"%{side}{i}: int64[{side}{i}, 1] = nonzero(%m{i})")
            lines.append(f"%{side}s{i}: int64[] = sum(%{side}{i}) {{axis=(0, 1), keepdim=false}}")
        lines.append(f"%c{i}: int64[] = mul(%as{i}, %bs{i})")
        lines.append(f"%f{i}: float32[] = cast(%c{i}) {{dtype=float32}}")
        lines.append(f"%l{i}: float32[4] = broadcast(%f{i}) {{shape=(4,)}}")
        last = f"%l{i}"
    made = program("%x: float32[4], %y: float32[4]\n        " + "\n        ".join([*lines, f"return {last}"]))
    before = made.count
    assert MergeCommonSubexpressions().apply(made)
    assert made.count == before - 2 * count
    assert len(renamed) < 3 * before
    verify(made)
    assert not [v for o in made.walk() for v in o.results if "b" in str(v.type).partition("[")[2]]
