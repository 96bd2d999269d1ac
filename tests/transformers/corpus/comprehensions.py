"""Comprehensions and generators: scopes, order, names that are unset."""

# ruff: noqa

from .cases import case, log


@case((4,))
def generator(n):
    for i in range(n):
        if i == 2:
            continue
        got = yield i
        if got:
            log(got)
    else:
        yield "else"
    if n > 3:
        return
    yield "end"


@case((4,), (0,))
def generator_mixed(n):
    total = 0
    for i in range(n):
        if i % 2:
            total += i
        while total > 3:
            total -= 1
            if total == 2:
                break
    yield total
    x = (yield "ask") or "default"
    try:
        yield x
    finally:
        if n:
            log("final")
    yield from (i for i in range(n) if i)
    y = 1 if (yield "t") else 2
    yield y


@case((3,))
def generator_return(n):
    def g():
        for i in range(n):
            if i == 1:
                return "value"
            yield i

    out = []

    def outer():
        r = yield from g()
        out.append(r)

    for x in outer():
        out.append(x)
    return out


@case(([1, -2, 3],))
def comprehensions(xs):
    a = [x * 2 for x in xs if x > 0]
    b = {x % 2 for x in xs}
    c = {x: -x for x in xs if x}
    d = [(x, y) for x in xs for y in range(x) if y if x > y]
    e = [[y for y in range(abs(x))] for x in xs]
    f = sum(x for x in xs if x > 0)
    x = "outer"
    g = [x for x in x]
    return a, sorted(b), c, d, e, f, g, x


@case(([1, 2],))
def comprehension_walrus(xs):
    a = [last := x for x in xs]
    if any((found := x) > 1 for x in xs):
        log(found)
    return a, last


@case(([],))
def comprehension_walrus_unset(xs):
    a = [last := x for x in xs]
    return last


@case(([1, 2],))
def comprehension_order(xs):
    return {log(x): log(-x) for x in log("it", xs) if log("if", True)}


@case(([1, 2],))
def comprehension_closure(xs):
    fs = [lambda: x for x in xs]
    return [f() for f in fs]


@case((3,))
def comprehension_in_thunk(n):
    return n and [i for i in range(n) if i and [j for j in range(i)]]


@case((3,))
def comprehension_in_while(n):
    while [i for i in range(n) if i > 1]:
        n -= 1
    return n


@case((5,))
def comprehension_not_iterable(x):
    return [i for i in x]


@case((1,), (0,))
def comprehension_unset(x):
    if x:
        k = 1
    try:
        return [k for i in range(2)]
    except NameError as e:
        return type(e).__name__, str(e)


@case(([3, 4],))
def comprehension_tuple_target(xs):
    return [a + b for a, (b, *c) in [(1, (2, 3)), (4, (5,))]], [i for (i,) in [(1,), (2,)]]


@case((2,))
def comprehension_in_lambda(n):
    f = lambda k: [i * n for i in range(k) if i or n]
    return f(3)
