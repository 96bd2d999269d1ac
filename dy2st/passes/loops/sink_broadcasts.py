"""Repeat a number inside of the loop or branch that reads it: a loop nest then has it in a register.

Before                                                  After
    %c = broadcast(%rate) {shape=(64, 8)}                   %n = counted_while(%k, %m, %rate) {
    %n = counted_while(%k, %m, %c) {                            (%i, %m1, %r1) ->
        (%i, %m1, %c1) ->                                       %c1 = broadcast(%r1) {shape=(64, 8)}
        %t = mul(%m1, %c1)                                      %t = mul(%m1, %c1)
        return %t                                               return %t
    }                                                       }

Hoisting has put it in front of the loop, where NumPy would rather have it. Each iteration would read an array of one
number.

1. A number of rank 0 is repeated, more than a few times: a few stand in registers as they are.
2. Inside of the block, and of those in it, elementwise operations alone read it.
3. Sums, differences, products and quotients of repeated numbers are made inside too: LLVM takes them out of the nest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from dy2st.ir.clone import clone_operation
from dy2st.ir.program import Block, Operation, Program, Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.ops.core.constant import Constant
from dy2st.ops.elementwise.arithmetic import Add, Div, Mul, Sub
from dy2st.ops.shape.shape import Broadcast
from dy2st.passes.core.base import Pass

_FEW = 16


class SinkBroadcasts(Pass):
    """Let loops and branches take numbers, and not arrays that repeat one."""

    name = "sink_broadcasts"

    def apply(self, program: Program) -> bool:
        changed = [_in_block(block) for block in program.functions.values()]
        return any(changed)


def handed_on(operation: Operation) -> Iterator[tuple[Value, Value]]:
    """Yield what an operation hands to its blocks, as they find it in every run, with the blocks' names for it."""
    op, operands = operation.op, operation.operands
    if op.is_branch:
        for block in operation.blocks:
            yield from zip(operands[1:], block.arguments, strict=True)
    elif op.is_loop:
        count, (body,) = operation.attributes["carried"], operation.blocks
        first = count + op.is_counted
        yield from zip(operands[count + 1 :], body.arguments[first:], strict=True)


def _in_block(block: Block) -> bool:
    """Repeat inside of a block's operations, the outer ones first: what was brought in goes further in."""
    changed = False
    for operation in [o for o in block.operations if o.blocks]:
        pairs = [*handed_on(operation)]
        for value in dict.fromkeys(outer for outer, _ in pairs):
            inside = [inner for outer, inner in pairs if outer is value and _is_read(inner)]
            if inside and _is_long(value) and _is_repeated(value) and all(_is_read_as(value, v) for v in inside):
                _repeat(operation, value)
                changed = True
        for inner in operation.blocks:
            changed |= _in_block(inner)
    return changed


def _is_long(value: Value) -> bool:
    """1."""
    if not isinstance(value.type, TensorType):
        return False
    known = [e for e in value.type.shape if isinstance(e, int)]
    return len(known) < value.type.rank or math.prod(known) > _FEW


def _is_arithmetic(operation: Operation) -> bool:
    return isinstance(operation.op, (Add, Sub, Mul, Div))


def _is_repeated(value: Value) -> bool:
    """1, 3."""
    made = value.operation
    if made is None:
        return False
    if isinstance(made.op, Broadcast):
        return tensor_type(made.operands[0]).rank == 0
    return _is_arithmetic(made) and all(map(_is_repeated, made.operands))


def _is_read(value: Value) -> bool:
    return any(value in o.operands for o in value.block.operations) or value in value.block.results


def _is_read_as(value: Value, inner: Value) -> bool:
    """2; `inner` is the name of the value in a block."""
    if inner in inner.block.results or inner.type != value.type:
        return False
    for operation in inner.block.operations:
        if inner not in operation.operands or operation.op.elementwise:
            continue
        further = [name for outer, name in handed_on(operation) if outer is inner]
        there = operation.operands.count(inner) * (2 if operation.op.is_branch else 1)
        if len(further) != there or not all(_is_read_as(value, name) for name in further):
            return False
    return True


def _repeat(operation: Operation, value: Value) -> None:
    """Hand on what a value is made of, and make it where a block begins."""
    chain = _chain(value)
    made = {v for o in chain for v in o.results}
    leaves = dict.fromkeys(v for o in chain for v in o.operands if v not in made)
    names = {leaf: _names(operation, leaf) for leaf in leaves}
    for number, block in enumerate(operation.blocks):
        mapping = {leaf: inside[number] for leaf, inside in names.items()}
        block.operations[:0] = [clone_operation(o, block, mapping) for o in chain]
        old = {inner for outer, inner in handed_on(operation) if outer is value and inner.block is block}
        for reader in block.operations:
            reader.operands = [mapping[value] if v in old else v for v in reader.operands]


def _chain(value: Value) -> list[Operation]:
    """Return the operations that make a repeated number, each behind those that it reads."""
    found: list[Operation] = []
    made = value.operation
    assert made is not None
    for operand in made.operands:
        of_operand = operand.operation
        if _is_arithmetic(made) or (of_operand is not None and isinstance(of_operand.op, Constant)):
            found += [o for o in _chain(operand) if o not in found]
    return [*found, made]


def _names(operation: Operation, value: Value) -> list[Value]:
    """Return the names of a value in the blocks of an operation, to which it is handed on from now on if it was not."""
    known = [inner for outer, inner in handed_on(operation) if outer is value]
    if known:
        return [next(v for v in known if v.block is block) for block in operation.blocks]
    operation.operands.append(value)
    return [block.add_argument(value.type, value.name) for block in operation.blocks]
