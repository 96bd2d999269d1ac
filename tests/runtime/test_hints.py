"""Every refusal says where, and what to write instead."""

import re
from pathlib import Path

import pytest

import dy2st
from dy2st.errors import ConversionError, StructureError, TraceError
from dy2st.runtime.tracer.control_flow.internal_errors import placed
from dy2st.runtime.tracer.control_flow.refusal_hints import HINTS, OTHERWISE, hint_for

RAISED = re.compile(r"raise (?:TraceError|StructureError)\(\s*((?:f?\"[^\"]*\"\s*)+)")


def texts() -> list[str]:
    """Return what the package refuses without saying what to do."""
    files = [f for part in ("runtime", "jit", "ir") for f in (Path(dy2st.__file__).parent / part).rglob("*.py")]
    found = [m[1] for f in sorted(files) for m in RAISED.finditer(f.read_text(encoding="utf-8"))]
    return ["".join(re.findall(r"\"([^\"]*)\"", text)) for text in found]


def test_every_refusal_has_a_hint_of_its_own() -> None:
    known = texts()
    assert len(known) > 20
    assert [t for t in known if hint_for(t) == OTHERWISE and "self." not in t and "{name}" not in t] == []


@pytest.mark.parametrize(("part", "hint"), HINTS)
def test_a_refusal_gets_line_and_hint(part: str, hint: str) -> None:
    def f() -> None:
        raise TraceError(part)

    with pytest.raises(TraceError) as caught:
        f()
    placed(caught.value, f)
    assert str(caught.value) == f"{part}\n  at {__file__}:{f.__code__.co_firstlineno}\n  {hint}"


@pytest.mark.parametrize("kind", [TraceError, StructureError, ConversionError])
def test_what_a_refusal_says_already_stays(kind: type[TraceError]) -> None:
    error = kind("no", file="a.py", line=3, hint="do this")
    placed(error, None)
    assert str(error) == "no\n  at a.py:3\n  do this"
