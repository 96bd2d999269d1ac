"""try, except, finally, with and raise, alone and in loops."""

# ruff: noqa
from contextlib import contextmanager, suppress

from .cases import case, log


class Box:
    pass


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


@case((3,))
def with_attribute_target(x):
    b = Box()
    with manager(True) as b.r:
        if x:
            log(b.r)
    return b.r


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
