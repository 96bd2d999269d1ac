"""Containers inside of lists of open length whose place the trace has lost: they run eagerly."""

import warnings

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import StructureError


def open_list(x):
    rows = []
    for v in x:
        rows.append([v])
    return rows


def after_the_others_moved(x):
    rows = open_list(x)
    row = rows[0]
    rows.pop(0)
    row.append(x[0])
    return len(row), len(rows[0])


def in_two_lists(x):
    rows, more = [], []
    for v in x:
        row = [v]
        rows.append(row)
        more.append(row)
    rows[1].append(x[0])
    return len(more[1])


def in_a_slice(x):
    rows = open_list(x)
    part = rows[1:]
    part[0].append(x[0])
    return len(rows[1]), len(part[0])


def in_a_copy(x):
    rows = open_list(x)
    copied = list(rows)
    copied[0].append(x[0])
    return len(rows[0])


def in_a_longer_list(x):
    rows = open_list(x)
    more = [*rows, [x[0]]]
    more[0].append(x[0])
    return len(rows[0])


def one_of_two(x):
    rows = open_list(x)
    row = rows[0] if x.sum() > 0 else rows[1]
    row.append(x[0])
    return len(rows[0]), len(rows[1])


def found_by_a_loop(x):
    rows = open_list(x)
    row = rows[0]
    for i in range(len(rows)):
        if x[i] > 1.5:
            row = rows[i]
            break
    row.append(x[0])
    return [len(r) for r in rows]


def read_when_a_copy_is_old(x):
    rows = open_list(x)
    row = rows[0] if x.sum() > 0 else rows[1]
    rows[0].append(x[0])
    return len(row)


def moved_in_a_loop(x):
    rows = open_list(x)
    row = rows[0]
    for v in x:
        row.append(v)
        rows.insert(0, [v])
    return len(row), len(rows[0])


def read_by_its_own_name_in_a_loop_that_changes_it(x):
    first = [x[0]]
    groups, total = [first], 0
    for v in x:
        total += len(first)
        groups[0].append(v)
        if v > 1.5:
            groups.append([v])
    return total


@pytest.mark.parametrize(
    "function",
    [after_the_others_moved, in_two_lists, in_a_slice, in_a_copy, in_a_longer_list, one_of_two, found_by_a_loop,
     read_when_a_copy_is_old, moved_in_a_loop, read_by_its_own_name_in_a_loop_that_changes_it],
)  # fmt: skip
def test_a_lost_place_is_refused_and_runs_eagerly(function):
    def of_some(x):
        return function(x[x > 0])

    x = np.array([1, 2, 3], "float32")
    want = function(paddle.to_tensor(x))
    whole = paddle.jit.to_static(of_some, full_graph=True)
    with pytest.raises(StructureError, match="the trace does not know its place"):
        whole(paddle.to_tensor(x))
    with pytest.warns(UserWarning, match="runs eagerly"):
        found = paddle.jit.to_static(of_some)(paddle.to_tensor(x))
    assert found == want
    known = paddle.jit.to_static(function)  # extents that are fixed may make places known
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            assert known(paddle.to_tensor(x)) == want
