"""Lists that loops and branches on tensors append to, extend, pop from and join."""

from collections import namedtuple

import dy2st as paddle
from tests.jit.constructs.cases import NEG, POS, case, f, n

Point = namedtuple("Point", "a b")
ROWS = f([[1, 1], [2, 2], [3, 3]])


@case((POS, n(3)), (POS, n(1)), (POS, n(5)), holds="counted_while")
def append_in_tensor_loop(x, k):
    out = []
    for _ in range(k):
        x = x * 2
        out.append(x)
    return paddle.stack(out)


@case((POS, n(3)), (POS, n(0)), holds="counted_while")
def append_returns_list(x, k):
    out = []
    for i in range(k):
        out.append(x * i)
    return out, len(out)


@case((POS, n(3)), holds="counted_while")
def append_numbers(x, k):
    out = []
    for i in range(k):
        out.append(i * 2)
    return out


@case((POS, n(3)), holds="counted_while")
def append_tuples(x, k):
    out = []
    for i in range(k):
        out.append((x * i, i))
    return out


@case((POS, n(3)), holds="counted_while")
def append_extents_that_differ(x, k):
    out = []
    for _ in range(k):
        x = paddle.concat([x, x])
        out.append(x)
    return out


@case((POS, n(3)), (POS, n(1)), holds="counted_while")
def pop_in_loop(x, k):
    stack = [x, x * 2, x * 3]
    total = x * 0
    for _ in range(k):
        total = total + stack.pop()
    return total, len(stack)


@case((POS, n(5)), holds="counted_while")
def pop_from_empty(x, k):
    stack = [x, x * 2]
    for _ in range(k):
        x = x + stack.pop()
    return x


@case((POS, n(3)), holds=("counted_while", "cond"))
def append_in_branch_in_loop(x, k):
    out = []
    for i in range(k):
        if i > 0:
            out.append(x * i)
    return out


@case(POS, NEG, holds="cond")
def append_in_branch(x):
    out = [x]
    if x.sum() > 0:
        out.append(x * 2)
    return out


@case((POS, n(3)), holds="counted_while")
def loop_over_grown_list(x, k):
    out = []
    for i in range(k):
        out.append(x * i)
    total = x * 0
    for y in out:
        total = total + y
    return total


@case(POS)
def extend_insert_remove_reverse(x):
    out = [x]
    out.extend([x + 1, x + 2])
    out.insert(0, x - 1)
    out.reverse()
    out += [x * 10]
    del out[1]
    out[0:1] = [x, x]
    return out, len(out)


@case((POS, n(3)), holds="counted_while")
def extend_in_loop(x, k):
    out = []
    for i in range(k):
        out.extend([x * i, x + i])
    return out


@case((POS, n(3)), holds="counted_while")
def list_plus_in_loop(x, k):
    out = []
    for i in range(k):
        out = out + [x * i]
    return out


@case((POS, n(3)), holds="counted_while")
def list_iadd_in_loop(x, k):
    out = []
    for i in range(k):
        out += [x * i]
    return out


@case((POS, n(3)), holds="counted_while")
def insert_in_loop(x, k):
    out = []
    for i in range(k):
        out.insert(0, x * i)
    return out


@case(
    (POS, []),
)
def appends_to_list_argument(x, items):
    items.append(x * 2)
    items.append(1)
    return x


@case((POS, n(3)), holds="counted_while")
def list_of_lists_grows(x, k):
    out = []
    for i in range(k):
        out.append([x, x * i])
    return out


@case(POS, NEG, holds="cond")
def sum_of_list_variant(x):
    out = [x, x * 2]
    if x.sum() > 0:
        out.append(x * 3)
    total = x * 0
    for y in out:
        total = total + y
    return total, len(out), out[-1]


@case((ROWS,), holds="counted_while")
def concat_of_list(x):
    parts = []
    for row in x:
        parts.append(row.reshape([1, -1]))
    return paddle.concat(parts, axis=0)


@case((POS, n(3)), holds="counted_while")
def last_of_grown_list(x, k):
    out = [x]
    for i in range(k):
        out.append(out[-1] * 2)
    return out[-1], out[0], len(out)


@case((POS, n(2)), (POS, n(0)), holds="while_loop")
def while_list_not_empty(x, k):
    stack = [x]
    for i in range(k):
        stack.append(x * i)
    total = x * 0
    while stack:
        total = total + stack.pop()
    return total


@case((f(1, 2, -3),), (f(4),), (f(),))
def what_is_the_same_in_every_turn(x):
    names, nothing, both = [], [None], ["b"]
    for v in x:
        names.append("a")
        nothing.append(None)
        both.append("a" if v > 1 else "b")
    if x.sum() > 0:
        names.append("a")
    return [name + "c" for name in names], len(names), nothing, both, names[-1:], len(names[1:]), names + both


@case((f(1, 2, -3),), (f(4),))
def functions_made_in_every_turn(x):
    lambdas, defined, methods, act = [], [], [], x.sum
    for v in x:

        def last():
            return v * 2

        lambdas.append(lambda: v)
        defined.append(last)
        methods.append(act)
    lambdas.pop()
    return [g() for g in lambdas], [g() for g in defined], [g() for g in methods], len(lambdas)


@case((f(1, 2, -3),), (f(4),))
def joined_lists_of_several_things_in_other_orders(x):
    a, b, c, d = [], [], [], []
    for v in x:
        a.append("a" if v > 1 else "b")
        b.append("b" if v > 1 else "a")
        c.append(v if v > 1 else "b")
        d.append("c" if v > 1 else v * 2)
    c.extend(d)
    return a + b, b + a, c
