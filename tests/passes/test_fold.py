"""Constant folding."""

from dy2st.passes.simplify.constant_fold import FoldConstants
from tests.passes.texts import becomes, program, stays

FOLD = FoldConstants()


def test_numbers_and_tensors_are_computed() -> None:
    becomes(
        FOLD,
        """
        %a: int(2) = scalar_constant() {value=2}
        %b: int(3) = scalar_constant() {value=3}
        %c: int(6) = scalar_mul(%a, %b)
        %d: float32[] = scalar_to_tensor(%c) {dtype=float32}
        %e: float32[] = exp(%d)
        %f: bool = scalar_lt(%a, %b)
        return %c, %e, %f""",
        """
        %a: int(2) = scalar_constant() {value=2}
        %b: int(3) = scalar_constant() {value=3}
        %c: int(6) = scalar_constant() {value=6}
        %d: float32[] = constant() {value=float32[](6.0)}
        %e: float32[] = constant() {value=float32[](403.42877)}
        %f: bool = scalar_constant() {value=true}
        return %c, %e, %f""",
    )


def test_what_raises_stays_to_raise() -> None:
    stays(
        FOLD,
        """
        %a: int(2) = scalar_constant() {value=2}
        %b: int(0) = scalar_constant() {value=0}
        %c: int = scalar_floordiv(%a, %b)
        return %c""",
    )


def test_random_numbers_effects_and_the_large_stay() -> None:
    stays(
        FOLD,
        """
        %a: int(2) = scalar_constant() {value=2}
        %b: int(5000) = scalar_constant() {value=5000}
        %r: float32[2] = random_uniform(%a, %a) {dtype=float32, shape=(2,)}
        print(%a) {template=(), sep=" ", end=""}
        %z: float32[] = constant() {value=float32[](0.0)}
        %f: float32[5000] = full(%z) {shape=(5000,)}
        %p: int = scalar_pow(%b, %b)
        return %r, %f, %p""",
    )


def test_ints_of_many_digits_stay_to_be_computed() -> None:
    many = 10**100
    stays(
        FOLD,
        f"""
        %a: int({many}) = scalar_constant() {{value={many}}}
        %b: int = scalar_mul(%a, %a)
        return %b""",
    )


def test_an_assert_of_a_constant_goes_when_it_holds() -> None:
    becomes(
        FOLD,
        """%n: int
        %t: bool = scalar_constant() {value=true}
        %f: bool = scalar_constant() {value=false}
        assert(%t) {template=none}
        assert(%f) {template=none}
        return %n""",
        """%n: int
        %t: bool = scalar_constant() {value=true}
        %f: bool = scalar_constant() {value=false}
        assert(%f) {template=none}
        return %n""",
    )


def test_constants_enter_nested_blocks_and_are_folded_there() -> None:
    becomes(
        FOLD,
        """%k: int, %p: bool
        %a: int(2) = scalar_constant() {value=2}
        %r: int = counted_while(%k, %k, %a, %p) {carried=1, reverse=false} {
          body(%i: int, %s: int, %b: int, %q: bool) {
            %t: int = cond(%q, %b) {
              then(%c: int) {
                %d: int = scalar_add(%c, %c)
                return %d
              }
              else(%e: int) {
                return %e
              }
            }
            return %t
          }
        }
        return %r""",
        """%k: int, %p: bool
        %a: int(2) = scalar_constant() {value=2}
        %r: int = counted_while(%k, %k, %p) {carried=1, reverse=false} {
          body(%i: int, %s: int, %q: bool) {
            %b: int(2) = scalar_constant() {value=2}
            %t: int = cond(%q) {
              then() {
                %c: int(2) = scalar_constant() {value=2}
                %d: int(4) = scalar_constant() {value=4}
                return %d
              }
              else() {
                %e: int(2) = scalar_constant() {value=2}
                return %e
              }
            }
            return %t
          }
        }
        return %r""",
    )


def test_carried_constants_stay_outside() -> None:
    stays(
        FOLD,
        """%k: int
        %a: int(2) = scalar_constant() {value=2}
        %r: int = counted_while(%k, %a) {carried=1, reverse=false} {
          body(%i: int, %s: int) {
            return %i
          }
        }
        return %r""",
    )


def test_a_folded_constant_owns_its_memory() -> None:
    made = program(
        """
        %a: float32[4] = constant() {value=float32[4](1.0, 2.0, 3.0, 4.0)}
        %b: float32[2, 2] = reshape(%a) {shape=(2, 2)}
        return %b"""
    )
    assert FOLD.apply(made)
    a, b = (operation.attributes["value"] for operation in made.block.operations)
    assert b.tolist() == [[1, 2], [3, 4]]
    assert b.base is None
    assert a is not b


def test_zeros_of_unknown_shape_stay_though_there_are_none_of_them() -> None:
    stays(
        FOLD,
        """%x: float32[0, n]
        %y: float32[0, n] = zeros_like(%x)
        return %y""",
    )
