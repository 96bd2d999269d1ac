"""`cond` and `call` over lanes.

1. Where the lanes share the predicate, both branches are rebuilt.
2. Where they do not, each branch runs for all lanes at once if any lane takes it. A lane that does not take it runs
   on what another lane has that does: what would raise, or would be infinite, in a branch that is not taken
   is never computed. The lanes then choose.
3. What cannot run like that (lists that differ, prints, extents that differ) runs lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from dy2st.autodiff.cotangents import close_cond
from dy2st.autodiff.forward import functions_of
from dy2st.batching.batched_value import BatchedValue, LaneForm, apart_type, column, form_type, known_outside
from dy2st.batching.batcher import Batcher, NotBatchable, rule
from dy2st.batching.lane_loop import lane_numbers, of_lane
from dy2st.batching.leaves import counted
from dy2st.ir.builder import Builder
from dy2st.ir.program import Block, Operation, Value, tensor_type
from dy2st.ir.types import INT, ListType, ScalarType, TensorType, Type, VariantType, is_optional, payload
from dy2st.ops.control.optional import OptionalAdd, VariantOrZeros
from dy2st.ops.core.transpose_helpers import zeros


@rule("cond")
def cond(at: Batcher, operation: Operation, lanes: Sequence[BatchedValue]) -> list[BatchedValue] | None:
    """Case 1 or 2."""
    if lanes[0].shared:
        return _rebuilt(at, operation, lanes)
    return _chosen(at, operation, lanes)


def _rebuilt(at: Batcher, operation: Operation, lanes: Sequence[BatchedValue]) -> list[BatchedValue]:
    """Rebuild both branches; their results get the form that holds those of both."""
    sides: list[Batcher] = []
    for block in operation.blocks:
        side = at.inside(at.b.child())
        enter(side, block.arguments, [lane.form for lane in lanes[1:]])
        side.run(block)
        sides.append(side)
    forms: list[LaneForm] = []
    for ours, theirs in zip(*(block.results for block in operation.blocks), strict=True):
        forms.append(wider(sides[0].known[ours].form, sides[1].known[theirs].form))
    for side, block in zip(sides, operation.blocks, strict=True):
        side.b.block.results = [in_form(side, v, form) for v, form in zip(block.results, forms, strict=True)]
    then, other = (side.b for side in sides)
    made = close_cond(at.b, lanes[0].value, then, other, given=[lane.value for lane in lanes[1:]])
    return [BatchedValue(v, form) for v, form in zip(made, forms, strict=True)]


def enter(side: Batcher, arguments: Sequence[Value], forms: Sequence[LaneForm]) -> None:
    """Make the arguments of a rebuilt block."""
    for argument, form in zip(arguments, forms, strict=True):
        made = side.b.argument(form_type(argument.type, form, side.lanes), argument.name)
        side.set(argument, made, form)


def wider(a: LaneForm, b: LaneForm) -> LaneForm:
    """Return the form in which values of both forms can be had."""
    order = (LaneForm.SHARED, LaneForm.STACKED, LaneForm.APART)
    return max(a, b, key=order.index)


def in_form(at: Batcher, value: Value, form: LaneForm) -> Value:
    """Return what a value of the block became, in a form that is as wide or wider."""
    lane = at.lane(value)
    if lane.form is form:
        return lane.value
    return at.stacked(lane) if form is LaneForm.STACKED else _apart(at, lane, value.type)


def _apart(at: Batcher, lane: BatchedValue, kind: Type) -> Value:
    """Emit the list of what each lane has."""
    body, b = at.b.child(), at.b
    i, so_far = body.argument(INT), body.argument(apart_type(kind))
    body.block.results = [body.list_append(so_far, of_lane(body, lane, i, kind))]
    return counted(b, at.count(), body, [b.emit("list_new", [], {"type": apart_type(kind)})])[0]


# ---- lanes that go different ways ------------------------------------------------------------------------------
def _chosen(at: Batcher, operation: Operation, lanes: Sequence[BatchedValue]) -> list[BatchedValue] | None:
    """Case 2; None where the lanes may leave with values that cannot be chosen from elementwise."""
    given = lanes[1:]
    if not can_be_masked(operation, given):
        return None
    pairs = list(zip(*(block.results for block in operation.blocks), strict=True))
    for (ours, theirs), old in zip(pairs, operation.results, strict=True):
        if not _alike(at.b, ours.type, theirs.type, old.type) and not _counts_as_zero(at, old):
            return None
    takes = mask_of(at, lanes[0])
    made: list[list[Value]] = []
    for which, block in enumerate(operation.blocks):
        mask = takes if which == 0 else at.b.logical_not(takes)
        made.append(_branch(at, block, given, mask, [payload(v.type) for v in operation.results]))
    found: list[BatchedValue] = []
    for old, ours, theirs in zip(operation.results, *made, strict=True):
        value = choose(at, takes, ours, theirs)
        if is_optional(old.type):
            value = at.b.emit("variant_new", [value], {"type": at.type(old.type), "tag": 1})
        found.append(BatchedValue(value, LaneForm.STACKED))
    return found


def can_be_masked(operation: Operation, given: Sequence[BatchedValue], loose: Collection[int] = ()) -> bool:
    """Return whether lanes may run an operation on what another lane has: stacked tensors and numbers, no effects.

    Operands whose numbers are `loose` may be anything.
    """
    simple = all(
        lane.shared or i in loose or (lane.stacked and isinstance(v.type, (TensorType, ScalarType)))
        for i, (lane, v) in enumerate(zip(given, operation.operands[1:], strict=True))
    )
    return simple and not any(inner.op.effect for block in operation.blocks for inner in block.walk())


def _alike(b: Builder, ours: Type, theirs: Type, old: Type) -> bool:
    """Return whether two branches give tensors (or numbers) of one shape, which values outside tell."""
    if isinstance(old, ScalarType):
        return True
    return isinstance(ours, TensorType) and ours == theirs == old and known_outside(b, ours)


def _counts_as_zero(at: Batcher, result: Value) -> bool:
    """Return whether a result is an optional cotangent of which only the sum with others is used: unset is zero
    there.
    """
    kind = payload(result.type)
    if not is_optional(result.type) or not isinstance(kind, TensorType) or not known_outside(at.b, kind):
        return False
    users = [one for one in at.source.operations if result in one.operands]
    return result not in at.source.results and all(isinstance(one.op, (OptionalAdd, VariantOrZeros)) for one in users)


def mask_of(at: Batcher, predicate: BatchedValue) -> Value:
    """Return the predicates of the lanes as a bool vector."""
    value = predicate.value
    return value if tensor_type(value).rank == 1 else at.b.shaped("reshape", [value], [at.count()])


def _branch(
    at: Batcher, block: Block, given: Sequence[BatchedValue], mask: Value, kinds: Sequence[Type]
) -> list[Value]:
    """Emit a branch for all lanes, under `cond` on whether any lane takes it; return its stacked results."""
    if not block.operations:
        return [at.stacked(given[block.arguments.index(v)]) for v in block.results]
    some, none = at.inside(at.b.child()), at.inside(at.b.child())
    borrow = borrower(some, mask)
    for argument, lane in zip(block.arguments, given, strict=True):
        some.set(argument, *borrow(lane))
    some.run(block)
    for value, kind in zip(block.results, map(at.type, kinds), strict=True):
        result = some.stacked(some.lane(value))
        if is_optional(value.type):
            assert isinstance(kind, TensorType)
            empty = zeros(some.b, kind.dtype, some.b.shape(kind))
            result = some.b.emit("variant_or_zeros", [result, empty], {"tag": 1})
        some.b.block.results.append(result)
    for kind in map(at.type, kinds):
        assert isinstance(kind, TensorType)
        none.b.block.results.append(zeros(none.b, kind.dtype, none.b.shape(kind)))
    return close_cond(at.b, any_of(at.b, mask), some.b, none.b)


def borrower(at: Batcher, mask: Value) -> Callable[[BatchedValue], tuple[Value, LaneForm]]:
    """Return what emits an operand such that a lane outside of the mask has what the first lane inside has."""
    b = at.b
    mask = b.use(mask)
    first = b.broadcast_to(b.argmax(mask, axis=0, keepdim=False), [at.count()])
    source = b.where(mask, lane_numbers(b, at.lanes), first)

    def borrow(lane: BatchedValue) -> tuple[Value, LaneForm]:
        if lane.shared:
            return b.use(lane.value), lane.form
        made = b.take(lane.value, source, axis=0)
        b.retype(made, lane.value.type)
        return made, lane.form

    return borrow


def any_of(b: Builder, mask: Value) -> Value:
    """Emit whether any lane is in the mask."""
    return b.item(b.emit("any", [mask], {"axis": (0,), "keepdim": False}))


def choose(at: Batcher, mask: Value, ours: Value, theirs: Value) -> Value:
    """Emit one stacked value or the other, by lane."""
    if ours is theirs:
        return ours
    return at.b.where(column(at.b, mask, tensor_type(ours).rank - 1), ours, theirs)


# ---- functions ------------------------------------------------------------------------------
@rule("call")
def call(at: Batcher, operation: Operation, lanes: Sequence[BatchedValue]) -> list[BatchedValue] | None:
    """A function that takes these operands stacked; it is made once, so it may call itself."""
    kinds = [v.type for v in operation.results]
    if any(isinstance(k, (ListType, VariantType)) for k in kinds) or not at.b.functions:
        return None
    name = operation.attributes["function"]
    functions = functions_of(at.b, name)
    made = f"{name}__vmap_{''.join(str(int(lane.stacked)) for lane in lanes)}"
    if made not in functions:
        source, b = functions[name], Builder(Block(), None, names=at.b.names)
        b.location, b.functions = at.b.location, functions
        inner = Batcher(b, at.lanes)
        functions[made] = b.block  # before it is built: it may call itself
        try:
            enter(inner, source.arguments, [lane.form for lane in lanes])
            inner.run(source)
            b.block.results = [in_form(inner, v, LaneForm.STACKED) for v in source.results]
        except NotBatchable:
            del functions[made]
            raise
    attributes = {"function": made, "types": tuple(map(at.type, kinds))}
    results = at.b.operation("call", [lane.value for lane in lanes], attributes).results
    return [BatchedValue(v, LaneForm.STACKED) for v in results]
