"""What the Programs of a function leave open: numbers that their calls may change without a new trace.

A number is fixed in a Program at first. Once a later call brings another one it is left open, a symbolic input; where
the function turns out to need it as a Python value, it is fixed again and stays so. Objects among the arguments are
left open as their attributes are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dy2st.jit.dispatch.concrete_program import ConcreteProgram
from dy2st.jit.guards.call_signature import FlatCall


class DynamicScalars:
    """The names of arguments, and the places of numbers in the state, that are open."""

    def __init__(self) -> None:
        self.arguments: set[str] = set()
        """Names of leaves among the arguments."""
        self.state: set[tuple[int, str]] = set()
        """Owners and names of attributes."""
        self.fixed_state: set[tuple[int, str]] = set()
        """Owners and names of tensors outside whose extents Python needs."""
        self._closed_arguments: set[str] = set()
        self._closed_state: set[tuple[int, str]] = set()

    def open_arguments(self, programs: Iterable[ConcreteProgram], made: FlatCall) -> bool:
        """Leave open what differs from an earlier call of the same kind; return whether anything was opened."""
        names = {name for program in programs for name in program.differing(made)}
        names -= self._closed_arguments | self.arguments
        self.arguments |= names
        return bool(names)

    def close_arguments(self, made: FlatCall) -> None:
        """Fix the numbers again that the function needs as Python values, and the objects that it needs themselves."""
        names = {made.names[i] for i in made.numbers} | set(made.opened)
        self._closed_arguments |= names
        self.arguments -= names

    def open_state(self, guards: Iterable[Any]) -> None:
        """Leave open the numbers of the state whose guards have failed."""
        for guard in guards:
            place = id(guard.owner), getattr(guard, "name", "")
            if guard.changed_number() and place not in self._closed_state:
                self.state.add(place)

    def close_state(self, places: set[tuple[int, str]]) -> None:
        """Fix numbers of the state again that the function needs as Python values."""
        self.state -= places
        self._closed_state |= places
