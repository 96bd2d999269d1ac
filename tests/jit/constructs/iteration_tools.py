"""itertools, functools.reduce and next over tensors, lists of the run and generators."""

import functools
import itertools
import operator
from itertools import accumulate, chain, count, cycle, islice, pairwise, product, repeat, takewhile

from tests.jit.constructs.cases import case, f, n

ROW, M = f(1, 2, -3, 4), f([[1, 2], [3, 4], [5, 6]])
OTHERS = (f(-1, -2, 3),), (f(2),)


def above(xs, least):
    for x in xs:
        if x > least:
            yield x * 2


# ---- without an end --------------------------------------------------------------------------------------------------
@case((ROW,), *OTHERS, holds="while_loop")
def count_left_by_break(x):
    for i in count():
        if x.sum() > i * 10:
            x = x * 0.5 - 1
        else:
            break
    for j in count(2, 3):
        if j > x.sum():
            break
    return x, i, j


@case((ROW,), *OTHERS)
def zip_with_count_repeat_and_cycle(x):
    total = x[0] * 0
    for (i, v), w, k in zip(zip(count(1), x), repeat(2), cycle([1, 3])):
        total = total * 0.5 + i * v * w * k
    for i, v in zip(count(0, 2), above(x, 0)):
        total = total + i * v
    return total


@case((ROW,), *OTHERS)
def zip_with_dicts_and_text(x):
    numbers = {"a": 1, "b": 2}
    return (
        [v * k for v, k in zip(x, numbers.values())],
        [k for _, (_, k) in zip(x, numbers.items())],
        [(v, name) for v, name, _ in zip(x, numbers, "cd")],
    )


@case((ROW, n(2)), (ROW, n(0)))
def some_of_what_has_no_end(x, k):
    numbers = count()
    first = list(islice(cycle([1, 2, 3]), 5)), sum(islice(count(3), 4)), next(numbers), next(numbers)
    return first, [v * i for v, i in zip(repeat(x, int(k)), count(1))], list(repeat(1, 3))


@case((ROW,), *OTHERS)
def takewhile_of_count(x):
    total = x[0]
    for i in takewhile(lambda i: i < x.sum(), count()):
        total = total + i
    return total


# ---- one after the other ---------------------------------------------------------------------------------------------
@case((ROW,), *OTHERS)
def chain_of_generators_tensors_and_lists(x):
    total = x[0] * 0
    for i, v in enumerate(chain(above(x, 0), x, [x[0]]), 1):
        total = total * 0.5 + v * i
    return total, list(chain(x, [x.sum()])), sum(chain(x, x)), max(chain(x, [x.sum()])), any(v > 3 for v in chain(x, x))


@case((M,), (f([[1, -2]]),))
def chain_from_iterable(m):
    return list(chain.from_iterable(m)), sum(chain(*[m[0], m[0] * 2])), list(chain.from_iterable([m[0], [m.sum()]]))


@case((ROW,), *OTHERS)
def chain_left_by_return(x):
    for v in chain(x, x * 2):
        if v > 3:
            return v, "large"
    return x, "none"


# ---- some ------------------------------------------------------------------------------------------------------------
@case((ROW, n(2)), (ROW, n(0)), (f(1), n(1)))
def islice_by_places(x, k):
    return list(islice(x, 2)), list(islice(x, 1, None)), list(islice(x, 0, None, 2)), [v * 2 for v in islice(x, int(k))]


@case((ROW, n(-1)), (ROW, n(1)))
def islice_refuses_a_negative_bound(x, k):
    return sum(islice(x, int(k))), list(islice(x, 0, 3, int(k)))


@case((ROW,), *OTHERS)
def islice_of_a_generator(x):
    def shown():
        for v in x:
            print("item")
            yield v

    total = x[0] * 0
    for v in islice(shown(), 2):
        total = total * 10 + v
    return total, list(islice(shown(), 1, 3)), list(islice(above(x, -9), 0, 4, 2)), list(islice(shown(), 0))


@case((ROW,), *OTHERS)
def takewhile_dropwhile_filterfalse_and_compress(x):
    return (
        list(takewhile(lambda v: v > 0, x)),
        list(itertools.dropwhile(lambda v: v > 0, x)),
        list(itertools.filterfalse(lambda v: v > 0, x)),
        list(itertools.compress(x, x > 0)),
        list(takewhile(lambda v: v < 5, above(x, 0))),
        [v for v in takewhile(lambda v: v < x.sum(), [x[0], x[0] * 2])],
    )


# ---- with what was before --------------------------------------------------------------------------------------------
@case((ROW,), *OTHERS, (f(),))
def accumulates(x):
    return (
        list(accumulate(x)),
        list(accumulate(x, lambda a, b: a * 0.5 + b)),
        sum(accumulate(x, operator.mul, initial=x.sum())),
        list(accumulate([x, x * 2])),
        list(accumulate(above(x, 0))),
    )


@case((ROW,), *OTHERS, (f(),))
def pairs_of_neighbours(x):
    return [b - a for a, b in pairwise(x)], sum(a * b for a, b in itertools.pairwise(above(x, 0)))


@case((ROW,), *OTHERS)
def reduces(x):
    return (
        functools.reduce(lambda a, b: a * 0.5 + b, x),
        functools.reduce(operator.add, x, 1.0),
        functools.reduce(operator.mul, above(x, -9), 1.0),
        functools.reduce(operator.mul, [x, x + 1]),
    )


@case((ROW,), (f(),))
def reduce_of_nothing(x):
    return functools.reduce(operator.add, x)


# ---- with each other -------------------------------------------------------------------------------------------------
@case((ROW,), *OTHERS)
def products(x):
    total = x[0] * 0
    for a, i, b in product(x, range(3), above(x, 0)):
        total = total * 0.5 + a * i * b
        if total > 50:
            break
    return total, [a * b for a, b in product(x, repeat=2)]


@case((ROW,), *OTHERS)
def combinations_of_two_and_three(x):
    return [a * b for a, b in itertools.combinations(x, 2)], sum(a * b - c for a, b, c in itertools.combinations(x, 3))


@case((ROW,), *OTHERS)
def the_longest_and_starmap(x):
    return (
        [a * b for a, b in itertools.zip_longest(x, x[1:], fillvalue=7)],
        list(itertools.starmap(lambda a, b: a * b, [(v, i) for i, v in enumerate(x)])),
    )


@case((ROW,), *OTHERS)
def two_iterators_of_one(x):
    ahead, behind = itertools.tee(x)
    next(ahead, None)
    return [a - b for a, b in zip(ahead, behind)]


# ---- the first one ---------------------------------------------------------------------------------------------------
@case((ROW,), (f(-1, -2),), holds="while_loop")
def next_of_a_generator_expression(x):
    return (
        next((v for v in x if v > 0), None),
        next((i for i, v in enumerate(x) if v > 1), -1),
        next((name for name, v in {"a": x[0], "b": x[1]}.items() if v > 1), "none"),
        [next((w for w in x if w > v), v) for v in x],
        next(i for i in range(10) if i > 4),
    )


@case((ROW,), (f(-1, -2),))
def next_that_finds_nothing(x):
    try:
        return next(v for v in x if v > 0)
    except StopIteration:
        return x.sum()
