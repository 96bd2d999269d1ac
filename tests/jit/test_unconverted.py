"""Code that is not converted does, in a Program, what it does eagerly: where its path runs, and on what was written."""

import re
from pathlib import Path
from zlib import crc32

import pytest

from tests.jit.unconverted import FORMS, POSITIONS, compared

CASES = [
    (name, position) for name in FORMS for position in POSITIONS
    if position in ("top", "then") or crc32(f"{name} {position}".encode()) % 3 == 0
]  # fmt: skip
"""Every form at the top and in a branch, and a share of them elsewhere."""
KNOWN = {
    ("functools_cache_count", "then"): "a cache is filled while tracing, on whatever path",
    ("functools_cache_count", "else"): "a cache is filled while tracing, on whatever path",
    ("functools_cache_count", "loop"): "a cache is filled while tracing, on whatever path",
    **{("dict_view", position): "what `h.values()` gave does not follow `h`" for position in POSITIONS},
}
"""Forms that still differ."""


@pytest.mark.parametrize(("name", "position"), CASES, ids=["-".join(case) for case in CASES])
def test_unconverted_code_does_what_it_does_eagerly(name: str, position: str, tmp_path: Path) -> None:
    how, warned, wanted, got = compared(name, position, tmp_path)
    if (name, position) in KNOWN:
        return
    assert how != "differs", [(w, g) for w, g in zip(wanted, got, strict=True) if repr(w) != repr(g)][:1]
    for text in warned:
        assert re.search(r"\n  at \S+_static\.py:\d+\n", text), text
        assert "fault of dy2st" not in text
