"""Begin with zeros what a loop carries as a cotangent that may be missing, where only the first iteration misses it.

Before                                                  After
    %u = variant_new() {tag=0}                              %n = constant() {value=float32[](-0.0)}
                                                            %z = broadcast(%n) {shape=(8,)}
    %p, %q = counted_while(%k, %x, %u) {                    %p, %q = counted_while(%k, %x, %z) {
        (%i, %a, %b) ->                                         (%i, %a, %b) ->
        %s = optional_add(%b, %a)                               %s = add(%b, %a)
        %v = variant_new(%s) {tag=1}                            %v = variant_new(%s) {tag=1}
        return %a, %v                                           return %a, %s
    }                                                       }

So it is with the cell of an LSTM in a backward loop: the sum joins the loop nests around it.

1. The loop begins with an unset optional of a tensor of floats, turns only add something of the payload's type to it,
   and set it for the next iteration.
2. Nobody reads what is left of it: after a loop without iterations it would be unset.
3. The extents of the tensor are known, or are those of something else that the loop takes.

-0.0 + x has the bits of x.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ir.types import ScalarType, TensorType, is_optional, payload
from dy2st.ops.control.optional import OptionalAdd, VariantNew
from dy2st.passes.core.base import Pass, each_block
from dy2st.shapes import Extent

_DTYPES = ("float32", "float64")


class PeelOptionalCotangents(Pass):
    """Let a loop carry zeros and not an optional that is unset before the first iteration."""

    name = "peel_optional_cotangents"

    def apply(self, program: Program) -> bool:
        return each_block(program, _begin)


def _begin(block: Block) -> bool:
    used = Counter(v for o in block.operations for v in o.operands) + Counter(block.results)
    found = {o: places for o in block.operations if o.op.is_loop and (places := _places(o, used))}
    if not found:
        return False
    operations, block.operations = block.operations, []
    b = Builder(block)
    for operation in operations:
        for place, extents in found.get(operation, {}).items():
            b.location = operation.location
            _carry_zeros(b, operation, place, extents)
        b.adopt(operation)
    return True


def _places(loop: Operation, used: Counter[Value]) -> dict[int, list[int | tuple[Value, int | None]]]:
    """Return which of the carried values begin as unset and need not, and where their extents are found."""
    (body,), iteration = loop.blocks, int(loop.op.is_counted)
    uses = Counter(v for o in body.operations for v in o.operands) + Counter(body.results)
    places: dict[int, list[int | tuple[Value, int | None]]] = {}
    for i in range(loop.attributes["carried"]):
        begun, argument, following = (
            loop.operands[1 + i],
            body.arguments[iteration + i],
            body.results[1 - iteration + i],
        )
        t = payload(argument.type)
        if not is_optional(argument.type) or not isinstance(t, TensorType) or t.dtype.name not in _DTYPES:
            continue
        if not _is_variant(begun, 0) or not _is_variant(following, 1) or used[loop.results[i]]:  # 1. 2.
            continue
        adders = [o for o in body.operations if isinstance(o.op, OptionalAdd) and argument in o.operands]
        if uses[argument] != len(adders) or not all(_adds(o, argument, t) for o in adders):  # 1.
            continue
        if following.operation.operands[0].type != t:  # type: ignore[union-attr]
            continue
        extents = [e if isinstance(e, int) else _place_of(e, loop) for e in t.shape]
        if None not in extents:  # 3.
            places[i] = [e for e in extents if e is not None]
    return places


def _is_variant(value: Value, tag: int) -> bool:
    made = value.operation
    return made is not None and isinstance(made.op, VariantNew) and made.attributes["tag"] == tag


def _adds(operation: Operation, argument: Value, t: TensorType) -> bool:
    others = [v for v in operation.operands if v is not argument]
    return len(others) == 1 and others[0].type == t


def _place_of(extent: Extent, loop: Operation) -> tuple[Value, int | None] | None:
    """Return something that the loop takes which has an extent, and on which axis; None as axis: a number is it."""
    for value in loop.operands:
        if isinstance(value.type, TensorType) and extent in value.type.shape:
            return value, value.type.shape.index(extent)
        if isinstance(value.type, ScalarType) and value.type.extent == extent:
            return value, None
    return None


def _carry_zeros(b: Builder, loop: Operation, place: int, extents: list[int | tuple[Value, int | None]]) -> None:
    (body,), iteration = loop.blocks, int(loop.op.is_counted)
    argument, t = body.arguments[iteration + place], payload(loop.results[place].type)
    assert isinstance(t, TensorType)
    given = [e for e in extents if not isinstance(e, int)]
    dims = [value if axis is None else b.emit("dim", [value], {"axis": axis}) for value, axis in given]
    number = b.emit("constant", [], {"value": np.array(-0.0, t.dtype.numpy)})
    shape = tuple(e if isinstance(e, int) else None for e in extents)
    loop.operands[1 + place] = b.emit("broadcast", [number, *dims], {"shape": shape})
    loop.results[place].type = argument.type = t
    following = body.results[1 - iteration + place].operation
    body.results[1 - iteration + place] = following.operands[0]  # type: ignore[union-attr]
    values: dict[Value, Value] = {}
    operations, body.operations = body.operations, []
    inner = Builder(body)
    for operation in operations:
        operation.operands = [values.get(v, v) for v in operation.operands]
        if isinstance(operation.op, OptionalAdd) and argument in operation.operands:
            inner.location = operation.location
            values[operation.results[0]] = inner.emit("add", list(operation.operands))
        else:
            inner.adopt(operation)
    body.results = [values.get(v, v) for v in body.results]
