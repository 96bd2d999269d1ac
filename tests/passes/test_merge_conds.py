"""Conds that ask the same."""

from dy2st.passes.simplify.merge_conds import MergeConds
from tests.passes.texts import becomes, stays

MERGE = MergeConds()

BRANCHES = """{{
          then(%u{0}: float32[N]) {{
            %e{0}: float32[N] = {1}(%u{0})
            return %e{0}
          }}
          else(%v{0}: float32[N]) {{
            return %v{0}
          }}
        }}"""


def pair(between: str = "", second: str = "%p, %a") -> str:
    return f"""%p: bool, %q: bool, %x: float32[N]
        %a: float32[N] = cond(%p, %x) {BRANCHES.format(1, "exp")}
        {between}
        %b: float32[N] = cond({second}) {BRANCHES.format(2, "neg")}
        return %a, %b"""


MERGED = """%p: bool, %q: bool, %x: float32[N]
        %a: float32[N], %b: float32[N] = cond(%p, {operands}) {{
          then({then}) {{
            %e: float32[N] = exp(%u)
            %f: float32[N] = neg({first})
            return %e, %f
          }}
          else({other}) {{
            return %v, {second}
          }}
        }}
        {between}
        return %a, %b"""


def test_the_second_takes_what_the_first_gives() -> None:
    after = MERGED.format(
        operands="%x", then="%u: float32[N]", other="%v: float32[N]", first="%e", second="%v", between=""
    )
    becomes(MERGE, pair(), after)


def test_pure_operations_may_stand_between() -> None:
    between = "%m: float32[N] = tanh(%x)"
    after = MERGED.format(
        operands="%x", then="%u: float32[N]", other="%v: float32[N]", first="%u", second="%v", between=between
    )
    becomes(MERGE, pair(between, "%p, %x"), after)


def test_a_new_operand_is_added() -> None:
    one = "%p: bool, %q: bool, %x: float32[N]"
    after = MERGED.format(
        operands="%x, %y",
        then="%u: float32[N], %w: float32[N]",
        other="%v: float32[N], %z: float32[N]",
        first="%w",
        second="%z",
        between="",
    )
    becomes(
        MERGE,
        pair(second="%p, %y").replace(one, f"{one}, %y: float32[N]"),
        after.replace(one, f"{one}, %y: float32[N]"),
    )


def test_another_predicate_or_an_operand_from_between_keeps_them_apart() -> None:
    stays(MERGE, pair(second="%q, %a"))
    stays(MERGE, pair("%m: float32[N] = tanh(%a)", "%p, %m"))


def raising(between: str) -> str:
    return f"""%p: bool, %n: int
        %a: int = cond(%p, %n) {{
          then(%u: int) {{
            return %u
          }}
          else(%v: int) {{
            return %v
          }}
        }}
        {between}
        %b: int = cond(%p, %n) {{
          then(%s: int) {{
            %c: int = scalar_floordiv(%s, %s)
            return %c
          }}
          else(%t: int) {{
            return %t
          }}
        }}
        return %a, %b"""


def test_what_may_raise_does_not_pass_an_effect() -> None:
    stays(MERGE, raising('print(%n) {template=(), sep=" ", end=""}'))


def test_nested_conds_are_joined_too() -> None:
    inside = raising("").partition("\n")[2].rpartition("return")[0]
    loop = """%k: int, %o: bool, %m: int
        %r: int = counted_while(%k, %m, %o) {{carried=1, reverse=false}} {{
          body(%i: int, %n: int, %p: bool) {{
            {0}
            return %b
          }}
        }}
        return %r"""
    joined = """%a: int, %b: int = cond(%p, %n) {
              then(%u: int) {
                %c: int = scalar_floordiv(%u, %u)
                return %u, %c
              }
              else(%v: int) {
                return %v, %v
              }
            }"""
    becomes(MERGE, loop.format(inside), loop.format(joined))
