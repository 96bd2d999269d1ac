"""Where the loops of NumPy's ufuncs stand, and what stands for one that this NumPy does not have."""

import ctypes

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.backends.cpu.python_abi import ufunc_loops
from dy2st.runtime.interpreter.planned import compile_plan
from tests.runtime.backends.cpu.test_same_as_interpreter import compare, program_of


def test_a_loop_is_the_ufuncs():
    loop = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(ufunc_loops.address("ufunc.numpy.add.dd->d.loop"))
    x, y, out = np.arange(5.0), np.ones(5), np.zeros(5)
    places = (ctypes.c_void_p * 3)(*(a.ctypes.data for a in (x, y, out)))
    loop(
        places,
        (ctypes.c_ssize_t * 1)(5),
        (ctypes.c_ssize_t * 3)(8, 8, 8),
        ufunc_loops.address("ufunc.numpy.add.dd->d.data"),
    )
    np.testing.assert_array_equal(out, x + 1)


@pytest.mark.parametrize("name", ["numpy.add.dq->d", "numpy.no_such_ufunc.d->d", "numpy.pi.d->d"])
def test_no_loop_stands_at_0(name):
    assert ufunc_loops.address(f"ufunc.{name}.loop") == 0
    assert ufunc_loops.address(f"ufunc.{name}.data") == 0


def test_a_module_that_is_not_there_has_none(monkeypatch):
    monkeypatch.setitem(ufunc_loops._MODULES, "other", "numpy.no_such_module")
    assert ufunc_loops.address("ufunc.other.inv.d->d.loop") == 0


def test_fields_that_are_not_what_python_says_are_not_trusted():
    fields = ufunc_loops._Fields.from_buffer_copy(ctypes.string_at(id(np.add), ctypes.sizeof(ufunc_loops._Fields)))
    at = np.add.types.index("dd->d")
    assert ufunc_loops._are_right(fields, np.add, at)
    fields.inputs += 1
    assert not ufunc_loops._are_right(fields, np.add, at)
    fields.inputs -= 1
    fields.types = ctypes.cast(ctypes.create_string_buffer(200), ctypes.POINTER(ctypes.c_char))
    assert not ufunc_loops._are_right(fields, np.add, at)


def test_without_the_loop_the_interpreters_arithmetic_runs(rng, monkeypatch):
    monkeypatch.setattr(ufunc_loops, "_found", lambda *_: (0, 0))
    x = rng.normal(size=(2, 4, 4))
    program = program_of(paddle.linalg.inv, x)
    compare(NativePlan(program).run([x]), compile_plan(program).run([x]))
