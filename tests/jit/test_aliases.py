"""A change in place of what two names may hold is refused with the line, and the function then runs eagerly."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import StructureError, TraceError
from dy2st.jit.static_function import FallbackWarning
from dy2st.runtime.tracer.values import abstract

T = paddle.to_tensor
TENSOR = (
    "a tensor is changed in place, and only the run will tell whether another variable, item or attribute is the same"
)
HELD = (
    "a tensor is changed in place, and only the run will tell whether a list, or a variable that may be something else"
)


def chosen(x, n):
    a, b = x * 1.0, x * 2.0
    c = a if n > 1 else b
    c[0] = 7.0
    return a, b, c


def renamed(x, n):
    a, b = x * 1.0, x * 2.0
    if n > 1:
        b = a
    b[0] = 7.0
    return a, b


def viewed(x, n):
    a, b = x * 1.0, x * 2.0
    if n > 1:
        b = a[:1]
    b[0] = 7.0
    return a, b


def kept(x, n):
    def of(v):
        return v if n > 1 else v * 2

    a = x * 1.0
    b = of(a)
    b[0] = 7.0
    return a, b


def carried(x, n):
    a, b = x * 1.0, x * 2.0
    for _ in range(n):
        b = a
        b[0] = b[0] + 1.0
    b[1] = 7.0
    return a, b


@pytest.mark.parametrize("function", [chosen, renamed, viewed, kept, carried])
def test_a_tensor_that_may_have_two_names_is_not_written(function) -> None:
    static = paddle.jit.to_static(function, full_graph=True)
    with pytest.raises(StructureError, match=TENSOR):
        static(T([1.0, 2.0]), T(2))


def appended(x, n):
    a, out = x * 1.0, []
    if n > 1:
        out.append(a)
    a[0] = 7.0
    return a, out


def appended_in_a_loop(x, n):
    a, out = x * 1.0, []
    for i in range(n):
        out.append(a)
        a[0] = a[0] + i
    return out


def element(x, n):
    out = []
    for _ in range(n):
        out.append(x * 1.0)
    out[0][0] = 7.0
    return out


@pytest.mark.parametrize("function", [appended, appended_in_a_loop, element])
def test_a_tensor_in_a_list_of_unknown_length_is_not_written(function) -> None:
    static = paddle.jit.to_static(function, full_graph=True)
    with pytest.raises(StructureError, match=HELD):
        static(T([1.0, 2.0]), T(2))


def test_a_list_that_may_have_two_names_is_not_changed() -> None:
    @paddle.jit.to_static(full_graph=True)
    def function(x, n):
        out = [x]
        other = out if n > 1 else [x, x]
        other.append(x)
        return out, other

    with pytest.raises(StructureError, match="a container is changed in place, and only the run will tell"):
        function(T([1.0]), T(2))


def test_what_is_refused_runs_eagerly() -> None:
    static = paddle.jit.to_static(renamed)
    with pytest.warns(FallbackWarning, match="change a copy of it"):
        a, b = static(T([1.0, 2.0]), T(2))
    assert np.array_equal(a.numpy(), [7.0, 2.0])
    assert np.array_equal(b.numpy(), a.numpy())


def test_a_fault_of_the_converter_is_not_the_users_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    @paddle.jit.to_static(full_graph=True)
    def function(x):
        try:
            if x.sum() > 0:
                x = x * 2
        except Exception:
            x = x * 0
        return x

    def broken(t: object) -> object:
        return {}["no such entry"]

    monkeypatch.setattr("dy2st.runtime.tracer.control_flow.conditional.flatten", lambda trace, x, t: broken(t))
    broken.__globals__["__name__"], name = abstract.__name__, broken.__globals__["__name__"]
    try:
        with pytest.raises(TraceError, match="which is a fault of dy2st: KeyError: 'no such entry'"):
            function(T([1.0]))
    finally:
        broken.__globals__["__name__"] = name
