"""Which op of the language stood at which position in the Programs of random functions.

Positions: `loop` and `branch`, inside of a block of one; `carried`, a value that a loop hands to its next iteration;
`early`, a value of a branch inside of a loop, which is how a value leaves one; `derived`, in a function whose gradient
was asked for. An op that the generator writes and that is not seen at each of them is a hole: an error.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from dy2st.ir.opdef import REGISTRY
from dy2st.ir.program import Block, Operation, Program
from dy2st.ir.types import TensorType

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
    """Yield operations with their positions; `around` has `loop` and `branch`."""
    leaving = {id(value) for value in block.results}
    for operation in block.operations:
        places = around
        if leaving & {id(result) for result in operation.results}:
            places |= ({"carried"} if "body" in around else set()) | ({"early"} if "end" in around else set())
        yield operation, places - {"body", "end"}
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


NO_TENSOR = "its result is no tensor that a loop carries or a branch gives"
SIMPLIFIED = "a pass or the builder replaces it there"
ONE_POSITION: dict[str, dict[str, str]] = {}
"""By op, the positions at which it cannot be seen, with the reason."""


def holes(seen: Seen) -> list[str]:
    """Name the positions at which an op of the generator was never seen, without those that have a reason."""
    written = sorted({name for name, place in seen if place == "anywhere" and _is_on_tensors(name)})
    missing = ((name, place) for name in written for place in POSITIONS if not seen[name, place])
    return [f"{name} {place}" for name, place in missing if place not in ONE_POSITION.get(name, {})]


def unseen(seen: Seen) -> list[str]:
    """Name the ops that no program had."""
    return sorted(name for name in REGISTRY if not seen[name, "anywhere"])


def _is_on_tensors(name: str) -> bool:
    op: Any = REGISTRY[name]
    return not op.effect and not op.blocks and not name.startswith(("list_", "slots_", "scalar_", "variant_", "tuple_"))


def has_tensor(operation: Operation) -> bool:
    """Return whether an operation gives a tensor."""
    return any(isinstance(result.type, TensorType) for result in operation.results)
