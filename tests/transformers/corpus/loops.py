"""while, for, break, continue, else, return."""

# ruff: noqa
from contextlib import suppress

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
