"""The types of values: tensors, Python scalars, lists, tuples and variants.

Text forms, as printer and parser use them:

    float32[N, 4]                a tensor; extents are ints or symbolic (shapes.py)
    int  int(2*N)  float  bool   a Python number; an int may carry the extent that it is known to be
    list<float32[2]>             a growable list
    tuple<float32[2], int>
    variant<unset | float32[2]>  one of several alternatives, told apart by a run-time tag; `unset | T` is an optional
    none  unset  const("relu")   types with one value
"""

from __future__ import annotations

import json
from collections.abc import Callable

from dy2st.dtypes import DType
from dy2st.records import record
from dy2st.shapes import Extent, Shape

Constant = None | bool | int | float | str


class Type:
    """Base of the types; types are immutable and compared by value."""

    __slots__ = ()


@record(frozen=True, slots=True)
class TensorType(Type):
    """A tensor of known dtype and rank; extents are ints or symbolic."""

    dtype: DType
    shape: Shape

    @property
    def rank(self) -> int:
        return len(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype.name}[{', '.join(map(str, self.shape))}]"


@record(frozen=True, slots=True)
class ScalarType(Type):
    """A Python number. `kind` is "int", "float" or "bool"; `extent` says which extent an int is known to be."""

    kind: str
    extent: Extent | None = None

    def __str__(self) -> str:
        return self.kind if self.extent is None else f"{self.kind}({self.extent})"


@record(frozen=True, slots=True)
class ListType(Type):
    """A growable list whose elements share one type."""

    element: Type

    def __str__(self) -> str:
        return f"list<{self.element}>"


@record(frozen=True, slots=True)
class TupleType(Type):
    """A fixed sequence of values."""

    items: tuple[Type, ...]

    def __str__(self) -> str:
        return f"tuple<{', '.join(map(str, self.items))}>"


@record(frozen=True, slots=True)
class UnsetType(Type):
    """The type of a variable that was not assigned, or of a cotangent that is not there."""

    def __str__(self) -> str:
        return "unset"


@record(frozen=True, slots=True)
class ConstType(Type):
    """The type whose only value is a Python constant: None, a string, a number."""

    value: Constant

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConstType) and type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))

    def __str__(self) -> str:
        return "none" if self.value is None else f"const({json.dumps(self.value)})"


@record(frozen=True, slots=True)
class VariantType(Type):
    """One of several alternatives, told apart by a run-time tag (the index in `alternatives`)."""

    alternatives: tuple[Type, ...]

    def __str__(self) -> str:
        return f"variant<{' | '.join(map(str, self.alternatives))}>"


UNSET = UnsetType()
NONE = ConstType(None)
INT, FLOAT, BOOL = ScalarType("int"), ScalarType("float"), ScalarType("bool")


def optional(of: Type) -> VariantType:
    """Return the variant of `unset` and `of`; a variant, of which `unset` is an alternative already, stays as it is."""
    return of if isinstance(of, VariantType) else VariantType((UNSET, of))


def is_optional(t: Type) -> bool:
    """Return whether `t` is `variant<unset | T>`."""
    return isinstance(t, VariantType) and len(t.alternatives) == 2 and t.alternatives[0] == UNSET


def payload(t: Type) -> Type:
    """Return T of `variant<unset | T>`, else `t` itself."""
    return t.alternatives[1] if isinstance(t, VariantType) and is_optional(t) else t


def is_differentiable(t: Type) -> bool:
    """Return whether values of this type carry derivatives: float and complex tensors, and what contains them."""
    if isinstance(t, TensorType):
        return t.dtype.is_differentiable
    if isinstance(t, ListType):
        return is_differentiable(t.element)
    if isinstance(t, TupleType):
        return any(map(is_differentiable, t.items))
    return isinstance(t, VariantType) and any(map(is_differentiable, t.alternatives))


def has_tensors(t: Type) -> bool:
    """Return whether values of this type are tensors, or may have some in them."""
    if isinstance(t, ListType):
        return has_tensors(t.element)
    if isinstance(t, (TupleType, VariantType)):
        return any(map(has_tensors, t.items if isinstance(t, TupleType) else t.alternatives))
    return isinstance(t, TensorType)


def tangent_type(t: Type) -> Type:
    """Return the type of tangents and cotangents of `t`: a list has a list of optional ones."""
    if isinstance(t, ListType):
        return ListType(optional(tangent_type(payload(t.element))))
    if isinstance(t, TupleType):
        return TupleType(tuple(optional(tangent_type(item)) for item in t.items))
    if isinstance(t, VariantType) and not is_optional(t):
        return VariantType(tuple(a if not is_differentiable(a) else tangent_type(a) for a in t.alternatives))
    if isinstance(t, VariantType):
        return optional(tangent_type(payload(t)))
    return t


def over_leaves(t: Type, change: Callable[[Type], Type]) -> Type:
    """Return `t` with `change` done to what is no list, tuple or variant.

    >>> str(over_leaves(ListType(ScalarType("int")), lambda leaf: TupleType((leaf, leaf))))
    'list<tuple<int, int>>'
    """
    if isinstance(t, ListType):
        return ListType(over_leaves(t.element, change))
    if isinstance(t, TupleType):
        return TupleType(tuple(over_leaves(item, change) for item in t.items))
    if isinstance(t, VariantType):
        return VariantType(tuple(over_leaves(a, change) for a in t.alternatives))
    return change(t)


def matches(declared: Type, found: Type) -> bool:
    """Return whether a value of type `found` may stand where `declared` is written: equal, or less is known of
    extents.
    """
    if declared == found:
        return True
    if isinstance(declared, TensorType) and isinstance(found, TensorType):
        return declared.dtype is found.dtype and declared.rank == found.rank
    if isinstance(declared, ScalarType) and isinstance(found, ScalarType):
        return declared.kind == found.kind and declared.extent is None
    if isinstance(declared, ListType) and isinstance(found, ListType):
        return matches(declared.element, found.element)
    if isinstance(declared, TupleType) and isinstance(found, TupleType):
        return len(declared.items) == len(found.items) and all(map(matches, declared.items, found.items))
    if isinstance(declared, VariantType) and isinstance(found, VariantType):
        return len(declared.alternatives) == len(found.alternatives) and all(
            map(matches, declared.alternatives, found.alternatives)
        )
    return False
