"""Every op of the registry over lanes: what a loop gives, stacked."""

import numpy as np
import pytest

from dy2st.ir.builder import Builder
from dy2st.ir.program import Program
from tests.batching.lanes_of import check
from tests.ops.evaluate import emit
from tests.ops.test_registry import arguments, cases

LANES = 3
MASKS = {"index", "index_set", "index_add", "masked_select", "nonzero"}
EACH = MASKS | {"random_bernoulli", "with_gradient"}
"""Ops that run lane by lane where a tensor differs between lanes. Make it shorter, never longer."""
UNKNOWN_LANES = frozenset({"conv", "conv_input_grad", "conv_weight_grad"})
"""Those that do where only the run tells how many lanes there are."""


def varied(x, k):
    """An operand like `x` for lane `k`: floats a little different, others in another order."""
    if isinstance(x, list):
        return [varied(item, k) for item in x]
    if isinstance(x, np.ndarray) and x.dtype.kind in "fc":
        return (x * (1 - 0.03 * k)).astype(x.dtype)
    if isinstance(x, np.ndarray) and x.ndim and k % 2:
        return np.ascontiguousarray(np.flip(x, 0))
    return x


def choices(op, sample):
    """Which operands differ between lanes: all tensors, all operands, and each one alone."""
    count = len(sample.operands)
    kinds = [not isinstance(x, (bool, int, float)) for x in sample.operands]
    alone = [[i == j for j in range(count)] for i in range(count)]
    return sorted({tuple(one) for one in [kinds, [True] * count, *alone] if any(one)})


@pytest.mark.parametrize("known", [True, False], ids=["known", "symbolic"])
@pytest.mark.parametrize(("op", "sample"), cases())
def test_an_op_over_lanes_is_the_op_of_each_lane(op, sample, known):
    for batched in choices(op, sample):
        b = Builder()
        b.block.results = emit(b, op, arguments(b, op, sample, not known), sample.attributes)
        program = Program({"main": b.block})
        lanes = range(LANES)
        inputs = [[varied(x, k) if on else x for x, on in zip(sample.operands, batched, strict=True)] for k in lanes]
        made = check(program, inputs, list(batched), known)
        apart = any(o.name == "counted_while" for o in made.walk())
        numbers = any(on and isinstance(x, (bool, int, float)) for x, on in zip(sample.operands, batched, strict=True))
        allowed = EACH if known else EACH | UNKNOWN_LANES
        assert not apart or numbers or op.name in allowed, f"{op.name} runs lane by lane: {batched}"
