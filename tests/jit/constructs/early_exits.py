"""Loops that end early: break, continue and else, in `for` and `while`, over tensors and Python's containers."""

import dy2st as paddle
from tests.jit.constructs.cases import POS, case, f, n, s

ROWS = f([[1, 1], [2, 2], [3, 3]])


@case((ROWS, s(1)), (ROWS, s(3)), (ROWS, s(100)), holds="while_loop")
def break_on_tensor(x, limit):
    found = paddle.full([], -1.0)
    for row in x:
        if row.sum() > limit:
            found = row.sum()
            break
    return found


@case((POS, s(3)), (POS, s(7)), (POS, s(1e9)), holds=("while_loop", "cond"))
def break_and_continue_in_python_range(x, limit):
    found = paddle.full([], -1.0)
    for i in range(100):
        x = x + 1
        if x.sum() > 50:
            continue
        if x.max() > limit:
            found = x.max()
            break
    return x, found


@case((ROWS, s(1)), (ROWS, s(100)), holds="while_loop")
def for_else(x, limit):
    for row in x:
        if row.sum() > limit:
            y = row
            break
    else:
        y = x.sum(0)
    return y


@case((s(1), s(10)), (s(1), s(3)), holds="while_loop")
def while_else(v, limit):
    while v < 8:
        v = v * 2
        if v > limit:
            break
    else:
        v = v + 100
    return v


@case(n(4), n(0), holds="while_loop")
def while_true_break(k):
    i = paddle.zeros([], "int64")
    while True:
        if i >= k:
            break
        i = i + 1
    return i


@case((ROWS, s(2)), (ROWS, s(7)), holds="counted_while")
def continue_in_for(x, limit):
    total = paddle.zeros([2])
    for row in x:
        if row.sum() > limit:
            continue
        total = total + row
    return total


@case((n(5), n(3)), (n(2), n(9)), holds="while_loop")
def nested_break(a, b):
    total = paddle.zeros([], "int64")
    for i in range(a):
        for j in range(b):
            if j > i:
                break
            total = total + 1
        if total > 7:
            break
    return total


@case((POS, s(4)), (POS, s(1000)), (POS, s(0)), holds="cond")
def break_in_python_list_loop(x, limit):
    for k in [1.0, 2.0, 3.0]:
        x = x * k
        if x.sum() > limit:
            break
    return x


@case((POS, s(4)), (POS, s(1000)), holds="cond")
def break_in_generator_loop(x, limit):
    for k in (i * 2 for i in range(3)):
        x = x + k
        if x.sum() > limit:
            break
    return x


@case((POS, s(4)), (POS, s(1000)), holds="cond")
def break_in_dict_loop(x, limit):
    last = ""
    for name, k in {"a": 1, "b": 2}.items():
        x = x * k
        last = name
        if x.sum() > limit:
            break
    return x, last


@case((POS, s(10)), (POS, s(100)))
def unrolled_with_break(x, limit):
    names = ["a", "b", "c", "d", "e", "f"]
    seen = ""
    for i in range(6):
        x = x * 2
        seen = names[i]
        if x.sum() > limit:
            break
    return x, seen
