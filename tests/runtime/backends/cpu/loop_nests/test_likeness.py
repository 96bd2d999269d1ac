"""Loop nests that look alike are written once."""

import pytest

from dy2st.ir.parser import parse
from dy2st.runtime.backends.cpu.compile_link.target import current_target
from dy2st.runtime.backends.cpu.loop_nests import entry_points
from dy2st.runtime.backends.cpu.lowering import lower, prepared

LAYER = """%h{i}: float32[N, 40] = cumsum(%x{i}) {{axis=1, reverse=false}}
%a{i}: float32[N, 40] = {op}(%h{i})
%c{i}: float32[N, 40] = maximum(%a{i}, %h{i})
%x{j}: float32[N, 40] = {last}(%c{i})"""


def written(operations: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Return how many nests are written, and how many there are, where layers have these operations."""
    lines = [LAYER.format(i=i, j=i + 1, op=op, last=last) for i, (op, last) in enumerate(operations)]
    head = "%x0: float32[N, 40]"
    body = "\n".join([*lines, f"return %x{len(operations)}"])
    p = parse(f"program main\nfunc main({head}) {{\n{body}\n}}\n")
    count = 0
    original = entry_points.ParallelNest.text

    def counted(self: entry_points.ParallelNest) -> str:
        nonlocal count
        count += 1
        return original(self)

    monkeypatch.setattr(entry_points.ParallelNest, "text", counted)
    unit = lower(prepared(p), current_target())
    return count, sum(name.startswith("dy2st.k.") for name in unit.kernels.texts)


@pytest.mark.parametrize(
    ("operations", "nests"),
    [
        ([("tanh", "neg")] * 3, 1),
        ([("tanh", "neg"), ("exp", "neg"), ("tanh", "neg")], 2),
        ([("tanh", "neg"), ("tanh", "abs"), ("tanh", "neg")], 2),
    ],
)
def test_layers_that_are_alike_share_what_is_written(
    operations: list[tuple[str, str]], nests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert written(operations, monkeypatch) == (nests, nests)
