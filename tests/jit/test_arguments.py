"""Which calls share a Program: values by value, objects by what they are made of; what arguments are told apart by."""

import dataclasses
import datetime
import decimal
import functools
import pathlib
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import Dy2stError
from dy2st.jit.static_function import FallbackWarning

T = paddle.to_tensor


class Counter:
    """Something with a method."""

    def add(self, x: Any) -> Any:
        return x + 1


COUNTER = Counter()


def scaled(x: Any, k: Any) -> Any:
    return x * k


def captured(k: int) -> Callable[[Any], Any]:
    return lambda x: x + k


def used(a: Any, x: Any) -> Any:
    return x + a(x) if callable(a) else x


# ---- arguments that are equal ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "make",
    [
        lambda: "ab" + str(len("c")),
        lambda: np.float32(2.0),
        lambda: np.int64(3),
        lambda: lambda v: v + 1,
        lambda: captured(3),
        lambda: COUNTER.add,
        lambda: functools.partial(scaled, k=2),
        lambda: frozenset([1, 2]),
        lambda: range(3),
        lambda: decimal.Decimal("1.5"),
        lambda: pathlib.PurePath("a"),
        lambda: datetime.date(2020, 1, 1),
        lambda: float("nan"),
    ],
)
def test_an_equal_argument_that_is_new_at_each_call_is_not_traced_again(make: Callable[[], Any]) -> None:
    static = paddle.jit.to_static(used, full_graph=True)
    for _ in range(4):
        assert float(static(make(), T(1.0))) == float(used(make(), T(1.0)))
    assert len(static.program_cache) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (captured(1), captured(2)),
        (functools.partial(scaled, k=2), functools.partial(scaled, k=3)),
        (lambda v, k=1: v + k, lambda v, k=2: v + k),
        (Counter().add, lambda v: v),
    ],
)
def test_functions_that_differ_are_told_apart(one: Any, other: Any) -> None:
    static = paddle.jit.to_static(used, full_graph=True)
    for f in (one, other, one, other):
        assert float(static(f, T(1.0))) == float(used(f, T(1.0)))
    assert len(static.program_cache) == 2


def test_a_captured_variable_that_is_assigned_keeps_functions_apart() -> None:
    def counting():
        n = 0

        def count(x):
            nonlocal n
            n += 1
            return x * n

        return count

    static = paddle.jit.to_static(used, full_graph=True)
    for f in (counting(), counting()):
        assert [float(static(f, T(1.0))) for _ in range(3)] == [2.0, 3.0, 4.0]


# ---- objects ---------------------------------------------------------------------------------------------------------
@dataclasses.dataclass
class Batch:
    x: Any
    k: int = 3
    name: str = "a"
    seen: list = dataclasses.field(default_factory=list)

    def scaled(self) -> Any:
        return self.x * self.k


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: Any


class Pair:
    def __init__(self, x: Any):
        self.x, self.other = x, {"y": x * 2}


def of_batch(batch: Any, x: Any) -> Any:
    return batch.scaled() + x


def test_a_dataclass_that_is_new_at_each_call_is_traced_twice_at_most() -> None:
    static = paddle.jit.to_static(of_batch, full_graph=True)
    for i in range(6):
        assert float(static(Batch(T(float(i))), T(1.0))) == 3.0 * i + 1
    assert len(static.program_cache) == 2


@pytest.mark.parametrize("kind", [Frozen, Pair])
def test_other_objects_that_are_new_at_each_call_share_a_program(kind: Any) -> None:
    static = paddle.jit.to_static(lambda a, x: a.x * 2 + x, full_graph=True)
    for i in range(6):
        assert float(static(kind(T(float(i))), T(1.0))) == 2.0 * i + 1
    assert len(static.program_cache) == 2


def test_objects_inside_of_containers_share_a_program() -> None:
    static = paddle.jit.to_static(lambda items, at: items[0].x + at["b"].x, full_graph=True)
    for i in range(6):
        assert float(static([Frozen(T(float(i)))], {"b": Frozen(T(1.0))})) == i + 1
    assert len(static.program_cache) == 2


def test_an_attribute_that_is_a_number_becomes_an_input() -> None:
    static = paddle.jit.to_static(of_batch, full_graph=True)
    for i in range(6):
        assert float(static(Batch(T(2.0), k=i), T(1.0))) == 2.0 * i + 1
    assert len(static.program_cache) == 3


def test_an_attribute_that_is_text_is_part_of_the_key() -> None:
    static = paddle.jit.to_static(lambda b, x: x * 2 if b.name == "a" else x, full_graph=True)
    assert [float(static(Batch(T(0.0), name=n), T(1.0))) for n in "aabbab"] == [2.0, 2.0, 1.0, 1.0, 2.0, 1.0]
    assert len(static.program_cache) == 3


def write_to_batch(batch: Any, x: Any) -> Any:
    if x > 0:
        batch.x = batch.x + x
        batch.k += 1
        batch.name = "changed"
    batch.seen.append(x)
    batch.new = x * 2
    return batch.k


def test_what_is_written_reaches_the_object_of_each_call() -> None:
    static = paddle.jit.to_static(write_to_batch, full_graph=True)
    for x in (1.0, -1.0, 2.0, -2.0, 3.0):
        mine, theirs = Batch(T(0.5)), Batch(T(0.5))
        assert static(theirs, T(x)) == write_to_batch(mine, T(x))
        assert repr(vars(theirs)) == repr(vars(mine))


def test_the_gradient_reaches_an_attribute() -> None:
    static = paddle.jit.to_static(lambda a: (a.x * a.x).sum(), full_graph=True)
    x = paddle.to_tensor([3.0], stop_gradient=False)
    for _ in range(3):
        x.clear_gradient()
        static(Frozen(x)).backward()
        assert x.grad.tolist() == [6.0]
    assert len(static.program_cache) == 2


def test_one_object_twice_stays_one_object() -> None:
    def write(a, b, x):
        a.k = 100
        return b.k + x

    static = paddle.jit.to_static(write, full_graph=True)
    for i in range(4):
        batch = Batch(T(0.0), k=i)
        assert float(static(batch, batch, T(1.0))) == 101.0
        assert float(static(Batch(T(0.0), k=i), Batch(T(0.0), k=i), T(1.0))) == i + 1


@pytest.mark.parametrize("kind", [Batch, list, dict])
def test_one_object_twice_is_told_from_two_by_recognised_calls_too(kind: type) -> None:
    make: Any = Batch if kind is Batch else lambda x: kind({"x": x} if kind is dict else [x])

    def write(a: Any, b: Any, x: Any) -> Any:
        if kind is Batch:
            a.x = a.x * 0 + 100
            return b.x + x
        a["x" if kind is dict else 0] = x * 0 + 100
        return b["x" if kind is dict else 0] + x

    for same in (False, True):
        static = paddle.jit.to_static(write, full_graph=True)
        for i in range(6):
            one, other = make(T(1.0)), make(T(1.0))
            given = (one, one) if same != (i == 5) else (one, other)
            assert float(static(*given, T(float(i)))) == (100.0 if given[0] is given[1] else 1.0) + i


def test_an_object_that_is_handed_back_is_that_of_each_call() -> None:
    static = paddle.jit.to_static(lambda batch, x: (x, {"b": batch}), full_graph=True)
    for i in range(4):
        one = Batch(T(float(i)))
        assert static(one, T(1.0))[1]["b"] is one
    assert len(static.program_cache) == 2


def test_what_is_written_to_vars_of_an_argument_is_its_attributes() -> None:
    static = paddle.jit.to_static(lambda batch, x: vars(batch).update(k=9) or x + batch.k, full_graph=True)
    for i in range(4):
        one = Batch(T(float(i)))
        assert static(one, T(1.0)).tolist() == 10.0
        assert one.k == 9
    assert len(static.program_cache) == 2


def test_a_file_does_not_hold_an_object(tmp_path: pathlib.Path) -> None:
    static = paddle.jit.to_static(of_batch, full_graph=True)
    for i in range(3):
        static(Batch(T(float(i))), T(1.0))
    with pytest.raises((TypeError, Dy2stError), match="Batch"):
        paddle.jit.save(static, str(tmp_path / "m"))


# ---- memory that arguments share -------------------------------------------------------------------------------------
def write_first(x: Any, y: Any) -> Any:
    x[0] = 9.0
    return y + 0


def test_arguments_that_share_memory_run_eagerly_where_one_is_written() -> None:
    static = paddle.jit.to_static(write_first)
    for _ in range(3):
        assert static(T([1.0]), T([2.0])).tolist() == [2.0]
    base = T([1.0, 2.0])
    with pytest.warns(FallbackWarning, match="two arguments share memory and one of them is written"):
        assert static(base, base[0:1]).tolist() == [9.0]
    rows = T([[1.0], [2.0]])
    assert static(rows[0], rows[1]).tolist() == [2.0]
    assert rows.tolist() == [[9.0], [2.0]]
    assert static(T([1.0]), T([2.0])).tolist() == [2.0]
    with pytest.raises(Dy2stError, match="give it a clone of one"):
        paddle.jit.to_static(write_first, full_graph=True)(rows[0], rows[1])


def test_views_of_one_tensor_that_are_only_read_share_a_program() -> None:
    static = paddle.jit.to_static(lambda x, y: x + y, full_graph=True)
    rows = T([[1.0], [2.0]])
    for _ in range(3):
        assert static(rows[0], rows[1]).tolist() == [3.0]
    assert len(static.program_cache) == 1


def test_objects_that_lead_back_to_themselves() -> None:
    class Node:
        def __init__(self, x):
            self.x, self.next = x, self

    static = paddle.jit.to_static(lambda node: node.next.next.x + node.x, full_graph=True)
    for i in range(5):
        assert float(static(Node(T(float(i))))) == 2.0 * i
    assert "next" in str(static.explain()) or len(static.program_cache) <= 3


# ---- sets and deques -------------------------------------------------------------------------------------------------
def add_to_both(names: Any, queue: Any, x: Any) -> Any:
    if x > 0:
        names.add("more")
        queue.append(x)
    return len(names), sum(queue), "a" in names


def test_sets_and_deques_that_are_new_at_each_call_share_a_program() -> None:
    static = paddle.jit.to_static(add_to_both, full_graph=True)
    for value in (1.0, -1.0, 2.0, -2.0):
        mine, theirs = ({"a", "b"}, deque([T(1.0)])), ({"a", "b"}, deque([T(1.0)]))
        assert repr(static(*theirs, T(value))) == repr(add_to_both(*mine, T(value)))
        assert (theirs[0], repr(theirs[1])) == (mine[0], repr(mine[1]))
    assert len(static.program_cache) == 1
    assert static({"b", "c"}, deque(), T(1.0))[2] is False


def test_a_set_of_numbers_that_differ() -> None:
    static = paddle.jit.to_static(lambda x, numbers: x + len(numbers) + (3 in numbers), full_graph=True)
    for numbers in ({1, 2}, {3, 4}, {3, 4}, {5, 3, 1}, set(), {1, 2}):
        assert float(static(T(1.0), numbers)) == 1.0 + len(numbers) + (3 in numbers)


def test_a_deque_with_a_greatest_length_keeps_it() -> None:
    static = paddle.jit.to_static(lambda last, x: last.append(x) or len(last), full_graph=True)
    for _ in range(2):
        last = deque([1, 2], maxlen=2)
        assert static(last, T(5.0)) == 2
        assert list(map(float, last)) == [2.0, 5.0]


# ---- NumPy arrays ----------------------------------------------------------------------------------------------------
def augment(a: Any, x: Any) -> Any:
    a += 1
    return x + a


def write_item(a: Any, x: Any) -> Any:
    a[0] = 7
    return x + a


def test_an_array_of_another_byte_order_is_an_argument_like_any() -> None:
    @paddle.jit.to_static(full_graph=True)
    def double(x):
        return paddle.to_tensor(x) * 2

    x = np.arange(3, dtype="float32")
    for given in (x.astype(">f4"), x, x.astype(">f4"), x.astype(">f4")):
        assert double(given).tolist() == [0.0, 2.0, 4.0]


@pytest.mark.parametrize("f", [augment, write_item])
def test_an_array_argument_that_is_written_runs_eagerly(f: Any) -> None:
    mine, theirs = np.ones(2, "float32"), np.ones(2, "float32")
    static = paddle.jit.to_static(f)
    with pytest.warns(FallbackWarning, match="NumPy array: give the function a tensor|NumPy array is written"):
        static(theirs, T([1.0, 2.0]))
    f(mine, T([1.0, 2.0]))
    for _ in range(2):
        assert static(theirs, T([1.0, 2.0])).tolist() == f(mine, T([1.0, 2.0])).tolist()
    assert theirs.tolist() == mine.tolist()
    assert static(T([1.0, 2.0]), T([1.0, 2.0])).tolist() == f(T([1.0, 2.0]), T([1.0, 2.0])).tolist()


def test_the_text_of_an_array_argument_is_an_arrays(capsys: pytest.CaptureFixture[str]) -> None:
    def show(a, x):
        print(a, [a], x)
        return f"{a!r} {a}"

    static = paddle.jit.to_static(show, full_graph=True)
    for rows in ([1, 2], [3, 4, 5]):
        a, x = np.array(rows), T([1.0])
        assert static(a, x) == show(a, x)
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == printed[2:4]
    assert printed[0].startswith("[1 2] [array([1, 2])]")
