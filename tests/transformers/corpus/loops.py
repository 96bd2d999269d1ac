"""while, for, break, continue, else, return, try in loops."""

# ruff: noqa
from contextlib import contextmanager, suppress

from .cases import case, log


@case((0,), (3,))
def simple_while(n):
    s = 0
    while n > 0:
        s += n
        n -= 1
    return s


@case((0,), (3,), (9,))
def while_break_else(n):
    i = 0
    while i < 5:
        if i == n:
            r = "broken"
            break
        i += 1
    else:
        r = "finished"
    return i, r


@case(([1, 2, 3],), ([],), ([3, 0, 1],))
def for_else(xs):
    for x in xs:
        if x == 0:
            break
        log(x)
    else:
        log("else")
    return x


@case((10,), (0,))
def continue_loop(n):
    out = []
    for i in range(n):
        if i % 2:
            continue
        if i == 6:
            continue
        out.append(i)
    return out


@case((10, 4), (3, 8), (0, 0))
def break_and_continue(n, stop):
    out = []
    i = -1
    while True:
        i += 1
        if i >= n:
            break
        if i % 3 == 0:
            log("c")
            continue
        if i > stop:
            log("b")
            break
        out.append(i)
    return out, i


@case((5, 3), (0, 0), (9, 9))
def nested_loops(n, k):
    out = []
    for i in range(n):
        for j in range(i):
            if j == k:
                break
            if (i + j) % 2:
                continue
            out.append((i, j))
        else:
            out.append("else")
            continue
        out.append("broken")
        if i > 6:
            break
    return out, i


@case(([1, 2, 3],), ([3],), ([],))
def return_in_for(xs):
    for x in xs:
        if x == 2:
            return "found", x
    return "none"


@case((3,), (0,))
def return_in_while_true(n):
    while True:
        if n <= 0:
            return log("done")
        n -= 1


@case(([[1, 2], [3, 4]], 3), ([[1, 2]], 9), ([], 0))
def return_in_nested(rows, t):
    for i, row in enumerate(rows):
        for j, v in enumerate(row):
            if v == t:
                return i, j
        log(("row", i))
    log("end")


@case(([1, 2, 3],), ([2],), ([],))
def return_in_for_else(xs):
    for x in xs:
        if x == 3:
            return "three"
    else:
        return "else"
    return "never"


@case(([0, 1],), ([1, 2],), ([2, 2, 2],), ([],))
def return_in_try_finally(xs):
    for x in xs:
        try:
            if x == 1:
                return log("return")
            if x == 2:
                continue
            log("body")
        finally:
            log("finally")
        log("after")
    return "end"


@case((0,), (1,), (2,))
def try_all(x):
    try:
        if x == 1:
            raise ValueError("one")
        if x == 2:
            return log("ret")
        log("body")
    except ValueError as e:
        if x:
            log(str(e))
            return "caught"
    else:
        log("else")
    finally:
        log("finally")
    return "end"


@case((0,), (1,), (2,))
def finally_return(x):
    for i in range(3):
        try:
            if x == 1:
                raise ValueError
            if x == 2:
                return "lost"
        finally:
            if i == 1:
                return "final"
    return "end"


@case((0,), (1,))
def finally_break(x):
    while True:
        try:
            if x:
                raise ValueError
        finally:
            break
    if x:
        return "x"
    return "end"


@case((0,), (1,), (2,))
def finally_continue(x):
    out = []
    for i in range(3):
        try:
            if i == x:
                raise KeyError(i)
            out.append(i)
        finally:
            if i < 2:
                continue
        out.append("tail")
    return out


@case((0,), (1,), (2,))
def try_break_else(x):
    for i in range(3):
        try:
            if x == 0:
                break
            if x == 1 and i == 1:
                continue
        except Exception:
            log("no")
        else:
            log("else")
        log("tail")
    return i


@case((0,), (1,))
def handler_name_unset(x):
    e = "before"
    try:
        if x:
            raise ValueError("v")
    except ValueError as e:
        log(str(e))
        if x:
            log(type(e).__name__)
    return e


@case((0,), (1,))
def handler_name_in_loop(x):
    last = None
    for i in range(3):
        try:
            if i == x:
                raise ValueError(i)
        except ValueError as err:
            last = err.args
            if i:
                continue
        if last:
            break
    try:
        return err
    except UnboundLocalError as u:
        return str(u), last, i


@case((0,), (1,))
def bare_raise(x):
    try:
        try:
            raise ValueError("inner")
        except ValueError:
            if x:
                raise
            log("swallowed")
    except ValueError as e:
        return repr(e)
    return "none"


@contextmanager
def manager(swallow):
    log("enter")
    try:
        yield "resource"
    except ValueError:
        log("error")
        if not swallow:
            raise
    finally:
        log("exit")


@case((0, True), (1, True), (1, False), (2, True))
def with_return(x, swallow):
    with manager(swallow) as r:
        if x == 1:
            raise ValueError("x")
        if x == 2:
            return r
        log("body")
        y = 1
    return y


@case((0,), (1,), (2,))
def with_in_loop(x):
    for i in range(4):
        with manager(True) as r, suppress(KeyError):
            if i == x:
                continue
            if i == 2:
                raise KeyError
            if i == 3:
                break
            log(i)
        log("after")
    return i, r


@case((3,), (0,))
def loop_variable_after(n):
    for i in range(n):
        j = i * 2
    return i, j


@case(([(1, 2), (3, 4)],), ([],))
def tuple_target(ps):
    s = 0
    for a, b in ps:
        s += a * b
    return s


@case(([(1, 2, 3), (4, 5)],))
def star_target(ps):
    out = []
    for a, *b in ps:
        out.append((a, b))
        if len(b) > 1:
            [c, *_], d = b, a
            out.append((c, d))
    return out


class Box:
    pass


@case(([1, 2, 3],))
def attribute_target(xs):
    b = Box()
    d = [0, 0]
    for b.v in xs:
        if b.v > 1:
            for d[b.v - 2] in xs:
                pass
    b.v, d[0], *rest = 9, 8, 7, 6
    b.v += 1
    d[log(0)] *= log(2)
    return b.v, d, rest


@case((3,))
def with_attribute_target(x):
    b = Box()
    with manager(True) as b.r:
        if x:
            log(b.r)
    return b.r


@case(({"a": 1, "b": 2},))
def dict_items(d):
    out = {}
    for k, v in d.items():
        if v > 1:
            out[k] = v
    return out


@case((4,))
def closures_in_loop(n):
    fs = []
    for i in range(n):
        if i % 2:
            fs.append(lambda: i)
        else:
            fs.append(lambda i=i: i)
    return [f() for f in fs]


@case((3,))
def iterator_state(n):
    it = iter(range(10))
    for x in it:
        if x == n:
            break
    return next(it)


@case((3,))
def generator_closed(n):
    def gen():
        try:
            for i in range(10):
                yield i
        finally:
            log("closed")

    for x in gen():
        if x == n:
            break
    log("after")
    return x


@case((5,))
def mutate_while_iterating(n):
    xs = [n]
    for x in xs:
        if x > 0:
            xs.append(x - 1)
    return xs


@case((0,), (2,))
def loop_raises(n):
    for i in range(3):
        if i == n:
            raise IndexError(i)
    return "no"


@case((5,))
def not_iterable(x):
    for i in x:
        pass


@case((0,), (3,))
def zero_trip(n):
    for i in range(n):
        pass
    return i


@case((6,))
def while_with_function(n):
    def more():
        nonlocal n
        n -= 1
        return n > 0

    c = 0
    while more():
        c += 1
        if c > 3:
            break
    return c, n


@case((3,))
def while_else_return(n):
    while n:
        n -= 1
    else:
        return "else"


@case((3, True), (3, False))
def deep(n, flag):
    for i in range(n):
        while True:
            try:
                for j in range(n):
                    if j == 1:
                        if flag:
                            with suppress(ValueError):
                                if i == 1:
                                    return "deep", i, j
                                raise ValueError
                        break
                else:
                    log("no")
                    continue
                break
            finally:
                log((i, j))
        log("outer")
    return "end"


@case((4,))
def deleted_in_loop(n):
    out = []
    for i in range(n):
        if i % 2 == 0:
            x = i
        else:
            del x
        try:
            out.append(x)
        except UnboundLocalError as e:
            out.append(str(e))
    return out


@case(([3, 1, 2],))
def collatz(xs):
    r = []
    for n in xs:
        c = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            c += 1
        r.append(c)
    return r


@case((3,))
def continue_last(n):
    while n:
        n -= 1
        if n == 1:
            log("one")
            continue
        else:
            log("other")
            continue
    return n


@case((1,), (0,))
def dead_code(x):
    for i in range(3):
        break
        log("never")
    if x:
        return 1
        log("never")
    while x:
        continue
    return i


@case((2,), (5,))
def raise_or_return(x):
    for i in range(4):
        if i == x:
            return i
        elif i == 3:
            raise RuntimeError("three")
        else:
            log(i)


@case((0,), (1,), (2,))
def try_return_else(x):
    def g():
        try:
            if x == 0:
                return "body"
        except ValueError:
            return "no"
        else:
            if x == 1:
                return "else"
            log("on")
        return "end"

    return g()


@case((1,), (0,))
def except_group(x):
    try:
        if x:
            raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
    except* ValueError as eg:
        log(len(eg.exceptions))
        if x:
            log("in")
    except* KeyError:
        log("key")
    return "end"
