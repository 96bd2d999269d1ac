"""Generators whose turns, yields and ends are of the run, in loops and built-ins that run through them."""

import contextlib

import dy2st as paddle
from tests.jit.constructs.cases import case, f, n, scenario

ROW = f(1, 2, -3, 4)


def above(xs, least):
    for x in xs:
        if x > least:
            yield x * 2


def halves(x):
    while x > 1:
        yield x
        x = x / 2


def counted(x):
    while True:
        yield x
        x = x + 1


def flat(tree):
    for item in tree:
        if isinstance(item, list):
            yield from flat(item)
        else:
            yield item


@case((ROW,), (f(5),), (f(-1, -2),), holds="while_loop")
def over_a_tensor(x):
    total = x[0] * 0
    for v in above(x, 0):
        total = total * 0.5 + v
    return total


@case((ROW, n(3)), (ROW, n(0)), holds="list_append")
def over_a_list_of_the_run(x, k):
    rows = [x * i for i in range(k)]
    return list(above((r.sum() for r in rows), 1)), sum(r * 2 for r in rows)


@case((f(20), 3), (f(1), 3), holds="while_loop")
def over_a_while(x, k):
    found = [v * k for v in halves(x.sum())]
    return found, len(list(halves(x.sum())))


@case((ROW,), (f(-1),), (f(9, 9),))
def left_by_break_and_else(x):
    total = x[0] * 0
    for v in above(x, 0):
        if v > 3:
            total = total + 100
            break
        total = total + v
    else:
        total = total - 1
    return total


@case((ROW,), (f(-1),), (f(9, 9),))
def left_by_return(x):
    for v in above(x, 0):
        if v > 3:
            return v, "large"
    return x, "none"


@case((ROW,), (f(5, 6),))
def with_continue_and_state(x):
    count, largest = 0, x[0]
    for v in above(x, -10):
        if v < 0:
            continue
        count += 1
        if v > largest:
            largest = v
    return count, largest


@case((f(3),), (f(30),), holds="while_loop")
def without_an_end_of_its_own(x):
    seen = 0
    for v in counted(x.sum()):
        seen += 1
        if v > 8:
            break
    return v, seen


@case((f(0.5),), (f(2.5),))
def numbers_without_end(x):
    def naturals():
        i = 0
        while True:
            yield i
            i += 1

    for i in naturals():
        if i > x.sum():
            return i


@case((ROW,), (f(1),))
def enumerate_zip_map_filter(x):
    total = x[0] * 0
    for i, v in enumerate(above(x, 0), 1):
        total = total + i * v
    for v, w in zip(above(x, 0), x):
        total = total * 0.5 + v * w
    for a, v, b in zip([1.0, 2.0], above(x, 0), x):
        total = total * 0.5 + a * v * b
    for v in map(lambda v: v + 1, above(x, 0)):
        total = total * 0.5 + v
    for v in filter(lambda v: v > 3, above(x, 0)):
        total = total * 0.5 + v
    for (v,) in zip(above(x, 0)):
        total = total - v
    return total


@case((ROW,), (f(1),), (f(-1),))
def built_ins(x):
    return any(v > 5 for v in above(x, 0)), all(above(x, 0)), sum(above(x, 0)), sum(above(x, 0), x[0])


@case((ROW,), (f(1, 1),))
def extremes(x):
    return max(above(x, -9)), min(above(x, -9)), sorted(above(x, -9))[0]


@case((ROW,), (f(1, 5),))
def unpacked_and_extended(x):
    rows = [x[0]]
    rows.extend(above(x, 0))
    (first,) = above(x[1:2], 0)
    return rows, first


@case((ROW,), (f(1),))
def questions_are_asked_no_longer_than_needed(x):
    seen = []

    def noted(xs):
        for v in xs:
            seen.append(v)
            yield v > 1

    return any(noted(x)), len(seen)


@case((ROW,), (f(1),))
def a_tree(x):
    total = x[0] * 0
    for v in flat([x[0], [x[-1] * 2, [x[0]]], x.sum()]):
        total = total * 0.5 + v
    return total


@case((ROW,), (f(1),))
def in_each_other(x):
    total = x[0] * 0
    for v in above(above(x, 0), 2):
        for w in above(x, 0):
            total = total + v * w
            if total > 50:
                break
    return total


class Rows:
    def __init__(self, x):
        self.x = x

    def __iter__(self):
        for i in range(self.x.shape[0]):
            yield self.x[i] * i


@case((ROW,), (f(1),))
def a_method(x):
    total = x[0] * 0
    for v in Rows(x):
        total = total - v
    return total, list(Rows(x))


@case((ROW,), (f(1),), holds="list_append")
def appends_and_dicts(x):
    rows, best = [], {"at": -1, "value": x[0]}
    for i, v in enumerate(above(x, -9)):
        rows.append(v + i)
        if v > best["value"]:
            best["at"], best["value"] = i, v
    return rows, best


@case((ROW,), (f(1),))
def writes_elements(x):
    y = x * 1
    for i, v in enumerate(above(x, 1)):
        y[i] = v * y[i]
    return y


@case((ROW,), (f(1),))
def python_takes_the_first(x):
    items = flat([x, [x + 1], x * 2])
    first = next(items)
    for v in items:
        first = first * 0.5 + v
    return first


@scenario((ROW,), (f(1),), programs=2)
def rebinds_variables_around():
    calls = 0

    def function(x):
        turns = 0

        def noted(xs):
            nonlocal turns
            for v in xs:
                turns += 1
                if v > 0:
                    yield v

        nonlocal calls
        total = x[0] * 0
        for v in noted(x):
            calls += 1
            total = total + v * turns
        return total, turns

    return function, lambda: calls


@case((ROW,), (f(-1),))
def prints_in_order(x):
    def shown(xs):
        for v in xs:
            print("before", v.item())
            yield v
            print("after")

    for v in shown(x):
        print("in", v.item())
        if v > 1:
            break
    return x


@case((ROW,), (f(-4),))
def with_returns_of_its_own(x):
    def until(xs):
        for v in xs:
            if v < 0:
                return
            yield v
        yield x.sum()

    return list(until(x))


@case((ROW,), (f(-4),))
def a_manager_is_still_one(x):
    @contextlib.contextmanager
    def scope(y):
        print("enter")
        yield y * 2
        print("leave")

    with scope(x) as twice:
        if x.sum() > 0:
            x = twice
    return x


@case((f([1, 2], [3, 4]),), (f([[1, 2]]),))
def rows_that_grow(m):
    out = m[0]
    for row in (r * 2 for r in m):
        out = paddle.concat([out, row])
    return out


@case((ROW,), (f(1, 2),))
def raises_in_the_body(x):
    try:
        for v in above(x, 0):
            if v > 7:
                raise ValueError("large")
    except ValueError as error:
        return x, str(error)
    return x, "small"


def shown(k):
    for i in range(k):
        print("item", i)
        yield i


@case((ROW, n(5)), (ROW, n(1)), (ROW, n(0)))
def zip_asks_for_no_item_too_many(x, k):
    total = x[0] * 0
    for a, i in zip([x[0], x[1]], shown(k)):
        print("first")
        total = total + a * i
    for i, a in zip(shown(k), [x[0], x[1]]):
        print("second")
        total = total + a * i
    for a, i in zip([], shown(k)):
        total = total + a * i
    return total


@case((ROW, n(5)), (ROW, n(0)))
def a_second_loop_over_an_exhausted_one(x, k):
    items, total = shown(k), x[0]
    for i in items:
        total = total + i
    for i in items:
        total = total * 3
    return total, list(items), next(items, None)
