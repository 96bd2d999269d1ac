"""Loop nests."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.runtime.cpu.grouping import Group
from dy2st.runtime.cpu.representation import Components
from dy2st.runtime.cpu.writer import Writer


def run_group(w: Writer, group: Group, operands: list[Components]) -> Sequence[Components]:
    raise NotImplementedError
