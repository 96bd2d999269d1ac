"""What stands for a value of a Program in ONNX: one tensor or sequence for each leaf of its type.

    a tensor             a tensor of that dtype
    int, float, bool     a tensor without axes of int64, double, bool
    list<T>              a sequence for each leaf of T
    tuple<A, B>          the leaves of A and those of B
    variant<A | B>       its tag as an int64, then the leaves of A and those of B: empty tensors but for its alternative
    unset, a constant    nothing

ONNX's own optionals hold one tensor or none, are no element of a sequence, and few kernels take them; a tag beside its
payloads needs none of them.
"""

from __future__ import annotations

from dy2st.dtypes import DType, bool_, float64, int64
from dy2st.ir.types import ListType, ScalarType, TensorType, TupleType, Type, VariantType
from dy2st.records import record
from dy2st.shapes import Shape


class Refused(Exception):
    """ONNX has no form for an operation; the text says why."""


@record(frozen=True)
class Leaf:
    """A tensor, or a sequence of tensors, of a dtype; the shape is that of an element where it is known."""

    dtype: DType
    shape: Shape | None
    sequence: bool = False


_SCALARS = {"int": int64, "float": float64, "bool": bool_}


def leaves(t: Type) -> tuple[Leaf, ...]:
    """Return what a type is made of."""
    if isinstance(t, TensorType):
        if t.dtype.is_complex:
            raise Refused("ONNX's operators take no complex numbers")
        return (Leaf(t.dtype, t.shape),)
    if isinstance(t, ScalarType):
        return (Leaf(_SCALARS[t.kind], ()),)
    if isinstance(t, ListType):
        inner = leaves(t.element)
        if not inner or any(leaf.sequence for leaf in inner):
            raise Refused(f"ONNX has no sequence of {t.element}")
        return tuple(Leaf(leaf.dtype, leaf.shape, True) for leaf in inner)
    if isinstance(t, TupleType):
        return tuple(leaf for item in t.items for leaf in leaves(item))
    if isinstance(t, VariantType):
        return (Leaf(int64, ()), *(leaf for item in t.alternatives for leaf in leaves(item)))
    return ()


def place_of(t: TupleType | VariantType, number: int) -> slice:
    """Return where the leaves of an item, or of an alternative, stand among those of a type."""
    parts = t.items if isinstance(t, TupleType) else t.alternatives
    start = isinstance(t, VariantType) + sum(len(leaves(part)) for part in parts[:number])
    return slice(start, start + len(leaves(parts[number])))
