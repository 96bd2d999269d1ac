"""Which op of the language stood at which position in the Programs of random functions.

Positions: `loop` and `branch`, inside of a block of one; `carried`, what goes into a value that a loop hands to its
next iteration; `early`, what goes into a value of a branch inside of a loop, which is how a value leaves one;
`derived`, in a function whose gradient was asked for. An op that the generator writes and that is not seen at each of
them is a hole: an error.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from dy2st.ir.opdef import REGISTRY
from dy2st.ir.program import Block, Operation, Program

POSITIONS = ("loop", "branch", "carried", "early", "derived")
LOOPS = ("while_loop", "counted_while")
BRANCHES = ("cond", "try")
Seen = Counter[tuple[str, str]]


def positions(program: Program, *, derived: bool) -> Seen:
    """Count the ops of a Program by position; `derived` where its gradient was asked for."""
    seen: Seen = Counter()
    for block in program.functions.values():
        for operation, places in _walk(block, frozenset()):
            seen[operation.op.name, "anywhere"] += 1
            for place in places:
                seen[operation.op.name, place] += 1
            if derived:
                seen[operation.op.name, "derived"] += 1
    return seen


def _walk(block: Block, around: frozenset[str]) -> Iterator[tuple[Operation, frozenset[str]]]:
    """Yield operations with their positions; `around` has `loop` and `branch`, and what kind of block this is."""
    wanted = {id(value) for value in block.results}
    leaving = ({"carried"} if "body" in around else set()) | ({"early"} if "end" in around else set())
    for operation in reversed(block.operations):
        places = around - {"body", "end"}
        if wanted & {id(result) for result in operation.results}:
            places |= leaving
            wanted |= {id(operand) for operand in operation.operands}
        yield operation, places
        for inner in operation.blocks:
            yield from _walk(inner, _inside(operation.op.name, around))


def _inside(name: str, around: frozenset[str]) -> frozenset[str]:
    """Return what is around a block of an op of that name."""
    outer = around - {"body", "end"}
    if name in LOOPS:
        return outer | {"loop", "body"}
    if name in BRANCHES:
        return outer | {"branch"} | ({"end"} if "loop" in around else set())
    return outer


def holes(seen: Seen) -> list[str]:
    """Name the positions at which an op of the generator was never seen."""
    written = sorted({name for name, place in seen if place == "anywhere" and _is_on_tensors(name)})
    missing = ((name, place) for name in written for place in POSITIONS if not seen[name, place])
    return [f"{name} {place}" for name, place in missing]


def unseen(seen: Seen) -> list[str]:
    """Name the ops that no program had."""
    return sorted(name for name in REGISTRY if not seen[name, "anywhere"])


def _is_on_tensors(name: str) -> bool:
    op: Any = REGISTRY[name]
    return not op.effect and not op.blocks and not name.startswith(("list_", "slots_", "scalar_", "variant_", "tuple_"))
