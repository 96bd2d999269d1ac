"""`while_loop` and `counted_while` over lanes.

1. Where the lanes share the number of turns, the body is rebuilt. Which carried values differ between lanes is found
   by rebuilding it until what leaves a turn has the form in which it enters.
2. Where they do not, the loop turns as long as any lane does. Lanes that are done keep what they carried; meanwhile
   they run on what a lane has that is not done (see `branches.py`). What all lanes that still turn have in common, as
   a number of turns, stays one value inside of the loop; beside it stands what each lane had of it when it was done.
3. What cannot run like that runs lane by lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dy2st.batching.branches import any_of, borrower, can_be_masked, choose, enter, in_form, mask_of, wider
from dy2st.batching.lanes import Form, Lane, form_type, known_outside
from dy2st.batching.pushing import Batcher, rule
from dy2st.ir.builder import Builder
from dy2st.ir.program import Operation, Value
from dy2st.ir.types import ScalarType, TensorType


@rule("while_loop", "counted_while")
def loop(at: Batcher, operation: Operation, lanes: Sequence[Lane]) -> list[Lane] | None:
    """Case 1 or 2."""
    forms = [lane.form for lane in lanes[1 : 1 + operation.attributes["carried"]]]
    fixed = lanes[1 + operation.attributes["carried"] :]
    if lanes[0].shared:
        body, forms, test = _settled(at, operation, forms, fixed, None)
        if test is Form.SHARED:
            return _rebuilt(at, operation, lanes, body, forms)
    if operation.name == "counted_while" and operation.attributes["reverse"]:
        return None
    return _masked(at, operation, lanes, [lane.form for lane in lanes[1 : 1 + len(forms)]], fixed)


def _parts(operation: Operation) -> tuple[list[Value], list[Value], list[Value], list[Value]]:
    """Return a loop's body as its turn or nothing, carried arguments, invariant arguments, carried results."""
    body, carried = operation.blocks[0], operation.attributes["carried"]
    offset = int(operation.name == "counted_while")
    taken = body.arguments[offset:]
    return body.arguments[:offset], taken[:carried], taken[carried:], body.results[1 - offset :]


def _settled(
    at: Batcher, operation: Operation, forms: Sequence[Form], fixed: Sequence[Lane], mask: Value | None
) -> tuple[Batcher, list[Form], Form]:
    """Rebuild the body until carried values leave it in the forms in which they enter; return it, these and the test's.

    With a mask (as the block around sees it, to know its type) the lanes outside of it borrow what they have.
    """
    turn, taken, invariants, leaving = _parts(operation)
    forms = list(forms)
    while True:
        side = at.inside(at.b.child())
        enter(side, turn, [Form.SHARED] * len(turn))
        own = None if mask is None else side.b.argument(mask.type, "mask")
        enter(side, taken, forms)
        for argument, lane in zip(invariants, fixed, strict=True):
            side.set(argument, lane.value, lane.form)
        if own is not None:
            _borrow(side, own, [*taken, *invariants])
        side.run(operation.blocks[0])
        after = [wider(form, side.known[v].form) for form, v in zip(forms, leaving, strict=True)]
        if after == forms:
            test = Form.SHARED if turn else side.known[operation.blocks[0].results[0]].form
            return side, forms, test
        forms = after


def _borrow(side: Batcher, mask: Value, values: Sequence[Value]) -> None:
    borrow = borrower(side, mask)
    for value in values:
        side.set(value, *borrow(side.known[value]))


def _rebuilt(
    at: Batcher, operation: Operation, lanes: Sequence[Lane], side: Batcher, forms: Sequence[Form]
) -> list[Lane]:
    """Emit the loop of a body that was rebuilt."""
    leaving = _parts(operation)[3]
    results = [in_form(side, v, form) for v, form in zip(leaving, forms, strict=True)]
    if operation.name == "while_loop":
        results.insert(0, side.lane(operation.blocks[0].results[0]).value)
    initial = [
        _entering(at, v, lane, form) for v, lane, form in zip(operation.operands[1:], lanes[1:], forms, strict=False)
    ]
    made = _emit(at, operation.name, lanes[0].value, initial, side.b, results, dict(operation.attributes))
    return [Lane(v, form) for v, form in zip(made, forms, strict=True)]


def _entering(at: Batcher, old: Value, lane: Lane, form: Form) -> Value:
    side = at.inside(at.b)
    side.known[old] = lane
    return in_form(side, old, form)


def _emit(
    at: Batcher, name: str, head: Value, initial: Sequence[Value], body: Builder, results: Sequence[Value],
    attributes: dict[str, object],
) -> list[Value]:  # fmt: skip
    """Emit a loop over a child block whose arguments are those of the carried values, then what it captured."""
    captured = body.captures
    own = [v for v in body.block.arguments if v not in set(captured.values())]
    body.block.results = [body.use(v) for v in results]
    body.block.arguments[:] = [*own, *captured.values()]
    attributes = {**attributes, "carried": len(initial)}
    return at.b.operation(name, [head, *initial, *captured], attributes, [body.block]).results


# ---- lanes that turn differently often ------------------------------------------------------------------------------
def _masked(
    at: Batcher, operation: Operation, lanes: Sequence[Lane], forms: Sequence[Form], fixed: Sequence[Lane]
) -> list[Lane] | None:
    """Case 2; None where what a lane carries cannot be kept elementwise."""
    b, counted = at.b, operation.name == "counted_while"
    _, taken, _, leaving = _parts(operation)
    if not can_be_masked(at, operation, lanes[1:]):
        return None
    moves = [new is not old for new, old in zip(leaving, taken, strict=True)]
    if any(moving and not _can_be_kept(b, old, new) for moving, old, new in zip(moves, taken, leaving, strict=True)):
        return None
    head = at.stacked(lanes[0])
    mask = b.gt(head, 0) if counted else mask_of(at, Lane(head, Form.STACKED))
    side, forms, _ = _settled(at, operation, forms, fixed, mask)
    if any(form is Form.APART for form in forms):
        return None
    return _turning(at, operation, lanes, _Turn(side, list(forms), moves, mask, head if counted else None))


@dataclass
class _Turn:
    """The body of a masked loop: arguments are the number of the turn or nothing, the mask, the carried values."""

    side: Batcher
    forms: list[Form]
    moves: list[bool]
    """Which carried values a turn changes."""
    mask: Value
    """Which lanes turn at all."""
    count: Value | None
    """How often each lane turns, in a counted loop."""

    def own(self) -> list[Value]:
        captured = set(self.side.b.captures.values())
        return [v for v in self.side.b.block.arguments if v not in captured]


def _can_be_kept(b: Builder, old: Value, new: Value) -> bool:
    """Say whether a carried value is a number, or a tensor that keeps its shape."""
    if isinstance(old.type, ScalarType):
        return True
    return isinstance(old.type, TensorType) and old.type == new.type and known_outside(b, old.type)


def _turning(at: Batcher, operation: Operation, lanes: Sequence[Lane], turn: _Turn) -> list[Lane]:
    """Emit the masked loop; what is one value while it turns is carried a second time, as each lane had it last."""
    side, inner = turn.side, turn.side.b
    arguments, counted = turn.own(), turn.count is not None
    number = arguments.pop(0) if counted else None
    mask, entered = arguments[0], arguments[1:]
    leaving = _parts(operation)[3]
    initial = [turn.mask]
    initial += [
        _entering(at, v, lane, form)
        for v, lane, form in zip(operation.operands[1:], lanes[1:], turn.forms, strict=False)
    ]
    results: list[Value] = []
    kept: list[Value] = []
    places: dict[int, int] = {}
    for i, (new, form, moving) in enumerate(zip(leaving, turn.forms, turn.moves, strict=True)):
        after = in_form(side, new, form)
        if form is Form.STACKED:
            results.append(choose(side, mask, after, entered[i]) if moving else entered[i])
            continue
        results.append(after)
        if moving:
            places[i] = len(turn.forms) + 1 + len(kept)
            lane = Lane(initial[1 + i], Form.SHARED)
            initial.append(at.stacked(lane))
            last = inner.argument(form_type(operation.results[i].type, Form.STACKED, at.lanes))
            kept.append(choose(side, mask, side.stacked(Lane(after, form)), last))
    if counted:
        assert number is not None
        assert turn.count is not None
        following = inner.scalar_to_tensor(inner.scalar_add(number, 1), dtype=_dtype(turn.count))
        mask = inner.gt(inner.use(turn.count), following)
        turns = at.b.item(at.b.emit("max", [turn.count], {"axis": (0,), "keepdim": False}))
        made = _emit(at, "counted_while", turns, initial, inner, [mask, *results, *kept], {"reverse": False})
    else:
        test = side.lane(operation.blocks[0].results[0])
        mask = inner.logical_and(mask, mask_of(side, Lane(side.stacked(test), Form.STACKED)))
        leaves = [any_of(inner, mask), mask, *results, *kept]
        made = _emit(at, "while_loop", any_of(at.b, turn.mask), initial, inner, leaves, {})
    found: list[Lane] = []
    for i, form in enumerate(turn.forms):
        if form is Form.STACKED:
            found.append(Lane(made[1 + i], form))
        else:
            found.append(Lane(made[places[i]], Form.STACKED) if i in places else lanes[1 + i])
    return found


def _dtype(value: Value) -> object:
    assert isinstance(value.type, TensorType)
    return value.type.dtype
