"""What a function's code does with names, without taking all of its instructions apart, which takes `dis` long."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any

from dy2st.naming import is_plain_module

_EXTENDED = dis.opmap["EXTENDED_ARG"]
_LOADS_GLOBAL = dis.opmap["LOAD_GLOBAL"]


def does(code: CodeType, *names: str) -> bool:
    """Return whether some instruction of a function is one of these.

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


def asks_for_types(f: Any, met: set[Any] | None = None) -> bool:
    """Return whether a function of the user's, or one that it names, has `type`: it would be given a number of the
    run.
    """
    f, met = getattr(f, "__func__", f), set() if met is None else met
    if not isinstance(f, FunctionType) or is_plain_module(f.__module__) or f.__code__ in met:
        return False
    waiting, named = [f.__code__], dict[str, None]()
    while waiting:
        code = waiting.pop()
        met.add(code)
        waiting += (x for x in code.co_consts if isinstance(x, CodeType))
        named.update(dict.fromkeys(names_of(code, "LOAD_GLOBAL", "LOAD_NAME")))
    outside = [*(f.__globals__.get(name) for name in named), *contents_of(f)]
    return ("type" in named and "type" not in f.__globals__) or any(asks_for_types(x, met) for x in outside)


def contents_of(f: FunctionType) -> Iterator[Any]:
    """Yield what the cells of a function hold."""
    for cell in f.__closure__ or ():
        with suppress(ValueError):  # not assigned yet
            yield cell.cell_contents
