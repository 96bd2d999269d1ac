"""if, ternary, logic, comparison, assert."""

# ruff: noqa

from .cases import case, log


@case((1,), (0,), (-1,))
def if_elif_else(x):
    if x > 0:
        y = "p"
    elif x == 0:
        y = "z"
    else:
        y = "n"
    return y


@case((1,), (0,))
def if_without_else(x):
    y = 1
    if x:
        y = 2
    return y


@case((1,), (0,))
def unset_on_one_path(x):
    if x:
        y = 2
    return y


@case((1,), (0,))
def unset_del(x):
    y = 1
    if x:
        del y
    return y


@case((1,), (0,))
def del_twice(x):
    y = 1
    if x:
        del y
    del y
    return x


@case((1, 1), (1, 0), (0, 1), (0, 0))
def nested_ifs(a, b):
    r = []
    if a:
        r.append("a")
        if b:
            r.append("ab")
            c = 1
        else:
            c = 2
        r.append(c)
    else:
        if b:
            c = 3
            r.append(c)
        c = 4
    return r, c


@case((1,), (0,))
def ternary(x):
    return log("then") if log(x) else log("else")


@case((1, 2, 3), (0, 2, 3), (1, 0, 3), (0, 0, 0))
def and_or(a, b, c):
    return log("a", a) and log("b", b) or log("c", c), (not a) or b, a and b and c, a or b or c


@case((1, 2, 3), (3, 2, 1), (1, 3, 2), (2, 2, 2))
def chained(a, b, c):
    return log(a) < log(b) <= log(c) != log(7)


@case((1, [1, 2]), (3, [1, 2]))
def membership(a, xs):
    return a in xs, a not in xs, a is xs, a is not xs, 0 < a in xs, None is not a in xs


@case((1,), (5,), (0,))
def walrus_in_if(x):
    if (y := x * 2) > 4 and (z := y + 1):
        return y, z
    return y


@case((1,), (5,), (0,))
def walrus_unset(x):
    if x > 4 and (z := x + 1):
        pass
    return z


@case((1,), (0,))
def walrus_in_ternary(x):
    r = (a := 1) if x else (b := 2)
    return r, a


@case((1, 5), (5, 1))
def walrus_in_chain(x, y):
    ok = 0 < x < (k := y) < 9
    return ok, k


@case(([1, 2, 3, 0, 4],))
def walrus_in_while(xs):
    it = iter(xs)
    out = []
    while (x := next(it)) and x < 9:
        out.append(x)
    return out, x


@case((1,), (0,))
def raise_in_branch(x):
    if x:
        raise ValueError(f"bad {x}")
    return "fine"


@case((1,), (0,))
def raise_from(x):
    try:
        if x:
            raise KeyError("inner")
    except KeyError as e:
        raise ValueError("outer") from e
    return 1


@case((1,), (0,))
def assert_message(x):
    assert log(x), log("message")
    return x


@case((1,), (0,))
def assert_bare(x):
    assert x
    return x


@case((1,), (0,))
def function_in_branch(x):
    if x:

        def g(a, b=x):
            return a + b

    else:
        g = lambda a: a - 1
    return g(10)


@case((1,), (0,))
def class_in_branch(x):
    if x:

        class C:
            v = x

            def get(self):
                return self.v if self.v else None

    else:

        class C:
            def get(self):
                return "no"

    return C().get(), C.__qualname__, C.get.__qualname__


@case((1,), (0,))
def import_in_branch(x):
    if x:
        import math as m
    else:
        import cmath as m
    return m.sqrt(4)


COUNTER = 0


@case((1,), (0,))
def global_in_branch(x):
    global COUNTER
    COUNTER = 5
    if x:
        COUNTER += 1
    else:
        COUNTER = 0
    return COUNTER


@case((1,), (0,))
def global_new(x):
    global FRESH_GLOBAL
    if x:
        FRESH_GLOBAL = x
    try:
        r = FRESH_GLOBAL
        del FRESH_GLOBAL
    except NameError as e:
        r = str(e)
    return r


@case((1,), (0,))
def pass_only(x):
    if x:
        pass
    else:
        ...
    return x


@case((1,), (0,))
def if_not_none(x):
    y = None if x else 3
    if y is not None:
        return y
    return "none"


@case((3, 4), (0, 0))
def shadowed_builtin(x, print):
    if x:
        print = 5
    return print


@case((1, 2), (0, 2))
def swap(a, b):
    if a:
        a, b = b, a
    return a, b


@case((1,), (0,))
def annotated(x):
    y: int = 3
    z: str
    if x:
        z: str = "s"
        y: int = 4
    return y, z


@case((1,), (0,))
def only_annotated(x):
    z: int
    return z


@case((5,))
def fstrings(x):
    w = 8
    return f"{x!r:>{w}} {x:03d} {x=} {{}} {'ab'}" + f"" + f"plain"


@case((5,))
def fstring_order(x):
    xs = [x]
    return f"{xs}{xs.append(1)}{xs!r}"


@case((0,), (2,))
def division(x):
    if 10 / x > 1:
        return "ok"
    return "small"


@case((1,), (0,))
def deep_ternary(x):
    return [1 if x else 2 if not x else 3, (lambda q: q if q else "f")(x)]


@case((1,), (0,))
def expression_statement(x):
    x and log("yes")
    x or log("no")
    log("t") if x else log("f")


@case((1,), (0,))
def none_returned(x):
    if x:
        return
    log("after")


@case((2,), (0,))
def docstring(x):
    """Docs stay."""
    if x:
        return docstring.__doc__
    return None
