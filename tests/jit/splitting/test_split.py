"""How a function is split: what is said of it, what its parts keep, and what is split no further."""

import functools
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import TraceError
from dy2st.jit.static_function import FallbackWarning, PartFunction
from dy2st.nn import functional as F


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        yield


def cut(x: Any, raises: bool = False) -> Any:
    y = paddle.exp(x) * 2 - 1
    k = y.numpy().sum()
    z = paddle.sin(y) + 1
    if raises:
        raise ValueError("asked for")
    w = paddle.matmul(z, x)
    return w * 2 + k


def _called(function: Callable[..., Any], times: int = 3) -> Any:
    made = paddle.jit.to_static(function)
    for _ in range(times):
        made(paddle.ones([2, 2]))
    return made


def _programs(made: Any) -> list[int]:
    return [len(part.program_cache) for part in made._splitting.parts]


def _each(made: Any) -> None:
    for n in (2, 3, 2):
        made(paddle.ones([n, n]))


def test_warns_once_that_it_is_split() -> None:
    made = paddle.jit.to_static(cut)
    with pytest.warns(FallbackWarning, match=r"`cut` \(.*\) is split: (.|\n)*numpy\(\) of a tensor") as caught:
        _each(made)
    assert len(caught) == 1


class Called:
    def __call__(self, x: Any) -> Any:
        return cut(x)


@pytest.mark.parametrize("made", [functools.partial(cut, raises=False), Called(), functools.lru_cache(cut), np.sin])
def test_what_is_no_function_of_python_is_not_split_and_runs_eagerly(made: Callable[..., Any]) -> None:
    x = paddle.ones([2, 2])
    static = paddle.jit.to_static(made)
    for _ in range(2):
        assert np.array_equal(np.asarray(static(x)), np.asarray(made(x)))


def test_full_graph_is_refused_with_the_line() -> None:
    line = cut.__code__.co_firstlineno + 2
    with pytest.raises(TraceError, match=rf"numpy\(\) of a tensor(.|\n)*test_split.py:{line}"):
        paddle.jit.to_static(cut, full_graph=True)(paddle.ones([2, 2]))


def test_explain_names_the_line_the_parts_and_the_cost() -> None:
    text = str(_called(cut).explain())
    line = cut.__code__.co_firstlineno
    assert "split into 2 parts, with Python between" in text
    assert f"line {line + 2} stays Python: `k = y.numpy().sum()`" in text
    assert f"part 0, line {line + 1}: 1 program, 3 calls" in text
    assert f"part 1, lines {line + 3} to {line + 7}: 1 program, 3 calls" in text
    assert "each part is a call of its own" in text


def _lines_of(error: BaseException) -> list[tuple[str, int | None]]:
    return [
        (frame.name, frame.lineno) for frame in traceback.extract_tb(error.__traceback__) if __file__ in frame.filename
    ]


@pytest.mark.parametrize("given", [{"raises": True}, {"n": 3}], ids=["raise", "operation"])
def test_an_error_inside_of_a_part_names_the_users_line_alone(given: dict[str, Any]) -> None:
    x = paddle.ones([2, given.get("n", 2)])
    found = []
    for function in (cut, _called(cut)):
        with pytest.raises(ValueError, match=r"asked for|inner extents") as caught:
            function(x, given.get("raises", False))
        found.append((str(caught.value), _lines_of(caught.value)))
    assert found[0] == found[1]


def test_one_program_of_a_part_serves_every_shape() -> None:
    made = paddle.jit.to_static(cut)
    for n in (2, 3, 4, 5):
        np.testing.assert_allclose(made(paddle.ones([n, n])).numpy(), cut(paddle.ones([n, n])).numpy(), rtol=1e-5)
    assert _programs(made)[0] == 1


class Head(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.linear = paddle.nn.Linear(4, 4)
        self.seen: list[float] = []

    def forward(self, x: Any) -> Any:
        y = F.relu(self.linear(x)) * 2 + x
        self.seen.append(float(y.numpy().sum()))
        return paddle.tanh(y) * 2 - x + self.linear(y)


class Deep(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.body = paddle.nn.Sequential(paddle.nn.Linear(3, 4), Head(), paddle.nn.GELU(), Head())
        self.end = paddle.nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        x = paddle.sin(x) * 2 + paddle.cos(x)
        x = self.body(x)
        return F.softmax(self.end(x) * 2 - 1, axis=-1)


def _step(model: Any, x: Any) -> tuple[Any, dict[str, Any]]:
    out = model(x)
    (out * out).mean().backward()
    grads = {name: p.grad.numpy().copy() for name, p in model.named_parameters()}
    for p in model.parameters():
        p.clear_gradient()
    return out.numpy(), grads


def test_a_layer_deep_inside_is_split_and_what_is_around_it_runs_as_programs() -> None:
    paddle.seed(1)
    plain, static = Deep(), Deep()
    static.set_state_dict(plain.state_dict())
    static = paddle.jit.to_static(static)
    for n in (2, 3, 2, 5, 2):
        x = paddle.rand([n, 3])
        (a, da), (b, db) = _step(plain, x), _step(static, x)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        assert da.keys() == db.keys()
        for name, grad in da.items():
            np.testing.assert_allclose(grad, db[name], rtol=1e-4, atol=1e-6)
    for i in (1, 3):
        np.testing.assert_allclose(plain.body[i].seen, static.body[i].seen, rtol=1e-5)
    assert _programs(static.forward) == [1, 1]
    inner = static.forward._splitting.called
    assert sum(len(part.program_cache) for head in inner for part in head._splitting.parts) >= 4


def test_hooks_of_a_layer_between_parts_run() -> None:
    model, calls = Deep(), []
    model.body[1].register_forward_post_hook(lambda layer, x, y: calls.append(y.shape))
    static = paddle.jit.to_static(model)
    for n in (2, 3):
        static(paddle.rand([n, 3]))
    assert calls == [[2, 4], [3, 4]]


def test_a_part_that_is_refused_in_turn_is_cut_too() -> None:
    def function(x: Any) -> Any:
        y = paddle.exp(x) * 2 - 1
        a = y.numpy().sum() > 0
        z = paddle.sin(y) * 2 + 1 if a else y
        b = z.tolist()
        w = paddle.cos(z) * 2 + len(b)
        return w - x

    made = _called(function, 4)
    assert _programs(made) == [1, 1, 1]


def test_little_work_stays_python() -> None:
    def function(x: Any) -> Any:
        y = x + 1
        k = y.numpy().sum()
        return y * k

    made = _called(function)
    assert made._splitting is None or not any(_programs(made))


def test_a_part_that_is_traced_at_every_call_stays_python_in_the_end() -> None:
    def function(x: Any, items: list[Any]) -> Any:
        x.numpy()
        y = paddle.sin(x) * 2 + len(items) - paddle.cos(x)
        return y * 2

    made = paddle.jit.to_static(function)
    for n in range(24):
        np.testing.assert_allclose(
            made(paddle.ones([2]), [1] * n).numpy(), function(paddle.ones([2]), [1] * n).numpy(), rtol=1e-5
        )
    assert not made._splitting.parts


def test_generators_and_functions_that_see_their_frame_are_not_split() -> None:
    def function(x: Any) -> Any:
        y = paddle.exp(x) * 2 - 1
        k = y.numpy().sum()
        z = paddle.sin(y) * 2 + 1
        return z * k, sorted(locals())

    made = _called(function)
    assert made._splitting is None
    assert made(paddle.ones([2, 2]))[1] == ["k", "x", "y", "z"]


def test_private_names_and_super_in_parts() -> None:
    class Base(paddle.nn.Layer):
        def forward(self, x: Any) -> Any:
            return paddle.sin(x) * 2 + 1

    class Net(Base):
        def __init__(self) -> None:
            super().__init__()
            self.__scale = 3.0

        def forward(self, x: Any) -> Any:
            y = super().forward(x) * self.__scale
            k = float(y.numpy().sum())
            z = super().forward(y) * k - self.__scale
            return z + y

    net, static = Net(), paddle.jit.to_static(Net())
    for n in (2, 3, 2):
        np.testing.assert_allclose(net(paddle.ones([n])).numpy(), static(paddle.ones([n])).numpy(), rtol=1e-5)
    assert _programs(static.forward) == [1, 2]  # `k` becomes an input


def test_globals_and_cells_are_written_by_parts() -> None:
    count = 0

    def function(x: Any) -> Any:
        nonlocal count
        y = paddle.exp(x) * 2 - 1
        count += 1
        y.numpy()
        z = paddle.sin(y) * 2 + count
        count += 1
        return z - y

    made = _called(function, 4)
    assert count == 8
    assert float(made(paddle.zeros([]))) == pytest.approx(float(np.sin(1.0) * 2 + 9 - 1), rel=1e-5)


def test_a_part_is_no_function_of_the_user() -> None:
    made = _called(cut)
    assert all(isinstance(part, PartFunction) for part in made._splitting.parts)
    assert repr(made) == "<StaticFunction cut, 0 programs>"
    assert made.dygraph_function is cut
