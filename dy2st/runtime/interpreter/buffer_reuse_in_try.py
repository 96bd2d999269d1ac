"""Which operands of a `try` its body may write over: those of which the handler never reads what was there.

%y = try(%x, %row, %i) {
body(%x, %row, %i):
...                                   # may raise what the handler is for
%new = index_set(%x, %row, %i)        # raises before it writes, if at all
return %new                           # nothing behind the write comes to the handler
handler(%x, %row, %i): ...              # so %x is here what it was
}
"""

from __future__ import annotations

from dy2st.ir.program import Block, Operation, Value
from dy2st.ops.shape.shape import Broadcast


def may_write(attempt: Operation, i: int) -> bool:
    """Return whether the body of a `try` may write over what it has as operand `i`."""
    body, handler = attempt.blocks
    read = handler.arguments[len(handler.arguments) - len(attempt.operands) + i]
    return not _users(handler, read) or _is_last(body, body.arguments[i], attempt)


def _users(block: Block, value: Value) -> list[int]:
    """Return where a block uses a value, under whatever name; the end of the block, where it is a result."""
    names, found = {value}, list[int]()
    for at, operation in enumerate(block.operations):
        if names.isdisjoint(operation.operands):
            continue
        found.append(at)
        op = operation.op
        if op.is_identity or op.rewraps or isinstance(op, Broadcast):
            names.update(operation.results)
    return found if names.isdisjoint(block.results) else [*found, len(block.operations)]


def _is_last(block: Block, value: Value, attempt: Operation) -> bool:
    """Return whether nothing comes to the handler behind the last use of a value, which alone may write over it."""
    users = _users(block, value)
    if not users:
        return True
    at = users[-1]
    if any(_lands(operation, attempt) for operation in block.operations[at + 1 :]):
        return False
    return at == len(block.operations) or _writes_last(block.operations[at], value, attempt)


def _writes_last(operation: Operation, value: Value, attempt: Operation) -> bool:
    """Return whether an operation cannot come to the handler once it has written over a value."""
    if not operation.blocks:
        return not operation.op.is_call or not _lands(operation, attempt)  # it raises before it writes
    if not _lands(operation, attempt):
        return True
    if operation.op.is_branch:
        return all(_is_last(block, v, attempt) for block in operation.blocks for v in _inside(operation, block, value))
    if not operation.op.is_try:
        return False
    body, handler = operation.blocks
    if not all(_is_last(block, v, attempt) for block in operation.blocks for v in _inside(operation, block, value)):
        return False
    return not any(_lands(o, attempt) for o in handler.operations) or all(
        _is_last(body, v, operation) for v in _inside(operation, body, value)
    )


def _inside(operation: Operation, block: Block, value: Value) -> list[Value]:
    """Return the arguments of a block that are a value outside: the last ones are the last operands."""
    count = min(len(operation.operands), len(block.arguments))
    pairs = zip(operation.operands[-count:], block.arguments[-count:], strict=True) if count else ()
    return [argument for operand, argument in pairs if operand is value]


def _lands(operation: Operation, attempt: Operation) -> bool:
    """Return whether what an operation raises may come to the handler of a `try`."""
    label, kinds = attempt.attributes["label"], attempt.attributes["kinds"]
    if operation.op.is_raise and (kinds or operation.attributes["label"] == label):
        return True
    if operation.op.is_call:
        return True
    if kinds and not operation.op.is_raise and _raises(operation):
        return True
    return any(_lands(inner, attempt) for block in operation.blocks for inner in block.operations)


def _raises(operation: Operation) -> bool:
    return operation.op.can_raise([v.type for v in operation.operands], operation.attributes)
