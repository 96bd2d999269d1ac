"""What the forward part of a derivative keeps for its backward part stays in native memory, as opaque objects.

A kept value is a capsule around a row of components (value_layout.py), in memory of the run that made it. The context
of that run goes with it: nothing else of the run is held, so when the last of its capsules goes, all blocks are free
and the context waits for the next run. The Program that takes it over reads the elements where they stand, as somebody
else's memory (entry_kept.py), so any number of runs may read one at once, and who keeps the graph may read it again.

    run   0 its context  8 the plate (entry.py)  16 what owns both  24 how many capsules there are, then for each:
    row   0 the run  8 what its components are (`layout`)  16 its components
"""

from __future__ import annotations

import ctypes
import datetime
import hashlib
from collections.abc import Sequence
from typing import Any

from dy2st.ir.program import Program
from dy2st.ir.types import ListType, ScalarType, TensorType, TupleType, Type, VariantType
from dy2st.runtime.backends.cpu.python_abi.host_callbacks import decode, unshared

CAPSULE = type(datetime.datetime_CAPI)
NAME = ctypes.create_string_buffer(b"dy2st kept")
RUN, LAYOUT, COMPONENTS = 0, 8, 16


def is_keepable(t: Type) -> bool:
    """Return whether values of a type are kept as they are; numbers and tensors become objects of Python."""
    return isinstance(t, (ListType, TupleType, VariantType))


def is_kept(program: Program, number: int, t: Type) -> bool:
    """Return whether a result of a Program is kept for a derivative, as it is."""
    return program.kept is not None and number >= program.kept and is_keepable(t)


def layout(t: Type) -> int:
    """Return a number that tells apart types whose components are read in another way; extents do not count."""
    return int.from_bytes(hashlib.sha256(_layout(t).encode()).digest()[:7], "little")


def _layout(t: Type) -> str:
    if isinstance(t, TensorType):
        return f"{t.dtype.name} {t.rank}"
    if isinstance(t, ScalarType):
        return t.kind
    if isinstance(t, ListType):
        return f"[{_layout(t.element)}]"
    inner = t.items if isinstance(t, TupleType) else t.alternatives if isinstance(t, VariantType) else ()
    return f"{type(t).__name__}({', '.join(map(_layout, inner))})"


def opened(types: Sequence[Type], values: Sequence[Any]) -> Sequence[Any]:
    """Return values as objects of Python, those that are kept copied."""
    if CAPSULE not in map(type, values):
        return values
    return [_opened(t, v) if type(v) is CAPSULE else v for t, v in zip(types, values, strict=True)]


def _opened(t: Type, value: Any) -> Any:
    row = _pointer(value, NAME.raw[:-1])
    if ctypes.c_uint64.from_address(row + LAYOUT).value != layout(t):
        raise TypeError(f"what was kept is no {t}")
    return unshared(t, decode(t, row + COMPONENTS)[0])


_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
