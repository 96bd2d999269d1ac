"""What random programs find: an object with a layer, points, functions with branches, the names of their module."""

import contextlib
import copy
import functools
import heapq
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import dy2st as paddle

T = paddle.to_tensor


class Net(paddle.nn.Layer):
    """A layer with a parameter, a number that it counts, and a branch."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = self.create_parameter([1], default_initializer=paddle.nn.initializer.Constant(0.5))
        self.calls, self.mean, self.spread = 0, T([0.25]), T([2.0])

    def forward(self, v: Any) -> Any:
        self.calls += 1
        return v * self.weight if v.sum() > 0.3 else v - self.weight


class Box:
    """An object with attributes and methods that programs use."""

    def __init__(self) -> None:
        self.count, self.log, self.net = 0, [], Net()
        self.state, self.peer = T([0.5]), None

    def step(self, v: Any) -> None:
        if v.sum() > 0.3:
            self.count += 1
        else:
            self.state = v

    @contextlib.contextmanager
    def counting(self) -> Iterator[None]:
        self.count += 1
        yield
        self.count += 10

    def swallowing(self) -> Any:
        return Swallowing(self)


class Swallowing:
    """A context that ends a ValueError."""

    def __init__(self, box: Box) -> None:
        self.box = box

    def __enter__(self) -> None:
        self.box.log.append("in")

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        self.box.log.append("out")
        return kind is ValueError


class Point:
    """An object that programs make: a vector, a number, a list, and operators."""

    after: Any = None

    def __init__(self, v: Any, k: Any) -> None:
        self.v, self.k, self.items = v, k, []

    def moved(self, by: Any) -> "Point":
        return Point(self.v + by, self.k)

    def shift(self, by: Any) -> None:
        self.v = self.v + by if self.k > 1 else self.v - by

    @property
    def size(self) -> Any:
        return self.v.sum() + self.k

    def __add__(self, other: Any) -> "Point":
        return Point(self.v + other.v, other.k)

    def __call__(self, v: Any) -> Any:
        self.k = self.k + 1
        return v * 0.5 + self.v

    def __getitem__(self, place: Any) -> Any:
        return self.v[place]

    def __len__(self) -> int:
        return len(self.items)

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> Any:
        return isinstance(other, Point) and self.k == other.k

    __hash__ = None  # pyright: ignore[reportAssignmentType]: equal points have no number of their own


class Pair(NamedTuple):
    """A tuple with names."""

    v: Any
    k: Any


class Stop(Exception):
    """An error with a value."""


class Doubled(paddle.autograd.PyLayer):
    """An operation with a derivative of its own."""

    @staticmethod
    def forward(ctx: Any, v: Any) -> Any:
        ctx.save_for_backward(v)
        return v * 2.0

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (v,) = ctx.saved_tensor()
        return dy * 2.0 + v * 0.0


def half(v: Any) -> Any:
    return v * 0.5 if v.sum() > 0.3 else v


def shrink(v: Any, depth: int) -> Any:
    return v if v.sum() < 1.7 or depth > 3 else shrink(v * 0.5, depth + 1)


def pair(v: Any, n: Any) -> Any:
    if n > 1:
        return v, 1
    return v * 2, v.sum()


def twice(rows: Any) -> Any:
    for row in rows:
        yield row * 2.0


def checked(v: Any, limit: float) -> Any:
    if v > limit:
        raise ValueError("checked 0")
    return v * 0.5


KNOWN = (paddle, np, copy, functools, heapq, Point, Pair, Stop, Doubled, half, shrink, pair, twice, checked)
NAMES = {"dy2st": "paddle", "numpy": "np"}


def namespace() -> dict[str, Any]:
    """Return the globals of one program."""
    return {"LEVEL": 0.0, "LEVELS": [], **{NAMES.get(one.__name__, one.__name__): one for one in KNOWN}}
