"""Kernels that take long give Python's lock away: what runs after them in Python has it, and other threads had it."""

import ctypes
import threading

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu.compile_link.code_loader import compile_text, provide
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition, gathered
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import RANGE, forked


@pytest.fixture(autouse=True)
def threads():
    paddle.set_num_threads(2)


def _long(x):
    return paddle.tanh(paddle.exp(paddle.sin(x)))


def _native(f, *shapes):
    static = paddle.jit.to_static(f, full_graph=True)
    with paddle.no_grad():
        static(*(paddle.zeros(shape) for shape in shapes))
    return NativePlan(static.concrete_program.main_program)


def _held(count, cost):
    """Return who had Python's lock when each unit of a job was done that began with it."""
    body = LLVMFunction("body", [("ptr", "%held"), *RANGE], linkage="internal")
    provide("test.holds_lock", lambda: ctypes.cast(ctypes.pythonapi.PyGILState_Check, ctypes.c_void_p).value or 0)
    with body.loop("%to", start="%from") as i:
        held = body.call("i32", "@test.holds_lock")
        body.store("i32", held, body.offset("%held", i, "i32"))
    body.ret()
    run = LLVMFunction("run", [("ptr", "%held"), ("i64", "%n"), ("i64", "%cost")])
    part = forked(run, "body", [("ptr", "%held")], "%n", "%cost")
    run.call("void", "@dy2st.take_lock")
    run.ret()
    declared = (Definition("dy2st.take_lock", "declare void @dy2st.take_lock()"),
                Definition("test.holds_lock", "declare i32 @test.holds_lock()"))  # fmt: skip
    body_and_run = [Definition("body", body.text(), declared), Definition("run", run.text(), (part,))]
    code = compile_text(gathered(body_and_run))
    held = np.full(count, -1, "int32")
    kinds = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    ctypes.PYFUNCTYPE(None, *kinds)(code.address("run"))(held.ctypes.data, count, cost)
    return held


@pytest.mark.parametrize(("cost", "held"), [(10, 1), (10**6, 0)])
def test_the_lock_is_given_away_where_it_takes_long(cost, held):
    assert (_held(1000, cost) == held).all()
    assert ctypes.pythonapi.PyGILState_Check() == 1


def test_python_is_called_after_a_kernel_that_took_long(capsys):
    def f(x):
        y = _long(x)
        print(y[0, 0])
        return _long(y) + 1

    native = _native(f, [2, 3])
    capsys.readouterr()
    for made in [native.run([np.zeros((1000, 1000), "float32")]) for _ in range(3)]:
        assert made[0].shape == (1000, 1000)
    assert capsys.readouterr().out.count("0.76159") == 3


def test_an_error_after_a_kernel_that_took_long():
    def f(x, i):
        return _long(x)[i]

    static = paddle.jit.to_static(f, full_graph=True)
    with paddle.no_grad():
        static(paddle.zeros([2, 3]), 1)
        static(paddle.zeros([2, 3]), 0)  # another number: now it is an input
    native = NativePlan(static.concrete_program.main_program)
    for _ in range(3):
        with pytest.raises(IndexError, match="index 7000 is out of range"):
            native.run([np.zeros((1000, 1000), "float32"), 7000])
    assert native.run([np.zeros((1000, 1000), "float32"), 5])[0].shape == (1000,)


def test_arguments_that_are_lists():
    def f(x):
        rows = []
        for row in x:
            rows.append(_long(row))
        return rows

    native = _native(f, [2, 3])
    for made in [native.run([np.zeros((3, 300000), "float32")]) for _ in range(3)]:
        assert [row.shape for row in made[0]] == [(300000,)] * 3


def test_threads_that_take_the_lock_in_turns():
    inner = _native(lambda x: _long(x).sum(), [2, 3])
    x = np.zeros((1000, 1000), "float32")
    seen = []
    native = _native(lambda y: _long(y).mean(), [2, 3])
    want = float(inner.run([x])[0])
    threads = [threading.Thread(target=lambda: seen.append(float(inner.run([x])[0]))) for _ in range(4)]
    for thread in threads:
        thread.start()
    native.run([x])
    for thread in threads:
        thread.join()
    assert seen == [want] * 4
