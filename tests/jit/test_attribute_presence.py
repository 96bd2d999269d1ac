"""Attributes that an object has on one path only: `hasattr`, `del`, defaults and the class behind the instance."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pytest

import dy2st as paddle


class A:
    kind = 1

    def __init__(self, v: Any):
        self.v = v


class Slotted:
    __slots__ = ("m", "v")

    def __init__(self, v: Any):
        self.v = v


class Late(A):
    def __getattr__(self, name: str) -> Any:
        self.asked = name
        if name == "m":
            return 7
        raise AttributeError(name)


def compare(f: Any, make: Any = lambda: A(1)) -> None:
    """Call `f` with changing signs and a new object; hold results and attributes against eager."""
    static = paddle.jit.to_static(f, full_graph=True)
    for x in (1.0, 1.0, -1.0, -2.0, 3.0):
        eager, traced = make(), make()
        assert outcome(static, traced, x) == outcome(f, eager, x)
        assert shown(traced) == shown(eager)


def outcome(f: Any, a: Any, x: float) -> Any:
    try:
        found = f(a, paddle.to_tensor(x))
    except AttributeError:
        return "raised"
    return float(found) if isinstance(found, paddle.Tensor) else found


def shown(a: Any) -> Any:
    return {
        n: float(v) if isinstance(v, paddle.Tensor) else v
        for n in dir(a)
        if n in "mvkind"
        if (v := getattr(a, n, None))
    }


def sets_on_one_path(a, x):
    if x > 0:
        a.m = 1
    return hasattr(a, "m")


def deletes_on_one_path(a, x):
    a.m = x
    if x > 0:
        del a.m
    return hasattr(a, "m"), getattr(a, "m", -1)


def reads_what_may_be_absent(a, x):
    if x > 0:
        a.m = x * 2
    return a.m


def has_a_default(a, x):
    if x > 0:
        a.m = 5
    return getattr(a, "m", 3)


def deletes_what_may_be_absent(a, x):
    if x > 0:
        a.m = 5
    del a.m
    return x


def goes_on_to_the_class(a, x):
    if x > 0:
        a.kind = 2
    return a.kind


@pytest.mark.parametrize("make", [A, Slotted, Late])
@pytest.mark.parametrize(
    "f",
    [sets_on_one_path, deletes_on_one_path, reads_what_may_be_absent, has_a_default, deletes_what_may_be_absent],
)
def test_an_attribute_is_there_on_the_path_that_set_it(f, make):
    compare(f, lambda: make(1))


def test_an_attribute_of_the_class_is_not_written_to_the_instance():
    static = paddle.jit.to_static(goes_on_to_the_class, full_graph=True)
    for x in (1.0, -1.0, -1.0, 2.0):
        a = A(1)
        assert int(static(a, paddle.to_tensor(x))) == (2 if x > 0 else 1)
        assert ("kind" in vars(a)) == (x > 0)


def test_an_attribute_that_appeared_between_calls_stays():
    kept = A(1)

    @paddle.jit.to_static(full_graph=True)
    def f(x):
        if x > 0:
            kept.m = x
        return x

    for x in (1.0, -1.0, -1.0):
        f(paddle.to_tensor(x))
        assert float(kept.m) == 1.0


class Descriptor:
    def __get__(self, obj, kind):
        obj.reads = getattr(obj, "reads", 0) + 1
        return obj.v * 2

    def __set__(self, obj, value):
        obj.v = value + 1


class Computed(A):
    double = Descriptor()

    @cached_property
    def slow(self):
        self.made = getattr(self, "made", 0) + 1
        return self.v * 3

    def __delattr__(self, name):
        self.deleted = name
        super().__delattr__(name)


def test_descriptors_written_in_python_have_their_effects_at_each_call():
    def f(a, x):
        a.double = x
        return a.double + a.slow + a.slow

    static = paddle.jit.to_static(f, full_graph=True)
    for x in (1.0, 2.0, 2.0, 5.0):
        one, two = Computed(0.0), Computed(0.0)
        assert float(static(one, paddle.to_tensor(x))) == float(f(two, paddle.to_tensor(x)))
        assert {n: float(v) for n, v in vars(one).items()} == {n: float(v) for n, v in vars(two).items()}


def test_delattr_of_a_class_is_converted():
    def f(a, x):
        a.m = x
        if x > 0:
            del a.m
        return x

    static = paddle.jit.to_static(f, full_graph=True)
    for x in (1.0, -1.0, 2.0, -1.0):
        one, two = Computed(0.0), Computed(0.0)
        static(one, paddle.to_tensor(x)), f(two, paddle.to_tensor(x))
        assert sorted(vars(one)) == sorted(vars(two))
