"""Lists whose length only the run will tell, lists that Python itself handles, and unpacking."""

import heapq
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import NeedsPythonValue, StructureError

T = paddle.to_tensor


def shown(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return [shown(i) for i in x]
    return x.numpy().tolist() if isinstance(x, paddle.Tensor) else x


def total(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return sum((total(i) for i in x), 0.0)
    return (x * x).sum() if isinstance(x, paddle.Tensor) else x


def agree(function: Callable[..., Any], *calls: tuple[Any, ...]) -> None:
    static = paddle.jit.to_static(function, full_graph=True)
    for rest in calls:
        one, two = (T([1.0, 2.0], stop_gradient=False) for _ in range(2))
        want, got = function(one, *rest), static(two, *rest)
        assert shown(got) == shown(want)
        for result in (want, got):
            if isinstance(total(result), paddle.Tensor):
                total(result).backward()
        assert (two.grad is None) == (one.grad is None)
        if one.grad is not None:
            np.testing.assert_allclose(two.grad.numpy(), one.grad.numpy())


def test_insert_reverse_and_slices() -> None:
    def f(x: Any, n: Any) -> Any:
        out = []
        for i in range(n):
            out.append(x * i)
        out.insert(1, x * 100)
        out.reverse()
        tail, head, back = out[1:], out[:-1], out[::-1]
        out[0:1] = [x * 7, x * 8]
        return out, tail, head, back, len(out)

    agree(f, (T(3),), (T(1),), (T(0),))


def test_clear_and_extend() -> None:
    def f(x: Any, n: Any) -> Any:
        out, more = [x], []
        for i in range(n):
            more.append(x * i)
            if i == 2:
                more.clear()
        out.extend(more)
        out += more
        return out

    agree(f, (T(2),), (T(5),))


def test_plus_star_and_copies_of_a_list_that_grew() -> None:
    def f(x: Any, n: Any) -> Any:
        out = []
        for i in range(n):
            out.append(x * i)
        return out + [x], [x, *out, x], list(out), len([*out, x])

    agree(f, (T(3),), (T(0),))


def test_elements_of_several_types() -> None:
    def f(x: Any, n: Any) -> Any:
        out = []
        for i in range(n):
            if i % 2 == 0:
                out.append(x * i)
            else:
                out.append(i)
        out.insert(0, x * 10)
        out.reverse()
        s = 0.0
        for v in out:
            s = s + (v * v).sum() if isinstance(v, paddle.Tensor) else s + v
        return out, s

    agree(f, (T(1),), (T(4),))


def test_a_list_made_in_the_trace_is_seen_by_python_itself() -> None:
    def f(x: Any) -> Any:
        out = []
        out.append(x)
        same = out
        if x.sum() > 0:
            same.append(x * 2)
        heap: list[int] = []
        for i in (3, 1, 2):
            heapq.heappush(heap, i)
        return out + [x], len(same), heap, [*heap]

    agree(f, ())


def test_a_list_in_a_list_of_unknown_length_grows_after_it_was_put_there() -> None:
    def f(x: Any, n: Any) -> Any:
        rows = []
        for i in range(n):
            row = [x, x * i]
            rows.append(row)
            row.append(x)
        return rows

    agree(f, (T(3),))


def test_a_step_in_a_slice_is_refused() -> None:
    def f(x: Any, n: Any) -> Any:
        out = []
        for i in range(n):
            out.append(x * i)
        return out[::2]

    with pytest.raises(StructureError, match="a slice with a step of a list"):
        paddle.jit.to_static(f, full_graph=True)(T([1.0]), T(3))


def test_a_step_in_a_slice_that_is_assigned_is_refused() -> None:
    def f(x: Any, n: Any) -> Any:
        out = []
        for i in range(n):
            out.append(x * i)
        out[::2] = [x]
        return out

    with pytest.raises(StructureError, match="every n-th element of a list"):
        paddle.jit.to_static(f, full_graph=True)(T([1.0]), T(3))


def test_unpack_of_a_tensor_checks_its_length_in_the_run() -> None:
    @paddle.jit.to_static(full_graph=True)
    def f(x: Any) -> Any:
        a, b = x
        return a - b

    assert float(f(T([5.0, 2.0]))) == 3.0
    with pytest.raises(ValueError, match=r"not enough values to unpack \(expected 2, got 1\)"):
        f(T([5.0]))
    with pytest.raises(ValueError, match=r"too many values to unpack \(expected 2\)"):
        f(T([5.0, 2.0, 1.0]))
    assert len(f.program_cache) == 1


def test_unpack_of_a_list_that_grew() -> None:
    def f(x: Any, n: Any) -> Any:
        out = []
        for i in range(n):
            out.append(x * i)
        first, *rest, last = out
        return first, rest, last

    agree(f, (T(2),), (T(5),))
    with pytest.raises(ValueError, match="not enough values to unpack"):
        paddle.jit.to_static(f, full_graph=True)(T([1.0]), T(1))


def test_unpack_of_one_of_several_tuples() -> None:
    def f(x: Any) -> Any:
        pair = (x, 3) if x.sum() > 0 else (x * 2, x)
        a, b = pair
        return a * b

    agree(f, ())


def test_a_starred_target_of_what_has_no_known_length() -> None:
    @paddle.jit.to_static(full_graph=True)
    def f(x: Any) -> Any:
        first, *rest = x
        return first, rest

    for values in ([1.0, 2.0], [1.0, 2.0, 3.0], [4.0]):
        first, rest = f(T(values))
        assert [first.item(), *(x.item() for x in rest)] == values
    assert len(f.program_cache) == 1
    with pytest.raises(ValueError, match=r"not enough values to unpack \(expected at least 1, got 0\)"):
        f(T([]))


def test_a_starred_target_of_one_of_several_things_is_refused() -> None:
    def several(x: Any) -> Any:
        pair = (x, x) if x.sum() > 0 else None
        first, *_rest = pair
        return first

    with pytest.raises(StructureError, match="one of several things is unpacked into a starred target"):
        paddle.jit.to_static(several, full_graph=True)(T([1.0, 2.0]))


def test_what_is_written_to_arguments_is_written_to_those_of_each_call() -> None:
    @paddle.jit.to_static(full_graph=True)
    def f(x: Any, items: Any, table: Any, again: Any) -> Any:
        x[0] = 7
        items.append(x.sum())
        table["k"] = len(items)
        if x.sum() > 8:
            again.pop()
        return x * 2

    for values in ([1, 2], [1, 0]):
        items, table = [1], {}
        x = T(values)
        f(x, items, table, items)
        assert x.numpy().tolist() == [7, values[1]]
        assert [shown(i) for i in items] == ([1] if values[1] == 2 else [1, 7])
        assert shown(table["k"]) == 2
    assert len(f.program_cache) == 1


def test_a_list_that_is_rebuilt_and_returned_from_inside_of_a_loop() -> None:
    def f(x: Any, n: Any) -> Any:
        out, i = [], 0
        while i < n:
            out = out + [x * (i + 2)]
            if i > 1:
                return out
            i = i + 1
        return out

    agree(f, (T(2),), (T(5),), (T(0),), (T(5),), (T(1),))


def test_a_name_of_the_list_before_it_was_rebuilt() -> None:
    def f(x: Any, n: Any) -> Any:
        out, i = [], 0
        keep = out
        while i < n:
            if i == 1:
                keep = out
            out = [e * 1.5 for e in out] + [x * (i + 2)]
            i = i + 1
        return out, keep[:]  # eager mode returns one list twice for n = 0, so that would run eagerly

    agree(f, (T(2),), (T(5),), (T(0),), (T(5),), (T(1),))


def test_lists_put_together_are_handed_to_the_package() -> None:
    def f(x: Any, n: Any) -> Any:
        out, pairs = [], {"k": [x]}
        for i in range(n):
            out.append(x * i)
            pairs["k"] = pairs["k"][-4:] + [x * x * i]
        return (
            paddle.concat(out + [x]),
            paddle.stack([x, *out]),
            paddle.stack(pairs["k"]),
            paddle.add_n(list(out) + [x]),
        )

    agree(f, (T(2),), (T(6),), (T(0),), (T(6),))


def test_rows_and_columns_of_lists_that_grew() -> None:
    def f(x: Any, n: Any) -> Any:
        rows, points, grids = [x], [x.sum()], [x.reshape([1, -1])]
        for i in range(n):
            rows.append(x * i)
            points.append(x[0] * i)
            grids = grids.copy()
            grids.append(grids[-1] * 2)
        every = [rows, points, grids]
        return [[join(items) for items in every] for join in (
            paddle.hstack, paddle.vstack, paddle.dstack, paddle.column_stack, paddle.row_stack)], paddle.multiplex(
                rows, paddle.to_tensor([[0], [0]]))  # fmt: skip

    agree(f, (T(2),), (T(5),), (T(0),), (T(5),))


def test_equality_of_a_list_that_grew() -> None:
    def f(x: Any, n: Any) -> Any:
        seen = []
        for i in range(n):
            seen.append(i)
        return seen == [], seen != [0, 1], [0] + seen == [0, 0, 1], [] == seen

    agree(f, (T(2),), (T(3),), (T(0),), (T(2),))


@pytest.mark.parametrize("use", [
    lambda items, x: (*items, x), lambda items, x: len({*items}), lambda items, x: (lambda *a: x * len(a))(*items),
    lambda items, x: paddle.atleast_2d(*items), lambda items, x: paddle.utils.flatten(items),
])  # fmt: skip
def test_items_that_only_the_run_will_tell_are_not_handed_over_one_by_one(use: Any) -> None:
    def f(x: Any, n: Any) -> Any:
        items = []
        for i in range(n):
            items.append(x * i)
        return use(items, x)

    with pytest.raises(NeedsPythonValue, match="a list whose length only the run will tell"):
        paddle.jit.to_static(f, full_graph=True)(T([1.0, 2.0]), T(3))
