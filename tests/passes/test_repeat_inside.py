"""Numbers that were repeated in front of a loop or branch are repeated inside of it, where elements are computed."""

import numpy as np
import pytest

from dy2st.passes.loops.sink_broadcasts import SinkBroadcasts
from dy2st.runtime.backends.cpu.lowering import prepared
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.passes.texts import becomes, program, stays

REPEAT = SinkBroadcasts()
ARGUMENTS = "%x: float32[32], %r: float32[], %k: int, %p: bool[]"
REPEATED = "%c: float32[32] = broadcast(%r) {shape=(32,)}"
LOOP = """%y: float32[32] = counted_while(%k, %x, %c) {carried=1, reverse=false} {
  body(%i: int, %a: float32[32], %b: float32[32]) {
    %t: float32[32] = mul(%a, %b)
    return %t
  }
}
return %y"""


def test_a_loop_takes_the_number() -> None:
    becomes(
        REPEAT,
        f"{ARGUMENTS}\n{REPEATED}\n{LOOP}",
        f"""{ARGUMENTS}
        {REPEATED}
        %y: float32[32] = counted_while(%k, %x, %c, %r) {{carried=1, reverse=false}} {{
          body(%i: int, %a: float32[32], %b: float32[32], %r1: float32[]) {{
            %d: float32[32] = broadcast(%r1) {{shape=(32,)}}
            %t: float32[32] = mul(%a, %d)
            return %t
          }}
        }}
        return %y""",
    )


def test_both_branches_take_the_number() -> None:
    branch = "(%a: float32[32], %b: float32[32]) {{\n%t: float32[32] = {}(%a, %b)\nreturn %t\n}}"
    text = f"""{ARGUMENTS}
    {REPEATED}
    %y: float32[32] = cond(%p, %x, %c) {{
      then{branch.format("mul")}
      else{branch.format("sub")}
    }}
    return %y"""
    made = prepared(program(text))
    assert [o.name for block in made.block.operations[-1].blocks for o in block.operations] == [
        "broadcast", "mul", "broadcast", "sub",
    ]  # fmt: skip
    assert [o.name for o in made.block.operations] == ["cond"]


@pytest.mark.parametrize(
    "text",
    [
        f"{ARGUMENTS}\n{REPEATED}\n{LOOP}".replace("mul(%a, %b)", "flip(%b) {axes=(0,)}"),
        f"{ARGUMENTS}\n{REPEATED}\n{LOOP}".replace("32]", "16]").replace("(32,)", "(16,)"),
        f"{ARGUMENTS}\n%c: float32[32] = exp(%x)\n{LOOP}",
        f"{ARGUMENTS}\n{REPEATED}\n{LOOP}".replace("%x, %c", "%c, %x"),
    ],
    ids=["all of it is needed", "few", "no number", "carried"],
)
def test_what_stays(text: str) -> None:
    stays(REPEAT, text)


def test_what_is_computed_of_numbers_is_computed_inside() -> None:
    made = prepared(
        program(f"""{ARGUMENTS}
    {REPEATED}
    %e: float32[] = constant() {{value=float32[](3.0)}}
    %f: float32[32] = broadcast(%e) {{shape=(32,)}}
    %c2: float32[32] = div(%c, %f)
    {LOOP.replace("%x, %c", "%x, %c2")}""")
    )
    (loop,) = made.block.operations
    assert [o.name for o in loop.blocks[0].operations].count("div") == 1
    assert [v.type for v in loop.operands] == [v.type for v in made.block.arguments[2::-1]][:1] + [
        made.block.arguments[0].type, made.block.arguments[1].type,
    ]  # fmt: skip


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_the_values_are_those_of_the_interpreter(turns: int) -> None:
    inner = LOOP.replace("return %y", "return %w").replace("%y:", "%w:").replace("%k, %x, %c", "%m, %g, %h")
    text = f"""{ARGUMENTS}
    {REPEATED}
    %e: float32[] = constant() {{value=float32[](3.0)}}
    %f: float32[32] = broadcast(%e) {{shape=(32,)}}
    %c2: float32[32] = div(%c, %f)
    %y: float32[32] = counted_while(%k, %x, %c2, %k) {{carried=1, reverse=false}} {{
      body(%j: int, %g: float32[32], %h: float32[32], %m: int) {{
        {inner}
      }}
    }}
    return %y"""
    made = program(text)
    x = np.linspace(-2, 2, 32, dtype="float32")
    inputs = [x, np.float32(1.7), turns, np.array(True)]
    (got,), (want,) = NativePlan(made).run(inputs), compile_plan(made).run(inputs)
    np.testing.assert_array_equal(got, want)


def test_branches_in_a_loop_take_the_number() -> None:
    branch = "(%a: float32[32], %b: float32[32]) {{\n%t: float32[32] = {}(%a, %b)\nreturn %t\n}}"
    text = f"""{ARGUMENTS}
    {REPEATED}
    %y: float32[32] = counted_while(%k, %x, %c, %p) {{carried=1, reverse=false}} {{
      body(%i: int, %s: float32[32], %d: float32[32], %q: bool[]) {{
        %u: float32[32] = cond(%q, %s, %d) {{
          then{branch.format("mul")}
          else{branch.format("sub")}
        }}
        return %u
      }}
    }}
    return %y"""
    made = prepared(program(text))
    (cond,) = (o for o in made.walk() if o.name == "cond")
    assert [[o.name for o in block.operations] for block in cond.blocks] == [["broadcast", "mul"], ["broadcast", "sub"]]
