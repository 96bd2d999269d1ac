"""Reverse mode through `while_loop` and `counted_while`.

The forward operation is extended in place by what its backward counterpart needs: it gets one more carried list for
each residual, to which every iteration appends (a tape), and `while_loop` a counter.

The backward counterpart is a counted loop over the iterations, last to first (`t` counts them in the order in which the
forward loop made them). It carries the cotangents of the carried values; what form these have from iteration to
iteration is found by building the body until it no longer changes. The cotangents of the invariants are summed:

1. into what there is of them already;
2. into zeros, where every iteration adds something: then there is a sum if the loop turned at all;
3. into an optional, where an iteration may add nothing.

The sum for a list, and for a tensor of which an iteration reads parts, enters the iteration, which adds to it where it
read.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from dy2st.autodiff.activity import active_carried, active_values
from dy2st.autodiff.control import behind, define, new_result, put_before, read_extents
from dy2st.autodiff.cotangents import Cotangents, accumulate, as_optional, enter, may_miss, missing
from dy2st.autodiff.residuals import BackwardBuilder
from dy2st.autodiff.reverse import CONTROL, Frontier, pull_block
from dy2st.autodiff.scatter import part_is_read
from dy2st.autodiff.segments import cut
from dy2st.errors import AutodiffError
from dy2st.ir.builder import Builder
from dy2st.ir.clone import clone_block
from dy2st.ir.program import Block, Operation, Value
from dy2st.ir.types import INT, ListType, TensorType, Type, optional, tangent_type
from dy2st.ops.core.transpose_helpers import zeros_of
from dy2st.records import record


class CarryForm(Enum):
    """What a backward loop carries for a value."""

    ABSENT = "absent"
    DENSE = "dense"
    OPTIONAL = "optional"

    def type(self, of: Type) -> Type:
        """Return the type of cotangents of this form of a value of type `of`."""
        return optional(tangent_type(of)) if self is CarryForm.OPTIONAL else tangent_type(of)


def form_of(ct: Value | None, like: Value) -> CarryForm:
    """Return the form that a cotangent has."""
    if ct is None:
        return CarryForm.ABSENT
    return CarryForm.OPTIONAL if may_miss(ct, like) else CarryForm.DENSE


@record
class BackwardIteration:
    """The backward body while it is built."""

    side: BackwardBuilder
    index: Value
    taken: list[Value]
    """The forward body's arguments but for the number of the iteration: carried values, then invariants."""
    entering: list[Value | None]
    """The cotangents of carried values, and of invariants whose sums are carried, before the iteration."""
    found: list[Value | None]
    """The cotangents of `taken` after the iteration; for an invariant that did not enter, what this iteration adds."""


@record
class CarrySlot:
    """What the backward loop carries for operand `i`: before the loop, before and after an iteration."""

    i: int
    initial: Value
    before: Value
    after: Value
    from_zeros: bool = False
    """The sum counts only if the loop turned."""


def pull_loop(frontier: Frontier, operation: Operation, cts: Sequence[Value | None]) -> None:
    """Emit the backward counted loop of a loop."""
    cts = [*cts, *[None] * cut(frontier.b, operation)]
    carried: int = operation.attributes["carried"]
    operands = operation.operands[1:]
    so_far = _take_sums(frontier, operation)
    iteration, forms = _converge(frontier, operation, cts, so_far)
    slots = [
        _carried_slot(frontier.b, iteration, i, forms[i], cts[i], operands[i])
        for i in range(carried)
        if forms[i] is not CarryForm.ABSENT
    ]
    for i in range(carried, len(operands)):
        slot = _sum_slot(frontier.b, iteration, i, forms[i], so_far.get(i), operands[i])
        if slot is not None:
            slots.append(slot)
        else:
            frontier.add(operands[i], so_far.get(i))
    side = iteration.side
    side.block.results = [slot.after for slot in slots]
    iterations = operation.operands[0] if operation.op.is_counted else _count_iterations(operation)
    read_extents(operation, side)
    for value, argument in list(side.residuals.items()):
        _store_on_tape(operation, side, iteration.index, value, argument)
    side.block.arguments[:] = [iteration.index, *(slot.before for slot in slots), *side.captures.values()]
    attributes = {"carried": len(slots), "reverse": True}
    inits = [slot.initial for slot in slots]
    results = frontier.b.operation(
        "counted_while", [iterations, *inits, *side.captures], attributes, [side.block]
    ).results
    _leave(
        frontier, iterations, [(operands[slot.i], ct, slot.from_zeros) for slot, ct in zip(slots, results, strict=True)]
    )


def _leave(frontier: Frontier, iterations: Value, found: Sequence[tuple[Value, Value, bool]]) -> None:
    """Add the results of the backward loop to the frontier; sums from zeros only where the loop turned."""
    if _surely_iterations(iterations):
        found = [(value, ct, False) for value, ct, _ in found]
    for value, ct, from_zeros in found:
        if not from_zeros:
            frontier.add(value, ct, fresh=True)
    if any(from_zeros for _, _, from_zeros in found):
        b = frontier.b
        turned, other = frontier.side(b.child()), frontier.side(b.child())
        for value, ct, from_zeros in found:
            if from_zeros:
                turned.add(value, enter(turned.b, ct, value))
        frontier.open(b.scalar_gt(iterations, 0), [turned, other])


def _surely_iterations(iterations: Value) -> bool:
    made = iterations.operation
    return made is not None and made.op.is_constant and made.attributes["value"] > 0


# ---- one iteration
# ----------------------------------------------------------------------------------------------------


def _take_sums(frontier: Frontier, operation: Operation) -> dict[int, Value]:
    """Take what there is of the cotangents of invariants; the loop adds to it."""
    operands = operation.operands[1:]
    found: dict[int, Value] = {}
    for i in range(operation.attributes["carried"], len(operands)):
        value = operands[i]
        if value in frontier.active and value in frontier.cts and operands.count(value) == 1:
            found[i] = frontier.cts.pop(value)
    return found


def _converge(
    frontier: Frontier, operation: Operation, cts: Sequence[Value | None], so_far: dict[int, Value]
) -> tuple[BackwardIteration, list[CarryForm]]:
    """Build the backward body until the cotangents leave an iteration in the form in which they enter it."""
    operands, carried = operation.operands[1:], len(cts)
    on = active_carried(operation, frontier.active)
    on += [v in frontier.active for v in operands[len(on) :]]
    forms = [form_of(ct, v) for ct, v in zip(cts, operands, strict=False)]
    forms += [
        CarryForm.DENSE if on[i] and _is_list(operands[i]) else CarryForm.ABSENT for i in range(carried, len(operands))
    ]
    told, forms = forms, _expected(operation, forms, on)
    guessed = [i for i, form in enumerate(forms) if form is not told[i]]
    for _ in range(2 * len(forms) + 3):
        spare = clone_block(operation.blocks[0])
        iteration = _backward_iteration(frontier.b, operation, forms, on)
        if any(iteration.found[i] is None for i in guessed):  # a rule gives no cotangent where one could flow
            operation.blocks[0], forms, guessed = spare, told, []
            continue
        after = [_next(form, ct, v) for form, ct, v in zip(forms[:carried], iteration.found, operands, strict=False)]
        after += [
            _sum_form(frontier.b, operation, iteration, i, so_far.get(i)) if forms[i] is CarryForm.ABSENT else forms[i]
            for i in range(carried, len(operands))
        ]
        if after == forms:
            return iteration, forms
        operation.blocks[0] = spare  # the other one was extended for a backward body that is thrown away
        forms = after
    raise AutodiffError("the cotangents that a loop carries do not settle")


def _expected(operation: Operation, forms: Sequence[CarryForm], on: Sequence[bool]) -> list[CarryForm]:
    """Return the forms with carried tensors added that cotangents reach from iteration to iteration, as far as values
    tell.

    So the body of most loops is pulled back once.
    """
    body, taken, leaving = _ends(operation)
    active = active_values(body, [a for a, flag in zip(taken, on, strict=True) if flag])
    made = list(forms)
    while True:
        reached = {v for v, form in zip(leaving, made, strict=False) if form is not CarryForm.ABSENT}
        for one in reversed(body.operations):
            if not reached.isdisjoint(one.results):
                reached.update(v for v in one.operands if v in active)
        grown = [
            CarryForm.OPTIONAL if form is CarryForm.ABSENT and a in reached and isinstance(a.type, TensorType) else form
            for form, a in zip(made[: len(leaving)], taken, strict=False)
        ]
        if grown == made[: len(leaving)]:
            return made
        made[: len(leaving)] = grown


def _ends(operation: Operation) -> tuple[Block, list[Value], list[Value]]:
    """Return the body of a loop, what each iteration takes (the count apart), and what leaves it as carried."""
    body = operation.blocks[0]
    if operation.op.is_counted:
        return body, body.arguments[1:], body.results
    return body, list(body.arguments), body.results[1:]


def _next(form: CarryForm, ct: Value | None, like: Value) -> CarryForm:
    """Return what a slot must hold that held `form` before an iteration, and `ct` after it."""
    found = form_of(ct, like)
    if not isinstance(like.type, TensorType):
        return CarryForm.DENSE if CarryForm.DENSE in (form, found) else CarryForm.ABSENT
    return form if form is found else CarryForm.OPTIONAL


def _sum_form(
    b: Builder, operation: Operation, iteration: BackwardIteration, i: int, so_far: Value | None
) -> CarryForm:
    """Return the form in which the sum of an invariant's cotangents enters an iteration: where the iteration reads
    parts of it.
    """
    ct, like = iteration.found[i], iteration.taken[i]
    if ct is None or not part_is_read(operation.blocks[0], like, b.functions):
        return CarryForm.ABSENT
    return form_of(ct if so_far is None else so_far, like)


def _is_list(value: Value) -> bool:
    return isinstance(value.type, ListType)


def _backward_iteration(
    b: Builder, operation: Operation, forms: Sequence[CarryForm], on: Sequence[bool]
) -> BackwardIteration:
    """Pull the body back once, the cotangents of its results in these forms."""
    (body, taken, leaving), carried = _ends(operation), int(operation.attributes["carried"])
    counted = operation.op.is_counted
    fixed = dict(zip(taken[carried:], operation.operands[1 + carried :], strict=True))
    side = BackwardBuilder(Builder(body, names=b.names), b, fixed)
    index = side.argument(INT, "t")
    if counted and operation.attributes["reverse"]:
        last = side.scalar_sub(operation.operands[0], side.scalar(1))
        side.rename(body.arguments[0], side.scalar_sub(last, index))
    elif counted:
        side.rename(body.arguments[0], index)
    entering: list[Value | None] = [None] * len(taken)
    given: Cotangents = {}
    for i, (result, form) in enumerate(zip(leaving, forms, strict=False)):
        if form is not CarryForm.ABSENT:
            entering[i] = ct = side.argument(form.type(result.type), "ct")
            given[result] = accumulate(side, given.get(result), ct)
    for i in range(carried, len(taken)):
        if forms[i] is not CarryForm.ABSENT:
            entering[i] = ct = side.argument(forms[i].type(taken[i].type), "ct")
            given[taken[i]] = accumulate(side, given.get(taken[i]), ct)
    cotangents = pull_block(side, body, [a for a, flag in zip(taken, on, strict=True) if flag], given)
    return BackwardIteration(side, index, taken, entering, [cotangents.get(a) for a in taken])


def _carried_slot(
    b: Builder, iteration: BackwardIteration, i: int, form: CarryForm, ct: Value | None, operand: Value
) -> CarrySlot:
    before = iteration.entering[i]
    assert before is not None
    return CarrySlot(
        i,
        _in_form(b, ct, form, operand),
        before,
        _in_form(iteration.side, iteration.found[i], form, iteration.taken[i]),
    )


def _in_form(b: Builder, ct: Value | None, form: CarryForm, like: Value) -> Value:
    """Emit a cotangent in the form that the loop carries it in."""
    of = form.type(like.type)
    if form is CarryForm.OPTIONAL:
        return as_optional(b, ct, of)
    return missing(b, of) if ct is None else b.use(ct)


def _sum_slot(
    b: Builder, iteration: BackwardIteration, i: int, form: CarryForm, so_far: Value | None, operand: Value
) -> CarrySlot | None:
    """Carry the sum of an invariant's cotangents; None where an iteration adds nothing."""
    side, new, like, before = iteration.side, iteration.found[i], iteration.taken[i], iteration.entering[i]
    if new is None:
        return None
    if before is None:
        form = form_of(new if so_far is None else so_far, like)
        before = side.argument(form.type(like.type), "ct")
        new = accumulate(side, before, new)
    after = new if _is_list(like) else _in_form(side, new, form, like)
    if so_far is not None:  # 1.
        return CarrySlot(i, so_far, before, after)
    if form is CarryForm.DENSE and isinstance(like.type, TensorType):  # 2.
        return CarrySlot(i, zeros_of(b, operand), before, after, from_zeros=True)
    return CarrySlot(i, missing(b, before.type), before, after)  # 3.


# ---- extending forward loops -------------------------------------------------------------------------------------


def _count_iterations(operation: Operation) -> Value:
    """Carry a counter through a `while_loop`; return its final value."""
    body = operation.blocks[0]
    zero = put_before(operation, "scalar_constant", [], {"value": 0})
    argument, result = _carry(operation, zero, INT)
    inner = behind(body, operation)
    body.results.append(inner.scalar_add(argument, inner.scalar(1)))
    return result


def _store_on_tape(operation: Operation, side: BackwardBuilder, index: Value, value: Value, argument: Value) -> None:
    """Append a value of the body to a list at every iteration; the backward body reads its slot."""
    body = operation.blocks[0]
    kind = ListType(side.around(operation, value.type))
    empty = put_before(operation, "list_new", [], {"type": kind})
    tape, result = _carry(operation, empty, kind)
    body.results.append(behind(body, operation).emit("list_append", [tape, value]))
    stored = side.argument(kind)
    side.captures[result] = stored
    define(operation, side.block, argument, "list_get", [stored, index], {})


def _carry(operation: Operation, initial: Value, kind: Type) -> tuple[Value, Value]:
    """Add a carried value to a loop; return the body's argument and the loop's result. The body's result follows."""
    body = operation.blocks[0]
    carried: int = operation.attributes["carried"]
    offset = 1 if operation.op.is_counted else 0
    argument = Value(kind, body)
    body.arguments.insert(offset + carried, argument)
    operation.operands.insert(1 + carried, initial)
    operation.attributes["carried"] = carried + 1
    return argument, new_result(operation, kind)


CONTROL["while_loop"] = pull_loop
CONTROL["counted_while"] = pull_loop
