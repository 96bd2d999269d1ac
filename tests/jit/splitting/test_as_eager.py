"""What cannot be one Program runs in parts with Python between: results, gradients and effects are those of eager mode.

Each function below has a step that no Program has. It is called six times with other values and other extents, and
everything that it gives, writes and raises is compared; `parts` says how many Programs it has at the end.
"""

import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.jit.static_function import FallbackWarning

CASES: list[tuple[Callable[..., Any], int]] = []


def case(parts: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def note(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append((function, parts))
        return function

    return note


@case(2)
def in_the_middle(x: Any) -> Any:
    y = paddle.exp(x) * 2 + 1
    k = int(y.numpy().argmax())
    z = paddle.sin(y) + k
    return z * y + x.mean()


@case(2)
def item_of_numpy(x: Any) -> Any:
    y = (x * x + 1).sum() / 3
    found = {round(float(y.numpy()), 3): "here"}
    name = next(iter(found))
    return paddle.tanh(x) * name + y * x.shape[0]


@case(2)
def in_a_loop(x: Any) -> Any:
    total = paddle.zeros_like(x)
    for i in range(3):
        h = paddle.tanh(x) * (i + 1) + total
        k = h.numpy().sum() > 0
        if k:
            total = total + h * 2 - x / 3 + paddle.cos(h)
    return total


@case(3)
def early_return(x: Any) -> Any:
    y = paddle.sin(x) + x * 2 - 1
    if y.tolist()[0][0] > 0:
        y = y * 3 + paddle.cos(y) - 1
        return y / 2
    z = paddle.exp(-y * y) + y * 2
    return z - y


@case(2)
def break_and_continue(x: Any) -> Any:
    found = []
    for i in range(6):
        y = paddle.sin(x + i) * 2 + paddle.cos(x)
        top = y.numpy().max()
        if top < 0.5:
            continue
        z = paddle.tanh(y) * i + x - 1
        found.append(z)
        if len(found) == 2:
            break
    return paddle.concat(found) if found else x


@case(2)
def in_a_while(x: Any) -> Any:
    turns = 0
    while float(np.abs(x.numpy()).max()) > 0.1 and turns < 5:
        x = paddle.tanh(x) / 2 - x * 0.1 + 0.01
        turns += 1
    y = paddle.exp(x) + x * turns - 1
    return y * 2, turns


@case(2)
def with_try(x: Any) -> Any:
    y = paddle.exp(x) * 2 - x
    try:
        k = {1: 2}[int(y.numpy().sum()) % 2]
    except KeyError as error:
        k = error.args[0]
    z = paddle.sin(y) * k + y - 1
    return z


@case(1)
def raised_in_try(x: Any) -> Any:
    state = "none"
    y = x
    try:
        state = "begun"
        y = paddle.exp(x) * 2 + 1
        if x.shape[0] == 3:
            raise ValueError("three")
        y = y.numpy()
        state = "done"
    except ValueError:
        y = y * 2
    return state, paddle.to_tensor(y) * 2 + paddle.sin(paddle.to_tensor(y)) - 1


@case(2)
def without_gradient(x: Any) -> Any:
    with paddle.no_grad():
        w = paddle.exp(x) * 2 - paddle.sin(x)
        np.asarray(w.numpy())
    return x * w + w * 2 + paddle.cos(x)


@case(2)
def not_wanted_where_a_manager_lets_errors_pass(x: Any) -> Any:
    s = paddle.exp(x) * 2 + 1
    t = s + x * 3 - s * 2
    x.numpy()
    with paddle.no_grad():
        s = paddle.sin(t) * 2 - 1
        u = s * 2 + t
    return s + u * t


@case(2)
def written_through_a_view(x: Any) -> Any:
    y = paddle.exp(x) * 2 + 1
    part = y.reshape([1, -1])
    k = float(x.numpy().sum())
    part[0, 1:] = paddle.sin(x.reshape([-1])[1:]) * k + 1 - x.mean()
    z = part * 2 + paddle.cos(part)
    return y, z


@case(2)
def lists_and_dicts(x: Any) -> Any:
    seen: dict[Any, Any] = {}
    for row in range(2):
        y = paddle.sin(x[row]) * 2 + x[0] - 1
        seen[int(y.numpy()[0] * 100)] = y
    keys = sorted(seen)
    a, b = seen[keys[0]], seen[keys[-1]]
    return a * 2 + paddle.exp(b) - 1, keys


@case(2)
def random_numbers(x: Any) -> Any:
    y = paddle.rand([3]) + paddle.rand([3]) * 2 - 1
    k = int(y.numpy().argmax())
    z = paddle.randn([2]) * k + paddle.rand([2]) - 1
    return y, z


@case(2)
def the_same_object(x: Any) -> Any:
    y = x
    z = paddle.exp(x) * 2 + 1 - x
    int(z.numpy().sum())
    same = y is x
    w, v = z, paddle.sin(z) * 2 - 1 + y
    return same, w is z, v


@case(2)
def closures(x: Any) -> Any:
    scale = paddle.exp(x).mean() * 2 + 1
    power = int(x.numpy().size)

    def inner(y: Any) -> Any:
        return y * scale + power

    z = inner(x) * 2 + paddle.sin(x) - 1
    return inner(z)


@case(1)
def rebound_inside(x: Any) -> Any:
    count = 0

    def inner(y: Any) -> Any:
        nonlocal count
        count += 1
        return y * count

    a = inner(x)
    k = a.numpy().sum()
    b = inner(x) + inner(a) * 2
    y = paddle.sin(b) * 2 + a - paddle.cos(b)
    return y, count, float(k)


@case(2)
def deleted(x: Any) -> Any:
    y = paddle.exp(x) * 2 - 1 + x
    z = y.numpy()
    del x
    w = paddle.sin(y) * 2 + y - 1
    try:
        return x  # noqa: F821 (it is deleted)
    except UnboundLocalError as error:
        return w, str(error), z


@case(1)
def perhaps_unbound(x: Any) -> Any:
    if x.shape[0] > 2:
        y = x * 2
    k = x.numpy().sum()
    z = paddle.sin(x) * 2 + paddle.cos(x) - 1
    try:
        return y, z, k
    except UnboundLocalError as error:
        return str(error), z


@case(2)
def comprehensions(x: Any) -> Any:
    parts = [paddle.sin(row) * i for i, row in enumerate(paddle.unstack(x))]
    sizes = [float(part.numpy().sum()) for part in parts]
    y = paddle.stack([p * s for p, s in zip(parts, sizes, strict=True)])
    return y * 2 + paddle.exp(y)


@case(2)
def in_place(x: Any) -> Any:
    y = paddle.exp(x) * 2 + 1
    y[0] = 0.0
    k = float(y.numpy().sum())
    y[-1] = paddle.sin(y[0]) * k + 1 - y[1]
    return y


@case(1)
def arrays(x: Any) -> Any:
    a = x.numpy()
    b = a * 2
    c = b.astype("int32") // 2
    y = paddle.to_tensor(c.astype("float32")) + x
    z = paddle.sin(y) * 2 - paddle.cos(x) + 1
    return z, c, type(b).__name__


@case(0)
def objects_and_arrays_of_a_part(x: Any) -> Any:
    text, grown = io.StringIO(), np.zeros(2)
    y = paddle.exp(x) * 2 - 1 + x
    text.write("ab")
    grown += float(y.numpy().sum())
    z = paddle.sin(y) * 2 + paddle.cos(y)
    return z * len(text.getvalue()), grown


@case(2)
def two_steps(x: Any) -> Any:
    y = paddle.sin(x) * 2 + 1
    k = y.tolist()
    u = 3 if k else 4
    z = paddle.cos(y) * u + y - 1
    j = z.numpy().argmin()
    return int(j), z


@case(2)
def printed(x: Any) -> Any:
    y = paddle.exp(x) * 2 - 1
    print("before", x.shape)
    print(y.numpy().round(2).tolist())
    print("after", x.shape)
    z = paddle.sin(y) * 2 + paddle.cos(y)
    return z


def _middle(h: Any) -> Any:
    a = paddle.sin(h) * 2 + paddle.cos(h)
    k = int(a.numpy().argmax())
    return a * k + paddle.exp(h) - 1


@case(2)
def in_a_callee(x: Any) -> Any:
    y = paddle.exp(x) * 2 + 1 - x
    z = _middle(y)
    return paddle.tanh(z) * 2 + y - 1


def _inputs() -> list[Any]:
    rng = np.random.default_rng(3)
    return [rng.standard_normal(shape).astype("float32") for shape in ((2, 3), (2, 3), (3, 2), (4, 3), (2, 3), (5, 1))]


def _plain(x: Any) -> Any:
    if isinstance(x, paddle.Tensor):
        return "tensor", str(x.dtype), x.stop_gradient, x.numpy()
    if isinstance(x, (list, tuple)):
        return type(x), [_plain(item) for item in x]
    return type(x), x


def _assert_same(a: Any, b: Any) -> None:
    if isinstance(a, np.ndarray):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            _assert_same(x, y)
    elif isinstance(a, float):
        assert a == pytest.approx(b, rel=1e-5)
    else:
        assert a == b


def _called(function: Callable[..., Any], data: Any, capsys: Any) -> Any:
    paddle.seed(7)
    x = paddle.to_tensor(data, stop_gradient=False)
    try:
        result = function(x)
    except Exception as error:
        return type(error), str(error), capsys.readouterr().out
    tensors = [t for t in (result if isinstance(result, tuple) else (result,)) if isinstance(t, paddle.Tensor)]
    loss = sum((t.sum() for t in tensors if not t.stop_gradient), paddle.zeros([]))
    grad = None
    if not loss.stop_gradient:
        loss.backward()
        grad = x.grad.numpy() if x.grad is not None else None
    return _plain(result), grad, capsys.readouterr().out


@pytest.mark.parametrize(("function", "parts"), CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_as_eager(function: Callable[..., Any], parts: int, capsys: Any) -> None:
    static = paddle.jit.to_static(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        for data in _inputs():
            _assert_same(_called(static, data, capsys), _called(function, data, capsys))
    split = static._splitting
    assert split is not None, static.explain()
    programs = [part for part in split.parts if len(part.program_cache)]
    assert len(programs) >= parts, static.explain()
