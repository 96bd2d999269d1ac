"""The Programs of one function, how calls find them, and what `explain()` says of them."""

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

    def find(self, key: Any) -> ConcreteProgram | None:
        """Return the Program for a call whose guards hold."""
        for program in self.entries.get(key, ()):
            if program.holds():
                return program
        return None

    def add(self, key: Any, program: ConcreteProgram) -> None:
        self.entries.setdefault(key, []).append(program)
        self.order.append(program)


class Explanation:
    """What `explain()` returns; prints as text."""

    def __init__(self, name: str, traced: list[str], fallbacks: list[str], programs: ProgramCache):
        self.name, self.traced, self.fallbacks = name, traced, fallbacks
        self.programs = programs.concrete_programs()

    def __str__(self) -> str:
        lines = [f"{self.name}: {len(self.programs)} programs", *(f"  {t}" for t in self.traced)]
        lines += [f"  fallback: {f}" for f in self.fallbacks] or ["  no fallback"]
        return "\n".join(lines)

    __repr__ = __str__
