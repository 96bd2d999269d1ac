"""Slots of the cotangents of lists: native code against the ops themselves."""

import numpy as np
import pytest

from dy2st import dtypes
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import lookup
from dy2st.ir.program import Program
from dy2st.ir.types import INT, ListType, TensorType, optional
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from dy2st.shapes import symbol

SLOTS = [(1, np.arange(3.0)), (0, None), (1, np.ones(3))]


def program_of(*names):
    """Return a Program that gives what each op makes of a list of slots and a number, and the list as it was."""
    b = Builder()
    slots = b.argument(ListType(optional(TensorType(dtypes.float64, (symbol("n"),)))))
    i = b.argument(INT)
    b.block.results = [*(b.operation(lookup(name), [slots, i], {}).results[0] for name in names), slots]
    return Program({"main": b.block})


def plain(value):
    if isinstance(value, list):
        return [plain(v) for v in value]
    return None if value[0] == 0 else value[1].tolist()


@pytest.mark.parametrize("names", [("list_take",), ("list_clear",), ("list_clear", "list_take", "list_clear")])
@pytest.mark.parametrize("i", [0, 1, 2, 3, 9])
def test_slots_are_read_and_cleared_as_the_ops_do(names, i):
    program = program_of(*names)
    native = NativePlan(program)
    assert native.host_calls == []
    for slots in (SLOTS, []):
        want = [plain(v) for v in compile_plan(program).run([list(slots), i])]
        assert [plain(v) for v in native.run([list(slots), i])] == want
