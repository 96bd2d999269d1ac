"""Containers and objects with methods of their own: what these do happens once at each call, as in eager mode."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dy2st as paddle


class Counted(dict):
    def __init__(self, *args: Any, **keywords: Any):
        self.writes = 0
        super().__init__(*args, **keywords)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.writes += 1
        super().__setitem__(key, value)


class Upper(dict):
    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key.upper(), value * 2)


class Tenfold(dict):
    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key) * 10


class Doubling(list):
    n = 0

    def append(self, x: Any) -> None:
        self.n += 1
        super().append(x * 2)

    def __iadd__(self, more: Any) -> Any:
        for x in more:
            self.append(x)
        return self


class Noted:
    def __init__(self, x: Any):
        self.__dict__["names"] = []
        self.x = x

    def __setattr__(self, name: str, value: Any) -> None:
        self.names.append(name)
        self.__dict__[name] = value * 2


class Output(OrderedDict):
    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.keys() and value is not None:
            super().__setitem__(name, value)
        super().__setattr__(name, value)

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        super().__setattr__(key, value)


class Sum(tuple):
    total: Any

    def __new__(cls, a: Any, b: Any) -> Any:
        made = super().__new__(cls, (a, b))
        made.total = a + b
        return made


def made_output() -> Output:
    made = Output()
    made["loss"] = paddle.to_tensor([1.0])
    return made


def item_written(x, d):
    d["a"] = x
    if x.sum() > 0:
        d["b"] = x * 2
    return d["a"]


def item_written_in_a_loop(x, d):
    d["a"] = x
    while d["a"].sum() < 20:
        d["a"] = d["a"] + 3
    return d


def item_read(x, d):
    if x.sum() > 0:
        d["a"] = x
    return d["a"]


def appended(x, d):
    d.append(x)
    if x.sum() > 0:
        d += [x, x]
    return d.n + x


def attribute_written(x, d):
    if x.sum() > 0:
        d.x = x
    d.y = x
    return d.x


def output_written(x, d):
    d.loss = d["loss"] + x
    if x.sum() > 0:
        d["hidden"] = x
    return d.loss


def made_here(x, d):
    made = Counted()
    made["a"] = x
    if x.sum() > 0:
        made["a"] = x * 2
    return made, made.writes


def made_in_a_branch(x, d):
    if x.sum() > 0:
        made = Counted(a=x)
    else:
        made = Counted()
        made["a"] = x * 2
    return made["a"], made.writes


def output_returned(x, d):
    made = made_output()
    made.loss = x
    return made


def appended_and_returned(x, d):
    made = Doubling()
    if x.sum() > 0:
        made.append(x)
    return made, made.n


def tuple_with_attributes(x, d):
    if x.sum() > 0:
        made = Sum(x, x * 2)
    else:
        made = Sum(x, x * 3)
    return made, made.total


def tuple_given_back(x, d):
    return Sum(x, x)


def shown(x: Any) -> Any:
    if isinstance(x, paddle.Tensor):
        return x.numpy().tolist()
    own = {k: shown(v) for k, v in getattr(x, "__dict__", {}).items()}
    if isinstance(x, dict):
        return type(x).__name__, [(k, shown(dict.__getitem__(x, k))) for k in x], own
    if isinstance(x, (list, tuple)):
        return type(x).__name__, [shown(i) for i in x], own
    return (type(x).__name__, own) if own else x


def history(f: Callable[..., Any], make: Callable[[], Any]) -> list[Any]:
    """Return what four calls give, and what they leave in an argument that each but the last has anew."""
    found = []
    for first in (1.0, -4.0, 2.0, 1.0):
        given = make()
        for _ in range(2):  # the second call meets what the first has left
            result = f(paddle.to_tensor(np.array([first, 1.0], "float32")), given)
            found.append((shown(result), shown(given)))
    return found


USES = [
    (item_written, lambda: Counted(a=1)),
    (item_written, lambda: Upper(a=1)),
    (item_written, lambda: Tenfold(a=1)),
    (item_written_in_a_loop, lambda: Counted(a=1)),
    (item_read, lambda: Tenfold(a=paddle.to_tensor([1.0, 2.0]))),
    (appended, Doubling),
    (attribute_written, lambda: Noted(1.0)),
    (output_written, made_output),
    (made_here, dict),
    (made_in_a_branch, dict),
    (output_returned, dict),
    (appended_and_returned, dict),
    (tuple_with_attributes, dict),
    (tuple_given_back, dict),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("use", "make"), USES)
def test_methods_of_the_users_run_once_as_in_eager_mode(use, make):
    assert history(paddle.jit.to_static(use), make) == history(use, make)


@pytest.mark.parametrize(
    ("use", "make"), [(item_written, lambda: Counted(a=1)), (attribute_written, lambda: Noted(1.0))]
)
def test_writes_through_methods_of_the_users_are_converted(use, make):
    assert history(paddle.jit.to_static(use, full_graph=True), make) == history(use, make)


@pytest.mark.parametrize("use", [made_in_a_branch, tuple_with_attributes])
def test_what_cannot_be_made_again_is_refused_with_its_name(use):
    f = paddle.jit.to_static(use, full_graph=True)
    with pytest.raises(paddle.errors.Dy2stError, match=r"Counted is made inside of a branch|Sum has attributes"):
        f(paddle.to_tensor([1.0, 2.0]), {})
