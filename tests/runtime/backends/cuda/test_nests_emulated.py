"""Groups as kernels: each nest, on rows of all lengths, operands with gaps, empty ones, and what does not agree."""

import numpy as np
import pytest

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st.runtime.backends.cuda.emulation import namespace as xp
from dy2st.runtime.backends.cuda.fusion import NUMBERS
from dy2st.runtime.backends.cuda.program import CudaProgram
from dy2st.runtime.interpreter.planned import compile_plan
from tests.agreement import difference
from tests.runtime.backends.cpu.op_inputs import LAYOUTS
from tests.runtime.backends.cuda.emulated import on_device, on_host, outcome, same

SHAPES = ((1, 1), (3, 31), (40, 33), (300, 32), (2, 1000), (1, 9000), (700, 5))


def program_of(f, *inputs):
    static = paddle.jit.to_static(f, full_graph=True)
    static(*map(paddle.to_tensor, inputs))
    return static.concrete_program.main_program


def rows(x, y):
    h = paddle.tanh(x * y) - x.abs()
    e = paddle.exp(h - h.max(axis=1, keepdim=True))
    return h, e / e.sum(axis=1, keepdim=True), h.min(axis=1), (h > 0).astype("int32").sum(axis=1)


def columns(x, y):
    return (x * y).sum(axis=0), x.max(axis=0), (x + y).mean(axis=0), (x > y).any(axis=0)


def all_of_it(x, y):
    d = x - x.mean()
    return (d * d).mean(), paddle.sqrt((d * d).sum()), (x * y).max(), d / (1 + x.abs().max())


def both(x, y):
    h = F.softmax(x + y, axis=-1)
    return h, h.sum(axis=0), (h * x).sum()


@pytest.mark.parametrize("f", [rows, columns, all_of_it, both])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_of_all_lengths(f, dtype, rng):
    program = program_of(f, *(rng.normal(size=(2, 3)).astype(dtype) for _ in range(2)))
    for shape in SHAPES:
        run = same(program, [rng.normal(size=shape).astype(dtype) for _ in range(2)])
        assert run.counts.launches
        assert not run.counts.elsewhere


@pytest.mark.parametrize("f", [rows, columns, all_of_it, both])
@pytest.mark.parametrize("layout", sorted(LAYOUTS.keys() - {"unaligned", "read_only"}))
def test_operands_that_lie_otherwise(f, layout, rng):
    x, y = (rng.normal(size=(6, 40)).astype("float32") for _ in range(2))
    program = program_of(f, x, y)

    def laid(v):
        return {
            "transposed": lambda: v.T.copy().T,
            "with_gaps": lambda: xp.concatenate([v, v], axis=1)[:, ::2],
            "turned_round": lambda: xp.flip(xp.flip(v).copy()),
            "repeated": lambda: xp.broadcast_to(v[:1], v.shape),
            "offset": lambda: xp.concatenate([v[:1], v])[1:],
        }[layout]()

    given = [laid(v) for v in on_device([x, y])]
    wanted = compile_plan(program).run(on_host(given))
    assert not difference(on_host(CudaProgram(program, xp).run(given)), wanted, [x, y], exact=False)


def numbers(x, y):
    a, b = x.mean(), y.max()
    rate = paddle.sqrt(a * a + 1) * b
    c = rate - b * 0.5
    far = (x * rate).sum()
    return y * c, rate, (far + c).exp(), paddle.where(a > b, a, far) + a


def test_numbers_are_computed_together(rng):
    program = program_of(numbers, *(rng.random((3, 4)) for _ in range(2)))
    run = same(program, [rng.random((5, 6)) for _ in range(2)])
    assert not run.by_cupy
    of_numbers = [launcher.group for launcher in run.launchers if launcher.group.space is NUMBERS]
    assert len(of_numbers) == 2  # in front of what reads `rate`, and behind what makes `far`
    assert run.counts.launches == len(run.launchers)


def test_nothing_to_reduce_raises_as_on_the_cpu(rng):
    program = program_of(rows, *(rng.normal(size=(2, 3)) for _ in range(2)))
    run = same(program, [np.zeros((3, 0)), np.zeros((3, 0))])
    assert run.counts.elsewhere


def test_sums_are_the_same_bits_in_each_run(rng):
    x = on_device(rng.normal(size=(513, 77)).astype("float32"))
    run = CudaProgram(program_of(lambda x: (x.sum(), x.sum(axis=0), x.mean()), np.ones((2, 2), "float32")), xp)
    first = on_host(run.run([x]))
    for again in range(3):
        for a, b in zip(first, on_host(run.run([x]))):
            np.testing.assert_array_equal(a, b)


def test_random_numbers_have_the_bits_of_the_cpu():
    def f(x):
        return paddle.rand([7, 33]), paddle.randint(0, 1000, [100]), F.dropout(x, 0.4), paddle.randn([65]) * 2

    x = np.ones((5, 64), "float32")
    program = program_of(f, x)
    given = [x if v.type.__class__.__name__ == "TensorType" else 7 for v in program.block.arguments]
    run = same(program, given)
    assert run.counts.launches == len(run.launchers)
    uniform = [on_host(run.run(on_device(given)))[0], compile_plan(program).run(given)[0]]
    np.testing.assert_array_equal(*uniform)


def test_a_loop_is_driven_by_the_host(rng):
    def f(x):
        n = paddle.zeros([], "int64")
        while x.sum() < 100:
            x = x * 2 + 1
            n += 1
        return (x, n) if x.mean() > 50 else (-x, n)

    x = rng.random((3, 4)).astype("float32")
    run = same(program_of(f, x), [x])
    assert run.counts.launches > 4


def test_an_error_stays_on_the_user_s_line():
    def f(x, i):
        return (x * 2)[i] + 1

    program = program_of(f, np.ones((3, 4), "float32"), np.array(1))
    given = [np.ones((3, 4), "float32"), np.array(7)]
    wanted = outcome(lambda: compile_plan(program).run(given))
    found = outcome(lambda: CudaProgram(program, xp).run(on_device(given)))
    assert (type(found), str(found)) == (type(wanted), str(wanted))
    assert isinstance(found, IndexError)
