"""What a trace raises is the user's only where eager mode raises it too."""

import types
import warnings
from typing import Any

import pytest

import dy2st as paddle
from dy2st.errors import TraceError
from dy2st.jit.static_function import FallbackWarning
from dy2st.jit.tracing import trace as tracing


def _refuse(text: str) -> Any:
    raise TraceError(text)


def broken(*_: Any, **__: Any) -> Any:
    raise KeyError("no such entry")


def test_a_fault_of_the_trace_runs_the_function_eagerly(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    @paddle.jit.to_static
    def f(x: Any) -> Any:
        calls.append(1)
        return x * 2

    monkeypatch.setattr(tracing, "output_aval", broken)
    with pytest.warns(FallbackWarning, match=r"a fault of dy2st: KeyError: 'no such entry'(.|\n)*please report it"):
        assert f(paddle.to_tensor([1.0])).tolist() == [2.0]
    assert calls == [1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [f(paddle.to_tensor([float(i)])).tolist() for i in range(3)] == [[0.0], [2.0], [4.0]]
    assert calls == [1] * 4


def test_a_fault_names_the_function_where_no_line_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        return x * 2

    def refused(*_: Any, **__: Any) -> Any:
        refuse("this cannot be")

    refuse = types.FunctionType(_refuse.__code__, {"TraceError": TraceError, "__name__": "dy2st.nowhere"})
    refused = types.FunctionType(refused.__code__, {"__name__": "dy2st.nowhere"}, closure=refused.__closure__)
    monkeypatch.setattr(tracing, "output_aval", refused)
    with pytest.raises(TraceError, match=rf"this cannot be\n  at {__file__}:{f.__code__.co_firstlineno}"):
        paddle.jit.to_static(f, full_graph=True)(paddle.to_tensor([1.0]))


def test_what_eager_raises_too_is_the_users_and_no_fallback() -> None:
    table = {"a": 1.0}

    @paddle.jit.to_static
    def f(x: Any, key: str) -> Any:
        return x * table[key]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            with pytest.raises(KeyError, match="b"):
                f(paddle.to_tensor([1.0]), "b")
            assert f(paddle.to_tensor([3.0]), "a").tolist() == [3.0]
    assert not f.explain().fallbacks


class Scaled:
    factor = 3.0

    @classmethod
    @paddle.jit.to_static
    def inner(cls, x: Any) -> Any:
        return x * cls.factor

    @paddle.jit.to_static
    @classmethod
    def outer(cls, x: Any) -> Any:
        return x * cls.factor


class Halved(Scaled):
    factor = 0.5


@pytest.mark.parametrize("name", ["inner", "outer"])
def test_a_class_method_is_converted_for_each_class(name: str) -> None:
    for i in range(3):
        x = paddle.to_tensor([float(i)])
        assert getattr(Scaled, name)(x).tolist() == [3.0 * i]
        assert getattr(Halved(), name)(x).tolist() == [0.5 * i]
    assert len(getattr(Scaled, name).program_cache) == 1


def two_dtypes(x, t, n):
    a, b = x * 1.0, x * 2.0
    while t < 1:
        if t > 0:
            return b
        a = a.astype("float64") + b
        t = t + 1
    for _ in range(n):
        a = paddle.concat([a[1:], b[:1]])
    return a


def test_a_program_whose_derivative_cannot_be_made_gives_way_to_eager_mode():
    f = paddle.jit.to_static(two_dtypes)
    with pytest.warns(FallbackWarning, match="the derivative of its Program cannot be made"):
        assert gradient(f, -1.0) == gradient(two_dtypes, -1.0)
    for t in (0.5, 2.0, -1.0):
        assert gradient(f, t) == gradient(two_dtypes, t)
    with pytest.raises(TraceError, match="the derivative of its Program cannot be made"):
        gradient(paddle.jit.to_static(two_dtypes, full_graph=True), -1.0)
    x = paddle.to_tensor([1.0, 2.0])
    assert paddle.jit.to_static(two_dtypes, full_graph=True)(x, paddle.to_tensor(2.0), 1).tolist() == [2.0, 2.0]


def gradient(f, t):
    x = paddle.to_tensor([1.0, -2.0, 3.0], stop_gradient=False)
    result = f(x, paddle.to_tensor(t), 3)
    result.sum().backward()
    return result.tolist(), x.grad.tolist()
