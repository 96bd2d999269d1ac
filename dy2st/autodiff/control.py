"""Reverse mode through `cond`.

The forward operation is extended in place by what its backward counterpart needs: it gets one more result for each
residual, an optional that is set by the branch that made it. The backward counterpart is `cond` on the same predicate.
It stays open, so that what comes before the forward `cond` and was used by one branch alone is pulled back in it too.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.autodiff.cotangents import KNOWN, Cotangents, accumulate, as_optional, enter
from dy2st.autodiff.residuals import BackwardBuilder
from dy2st.autodiff.reverse import CONTROL, Frontier, pull_block
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import lookup
from dy2st.ir.program import Block, Operation, Value
from dy2st.ir.types import ScalarType, TensorType, Type, VariantType, matches, optional


def pull_cond(frontier: Frontier, operation: Operation, cts: Sequence[Value | None]) -> None:
    """Emit the backward branches of a `cond`, in a guard."""
    b, operands = frontier.b, operation.operands[1:]
    lent = frontier.lists_so_far(operation)
    builders: list[BackwardBuilder] = []
    sides: list[Frontier] = []
    for block in operation.blocks:
        builder = BackwardBuilder(Builder(block, names=b.names), b, dict(zip(block.arguments, operands, strict=True)))
        given: Cotangents = {}
        for result, ct in zip(block.results, cts, strict=True):
            if ct is not None:
                given[result] = accumulate(builder, given.get(result), enter(builder, ct, result))
        roots = [a for a, v in zip(block.arguments, operands, strict=True) if v in frontier.active]
        for argument, operand in zip(block.arguments, operands, strict=True):
            if operand in lent:
                given[argument] = accumulate(builder, given.get(argument), enter(builder, lent[operand], argument))
        cotangents = pull_block(builder, block, roots, given)
        side = frontier.side(builder)
        for argument, operand in zip(block.arguments, operands, strict=True):
            side.add(operand, cotangents.get(argument))
        builders.append(builder)
        sides.append(side)
    guard = frontier.open(operation.operands[0], sides)
    guard.lent.update(lent)
    guard.before_close = lambda: _store(operation, builders)


def _store(operation: Operation, sides: Sequence[BackwardBuilder]) -> None:
    """Make the residuals of both branches results of the forward `cond`."""
    for which, side in enumerate(sides):
        read_extents(operation, side)
        for value, argument in list(side.residuals.items()):
            _store_in_branch(operation, which, side, value, argument)


def _store_in_branch(operation: Operation, which: int, side: BackwardBuilder, value: Value, argument: Value) -> None:
    """Make a value of one branch an optional result of the forward `cond`; the backward branch unwraps it."""
    here, there = operation.blocks[which], operation.blocks[1 - which]
    kind = optional(value.type)
    here.results.append(as_optional(behind(here, operation), value, kind))
    there.results.append(as_optional(behind(there, operation), None, kind))
    result = new_result(operation, side.outside(operation, kind))
    if isinstance(value.type, VariantType):
        _forget_extents(side.block, argument, result.type)
        side.captures[result] = argument
        return
    side.captures[result] = stored = side.argument(result.type)
    define(operation, side.block, argument, "variant_get", [stored], {"tag": 1, "message": KNOWN})


def _forget_extents(block: Block, value: Value, kind: Type) -> None:
    """Give a variant the type that it has outside, where extents that only the branch knows have no name."""
    told = not matches(value.type, kind)
    value.type = kind
    if not told:  # no number in it is an extent, and blocks inside of this one may name those of a tensor as they like
        return
    for operation in block.operations:
        if not (operation.op.is_branch or operation.op.is_loop) or value not in operation.operands:
            continue
        first = 0 if operation.op.is_counted else 1
        for inner in operation.blocks:
            _forget_extents(inner, inner.arguments[operation.operands.index(value) - first], kind)


def behind(block: Block, operation: Operation) -> Builder:
    """Return a builder that appends to a block of a forward operation, in the name of its source line."""
    b = Builder(block)
    b.location = operation.location
    return b


def put_before(operation: Operation, name: str, operands: Sequence[Value], attributes: dict[str, object]) -> Value:
    """Put an operation with one result in front of a forward operation; return that result."""
    op, block = lookup(name), operation.operands[0].block
    made = Operation(op, list(operands), attributes, [], operation.location)
    made.results.append(Value(op.infer_operation([v.type for v in operands], attributes, ()), block, made))
    block.operations.insert(block.operations.index(operation), made)
    return made.results[0]


def new_result(operation: Operation, kind: Type) -> Value:
    """Give a control operation one more result."""
    result = Value(kind, operation.operands[0].block, operation)
    operation.results.append(result)
    return result


def define(
    forward: Operation, block: Block, value: Value, name: str, operands: list[Value], attributes: dict[str, object]
) -> None:
    """Turn an argument of a backward block into the result of an operation that is put at the block's front."""
    made = Operation(lookup(name), operands, attributes, [], forward.location)
    block.arguments.remove(value)
    value.operation = made
    made.results.append(value)
    block.operations.insert(0, made)


def read_extents(forward: Operation, side: BackwardBuilder) -> None:
    """Read residuals that are extents of tensors which a backward block has anyway from those: they are not stored."""
    tellers: dict[str, tuple[Value, int]] = {}
    for value in side.block.arguments:
        if isinstance(value.type, TensorType):
            for axis, extent in enumerate(value.type.shape):
                tellers.setdefault(str(extent), (value, axis))
    for value, argument in list(side.residuals.items()):
        if isinstance(value.type, ScalarType) and str(value.type.extent) in tellers:
            teller, axis = tellers[str(value.type.extent)]
            del side.residuals[value]
            define(forward, side.block, argument, "dim", [teller], {"axis": axis})


CONTROL["cond"] = pull_cond
