"""Compute the same thing once.

Before                          After
    %a = exp(%x)                    %a = exp(%x)
    %b = exp(%x)                    %c = add(%a, %a)
    %c = add(%a, %b)

1. Two operations of a block with the same op, operands and attributes become one, unless they have effects or
   sub-blocks; operands of a sum or product may stand in either order. Those that may raise are merged too: where the
   first did not raise, the second would not. Random ops are functions of (seed, draw number), so equal ones give equal
   numbers.
2. Two results of a block stay two arrays: the caller may write into one of them.
3. Two arguments of a branch, or two invariants of a loop, that take the same operand become one.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from dy2st.dtypes import DType
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ir.types import ScalarType
from dy2st.passes.core.base import Pass
from dy2st.passes.core.rewrite import Replacements


class MergeCommonSubexpressions(Pass):
    """Compute equal expressions of a block once."""

    name = "cse"

    def apply(self, program: Program) -> bool:
        changed = False
        for function in program.functions.values():
            changed |= _merge(function, Replacements(function))
        return changed


def _merge(block: Block, replacements: Replacements) -> bool:
    changed = False
    first: dict[Any, Operation] = {}
    kept: list[Operation] = []
    results = set(block.results)
    for operation in block.operations:
        replacements.operands(operation)
        changed |= _merge_operands(operation)
        for inner in operation.blocks:
            changed |= _merge(inner, replacements)
        if operation.blocks or operation.op.effect or operation.op.is_call:
            kept.append(operation)
            continue
        operands = list(map(id, operation.operands))
        if operation.op.commutative:
            operands.sort()
        key = (operation.op.name, *operands, identity(operation.attributes))
        earlier = first.setdefault(key, operation)
        if earlier is not operation and _becomes(operation, earlier, results, replacements):  # 1.
            changed = True
        else:
            kept.append(operation)
    block.operations[:] = kept
    replacements.results(block)
    return changed


def _becomes(later: Operation, earlier: Operation, results: set[Value], replacements: Replacements) -> bool:
    pairs = list(zip(later.results, earlier.results, strict=True))
    apart = (p in results and q in results and not isinstance(p.type, ScalarType) for p, q in pairs)
    if any(apart):  # 2.
        return False
    if not all(replacements.unify(p.type, q.type, later) for p, q in pairs):
        return False
    done = [replacements.replace(p, q) for p, q in pairs]
    results.update(q for p, q in pairs if p in results)
    return all(done)


def _merge_operands(operation: Operation) -> bool:
    """3."""
    if not operation.blocks or operation.op.is_try:
        return False
    iteration = int(operation.op.is_counted)
    seen: dict[Value, int] = {}
    again: list[int] = []
    for i in range(1 + operation.attributes.get("carried", 0), len(operation.operands)):
        place = seen.setdefault(operation.operands[i], i)
        types = [[b.arguments[at - 1 + iteration].type for at in (i, place)] for b in operation.blocks]
        if place != i and all(a == b for a, b in types):
            again.append(i)
            for block in operation.blocks:
                _redirect(block, block.arguments[i - 1 + iteration], block.arguments[place - 1 + iteration])
    for i in reversed(again):
        del operation.operands[i]
        for block in operation.blocks:
            del block.arguments[i - 1 + iteration]
    return bool(again)


def _redirect(block: Block, old: Value, new: Value) -> None:
    for operation in block.operations:
        operation.operands = [new if v is old else v for v in operation.operands]
    block.results = [new if v is old else v for v in block.results]


def identity(attribute: Any) -> Any:
    """Return a key that is equal for attributes that are the same bit by bit.

    1, 1.0 and True differ, so do 0.0 and -0.0; NaN is equal to itself.
    """
    if isinstance(attribute, (dict, tuple)):
        if not attribute:
            return ()
        items = cast("Any", attribute)
        pairs = sorted(items.items()) if isinstance(attribute, dict) else items
        return tuple(map(identity, pairs))
    if isinstance(attribute, np.ndarray):
        array = cast("Any", attribute)
        return (array.dtype.str, array.shape, array.tobytes())
    if isinstance(attribute, DType):
        return attribute.name
    return (type(attribute), repr(attribute) if isinstance(attribute, float) else attribute)
