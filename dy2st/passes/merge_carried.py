"""Carry values that are equal in every turn of a loop once.

Before                                                  After
    %p, %q = counted_while(%k, %z, %z, %x) {                %p = counted_while(%k, %z, %x) {
        (%i, %a, %b, %x1) ->                                    (%i, %a, %x1) ->
        %s = add(%a, %x1)                                       %s = add(%a, %x1)
        %t = add(%b, %x1)                                       return %s
        return %s, %t                                       }
    }                                                       return %p, %p
    return %p, %q

1. Values begin as equal where they begin with the same operand. They stay so as long as, equal values taken as one, a
   turn computes them by the same operations; what does not, is taken apart, until nothing changes any more. So values
   that are computed from each other are found too.
2. Two results of a block stay two arrays: the caller may write into one of them.

A loop that was differentiated twice carries what both derivatives need, and the counter that its source line counts
beside the one that counts its turns.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ir.types import ScalarType
from dy2st.passes.base import Pass
from dy2st.passes.cse import COMMUTATIVE, identity
from dy2st.passes.licm import LOOPS
from dy2st.passes.rewrite import Replacements


class MergeCarried(Pass):
    """Let a loop carry equal values once."""

    name = "merge_carried"

    def apply(self, program: Program) -> bool:
        changed = False
        for function in program.functions.values():
            changed |= _merge(function, Replacements(function))
        return changed


def _merge(block: Block, replacements: Replacements) -> bool:
    changed, results = False, set(block.results)
    for operation in block.operations:
        replacements.operands(operation)
        for inner in operation.blocks:
            changed |= _merge(inner, replacements)
        if operation.op.name in LOOPS:
            changed |= _merge_in(operation, results, replacements)
    replacements.results(block)
    return changed


def _merge_in(loop: Operation, results: set[Value], replacements: Replacements) -> bool:
    (body,), turn = loop.blocks, int(loop.op.name == "counted_while")
    instead: dict[Value, Value] = {}
    for i, first in reversed(list(enumerate(_equal(loop, turn)))):
        old, new = loop.results[i], loop.results[first]
        if first == i or ({old, new} <= results and not isinstance(old.type, ScalarType)):  # 2.
            continue
        if not replacements.replace(old, new):
            continue
        results.update({new} if old in results else ())
        instead[body.arguments.pop(turn + i)] = body.arguments[turn + first]
        del body.results[1 - turn + i], loop.operands[1 + i], loop.results[i]
        loop.attributes["carried"] -= 1
    if instead:
        for operation in body.operations:
            operation.operands = [instead.get(v, v) for v in operation.operands]
        body.results = [instead.get(v, v) for v in body.results]
    return bool(instead)


def _equal(loop: Operation, turn: int) -> list[int]:
    """1. Return for each carried value the first one that is equal to it, itself where none is."""
    (body,), count = loop.blocks, loop.attributes["carried"]
    arguments, following = body.arguments[turn : turn + count], body.results[1 - turn :]
    begun = list(zip(map(id, loop.operands[1 : count + 1]), arguments, strict=True))
    found = _classes([(operand, argument.type) for operand, argument in begun])
    while any(first != i for i, first in enumerate(found)):
        numbers = _numbers(body, {a: arguments[first] for a, first in zip(arguments, found, strict=True)})
        finer = _classes([(first, numbers.get(v, v)) for first, v in zip(found, following, strict=True)])
        if finer == found:
            break
        found = finer
    return found


def _classes(keys: Sequence[Hashable]) -> list[int]:
    """Return for each key the place of the first one that is equal."""
    places: dict[Hashable, int] = {}
    return [places.setdefault(key, i) for i, key in enumerate(keys)]


def _numbers(body: Block, same: dict[Value, Value]) -> dict[Value, Value]:
    """Return which values of a block are equal to an earlier one, where these arguments are."""
    numbers = dict(same)
    known: dict[Hashable, Operation] = {}
    for operation in body.operations:
        if operation.blocks or operation.op.effect or operation.op.name == "call":
            continue
        operands = [id(numbers.get(v, v)) for v in operation.operands]
        if operation.op.name in COMMUTATIVE:
            operands.sort()
        earlier = known.setdefault((operation.op.name, *operands, identity(operation.attributes)), operation)
        numbers.update(zip(operation.results, earlier.results, strict=True))
    return numbers
