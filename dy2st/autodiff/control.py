"""Reverse mode through `cond`, `while_loop` and `for_loop`.

The forward operation is extended in place by what its backward counterpart needs:

- `cond` gets one more result for each residual: an optional that is set by the branch that made it;
- a loop gets one more carried list for each residual, to which every turn appends (a tape), and `while_loop` a counter.

The backward counterpart of `cond` is `cond` on the same predicate; that of a loop is a counted loop over the turns, last
to first (`t` counts them in the order in which the forward loop made them), which carries the cotangents of the carried values and sums those of the invariants. What a carried
cotangent looks like (absent, optional, dense) is found by building the body until it no longer changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.autodiff.activity import active_carried
from dy2st.autodiff.residuals import BackwardBuilder
from dy2st.autodiff.reverse import CONTROL, Cotangents, accumulate, as_optional, branch_on, pull_back
from dy2st.errors import AutodiffError
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import lookup
from dy2st.ir.program import Block, Operation, Value
from dy2st.ir.types import INT, ListType, Type, is_optional, optional, tangent_type

Slots = list[Type | None]


def pull_cond(
    b: Builder, operation: Operation, active: set[Value], cts: Sequence[Value | None]
) -> Sequence[Value | None]:
    """Emit the backward `cond` of a `cond`."""
    predicate, *operands = operation.operands
    sides: list[BackwardBuilder] = []
    found: list[list[Value | None]] = []
    for block in operation.blocks:
        side = BackwardBuilder(Builder(block, names=b.names), b, dict(zip(block.arguments, operands)))
        given: Cotangents = {}
        for result, ct in zip(block.results, cts):
            if ct is not None:
                given[result] = accumulate(side, given.get(result), ct)
        roots = [a for a, v in zip(block.arguments, operands) if v in active]
        cotangents = pull_back(side, block, roots, given)
        sides.append(side)
        found.append([cotangents.get(a) for a in block.arguments])
    for which, side in enumerate(sides):
        for value, argument in list(side.residuals.items()):
            _store_in_branch(operation, which, side, value, argument)
    return [None, *branch_on(b, predicate, sides[0], sides[1], found[0], found[1])]


def _store_in_branch(operation: Operation, which: int, side: BackwardBuilder, value: Value, argument: Value) -> None:
    """Make a value of one branch an optional result of the forward `cond`; the backward branch unwraps it."""
    here, there = operation.blocks[which], operation.blocks[1 - which]
    kind = optional(value.type)
    here.results.append(as_optional(Builder(here, names=side.names), value, kind))
    there.results.append(as_optional(Builder(there, names=side.names), None, kind))
    result = _new_result(operation, side.outside(operation, kind))
    if is_optional(value.type):
        side.captures[result] = argument
        return
    side.captures[result] = stored = side.argument(result.type)
    _define(side.block, argument, "variant_get", [stored], {"tag": 1, "message": "a residual was not stored"})


def pull_loop(
    b: Builder, operation: Operation, active: set[Value], cts: Sequence[Value | None]
) -> Sequence[Value | None]:
    """Emit the backward counted loop of a loop."""
    counted = operation.name == "for_loop"
    carried: int = operation.attributes["carried"]
    on = active_carried(operation, active)
    on += [v in active for v in operation.operands[1 + carried :]]
    initial: list[Value | None] = [*cts[:carried], *[None] * (len(operation.operands) - 1 - carried)]
    slots: Slots = [None if ct is None else _slot(v.type, ct) for ct, v in zip(initial, operation.operands[1:])]
    for _ in range(2 * len(slots) + 2):
        side, index, found = _backward_body(b, operation, slots, on)
        after = [_merge(slot, ct, v.type) for slot, ct, v in zip(slots, found, operation.operands[1:])]
        if after == slots:
            break
        slots = after
    else:
        raise AutodiffError("the cotangents that a loop carries do not settle")
    for slot, ct in zip(slots, found):
        if slot is not None:
            side.block.results.append(as_optional(side, ct, slot) if is_optional(slot) else side.use(ct))  # type: ignore[arg-type]
    turns = operation.operands[0] if counted else _count_turns(operation)
    for value, argument in list(side.residuals.items()):
        _store_on_tape(operation, side, index, value, argument)
    inits = [_initial(b, slot, ct) for slot, ct in zip(slots, initial) if slot is not None]
    side.block.arguments[:] = [
        index,
        *(a for a in side.block.arguments if a is not index and a not in side.captures.values()),
        *side.captures.values(),
    ]
    attributes = {"carried": len(inits), "reverse": True}
    results = b.operation("for_loop", [turns, *inits, *side.captures], attributes, [side.block]).results
    rest = iter(results)
    return [None, *(None if slot is None else next(rest) for slot in slots)]


def _backward_body(
    b: Builder, operation: Operation, slots: Slots, on: list[bool]
) -> tuple[BackwardBuilder, Value, list[Value | None]]:
    """Build the backward body for these slots; return it, its turn number, and the cotangents after one turn."""
    body = operation.blocks[0]
    counted, carried = operation.name == "for_loop", operation.attributes["carried"]
    taken = body.arguments[1:] if counted else body.arguments
    leaving = body.results if counted else body.results[1:]
    side = BackwardBuilder(
        Builder(body, names=b.names), b, dict(zip(taken[carried:], operation.operands[1 + carried :]))
    )
    index = side.argument(INT, "t")
    if counted and operation.attributes["reverse"]:
        last = side.scalar_sub(operation.operands[0], side.scalar(1))
        side.rename(body.arguments[0], side.scalar_sub(last, index))
    elif counted:
        side.rename(body.arguments[0], index)
    entering = [None if slot is None else side.argument(slot) for slot in slots]
    given: Cotangents = {}
    for result, ct in zip(leaving, entering[:carried]):
        if ct is not None:
            given[result] = accumulate(side, given.get(result), ct)
    cotangents = pull_back(side, body, [a for a, flag in zip(taken, on) if flag], given)
    found = [cotangents.get(a) for a in taken]
    for i in range(carried, len(found)):
        so_far, new = entering[i], found[i]
        found[i] = so_far if new is None else accumulate(side, so_far, new)
    return side, index, found


def _slot(primal: Type, ct: Value) -> Type:
    return optional(tangent_type(primal)) if is_optional(ct.type) else tangent_type(primal)


def _merge(slot: Type | None, ct: Value | None, primal: Type) -> Type | None:
    """Return what a slot must hold when it held `slot` before a turn and `ct` after it."""
    dense = tangent_type(primal)
    if isinstance(dense, ListType):
        return None if slot is None and ct is None else dense
    if ct is None:
        return None if slot is None else optional(slot)
    return slot if slot is not None and not is_optional(ct.type) else optional(dense)


def _initial(b: Builder, slot: Type, ct: Value | None) -> Value:
    if isinstance(slot, ListType):
        return ct if ct is not None else b.emit("list_new", [], {"type": slot})
    return as_optional(b, ct, slot) if is_optional(slot) else b.use(ct)  # type: ignore[arg-type]


# ---- extending forward loops -------------------------------------------------------------------------------------


def _count_turns(operation: Operation) -> Value:
    """Carry a counter through a `while_loop`; return its final value."""
    body = operation.blocks[0]
    zero = _insert_before(operation, "scalar_constant", {"value": 0}, INT)
    argument, result = _carry(operation, zero, INT)
    inner = Builder(body)
    body.results.append(inner.scalar_add(argument, inner.scalar(1)))
    return result


def _store_on_tape(operation: Operation, side: BackwardBuilder, index: Value, value: Value, argument: Value) -> None:
    """Append a value of the body to a list at every turn; the backward body reads its slot."""
    body = operation.blocks[0]
    kind = ListType(side.outside(operation, value.type))
    empty = _insert_before(operation, "list_new", {"type": kind}, kind)
    tape, result = _carry(operation, empty, kind)
    inner = Builder(body, names=side.names)
    body.results.append(inner.emit("list_append", [tape, value]))
    stored = side.argument(kind)
    side.captures[result] = stored
    _define(side.block, argument, "list_get", [stored, index], {})


def _carry(operation: Operation, initial: Value, kind: Type) -> tuple[Value, Value]:
    """Add a carried value to a loop; return the body's argument and the loop's result. The body's result follows."""
    body = operation.blocks[0]
    carried: int = operation.attributes["carried"]
    offset = 1 if operation.name == "for_loop" else 0
    argument = Value(kind, body)
    body.arguments.insert(offset + carried, argument)
    operation.operands.insert(1 + carried, initial)
    operation.attributes["carried"] = carried + 1
    return argument, _new_result(operation, kind)


def _new_result(operation: Operation, kind: Type) -> Value:
    result = Value(kind, operation.operands[0].block, operation)
    operation.results.append(result)
    return result


def _insert_before(operation: Operation, name: str, attributes: dict[str, object], kind: Type) -> Value:
    block = operation.operands[0].block
    made = Operation(lookup(name), [], attributes, [], operation.location)
    made.results.append(Value(kind, block, made))
    block.operations.insert(block.operations.index(operation), made)
    return made.results[0]


def _define(block: Block, value: Value, name: str, operands: list[Value], attributes: dict[str, object]) -> None:
    """Turn an argument of a block into the result of an operation that is put at the block's front."""
    made = Operation(lookup(name), operands, attributes, [], None)
    block.arguments.remove(value)
    value.operation = made
    made.results.append(value)
    block.operations.insert(0, made)


CONTROL["cond"] = pull_cond
CONTROL["while_loop"] = pull_loop
CONTROL["for_loop"] = pull_loop
