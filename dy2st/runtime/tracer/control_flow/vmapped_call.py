"""A function over many lanes in a Program that is being built.

The function is traced once, for one lane, into a block of its own, as a branch is; then what the block computes is
appended for all lanes (`dy2st/batching/`). A function that writes what all lanes see (an attribute, a tensor in place,
a gradient) has an order in which the lanes come, so it is refused. Random numbers are those that a loop over the lanes
would draw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dy2st.batching.batched_value import NUMBERS, BatchedValue, LaneForm, tells
from dy2st.batching.lane_loop import lane_numbers
from dy2st.batching.programs import vmap_block
from dy2st.errors import StructureError
from dy2st.ir.builder import Builder
from dy2st.ir.location import error_here, user_location
from dy2st.ir.program import Value, tensor_type
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.control.scalar import ScalarAdd
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.control_flow.conditional import Diverged
from dy2st.runtime.tracer.effects.escape_analysis import old_objects, was_there
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.sentinels import MISSING, Key
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.shapes import Extent

RNG: Key = ("rng",)


def over_lanes(
    trace: Trace, function: Callable[[list[Tensor]], list[Tensor]], mapped: Sequence[Tensor]
) -> list[Tensor]:
    """Append what `function` computes of each lane of tensors whose first axis is the lanes; return it likewise.

    Raises StructureError for a function that writes to what is outside of it.
    """
    b: Builder = trace.builder
    values, lanes = _alike(b, [b.use(trace.value_of(x)) for x in mapped])
    child, writes, old = b.child(), dict[Key, Any](), old_objects(trace)
    drawn = trace.log.get(RNG)
    inner = [child.argument(TensorType(tensor_type(v).dtype, tensor_type(v).shape[1:])) for v in values]
    with trace.inside(child, writes):
        given = [Tensor(v, trace.stops(x)) for v, x in zip(inner, mapped, strict=True)]
        found = _called(function, given)
        results = [child.use(trace.value_of(t)) for t in found or ()]
        flows = [not trace.stops(t) for t in found or ()]
    child.block.results = results
    _refuse_writes(trace, [key for key in writes if key != RNG and was_there(trace, key, old)])
    known = {a: BatchedValue(v, LaneForm.STACKED) for a, v in zip(inner, values, strict=True)}
    known.update({a: BatchedValue(v, LaneForm.SHARED) for v, a in child.captures.items()})
    if RNG in writes:
        _spread_draws(trace, child, drawn, writes[RNG], lanes, known)
    before, b.location = b.location, user_location()
    made = vmap_block(b, lanes, child.block, [known[a] for a in child.block.arguments])
    b.location = before
    if found is None:
        raise Diverged
    return [trace.wrap(v, not flow) for v, flow in zip(made, flows, strict=True)]


def _called(function: Callable[[list[Tensor]], list[Tensor]], given: list[Tensor]) -> list[Tensor] | None:
    """Return what a function gives; None where every path of it raises."""
    try:
        return function(given)
    except Diverged:
        return None


def _alike(b: Builder, values: list[Value]) -> tuple[list[Value], Extent]:
    """Return tensors whose first extents are equal, as the Program checks, and that extent."""
    extents = [tensor_type(v).shape[0] for v in values]
    lanes = next((e for e in extents if isinstance(e, int)), extents[0])
    made: list[Value] = []
    for value, extent in zip(values, extents, strict=True):
        if extent == lanes:
            made.append(value)
            continue
        ours, theirs = b.scalar(b.extent(lanes)), b.scalar(b.extent(extent))
        aval = ("vmap: the mapped axes have different extents",)
        b.emit("assert", [b.scalar_eq(ours, theirs)], {"template": aval})
        made.append(b.shaped("reshape", [value], b.shape((lanes, *tensor_type(value).shape[1:]))))
    return made, lanes


def _refuse_writes(trace: Trace, written: Sequence[Key]) -> None:
    if not written:
        return
    kinds = {"attr": "an attribute", "items": "a list or dict", "tail": "a list", "data": "a tensor in place",
             "grad": "a gradient", "seed": "the seed"}  # fmt: skip
    what = ", ".join(sorted({kinds.get(str(key[0]), "a variable") for key in written}))
    raise error_here(
        StructureError, f"the function under vmap changes {what} that is not its own, so its lanes have an order"
    )


def _spread_draws(
    trace: Trace, child: Builder, drawn: Any, last: Scalar, lanes: Extent, known: dict[Value, BatchedValue]
) -> None:
    """Let each lane draw where the lane before it stopped; the generator goes on behind the last one."""
    b: Builder = trace.builder
    start = Scalar(trace.rng_draw()) if drawn is MISSING else drawn
    entered, value, count = child.use(start.value), last.value, 0
    while value is not entered:
        made = value.operation
        step = made.operands[1].type if made is not None and isinstance(made.op, ScalarAdd) else None
        extent = step.extent if isinstance(step, ScalarType) else None
        if made is None or extent is None or not tells(b, extent):
            raise StructureError("a branch or loop decides how many random numbers the function under vmap draws")
        value, count = made.operands[0], count + extent
    each = b.extent(count)
    dtype = NUMBERS["int"]
    steps = b.mul(lane_numbers(b, lanes), b.scalar_to_tensor(each, dtype=dtype) if isinstance(each, Value) else each)
    first = b.scalar_to_tensor(b.use(start.value), dtype=dtype)
    known[entered] = BatchedValue(b.add(steps, first), LaneForm.STACKED)
    total = b.scalar_mul(b.scalar(b.extent(lanes)), b.scalar(each))
    trace.log.set(RNG, None, Scalar(b.scalar_add(b.use(start.value), total)))
