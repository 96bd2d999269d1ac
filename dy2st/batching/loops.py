"""`while_loop` and `counted_while` over lanes.

1. Where the lanes share the number of iterations, the body is rebuilt. Which carried values differ between lanes is
   found by rebuilding it until what leaves an iteration has the form in which it enters.
2. Where they do not, the loop runs as long as any lane does. Lanes that are done keep what they carried; meanwhile
   they run on what a lane has that is not done (see `branches.py`). What all lanes that still iterate have in common,
   as a number of iterations, stays one value inside of the loop; beside it stands what each lane had of it when it was
   done.
3. What cannot run like that runs lane by lane.

A list that a loop appends to is as long as its iterations, so lanes that iterate differently often have lists that
differ; but the tapes of reverse mode (`tapes.py`) are read by the iterations that wrote them alone, so these need not.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.batching.batched_value import BatchedValue, LaneForm, form_type, known_outside
from dy2st.batching.batcher import Batcher, rule
from dy2st.batching.branches import any_of, borrower, can_be_masked, choose, enter, in_form, mask_of, wider
from dy2st.batching.tapes import is_read_tape, is_written_tape
from dy2st.ir.builder import Builder
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ir.types import ScalarType, TensorType
from dy2st.records import record


@rule("while_loop", "counted_while")
def loop(at: Batcher, operation: Operation, lanes: Sequence[BatchedValue]) -> list[BatchedValue] | None:
    """Case 1 or 2."""
    forms = [lane.form for lane in lanes[1 : 1 + operation.attributes["carried"]]]
    fixed = lanes[1 + operation.attributes["carried"] :]
    if lanes[0].shared:
        body, forms, test = _converged(at, operation, forms, fixed, None)
        if test is LaneForm.SHARED:
            return _rebuilt(at, operation, lanes, body, forms)
    return _masked(at, operation, lanes, [lane.form for lane in lanes[1 : 1 + len(forms)]], fixed)


def _parts(operation: Operation) -> tuple[list[Value], list[Value], list[Value], list[Value]]:
    """Return a loop's body as its iteration or nothing, carried arguments, invariant arguments, carried results."""
    body, carried = operation.blocks[0], operation.attributes["carried"]
    offset = int(operation.op.is_counted)
    taken = body.arguments[offset:]
    return body.arguments[:offset], taken[:carried], taken[carried:], body.results[1 - offset :]


def _converged(
    at: Batcher, operation: Operation, forms: Sequence[LaneForm], fixed: Sequence[BatchedValue], mask: _Mask | None
) -> tuple[Batcher, list[LaneForm], LaneForm]:
    """Rebuild the body until carried values leave it in the forms in which they enter; return it, these and the test's.

    With a mask the lanes outside of it borrow what they have.
    """
    iteration, taken, invariants, leaving = _parts(operation)
    forms = list(forms)
    while True:
        side = at.inside(at.b.child())
        enter(side, iteration, [LaneForm.SHARED] * len(iteration))
        if mask is not None:
            mask.enter(side, iteration)
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
            test = LaneForm.SHARED if iteration else side.known[operation.blocks[0].results[0]].form
            return side, forms, test
        forms = after


def _rebuilt(
    at: Batcher, operation: Operation, lanes: Sequence[BatchedValue], side: Batcher, forms: Sequence[LaneForm]
) -> list[BatchedValue]:
    """Emit the loop of a body that was rebuilt."""
    leaving = _parts(operation)[3]
    results = [in_form(side, v, form) for v, form in zip(leaving, forms, strict=True)]
    if not operation.op.is_counted:
        results.insert(0, side.lane(operation.blocks[0].results[0]).value)
    initial = [
        _entering(at, v, lane, form) for v, lane, form in zip(operation.operands[1:], lanes[1:], forms, strict=False)
    ]
    made = _emit(at, operation.name, lanes[0].value, initial, side.b, results, dict(operation.attributes))
    return [BatchedValue(v, form) for v, form in zip(made, forms, strict=True)]


def _entering(at: Batcher, old: Value, lane: BatchedValue, form: LaneForm) -> Value:
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


# ---- lanes that iterate differently often
# ------------------------------------------------------------------------------
class _Mask:
    """Which lanes iterate: carried by a `while_loop`, told by the number of the iteration in a counted loop.

    `tapes` are the numbers of operands, behind the first, that are lists with an element for each iteration.
    """

    def __init__(self, at: Batcher, operation: Operation, head: BatchedValue, tapes: set[int]):
        self.counted, self.tapes = operation.op.is_counted, tapes
        self.head = at.stacked(head)
        self.first = self.head if self.counted else mask_of(at, BatchedValue(self.head, LaneForm.STACKED))
        self.inside: Value

    def enter(self, side: Batcher, iteration: Sequence[Value]) -> None:
        """Make the mask of a body; `iteration` is the number of the iteration in a counted loop."""
        if not self.counted:
            self.inside = side.b.argument(self.first.type, "mask")
            return
        number = side.b.scalar_to_tensor(side.known[iteration[0]].value, dtype=tensor_type(self.head).dtype)
        self.inside = side.b.gt(side.b.use(self.head), number)


def _masked(
    at: Batcher,
    operation: Operation,
    lanes: Sequence[BatchedValue],
    forms: Sequence[LaneForm],
    fixed: Sequence[BatchedValue],
) -> list[BatchedValue] | None:
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
    side, forms, _ = _converged(at, operation, forms, fixed, mask)
    if any(form is LaneForm.APART for form in forms):
        return None
    return _turning(at, operation, lanes, _MaskedBody(side, forms, moves, mask))


@record
class _MaskedBody:
    """The body of a masked loop."""

    side: Batcher
    forms: list[LaneForm]
    moves: list[bool]
    """Which carried values an iteration changes."""
    mask: _Mask

    def entered(self) -> list[Value]:
        """Return the carried values as they enter: the arguments behind the iteration's number, or behind the mask."""
        captured = set(self.side.b.captures.values())
        return [v for v in self.side.b.block.arguments if v not in captured][1:]


def _can_be_kept(b: Builder, old: Value, new: Value) -> bool:
    """Return whether a carried value is a number, or a tensor that keeps its shape."""
    if isinstance(old.type, ScalarType):
        return True
    return isinstance(old.type, TensorType) and old.type == new.type and known_outside(b, old.type)


def _turning(
    at: Batcher, operation: Operation, lanes: Sequence[BatchedValue], iteration: _MaskedBody
) -> list[BatchedValue]:
    """Emit the masked loop; what is one value while it runs is carried a second time, as each lane had it last."""
    side, inner, mask = iteration.side, iteration.side.b, iteration.mask
    entered, leaving = iteration.entered(), _parts(operation)[3]
    pairs = zip(operation.operands[1:], lanes[1:], iteration.forms, strict=False)
    initial = [_entering(at, v, lane, form) for v, lane, form in pairs]
    results: list[Value] = []
    kept: list[Value] = []
    places: dict[int, int] = {}
    for i, (new, form, moving) in enumerate(zip(leaving, iteration.forms, iteration.moves, strict=True)):
        after = in_form(side, new, form)
        if form is LaneForm.STACKED:
            if moving and i not in mask.tapes:
                after = choose(side, mask.inside, after, entered[i])
            results.append(after if moving else entered[i])  # what stays would be what the lane borrowed
            continue
        results.append(after)
        if moving and i not in mask.tapes:
            places[i] = len(iteration.forms) + len(kept)
            initial.append(at.stacked(BatchedValue(initial[i], LaneForm.SHARED)))
            last = inner.argument(form_type(operation.results[i].type, LaneForm.STACKED, at.lanes))
            kept.append(choose(side, mask.inside, side.stacked(BatchedValue(after, form)), last))
    made = _emit_masked(at, operation, iteration, initial, [*results, *kept])
    found: list[BatchedValue] = []
    for i, form in enumerate(iteration.forms):
        if form is LaneForm.STACKED or i in mask.tapes:
            found.append(BatchedValue(made[i], form))
        else:
            found.append(BatchedValue(made[places[i]], LaneForm.STACKED) if i in places else lanes[1 + i])
    return found


def _emit_masked(
    at: Batcher, operation: Operation, iteration: _MaskedBody, initial: list[Value], results: list[Value]
) -> list[Value]:
    """Emit the loop itself, which runs as long as any lane does; return what it carried."""
    b, side, mask = at.b, iteration.side, iteration.mask
    if mask.counted:
        iterations = b.item(b.emit("max", [mask.head], {"axis": (0,), "keepdim": False}))
        return _emit(at, "counted_while", iterations, initial, side.b, results, dict(operation.attributes))
    test = side.lane(operation.blocks[0].results[0])
    after = side.b.logical_and(mask.inside, mask_of(side, BatchedValue(side.stacked(test), LaneForm.STACKED)))
    leaves = [any_of(side.b, after), after, *results]
    return _emit(at, "while_loop", any_of(b, mask.first), [mask.first, *initial], side.b, leaves, {})[1:]
