"""Functions, closures, generators, comprehensions, classes, scoping."""

# ruff: noqa
import functools
import os.path

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


class Base:
    kind = "base"

    def f(self, x):
        return ("base", x)

    @classmethod
    def make(cls):
        return cls()


class Child(Base):
    @case((1,), (0,))
    def standalone(self):
        return self

    def f(self, x):
        if x:
            return super().f(x)
        for i in range(2):
            if i:
                return (super(Child, self).f(i), [super(Child, self).f(j) for j in range(2)])

    def g(self, x):
        return x and super().f(x), __class__.kind

    def __hidden(self, v):
        return v + 1

    def private(self, x):
        self.__v = x
        if x:
            self.__v += self.__hidden(x)
        __local = 3
        return self.__v, sorted(vars(self)), __local

    @property
    def p(self):
        return "p" if self.kind else None

    @staticmethod
    def s(x):
        return x if x else "s"

    @classmethod
    def made(cls, x):
        if x:
            return type(super().make()).__name__
        return cls.__name__


@case((1,), (0,))
def nested_class(x):
    class A:
        y = x

        def __init__(self, v):
            self.__v = v

        def get(self):
            if self.__v:
                return self.__v
            return "none"

        class Inner:
            z = [i for i in range(3)]

    class B(A):
        def get(self):
            if x:
                return super().get()
            return (lambda: super(B, self).get())()

    return B(x).get(), A.__qualname__, B.get.__qualname__, A.Inner.z, A.Inner.__qualname__, A.y


@case((1,))
def class_reads_unset(x):
    if not x:
        q = 1

    class A:
        v = q

    return A.v


@case((1,), (0,))
def names(x):
    def g():
        pass

    if x:

        def h():
            return lambda: 1

    else:
        h = lambda: 2
    return g.__name__, g.__qualname__, h.__name__, h.__qualname__, getattr(h(), "__qualname__", None)


@case((2,))
def uses_locals(x):
    y = 3
    if x:
        return sorted(k for k in locals() if k in ("x", "y"))
    return eval("x + y")


@case((2,))
def uses_eval(x):
    y = 3
    if x:
        r = eval("x + y")
    z = x and eval("y")
    return r, z


@case((2,))
def uses_globals(x):
    if x:
        return "uses_globals" in globals()


@case((2,))
def module_paths(x):
    if os.path.join("a", "b"):
        return os.path.sep.join(["a"]), functools.reduce(lambda a, b: a + b, range(x))


@case((2,))
def attributes(x):
    class O:
        pass

    o = O()
    o.a = x
    o.a += 1
    o.d = {}
    o.d["k"] = [1, 2, 3, 4]
    o.d["k"][1:3] = [9]
    del o.d["k"][0], o.a
    try:
        o.a
    except AttributeError as e:
        r = str(e)
    return o.d, o.d["k"][-1], o.d["k"][::-1], o.d["k"][log(0) : log(1)], r


@case((2,))
def assignment_order(x):
    d = {}
    d[log("key")] = log("value")
    log("obj", d)[log("k")] += log("v", "") if False else log(1, "s")
    return d


@case(({"k": 1},))
def aug_order(d):
    def key():
        log("key")
        return "k"

    d[key()] += log(1)
    d[key()] -= log(5)
    return d


@case(([1, 2, 3],))
def aug_alias(xs):
    ys = xs
    ys += [4]
    zs = xs
    zs = zs + [5]
    a = b = c = []
    a.append(1)
    x = y, z = 1, 2
    return xs, ys, zs, b, x, y, z


@case((3,))
def multiple_assignment(x):
    class O:
        pass

    o = O()
    o.p = q = o.r = log(x)
    (o.a, (o.b, *o.c)), d = (1, (2, 3, 4)), 5
    return o.p, q, o.r, o.a, o.b, o.c, d


@case(([1, 2, 3],), ([1],))
def unpack_error(xs):
    try:
        a, b, c = xs
    except ValueError as e:
        return str(e)
    return a, b, c


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


@case((1,))
def unknown_global(x):
    if x:
        return no_such_name
    return 1


@case((1,))
def unbound_simple(x):
    y = z
    z = 1
    return y


@case((1,))
def aug_unbound(x):
    y += x
    return y


@case((1,), (0,))
def aug_unbound_in_branch(x):
    if x:
        y += 1
    else:
        y = 0
    return y


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


@case((2,))
def global_statement_inside(n):
    def g():
        global _made_global
        _made_global = n
        if n:
            _made_global += 1

        def h():
            return _made_global

        return h()

    return g(), _made_global


@case((1,))
def conditional_nonlocal(x):
    a = 1

    def g():
        if x:
            nonlocal a
            a = 2
        return a

    return g(), a


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
