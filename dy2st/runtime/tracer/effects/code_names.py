"""What a function's code does with names, without taking all of its instructions apart, which takes `dis` long."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType

_EXTENDED = dis.opmap["EXTENDED_ARG"]
_LOADS_GLOBAL = dis.opmap["LOAD_GLOBAL"]


def does(code: CodeType, *names: str) -> bool:
    """Say whether some instruction of a function is one of these.

    >>> does((lambda x: len(x)).__code__, "LOAD_GLOBAL"), does((lambda x: x).__code__, "LOAD_GLOBAL", "STORE_GLOBAL")
    (True, False)
    """
    operations = code.co_code[::2]
    return any(dis.opmap[name] in operations for name in names)


def names_of(code: CodeType, *instructions: str) -> Iterator[str]:
    """Yield the names that these instructions of a function have, in order; they are instructions on globals.

    >>> def f(x):
    ...     return len(x) + sum(x)
    >>> list(names_of(f.__code__, "LOAD_GLOBAL"))
    ['len', 'sum']
    """
    wanted = {dis.opmap[name] for name in instructions}
    more = 0
    for operation, given in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        number = more << 8 | given
        if operation in wanted:
            yield code.co_names[number >> 1 if operation == _LOADS_GLOBAL else number]
        more = number if operation == _EXTENDED else 0
