"""Write an operation more simply where that is exact: the same bits, also for NaN, infinities and -0.0.

Before                              After
    %y = mul(%x, %one)                  return %x
    return %y

1.  x * 1, x / 1, x - 0, x + (-0.0) (and x + 0 of integers) are x; -(-x) is x; a cast to the dtype that x has is x.
2.  A broadcast, sum or reshape to the shape that x has, and a transpose that moves nothing, are x.
3.  Of two transposes, reshapes, broadcasts or detaches in a row one is left.
4.  An int that its type knows (an extent) is a constant.
5.  `cond` of a constant is the branch that runs; `cond` of two equal branches is one of them; a loop without iterations
    is nothing.
6.  A result that both branches of a `cond` pass on unchanged is the operand.
7.  Payload and tag of a variant that was just made are what it was made of; so are length and elements of a list, and
    the items of a tuple.
8.  Whether a variant has the tag that the first branch of a `cond` alone gives it is the predicate.

Where x is an array that somebody else can see, and so is the result, the caller could write into both: 1 and 2 leave
results and what may become a view of them alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dy2st.ir.equality import structurally_equal
from dy2st.ir.opdef import lookup
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.control.lists import ListGet, ListLen, ListNew
from dy2st.ops.control.optional import VariantGet, VariantNew, VariantTag
from dy2st.ops.control.tuples import TupleGet, TupleNew
from dy2st.ops.core.constant import Detach
from dy2st.ops.shape.shape import Reshape, SumTo, Transpose
from dy2st.passes.core.base import Pass
from dy2st.passes.core.effects import Effects
from dy2st.passes.core.rewrite import Replacements, inline, may_inline
from dy2st.passes.simplify.constant_fold import constant_of
from dy2st.passes.simplify.rules import EXACT, MERGED


class Simplify(Pass):
    """Replace operations by simpler ones that give the same bits."""

    name = "simplify"

    def apply(self, program: Program) -> bool:
        changed = False
        effects = Effects(program)
        for function in program.functions.values():
            changed |= _Simplify(effects, Replacements(function)).block(function)
        return changed


class _Simplify:
    def __init__(self, effects: Effects, replacements: Replacements):
        self.effects, self.replacements = effects, replacements
        self.kept: list[Operation] = []
        self.sharing = _Sharing(Block())

    def block(self, block: Block) -> bool:
        changed = False
        outer, self.kept, self.sharing = (self.kept, self.sharing), [], _Sharing(block)
        for operation in block.operations:
            self.replacements.operands(operation)
            for inner in operation.blocks:
                changed |= self.block(inner)
            changed |= self.operation(operation, block)
        block.operations[:] = self.kept
        self.replacements.results(block)
        self.kept, self.sharing = outer
        return changed

    def operation(self, operation: Operation, block: Block) -> bool:
        """Keep an operation, or what is left of it; return whether anything changed."""
        name = operation.op.name
        if operation.blocks:
            return self.control(operation, block)
        changed = name in MERGED and MERGED[name](operation)  # 3.
        if changed:
            self.sharing.uses(operation)
        same = EXACT[name](operation) if name in EXACT else None
        if isinstance(operation.op, TupleGet) and self.unpacked(operation):  # 7.
            return True
        if same is not None and self.stands_in(same, operation):
            return True
        self.kept.append(operation)
        return self.known(operation, block) or changed

    def unpacked(self, operation: Operation) -> bool:
        source = operation.operands[0].operation
        if source is None or not isinstance(source.op, TupleNew):
            return False
        pairs = list(zip(operation.results, source.operands, strict=True))
        if not all(self.replacements.unify(a.type, self.replacements.now(b).type, operation) for a, b in pairs):
            return False
        return all(self.replace(a, b) for a, b in pairs)

    def stands_in(self, same: Value, operation: Operation) -> bool:
        """1. 2. 7. 8. Let an operand take the place of a result, where that is allowed."""
        (result,) = operation.results
        if not self.sharing.may_replace(result, same) or not self.replace(result, same):
            return False
        if not self.effects.is_pure(operation) and not isinstance(operation.op, (ListGet, VariantGet)):
            self.kept.append(operation)
        return True

    def known(self, operation: Operation, block: Block) -> bool:
        """4. 7. Write a number that the types know as a constant."""
        if len(operation.results) != 1 or not isinstance(operation.results[0].type, ScalarType):
            return False
        (result,) = operation.results
        number = result.type.extent if isinstance(result.type, ScalarType) else None
        number = _counted(operation) if number is None else number
        if not isinstance(number, int) or operation.op.is_constant or operation.op.effect:
            return False
        if self.effects.is_pure(operation):
            self.kept.pop()
        elif result not in _used_in(block):
            return False
        made = Operation(lookup("scalar_constant"), [], {"value": number}, [], operation.location)
        made.results.append(Value(ScalarType("int", number), block, made))
        self.kept.append(made)
        self.replacements.pending.append(made)
        return self.replace(result, made.results[0])

    def replace(self, old: Value, new: Value) -> bool:
        """Let `new` take the place of `old`, and note that who used `old` uses it."""
        if not self.replacements.replace(old, new):
            return False
        self.sharing.replaced(old, self.replacements.now(new))
        return True

    # ---- control flow ----------------------------------------------------------------------------------------------
    def control(self, operation: Operation, block: Block) -> bool:
        rule: Callable[[Operation, Block], bool] = self.cond if operation.op.is_branch else self.loop
        if (operation.op.is_branch or operation.op.is_loop) and rule(operation, block):
            return True
        self.kept.append(operation)
        return operation.op.is_branch and self.passed_on(operation)

    def cond(self, operation: Operation, block: Block) -> bool:
        """5."""
        known = truth(operation.operands[0])
        then, other = operation.blocks
        if known is None and _is_one(operation.operands[0]) and structurally_equal(then, other):
            known = True
        if known is None:
            return False
        taken, operands = (then if known else other), operation.operands[1:]
        if not may_inline(taken, operands):
            return False
        made, results = inline(taken, operands, block)
        return self.stands_for(operation, made, results)

    def loop(self, operation: Operation, block: Block) -> bool:
        """5."""
        first = constant_of(operation.operands[0])
        still = truth(operation.operands[0]) is False
        if operation.op.is_counted:
            still = first is not None and first <= 0
        if not still:
            return False
        return self.stands_for(operation, [], operation.operands[1 : 1 + operation.attributes["carried"]])

    def stands_for(self, operation: Operation, made: list[Operation], results: list[Value]) -> bool:
        """Put operations in the place of one."""
        pairs = list(zip(operation.results, results, strict=True))
        self.replacements.pending += made
        for old, new in pairs:
            if not self.replacements.unify(old.type, new.type, operation):
                return False
        self.kept += made
        for one in made:
            self.sharing.uses(one)
        for old, new in pairs:
            self.replace(old, new)
        return True

    def passed_on(self, operation: Operation) -> bool:
        """6."""
        then, other = operation.blocks
        changed = False
        for i in reversed(range(len(operation.results))):
            a, b = then.results[i], other.results[i]
            if a.operation is not None or b.operation is not None:
                continue
            place = then.arguments.index(a)
            if place != other.arguments.index(b):
                continue
            if self.replace(operation.results[i], operation.operands[1 + place]):
                del operation.results[i], then.results[i], other.results[i]
                changed = True
        return changed


class _Sharing:
    """Who uses a value in a block, so that no array becomes visible in two places that were two arrays."""

    def __init__(self, block: Block):
        self.results = set(block.results)
        self.users: dict[Value, list[Operation]] = {}
        for operation in block.operations:
            self.uses(operation)

    def uses(self, operation: Operation) -> None:
        """Note the operands of an operation."""
        for value in operation.operands:
            self.users.setdefault(value, []).append(operation)

    def may_replace(self, result: Value, same: Value) -> bool:
        if isinstance(result.type, ScalarType) or result.operation is None:
            return True
        if isinstance(result.operation.op, (Detach, ListGet, Reshape, SumTo, Transpose, VariantGet)):
            return True  # these give x itself, or a view of it, anyway
        if result not in self.results and all(map(_computes_anew, self.users.get(result, ()))):
            return True
        made = same.operation
        return made is not None and _computes_anew(made) and same not in self.results and len(self.users[same]) <= 1

    def replaced(self, result: Value, same: Value) -> None:
        self.users.setdefault(same, []).extend(self.users.get(result, ()))
        if result in self.results:
            self.results.add(same)


def _computes_anew(operation: Operation) -> bool:
    return operation.op.elementwise or operation.op.fresh


def _used_in(block: Block) -> set[Value]:
    return set(block.results).union(*(o.operands for o in block.operations))


def _counted(operation: Operation) -> int | None:
    """Return what the tag of a new variant, or the length of a new list, is."""
    source = operation.operands[0].operation if operation.operands else None
    if source is None:
        return None
    if isinstance(operation.op, VariantTag) and isinstance(source.op, VariantNew):
        return source.attributes["tag"]
    if isinstance(operation.op, ListLen) and isinstance(source.op, ListNew):
        return len(source.operands)
    return None


def truth(value: Value) -> bool | None:
    """Return the truth of a predicate that is constant, else None."""
    content = constant_of(value)
    if content is None or np.size(content) != 1:
        return None
    return bool(content)


def _is_one(value: Value) -> bool:
    """Return whether a predicate surely is one number, so that asking it cannot raise."""
    t: Any = value.type
    return isinstance(t, ScalarType) or (isinstance(t, TensorType) and t.rank == 0)
