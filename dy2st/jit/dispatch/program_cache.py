"""The Programs of one function, and how calls find them.

There are at most so many: beyond that the one goes that was not called for longest, and its machine code with it. So a
function that is called with ever new words or objects takes bounded memory, and those Programs stay that are in use.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from dy2st.jit.dispatch.concrete_program import ConcreteProgram

MOST_PROGRAMS = 64
"""So many Programs one function has at most, where `to_static(max_programs=...)` says nothing else."""


class ProgramCache:
    """The Programs of one function, by the key of the call; a key may have several, told apart by guards."""

    def __init__(self, most: int | None = None) -> None:
        self.most = MOST_PROGRAMS if most is None else most
        self.entries: dict[Any, list[ConcreteProgram]] = {}
        self.order: list[ConcreteProgram] = []
        self.traced = 0
        """How many there were, those that are gone included."""
        self._hand: deque[tuple[ConcreteProgram, int]] = deque()
        """The Programs, the next to look at first, each with its calls when it was looked at last."""

    def __len__(self) -> int:
        return len(self.order)

    def __iter__(self) -> Any:
        return iter(self.order)

    def concrete_programs(self) -> list[ConcreteProgram]:
        """Return the Programs, oldest first."""
        return list(self.order)

    def last(self) -> ConcreteProgram:
        """Return the Program that was traced last; RuntimeError before the first call."""
        if not self.order:
            raise RuntimeError("no Program was traced yet: call the function once, or give it an input_spec")
        return self.order[-1]

    def find(self, key: Any, leaves: Sequence[Any], again: bool = False) -> ConcreteProgram | None:
        """Return the Program for a call whose guards hold; of those before it is noted why not, once a call."""
        for program in tuple(self.entries.get(key, ())):
            if program.has_extents_of(leaves) and program.guards_pass():
                return program
            if not again:
                program.refuse(leaves)
        return None

    def fixed(self, key: Any) -> set[tuple[int, int]]:
        """Return the extents, by leaf and axis, that are fixed in the Programs of such calls."""
        return {(i, axis) for p in self.entries.get(key, ()) if p.fixed and p.guards_pass() for i, axis in p.fixed}

    def add(self, key: Any, program: ConcreteProgram) -> None:
        """Add a Program."""
        self.entries.setdefault(key, []).append(program)
        self.order.append(program)
        self._hand.append((program, program.calls + 1))  # it is added for a call
        self.traced += 1

    def drop(self) -> tuple[int, ConcreteProgram] | None:
        """Take out a Program that was not called lately, where there is one too many; return it, with its place."""
        if len(self.order) <= self.most:
            return None
        while True:
            program, calls = self._hand.popleft()
            if program.calls == calls and program is not self.order[-1]:
                break
            self._hand.append((program, program.calls))  # it was called since
        key, group = next((key, group) for key, group in self.entries.items() if program in group)
        group.remove(program)
        if not group:
            del self.entries[key]
        at = self.order.index(program)
        del self.order[at]
        return at, program
