"""What tells Python values among the arguments apart: their value where it cannot change, else identity.

Two lambdas of one line, or two bound methods of one object, are the same argument: what differs between them (defaults,
what they captured) is part of the key.
"""

from __future__ import annotations

import dis
import functools
import types
from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.kinds import type_of, variables_of
from dy2st.late import types_of
from dy2st.nn.layer import Layer
from dy2st.runtime.gc_pause import while_it_lives
from dy2st.runtime.tracer.effects.code_names import does
from dy2st.runtime.tracer.effects.escape_analysis import is_plain_object

VALUES: tuple[type, ...] = (bool, int, float, str, bytes, complex, type(None), dtypes.DType, slice, type(Ellipsis))
SHOWN = ("builtins:range", "decimal:Decimal", "fractions:Fraction", "datetime:date", "datetime:time",
         "datetime:timedelta", "pathlib:PurePath")  # fmt: skip
"""Types whose values never change and are told apart by their text."""
ANSWERS = ("__getattr__", "__call__", "__next__", "__enter__")
"""What a class may have so that its instances are more than their attributes."""
MOST_ATTRIBUTES = 64


class ById:
    """An object in a key: equal when it is the same object; kept alive, so that its id stays its own."""

    __slots__ = ("object",)

    def __init__(self, object: Any):
        self.object = object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ById) and other.object is self.object

    def __hash__(self) -> int:
        return id(self.object)


def key_of(x: Any) -> Any:
    """Return what tells a Python value from others."""
    kind = type_of(x)
    if isinstance(x, VALUES):
        exact = kind is not slice and not (kind in (float, complex) and (x != x or x == 0))
        return kind, x if exact else repr(x)  # `==` does not tell NaN and -0.0
    if isinstance(x, types_of(*SHOWN)):
        return kind, repr(x)
    if isinstance(x, np.generic):
        return kind, x.tobytes()
    if kind is frozenset:
        return kind, frozenset(map(key_of, x))
    if kind is types.MethodType:
        return kind, ById(x.__self__), _function_key(x.__func__)
    if kind is types.BuiltinMethodType:
        return kind, ById(x.__self__), x.__name__
    if kind is functools.partial:
        return kind, key_of(x.func), tuple(map(key_of, x.args)), tuple((k, key_of(v)) for k, v in x.keywords.items())
    return _function_key(x)


def _function_key(f: Any) -> Any:
    """Return the key of a function that is the same each time its `def` runs; of anything else its identity."""
    if type(f) is not types.FunctionType or vars(f) or _assigns_captured(f.__code__):
        return "object", ById(f)
    try:
        captured = [cell.cell_contents for cell in f.__closure__ or ()]
    except ValueError:  # not assigned yet
        return "object", ById(f)
    more = [*captured, *(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()]
    if not all(isinstance(x, VALUES) or getattr(type_of(x), "has_no_state", False) for x in more):
        return "object", ById(f)
    return "function", ById(f.__code__), ById(f.__globals__), tuple(map(key_of, more))


@while_it_lives
def _assigns_captured(code: types.CodeType) -> bool:
    """Return whether a function may assign a variable that it captured."""
    free, ways = set(code.co_freevars), ("STORE_DEREF", "DELETE_DEREF")
    own = does(code, *ways) and any(i.opname in ways and i.argval in free for i in dis.get_instructions(code))
    return own or any(isinstance(c, types.CodeType) and _assigns_captured(c) for c in code.co_consts)


def is_its_attributes(x: Any) -> bool:
    """Return whether an object (a dataclass, say) is no more than its attributes, so that another may stand for it."""
    kind = type_of(x)
    if (
        not is_plain_object(x)
        or not hasattr(x, "__dict__")
        or isinstance(x, Layer)
        or len(variables_of(x)) > MOST_ATTRIBUTES
    ):
        return False
    if any(name in base.__dict__ for base in kind.__mro__ for name in ANSWERS):
        return False
    slots = any(base.__dict__.get("__slots__") for base in kind.__mro__)
    return kind.__getattribute__ is object.__getattribute__ and not slots
