"""Names: unset, global, attributes, order of assignment, classes and their scopes."""

# ruff: noqa
import functools
import os.path

from .cases import case, log


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
