"""Every Program that a test runs is a sample for the printer, the parser and the file format.

`RoundTrips` looks on while Programs are compiled, sends a share of them through text and through JSON, and remembers
which did not come back as they were. The share saves time only; `--round-trips 1` looks at every Program. A Program
that came back does so again: of those that are the same in text and fingerprint, a process looks at one.
"""

import json
import zlib
from typing import Any

import pytest

from dy2st.ir.checker.check import check
from dy2st.ir.clone import clone_program
from dy2st.ir.equality import structurally_equal
from dy2st.ir.fingerprint import fingerprint
from dy2st.ir.parser import parse
from dy2st.ir.printer import to_text
from dy2st.ir.program import Program
from dy2st.ir.serialize import from_json, to_json
from dy2st.runtime.executor.executable import Compiled
from dy2st.runtime.interpreter.planned import Plan

LARGE = 256
"""So many operations cost as much as many small Programs."""
_came_back: set[tuple[str | None, int]] = set()
"""Fingerprints of Programs and hashes of their texts, which have names and places too."""


class RoundTrips:
    """What was seen of the Programs of one test."""

    def __init__(self, share: int, test: str):
        self._share = share
        self._turn = zlib.crc32(test.encode())
        self.faults: list[str] = []

    def see(self, program: Program) -> None:
        """Check the Program if it is its turn; in a share, that of a large one comes as rarely as it costs."""
        self._turn += 1
        turn, early = divmod(self._turn, self._share)
        if not early and (self._share == 1 or turn % (1 + program.count // LARGE) == 0):
            fault = fault_of(program)
            if fault:
                self.faults.append(fault)

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        """See every Program that is given to `Compiled` or to a plan until `patch` is undone."""
        for kind in (Compiled, Plan):
            patch.setattr(kind, "__init__", _seen_by(self, kind.__init__))


def _seen_by(trips: RoundTrips, init: Any) -> Any:
    def init_and_see(self: Any, program: Program, *rest: Any, **keywords: Any) -> None:
        init(self, program, *rest, **keywords)
        trips.see(program)

    return init_and_see


def fault_of(program: Program) -> str:
    """Say what does not come back as it was; empty when everything does, or the Program cannot leave its process."""
    if not all(operation.op.saveable for operation in program.walk()):
        return ""
    text = to_text(program)
    known = fingerprint(program), hash(text)
    if known in _came_back:
        return ""
    try:
        if not structurally_equal(parse(text), program, locations=True):
            return f"parse(print(program)) is another Program:\n{text}"
        data, arrays = to_json(program)
        back = from_json(json.loads(json.dumps(data, allow_nan=False)), arrays)
        typed = clone_program(program)  # a file has types anew: what a derivative says of extents is no proof there
        check(typed)
        if not structurally_equal(back, typed, names=True):
            return f"the Program comes back from JSON as another one:\n{text}"
    except Exception as error:
        return f"{type(error).__name__}: {error}\n{text}"
    _came_back.add(known)
    return ""
