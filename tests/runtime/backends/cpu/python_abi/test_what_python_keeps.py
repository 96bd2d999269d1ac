"""Errors and Python functions keep what native code gives them for longer than it keeps the memory."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st import dtypes
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import lookup
from dy2st.ir.program import Program
from dy2st.ir.types import TensorType
from dy2st.ops.control.host_call import Host
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan


def test_what_was_written_before_an_error_lives_on(guarded, monkeypatch):
    """The error carries the state that is written back, and is handled after the memory of the run is gone."""
    monkeypatch.setenv("DY2ST_BACKEND", "native")

    class Counter:
        state = paddle.zeros([40])

    def f(x, counter):
        counter.state = counter.state * 2 + x
        if x.sum() < 0:
            raise ValueError("less")
        return x * 2

    counter, static = Counter(), paddle.jit.to_static(f, full_graph=True)
    for value in (1.0, -1.0, 3.0):
        x = paddle.full([40], value)
        if value < 0:
            with pytest.raises(ValueError, match="less"):
                static(x, counter)
        else:
            assert (static(x, counter).numpy() == 2 * value).all()
    assert (counter.state.numpy() == 5).all()


@pytest.mark.parametrize("ready", [NativePlan, compile_plan])
def test_python_may_keep_what_it_is_given(ready):
    seen = []

    def host(a):
        seen.append(a)
        return a * 2

    b = Builder()
    x = b.argument(TensorType(dtypes.float32, (200,)))
    y = b.add(x, x)
    (z,) = b.operation(lookup("host_call"), [y], {"host": Host(host), "types": (x.type,)}).results
    b.block.results = [b.add(z, z), b.neg(y)]
    plan = ready(Program({"main": b.block}))
    for value in (1, 2, 3):
        plan.run([np.full(200, value, "float32")])
    assert [set(a.tolist()) for a in seen] == [{2.0}, {4.0}, {6.0}]
