"""Compute what `where` chooses between only where it is chosen, if the condition is one number and a choice is costly.

Before                                          After
    %a = matmul(%x, %w)                             %z = cond(%p, %x, %w, %y) {
    %c = broadcast(%p)                                  (%x1, %w1, %y1) -> return matmul(%x1, %w1)
    %z = where(%c, %a, %y)                              (%x1, %w1, %y1) -> return %y1
                                                    }

1. The condition is one number that was repeated, or chooses between numbers; choices have the type of the result.
2. What is moved into a branch is pure, and nothing but the branch uses it.
3. Products, convolutions, attention or loops are among it. Cheaper ones are as fast in a loop nest that computes both.
"""

from __future__ import annotations

from collections import defaultdict

from dy2st.ir.builder import Builder
from dy2st.ir.clone import clone_operation
from dy2st.ir.opdef import OpDef
from dy2st.ir.program import Block, Operation, Program, Value, tensor_type
from dy2st.ops.elementwise.comparison import Where
from dy2st.ops.linalg.matmul import MatMul
from dy2st.ops.nn.attention import Attention
from dy2st.ops.nn.conv import Conv
from dy2st.ops.shape.shape import Broadcast
from dy2st.passes.core.base import Pass, each_block
from dy2st.passes.core.effects import Effects


class SelectToCond(Pass):
    """Replace a `where` on one number by a `cond`, where a choice is costly."""

    name = "select_to_cond"

    def apply(self, program: Program) -> bool:
        effects = Effects(program)
        return each_block(program, lambda block: _branch(block, effects))


def _is_costly(op: OpDef) -> bool:
    return op.is_loop or isinstance(op, (MatMul, Conv, Attention))


def _branch(block: Block, effects: Effects) -> bool:
    changed = False
    if not any(_is_costly(operation.op) for operation in block.operations):
        return False
    for operation in [o for o in reversed(block.operations) if _number(o) is not None]:
        condition = _number(operation)
        if condition is None or operation not in block.operations:  # it is inside of a branch by now
            continue
        users = _users(block)
        sides = [_own(block, operation, value, users, effects) for value in operation.operands[1:]]
        if any(_is_costly(inner.op) for side in sides for inner in side):  # 3.
            _replace(block, operation, condition, sides)
            changed = True
    return changed


def _users(block: Block) -> dict[Value, list[Operation | None]]:
    """Return the operations that use each value, None for the block's results."""
    users: dict[Value, list[Operation | None]] = defaultdict(list)
    for operation in block.operations:
        for value in operation.operands:
            users[value].append(operation)
    for value in block.results:
        users[value].append(None)
    return users


def _number(operation: Operation) -> Value | None:
    """Return the one number that decides for all elements; None for any other operation."""
    if not isinstance(operation.op, Where):
        return None
    condition, *choices = operation.operands
    if any(v.type != operation.results[0].type for v in choices) or choices[0] is choices[1]:  # 1.
        return None
    made = condition.operation
    if made is not None and isinstance(made.op, Broadcast):
        condition = made.operands[0]
    return condition if tensor_type(condition).rank == 0 else None


def _own(block: Block, where: Operation, choice: Value, users: dict[Value, list[Operation | None]],
         effects: Effects) -> list[Operation]:  # fmt: skip
    """Return the operations that only one choice needs, in order (2.)."""
    if len(users[choice]) != 1:
        return []
    own: dict[Operation | None, None] = {}
    for operation in reversed(block.operations[: block.operations.index(where)]):
        used = [(value, user) for value in operation.results for user in users[value]]
        inside = all(user in own or (value is choice and user is where) for value, user in used)
        if used and inside and effects.is_pure(operation):
            own[operation] = None
    return [operation for operation in block.operations if operation in own]


def _replace(block: Block, where: Operation, condition: Value, sides: list[list[Operation]]) -> None:
    """Put a `cond` in the place of a `where`, with what the choices need in its branches."""
    moved = [operation for side in sides for operation in side]
    made = {value for operation in moved for value in operation.results}
    needed = [v for operation in moved for v in operation.operands] + where.operands[1:]
    given = [v for v in dict.fromkeys(needed) if v not in made]
    branches: list[Block] = []
    for side, choice in zip(sides, where.operands[1:], strict=True):
        inner = Block()
        values = {v: inner.add_argument(v.type, v.name) for v in given}
        inner.operations = [clone_operation(operation, inner, values) for operation in side]
        inner.results = [values[choice]]
        branches.append(inner)
    at = block.operations.index(where)
    before, after = block.operations[:at], block.operations[at + 1 :]
    block.operations = [operation for operation in before if operation not in moved]
    b = Builder(block)
    chosen = b.operation("cond", [condition, *given], {}, branches, where.location).results[0]
    for operation in after:
        operation.operands = [chosen if v is where.results[0] else v for v in operation.operands]
    block.operations += after
    block.results = [chosen if v is where.results[0] else v for v in block.results]
