"""The Programs of one function, and how calls find them."""

from __future__ import annotations

from typing import Any

from dy2st.jit.concrete_program import ConcreteProgram


class ProgramCache:
    """The Programs of one function, by the key of the call; a key may have several, told apart by guards."""

    def __init__(self) -> None:
        self.entries: dict[Any, list[ConcreteProgram]] = {}
        self.order: list[ConcreteProgram] = []

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

    def find(self, key: Any, again: bool = False) -> ConcreteProgram | None:
        """Return the Program for a call whose guards hold; of those before it is noted why not, once a call."""
        for program in self.entries.get(key, ()):
            if program.holds():
                return program
            if not again:
                program.refuse()
        return None

    def add(self, key: Any, program: ConcreteProgram) -> None:
        self.entries.setdefault(key, []).append(program)
        self.order.append(program)
