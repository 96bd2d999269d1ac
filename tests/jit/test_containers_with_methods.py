"""Containers and objects with methods of their own: what these do happens once at each call, as in eager mode."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, fields
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


@dataclass
class Answer(Output):
    loss: Any = None
    logits: Any = None

    def __post_init__(self) -> None:
        for at in fields(self):
            if getattr(self, at.name) is not None:
                self[at.name] = getattr(self, at.name)

    def __getitem__(self, key: Any) -> Any:
        return dict(self.items())[key] if isinstance(key, str) else tuple(self.values())[key]


class Easy(dict):
    def __init__(self, d: Any = None, **keywords: Any):
        for name, value in {**(d or {}), **keywords}.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, list):
            value = [self.__class__(i) if isinstance(i, dict) else i for i in value]
        elif isinstance(value, dict) and not isinstance(value, Easy):
            value = self.__class__(value)
        super().__setattr__(name, value)
        super().__setitem__(name, value)

    __setitem__ = __setattr__


class Shared(dict):
    def __init__(self, **keywords: Any):
        super().__init__(**keywords)
        self.__dict__ = self


class Renamed(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__


class Lists(defaultdict):
    def add(self, key: Any, value: Any) -> None:
        self[key].append(value)


class Tens(list):
    def __iter__(self) -> Any:
        for item in super().__iter__():
            yield item * 10


class Recent(OrderedDict):
    def __init__(self, most: int):
        super().__init__()
        self.most = most

    def put(self, key: Any, value: Any) -> None:
        self[key] = value
        self.move_to_end(key)
        if len(self) > self.most:
            self.popitem(last=False)


class Mapped(MutableMapping):
    def __init__(self) -> None:
        self.held: dict[Any, Any] = {}

    def __getitem__(self, key: Any) -> Any:
        return self.held[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.held[key] = value

    def __delitem__(self, key: Any) -> None:
        del self.held[key]

    def __iter__(self) -> Any:
        return iter(self.held)

    def __len__(self) -> int:
        return len(self.held)


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
    held = getattr(x, "__dict__", {})
    own = {} if held is x else {k: shown(v) for k, v in held.items()}
    if isinstance(x, dict):
        return type(x).__name__, [(k, shown(v)) for k, v in dict.items(x)], own
    if isinstance(x, (list, tuple)):
        return type(x).__name__, [shown(i) for i in (list.__iter__(x) if isinstance(x, list) else x)], own
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


def model_output(x, d):
    if x.sum() > 0:
        return Answer(loss=x.sum(), logits=x)
    made = Answer(logits=x * 2)
    made.loss = made[0].mean()
    return made


def easy_dict(x, d):
    made = Easy(a=x, inner={"b": x * 2}, rows=[{"c": x}])
    made.d = made.inner.b + made.rows[0].c
    if x.sum() > 0:
        made.inner.e = made["d"]
    return made


def items_are_attributes(x, d):
    made = Shared(a=x)
    made.b = made["a"] * 2
    if x.sum() > 0:
        made.c = made.b
    del made.a
    return made, hasattr(made, "c"), hasattr(made, "a")


def methods_of_dict(x, d):
    made = Renamed(a=x)
    made.b = made.a + 1
    if x.sum() > 0:
        made.a = made.b
    del made.b
    return made, made.a


def made_for_missing_keys(x, d):
    made = Lists(list)
    made.add("a", x)
    if x.sum() > 0:
        made.add("b", x * 2)
    return made, len(made)


def iterated_by_its_own_method(x, d):
    made = Tens([x])
    n = 0
    while n < x.sum():
        made.append(x * n)
        n = n + 1
    return [item for item in made], made


def keeps_its_order(x, d):
    made = Recent(2)
    for name in ("a", "b", "a", "c"):
        made.put(name, x)
    if x.sum() > 0:
        made.put("d", x * 2)
    return made, list(made)


def either_of_two_classes(x, d):
    if x.sum() > 0:
        made = Tens([x])
        made.note = "positive"
    else:
        made = Counted(a=x)
    return made, len(made), isinstance(made, Tens)


def made_in_turns(x, d):
    found = []
    for k in range(paddle.to_tensor(3)):
        made = Renamed(k=x * k)
        made.twice = made.k * 2
        found.append(made)
    return found


def mapping_of_ones_own(x, d):
    made = Mapped()
    made["a"] = x
    if x.sum() > 0:
        made.setdefault("b", x)
    return made, "b" in made, len(made)


CONVERTED = [
    model_output, easy_dict, items_are_attributes, methods_of_dict, made_for_missing_keys, iterated_by_its_own_method,
    keeps_its_order, either_of_two_classes, made_in_turns, mapping_of_ones_own, made_in_a_branch, made_here,
    appended_and_returned, output_returned,
]  # fmt: skip


@pytest.mark.parametrize("use", CONVERTED)
def test_containers_of_users_classes_that_are_made_are_given_back(use):
    assert history(paddle.jit.to_static(use, full_graph=True), dict) == history(use, dict)


def test_a_dict_whose_order_has_changed_is_another_one():
    d = {"a": 1.0, "b": 2.0}
    f = paddle.jit.to_static(lambda x: x * next(iter(d.values())), full_graph=True)
    x = paddle.to_tensor([1.0])
    assert float(f(x)) == 1.0
    d["a"] = d.pop("a")
    assert float(f(x)) == 2.0


@pytest.mark.parametrize(
    ("use", "make"), [(item_written, lambda: Counted(a=1)), (attribute_written, lambda: Noted(1.0))]
)
def test_writes_through_methods_of_the_users_are_converted(use, make):
    assert history(paddle.jit.to_static(use, full_graph=True), make) == history(use, make)


def test_what_cannot_be_made_again_is_refused_with_its_name():
    f = paddle.jit.to_static(tuple_with_attributes, full_graph=True)
    with pytest.raises(paddle.errors.Dy2stError, match="Sum has attributes"):
        f(paddle.to_tensor([1.0, 2.0]), {})
