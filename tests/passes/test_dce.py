"""Dead code elimination."""

from dy2st.ir.verifier import verify
from dy2st.passes.simplify.dce import RemoveDeadCode
from tests.passes.texts import becomes, program, stays

DCE = RemoveDeadCode()


def test_a_chain_that_nobody_uses_goes() -> None:
    becomes(
        DCE,
        """%x: float32[N]
        %a: float32[N] = exp(%x)
        %b: float32[N] = neg(%a)
        %c: float32[N] = tanh(%x)
        return %c""",
        """%x: float32[N]
        %c: float32[N] = tanh(%x)
        return %c""",
    )


def test_what_may_raise_or_is_seen_stays() -> None:
    stays(
        DCE,
        """%n: int, %m: int, %x: float32[N], %y: float32[M]
        %a: int = scalar_floordiv(%n, %m)
        %p: int(N) = dim(%x) {axis=0}
        %q: int(M) = dim(%y) {axis=0}
        %b: int(bcast(N, M)) = broadcast_extent(%p, %q)
        print(%n) {template=(), sep=" ", end=""}
        return %x""",
    )


def test_what_provably_cannot_raise_goes() -> None:
    becomes(
        DCE,
        """%n: int, %x: float32[N, 4]
        %two: int(2) = scalar_constant() {value=2}
        %a: int = scalar_floordiv(%n, %two)
        %d: int(N) = dim(%x) {axis=0}
        %b: float32[4, N] = reshape(%x, %d) {shape=(4, none)}
        %c: float32[4, 4] = matmul(%x, %x) {transpose_x=true, transpose_y=false}
        %e: int(N) = broadcast_extent(%d, %d)
        return %x""",
        """%n: int, %x: float32[N, 4]
        return %x""",
    )


def test_results_arguments_and_operands_of_cond_go() -> None:
    becomes(
        DCE,
        """%p: bool, %x: float32[N], %y: float32[N]
        %a: float32[N], %b: float32[N] = cond(%p, %x, %y) {
          then(%x1: float32[N], %y1: float32[N]) {
            %c: float32[N] = exp(%y1)
            return %x1, %c
          }
          else(%x2: float32[N], %y2: float32[N]) {
            %d: float32[N] = neg(%x2)
            return %d, %y2
          }
        }
        return %a""",
        """%p: bool, %x: float32[N], %y: float32[N]
        %a: float32[N] = cond(%p, %x) {
          then(%x1: float32[N]) {
            return %x1
          }
          else(%x2: float32[N]) {
            %d: float32[N] = neg(%x2)
            return %d
          }
        }
        return %a""",
    )


def test_a_cond_that_may_raise_stays_without_its_results() -> None:
    becomes(
        DCE,
        """%p: bool, %n: int
        %a: int = cond(%p, %n) {
          then(%m: int) {
            %c: int = scalar_floordiv(%m, %m)
            return %c
          }
          else(%k: int) {
            return %k
          }
        }
        return %n""",
        """%p: bool, %n: int
        cond(%p, %n) {
          then(%m: int) {
            %c: int = scalar_floordiv(%m, %m)
            return
          }
          else(%k: int) {
            return
          }
        }
        return %n""",
    )


WHILE = """%p: bool, %k: int, %x: float32[N], %y: float32[N], %z: float32[N]
        %i: int, %a: float32[N], %b: float32[N] = while_loop(%p, %k, %x, %y, %z) {carried=3} {
          body(%i1: int, %a1: float32[N], %b1: float32[N], %z1: float32[N]) {
            %one: int(1) = scalar_constant() {value=1}
            %i2: int = scalar_sub(%i1, %one)
            %more: bool = scalar_lt(%one, %i2)
            %a2: float32[N] = neg(%a1)
            %b2: float32[N] = add(%b1, %z1)
            return %more, %i2, %a2, %b2
          }
        }
        return %a"""


def test_a_carried_value_that_only_feeds_itself_goes_with_its_invariant() -> None:
    becomes(
        DCE,
        WHILE,
        """%p: bool, %k: int, %x: float32[N], %y: float32[N], %z: float32[N]
        %i: int, %a: float32[N] = while_loop(%p, %k, %x) {carried=2} {
          body(%i1: int, %a1: float32[N]) {
            %one: int(1) = scalar_constant() {value=1}
            %i2: int = scalar_sub(%i1, %one)
            %more: bool = scalar_lt(%one, %i2)
            %a2: float32[N] = neg(%a1)
            return %more, %i2, %a2
          }
        }
        return %a""",
    )


def test_a_loop_that_computes_nothing_goes() -> None:
    becomes(
        DCE,
        WHILE.replace("return %a", "return %x").replace("return %x2", "return %a2"),
        """%p: bool, %k: int, %x: float32[N], %y: float32[N], %z: float32[N]
        return %x""",
    )


def test_a_carried_value_that_another_needs_stays() -> None:
    stays(
        DCE,
        """%k: int, %x: float32[N], %y: float32[N]
        %a: float32[N], %b: float32[N] = counted_while(%k, %x, %y) {carried=2, reverse=false} {
          body(%i: int, %a1: float32[N], %b1: float32[N]) {
            %a2: float32[N] = add(%a1, %b1)
            %b2: float32[N] = neg(%b1)
            return %a2, %b2
          }
        }
        return %a""",
    )


def test_functions_that_are_not_called_go() -> None:
    made = program(
        """func main(%n: int) {
          %a: int = call(%n) {function="f", types=(!int,)}
          return %a
        }
        func f(%n: int) {
          %b: int = call(%n) {function="f", types=(!int,)}
          return %b
        }
        func g(%n: int) {
          %c: int = call(%n) {function="h", types=(!int,)}
          return %c
        }
        func h(%n: int) {
          return %n
        }"""
    )
    assert DCE.apply(made)
    verify(made)
    assert list(made.functions) == ["main", "f"]
    assert not DCE.apply(made)
    main = made.functions["main"]
    main.results = [main.arguments[0]]
    assert not DCE.apply(made), "recursion may raise RecursionError, so an unused call stays"


def test_an_unused_call_of_a_harmless_function_goes() -> None:
    becomes(
        DCE,
        """func main(%n: int) {
          %a: int = call(%n) {function="h", types=(!int,)}
          return %n
        }
        func h(%n: int) {
          return %n
        }""",
        """func main(%n: int) {
          return %n
        }""",
    )
