"""Reverse mode through `with_gradient`: the operations of its own pull-back are put in place.

They are emitted anew, one by one, so that every type is inferred from what the operands are here. What they take of the
forward block becomes a residual as ever, and they are differentiated in turn like any others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from dy2st.autodiff.cotangents import dense_or_zeros, may_miss
from dy2st.autodiff.reverse import CONTROL, Frontier
from dy2st.errors import AutodiffError
from dy2st.ir.parser import parse
from dy2st.ir.program import Operation, Program, Value
from dy2st.ir.types import matches
from dy2st.ir.verifier import verify
from dy2st.ops.cotangent import zeros_of


def pull_with_gradient(frontier: Frontier, operation: Operation, cts: Sequence[Value | None]) -> None:
    """Emit the pull-back of one `with_gradient`."""
    b, outs, ins = frontier.b, int(operation.attributes["values"]), int(operation.attributes["inputs"])
    block = pullback_of(operation.attributes["pullback"]).block
    given: list[Value] = []
    for ct, result in zip(cts, operation.results, strict=True):
        if ct is None:
            given.append(zeros_of(b, result))
        else:
            given.append(dense_or_zeros(b, ct, result) if may_miss(ct, result) else b.use(ct))
    given += [b.use(v) for v in operation.operands[outs + ins :]]
    whose = operation.attributes["whose"]
    if len(given) != len(block.arguments) or ins != len(block.results):
        raise AutodiffError(f"the backward of '{whose}' does not fit the values that it is for")
    known: dict[Value, Value] = {}
    for argument, value in zip(block.arguments, given, strict=True):
        if not matches(argument.type, value.type):
            raise AutodiffError(f"the backward of '{whose}' takes {argument.type}, not {value.type}")
        known[argument] = value
    for inner in block.operations:
        if inner.blocks or inner.name == "call" or inner.op.effect or not inner.op.saveable:
            raise AutodiffError(f"the backward of '{whose}' is more than arithmetic: it has '{inner.name}'")
        made = b.operation(inner.op, [known[v] for v in inner.operands], dict(inner.attributes))
        known.update(zip(inner.results, made.results, strict=True))
    for x, result in zip(operation.operands[outs : outs + ins], block.results, strict=True):
        frontier.add(x, known[result])


@lru_cache(maxsize=256)
def pullback_of(text: str) -> Program:
    """Return the Program that a `pullback` attribute is; it is shared, so nobody may change it."""
    program = parse(text)
    verify(program)
    return program


CONTROL["with_gradient"] = pull_with_gradient
