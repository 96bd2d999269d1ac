"""Histories of values: none, freed by the Program, or open to differentiation, through loops, branches and lists."""

import pytest

from dy2st.ir.parser import parse
from dy2st.ir.program import Block, Value
from dy2st.runtime.tracer.recording.gradient_history import GradientHistories

LOOP = """
%out: {t} = counted_while(%n, {first}, %one) {{carried=1, reverse=false}} {{
  body(%i: int, %before: {t}, %u: float32[]) {{
    %turn: float32[] = neg(%u)
    {turn}
  }}
}}"""


def histories(body: str, flowing: str, freed: str) -> tuple[GradientHistories, Value]:
    """Return the histories of a Program's values, of which some are named, and what it returns."""
    made = parse(f"program main\nfunc main(%n: int, %w: float32[], %one: float32[]) {{\n{body}\n}}\n").block
    named = {v.name: v for block in _blocks(made) for v in _values(block)}
    sets = [{named[name] for name in names.split()} for names in (flowing, freed)]
    return GradientHistories(made, *sets), made.results[0]


def _blocks(block: Block) -> list[Block]:
    return [block, *(inner for o in block.walk() for inner in o.blocks)]


def _values(block: Block) -> list[Value]:
    return [*block.arguments, *(v for o in block.operations for v in o.results)]


SUM = "%a: float32[] = mul(%w, %w)\n%b: float32[] = mul(%w, %w)\n%c: float32[] = add(%a, %b)\nreturn %c"
FREED_EACH_TURN = LOOP.format(t="float32[]", first="%one", turn="return %turn") + "\nreturn %out"
NEGATED = LOOP.format(t="float32[]", first="%one", turn="%s: float32[] = neg(%before)\n    return %s") + "\nreturn %out"
SUMMED = (
    LOOP.format(t="float32[]", first="%one", turn="%s: float32[] = add(%before, %turn)\n    return %s")
    + "\nreturn %out"
)
LISTED = (
    "%none: list<float32[]> = list_new() {type=!list<float32[]>}"
    + LOOP.format(
        t="list<float32[]>",
        first="%none",
        turn="%more: list<float32[]> = list_append(%before, %turn)\n    return %more",
    )
    + "\nreturn %out"
)


@pytest.mark.parametrize(
    ("body", "flowing", "freed", "none", "is_freed"),
    [
        (SUM, "w a b c", "", False, False),
        (SUM, "w a b c", "a", False, True),
        (SUM, "", "", True, False),
        (FREED_EACH_TURN, "turn before out", "turn", False, True),
        (FREED_EACH_TURN, "one turn before out", "turn", False, False),
        (FREED_EACH_TURN, "one turn before out", "turn one", False, True),
        (NEGATED, "one before s out", "one", False, True),
        (NEGATED, "one before s out", "", False, False),
        (SUMMED, "turn before s out", "", False, False),
        (SUMMED, "turn before s out", "turn", False, True),
        (LISTED, "", "", True, False),
        (LISTED, "turn", "", False, False),
        (LISTED, "turn", "turn", False, True),
    ],
)
def test_what_a_result_has(body: str, flowing: str, freed: str, none: bool, is_freed: bool) -> None:
    found, result = histories(body, flowing, freed)
    assert found.has_none(result) is none
    assert found.is_freed(result) is is_freed


def test_what_comes_from_open_turns_is_open() -> None:
    turn = "%s: float32[] = add(%before, %turn)\n    %l: float32[] = mul(%s, %s)\n    return %l"
    body = LOOP.format(t="float32[]", first="%one", turn=turn) + "\nreturn %out"
    found, result = histories(body, "turn before s l out", "")
    assert not found.is_freed(result)
