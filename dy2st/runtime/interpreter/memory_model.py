"""About how many bytes the interpreter holds at a time beside the inputs, as the types tell for known extents.

A result is held from its operation to the last use of it or of a view of it. A loop holds what one iteration does, and
a branch as much as the larger one; what an operation needs for itself, and memory that it writes over, are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping

from dy2st.ir.program import Block, Program, Value
from dy2st.ir.types import ListType, TensorType, TupleType, Type, VariantType
from dy2st.runtime.interpreter.cost_model import elements, gives_view


def peak(program: Program, known: Mapping[str, int]) -> int:
    """Return the most bytes at a time; 0 where the run alone tells, because there are lists."""
    values = (v for operation in program.walk() for v in operation.results)
    return 0 if any(_grows(v.type) for v in values) else _most(program.block, known)


def _most(block: Block, known: Mapping[str, int]) -> int:
    owner: dict[Value, Value] = {}
    last: dict[Value, int] = {}
    for at, operation in enumerate(block.operations):
        for value in operation.operands:
            last[owner.get(value, value)] = at
        if operation.operands and gives_view(operation):
            first = operation.operands[0]
            owner[operation.results[0]] = owner.get(first, first)
    kept = {owner.get(value, value) for value in block.results}
    most = held = 0
    sizes: dict[Value, int] = {}
    ends: dict[int, list[Value]] = {}
    for at, operation in enumerate(block.operations):
        own = [v for v in operation.results if v not in owner]
        sizes.update((v, _bytes(v.type, known)) for v in own)
        held += sum(sizes[v] for v in own)
        most = max(most, held + max((_most(inner, known) for inner in operation.blocks), default=0))
        for value in own:
            if value not in kept:
                ends.setdefault(last.get(value, at), []).append(value)
        held -= sum(sizes[v] for v in ends.pop(at, ()))
    return most


def _bytes(t: Type, known: Mapping[str, int]) -> int:
    if isinstance(t, TensorType):
        return elements(t.shape, known) * t.dtype.itemsize
    if isinstance(t, TupleType):
        return sum(_bytes(item, known) for item in t.items)
    return max((_bytes(a, known) for a in t.alternatives), default=0) if isinstance(t, VariantType) else 0


def _grows(t: Type) -> bool:
    if isinstance(t, VariantType):
        return any(map(_grows, t.alternatives))
    return isinstance(t, ListType) or (isinstance(t, TupleType) and any(map(_grows, t.items)))
