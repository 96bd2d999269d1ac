"""Small tensors, whose elements are registers: every form of operation on them, and where they leave registers."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.autodiff.programs import vjp
from dy2st.ir.program import Operation
from dy2st.passes.specialize_shapes import narrowed
from dy2st.runtime.backends.cpu.fusion.grouping import schedule
from dy2st.runtime.backends.cpu.fusion.scalarized import is_in_registers
from dy2st.runtime.backends.cpu.lowering import prepared
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.backends.cpu.python_abi import cpython_symbols
from dy2st.runtime.interpreter.planned import compile_plan
from dy2st.static import InputSpec
from tests.autodiff.building import INT, VECTOR, counted_while, program
from tests.runtime.backends.cpu.native import runnable
from tests.runtime.backends.cpu.test_same_as_interpreter import compare


def program_of(f, *inputs, shapes=None):
    """Return the Program of a function whose inputs have the extents of these arrays, or the given shapes."""
    shapes = shapes or [x.shape for x in inputs]
    spec = [InputSpec(list(s), str(x.dtype)) for s, x in zip(shapes, inputs, strict=True)]
    static = paddle.jit.to_static(f, full_graph=True, input_spec=spec)
    static(*map(paddle.to_tensor, inputs))
    return static.concrete_program.main_program


def agree(program, *inputs):
    native = NativePlan(program)
    compare(native.run(list(inputs)), compile_plan(program).run(list(inputs)))
    return native


def steps_in_registers(program):
    ready = prepared(program)
    return [s.name for s in schedule(ready.block) if isinstance(s, Operation) and is_in_registers(s)]


def takes_memory(native):
    """Say whether code asks for blocks of memory."""
    text = native.unit.module.text()
    return "@dy2st.allocate" in text or "@dy2st.room" in text


def moves(x, y):
    z = x.clone()
    z[1] = y[0]
    a, b = paddle.split(x, 2, axis=1)
    return (
        (x[0], x[-1, 1], x[:, ::-1], x[1:, None], x.T, x.reshape([-1]), x.reshape([2, 2, 2])[:, 1]),
        (paddle.concat([x, y]), paddle.stack([x[0], y[1]], axis=1), a, b, z),
        (paddle.flip(x, [0]), paddle.roll(x, 1, axis=1), x.unsqueeze(0).squeeze(0), x.reshape([1, 8]).expand([2, 8])),
    )


def sums(x, y):
    return (
        (x.sum(), x.sum(axis=0), x.mean(axis=1, keepdim=True), x.max(axis=1), x.min(), x.prod(axis=0), x.mean()),
        ((x > y).all(), (x > y).any(axis=0), (x > 0).astype("int32").sum(), (x * 3).astype("int64").max(axis=0)),
        (x @ y.T, paddle.matmul(x, y, transpose_x=True), (x @ y.T) @ x),
    )


def elements(x, y):
    return (
        (x + y, x / y, -x, x * 2 - 1, paddle.maximum(x, y), paddle.where(x > y, x, y), x < y, (x * 5).astype("int32")),
        (paddle.exp(x), paddle.tanh(x), paddle.sin(x * 9), x.abs() ** 1.5, paddle.sqrt(x.abs()), x.sigmoid()),
        (paddle.zeros_like(x), paddle.ones_like(y), x + y[0], x * y[:, :1], x.square().sum(axis=1, keepdim=True) / x),
    )


@pytest.mark.parametrize("cpu", ["avx512", "avx2", "sse", "scalar"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("f", [moves, sums, elements], ids=["moves", "sums", "elements"])
def test_operations(f, dtype, cpu, monkeypatch, rng):
    if not runnable(cpu):
        pytest.skip(f"this CPU does not run {cpu}")
    monkeypatch.setenv("DY2ST_CPU", cpu)
    x, y = (rng.normal(size=(2, 4)).astype(dtype) for _ in range(2))
    program = program_of(f, x, y)
    native = agree(program, x, y)
    assert [call.name for call in native.host_calls] == []
    assert not takes_memory(native)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int32", "int64"])
def test_whole_numbers_and_booleans(dtype, rng):
    x, y = (rng.integers(0, 200, size=(3, 2)).astype(dtype) for _ in range(2))
    program = program_of(lambda x, y: (x[0], paddle.concat([x, y]), paddle.where(x == y, x, y), x.T, x != y), x, y)
    agree(program, x, y)


def test_special_values(rng):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45], "float32")
    program = program_of(lambda x: (x.max(), x[:4].min(), x.sign(), x * 0, x.sum(), paddle.exp(x), x == x[::-1]), x)
    agree(program, x)


def test_a_long_tensor_is_not_small(rng):
    x = rng.normal(size=(17,)).astype("float32")
    program = program_of(lambda x: (lambda y: (y, y[3:5] + 1))(x * 2), x)
    agree(program, x)
    assert "add" in steps_in_registers(program)
    assert "mul" not in steps_in_registers(program)


def test_they_meet_large_ones(rng):
    def f(x, b):
        y = x + b
        top = y.max(axis=0)
        return (
            y - top,
            paddle.nn.functional.softmax(x, axis=0),
            top * b,
            x @ b.reshape([3, 1]),
            paddle.sort(b),
            x[0] * b,
        )

    x, b = rng.normal(size=(9, 3)).astype("float32"), rng.normal(size=3).astype("float32")
    agree(program_of(f, x, b), x, b)
    agree(program_of(f, x, b, shapes=[(None, 3), (3,)]), x, b)


def test_rows_of_a_loop_nest_stay_in_it(rng):
    x = rng.normal(size=(4, 50)).astype("float32")
    program = program_of(lambda x: x - x.mean(axis=1, keepdim=True) * 2, x)
    agree(program, x)
    assert not {"mean", "mul", "sub"} & {*steps_in_registers(program)}


def carried(x, n):
    i = 0
    while i < n:
        if x.sum() > 10:
            x = x * 0.5
        else:
            x = paddle.stack([x[1] + 1, x[2] * x[0], x[0]])
        i += 1
    return x


def test_loops_and_branches_keep_them_in_registers(rng):
    x = np.array([1.0, 2.0, 3.0], "float32")
    program = program_of(carried, x, np.array(50))
    native = agree(program, x, np.array(50))
    assert not takes_memory(native)


@pytest.mark.parametrize("shape", [(3,), (None,)], ids=["known", "open"])
def test_what_enters_a_loop_may_know_more_extents_than_what_it_carries(shape, rng):
    x = np.array([1.0, 2.0, 3.0], "float32")
    agree(program_of(carried, x, np.array(7), shapes=[shape, ()]), x, np.array(7))


def test_a_branch_that_knows_and_one_that_does_not(rng):
    def f(x, y):
        z = x[:2] * 2 if y.sum() > 0 else paddle.concat([x, y])
        z = z + 1
        return z, z.sum()

    x, y = rng.normal(size=3).astype("float32"), np.ones(4, "float32")
    program = program_of(f, x, y, shapes=[(3,), (None,)])
    agree(program, x, y)
    agree(program, x, -y)


def test_lists_tuples_and_options_hold_them(rng):
    def f(x, n):
        items, last, i = [x], None, 0
        while i < n:
            items.append(items[-1] * 2 + x)
            if items[i].sum() > 3:
                last = items[i]
            pair = (items[i], x)
            x = pair[1] + pair[0] * 0.1
            i += 1
        items[0] = x
        first = items.pop(1)
        return items, paddle.stack(items), first, x if last is None else last + 1

    x = np.array([0.5, 0.25, -0.5], "float32")
    program = program_of(f, x, np.array(6))
    agree(program, x, np.array(6))


def test_functions_pass_them(rng):
    def power(x, n):
        if n <= 0:
            return paddle.ones([2, 2]) * 0.5
        return power(x @ x * 0.1, n - 1) + x

    x = rng.normal(size=(2, 2)).astype("float32")
    agree(program_of(power, x, np.array(5)), x, np.array(5))


def test_derivatives_of_a_loop_of_them(rng):
    def f(x, n):
        x.stop_gradient = False
        y, i = x, 0
        while i < n:
            y = paddle.stack([y[1], -y[0] * y[2], paddle.tanh(y).sum()])
            i += 1
        return paddle.grad((y * y).sum(), x)

    x = np.array([0.3, -0.2, 0.9], "float32")
    agree(program_of(f, x, np.array(4)), x, np.array(4))


def test_a_loop_that_ends_with_fewer_elements_than_it_begins_with(rng):
    """On the way back extents halve, and only the last one is known to be small."""

    def body(b, n, x):
        return counted_while(b, n, [x], lambda b, i, s: b.concat(b.tanh(s), b.sin(s), axis=0), changing=True)

    made = vjp(program([INT, VECTOR], body), (1,), [(0, False)])
    x, ct = rng.normal(size=3), rng.normal(size=24)
    _, *kept = compile_plan(made.forward).run([3, x])
    backward = narrowed(made.backward, {"N": 3})
    assert str(backward.block.results[0].type) == "float64[3]"
    agree(backward, *kept, ct)


def test_rows_of_a_loop_read_them_from_a_list(rng):
    """Every row may be a thread's; what is outside of the list would go to the interpreter."""

    def f(x, w, n):
        x.stop_gradient = False
        y = x
        while n > 0:
            w = w * 0.9
            y, n = paddle.sin(y) * 1.1 + y * w, n - 1
        return paddle.grad(y.sum(), x)

    x, w = rng.normal(size=20), rng.normal(size=1)
    agree(program_of(f, x, w, np.array(4), shapes=[(None,), (1,), ()]), x, w, np.array(4))


def test_rows_of_a_matrix_are_read_where_they_stand(rng):
    def f(x, n):
        total, i = paddle.zeros([3]), 0
        while i < n:
            total = total + x[i] * x[-1] - x[i, ::-1]
            i += 1
        return total, x[n - 1, 1]

    x = rng.normal(size=(40, 3)).astype("float32")
    program = program_of(f, x, np.array(5), shapes=[(None, 3), ()])
    native = agree(program, x, np.array(40))
    assert not takes_memory(native)
    assert "@dy2st.retain" not in native.unit.module.text()


def test_an_element_at_a_place_that_only_the_run_tells(rng):
    def f(x, i):
        y = x * 2
        y[i] = 7.0
        return x[i], x.reshape([2, 3])[0, i], paddle.index_select(x, i.reshape([1])), y, paddle.argmax(x), x.cumsum(0)

    x = rng.normal(size=6).astype("float32")
    agree(program_of(f, x, np.array(1)), x, np.array(-2))


def test_a_place_outside_raises_the_users_error():
    program = program_of(lambda x, i: x[i] * 2, np.ones(3, "float32"), np.array(1))
    native = NativePlan(program)
    assert native.run([np.arange(3, dtype="float32"), np.array(-1)])[0] == 4
    with pytest.raises(IndexError, match="3"):
        native.run([np.ones(3, "float32"), np.array(3)])


def test_an_array_of_another_shape_is_not_taken():
    native = NativePlan(program_of(lambda x: x * 2, np.ones((2, 3), "float32")))
    assert native.attempt([np.ones((3, 2), "float32")]) is None
    made = native.attempt([np.ones((2, 3), "float32")])
    assert made is not None
    assert made[0].shape == (2, 3)


def test_calls_through_ctypes_where_the_builtin_function_cannot_be_made(monkeypatch, rng):
    def f(x, b, n):
        return x @ x, b * 2, n + 1, x.sum() > 0, [x, x + 1]

    x, b, n = rng.normal(size=(2, 2)).astype("float32"), rng.normal(size=40), np.array(3)
    program = program_of(f, x, b, n)
    monkeypatch.setattr(cpython_symbols, "available", lambda: False)
    monkeypatch.setenv("DY2ST_CACHE_DIR", "")
    native = agree(program, x, b, n)
    assert native.attempt([x, b, n]) is None
    with pytest.raises(ValueError, match="takes 3 inputs"):
        native.run([x])
