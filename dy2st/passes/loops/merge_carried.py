"""Carry values that are equal in every iteration of a loop once.

Before                                                  After
    %p, %q = counted_while(%k, %z, %z, %x) {                %p = counted_while(%k, %z, %x) {
        (%i, %a, %b, %x1) ->                                    (%i, %a, %x1) ->
        %s = add(%a, %x1)                                       %s = add(%a, %x1)
        %t = add(%b, %x1)                                       return %s
        return %s, %t                                       }
    }                                                       return %p, %p
    return %p, %q

1. Values begin as equal where they begin with the same operand. They stay so as long as, equal values taken as one, a
   turn computes them by the same operations; what does not, is taken apart, until nothing changes any more
   (congruence.py). So values that are computed from each other are found too.
2. Two results of a block stay two arrays: the caller may write into one of them.

A loop that was differentiated twice carries what both derivatives need, and the counter that its source line counts
beside the one that counts its iterations.
"""

from __future__ import annotations

from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ir.types import ScalarType
from dy2st.passes.core.base import Pass
from dy2st.passes.core.rewrite import Replacements
from dy2st.passes.loops.congruence import Nodes, classes
from dy2st.passes.simplify.cse import identity


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
        if operation.op.is_loop:
            changed |= _merge_in(operation, results, replacements)
    replacements.results(block)
    return changed


def _merge_in(loop: Operation, results: set[Value], replacements: Replacements) -> bool:
    (body,), iteration = loop.blocks, int(loop.op.is_counted)
    instead: dict[Value, Value] = {}
    for i, first in reversed(list(enumerate(_equal(loop, iteration)))):
        old, new = loop.results[i], loop.results[first]
        if first == i or ({old, new} <= results and not isinstance(old.type, ScalarType)):  # 2.
            continue
        if not replacements.replace(old, new):
            continue
        results.update({new} if old in results else ())
        instead[body.arguments.pop(iteration + i)] = body.arguments[iteration + first]
        del body.results[1 - iteration + i], loop.operands[1 + i], loop.results[i]
        loop.attributes["carried"] -= 1
    if instead:
        for operation in body.operations:
            operation.operands = [instead.get(v, v) for v in operation.operands]
        body.results = [instead.get(v, v) for v in body.results]
    return bool(instead)


def _equal(loop: Operation, iteration: int) -> list[int]:
    """1. Return for each carried value the first one that is equal to it, itself where none is."""
    (body,), count = loop.blocks, loop.attributes["carried"]
    arguments = body.arguments[iteration : iteration + count]
    begun = [(id(operand), argument.type) for operand, argument in zip(loop.operands[1:], arguments, strict=False)]
    if len(set(begun)) == count:
        return list(range(count))
    nodes = Nodes()
    places = {argument: nodes.add(kind) for argument, kind in zip(arguments, begun, strict=True)}
    for argument in (*body.arguments[:iteration], *body.arguments[iteration + count :]):
        places[argument] = nodes.add(id(argument))
    for operation in body.operations:
        _add(operation, places, nodes)
    for argument, following in zip(arguments, body.results[1 - iteration :], strict=True):
        nodes.reads[places[argument]] = [places[following]]
    return classes(nodes)[:count]


def _add(operation: Operation, places: dict[Value, int], nodes: Nodes) -> None:
    """Add nodes for what an operation computes."""
    if operation.blocks or operation.op.effect or operation.op.is_call:
        places.update((result, nodes.add(id(result))) for result in operation.results)
        return
    reads = [places[v] for v in operation.operands]
    made = nodes.add((operation.op.name, identity(operation.attributes)), reads, operation.op.commutative)
    for i, result in enumerate(operation.results):
        places[result] = made if len(operation.results) == 1 else nodes.add(("result", i), [made])
