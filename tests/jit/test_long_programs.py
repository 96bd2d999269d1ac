"""Programs of many operations, each of what the one before made: nothing is done by depth, or again for each."""

import linecache
from time import process_time

import numpy as np
import pytest

import dy2st as paddle
from dy2st.ir.program import tensor_type
from dy2st.runtime.backends.cpu.llvm_ir import function_builder
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan

X = np.arange(700, dtype="float32")


def written(lines, arguments="x"):
    """Return a function of that many lines, as a converter reads it."""
    text = f"def f({arguments}):\n" + "".join(f"    {line}\n" for line in lines) + "    return x\n"
    name = f"long_{abs(hash(text))}.py"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"paddle": paddle}
    exec(compile(text, name, "exec"), space)
    return space["f"]


def traced(function, *inputs):
    static = paddle.jit.to_static(function, full_graph=True)
    with paddle.no_grad():
        results = static(*map(paddle.to_tensor, inputs))
    return static, results


def test_slices_of_slices():
    static, result = traced(written(["x = x[1:]"] * 600), X)
    np.testing.assert_array_equal(result.numpy(), X[600:])
    assert len(static.concrete_program.main_program.block.operations) == 600


def test_a_slice_of_slices_sees_what_is_written_into_the_first():
    def f(x):
        x = x + 0
        y = x
        for _ in range(40):
            y = y[1:]
        x[140] = -1.0
        return y * 1

    unrolled = written(["x = x + 0", "y = x", *["y = y[1:]"] * 40, "x[140] = -1.0", "x = y * 1"])
    want = f(paddle.to_tensor(X)).numpy()
    assert want[100] == -1
    np.testing.assert_array_equal(traced(unrolled, X)[1].numpy(), want)


def test_extents_of_steps_of_steps_stay_short():
    f = written(["x = paddle.concat([x, y])", "x = x[::2]"] * 60, "x, y")
    static, result = traced(f, X, X)
    np.testing.assert_array_equal(result.numpy(), f(paddle.to_tensor(X), paddle.to_tensor(X)).numpy())
    program = static.concrete_program.main_program
    assert max(len(str(tensor_type(v))) for operation in program.block.operations for v in operation.results) < 300


@pytest.mark.one_tier("looks at native code while it is made")
def test_code_of_a_long_program_is_cut_into_blocks(monkeypatch):
    static, _ = traced(written(["x = x[1:]"] * 100), X)
    program = static.concrete_program.main_program
    longest = []
    text = function_builder.LLVMFunction.text

    def measured(self):
        longest.append(max(len(part.splitlines()) for part in text(self).split(":\n")))
        return text(self)

    monkeypatch.setattr(function_builder.LLVMFunction, "text", measured)
    np.testing.assert_array_equal(NativePlan(program).run([X])[0], compile_plan(program).run([X])[0])
    assert 50 < max(longest) < 400


@pytest.mark.slow
def test_time_grows_with_length_and_not_faster():
    seconds = []
    for count in (300, 1200):
        start = process_time()
        traced(written(["x = x[1:]", "while x.sum() < 0:", "    x = x + 1"] * count), np.ones(5000, "float32"))
        seconds.append(process_time() - start)
    assert seconds[1] < 10 * seconds[0]
