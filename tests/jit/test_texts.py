"""Text with values of the run in it is a value like any other: it leaves branches, loops, attributes and functions."""

from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.eager import shape_list


class Log:
    def __init__(self) -> None:
        self.last = ""


log = Log()


def result(x):
    return f"{x.sum()}"


def beside_tensors(x):
    return x, f"{x.sum().item():.2f}", [f"{x.shape[0]} of {x}"], {"mean": f"{x.mean().item():.1f}"}


def of_an_exception(x):
    try:
        if x.sum() > 0:
            raise ValueError(f"{x.sum().item():.1f}")
    except ValueError as error:
        return x, str(error)
    return x, "fine"


def one_of_several(x):
    name = "none"
    if x.sum() > 0:
        name = f"up {x.sum().item()}"
    elif x.sum() < -5:
        name = f"down {x.max().item()}"
    print(name)
    return name


def one_text_of_two_values(x):
    by = x.max() if x.sum() > 0 else x.min()
    text = f"by {by.item():.1f}" if x.sum() > 0 else f"by {(-by).item():.1f}"
    return text


def collected(x):
    out = []
    for v in x:
        out.append(f"{v.item():.1f}")
    return out


def of_the_last_turn(x):
    last = ""
    while x.sum() < 100:
        last = f"{x.sum().item():.0f}"
        x = x * 2 + 10
    return last


def attribute(x):
    if x.sum() > 0:
        log.last = f"{x.sum().item():.1f}"
    return x


def of_a_recursion(x):
    return f"{x.item():.1f}" if x.sum() < 1 else of_a_recursion(x.sum() / 2)


def by_the_built_ins(x):
    n = x.shape[0]
    return str(n), repr(n), ascii([n, "a"]), format(x.sum().item(), ".2f"), str(x.shape), repr((x, 1)), str({"n": n})


class Point:
    def __str__(self) -> str:
        return "P"

    def __repr__(self) -> str:
        return "<P>"


def of_python_objects(x):
    return str(Point()), repr(Point()), str([Point()]), str(b"a"), str(b"a", "utf8"), repr("a"), str(int), x


def of_one_of_two(x):
    y = x if x.sum() > 2 else 3
    return str(y), repr(y)


FUNCTIONS = [
    result, beside_tensors, of_an_exception, one_of_several, one_text_of_two_values, collected, of_the_last_turn,
    attribute, of_a_recursion, by_the_built_ins, of_python_objects, of_one_of_two,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_text_leaves_as_it_does_eagerly(function: Any, capsys: pytest.CaptureFixture[str]) -> None:
    static = paddle.jit.to_static(function, full_graph=True)
    for values in ([1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [-1.0, 0.5]):
        seen: list[Any] = []
        for call in (function, static):
            if function is of_a_recursion and values[0] < 0:
                continue
            log.last = ""
            shown = repr(call(paddle.to_tensor(np.array(values, "float32"))))
            seen.append((shown, log.last, capsys.readouterr().out))
        assert len(set(seen)) <= 1, seen
    assert len(static.program_cache) == 1


def test_the_text_of_a_shape_that_behaves_as_a_tuple(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the array namespace was used, a shape is of a class of its own, with the text of a list."""
    monkeypatch.setattr(shape_list, "_MADE_BY", [shape_list.Extents])

    def f(x: Any) -> Any:
        return f"{x.shape}", str(x.shape), repr(x.shape), x

    static = paddle.jit.to_static(f, full_graph=True)
    for n in (3, 4, 3):
        assert static(paddle.ones([n]))[:3] == (f"[{n}]",) * 3
