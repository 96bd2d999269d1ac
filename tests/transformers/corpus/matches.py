"""match: values, guards, structures, classes."""

# ruff: noqa
from dataclasses import dataclass

from .cases import case, log


@case((0,), (1,), (2,), (3,), ("s",), (None,), (True,))
def match_values(x):
    match x:
        case 0:
            return "zero"
        case 1 | 2:
            r = "few"
        case None:
            r = "none"
        case True:
            r = "true"
        case str() as s:
            r = "str " + s
        case _:
            r = "other"
    return r


@case((0,), (5,), (50,), (-1,))
def match_guard(x):
    match x:
        case 0 if log("never", False):
            return "never"
        case n if log(n) > 10:
            return "big"
        case 5 as five if five > 3:
            return "five"
        case n if n < 0:
            pass
        case other:
            return other
    return n


@case(([],), ([1],), ([1, 2],), ([1, 2, 3],), ({"k": 1, "z": 2},), ({"q": 0},), (7,))
def match_structure(x):
    match x:
        case []:
            return "empty"
        case [a]:
            r = a
        case [a, b] if a > b:
            r = "desc"
        case [a, *rest]:
            r = (a, rest)
        case {"k": k, **others}:
            r = k, others
        case _:
            return "none"
    return r


@dataclass
class Point:
    x: int
    y: int


@case((Point(0, 1),), (Point(1, 0),), (Point(2, 2),), (3,))
def match_class(p):
    match p:
        case Point(0, y):
            return "x0", y
        case Point(x=x, y=0):
            return "y0", x
        case Point(x=x, y=y) if x == y:
            return "eq"
    return "no"


@case((1,), (2,), (3,))
def match_in_loop(x):
    out = []
    for i in range(5):
        match i:
            case 0:
                continue
            case n if n == x:
                out.append("hit")
                break
            case _:
                out.append(i)
    else:
        out.append("else")
    return out


@case((1,), (0,))
def match_no_case(x):
    match x:
        case 1:
            y = 1
    return y
