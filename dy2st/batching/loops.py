"""`while_loop` and `counted_while` over lanes.

1. Where the lanes share the number of turns, the body is rebuilt. Which carried values differ between lanes is found
   by rebuilding it until what leaves a turn has the form in which it enters.
2. Where they do not, the loop turns as long as any lane does. Lanes that are done keep what they carried; meanwhile
   they run on what a lane has that is not done (see `branches.py`). What all lanes that still turn have in common, as
   a number of turns, stays one value inside of the loop; beside it stands what each lane had of it when it was done.
3. What cannot run like that runs lane by lane.

A list that a loop appends to is as long as its turns, so lanes that turn differently often have lists that differ; but
the tapes of reverse mode (`tapes.py`) are read by the turns that wrote them alone, so these need not.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.batching.branches import any_of, borrower, can_be_masked, choose, enter, in_form, mask_of, wider
from dy2st.batching.lanes import Form, Lane, form_type, known_outside
from dy2st.batching.pushing import Batcher, rule
from dy2st.batching.tapes import is_read_tape, is_written_tape
from dy2st.ir.builder import Builder
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ir.types import ScalarType, TensorType
from dy2st.records import record


@rule("while_loop", "counted_while")
def loop(at: Batcher, operation: Operation, lanes: Sequence[Lane]) -> list[Lane] | None:
    """Case 1 or 2."""
    forms = [lane.form for lane in lanes[1 : 1 + operation.attributes["carried"]]]
    fixed = lanes[1 + operation.attributes["carried"] :]
    if lanes[0].shared:
        body, forms, test = _settled(at, operation, forms, fixed, None)
        if test is Form.SHARED:
            return _rebuilt(at, operation, lanes, body, forms)
    return _masked(at, operation, lanes, [lane.form for lane in lanes[1 : 1 + len(forms)]], fixed)


def _parts(operation: Operation) -> tuple[list[Value], list[Value], list[Value], list[Value]]:
    """Return a loop's body as its turn or nothing, carried arguments, invariant arguments, carried results."""
    body, carried = operation.blocks[0], operation.attributes["carried"]
    offset = int(operation.op.is_counted)
    taken = body.arguments[offset:]
    return body.arguments[:offset], taken[:carried], taken[carried:], body.results[1 - offset :]


def _settled(
    at: Batcher, operation: Operation, forms: Sequence[Form], fixed: Sequence[Lane], mask: _Mask | None
) -> tuple[Batcher, list[Form], Form]:
    """Rebuild the body until carried values leave it in the forms in which they enter; return it, these and the test's.

    With a mask the lanes outside of it borrow what they have.
    """
    turn, taken, invariants, leaving = _parts(operation)
    forms = list(forms)
    while True:
        side = at.inside(at.b.child())
        enter(side, turn, [Form.SHARED] * len(turn))
        if mask is not None:
            mask.enter(side, turn)
        enter(side, taken, forms)
        for argument, lane in zip(invariants, fixed, strict=True):
            side.set(argument, lane.value, lane.form)
        if mask is not None:
            borrow = borrower(side, mask.inside)
            for i, value in enumerate([*taken, *invariants]):
                if i not in mask.tapes:
                    side.set(value, *borrow(side.known[value]))
        side.run(operation.blocks[0])
        after = [wider(form, side.known[v].form) for form, v in zip(forms, leaving, strict=True)]
        if after == forms:
            test = Form.SHARED if turn else side.known[operation.blocks[0].results[0]].form
            return side, forms, test
        forms = after


def _rebuilt(
    at: Batcher, operation: Operation, lanes: Sequence[Lane], side: Batcher, forms: Sequence[Form]
) -> list[Lane]:
    """Emit the loop of a body that was rebuilt."""
    leaving = _parts(operation)[3]
    results = [in_form(side, v, form) for v, form in zip(leaving, forms, strict=True)]
    if not operation.op.is_counted:
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
class _Mask:
    """Which lanes turn: carried by a `while_loop`, told by the number of the turn in a counted loop.

    `tapes` are the numbers of operands, behind the first, that are lists with an element for each turn.
    """

    def __init__(self, at: Batcher, operation: Operation, head: Lane, tapes: set[int]):
        self.counted, self.tapes = operation.op.is_counted, tapes
        self.head = at.stacked(head)
        self.first = self.head if self.counted else mask_of(at, Lane(self.head, Form.STACKED))
        self.inside: Value

    def enter(self, side: Batcher, turn: Sequence[Value]) -> None:
        """Make the mask of a body; `turn` is the number of the turn in a counted loop."""
        if not self.counted:
            self.inside = side.b.argument(self.first.type, "mask")
            return
        number = side.b.scalar_to_tensor(side.known[turn[0]].value, dtype=tensor_type(self.head).dtype)
        self.inside = side.b.gt(side.b.use(self.head), number)


def _masked(
    at: Batcher, operation: Operation, lanes: Sequence[Lane], forms: Sequence[Form], fixed: Sequence[Lane]
) -> list[Lane] | None:
    """Case 2; None where what a lane carries cannot be kept elementwise."""
    _, taken, _, leaving = _parts(operation)
    written = {i for i in range(len(taken)) if is_written_tape(at.source, operation, i)}
    tapes = written | {i for i in range(len(taken), len(lanes) - 1) if is_read_tape(operation, i + 1)}
    if not can_be_masked(operation, lanes[1:], tapes):
        return None
    moves = [new is not old for new, old in zip(leaving, taken, strict=True)]
    for i, (moving, old, new) in enumerate(zip(moves, taken, leaving, strict=True)):
        if moving and i not in written and not _can_be_kept(at.b, old, new):
            return None
    mask = _Mask(at, operation, lanes[0], tapes)
    side, forms, _ = _settled(at, operation, forms, fixed, mask)
    if any(form is Form.APART for form in forms):
        return None
    return _turning(at, operation, lanes, _Turn(side, forms, moves, mask))


@record
class _Turn:
    """The body of a masked loop."""

    side: Batcher
    forms: list[Form]
    moves: list[bool]
    """Which carried values a turn changes."""
    mask: _Mask

    def entered(self) -> list[Value]:
        """Return the carried values as they enter: the arguments behind the turn's number, or behind the mask."""
        captured = set(self.side.b.captures.values())
        return [v for v in self.side.b.block.arguments if v not in captured][1:]


def _can_be_kept(b: Builder, old: Value, new: Value) -> bool:
    """Say whether a carried value is a number, or a tensor that keeps its shape."""
    if isinstance(old.type, ScalarType):
        return True
    return isinstance(old.type, TensorType) and old.type == new.type and known_outside(b, old.type)


def _turning(at: Batcher, operation: Operation, lanes: Sequence[Lane], turn: _Turn) -> list[Lane]:
    """Emit the masked loop; what is one value while it turns is carried a second time, as each lane had it last."""
    side, inner, mask = turn.side, turn.side.b, turn.mask
    entered, leaving = turn.entered(), _parts(operation)[3]
    pairs = zip(operation.operands[1:], lanes[1:], turn.forms, strict=False)
    initial = [_entering(at, v, lane, form) for v, lane, form in pairs]
    results: list[Value] = []
    kept: list[Value] = []
    places: dict[int, int] = {}
    for i, (new, form, moving) in enumerate(zip(leaving, turn.forms, turn.moves, strict=True)):
        after = in_form(side, new, form)
        if form is Form.STACKED:
            if moving and i not in mask.tapes:
                after = choose(side, mask.inside, after, entered[i])
            results.append(after if moving else entered[i])  # what stays would be what the lane borrowed
            continue
        results.append(after)
        if moving and i not in mask.tapes:
            places[i] = len(turn.forms) + len(kept)
            initial.append(at.stacked(Lane(initial[i], Form.SHARED)))
            last = inner.argument(form_type(operation.results[i].type, Form.STACKED, at.lanes))
            kept.append(choose(side, mask.inside, side.stacked(Lane(after, form)), last))
    made = _emit_masked(at, operation, turn, initial, [*results, *kept])
    found: list[Lane] = []
    for i, form in enumerate(turn.forms):
        if form is Form.STACKED or i in mask.tapes:
            found.append(Lane(made[i], form))
        else:
            found.append(Lane(made[places[i]], Form.STACKED) if i in places else lanes[1 + i])
    return found


def _emit_masked(
    at: Batcher, operation: Operation, turn: _Turn, initial: list[Value], results: list[Value]
) -> list[Value]:
    """Emit the loop itself, which turns as long as any lane does; return what it carried."""
    b, side, mask = at.b, turn.side, turn.mask
    if mask.counted:
        turns = b.item(b.emit("max", [mask.head], {"axis": (0,), "keepdim": False}))
        return _emit(at, "counted_while", turns, initial, side.b, results, dict(operation.attributes))
    test = side.lane(operation.blocks[0].results[0])
    after = side.b.logical_and(mask.inside, mask_of(side, Lane(side.stacked(test), Form.STACKED)))
    leaves = [any_of(side.b, after), after, *results]
    return _emit(at, "while_loop", any_of(b, mask.first), [mask.first, *initial], side.b, leaves, {})[1:]
