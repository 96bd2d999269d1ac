"""Native runs that cannot go on after something was seen: the interpreter takes over without doing that again."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st import dtypes
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import lookup
from dy2st.ir.parser import parse
from dy2st.ir.program import Program
from dy2st.ir.types import INT, TensorType
from dy2st.ops.control.host_call import Host
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.backends.cpu.python_abi.deoptimize import EffectOutcome

LARGE = 2**62


@pytest.fixture(autouse=True)
def _natively(monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", "native")


def grow(x, turns):
    k = 1
    for i in range(turns):
        k = k * 1000
        print(i, k)
    return x.sum(), k


@pytest.mark.parametrize("turns", [3, 6, 7, 12])
def test_an_int_that_outgrows_64_bits_between_prints(turns, capsys):
    static, x = paddle.jit.to_static(grow), paddle.to_tensor([1.0, 2.0])
    assert static(x, turns)[1] == 1000**turns
    assert capsys.readouterr().out == "".join(f"{i} {1000 ** (i + 1)}\n" for i in range(turns))


def test_what_an_earlier_run_printed_is_printed_again(capsys):
    static, x = paddle.jit.to_static(grow), paddle.to_tensor([1.0, 2.0])
    for turns in (2, 2, 8, 2, 8):
        static(x, turns)
        assert capsys.readouterr().out.splitlines()[-1] == f"{turns - 1} {1000**turns}"


def test_the_largest_of_nothing_raises_after_a_print(capsys):
    @paddle.jit.to_static
    def f(x):
        print("before")
        y = x.max()
        print("after")
        return y

    with pytest.raises(ValueError, match=r"max: axis 0 of a tensor of shape \[0\] is empty"):
        f(paddle.zeros([0]))
    assert capsys.readouterr().out == "before\n"


def test_the_first_of_two_errors_is_raised():
    @paddle.jit.to_static
    def f(x, n):
        y = (x * 2).max()
        return y + 7 // n

    assert [float(f(paddle.ones([2]), n)) for n in (1, 2)] == [9.0, 5.0]  # the second makes any int of `n`
    with pytest.raises(ValueError, match="max: axis 0"):
        f(paddle.zeros([0]), 0)
    with pytest.raises(ZeroDivisionError, match="by zero"):
        f(paddle.ones([2]), 0)


def test_extents_below_zero_raise_before_a_print(capsys):
    @paddle.jit.to_static
    def f(n):
        y = paddle.full([n, 2], 1.0)
        print("after")
        return y

    assert f(paddle.to_tensor(1)).shape == [1, 2]
    capsys.readouterr()
    with pytest.raises(ValueError, match=r"the extents of a new tensor must not be negative: \[-1, 2\]"):
        f(paddle.to_tensor(-1))
    assert capsys.readouterr().out == ""


def test_python_functions_are_called_once():
    seen = []

    def host(a):
        seen.append(a.tolist())
        return a * 2

    b = Builder()
    x, k = b.argument(TensorType(dtypes.float32, (2,))), b.argument(INT)
    for _ in range(3):
        (x,) = b.operation(lookup("host_call"), [x], {"host": Host(host), "types": (x.type,)}).results
        k = b.scalar_mul(k, 4)
    b.block.results = [x, k]
    plan = NativePlan(Program({"main": b.block}))
    made, large = plan.run([np.ones(2, "float32"), LARGE])
    assert (made.tolist(), large, seen) == ([8.0, 8.0], LARGE * 64, [[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]])


def test_an_error_that_was_caught_is_caught_again(capsys):
    @paddle.jit.to_static
    def f(x, k):
        for v in x:
            try:
                print("try")
                if v > 1:
                    raise KeyError("large")
            except KeyError:
                print("caught")
                k = k * 4
        return k

    assert f(paddle.to_tensor([1.0, 2.0, 3.0]), LARGE) == LARGE * 16
    assert capsys.readouterr().out == "try\ntry\ncaught\ntry\ncaught\n"


def test_outcomes_keep_their_arrays():
    array = np.ones(2)
    outcome = EffectOutcome.of([array])
    array[0] = 5
    assert outcome.given()[0].tolist() == [1.0, 1.0]


def test_outcomes_raise_their_error():
    with pytest.raises(OSError, match="closed"):
        EffectOutcome(error=OSError("closed")).given()


def test_an_effect_with_one_result_gives_it_again():
    program = parse(
        'program main\nfunc main(%0: float64[3], %1: int) {\n  %2: float64[3] = all_reduce(%0) {reduction="max", '
        'ranks=(0,), at=("", 0)}\n  %3: int = scalar_mul(%1, %1)\n  return %2, %3\n}\n'
    )
    for number in (3, LARGE):
        found = NativePlan(program).run([np.arange(3.0), number])
        np.testing.assert_array_equal(found[0], np.arange(3.0))
        assert found[1] == number * number
