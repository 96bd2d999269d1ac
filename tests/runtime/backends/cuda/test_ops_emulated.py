"""Every op on the emulated device: on its samples it gives what the interpreter gives on the CPU."""

import pytest

from dy2st.ir.program import Program
from tests.ops.test_registry import built, cases
from tests.runtime.backends.cpu.op_inputs import chosen
from tests.runtime.backends.cuda.emulated import same


@pytest.mark.parametrize(("op", "sample"), cases())
def test_every_op(op, sample, request):
    same(Program({"main": built(op, sample, symbolic=bool(chosen(request.node.nodeid, 2)))}), sample.operands)


@pytest.mark.soak
@pytest.mark.parametrize("symbolic", [True, False], ids=["symbolic", "known"])
@pytest.mark.parametrize(("op", "sample"), cases())
def test_every_op_in_both_forms(op, sample, symbolic):
    same(Program({"main": built(op, sample, symbolic)}), sample.operands)
