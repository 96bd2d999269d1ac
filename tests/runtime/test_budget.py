"""What a run may hold: MemoryError past it, in native code and in a plan, and all is given back."""

import gc
import mmap
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime import memory_budget
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan

MIB = 1 << 20


@pytest.fixture(autouse=True)
def restored():
    yield
    paddle.set_flags({memory_budget.FLAG: None})


def program_of(f, *given):
    static = paddle.jit.to_static(f, full_graph=True)
    with paddle.no_grad():
        static(*map(paddle.to_tensor, given))
    return static.concrete_program.main_program


def grows(x, n):
    outs = []
    for i in range(n):
        outs.append(x * i)
    return paddle.stack(outs)


def square(x, n):
    y = x.reshape([-1, 1]) * x
    return (y * n).sum()


def doubles(x, n):
    while n > 0:
        x, n = paddle.concat([x, x]), n - 1
    return x.sum()


def numbers(x, n):
    found = []
    while len(found) < n:
        found.append(len(found))
    return x + len(found)


X = np.ones(1024, "float32")
RUNS = {"a list": (grows, 3000), "a product": (square, 3), "a loop": (doubles, 12), "numbers": (numbers, 300_000)}


@pytest.mark.parametrize("made", [compile_plan, NativePlan], ids=["plan", "native"])
@pytest.mark.parametrize("name", RUNS)
def test_a_run_past_its_budget_is_a_memory_error_at_the_users_line(made, name):
    f, many = RUNS[name]
    ready = made(program_of(f, X, np.array(2)))
    small = [X[:5], np.array(2)]
    wanted = ready.run(small)[0]
    paddle.set_flags({memory_budget.FLAG: 2})
    for _ in range(3):
        with pytest.raises(MemoryError, match=r"a run may hold 2097152 bytes, and this is \d+") as caught:
            ready.run([X, np.array(many)])
        assert caught.traceback[-1].path.name == "test_budget.py"
        np.testing.assert_array_equal(ready.run(small)[0], wanted)


def test_a_refused_run_holds_nothing():
    plan, before = compile_plan(program_of(grows, X, np.array(2))), None
    paddle.set_flags({memory_budget.FLAG: 64})
    gc.collect()
    gc.disable()
    try:
        for _ in range(6):
            with pytest.raises(MemoryError):
                plan.run([np.ones(MIB, "float32"), np.array(1000)])
            here = int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE
            before = before or here
        assert here < before + 64 * MIB
    finally:
        gc.enable()


def test_what_waits_in_free_lists_goes_before_a_run_is_refused():
    native = NativePlan(program_of(lambda x, n: (x * 2).sum() + (x[: n // 2] * 3).sum(), X, np.array(2)))
    paddle.set_flags({memory_budget.FLAG: 8})
    for kib in (*range(1024, 4000, 64), *range(4000, 1024, -64)):  # each size is another block
        native.run([np.ones(kib << 8, "float32"), np.array(kib << 8)])
    assert native.elsewhere == 0


def test_a_run_within_its_budget_makes_and_drops_what_it_likes():
    def turns(x, n):
        while n > 0:
            x, n = x * 2 - x, n - 1
        return x

    x = np.ones(MIB // 8, "float32")
    plan = compile_plan(program_of(turns, x, np.array(2)))
    paddle.set_flags({memory_budget.FLAG: 3})
    np.testing.assert_array_equal(plan.run([x, np.array(50)])[0], x)


def test_views_of_inputs_are_not_the_runs():
    x = np.ones(4 * MIB, "float32")
    plan = compile_plan(program_of(lambda x: x.reshape([-1, 4])[::2].sum(), x))
    paddle.set_flags({memory_budget.FLAG: 1})
    assert plan.run([x])[0] == x.size // 2


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "2", True])
def test_a_flag_that_is_no_number_of_mebibytes_is_refused(wrong):
    with pytest.raises(ValueError, match="FLAGS_cpu_memory_limit_mb is a whole number of MiB"):
        paddle.set_flags({memory_budget.FLAG: wrong})


@pytest.mark.parametrize(("text", "wanted"), [("1000000", "1000000"), ("", "True"), ("a lot", "True not 'a lot'")])
def test_the_environment_says_how_many_bytes(text, wanted):
    code = (
        "import warnings\nwarnings.simplefilter('always')\nfrom dy2st.runtime import memory_budget as budget\n"
        "from dy2st.runtime.memory_budget import memory_of_machine as m\n"
        "print(budget.limit() == m() if budget.limit() != 1000000 else 1000000)"
    )
    environment = {**os.environ, "DY2ST_MEMORY_LIMIT": text}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    first, _, said = wanted.partition(" ")
    assert done.stdout.strip() == first
    assert said in done.stderr
