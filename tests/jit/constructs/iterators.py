"""Iterators: iter, next, map, filter, sorted, list of what only the run will tell the length of; unset variables."""

from tests.jit.constructs.cases import NEG, POS, case, f, n, s

ROW = f(1, 2, 3)


@case((ROW,), (f(4, 5),), holds="counted_while")
def next_in_rolled_loop(x):
    it = iter(x)
    total = 0.0
    for _ in range(len(x)):
        total = total * 10 + next(it)
    return total


@case(([s(1), s(2), s(3)],), ([],), programs=2)
def next_over_a_list_of_tensors(items):
    it = iter(items)
    total = 0.0
    for _ in range(len(items)):
        total = total * 10 + next(it)
    return total


@case((ROW,), (f(20, 4),), (f(20),), holds="while_loop")
def loop_goes_on_where_another_broke_off(x):
    it = iter(x)
    total = 0.0
    for e in it:
        total = total * 10 + e
        if total > 10:
            break
    for e in it:
        total = total * 10 - e
    return total


@case((ROW, n(1)), (ROW, n(-1)), (f(1), n(1)), holds="cond")
def next_in_branch_moves_the_iterator(x, k):
    it = iter(x)
    if k > 0:
        next(it)
    return next(it), next(it, None)


@case((POS,), (NEG,), holds="cond")
def next_of_python_data_in_branch(x):
    it = iter(["a", "b", "c"])
    if x.sum() > 0:
        next(it)
    return next(it), next(it)


@case((ROW, n(1)), (ROW, n(0)), same_message=False)
def exhausted_iterator_raises(x, k):
    it = iter(x)
    while k > 0:
        next(it)
    return x


@case((ROW, n(1)), (ROW, n(0)), holds="try")
def stop_iteration_is_caught(x, k):
    it = iter(x)
    turns = 0
    try:
        while k > 0:
            next(it)
            turns += 1
    except StopIteration:
        turns += 100
    return turns


@case(([1, 2, 3, 4],), ([s(1), s(2), s(3)],), programs=2)
def pairs_by_one_iterator_twice(items):
    it = iter(items)
    return list(zip(it, it)), list(it)


class Rows:
    def __init__(self, rows):
        self.rows = rows

    def __iter__(self):
        return iter(self.rows)


@case((f([[1, 2], [3, 4]]),), (f([[1, 2], [3, 4], [5, 6]]),), holds="counted_while")
def iterable_object_over_a_tensor(x):
    total = 0.0
    for row in Rows(x):
        total = total * 10 + row.sum()
    return total


class Countdown:
    def __init__(self, start):
        self.left = start

    def __iter__(self):
        return self

    def __next__(self):
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return self.left


@case(POS, NEG)
def iterator_object_of_a_users_class(x):
    for i in Countdown(3):
        x = x * 2 + i
    return x, next(Countdown(0), "nothing"), next(Countdown(2))


def numbers(count):
    for i in range(count):
        yield i + 1


@case(POS, NEG)
def generators_in_branches(x):
    for i in numbers(3):
        x = x + i
    if x.sum() > 0:
        for i, j in zip(numbers(3), numbers(4)):
            x = x * i + j
        x = x + sum(i for i in range(3)) + sum(map(lambda i: i + 1, [1, 2]))
    return x


@case((ROW,), (f(5),), holds="counted_while")
def list_of_a_symbolic_range(x):
    return list(range(len(x))), list(map(lambda i: i * 2, range(len(x))))


@case((ROW,), (f(5),), holds="counted_while")
def map_over_a_tensor(x):
    return [i * 2 for i in map(lambda e: e + 1, x)], list(map(lambda a, b: a * b, x, x + 1))


@case((ROW,), (f(-5),), holds="counted_while")
def filter_over_a_tensor(x):
    return list(filter(lambda e: e > 1, x)), [y for y in filter(None, x)]


@case((f(3, 1, 2),), (f(1),))
def sorted_elements_of_a_tensor(x):
    return sorted(x), sorted(x, reverse=True)


@case((POS, NEG), (NEG, POS), (NEG, NEG), holds="cond")
def unset_python_value(x, y):
    if x.sum() > 0:
        i = 1
    elif y.sum() > 0:
        i = "a"
    return i


@case(NEG, POS, holds="cond")
def unset_python_value_in_a_tuple(x):
    if x.sum() > 0:
        i = None
    return i, x


@case((POS, NEG), (NEG, POS), (NEG, NEG), holds="cond")
def unset_after_nested_branches(x, y):
    if x.sum() > 0:
        i = 1
    else:
        if y.sum() > 0:
            i = None
    return x, i


@case((NEG, POS), (NEG, NEG), (POS, POS), holds="cond")
def unset_python_value_is_compared(x, y):
    if x.sum() > 0:
        i = x.sum()
    elif y.sum() > 0:
        i = "a"
    return i == "a"


@case(POS, NEG)
def map_of_a_filter(x):
    return list(map(lambda v: v * 2, filter(lambda v: v > 1, x)))


# ---- an iterator stands where it was left ----------------------------------------------------------------------------
@case((ROW,), (f(-1, -2, 5),), (f(1),))
def zip_goes_on_where_a_loop_broke_off(x):
    pairs, total = zip(x, x * 2), x[0] * 0
    for a, b in pairs:
        total = total + a
        if a > 1:
            break
    for a, b in pairs:
        total = total * 10 + b
    return total, list(pairs)


@case((ROW,), (f(-1, -2, 5),), (f(1),))
def next_of_enumerate_reversed_and_map(x):
    numbered, back, doubled = enumerate(x, 1), reversed(x), map(lambda v: v * 2, x)
    (i, total), last, first = next(numbered), next(back), next(doubled)
    for i, v in numbered:
        total = total * 10 + i * v
    return total, i, last - sum(back), first - sum(doubled), list(doubled)


@case((ROW,), (f(-1, -2, 5, 6),), (f(1),))
def a_body_that_takes_the_next_item_too(x):
    items, total = iter(x), x[0] * 0
    for v in items:
        total = total * 10 + v * next(items, 7)
    return total


@case(([s(1), s(2), s(3)],), ([s(4)],), programs=2)
def a_body_that_takes_the_next_item_of_a_list(given):
    items, found = iter(given), []
    for v in items:
        found.append((v, next(items, None)))
    return found


@case((ROW,), (f(-1, -2, 5, 6),), (f(1),))
def nested_loops_over_one_iterator(x):
    items, total = iter(x), x[0] * 0
    for v in items:
        for w in items:
            total = total * 10 + v * w
            if w > 2:
                break
    return total


@case((ROW, n(3)), (ROW, n(1)), (ROW, n(2)), same_message=True)
def zip_strict_raises_at_its_end(x, k):
    total = x[0] * 0
    for v, i in zip(x, range(k + 0), strict=True):
        print("turn")
        total = total + v * i
    return total


@case((ROW, n(3)), (ROW, n(1)), (ROW, n(4)), (f(1), n(1)))
def zip_strict_of_three(x, k):
    return [a * b + c for a, b, c in zip(x, [1, 2, 3], range(k), strict=True)]


@case((f(1, 2, 3), n(1)), (f(1, 2), n(3)))
def zip_strict_that_a_break_leaves(x, k):
    for a, b in zip(x, range(k), strict=True):
        if a > b:
            break
    return a
