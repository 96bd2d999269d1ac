"""Where the instances of a class have their slots, and what makes them, for machine code that does it itself."""

from __future__ import annotations

import ctypes
from types import MemberDescriptorType
from typing import Any

_WORD = ctypes.sizeof(ctypes.c_void_p)
_HEAD = 2 * _WORD
_TP_NEW = 65
"""The number of `tp_new` among the slots of types, in the stable API of Python."""


def slots_of(kind: type[Any]) -> list[str]:
    """Return the names of the slots of a class and its bases."""
    return [name for one in kind.__mro__ for name, x in vars(one).items() if type(x) is MemberDescriptorType]


def places(kind: type[Any]) -> dict[str, int] | None:
    """Return where an instance has each slot, in bytes: where an object is found that was put there.

    None where that is not one place.

    >>> class Pair:
    ...     __slots__ = ("one", "other")
    >>> sorted(places(Pair).values()) == [_HEAD, _HEAD + _WORD]
    True
    """
    made, found = object.__new__(kind), dict[str, int]()
    for name in slots_of(kind):
        sign = object()
        setattr(made, name, sign)
        at = [at for at in range(_HEAD, kind.__basicsize__, _WORD) if word(id(made) + at) == id(sign)]
        if len(at) != 1:
            return None
        found[name] = at[0]
    return found


def maker() -> int:
    """Return the address of what `object.__new__` calls: `PyObject *(type, arguments, keywords)`."""
    get_slot = ctypes.pythonapi.PyType_GetSlot
    get_slot.restype, get_slot.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_int)
    return int(get_slot(object, _TP_NEW))


def word(address: int) -> int:
    """Return the word at an address."""
    return ctypes.c_size_t.from_address(address).value
