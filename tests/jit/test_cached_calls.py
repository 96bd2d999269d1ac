"""A call of a kind that was seen before is recognised by generated code, and never taken for another one."""

import threading
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st import nn
from dy2st.jit.dispatch import concrete_program, inline_cache

T = paddle.to_tensor


def scaled(x: Any, k: Any) -> Any:
    return x * k


class Model(nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.k = 2.0
        self.parts = [1, 2]

    def forward(self, x, scale=1.0, *more, bias=None, **named):
        y = self.linear(x) * self.k * scale + sum(self.parts)
        for m in more:
            y = y + m
        for name in named:
            y = y + named[name]
        return y if bias is None else y + bias


def outcome(f: Any, *args: Any, **keywords: Any) -> Any:
    try:
        return f(*args, **keywords).tolist()
    except Exception as error:
        return type(error).__name__, str(error)


X, Y = [[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]
CALLS = (
    lambda f: outcome(f, T(X)),
    lambda f: outcome(f, T(Y)),
    lambda f: outcome(f, np.array(X, "float32")),
    lambda f: outcome(f, T(X), 2.0),
    lambda f: outcome(f, T(X), scale=3.0),
    lambda f: outcome(f, x=T(X), bias=T([1.0, 2.0])),
    lambda f: outcome(f, T(X), 1.0, T([1.0]), 5),
    lambda f: outcome(f, T(X), other=T([2.0]), bias=1),
    lambda f: outcome(f, T(X)[:, :2]),
    lambda f: outcome(f, T([1.0, 2.0])),
    lambda f: outcome(f),
)


@pytest.mark.parametrize("grad", [True, False])
def test_every_way_to_call_gives_what_eager_gives_however_often(grad: bool) -> None:
    eager = Model()
    static = paddle.jit.to_static(Model(), full_graph=True)
    static.set_state_dict(eager.state_dict())
    with paddle.set_grad_enabled(grad):
        for _ in range(4):
            for call in CALLS:
                assert call(static) == call(eager)


def doubled(layer: Any, inputs: Any, output: Any) -> Any:
    return output * 2


def recognised(static: Any) -> int:
    """Return how many kinds of call are recognised."""
    return sum(len(found) for found in static._seen.values())


@pytest.mark.parametrize(
    ("change", "undo"),
    [
        (lambda m: setattr(m, "k", 5.0), lambda m: setattr(m, "k", 2.0)),
        (lambda m: m.parts.append(7), lambda m: m.parts.pop()),
        (lambda m: m.linear.register_forward_post_hook(doubled), lambda m: m.linear._forward_post_hooks.clear()),
        (lambda m: setattr(m.linear, "bias", None), lambda m: None),
        (lambda m: setattr(m, "linear", nn.Linear(2, 2, bias_attr=False)), lambda m: None),
        (lambda m: m.linear.weight.set_value(paddle.ones([2, 2])), lambda m: None),
        (lambda m: m.to(dtype="float64"), lambda m: m.to(dtype="float32")),
        (lambda m: setattr(m.linear.weight, "stop_gradient", True), lambda m: None),
    ],
)  # fmt: skip
def test_what_changes_after_a_call_was_recognised_is_seen(change: Any, undo: Any) -> None:
    model = paddle.jit.to_static(Model(), full_graph=True)
    x = T(X)
    for _ in range(3):
        model(x)
    assert recognised(model.forward) == 1
    for act in (change, undo):
        act(model)
        x = x.astype(model.linear.weight.dtype)
        for _ in range(3):
            assert model(x).tolist() == model.forward.dygraph_function(x).tolist()


@pytest.mark.parametrize("others", [1, inline_cache.MOST_COMPARED])
def test_a_tensor_given_twice_is_not_taken_for_two(others: int) -> None:
    def write(x, *more):
        x[0] = 7.0
        return more[-1] + 0

    static = paddle.jit.to_static(write, full_graph=True)
    for _ in range(3):
        more = [T([2.0]) for _ in range(others)]
        assert static(T([1.0]), *more).tolist() == [2.0]
        x = T([1.0])
        assert static(x, *more[1:], x).tolist() == [7.0]


def test_a_call_is_recognised_from_the_third_on_and_counted() -> None:
    static = paddle.jit.to_static(scaled, full_graph=True)
    seen = []
    for _ in range(3):
        static(T([2.0]), 3.0)
        seen.append(recognised(static))
    assert seen == [0, 1, 1]
    assert static.concrete_program.calls == 3


def test_an_input_spec_is_held_against_calls_that_are_recognised() -> None:
    spec = [paddle.static.InputSpec([None, 2], "float32")]
    static = paddle.jit.to_static(lambda x: x * 2, input_spec=spec, full_graph=True)
    for _ in range(3):
        assert static(T(X)).tolist() == [[2.0, 4.0]]
    assert recognised(static) == 1
    with pytest.raises(ValueError, match="InputSpec"):
        static(T([[1.0, 2.0, 3.0]]))


def test_random_numbers_go_on_where_a_call_is_recognised() -> None:
    static = paddle.jit.to_static(lambda x: x + paddle.rand([2]), full_graph=True)
    paddle.seed(5)
    got = [static(T([0.0, 0.0])).tolist() for _ in range(5)]
    paddle.seed(5)
    assert got == [paddle.rand([2]).tolist() for _ in range(5)]


def test_an_error_of_a_recognised_call_is_as_the_first() -> None:
    def check(x, k):
        assert x.sum() < k, "too much"
        return x

    static = paddle.jit.to_static(check, full_graph=True)
    for _ in range(3):
        assert static(T([1.0]), 5.0).tolist() == [1.0]
    for _ in range(2):
        with pytest.raises(AssertionError, match="too much"):
            static(T([9.0]), 5.0)


def test_a_program_with_too_much_state_takes_the_slow_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inline_cache, "MOST_LINES", 3)
    static = paddle.jit.to_static(scaled, full_graph=True)
    assert [static(T([2.0]), 3.0).tolist() for _ in range(4)] == [[6.0]] * 4
    assert recognised(static) == 0


def test_a_program_with_much_state_is_recognised_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concrete_program, "MUCH_STATE", 1)
    monkeypatch.setattr(concrete_program, "CALLS_BEFORE", 4)
    layer = paddle.nn.Linear(2, 2)
    static = paddle.jit.to_static(lambda x: layer(x), full_graph=True)
    found = []
    for _ in range(6):
        static(T([[1.0, 2.0]]))
        found.append(recognised(static))
    assert found == [0, 0, 0, 0, 1, 1]


def test_two_threads_call_what_is_being_recognised() -> None:
    static = paddle.jit.to_static(lambda x, k: x * k + 1, full_graph=True)
    wrong: list[Any] = []

    def work(k: float) -> None:
        for i in range(200):
            found = static(T([float(i)]), k).tolist()
            if found != [i * k + 1]:
                wrong.append((i, k, found))

    threads = [threading.Thread(target=work, args=(k,)) for k in (1.0, 2.0, 3.0)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_calls_under_auto_cast_are_recognised_as_such() -> None:
    static = paddle.jit.to_static(lambda x, w: (x @ w).sum(), full_graph=True)
    x, w = T([[1.0, 2.0]]), T([[1.0], [0.5]])
    for _ in range(3):
        assert static(x, w).dtype is paddle.float32
        with paddle.amp.auto_cast(level="O2", dtype="float16"):
            assert static(x, w).dtype is (x @ w).sum().dtype
    assert recognised(static) == 2


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", "native")


@pytest.mark.usefixtures("native")
def test_native_code_of_a_recognised_call_takes_only_arrays_of_its_kind() -> None:
    def centred(x: Any) -> Any:
        return x * x - x.mean()

    static = paddle.jit.to_static(centred, full_graph=True)
    rows = np.arange(12, dtype="float32").reshape(3, 4)
    given = (rows, rows[:, ::2], rows[:0], rows[:1], rows[0], rows.astype("float64"), rows.T, rows, rows[1:])
    with np.errstate(all="ignore"):
        for _ in range(4):
            for array in given:
                wanted = centred(T(array))
                found = static(T(array))
                assert found.dtype is wanted.dtype
                np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-6)
    assert recognised(static) == 3  # two numbers of axes, and another dtype


@pytest.mark.usefixtures("native")
def test_the_error_of_a_native_run_of_a_recognised_call_is_that_of_the_interpreter() -> None:
    static = paddle.jit.to_static(lambda x, i: paddle.gather(x, i), full_graph=True)
    for _ in range(4):
        assert static(T([1.0, 2.0]), T([1])).tolist() == [2.0]
    for _ in range(2):
        with pytest.raises(IndexError):
            static(T([1.0, 2.0]), T([7]))
    assert static(T([1.0, 2.0]), T([0])).tolist() == [1.0]
    assert static.concrete_program.calls == 7


STRUCTURES = (
    lambda x: (x, [x + 1, (x * 2,)]),
    lambda x: {"sum": x.sum(), 3: [x]},
    lambda x: (),
    lambda x: [],
    lambda x: (len(x), x + 1, "word", None),
    lambda x: {(1, 2): x * 2},
)


@pytest.mark.parametrize("function", STRUCTURES)
@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_what_a_recognised_call_gives_has_the_structure_of_the_function(
    function: Any, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plain(x: Any) -> Any:
        if isinstance(x, paddle.Tensor):
            return x.tolist()
        if isinstance(x, dict):
            return {k: plain(v) for k, v in x.items()}
        return type(x)(map(plain, x)) if isinstance(x, (list, tuple)) else x

    monkeypatch.setenv("DY2ST_BACKEND", backend)
    static = paddle.jit.to_static(function, full_graph=True)
    x = T([1.0, 2.0])
    results = [static(x) for _ in range(4)]
    assert [plain(found) for found in results] == [plain(function(x))] * 4


def test_calls_are_recognised_in_each_mode_by_turns() -> None:
    static = paddle.jit.to_static(scaled, full_graph=True)
    x = T([2.0], stop_gradient=False)
    for _ in range(5):
        assert static(x, 3.0).stop_gradient is False
        with paddle.no_grad():
            assert static(x, 3.0).stop_gradient is True
            assert static(x, k=3.0).tolist() == [6.0]
    assert recognised(static) == 3


def test_no_call_is_recognised_where_programs_are_turned_off() -> None:
    static = paddle.jit.to_static(scaled, full_graph=True)
    for _ in range(3):
        static(T([2.0]), 3.0)
    paddle.jit.enable_to_static(False)
    try:
        static(T([2.0]), 3.0)
    finally:
        paddle.jit.enable_to_static(True)
    assert static.concrete_program.calls == 3


class Counting(nn.Layer):
    """A layer that writes what it can: a buffer, an attribute, a gradient, elements of an argument, a list."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = self.create_parameter([2], default_initializer=nn.initializer.Constant(1.5))
        self.register_buffer("seen", paddle.zeros([2]))
        self.calls, self.last, self.noted = 0, None, [0]

    def forward(self, x: Any, out: Any) -> Any:
        loss = (self.weight * x).sum()
        loss.backward()
        self.seen[:] = self.seen + x
        self.calls += 1
        self.last = x * 2
        self.noted[0] += 1
        out[0] = loss.detach()
        return {"loss": loss, "calls": self.calls}


@pytest.mark.parametrize("backend", ["native", "interpreter"])
@pytest.mark.parametrize("clears", [False, True])
def test_a_recognised_call_writes_what_the_function_writes(
    backend: str, clears: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", backend)

    def run(layer: Any) -> Any:
        found = []
        view = layer.seen[1:]
        for i in range(6):
            out = T([0.0, float(i)])
            made = layer(T([1.0, float(i)]), out)
            found.append((float(made["loss"]), made["calls"], out.tolist(), layer.seen.tolist(), view.tolist(),
                          layer.weight.grad.tolist(), layer.last.tolist(), layer.noted[0], layer.calls))  # fmt: skip
            if clears:
                layer.weight.clear_gradient(set_to_zero=False)
        return found

    assert run(paddle.jit.to_static(Counting(), full_graph=True)) == run(Counting())


@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_a_recognised_call_that_raises_leaves_what_eager_mode_leaves(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", backend)

    def outcomes(static: bool) -> Any:
        seen = paddle.zeros([2])

        def note(x: Any, i: Any) -> Any:
            seen.add_(x)
            return paddle.gather(x, i)

        run = paddle.jit.to_static(note, full_graph=True) if static else note
        found: list[Any] = []
        for i in (0, 1, 0, 5, 1):
            try:
                found.append(run(T([1.0, 2.0]), T([i])).tolist())
            except IndexError:
                found.append("IndexError")
            found.append(seen.tolist())
        return found

    assert outcomes(True) == outcomes(False)
