"""Functions, closures, recursion, parameters, statements inside of functions."""

# ruff: noqa
import functools

from .cases import case, log


@case((3,))
def nonlocal_rebinding(n):
    count = 0

    def inc(by):
        nonlocal count
        if by:
            count += by
        return count

    for i in range(n):
        if i:
            inc(i)
    return count


@case((1,), (0,))
def rebound_in_branch(x):
    n = 0

    def set_(v):
        nonlocal n
        n = v

    if x:
        set_(5)
    return n


@case((3,))
def recursion(n):
    def fact(k):
        if k <= 1:
            return 1
        return k * fact(k - 1)

    return fact(n)


@case((0,), (1,))
def unset_closure(x):
    def g():
        return y

    if x:
        y = 1
    return g()


@case((1,))
def deleted_closure(x):
    y = x

    def g():
        return y

    del y
    return g()


two = (lambda x: x and x + 1), (lambda x: x or x - 1)
case((3,), (0,))(two[0])
case((3,), (0,))(two[1])


@case((3,), (0,))
def lambda_walrus(x):
    f = lambda a: a and (y := a + 1) and y * 2
    return f(x)


@case((1, 2), (0, 0))
def defaults(a, b=3, *args, c=4, **kw):
    def g(x, /, y=a or b, *, z=(a if b else c)):
        return x, y, z

    return g(1), g(1, 2, z=3), args, kw


@case((3,))
def decorated(n):
    def twice(f):
        @functools.wraps(f)
        def inner(*args):
            if args:
                return f(*args) + f(*args)
            return None

        return inner

    @twice
    @functools.lru_cache(maxsize=None)
    def g(x):
        log("called")
        return x if x > 2 else 0

    return g(n), g.__name__


@case((1, 2, 3))
def star_args(*args, **kwargs):
    def g(*a, **k):
        return a, k

    return g(*args, *[4], **kwargs, **{"z": 1}), [*args, 0], {**kwargs, "q": 2}, (*args,)


@case((3,))
def parameter_deleted(x):
    if x:
        del x
    return x


@case((3,))
def self_reference(x):
    return self_reference.__name__ if x else None


@case((2,))
def nested_functions_with_flow(n):
    def outer(k):
        acc = []

        def inner(v):
            for i in range(v):
                if i == k:
                    return acc
                acc.append(i)
            return "done"

        while k > 0:
            r = inner(n + 2)
            k -= 1
            if r == "done":
                break
        return r, acc

    return outer(n)


def _closure_factory(start):
    total = start

    def add(x):
        nonlocal total
        if x > 0:
            total += x
        elif x < 0:
            raise ValueError(total)
        total, result = start, total
        return result

    def later(x):
        if x:
            return unset
        return 0

    if start > 100:
        unset = 1
    return add, later


case((1,), (0,), (-1,))(_closure_factory(10)[0])
case((1,), (0,))(_closure_factory(10)[1])


@case((3,))
def helper_names_taken(_dy):
    _then = _break = _value = _comprehension = 1
    for _item in range(_dy):
        if _item == 2:
            break
        if _item == 1:
            _then += 1
    return _then, _break, _value, _item, [_result for _result in range(2)]


@case((1,), (0,))
def tuple_return(x):
    if x:
        return 1, [2], {"a": 3}
    return ()


@case((5,))
def slices(n):
    xs = list(range(n))
    xs[1:2], ys = [7, 7], xs[:]
    slice = 3
    return xs[slice:], xs[::2], ys, xs[-1], xs[..., :] if n < 0 else None


@case((2,))
def starred_index(n):
    d = {(1, 2): "a", (1, 2, 3): "b"}
    t = (2,)
    return d[1, *t], d[(1, *t, 3)]


@case((3,))
def async_inside(n):
    async def co(k):
        t = 0
        for i in range(k):
            if i:
                t += await one(i)
        return t

    async def one(i):
        return i if i else 0

    c = co(n)
    try:
        c.send(None)
    except StopIteration as s:
        return s.value


@case((3,))
def exception_context(n):
    try:
        try:
            1 / 0
        except ZeroDivisionError:
            if n:
                raise KeyError(n)
    except KeyError as e:
        return repr(e.__context__), repr(e.__cause__)


@case((3,))
def print_it(n):
    print("n", n, sep="=")
    if n:
        print(f"{n:>3}")
