"""Recognise weights of which some are dropped: multiplied by random choices and by numbers, in any order.

Of a full %p and of what a softmax makes:
    %k: float32[B, N, M] = random_bernoulli(%seed, %draw, %p)
    %f: float32[B, N, M] = mul(%k, %factor)
    %d: float32[B, N, M] = mul(%w, %f)
"""

from __future__ import annotations

from collections import Counter

from dy2st.ir.builder import Builder
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ops.elementwise.arithmetic import Div, Mul
from dy2st.ops.reduce.softmax import Softmax
from dy2st.ops.shape.random import RandomBernoulli
from dy2st.ops.shape.shape import Broadcast
from dy2st.passes.simplify.match_causal_mask import filled
from dy2st.records import record


@record(frozen=True)
class MatchedDropout:
    """By what weights are dropped."""

    weights: Value
    """What they were before."""
    choices: Operation
    keep: float
    """The probability to keep one."""
    factor: float
    """What is kept is multiplied by."""
    chain: list[Operation]
    """The operations from the weights on, and those of the choices."""

    def emitted(self, b: Builder) -> list[Value]:
        """Emit the numbers that an attention takes."""
        seed, draw, _ = self.choices.operands
        batch = b.shape(tensor_type(self.weights).shape[:-2])
        return [seed, draw, *map(b.scalar, (self.keep, self.factor, *batch))]


def drop_of(value: Value, uses: Counter[Value]) -> MatchedDropout | None:
    """Return by what a value is dropped: an element of the draw for each of its own, for one use each."""
    factor, found, pending = 1.0, dict[str, Operation](), [value]
    chain: list[Operation] = []
    while pending:
        part = pending.pop()
        number = filled(part)
        if number is not None:
            factor *= number
            continue
        made = part.operation
        if made is None or uses[part] != 1 or made.op.name in found:
            return None
        if isinstance(made.op, (RandomBernoulli, Softmax)):
            found[made.op.name] = made
            continue
        below = filled(made.operands[1]) if isinstance(made.op, Div) else None
        if not isinstance(made.op, (Broadcast, Mul)) and not below:
            return None
        factor /= below or 1.0
        pending += made.operands[:2] if isinstance(made.op, Mul) else made.operands[:1]
        chain.append(made)
    if len(found) < 2:
        return None
    weights, choices = (found[name].results[0] for name in ("softmax", "random_bernoulli"))
    keep = filled(found["random_bernoulli"].operands[2])
    if keep is None or weights.type != choices.type or tensor_type(weights).shape[-2:] != tensor_type(value).shape[-2:]:
        return None
    return MatchedDropout(weights, found["random_bernoulli"], keep, factor, [*chain, found["random_bernoulli"]])
