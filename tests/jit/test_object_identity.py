"""Which results of a call are one object, and which are objects of the caller's."""

from __future__ import annotations

from typing import Any

import pytest

import dy2st as paddle
from dy2st.errors import StructureError


class A:
    def __init__(self, v: Any):
        self.v = v


def run(f: Any, *makes: Any) -> Any:
    """Give the results of four calls of a static function, with the arguments of each call."""
    static = paddle.jit.to_static(f, full_graph=True)
    for x in (1.0, -1.0, 2.0, -2.0):
        arguments = [make() for make in makes]
        yield x, static(paddle.to_tensor(x), *arguments), arguments


def test_an_object_that_is_returned_twice_is_one():
    def f(x):
        a = A(x)
        return a, [a], {"a": a}

    for _, (a, (b,), found), _ in run(f):
        assert a is b is found["a"]


def test_an_object_that_is_kept_outside_and_returned_is_one():
    def f(x, kept):
        a = A(x)
        kept.append(a)
        return a

    for _, a, (kept,) in run(f, list):
        assert kept[0] is a


@pytest.mark.parametrize("make", [list, dict, lambda: A(1)])
def test_an_argument_that_is_returned_is_the_callers_own(make):
    for _, (found,), (given,) in run(lambda x, given: [given], make):
        assert found is given


def test_one_of_several_arguments_is_the_callers_own():
    def f(x, a, b):
        if x > 0:
            a, b = b, a
        a.v = 9
        return a

    for x, found, (a, b) in run(f, lambda: A(1), lambda: A(2)):
        assert found is (b if x > 0 else a)
        assert (a.v, b.v) == ((1, 9) if x > 0 else (9, 2))


def test_a_list_of_the_callers_gets_the_objects_of_that_call():
    def f(x, items):
        if x > 0:
            items[0], items[1] = items[1], items[0]

    for x, _, (items,) in run(f, lambda: [A(1), A(2)]):
        assert [a.v for a in items] == ([2, 1] if x > 0 else [1, 2])


def test_an_object_that_leads_to_itself_leaves():
    def f(x):
        a = A(x)
        a.me = a
        items = [a]
        items.append(items)
        return a, items

    for _, (a, items), _ in run(f):
        assert a.me is a
        assert items[0] is a
        assert items[1] is items


def test_what_may_be_an_object_is_that_object():
    def f(x):
        a, b = A(1), A(2)
        c = a if x > 0 else b
        return c, a, b

    for x, (c, a, b), _ in run(f):
        assert c is (a if x > 0 else b)


def test_an_object_made_before_a_branch_is_not_one_made_inside():
    def f(x):
        a = A(1)
        if x > 0:
            a = A(5)
        return a.v

    for x, v, _ in run(f):
        assert int(v) == (5 if x > 0 else 1)


def test_a_write_to_one_of_two_objects_leaves_the_other_alone():
    def f(x):
        a = b = A(1)
        if x > 0:
            a = A(5)
        a.v = 9
        return a.v, b.v, a

    for x, (v, w, a), _ in run(f):
        assert (int(v), int(w), a.v) == (9, 1 if x > 0 else 9, 9)


def test_an_error_leaves_the_callers_objects():
    def f(x, items, a):
        items.append(a)
        a.v = x
        if x > 0:
            raise ValueError("positive")
        return a

    static = paddle.jit.to_static(f, full_graph=True)
    for x in (1.0, 2.0, -1.0, 3.0):
        items: list[Any] = []
        a = A(0)
        if x > 0:
            with pytest.raises(ValueError, match="positive"):
                static(paddle.to_tensor(x), items, a)
        else:
            assert static(paddle.to_tensor(x), items, a) is a
        assert items[0] is a
        assert float(a.v) == x


def test_a_list_outside_is_kept_where_a_branch_makes_another():
    class Holder:
        items: list[Any]

    holder = Holder()

    @paddle.jit.to_static(full_graph=True)
    def f(x):
        if x > 0:
            holder.items = []
        holder.items.append(x)
        return len(holder.items)

    kept = holder.items = []
    for x, length in ((-1.0, 1), (-2.0, 2), (1.0, 1), (-1.0, 2)):
        assert f(paddle.to_tensor(x)) == length
    assert [float(x) for x in kept] == [-1.0, -2.0]
    assert holder.items is not kept


def test_a_library_call_sees_what_was_appended_outside():
    cache = [paddle.to_tensor([0.0])]

    @paddle.jit.to_static(full_graph=True)
    def f(x):
        cache.append(x)
        return paddle.concat(cache)

    for i in range(1, 5):
        assert f(paddle.to_tensor([float(i)])).tolist() == [float(k) for k in range(i + 1)]


def test_objects_in_a_list_that_grew_in_a_branch_are_the_same_objects():
    def f(x, items):
        a = A(1)
        if x > 0:
            items.append(a)
        items.append(a)
        a.v = 5
        return a

    for x, a, (items,) in run(f, list):
        assert len(items) == (2 if x > 0 else 1)
        assert all(i is a for i in items)
        assert a.v == 5


def test_an_object_in_a_list_gets_an_attribute_of_another_kind():
    def f(x, items):
        if x > 0:
            items.append(A(1.0))
        items.insert(0, A(x * 2))
        return items[-1].v

    for x, v, (items,) in run(f, lambda: [A(7)]):
        assert float(v) == (1.0 if x > 0 else 7.0)
        assert float(items[0].v) == x * 2


def test_a_write_to_an_element_of_a_list_that_grew_reaches_the_callers_object():
    def f(x, items, a):
        if x > 0:
            items.append(a)
        items[0].v = 9

    for x, _, (items, a) in run(f, lambda: [A(1), A(2)], lambda: A(3)):
        assert [i.v for i in items] == ([9, 2, 3] if x > 0 else [9, 2])
        assert a.v == 3


def tensors_swapped(x, given):
    y, z = x * 2, x * 3
    if x.sum() > 0:
        y, z = z, y
    if x.max() > 1.5:
        z = y
    return y, z


def tensors_of_nested_branches(x, given):
    y = x * 2
    if x.sum() > 0:
        if x.max() > 2:
            z = x
        elif x.min() < 0.5:
            z = y
        else:
            z = x * 4
    else:
        z = y
    return z, y


def tensor_of_both_branches(x, given):
    if x.sum() > 0:
        y = z = x * 2
    else:
        y, z = x * 2, x * 3
    return y, z


def tensor_or_none(x, given):
    return (x if x.sum() > 0 else None), x


def tensor_or_other_rank(x, given):
    y = x if x.sum() > 0 else paddle.ones([2, 2])
    return y, y


def tensor_of_a_handler(x, given):
    y = x * 2
    try:
        if x.sum() > 0:
            raise ValueError
        z = y
    except ValueError:
        z = x
    return z, y


def tensor_returned_early(x, given):
    if x.sum() > 0:
        return x, x * 2
    y = x * 3
    return y, y


def constants(x, given):
    if x.sum() > 0:
        y, z = paddle.to_tensor(1.0), paddle.to_tensor(1.0)
    else:
        y, z = x, x * 2
    return y, z


def tensor_of_a_list(x, given):
    y = x * 2
    if x.sum() > 0:
        y = given[0]
    return y, given[0]


def tensor_that_a_loop_leaves_alone(x, given):
    y, i = x, 0
    while i < x.sum():
        y, i = y * 2, i + 1
    return y, x


def tensor_of_an_iteration(x, given):
    best, y = x, given[0]
    for i in range(x.sum().abs().astype("int64")):
        y = x * i
        if y.sum() < 2:
            best = y
        elif i > 2:
            best = x
    return best, y, best


def tensor_of_an_earlier_iteration(x, given):
    y = z = x * 2
    i = 0
    while i < x.sum():
        y, z, i = x * i, y, i + 1
        if i > 3:
            z = y
    return y, z, y


def tensor_of_an_iteration_that_ends_the_loop(x, given):
    y = last = None
    for k in range(4):
        y = x + k
        if y.sum() > 3:
            last = y
            break
    return y, last


def tensors_that_a_loop_swaps(x, given):
    a, b = x, x * 2
    c, i = a, 0
    while i < x.sum():
        a, b, i = b, a, i + 1
    return a, b, c


def tensor_of_a_loop_in_a_branch(x, given):
    y = z = given[0]
    if x.sum() > 0:
        for i in range(x.sum().astype("int64")):
            y = x * i
        z = y
    return y, z


def list_of_a_loop(x, given):
    a, b = [x], [x * 2]
    c, i = a, 0
    while i < x.sum():
        c, i = b, i + 1
    return a, b, c


def lists_that_a_loop_swaps(x, given):
    a, b = [x], [x * 2, x]
    c, i = a, 0
    while i < x.sum():
        a, b = b, a
        i = i + 1
    return a, b, c


def list_or_none(x, given):
    if x.sum() > 0:
        out = [x]
    else:
        out = None
    more = out
    return out, more


def objects_of_both_branches(x, given):
    if x.sum() > 0:
        a = b = A(x)
    else:
        a = b = A(x * 2)
    a.v = x * 9
    return a, b


@pytest.mark.parametrize("f", [
    tensors_swapped, tensors_of_nested_branches, tensor_of_both_branches, tensor_or_none, tensor_or_other_rank,
    tensor_of_a_handler, tensor_returned_early, constants, tensor_of_a_list,
    tensor_that_a_loop_leaves_alone, tensor_of_an_iteration, tensor_of_an_earlier_iteration,
    tensor_of_an_iteration_that_ends_the_loop, tensors_that_a_loop_swaps,
    tensor_of_a_loop_in_a_branch, list_of_a_loop, lists_that_a_loop_swaps,
    list_or_none, objects_of_both_branches,
])  # fmt: skip
def test_results_are_one_object_where_eager_ones_are(f):
    static = paddle.jit.to_static(f, full_graph=True)

    def which(call: Any, values: list[float]) -> tuple[list[int], Any]:
        x, given = paddle.to_tensor(values, stop_gradient=False), [paddle.to_tensor(7.0)]
        results = call(x, given)
        things = [*results, x, *given]
        tensors = [t for t in results if isinstance(t, paddle.Tensor) and not t.stop_gradient]
        sum((t.sum() * (i + 1) for i, t in enumerate(tensors)), paddle.zeros([]) * x.sum()).backward()
        return [next(i for i, b in enumerate(things) if b is a) for a in things], x.grad.numpy().tolist()

    for values in ([1.0, 2.0], [-1.0, -2.0], [3.0], [-3.0, 1.0], [0.25, 1.0], [5.0], [-1.0, 2.0], [0.5, 0.75]):
        assert which(static, values) == which(f, values), values


def shared_at_one_place(x):
    if x.sum() > 0:
        a = b = [x]
    else:
        a, b = [x], [x]
    return a, b


def shared_inside(x):
    if x.sum() > 0:
        a = A(x)
        return a, a
    return None


def shared_in_a_list(x):
    rows = []
    if x.sum() > 0:
        row = [x]
        rows += [row, row]
    return rows


@pytest.mark.parametrize("f", [shared_at_one_place, shared_inside, shared_in_a_list])
def test_what_only_the_run_could_tell_to_be_one_is_refused(f):
    with pytest.raises(StructureError, match="whether two results are one container or object"):
        paddle.jit.to_static(f, full_graph=True)(paddle.to_tensor([1.0]))


def test_a_tensor_that_an_attribute_keeps_stays_the_same_one():
    a = A(paddle.to_tensor([0.0]))

    def f(x):
        if x.sum() > 0:
            a.v = x
        return a.v

    static = paddle.jit.to_static(f, full_graph=True)
    for value in (1.0, -1.0, 2.0, -2.0, -3.0):
        before, x = a.v, paddle.to_tensor([value])
        found = static(x)
        assert a.v is found is (x if value > 0 else before)
