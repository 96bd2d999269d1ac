"""Programs that a forger made: each verifies, and each would have read or written memory that is not its own."""

import json
from typing import Any

import numpy as np
import pytest

from dy2st.errors import FileFormatError, InvalidProgram
from dy2st.ir.checker.check import check
from dy2st.ir.checker.control import CONTROL
from dy2st.ir.checker.typed_operation import RULES
from dy2st.ir.opdef import REGISTRY
from dy2st.ir.parser import parse
from dy2st.ir.serialize import from_json, to_json
from dy2st.ir.verifier import verify
from dy2st.runtime.backends.cpu.native_executable import NativePlan

INTS = "tuple<int, int, int>"


def loaded(text: str) -> Any:
    """Return a Program as it is when it came from a file: the verifier passes it."""
    program = parse(text)
    data, arrays = to_json(program)
    return from_json(json.loads(json.dumps(data)), arrays)


def refused(text: str, match: str) -> None:
    verify(parse(text))
    with pytest.raises(FileFormatError, match=match) as caught:
        loaded(text)
    assert len(str(caught.value)) < 500


def function(body: str, arguments: str = "%x: float64[N]") -> str:
    lines = "\n".join(
        f"  {line.strip()}" if "{" not in line.strip()[-1:] else f"  {line}" for line in body.splitlines()
    )
    return f"program main\nfunc main({arguments}) {{\n{lines}\n}}\n"


EXTENDED = function(
    f"""%a: int = scalar_constant() {{value=64}}
    %t: {INTS} = tuple_new(%a, %a, %a)
    %l: list<{INTS}> = list_new(%t) {{type=!list<{INTS}>}}
    %m: list<float64[None]> = list_new(%x) {{type=!list<float64[None]>}}
    %e: list<float64[None]> = list_extend(%m, %l)
    %g: float64[K] = list_get(%e, %a)
    return %g"""
)


def test_ints_do_not_become_the_address_of_a_tensor() -> None:
    match = r"list_extend: operand 1 is list<tuple<int, int, int>>, not list<float64\[None\]>\n  in function main"
    with pytest.raises(InvalidProgram, match=match):
        check(parse(EXTENDED))
    with pytest.raises(InvalidProgram, match="list_extend does not take"):
        verify(parse(EXTENDED))


@pytest.mark.parametrize(
    ("body", "match"),
    [
        ("%n: int = list_len(%x)\nreturn %n", r"list_len: operand 0 is float64\[N\], no list"),
        ("%n: int = list_new(%x) {type=!int}\nreturn %n", "list_new: type is int, no list"),
        (f"%n: list<{INTS}> = list_new(%x) {{type=!list<{INTS}>}}\nreturn %n", "list_new: operand 0 is float64"),
        ("%n: variant<unset | int> = variant_new(%x) {type=!variant<unset | int>, tag=1}\nreturn %n", "variant_new"),
        ("%n: float32[N] = detach(%x)\nreturn %n", "detach"),
        ("%n: float64[N] = renew(%x)\nreturn %n", "renew"),
        ("%n: float64[N] = sin(%x, %x)\nreturn %n", "sin"),
        ("%n: int64[N] = bitwise_and(%x, %x)\nreturn %n", "bitwise_and"),
        ("%n: float64[N] = sum(%x) {axis=(7,), keepdim=false}\nreturn %n", r"sum: axis is 7"),
        ("%n: float64[1] = sum(%x) {axis=(0,), keepdim=1}\nreturn %n", r"sum: keepdim is 1"),
        ("%n: float64[N] = flip(%x) {axes=(0, 0)}\nreturn %n", "flip: axes has an axis twice"),
        (
            "%m: float64[] = max(%x) {axis=(0,), keepdim=false}\n"
            "%n: float64[] = cumprod(%m) {axis=0, exclusive=false, reverse=false}\nreturn %n",
            "operand 0 has rank 0",
        ),
        ('%n: float64[N] = softplus(%x) {beta="x", threshold=1.0}\nreturn %n', "softplus: beta is 'x'"),
    ],
)
def test_what_no_rule_gives_is_refused(body: str, match: str) -> None:
    program = parse(function(body))
    data, arrays = _data(program)
    with pytest.raises(FileFormatError, match=match) as caught:
        from_json(data, arrays)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("body", "match"),
    [
        ("%n: float64[N] = flip(%x) {axis=(0,)}\nreturn %n", "flip: unknown attribute 'axis'"),
        ("%n: float64[N] = flip(%x)\nreturn %n", "flip: lacks 'axes'"),
        ("%n: list<float64[N]> = list_new(%x) {type=3}\nreturn %n", "list_new: type is no type"),
        ("cond() {\nthen() {\nreturn\n}\nelse() {\nreturn\n}\n}\nreturn", "cond: 0 operands"),
    ],
)
def test_what_the_verifier_refuses_the_checker_refuses_by_itself(body: str, match: str) -> None:
    program = parse(function(body))
    with pytest.raises(InvalidProgram):
        verify(program)
    with pytest.raises(InvalidProgram, match=match):
        check(program)


def _data(program: Any) -> Any:
    from dy2st.ir import serialize

    writer = serialize._Writer()
    functions = {name: writer.block(block, 0) for name, block in program.functions.items()}
    return {"entry": program.entry, "functions": functions}, writer.arrays


COND = """program main
func main(%x: float64[N], %p: bool) {
  %y: float64[16] = cond(%p, %x) {
    then(%a: float64[N]) {
      %s: float64[N] = sin(%a)
      return %s
    }
    else(%b: float64[N]) {
      %c: float64[N] = cos(%b)
      return %c
    }
  }
  %z: float64[16] = exp(%y)
  return %z
}
"""


def test_a_branch_does_not_claim_an_extent() -> None:
    verify(parse(COND))
    program = loaded(COND)
    assert "16" not in str(program)
    x = np.linspace(0, 1, 3)
    for p, function in ((True, np.sin), (False, np.cos)):
        np.testing.assert_allclose(NativePlan(program).run([x, p])[0], np.exp(function(x)))


CARRIED = """program main
func main(%x: float64[16], %y: float64[N], %k: int) {
  %t: CLAIMED = FIRST
  %r: CLAIMED = counted_while(%k, %t, %y) {carried=1, reverse=false} {
    body(%i: int, %a: CLAIMED, %b: float64[N]) {
      %u: GROWN = LATER
      return %u
    }
  }
  %g: float64[16] = GET
  %z: float64[16] = exp(%g)
  return %z
}
"""


@pytest.mark.parametrize(
    ("held", "put", "get"),
    [
        ("{}", "neg({})", "neg(%r)"),
        ("tuple<{}>", "tuple_new({})", "tuple_get(%r)"),
        ("variant<unset | {}>", "variant_new({}) {{type=!KIND, tag=1}}", 'variant_get(%r) {tag=1, message=""}'),
    ],
)
def test_what_a_loop_carries_claims_no_extent_that_a_turn_does_not_keep(held: str, put: str, get: str) -> None:
    claimed, grown = held.format("float64[16]"), held.format("float64[N]")
    first, later = (put.format(x).replace("KIND", kind) for x, kind in (("%x", claimed), ("%b", grown)))
    text = CARRIED.replace("GET", get).replace("FIRST", first).replace("LATER", later)
    program = loaded(text.replace("CLAIMED", claimed).replace("GROWN", grown))
    x, y = np.arange(16.0) / 16, np.arange(3.0)
    for turns, wanted in ((0, x), (1, y)):
        np.testing.assert_allclose(NativePlan(program).run([x, y, turns])[0], np.exp(wanted))


def test_a_loop_does_not_claim_an_extent() -> None:
    text = """program main
func main(%x: float64[N], %n: int) {
  %y: float64[N] = counted_while(%n, %x) {carried=1, reverse=false} {
    body(%i: int, %a: float64[N]) {
      %b: float64[2*N] = concat(%a, %a) {axis=0}
      return %b
    }
  }
  %z: float64[N] = add(%x, %y)
  return %z
}
"""
    verify(parse(text))
    program = loaded(text)
    assert "broadcast" in str(program)
    plan = NativePlan(program)
    np.testing.assert_array_equal(plan.run([np.ones(3), 0])[0], np.full(3, 2.0))
    with pytest.raises(ValueError, match="broadcast"):
        plan.run([np.ones(3), 2])


def test_a_loop_does_not_carry_one_number_for_another() -> None:
    text = """program main
func main(%x: float64[4], %y: float64[2], %n: int) {
  %a: float64[4], %b: float64[2] = counted_while(%n, %x, %y) {carried=2, reverse=false} {
    body(%i: int, %c: float64[4], %d: float64[2]) {
      return %c, %c
    }
  }
  return %a, %b
}
"""
    program = from_json(*_data(parse(text)))
    assert str(program.block.results[0].type) == "float64[4]"
    assert str(program.block.results[1].type) != "float64[2]"
    made = NativePlan(program).run([np.arange(4.0), np.ones(2), 1])
    np.testing.assert_array_equal(made[1], np.arange(4.0))


def test_extents_that_cannot_be_proved_are_compared_by_the_run() -> None:
    text = """program main
func main(%x: float64[N], %m: bool[N], %y: float64[M]) {
  %a: float64[M] = masked_select(%x, %m)
  %z: float64[M] = mul(%a, %y)
  return %z
}
"""
    verify(parse(text))
    plan = NativePlan(loaded(text))
    mask = np.array([True, False, True])
    np.testing.assert_array_equal(plan.run([np.arange(3.0), mask, np.ones(2)])[0], [0.0, 2.0])
    with pytest.raises(ValueError, match="broadcast"):
        plan.run([np.arange(3.0), mask, np.ones(5000)])


def test_a_norm_over_another_extent_is_the_error_of_the_run() -> None:
    text = """program main
func main(%x: float64[B, N], %s: float64[M]) {
  %y: float64[B, N], %m: float64[B, 1], %v: float64[B, 1] = layer_norm(%x, %s, %s) {rank=1, epsilon=0.1}
  return %y
}
"""
    plan = NativePlan(loaded(text))
    with pytest.raises(ValueError, match="scale must have shape"):
        plan.run([np.ones((2, 5000)), np.ones(3)])


def test_a_name_of_an_extent_is_not_taken_twice() -> None:
    text = """program main
func main(%x: float64[N], %m: bool[N], %k: bool[N]) {
  %a: float64[K] = masked_select(%x, %m)
  %b: float64[K] = masked_select(%x, %k)
  return %a, %b
}
"""
    program = loaded(text)
    first, second = (v.type for v in program.block.results)
    assert str(first) == "float64[K]"
    assert str(second) != "float64[K]"


def test_a_called_function_takes_what_its_callers_prove() -> None:
    text = """program main
func main(%x: float64[N], %y: float64[M]) {
  %z: float64[K] = call(%x, %y) {function="f", types=(!float64[K],)}
  return %z
}
func f(%a: float64[K], %b: float64[K]) {
  %c: float64[K] = add(%a, %b)
  return %c
}
"""
    verify(parse(text))
    plan = NativePlan(loaded(text))
    np.testing.assert_array_equal(plan.run([np.ones(3), np.ones(3)])[0], np.full(3, 2.0))
    with pytest.raises(ValueError, match="broadcast"):
        plan.run([np.ones(3), np.ones(4000)])


def test_the_name_of_a_function_is_no_code() -> None:
    name = "f(ptr %c, ptr %o, ptr %r) { ret i32 0 }\ndefine i32 @g"
    text = (
        'program main\nfunc main(%x: float64[N]) {\n  %y: float64[N] = call(%x) {function="f", types=(!float64[N],)}\n'
    )
    program = parse(text + "  return %y\n}\nfunc f(%a: float64[N]) {\n  %c: float64[N] = sin(%a)\n  return %c\n}\n")
    data, arrays = to_json(program)
    data["functions"][name] = data["functions"].pop("f")
    data["functions"]["main"]["operations"][0]["attributes"]["function"] = name
    plan = NativePlan(from_json(data, arrays))
    np.testing.assert_allclose(plan.run([np.arange(3.0)])[0], np.sin(np.arange(3.0)))


def test_a_format_that_costs_memory_is_refused() -> None:
    refused(
        function('print(%x) {template=(("Tensor:True", "", ">1000000000"),), sep=" ", end=""}\nreturn %x'), "too wide"
    )


def test_types_that_are_checked_stay_as_they_are_when_checked_again() -> None:
    program = loaded(COND)
    before = str(program)
    check(program)
    assert str(program) == before


def test_every_op_that_may_stand_in_a_file_has_a_rule() -> None:
    ruled = {*RULES, *CONTROL, "with_gradient"}
    missing = [n for n, op in REGISTRY.items() if op.saveable and n not in ruled]
    assert missing == [], "write their type rules in dy2st/ir/checker, apart from the op's own"
    assert not {*RULES, *CONTROL} - set(REGISTRY)


BACK = """program main
func main(%d: float32[N], %r: float32[N]) {
  BODY
}
"""


@pytest.mark.parametrize(
    ("body", "match"),
    [
        ("%y: float32[N] = mul(%d, %r)", None),
        ("%y: float64[N] = cast(%d) {dtype=float64}", "a result of pullback is float64"),
        ("%y: float32[N] = unheard(%d)", "pullback: no op has this name"),
        ('%y: float32[N] = call(%d) {function="main", types=(!float32[N],)}', "pullback: function main has 2 operands"),
        ('print() {template=(), sep="", end=""}\n  %y: float32[N] = mul(%d, %r)', "pullback has 'print'"),
        ("%y: float32[N] = mul(%d, %r)\n  return %y, %y", "pullback does not fit"),
        ("%y: float32[N] = list_get(%d, %r)", "pullback: "),
        ("%y: int = list_len(%d)", "pullback: "),
    ],
)
def test_a_derivative_that_stands_in_a_file_is_checked(body: str, match: str | None) -> None:
    whole = body if "return" in body else f"{body}\n  return %y"
    attributes = f'inputs=1, values=1, whose="f", pushforward="", pullback={json.dumps(BACK.replace("BODY", whole))}'
    text = function(f"%y: float32[N] = with_gradient(%x, %x) {{{attributes}}}\nreturn %y", "%x: float32[N]")
    if match is None:
        assert "with_gradient" in str(loaded(text))
    else:
        refused(text, match)


@pytest.mark.parametrize(
    ("operands", "attributes", "match"),
    [
        ("%n", "low=(none,), high=(2,)", None),
        ("%n, %n", "low=(none,), high=(none,)", None),
        ("", "low=(1,), high=(2,)", None),
        ("", "low=(none,), high=(2,)", "pad: too few widths"),
        ("%n, %n", "low=(none,), high=(2,)", "pad: too many widths"),
        ("%n", "low=(1,), high=(2,)", "pad: too many widths"),
    ],
)
def test_widths_that_the_run_tells_are_operands(operands: str, attributes: str, match: str | None) -> None:
    given = ", ".join(["%x", "%v", *operands.split(", ")] if operands else ["%x", "%v"])
    body = f"%y: float64[M] = pad({given}) {{{attributes}}}\nreturn %y"
    program = parse(function(body, "%x: float64[N], %v: float64[], %n: int"))
    if match is None:
        check(program)
    else:
        with pytest.raises(InvalidProgram, match=match):
            check(program)
