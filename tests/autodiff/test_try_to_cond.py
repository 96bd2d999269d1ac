"""How large Programs without `try` are, and that operations behind one that raised do not run."""

import linecache
from functools import cache
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.autodiff.programs import fresh_names
from dy2st.autodiff.try_to_cond import unwound
from dy2st.ir.verifier import verify


def made(name: str, text: str) -> Any:
    """Return the function that a text defines, with lines to be found."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    found: dict[str, Any] = {"paddle": paddle}
    exec(compile(text, name, "exec"), found)
    return found["f"]


@cache
def ways(name: str, text: str) -> tuple[Any, Any]:
    """Return the function that a text defines, and one static function of it: all cases run the same Program."""
    fn = made(name, text)
    return fn, paddle.jit.to_static(fn, full_graph=True)


def with_sites(count: int) -> Any:
    """Return a function of one `try` in which so many lines raise."""
    lines = [
        f"        if x.sum() > {i}.5:\n            y = x * {i + 2}.0\n            raise ValueError('{i}')\n"
        "        x = x + 0.25\n"
        for i in range(count)
    ]
    text = "def f(x):\n    y = x\n    try:\n" + "".join(lines) + "        z = x * 2.0\n"
    return made(f"sites{count}", text + "    except ValueError:\n        z = y * y\n    return (z * x).sum()\n")


def nested(depth: int) -> Any:
    """Return a function of so many `try` in each other, of which each raises, and may raise on."""
    lines, indent = ["def f(x):", "    y = x"], "    "
    for i in range(depth):
        lines += [f"{indent}try:", f"{indent}    if x.sum() > {depth - i}.5:", f"{indent}        raise ValueError('a')"]
        indent += "    "
        lines.append(f"{indent}x = x + 0.25")
    lines.append(f"{indent}y = x * 2.0")
    for i in reversed(range(depth)):
        indent = indent[:-4]
        lines += [
            f"{indent}except ValueError:",
            f"{indent}    y = x * x + {i}.0",
            f"{indent}    if y.sum() > {9 + i}.0:",
        ]
        lines.append(f"{indent}        {'raise' if i else 'y = y * 3.0'}")
    return made(f"nested{depth}", "\n".join([*lines, "    return (y * x).sum()\n"]))


@pytest.mark.parametrize("shape", [with_sites, nested])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_program_without_try_is_a_few_times_as_large(shape: Any, size: int) -> None:
    static = paddle.jit.to_static(shape(size), full_graph=True)
    static(paddle.ones([2]))
    program = static.concrete_program.main_program
    flat = unwound(program, fresh_names(program))
    verify(flat)
    assert flat.count < 2.5 * program.count


@cache
def three_deep(shape: Any) -> tuple[Any, Any]:
    """Return the function of a shape, and one static function of it."""
    fn = shape(3)
    return fn, paddle.jit.to_static(fn, full_graph=True)


@pytest.mark.parametrize("shape", [with_sites, nested])
@pytest.mark.parametrize("start", [-3.0, 0.1, 0.6, 1.1, 2.3, 9.0])
def test_gradients_are_those_of_eager_mode_wherever_it_raises(shape: Any, start: float) -> None:
    slopes: list[Any] = []
    for way in three_deep(shape):
        x = paddle.to_tensor(np.array([start, 0.2], "float32"), stop_gradient=False)
        way(x).backward()
        assert x.grad is not None
        slopes.append(x.grad.numpy())
    np.testing.assert_allclose(slopes[0], slopes[1], rtol=2e-6)


ORDER = """
def f(x):
    seen = []
    try:
        print('in')
        for row in x:
            if row > 2:
                raise KeyError('row')
            print('row')
            seen.append(row * 2)
        print('behind')
        if x.sum() < 0:
            raise ValueError('sum')
        y = x * 4
    except KeyError:
        print('caught')
        y = x * len(seen)
        if len(seen) == 0:
            y = x * 9
    except ValueError:
        y = x * x
    return (y * y).sum()
"""


@pytest.mark.parametrize("rows", [[1.0, 2.0, 3.0], [3.0, 1.0], [-1.0, -2.0], [1.0, 0.5], []])
def test_what_is_behind_a_raise_in_a_loop_does_not_run(rows: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for way in ways("order", ORDER):
        x = paddle.to_tensor(np.array(rows, "float32"), stop_gradient=False)
        way(x).backward()
        assert x.grad is not None
        found.append((x.grad.numpy().tolist(), capsys.readouterr().out))
    assert found[0] == found[1]


AGAIN = """
def f(x, n):
    y, i = x, paddle.zeros([], 'int64')
    while i < n:
        i = i + 1
        try:
            try:
                if y.sum() > 4:
                    raise KeyError('inner')
                y = y * 2
                if y.max() > 3:
                    raise ValueError('outer')
                z = y + 1
            except KeyError:
                z = y - 3
                if z.min() < -2:
                    raise ValueError('handler')
            y = z * 1.5
        except ValueError:
            y = y * y * 0.1
    return y.sum()
"""


@pytest.mark.parametrize("turns", [0, 1, 3, 6])
@pytest.mark.parametrize("start", [0.25, 1.75, 2.5, -4.0])
def test_a_raise_goes_through_handlers_in_a_loop(turns: int, start: float) -> None:
    found = []
    for way in ways("again", AGAIN):
        x = paddle.to_tensor(np.array([start, 0.5], "float32"), stop_gradient=False)
        y = way(x, paddle.to_tensor(turns))
        (slope,) = paddle.grad(y, x, create_graph=True)
        assert slope is not None
        (curve,) = paddle.grad((slope * slope).sum(), x, allow_unused=True)
        found.append([y.numpy(), slope.numpy(), np.zeros(2) if curve is None else curve.numpy()])
    for eager, static in zip(*found, strict=True):
        np.testing.assert_allclose(static, eager, rtol=2e-6)
