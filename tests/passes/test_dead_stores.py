"""Writes that are written over before anybody reads them."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.passes.simplify.dead_stores import RemoveDeadStores
from tests.passes.texts import becomes, stays

STORES = RemoveDeadStores()
T = "float32[8, N]"
ALL = '("slice", none, none, none)'


def writes(first: str, last: str, between: str = "", of: str = T, more: str = "%x: float32[], %y: float32[]") -> str:
    """Return two writes, one into the result of the other."""
    return f"""%a: {of}, {more}
        %b: {of} = {first}
        {between}
        %c: {of} = {last}
        return %c"""


def region(*parts: str) -> str:
    return f"{{spec=({''.join(part + ', ' for part in parts)})}}"


ROWS, INNER, LAST = region('("slice", 2, 7, none)'), region('("slice", 3, 5, none)'), region('("int", -1)')


@pytest.mark.parametrize(("first", "last"), [(ROWS, ROWS), (INNER, ROWS), (LAST, LAST), (INNER, region(ALL))])
@pytest.mark.parametrize("op", ["index_set", "index_add"])
def test_what_is_written_over_is_not_written(op: str, first: str, last: str) -> None:
    before = writes(f"{op}(%a, %x) {first}", f"index_set(%b, %y) {last}")
    after = f"""%a: {T}, %x: float32[], %y: float32[]
        %c: {T} = index_set(%a, %y) {last}
        return %c"""
    if last == region(ALL):
        return _becomes_a_copy(before)
    becomes(STORES, before, after)


def _becomes_a_copy(before: str) -> None:
    becomes(STORES, before, f"""%a: {T}, %x: float32[], %y: float32[]
        %n: int(N) = dim(%a) {{axis=1}}
        %c: {T} = broadcast(%y, %n) {{shape=(8, none)}}
        return %c""")  # fmt: skip


def test_a_chain_of_writes() -> None:
    before = f"""%a: {T}, %y: float32[]
        %b: {T} = index_set(%a, %y) {ROWS}
        %c: {T} = index_set(%b, %y) {ROWS}
        %d: {T} = index_set(%c, %y) {ROWS}
        return %d"""
    becomes(STORES, before, f"%a: {T}, %y: float32[]\n%d: {T} = index_set(%a, %y) {ROWS}\nreturn %d")


def test_places_that_the_same_operands_name() -> None:
    more = "%i: int64[4], %x: float32[4, N], %y: float32[4, N]"
    line = 'index_set(%{}, %{}, %i) {{spec=(("tensor",),)}}'
    after = f"%a: {T}, {more}\n%c: {T} = {line.format('a', 'y')}\nreturn %c"
    becomes(STORES, writes(line.format("a", "x"), line.format("b", "y"), more=more), after)


def test_places_along_an_axis() -> None:
    more, line = f"%i: int64[8, N], %x: {T}, %y: {T}", 'put_along_axis(%{}, %i, %{}) {{axis=0, mode="{}"}}'
    for mode in ("assign", "add"):
        before = writes(line.format("a", "x", mode), line.format("b", "y", "assign"), more=more)
        becomes(STORES, before, f"%a: {T}, {more}\n%c: {T} = {line.format('a', 'y', 'assign')}\nreturn %c")
    stays(STORES, writes(line.format("a", "x", "assign"), line.format("b", "y", "add"), more=more))


def test_elements_of_a_list() -> None:
    t, more = "list<float32[N]>", "%i: int, %x: float32[N], %y: float32[N]"
    after = f"%a: {t}, {more}\n%c: {t} = list_set(%a, %i, %y)\nreturn %c"
    becomes(STORES, writes("list_set(%a, %i, %x)", "list_set(%b, %i, %y)", of=t, more=more), after)
    stays(STORES, writes("list_set(%a, %i, %x)", "list_set(%b, %j, %y)", of=t, more=f"%j: int, {more}"))


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (ROWS, INNER),  # a part of it stays
        (ROWS, region('("slice", 3, 9, none)')),
        (region('("slice", none, -1, none)'), region('("slice", none, none, 2)')),
        (region(ALL, '("slice", none, 3, none)'), region(ALL, '("slice", none, -1, none)')),  # N may be 2
        (LAST, region('("slice", 7, none, 2)')),
    ],
)
def test_what_is_written_in_part(first: str, last: str) -> None:
    stays(STORES, writes(f"index_set(%a, %x) {first}", f"index_set(%b, %y) {last}"))


def test_what_is_read_between() -> None:
    """A view that somebody holds, and what a branch reads."""
    view = f"%v: float32[5, N] = index(%b) {ROWS}"
    branch = f"""%v: {T} = cond(%p, %b) {{
          branch(%u: {T}) {{
            %n: {T} = neg(%u)
            return %n
          }}
          branch(%u: {T}) {{
            return %u
          }}
        }}"""
    for between in (view, branch):
        more = "%p: bool[], %x: float32[], %y: float32[]"
        before = writes(f"index_set(%a, %x) {ROWS}", f"index_set(%b, %y) {ROWS}", between, more=more)
        stays(STORES, before.replace("return %c", "return %c, %v"))


def test_writes_of_sums_stay() -> None:
    stays(STORES, writes(f"index_set(%a, %x) {ROWS}", f"index_add(%b, %y) {ROWS}"))


def test_the_first_of_two_errors_stays() -> None:
    """The value does not fit, or something else raises before the second write would."""
    more = "%i: int, %x: float32[M], %y: float32[]"
    place = region('("int", "?")')
    stays(STORES, writes(f"index_set(%a, %x, %i) {place}", f"index_set(%b, %y, %i) {place}", more=more))
    between = f"%e: {T} = index_set(%a, %y, %i) {place}"
    before = writes(f"index_set(%a, %y, %i) {place}", f"index_set(%b, %y, %i) {place}", between, more=more)
    stays(STORES, before.replace("return %c", "return %c, %e"))


def test_equal_errors_come_from_the_first_line() -> None:
    @paddle.jit.to_static(full_graph=True)
    def twice(x: paddle.Tensor, i: paddle.Tensor) -> paddle.Tensor:
        y = x * 1
        y[i] = x[0] * 2
        y[i] = x[0] * 3
        return y

    x = paddle.to_tensor(np.arange(4.0, dtype="float32"))
    for at in (1, -1, 3):
        want = x.numpy().copy()
        want[at] = 0
        for _ in range(3):
            np.testing.assert_array_equal(twice(x, paddle.to_tensor(at)).numpy(), want)
    with pytest.raises(IndexError, match="index 4 is out of range"):
        twice(x, paddle.to_tensor(4))


@pytest.mark.parametrize(
    ("value", "made"),
    [
        ("float32[8, N]", "%c: float32[8, N] = cast(%x) {dtype=float32}"),
        ("float32[]", "%n: int(N) = dim(%a) {axis=1}\n%c: float32[8, N] = broadcast(%x, %n) {shape=(8, none)}"),
        ("float32[N]", "%n: int(N) = dim(%a) {axis=1}\n%c: float32[8, N] = broadcast(%x, %n) {shape=(8, none)}"),
        ("float32[8, 1]", "%n: int(N) = dim(%a) {axis=1}\n%c: float32[8, N] = broadcast(%x, %n) {shape=(8, none)}"),
    ],
)
def test_a_write_of_everything_is_a_copy(value: str, made: str) -> None:
    head = f"%a: {T}, %x: {value}\n"
    for spec in (region(ALL), region(), region('("slice", 0, 8, none)', ALL), region(ALL, '("slice", 0, none, 1)')):
        becomes(STORES, f"{head}%c: {T} = index_set(%a, %x) {spec}\nreturn %c", f"{head}{made}\nreturn %c")


def test_a_value_that_may_not_fit_is_written() -> None:
    for value in ("float32[M]", "float32[8, M]", "float32[M, N]"):
        stays(STORES, f"%a: {T}, %x: {value}\n%c: {T} = index_set(%a, %x) {region(ALL)}\nreturn %c")


def test_writes_in_loops_and_branches() -> None:
    def loop(body: str) -> str:
        return f"""%n: int, %a: {T}, %x: float32[], %y: float32[]
            %out: {T} = counted_while(%n, %a, %x, %y) {{carried=1, reverse=false}} {{
              body(%i: int, %b: {T}, %u: float32[], %v: float32[]) {{
                {body}
                return %d
              }}
            }}
            return %out"""

    place = region('("int", "?")')
    for where, number in ((ROWS, ""), (region('("int", "?")'), ", %i")):
        first, last = (f"index_set(%{base}, %{value}{number}) {where}" for base, value in (("b", "u"), ("c", "v")))
        before = f"%c: {T} = {first}\n%d: {T} = {last}"
        becomes(STORES, loop(before), loop(f"%d: {T} = {last.replace('%c', '%b')}"))
