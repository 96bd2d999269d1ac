"""The tangents, or more Taylor coefficients, of one eager op, from those of its operands, as a small Program.

It is derived once per kind of call, as the pull-back is (`op_vjp.py`), and takes what it uses of a node: operands,
results, extents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.autodiff.forward import Given, Pusher, found_in
from dy2st.errors import AutodiffError
from dy2st.ir.program import Value
from dy2st.ops.core.base import Op
from dy2st.records import record
from dy2st.runtime.eager.tape.op_derivative import OpDerivation, Place, attribute_key, shape_pattern
from dy2st.runtime.executor.executable import Compiled


@record(frozen=True)
class OpJet:
    """`compiled` takes the arguments that `uses` names, then coefficients; gives those that `found` names."""

    compiled: Compiled
    uses: tuple[Place, ...]
    found: Given


_CACHE: dict[Any, OpJet] = {}


def op_jet(op: Op, attributes: dict[str, Any], operands: Sequence[Any], given: Given, order: int) -> OpJet:
    """Return what computes the coefficients up to `order` of a call, of whose operands those in `given` are there."""
    pattern = shape_pattern(operands)
    key = (op.name, attribute_key(attributes), pattern, given, order)
    found = _CACHE.get(key)
    if found is None:
        found = _CACHE[key] = _derive(op, attributes, pattern, given, order)
    return found


def _derive(op: Op, attributes: dict[str, Any], pattern: tuple[Any, ...], given: Given, order: int) -> OpJet:
    call = OpDerivation(op, attributes, pattern)
    call.take_result_extents()
    ahead, arguments, outs = call.builder, call.arguments, call.outs
    pusher = Pusher(ahead, order, None)
    entering: list[Value] = []
    for i, orders in given:
        entering += [ahead.argument(arguments[i].type) for _ in orders]
        here = dict(zip(orders, entering[-len(orders) :], strict=True))
        pusher.series[arguments[i]] = [here.get(k) for k in range(1, order + 1)]
    pusher.run(call.block)
    found = found_in(pusher, outs)
    if ahead.residuals:
        raise AutodiffError(f"the derivative of '{op.name}' needs a value that was not kept")
    ahead.block.results = [c for i, orders in found for c in pusher.dense(outs[i], orders)]
    return OpJet(*call.close(entering), found)
