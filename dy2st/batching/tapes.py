"""Lists that one loop writes and another reads, an element for each iteration: the tapes of reverse mode.

    %n, %tape = while_loop(...) { ... (%i, %items)
        %more = list_append(%items, %x)
        -> scalar_add(%i, 1), %more }
    ... = counted_while(%n, ..., %tape) {reverse=true} { (%t, ..., %items)
        %x = list_get(%items, %t) ... }

A lane that iterates n times reads the first n elements only, so what stands behind them does not matter.
"""

from __future__ import annotations

from dy2st.ir.program import Block, Operation, Value
from dy2st.ir.types import ListType
from dy2st.ops.control.lists import ListAppend, ListGet, ListNew
from dy2st.ops.control.scalar import ScalarAdd
from dy2st.passes.simplify.constant_fold import constant_of


def is_written_tape(block: Block, operation: Operation, i: int) -> bool:
    """Return whether carried value `i` of a loop in `block` is a list that every iteration appends to and one loop
    reads.
    """
    body, offset = operation.blocks[0], int(operation.op.is_counted)
    argument, leaving = body.arguments[offset + i], body.results[1 - offset + i]
    made = leaving.operation
    if not isinstance(argument.type, ListType) or made is None or not isinstance(made.op, ListAppend):
        return False
    if operation.attributes.get("reverse"):  # a lane that iterates less often begins later: its elements are the last
        return False
    empty = operation.operands[1 + i].operation
    if empty is None or not isinstance(empty.op, ListNew) or empty.operands or made.operands[0] is not argument:
        return False
    if len(_users(body, argument)) != 1 or _users(body, leaving) or body.results.count(leaving) != 1:
        return False
    result = operation.results[i]
    readers = _users(block, result)
    return result not in block.results and all(_reads(operation, user, at) for user, at in readers)


def is_read_tape(operation: Operation, at: int) -> bool:
    """Return whether operand `at` of a counted loop is a list of which each iteration reads the element of its number
    alone.
    """
    if not operation.op.is_counted or at <= operation.attributes["carried"]:
        return False
    body = operation.blocks[0]
    argument, iteration = body.arguments[at], body.arguments[0]
    if not isinstance(argument.type, ListType) or argument in body.results:
        return False
    return all(
        isinstance(user.op, ListGet) and place == 0 and user.operands[1] is iteration
        for user, place in _users(body, argument)
    )


def _reads(writer: Operation, user: Operation, at: int) -> bool:
    """Return whether a loop runs as often as the one that wrote the tape, and reads it iteration by iteration."""
    return is_read_tape(user, at) and _counts(writer, user.operands[0])


def _counts(loop: Operation, number: Value) -> bool:
    """Return whether a number is that of a loop's iterations."""
    if loop.op.is_counted:
        return number is loop.operands[0]
    if number not in loop.results:
        return False
    i, body = loop.results.index(number), loop.blocks[0]
    made = body.results[1 + i].operation
    if made is None or not isinstance(made.op, ScalarAdd) or made.operands[0] is not body.arguments[i]:
        return False
    return constant_of(made.operands[1]) == 1 and constant_of(loop.operands[1 + i]) == 0


def _users(block: Block, value: Value) -> list[tuple[Operation, int]]:
    """Return the operations of a block that use a value, and as which operand."""
    return [(one, i) for one in block.operations for i, v in enumerate(one.operands) if v is value]
