"""Every op on its samples, in reverse and forward mode, orders 1 to 3: against each other and against differences.

Order 1 agrees with differences to a relative 1e-6, reverse with forward mode to 1e-10; the derivatives of order 2 and
3 are those of the gradient Programs. Taylor mode is compared with forward mode in `test_jet.py`.
"""

import pytest

from dy2st.ir.builder import Builder
from dy2st.ir.program import Program
from tests.autodiff.checking import check
from tests.ops.evaluate import emit
from tests.ops.test_registry import arguments, cases, has_derivative, is_float


@pytest.mark.parametrize(("op", "sample"), cases(has_derivative))
def test_derivatives_to_the_third_order(op, sample):
    b = Builder()
    b.block.results = emit(b, op, arguments(b, op, sample, False), sample.attributes)
    floats = [x for x in sample.operands if is_float(x)]
    size = sum(x.size for x in floats)
    check(Program({"main": b.block}), *sample.operands, order=3 if size <= 40 else 2)
