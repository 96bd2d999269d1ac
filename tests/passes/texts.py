"""Passes checked on Programs in text form: what goes in, what must come out."""

import dy2st.ops  # noqa: F401  fills the registry
from dy2st.ir.equality import structurally_equal
from dy2st.ir.parser import parse
from dy2st.ir.printer import to_text
from dy2st.ir.program import Program
from dy2st.ir.verifier import verify
from dy2st.passes import Pass


def program(text: str) -> Program:
    """Read a Program; a text without functions is the body of `main`, its first line the arguments."""
    if "func " not in text:
        head, _, body = text.partition("\n")
        text = f"func main({head.strip()}) {{\n{body}\n}}\n"
    made = parse(f"program main\n{text}")
    verify(made)
    return made


def becomes(one: Pass, before: str, after: str) -> None:
    """Check that a pass turns one Program into the other, that it says so, and that it then has nothing to do."""
    got, want = program(before), program(after)
    assert one.apply(got), "the pass says that nothing changed"
    for _ in range(3):
        verify(got)
        if not one.apply(got):
            break
    else:
        raise AssertionError("the pass still finds something to do")
    assert structurally_equal(got, want), to_text(got, locations=False)


def stays(one: Pass, text: str) -> None:
    """Check that a pass leaves a Program alone."""
    got, want = program(text), program(text)
    changed = one.apply(got)
    assert structurally_equal(got, want), to_text(got, locations=False)
    assert not changed, "the pass says that something changed"
