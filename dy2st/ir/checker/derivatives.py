"""Derivatives that a file brings along as text: a Program that stands in an attribute is checked as the file's own is.

Its operations are put in place where a derivative is made. What it takes has the types of the values that it is for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dy2st.errors import Dy2stError
from dy2st.ir.checker.typed_operation import TypedOperation
from dy2st.ir.parser import parse
from dy2st.ir.printer import to_text
from dy2st.ir.program import Operation, Program
from dy2st.ir.types import Type, tangent_type
from dy2st.ir.verifier import verify

_STATED = ("type", "types", "wide")
"""Attributes that say types."""
Check = Callable[[Program], None]


def with_gradient(check: Check, g: TypedOperation) -> Sequence[Type]:
    """Check values with derivatives of their own."""
    n = len(g.types)
    values = g.whole("values", 1, n)
    inputs = g.whole("inputs", 0, n - values)
    results, into, kept = g.types[:values], g.types[values : values + inputs], g.types[values + inputs :]
    _program(check, g, "pullback", [*map(tangent_type, results), *results, *kept], into)
    _program(check, g, "pushforward", [*map(tangent_type, into), *results, *kept], results)
    return results


def _program(check: Check, g: TypedOperation, name: str, taken: Sequence[Type], given: Sequence[Type]) -> None:
    text = g.text(name)
    if not text:
        return
    try:
        program = parse(text)
        verify(program)
        for operation in program.walk():
            g.require(_is_arithmetic(operation), f"{name} has {operation.name!r:.60}")
        block = program.block
        g.require(len(block.arguments) == len(taken) and len(block.results) == len(given), f"{name} does not fit")
        for argument, t in zip(block.arguments, taken, strict=True):
            g.alike(argument.type, t, f"an argument of {name}")
            argument.type = t
        before = _stated(program)
        check(program)
    except (Dy2stError, ValueError, TypeError, RecursionError) as error:
        g.refuse(f"{name}: {error}")
    for value, t in zip(block.results, given, strict=True):
        g.alike(value.type, tangent_type(t), f"a result of {name}")
    if _stated(program) != before:
        g.replace(name, to_text(program))


def _is_arithmetic(operation: Operation) -> bool:
    return operation.op.saveable and not (operation.blocks or operation.op.effect or operation.op.is_call)


def _stated(program: Program) -> list[object]:
    return [o.attributes[name] for o in program.walk() for name in _STATED if name in o.attributes]
