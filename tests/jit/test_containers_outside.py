"""Containers outside of the function: dicts, lists, tuples and a user's own, read and changed."""

from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import numpy as np
import pytest

import dy2st as paddle

Pair = namedtuple("Pair", "x y")


def tensor(*values):
    return paddle.to_tensor(np.array(values, "float32"))


def test_a_dict_that_makes_its_items():
    groups = defaultdict(list)

    @paddle.jit.to_static(full_graph=True)
    def f(x):
        groups["all"].append(x.sum())
        mine = defaultdict(int)
        mine["n"] += 1
        if x.sum() > 0:
            mine["n"] += 2
        return mine, len(groups["all"])

    mine, length = f(tensor(1, 2))
    assert type(mine) is defaultdict
    assert mine["n"] == 3
    assert mine["other"] == 0
    assert length == 1
    assert f(tensor(-1, -2))[1] == 2
    assert [float(x) for x in groups["all"]] == [3, -3]


def test_ordered_and_counting_dicts():
    @paddle.jit.to_static(full_graph=True)
    def f(x):
        order = OrderedDict(a=x, b=x * 2)
        order.move_to_end("a")
        letters = Counter("abca")
        letters.subtract("a")
        return order, letters

    order, letters = f(tensor(1))
    assert [(k, v.tolist()) for k, v in order.items()] == [("b", [2]), ("a", [1])]
    assert type(letters) is Counter
    assert letters["a"] == 1


def test_containers_that_operators_change():
    names, rows = {"a"}, deque([1, 2])

    @paddle.jit.to_static(full_graph=True)
    def f(x, d):
        nonlocal names, rows
        names |= {"b"}
        rows += [3]
        d |= {"k": x}
        return x

    d = {}
    f(tensor(1), d)
    assert sorted(names) == ["a", "b"]
    assert list(rows) == [1, 2, 3]
    assert d["k"].tolist() == [1]


def test_a_list_that_is_put_into_a_dict_from_outside():
    store = {}

    @paddle.jit.to_static(full_graph=True)
    def f(x):
        store["rows"] = [x, [x * 2]]
        return x

    f(tensor(1))
    assert [store["rows"][0].tolist(), store["rows"][1][0].tolist()] == [[1], [2]]


def test_named_tuples_and_ordered_dicts_as_arguments():
    @paddle.jit.to_static(full_graph=True)
    def f(pair, words):
        words["z"] = pair.x * 2
        return Pair(pair.x + pair.y, pair.y) if pair.x.sum() > 0 else pair

    words = OrderedDict(a=tensor(1))
    assert f(Pair(tensor(1), tensor(2)), words).x.tolist() == [3]
    assert words["z"].tolist() == [2]
    assert f(Pair(tensor(-1), tensor(2)), OrderedDict(a=tensor(1))).x.tolist() == [-1]
    assert len(f.program_cache) == 1


def test_special_methods_of_a_users_class():
    class Memory:
        def __init__(self):
            self.found = {}

        def __getitem__(self, key):
            return self.found[key]

        def __setitem__(self, key, value):
            self.found[key] = value

        def __delitem__(self, key):
            del self.found[key]

        def __contains__(self, key):
            return key in self.found

        def __len__(self):
            return len(self.found)

        def __iter__(self):
            return iter(self.found)

    memory = Memory()

    @paddle.jit.to_static(full_graph=True)
    def f(x):
        memory["a"], memory["b"] = x, x * 2
        del memory["a"]
        return len(memory), "a" in memory, memory["b"], [key for key in memory]

    for value in (1, 2):
        length, there, b, keys = f(tensor(value))
        assert (length, there, b.tolist(), keys) == (1, False, [2 * value], ["b"])
        assert memory.found["b"].tolist() == [2 * value]


def test_a_setter_of_a_property_is_converted():
    class Net(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.kept = 1.0

        @property
        def scale(self):
            return self.kept

        @scale.setter
        def scale(self, value):
            self.kept = value

        def forward(self, x):
            self.scale = self.scale * 2
            return x * self.scale

    net = Net()
    f = paddle.jit.to_static(net.forward, full_graph=True)
    assert [float(f(tensor(1))[0]) for _ in range(3)] == [2, 4, 8]


def test_a_program_that_reads_the_items_of_a_list_can_be_printed():
    rows, named = [tensor(1), 2, tensor(3)], {(1, 2): tensor(5)}
    f = paddle.jit.to_static(lambda x: x + rows[0] + rows[2] + named[1, 2], full_graph=True)
    assert f(tensor(1)).tolist() == [10]
    assert "item_2" in str(f.main_program)


def _appended_or_cleared(rows, v):
    if v.sum() < 0:
        rows.append(v.sum())
    else:
        rows.clear()
    return len(rows)


def _appended_and_taken(rows, v):
    rows.append(v.sum())
    if len(rows) > 2:
        rows.pop(0)
    return len(rows)


def _cleared_between(rows, v):
    rows.append(v.sum())
    if v.sum() < -1.5:
        rows.clear()
    else:
        rows.append(v * 3)
    return v * 1


def _appended_and_cleared_in_a_loop(rows, v):
    for i in range(len(v)):
        if v[i] > 0:
            rows.clear()
        rows.append(v[i])
    return len(rows)


@pytest.mark.parametrize(
    "change", [_appended_or_cleared, _appended_and_taken, _cleared_between, _appended_and_cleared_in_a_loop]
)
def test_a_list_outside_that_is_appended_to_and_changed_otherwise(change):
    def three(make: Any) -> Any:
        rows: list[Any] = []
        step = make(lambda v: change(rows, v))
        found = []
        for first in (-1.0, -2.0, 1.0, -1.0):
            result = step(tensor(first, -first, first))
            found.append((float(result.sum()) if isinstance(result, paddle.Tensor) else result,
                          [row.tolist() for row in rows]))  # fmt: skip
        return found

    assert three(lambda f: paddle.jit.to_static(f, full_graph=True)) == three(lambda f: f)
