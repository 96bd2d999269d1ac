"""Derivatives that an operation brings along: reverse mode through `with_gradient`, and what forward mode is then.

The operations of its own VJP are put in place. What they take of the forward block becomes a residual as ever,
and they are differentiated in turn like any others.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.autodiff.cotangents import Cotangents, dense_or_zeros, may_miss
from dy2st.autodiff.reverse import CONTROL, Frontier, pull_back
from dy2st.ir.builder import Builder
from dy2st.ir.clone import clone_operation
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ops.control.custom_vjp import in_place
from dy2st.ops.core.transpose_helpers import zeros_of
from dy2st.passes import optimise


def pull_with_gradient(frontier: Frontier, operation: Operation, cts: Sequence[Value | None]) -> None:
    """Emit the VJP of one `with_gradient`."""
    b, outs, ins = frontier.b, int(operation.attributes["values"]), int(operation.attributes["inputs"])
    given: list[Value] = []
    for ct, result in zip(cts, operation.results, strict=True):
        if ct is None:
            given.append(zeros_of(b, result))
        else:
            given.append(dense_or_zeros(b, ct, result) if may_miss(ct, result) else b.use(ct))
    given += [b.use(v) for v in (*operation.results, *operation.operands[outs + ins :])]
    whose = operation.attributes["whose"]
    found = in_place(b, operation.attributes["pullback"], given, ins, f"backward of '{whose}'")
    for x, ct in zip(operation.operands[outs : outs + ins], found, strict=True):
        frontier.add(x, ct)


def transposed(pullback: Block, seeds: int) -> Program:
    """Return the JVP that belongs to a VJP: what is linear in its first arguments, the other way round.

    The VJP takes `seeds` cotangents, then other values, and gives the cotangents of inputs. The Program takes the
    tangents of these inputs, then the same other values, and gives the tangents of what the cotangents were of. The
    VJP is linear in them, so it is enough to know it at zero.
    """
    b = Builder()
    known: dict[Value, Value] = {}
    tangents = [b.argument(v.type) for v in pullback.results]
    for argument in pullback.arguments[seeds:]:
        known[argument] = b.argument(argument.type, argument.name)
    roots = [zeros_of(b, argument) for argument in pullback.arguments[:seeds]]
    known.update(zip(pullback.arguments[:seeds], roots, strict=True))
    for operation in pullback.operations:
        made = clone_operation(operation, b.block, known)
        b.block.operations.append(made)
    cts: Cotangents = {}
    for result, tangent in zip(pullback.results, tangents, strict=True):
        value = known[result]
        cts[value] = b.add(cts[value], tangent) if value in cts else tangent
    found = pull_back(b, b.block, roots, cts)
    b.block.results = [_dense(b, found.get(root), root) for root in roots]
    return optimise(Program({"main": b.block}))


def _dense(b: Builder, ct: Value | None, root: Value) -> Value:
    if ct is None:
        return zeros_of(b, root)
    return dense_or_zeros(b, ct, root) if may_miss(ct, root) else ct


CONTROL["with_gradient"] = pull_with_gradient
