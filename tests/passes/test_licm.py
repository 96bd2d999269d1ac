"""Loop-invariant motion."""

from dy2st.passes.loops.licm import HoistInvariants
from tests.passes.texts import becomes, stays

LICM = HoistInvariants()


def test_invariant_operations_leave_the_loop() -> None:
    becomes(
        LICM,
        """%k: int, %x: float32[N]
        %r: float32[N] = counted_while(%k, %x, %x) {carried=1, reverse=false} {
          body(%i: int, %s: float32[N], %y: float32[N]) {
            %e: float32[N] = exp(%y)
            %f: float32[N] = neg(%e)
            %t: float32[N] = add(%s, %f)
            return %t
          }
        }
        return %r""",
        """%k: int, %x: float32[N]
        %e: float32[N] = exp(%x)
        %f: float32[N] = neg(%e)
        %r: float32[N] = counted_while(%k, %x, %x, %e, %f) {carried=1, reverse=false} {
          body(%i: int, %s: float32[N], %y: float32[N], %e1: float32[N], %f1: float32[N]) {
            %t: float32[N] = add(%s, %f1)
            return %t
          }
        }
        return %r""",
    )


def test_operations_leave_nested_loops_at_once_with_their_constants() -> None:
    becomes(
        LICM,
        """%k: int, %p: bool, %x: float32[]
        %r: float32[] = counted_while(%k, %x, %p, %x) {carried=1, reverse=false} {
          body(%i: int, %s: float32[], %p1: bool, %y: float32[]) {
            %t: float32[] = while_loop(%p1, %s, %y) {carried=1} {
              body(%u: float32[], %z: float32[]) {
                %c: float32[] = constant() {value=float32[](2.0)}
                %m: float32[] = mul(%z, %c)
                %v: float32[] = add(%u, %m)
                %g: bool[] = lt(%v, %m)
                %h: bool = item(%g)
                return %h, %v
              }
            }
            return %t
          }
        }
        return %r""",
        """%k: int, %p: bool, %x: float32[]
        %c: float32[] = constant() {value=float32[](2.0)}
        %m: float32[] = mul(%x, %c)
        %r: float32[] = counted_while(%k, %x, %p, %x, %m) {carried=1, reverse=false} {
          body(%i: int, %s: float32[], %p1: bool, %y: float32[], %m1: float32[]) {
            %c1: float32[] = constant() {value=float32[](2.0)}
            %t: float32[] = while_loop(%p1, %s, %y, %m1) {carried=1} {
              body(%u: float32[], %z: float32[], %m2: float32[]) {
                %c2: float32[] = constant() {value=float32[](2.0)}
                %v: float32[] = add(%u, %m2)
                %g: bool[] = lt(%v, %m2)
                %h: bool = item(%g)
                return %h, %v
              }
            }
            return %t
          }
        }
        return %r""",
    )


def test_what_may_raise_or_changes_or_is_a_list_stays() -> None:
    stays(
        LICM,
        """%k: int, %n: int, %m: int
        %r: int = counted_while(%k, %k, %n, %m) {carried=1, reverse=false} {
          body(%i: int, %s: int, %a: int, %b: int) {
            %c: int = scalar_floordiv(%a, %b)
            %l: list<int> = list_new() {type=!list<int>}
            %o: int = scalar_add(%i, %a)
            %t: int = scalar_add(%s, %o)
            return %t
          }
        }
        return %r""",
    )


def test_a_value_that_each_turn_passes_on_becomes_an_invariant() -> None:
    becomes(
        LICM,
        """%p: bool, %x: float32[N], %y: float32[N]
        %a: float32[N], %b: float32[N] = while_loop(%p, %x, %y, %x) {carried=2} {
          body(%u: float32[N], %v: float32[N], %w: float32[N]) {
            %f: bool = scalar_constant() {value=false}
            %t: float32[N] = add(%v, %w)
            return %f, %u, %t
          }
        }
        return %a, %b""",
        """%p: bool, %x: float32[N], %y: float32[N]
        %b: float32[N] = while_loop(%p, %y, %x, %x) {carried=1} {
          body(%v: float32[N], %w: float32[N], %u: float32[N]) {
            %f: bool = scalar_constant() {value=false}
            %t: float32[N] = add(%v, %w)
            return %f, %t
          }
        }
        return %x, %b""",
    )


def test_branches_keep_their_operations() -> None:
    stays(
        LICM,
        """%p: bool, %x: float32[N]
        %r: float32[N] = cond(%p, %x) {
          then(%y: float32[N]) {
            %e: float32[N] = exp(%y)
            return %e
          }
          else(%z: float32[N]) {
            return %z
          }
        }
        return %r""",
    )


def test_what_a_check_in_the_body_guards_stays() -> None:
    stays(
        LICM,
        """%k: int, %x: float32[N], %y: float32[2]
        %l: int(N) = dim(%x) {axis=0}
        %r: float32[2] = counted_while(%k, %y, %x, %l) {carried=1, reverse=false} {
          body(%i: int, %v: float32[2], %w: float32[N], %n: int(N)) {
            %two: int(2) = scalar_constant() {value=2}
            %e: int(2) = broadcast_extent(%two, %n)
            %b: float32[2] = broadcast(%w) {shape=(2,)}
            %t: float32[2] = add(%v, %b)
            return %t
          }
        }
        return %r""",
    )
