"""A piece of LLVM IR text and the pieces that it calls."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from dy2st.records import record


@record(frozen=True)
class Definition:
    """One function, constant or declaration of a module: its symbol, its text and what it needs."""

    name: str
    text: str
    needs: tuple[Definition, ...] = ()

    @property
    def letters(self) -> int:
        """How many letters stand where this is written out, with those of what it calls that is written out too."""
        inside = [need for need in self.needs if " alwaysinline " in need.text]
        return len(self.text) + sum(self.text.count(f"@{need.name}(") * need.letters for need in inside)

    @property
    def declaration(self) -> str:
        """The text by which another module calls this function.

        >>> Definition("f", "define internal void @f(ptr %a) nounwind {...}").declaration
        'declare void @f(ptr %a)'
        """
        head = self.text[: self.text.index(")", self.text.index(f"@{self.name}(")) + 1]
        return head.replace("define internal", "declare").replace("define", "declare")


def gathered(definitions: Iterable[Definition], elsewhere: Collection[str] = ()) -> str:
    """Return the text of the definitions and of all that they need, each once, needs first.

    What another module has, `elsewhere`, is declared.

    >>> callee = Definition("f", "declare void @f()")
    >>> print(gathered([Definition("g", "define void @g() {...}", (callee,)), callee]))
    declare void @f()
    define void @g() {...}
    """
    found: dict[str, str] = {}

    def visit(definition: Definition) -> None:
        if definition.name in found:
            return
        if definition.name in elsewhere:
            found[definition.name] = definition.declaration
            return
        for need in definition.needs:
            visit(need)
        found[definition.name] = definition.text

    for definition in definitions:
        visit(definition)
    return "\n".join(found.values())


def called(definition: Definition) -> Definition:
    """Return a function that does what another one does, which is to be written out where it is called, and stays one.

    Vectors come and go in registers.

    >>> print(called(Definition("f", "define internal i64 @f(i64 %x) alwaysinline {...}")).text)
    define internal i64 @f.called(i64 %x) noinline nounwind {
      %result = call i64 @f(i64 %x)
      ret i64 %result
    }
    """
    name = f"{definition.name}.called"
    head, _, given = definition.text.partition(")")[0].partition(f" @{definition.name}(")
    kind = head.removeprefix("define internal ")
    call = f"  %result = call {kind} @{definition.name}({given})\n  ret {kind} %result"
    return Definition(name, f"define internal {kind} @{name}({given}) noinline nounwind {{\n{call}\n}}", (definition,))


def exported(definition: Definition) -> Definition:
    """Return a definition that other modules can call."""
    return Definition(definition.name, definition.text.replace("define internal", "define", 1), definition.needs)
