"""How a value of a Program stands in native code: as a row of LLVM values, its components.

    tensor of rank 0     one register of its element type
    small tensor         as many registers, in row-major order: its extents are known, and it has few elements
    other tensor         the block that owns the memory (or null: somebody else's), the address of its first element,
                         and one extent an axis; elements are in row-major order without gaps
    int, float, bool     i64, double, i1
    list                 the block that holds its length, its capacity and its elements
    tuple                the components of its items
    variant              the tag, then the components of every alternative; those of the others are zero
    unset, constants     nothing

A tensor inside of a list, a tuple or a variant stands in memory however small it is: types of one list may know its
extents and others not. In memory (arguments, results, elements of lists) each component has eight bytes.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Sequence

from dy2st.dtypes import DType
from dy2st.ir.types import ListType, ScalarType, TensorType, TupleType, Type, VariantType
from dy2st.records import record
from dy2st.shapes import Dim, symbol

_ELEMENT = {
    "bool": "i1", "uint8": "i8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "float32": "float", "float64": "double",
}  # fmt: skip
NARROW = ("float16", "bfloat16")
"""In memory 16 bits; in a register of a loop nest a float32, rounded after each operation."""
_SCALAR = {"int": "i64", "float": "double", "bool": "i1"}

Components = tuple[str, ...]
"""LLVM values (registers or literals), in the order of `kinds` of their type."""


MOST_REGISTERS = 16
"""How many elements a tensor has at most that stands in registers."""


class TensorInRegisters(tuple[str, ...]):
    """The components of a small tensor: its elements, in row-major order."""

    dtype: DType
    shape: tuple[int, ...]

    @staticmethod
    def of(t: TensorType, components: Sequence[str]) -> TensorInRegisters:
        """Return elements as a tensor of a type that knows its extents."""
        made = TensorInRegisters(components)
        made.dtype, made.shape = t.dtype, known_extents(t)
        return made


class StridedTensor(tuple[str, ...]):
    """The components of a tensor whose elements have gaps between them: a view that nobody has copied yet.

    Loop nests and some rules read it as it is; for all others the writer copies it first.
    """

    strides: tuple[str, ...]
    """How many elements each axis is apart."""

    @staticmethod
    def of(components: Components, strides: Sequence[str]) -> StridedTensor:
        """Return components with strides."""
        made = StridedTensor(components)
        made.strides = tuple(strides)
        return made


_PLAIN = re.compile(r"(?!hex\.)[A-Za-z0-9_.]+")


def function_name(name: str) -> str:
    """Return what a function of a Program is called in LLVM IR: a file may give it any name, which is no IR.

    >>> function_name("forward"), function_name("f(")
    ('dy2st.f.forward', 'dy2st.f.hex.6628')
    """
    return f"dy2st.f.{name if _PLAIN.fullmatch(name) else 'hex.' + name.encode(errors='surrogatepass').hex()}"


def is_native(dtype: DType) -> bool:
    """Return whether native code computes with elements of this type; others are only moved and handed to `eval`."""
    return dtype.name in _ELEMENT


def in_nests(dtype: DType) -> bool:
    """Return whether loop nests compute with elements of this type."""
    return is_native(dtype) or dtype.name in NARROW


def element_kind(dtype: DType) -> str:
    """Return the LLVM type of an element in a register; one of 16 bits is a float32 there."""
    return "float" if dtype.name in NARROW else _ELEMENT[dtype.name]


def memory_kind(dtype: DType) -> str:
    """Return the LLVM type of an element in memory."""
    return {"bool": "i8", "float16": "i16", "bfloat16": "i16"}.get(dtype.name) or element_kind(dtype)


def in_register(t: Type) -> bool:
    """Return whether a value of this type is one register that owns nothing."""
    return isinstance(t, ScalarType) or (isinstance(t, TensorType) and not t.shape and is_native(t.dtype))


def is_small(t: Type) -> bool:
    """Return whether a value of this type is a tensor of rank 1 or more that stands in registers."""
    return isinstance(t, TensorType) and bool(t.shape) and _registers(t) > 0


@functools.lru_cache(maxsize=4096)
def _registers(t: TensorType) -> int:
    """Return how many registers a tensor is; 0 for one that stands in memory."""
    if not is_native(t.dtype) or any(isinstance(e, Dim) for e in t.shape):
        return 0
    count = math.prod(known_extents(t))
    return count if count <= MOST_REGISTERS else 0


def in_registers(t: Type) -> bool:
    """Return whether a value of this type is registers that own nothing."""
    return in_register(t) or is_small(t)


def as_part(t: Type) -> Type:
    """Return a type as which the components of a part of something stand there: a tensor in memory."""
    if not (isinstance(t, TensorType) and is_small(t)):
        return t
    return TensorType(t.dtype, tuple(symbol(f"extent{axis}") for axis in range(t.rank)))


def told(t: Type, components: Sequence[str]) -> Components:
    """Return the components of a value as what they are for its type."""
    return TensorInRegisters.of(t, components) if isinstance(t, TensorType) and is_small(t) else tuple(components)


def known_extents(t: TensorType) -> tuple[int, ...]:
    """Return the extents of a tensor of which all are known."""
    return tuple(e for e in t.shape if isinstance(e, int))


def kinds(t: Type) -> tuple[str, ...]:
    """Return the LLVM types of the components of a type."""
    if isinstance(t, ScalarType):
        return (_SCALAR[t.kind],)
    if isinstance(t, TensorType):
        count = _registers(t)
        if count:
            return (element_kind(t.dtype),) * count
        return ("ptr", "ptr", *["i64"] * t.rank)
    if isinstance(t, ListType):
        return ("ptr",)
    if isinstance(t, TupleType):
        return tuple(kind for item in t.items for kind in kinds(as_part(item)))
    if isinstance(t, VariantType):
        return ("i64", *(kind for item in t.alternatives for kind in kinds(as_part(item))))
    return ()


def zero(kind: str) -> str:
    """Return the zero of an LLVM type."""
    return {"ptr": "null", "float": "0.0", "double": "0.0", "i1": "false"}.get(kind, "0")


def zeros(t: Type) -> Components:
    """Return the components of nothing, as they stand for an alternative that is not the one."""
    return told(t, [zero(kind) for kind in kinds(t)])


@record(frozen=True)
class BlockOwner:
    """Where in a row of components a counted block stands, and what of: a tensor's memory (None) or a list."""

    at: int
    list: ListType | None


def owners(t: Type) -> Iterator[BlockOwner]:
    """Yield the components of a type that are counted."""
    if not (isinstance(t, TensorType) and in_registers(t)):
        for at, part in parts(t):
            yield BlockOwner(at, ListType(as_part(part.element)) if isinstance(part, ListType) else None)


def parts(t: Type, start: int = 0) -> Iterator[tuple[int, TensorType | ListType]]:
    """Yield where tensors and lists stand among the components of a part, or of what has parts, with their types."""
    if isinstance(t, ListType) or (isinstance(t, TensorType) and not in_register(t)):
        yield start, t
    elif isinstance(t, (TupleType, VariantType)):
        inner: Sequence[Type] = t.items if isinstance(t, TupleType) else t.alternatives
        at = start + isinstance(t, VariantType)
        for item in inner:
            yield from parts(item, at)
            at += len(kinds(as_part(item)))


def alternative(t: VariantType, tag: int) -> slice:
    """Return where the components of an alternative stand among those of a variant."""
    at = 1 + sum(len(kinds(as_part(a))) for a in t.alternatives[:tag])
    return slice(at, at + len(kinds(as_part(t.alternatives[tag]))))


def item(t: TupleType, i: int) -> slice:
    """Return where the components of an item stand among those of a tuple."""
    at = sum(len(kinds(as_part(a))) for a in t.items[:i])
    return slice(at, at + len(kinds(as_part(t.items[i]))))
