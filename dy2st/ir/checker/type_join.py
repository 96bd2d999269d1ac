"""Types of which one holds the values of two others, and extents that are known and not known.

An extent of None is one that nothing tells. In a list it stays: each element may have another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from dy2st.ir.types import ListType, ScalarType, TensorType, TupleType, Type, VariantType
from dy2st.shapes import Dim, Extent

Known = Extent | None
_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_NAMES = re.compile(r"[A-Za-z_][\w.]*(?!\w*\()")
_CALLS = re.compile(r"[A-Za-z_]\w*(?=\()")


def plain_name(extent: Known) -> str | None:
    """Return the name of an extent that is one symbol, None for any other: `floordiv(N, 2)` names no extent."""
    if not isinstance(extent, Dim) or not extent.is_symbol:
        return None
    name = extent.terms[0][0][0]
    return name if _NAME.match(name) else None


def names_in(extent: Known) -> set[str]:
    """Return the symbols that an extent is made of, also those inside of `bcast(...)` and `floordiv(...)`.

    >>> from dy2st.shapes import symbol
    >>> sorted(names_in(symbol("N") * 2 + symbol("M") // 3))
    ['M', 'N']
    """
    if not isinstance(extent, Dim):
        return set()
    atoms = {atom for monomial, _ in extent.terms for atom in monomial}
    return {name for atom in atoms for name in _NAMES.findall(_CALLS.sub("", atom))}


def at_least_zero(extent: Known) -> bool:
    """Return whether an extent can be proved to be no negative number: symbols stand for extents of tensors."""
    if isinstance(extent, Dim):
        return all(coefficient > 0 for _, coefficient in extent.terms)
    return extent is not None and extent >= 0


def same_kind(a: Type, b: Type) -> bool:
    """Return whether two types differ in extents at most, so that their values are laid out alike."""
    if a is b:
        return True
    if isinstance(a, TensorType):
        return isinstance(b, TensorType) and a.dtype is b.dtype and len(a.shape) == len(b.shape)
    if isinstance(a, ScalarType):
        return isinstance(b, ScalarType) and a.kind == b.kind
    if isinstance(a, ListType):
        return isinstance(b, ListType) and same_kind(a.element, b.element)
    if type(a) is not type(b):
        return False
    inner, other = parts(a), parts(b)
    if not inner and not other:
        return a == b
    return len(inner) == len(other) and all(map(same_kind, inner, other))


def join(a: Type, b: Type) -> Type:
    """Return the type of what is of one type or the other; they are of one kind."""
    if a == b:
        return a
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return TensorType(a.dtype, tuple(p if p == q else None for p, q in zip(a.shape, b.shape, strict=True)))  # type: ignore[misc]
    if isinstance(a, ScalarType):
        return ScalarType(a.kind)
    return with_parts(a, tuple(map(join, parts(a), parts(b))))


def parts(t: Type) -> tuple[Type, ...]:
    """Return the types inside of a list, a tuple or a variant."""
    if isinstance(t, ListType):
        return (t.element,)
    return t.items if isinstance(t, TupleType) else t.alternatives if isinstance(t, VariantType) else ()


def with_parts(t: Type, inner: tuple[Type, ...]) -> Type:
    """Return a list, a tuple or a variant with other types inside."""
    if isinstance(t, ListType):
        return ListType(inner[0])
    if isinstance(t, TupleType):
        return TupleType(inner)
    return VariantType(inner) if isinstance(t, VariantType) else t


def changed(t: Type, extent: Callable[[Known], Known]) -> Type:
    """Return a type with `extent` done to each of its extents."""
    if isinstance(t, TensorType):
        shape = tuple(map(extent, t.shape))
        return t if shape == t.shape else TensorType(t.dtype, shape)  # type: ignore[arg-type]
    if isinstance(t, ScalarType):
        known = extent(t.extent)
        return t if known == t.extent else ScalarType(t.kind, known)
    return with_parts(t, tuple(changed(part, extent) for part in parts(t))) if parts(t) else t


def extents_of(t: Type) -> Iterator[Known]:
    """Yield the extents of a type, those of tensors and numbers inside of it too."""
    if isinstance(t, TensorType):
        yield from t.shape
    elif isinstance(t, ScalarType):
        yield t.extent
    for part in parts(t):
        yield from extents_of(part)
