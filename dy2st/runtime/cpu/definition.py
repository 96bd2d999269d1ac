"""A piece of LLVM IR text and the pieces that it calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Definition:
    """One function, constant or declaration of a module: its symbol, its text and what it needs."""

    name: str
    text: str
    needs: tuple[Definition, ...] = ()


def gathered(definitions: Iterable[Definition]) -> str:
    """Return the text of the definitions and of all that they need, each once, needs first.

    >>> callee = Definition("f", "declare void @f()")
    >>> print(gathered([Definition("g", "define void @g() {...}", (callee,)), callee]))
    declare void @f()
    define void @g() {...}
    """
    found: dict[str, Definition] = {}

    def visit(definition: Definition) -> None:
        if definition.name in found:
            return
        for need in definition.needs:
            visit(need)
        found[definition.name] = definition

    for definition in definitions:
        visit(definition)
    return "\n".join(definition.text for definition in found.values())
