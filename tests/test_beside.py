"""The second run of every Program by the other tier finds what differs, and lets everything else pass."""

from collections import Counter

import numpy as np
import pytest

import dy2st as paddle
from dy2st.dtypes import float32
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import lookup
from dy2st.ir.program import Program
from dy2st.ir.types import TensorType
from dy2st.ops.control.host_call import Host
from dy2st.ops.elementwise.exponential import Exp
from dy2st.runtime.backends.cpu import shape_specialization
from dy2st.runtime.interpreter.planned import compile_plan
from tests.agreement import difference, is_exact
from tests.beside import Beside

pytestmark = pytest.mark.one_tier("watches runs by itself")


@pytest.fixture
def watching(monkeypatch):
    beside = Beside(1, "a test", Counter())
    beside.watch(monkeypatch)
    return beside


def program_of(function, *inputs):
    static = paddle.jit.to_static(function, full_graph=True)
    static(*map(paddle.to_tensor, inputs))
    return static.concrete_program.main_program


X = np.linspace(-1, 1, 5, dtype="float32")


def test_what_is_the_same_passes(watching):
    program_of(lambda x: (paddle.exp(x), x.sum()), X)
    assert watching.faults == []
    assert watching._counts["runs"] == 1


@pytest.mark.parametrize("backend", ["interpreter", "native"])
def test_a_tier_that_is_wrong_is_found(backend, watching, monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", backend)
    right = Exp.eval
    monkeypatch.setattr(Exp, "eval", lambda self, xp, x: right(self, xp, x) + xp.asarray(1, x.dtype))
    program_of(lambda x: paddle.exp(x) * 2, X)
    (fault,) = watching.faults
    assert fault.startswith("native code and the interpreter differ: result 0: ")
    assert "= exp(%" in fault


def test_a_tier_that_raises_alone_is_found(watching, monkeypatch):
    def broken(*args, **keywords):
        raise RuntimeError("no code")

    monkeypatch.setattr(shape_specialization, "native_code", broken)
    program_of(lambda x: x * 3 - 7.25, X)
    assert "no error and RuntimeError: no code" in watching.faults[0]


def test_an_error_of_both_is_raised_as_it_is(watching):
    program = program_of(lambda x, i: x[i], X, np.array([0, 1]))
    with pytest.raises(IndexError, match="index 9 is out of range"):
        compile_plan(program).run([X, np.array([9])])
    assert watching.faults == []
    assert watching._counts["runs"] == 2


def test_what_calls_python_runs_once(watching):
    seen = []

    def host(x):
        seen.append(x)
        return x

    b = Builder()
    x = b.argument(TensorType(float32, (5,)))
    b.block.results = b.operation(lookup("host_call"), [x], {"host": Host(host), "types": (x.type,)}).results
    compile_plan(Program({"main": b.block})).run([X])
    assert len(seen) == 1
    assert watching._counts["runs"] == 0


def test_of_a_share_few_runs_are_looked_at(monkeypatch):
    beside = Beside(2, "a test", Counter())
    beside.watch(monkeypatch)
    program = program_of(lambda x: x - 1, X)
    plans = [compile_plan(program) for _ in range(2)]
    before = beside._counts["runs"]
    for _ in range(4):
        for plan in plans:
            plan.run([X])
    assert beside._counts["runs"] - before == 2


@pytest.mark.parametrize(
    ("found", "wanted", "exact", "fault"),
    [
        ([X], [X.copy()], True, ""),
        ([X], [np.nextafter(X, 2)], True, "at [0], 5 of 5 elements"),
        ([X], [np.nextafter(X, 2)], False, ""),
        ([X], [X * 1.001], False, "at [0], 4 of 5 elements"),
        ([X], [X.astype("float64")], False, "float32[5] and float64[5]"),
        ([np.float32(np.nan)], [np.float32(np.nan)], True, ""),
        ([np.float32(np.inf)], [np.float32(-np.inf)], False, "inf"),
        ([np.arange(3)], [np.array([0, 1, 3])], False, "at [2], 1 of 3 elements"),
        ([1], [1.0], False, "int and float"),
        ([True], [False], False, "True and False"),
        ([[X, X]], [[X]], False, "2 items and 1"),
        ([X], [X, X], False, "1 results and 2"),
        ([], ValueError("no"), False, "no error and ValueError: no"),
        (ValueError("a"), ValueError("b"), False, "ValueError: a and ValueError: b"),
        (ValueError("a"), ValueError("a"), False, ""),
    ],
)
def test_how_much_outcomes_may_differ(found, wanted, exact, fault):
    said = difference(found, wanted, [X], exact=exact)
    assert fault in said
    assert bool(fault) == bool(said)


def test_what_cancels_leaves_the_rounding_of_its_terms():
    assert difference([np.float32(3e-8)], [np.float32(1e-8)], [X], exact=False) == ""
    assert difference([np.float32(3e-8)], [np.float32(1e-8)], [X * 1e-6], exact=False)


@pytest.mark.parametrize(
    ("function", "exact"),
    [
        (lambda x: x.reshape([5, 1]) * 2 + x[::-1], True),
        (lambda x: paddle.rand([3]), True),
        (lambda x: paddle.randn([3]), False),
        (lambda x: x.tanh(), False),
        (lambda x: x.mean(), False),
    ],
)
def test_which_programs_give_equal_bits(function, exact):
    assert is_exact(program_of(function, X)) is exact
