"""What is changed between calls (methods, overrides, defaults, code) is seen as eager code sees it."""

import functools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest

import dy2st as paddle
from dy2st import nn

HERE = sys.modules[__name__]
Wrap = Callable[[Any], Any]
Change = Callable[[], Any]
Made = tuple[Any, list[Change]]


def x_of(*values: float) -> Any:
    return paddle.to_tensor([*map(float, values)])


class A:
    """Does something with each way to call it."""

    n = 2.0

    def m(self, x: Any) -> Any:
        return x + 1

    @staticmethod
    def s(x: Any) -> Any:
        return x + 7

    @classmethod
    def c(cls, x: Any) -> Any:
        return x + 8

    @property
    def p(self) -> float:
        return 5.0

    def __call__(self, x: Any) -> Any:
        return x * 9

    def __len__(self) -> int:
        return 3

    def __add__(self, other: Any) -> Any:
        return other * 4

    def __radd__(self, other: Any) -> Any:
        return other + 3.0

    def __getitem__(self, i: Any) -> Any:
        return i

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 5

    def __contains__(self, x: Any) -> bool:
        return True

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        return iter([1.0, 2.0])

    def __enter__(self) -> Any:
        return 3.0

    def __exit__(self, *_: object) -> None:
        return None

    def __float__(self) -> float:
        return 3.0

    def __neg__(self) -> float:
        return 5.0

    def __lt__(self, other: Any) -> bool:
        return True

    def __repr__(self) -> str:
        return "x"


ONE = A()


def entered(x: Any) -> Any:
    with ONE as y:
        return x + y


METHODS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "m": (lambda x: ONE.m(x), lambda self, x: x * 50),
    "s": (lambda x: ONE.s(x), staticmethod(lambda x: x * 50)),
    "c": (lambda x: A.c(x), classmethod(lambda cls, x: x * 50)),
    "p": (lambda x: x * ONE.p, property(lambda self: 50.0)),
    "n": (lambda x: x * A().n, 50.0),
    "__call__": (lambda x: ONE(x), lambda self, x: x * 50),
    "__len__": (lambda x: x * len(ONE), lambda self: 50),
    "__add__": (lambda x: ONE + x, lambda self, x: x * 50),
    "__radd__": (lambda x: 2.0 + ONE + x, lambda self, x: 50.0),
    "__getitem__": (lambda x: x + ONE[2], lambda self, i: 50),
    "__eq__": (lambda x: x if ONE == 3 else x * 50, lambda self, other: False),
    "__hash__": (lambda x: x * hash(ONE), lambda self: 50),
    "__contains__": (lambda x: x if 3 in ONE else x * 50, lambda self, x: False),
    "__bool__": (lambda x: x if ONE else x * 50, lambda self: False),
    "__iter__": (lambda x: [x + y for y in ONE], lambda self: iter([50.0, 60.0])),
    "__enter__": (entered, lambda self: 50.0),
    "__float__": (lambda x: x * float(ONE), lambda self: 50.0),
    "__neg__": (lambda x: x * (-ONE), lambda self: 50.0),
    "__lt__": (lambda x: x if ONE < 3 else x * 50, lambda self, other: False),
    "__repr__": (lambda x: x * len(repr(ONE)), lambda self: "50"),
}


def values(result: Any) -> Any:
    return [np.asarray(r).tolist() for r in result] if isinstance(result, list) else np.asarray(result).tolist()


def called(function: Any, change: Callable[[], Any]) -> list[Any]:
    """Call three times, change something, and call three times again, with changing inputs."""
    before = [values(function(x_of(1, k))) for k in range(3)]
    change()
    return before + [values(function(x_of(2, k))) for k in range(3)]


@pytest.mark.parametrize("name", METHODS)
def test_what_a_class_has_is_another_after_it_was_set(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, other = METHODS[name]
    with monkeypatch.context() as patch:
        wanted = called(function, lambda: patch.setattr(A, name, other))
    static = paddle.jit.to_static(function)
    with monkeypatch.context() as patch:
        assert called(static, lambda: patch.setattr(A, name, other)) == wanted
    assert called(static, lambda: None)[:3] == wanted[:3]


def both(make: Callable[[Wrap], Made]) -> None:
    """Do the same with a function as it is and a static one: three calls, then three after each change."""
    results: list[list[Any]] = []
    for wrap in (lambda f: f, functools.partial(paddle.jit.to_static, full_graph=True)):
        function, changes = make(wrap)
        found = [values(function(x_of(1, k))) for k in range(3)]
        for change in changes:
            change()
            found += [values(function(x_of(2, k))) for k in range(3)]
        results.append(found)
    assert results[1] == results[0]


class Net(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.ReLU(), nn.ReLU())

    def forward(self, x: Any) -> Any:
        return self.help(self.body(x))

    def help(self, x: Any) -> Any:
        return x + 1


def setting(owner: Any, name: str, value: Any) -> Change:
    return lambda: setattr(owner, name, value)


def deleting(owner: Any, name: str) -> Change:
    return lambda: delattr(owner, name)


@pytest.mark.parametrize("name", ["forward", "help"])
def test_a_method_of_one_layer(name: str) -> None:
    def make(wrap: Wrap) -> Made:
        net = Net()
        return wrap(lambda x: net(x)), [setting(net, name, lambda x: x * 50), deleting(net, name)]

    both(make)


def test_forward_of_a_layer_inside_of_another() -> None:
    def make(wrap: Wrap) -> Made:
        net = Net()
        inner: Any = net.body[1]
        return wrap(lambda x: net(x)), [setting(inner, "forward", lambda x: x * 50), deleting(inner, "forward")]

    both(make)


def test_forward_of_a_class_of_layers() -> None:
    def make(wrap: Wrap) -> Made:
        net = Net()
        patched = mock.patch.object(nn.ReLU, "forward", lambda self, x: x * 50)
        return wrap(lambda x: net(x)), [patched.start, patched.stop]

    both(make)


def test_methods_of_a_bound_static_function() -> None:
    def make(wrap: Wrap) -> Made:
        class M:
            @wrap
            def run(self, x: Any) -> Any:
                return self.help(x)

            def help(self, x: Any) -> Any:
                return x + 1

        m = M()
        return lambda x: m.run(x), [setting(M, "help", lambda self, x: x * 50), setting(m, "help", lambda x: x * 60)]

    both(make)


def doubled(x: Any) -> Any:
    return x * 2


class Doubling:
    def __call__(self, x: Any) -> Any:
        return x * 2


def test_mock_patch_of_a_global_function_a_class_and_a_method() -> None:
    def make(wrap: Wrap) -> Made:
        function = mock.patch.object(HERE, "doubled", lambda x: x * 50)
        kind = mock.patch.object(HERE, "Doubling", return_value=lambda x: x * 60)
        method = mock.patch.object(Doubling, "__call__", lambda self, x: x * 70)
        fixed = mock.patch.object(HERE, "doubled", return_value=x_of(9, 9))
        patches = [p for one in (function, kind, method, fixed) for p in (one.start, one.stop)]
        return wrap(lambda x: doubled(x) + Doubling()(x)), patches

    both(make)


def test_mock_patch_of_a_class_that_is_read_through_its_module() -> None:
    def make(wrap: Wrap) -> Made:
        kind = mock.patch.object(HERE, "Doubling", return_value=lambda x: x * 60)
        return wrap(lambda x: HERE.Doubling()(x)), [kind.start, kind.stop]

    both(make)


def test_what_is_nested_bound_or_kept_in_a_container() -> None:
    def make(wrap: Wrap) -> Made:
        class B:
            class Inner:
                k = 2.0

            def go(self, x: Any) -> Any:
                return x * type(self).Inner.k

        b = B()
        kept = [b.go]
        changes = [setting(B.Inner, "k", 50.0), setting(B, "Inner", mock.Mock(k=60.0))]
        return wrap(lambda x: b.go(x) + kept[0](x)), [*changes, setting(B, "go", lambda self, x: x * 70)]

    both(make)


def replaced_code(x: Any) -> Any:
    return x * 50


def test_code_and_defaults_of_a_function_that_is_called() -> None:
    def make(wrap: Wrap) -> Made:
        def h(x: Any, k: float = 2.0, *, s: float = 1.0) -> Any:
            return x * k + s

        def item() -> None:
            h.__kwdefaults__["s"] = 4.0

        first: list[Change] = [setting(h, "__defaults__", (50.0,)), setting(h, "__kwdefaults__", {"s": 3.0})]
        return wrap(lambda x: h(x)), [*first, item, setting(h, "__code__", replaced_code.__code__)]

    both(make)


def test_code_and_defaults_of_the_static_function_itself() -> None:
    def make(wrap: Wrap) -> Made:
        def h(x: Any, k: float = 2.0, *, s: float = 1.0) -> Any:
            return x * k + s

        def item() -> None:
            h.__kwdefaults__["s"] = 4.0

        first: list[Change] = [setting(h, "__defaults__", (50.0,)), setting(h, "__kwdefaults__", {"s": 3.0})]
        return wrap(h), [*first, item, setting(h, "__code__", replaced_code.__code__)]

    both(make)


@pytest.mark.parametrize("is_static_itself", [True, False])
def test_a_default_that_is_changed_stays_changed(is_static_itself: bool) -> None:
    def make(wrap: Wrap) -> Made:
        def add(x: Any, seen: list[Any] = [], *, table: dict[str, int] = {}) -> Any:  # noqa: B006 (what is tested)
            seen.append(x)
            table["n"] = table.get("n", 0) + 1
            return sum(seen) * table["n"]

        function = wrap(add) if is_static_itself else wrap(lambda x: add(x))
        return function, [lambda: None, lambda: add.__defaults__[0].clear()]

    both(make)


def test_a_class_attribute_that_the_function_writes_and_an_instance_reads() -> None:
    def make(wrap: Wrap) -> Made:
        class C:
            n = 0

        def f(x: Any) -> Any:
            C.n += 1
            return x * C().n

        return wrap(f), [setting(C, "n", 7)]

    both(make)


def test_methods_of_objects_that_the_function_makes() -> None:
    def make(wrap: Wrap) -> Made:
        class C:
            def __init__(self, k: float):
                self.k = k

            def go(self, x: Any) -> Any:
                return x * self.k

        def other(self: Any, k: float) -> None:
            self.k = k * 50

        go = setting(C, "go", lambda self, x: x + self.k)
        return wrap(lambda x: C(2.0).go(x)), [go, setting(C, "__init__", other)]

    both(make)


def test_bases_and_the_class_of_an_object() -> None:
    def make(wrap: Wrap) -> Made:
        class B:
            def m(self, x: Any) -> Any:
                return x + 1

        class B2:
            def m(self, x: Any) -> Any:
                return x * 50

        class D(B):
            def m(self, x: Any) -> Any:
                return super().m(x) * 2

        class E(D):
            def m(self, x: Any) -> Any:
                return x * 70

        d = D()
        changes: list[Change] = [setting(B, "m", lambda self, x: x * 3), setting(D, "__bases__", (B2,))]
        return wrap(lambda x: d.m(x) * (2.0 if isinstance(d, E) else 1.0)), [*changes, setting(d, "__class__", E)]

    both(make)


def test_keywords_of_a_partial() -> None:
    def make(wrap: Wrap) -> Made:
        space = types.SimpleNamespace(p=functools.partial(lambda x, k: x * k, k=2.0))
        return wrap(lambda x: space.p(x)), [lambda: space.p.keywords.update(k=50.0)]

    both(make)


def test_methods_of_an_argument_that_is_taken_apart() -> None:
    class P:
        def __init__(self, a: float):
            self.a = a

        def total(self) -> float:
            return self.a * 2

    f = paddle.jit.to_static(lambda x, p: x * p.total())
    assert [float(f(x_of(1), P(k))) for k in range(4)] == [0, 2, 4, 6]
    P.total = lambda self: self.a * 50  # type: ignore[method-assign]
    assert [float(f(x_of(1), P(k))) for k in range(4)] == [0, 50, 100, 150]


def test_an_attribute_that_was_deleted_is_no_error_of_its_own() -> None:
    class C:
        n = 3.0

    f = paddle.jit.to_static(lambda x: x * getattr(C, "n", 1.0))
    assert [float(f(x_of(1))) for _ in range(3)] == [3, 3, 3]
    C.n = 50.0
    assert [float(f(x_of(1))) for _ in range(3)] == [50, 50, 50]
    del C.n
    assert [float(f(x_of(1))) for _ in range(3)] == [1, 1, 1]


def test_data_of_a_class_that_changes_at_each_call_traces_nothing_anew() -> None:
    class C:
        made = 0

        def m(self, x: Any) -> Any:
            return x + 1

    c, f = C(), paddle.jit.to_static(lambda x: c.m(x))
    for k in range(200):
        C.made += 1
        assert float(f(x_of(k))) == k + 1
    assert len(f.program_cache) == 1


def test_explain_names_the_method_that_changed() -> None:
    class C:
        def m(self, x: Any) -> Any:
            return x + 1

    c, f = C(), paddle.jit.to_static(lambda x: c.m(x))
    f(x_of(1))
    C.m = lambda self, x: x  # type: ignore[method-assign]
    f(x_of(1))
    assert "a method of test_explain_names_the_method_that_changed.<locals>.C has changed" in str(f.explain())


def test_an_object_of_another_class_is_seen_by_calls_of_native_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", "native")
    made, x = A(), x_of(1, 2)
    function = paddle.jit.to_static(lambda x: made.m(x), full_graph=True)
    for _ in range(5):
        assert function(x).tolist() == [2, 3]
    made.__class__ = type("Other", (A,), {"m": lambda self, x: x * 5})
    assert function(x).tolist() == [5, 10]
