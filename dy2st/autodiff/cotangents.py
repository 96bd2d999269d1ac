"""What cotangents look like, and how they are added, brought to one type, and left out.

The cotangent of a value of type T has the type `tangent_type(T)`. Where it may be missing at run time (what only an
untaken branch used) that of a tensor is an optional; lists, tuples and variants can say inside of themselves what is
missing, so theirs never are. While building, None stands for a cotangent that is certainly missing.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.errors import AutodiffError
from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import (
    ListType,
    TensorType,
    TupleType,
    Type,
    VariantType,
    is_optional,
    optional,
    tangent_type,
)
from dy2st.ops.core.transpose_helpers import zeros_of

Cotangents = dict[Value, Value]
KNOWN = "a cotangent that is known to be there was not"
"""The message of reads of optionals that cannot fail, because they stand where the optional is known to be set."""


def may_miss(ct: Value | None, like: Value) -> bool:
    """Return whether a cotangent of `like` is an optional one that the rules of ops do not take as it is."""
    return ct is not None and isinstance(ct.type, VariantType) and not isinstance(like.type, VariantType)


def accumulate(b: Builder, so_far: Value | None, ct: Value) -> Value:
    """Emit the sum of two cotangents of any form."""
    if so_far is None:
        return ct
    if isinstance(ct.type, TensorType) and so_far.type == ct.type:
        return b.emit("add", [so_far, ct])
    return b.emit("optional_add", [so_far, ct])


def conform(b: Builder, ct: Value, like: Value, fresh: bool = False) -> Value:
    """Give a cotangent the type that belongs to `like`.

    Its extents are those of `like` whenever the program runs, but what made it may not know that. What just came out
    of control flow (`fresh`) has symbols that nobody has seen yet; it gets the right ones for nothing. Anything else is
    reshaped. An optional is left alone: its payload conforms where it is read.
    """
    want = tangent_type(like.type)
    if ct.type == want:
        return ct
    if isinstance(want, VariantType) and not isinstance(ct.type, VariantType):
        return b.emit("variant_new", [ct], {"type": want, "tag": 1})
    if not isinstance(want, TensorType):
        loose = may_miss(ct, like)
        return b.emit("variant_or_zeros", [ct, missing(b, want)], {"tag": 1}) if loose else ct
    if not isinstance(ct.type, TensorType):
        return ct
    if fresh and ct.block is b.block:
        b.retype(ct, want)
        return ct
    return b.shaped("reshape", [ct], b.shape(like))


def enter(side: Builder, ct: Value, like: Value) -> Value:
    """Return a cotangent from outside as a block sees it that is still being built, in the type that `like` wants."""
    want = tangent_type(like.type)
    if ct.type == want or not isinstance(ct.type, TensorType) or side.holds(ct):
        return conform(side, side.use(ct), like)
    return side.capture(ct, want)


def payload_of(b: Builder, ct: Value, like: Value) -> Value:
    """Emit the payload of an optional cotangent that is known to be set."""
    return conform(b, b.emit("variant_get", [ct], {"tag": 1, "message": KNOWN}), like)


def as_optional(b: Builder, ct: Value | None, of: Type) -> Value:
    """Emit a cotangent as an optional (or another variant) of type `of`; None is unset."""
    if ct is None:
        return b.emit("variant_new", [], {"type": of, "tag": 0})
    return b.use(ct) if isinstance(ct.type, VariantType) else b.emit("variant_new", [ct], {"type": of, "tag": 1})


def missing(b: Builder, of: Type) -> Value:
    """Emit the cotangent of type `of` (not a tensor) in which nothing is there."""
    if isinstance(of, ListType):
        return b.emit("list_new", [], {"type": of})
    if isinstance(of, TupleType):
        return b.emit("tuple_of_tangents", [missing(b, item) for item in of.items])
    if isinstance(of, VariantType):
        return as_optional(b, None, of)
    raise AutodiffError(f"a cotangent of type {of} cannot be missing")


def dense_or_zeros(b: Builder, ct: Value, like: Value) -> Value:
    """Emit an optional cotangent of a tensor as a dense one."""
    return b.emit("variant_or_zeros", [ct, zeros_of(b, like)], {"tag": 1})


def align(then: Builder, other: Builder, left: Value | None, right: Value | None, like: Type) -> tuple[Value, Value]:
    """Bring the cotangents of two branches to one type: dense where both are, else with one of them missing."""
    want = tangent_type(like)
    if isinstance(want, TensorType):
        if left is not None and right is not None and is_optional(left.type) == is_optional(right.type):
            return then.use(left), other.use(right)
        of = optional(want)
        return as_optional(then, left, of), as_optional(other, right, of)
    return (
        then.use(left) if left is not None else missing(then, want),
        other.use(right) if right is not None else missing(other, want),
    )


def branch_on(
    b: Builder,
    predicate: Value,
    then: Builder,
    other: Builder,
    left: Sequence[Value | None],
    right: Sequence[Value | None],
    likes: Sequence[Type],
) -> list[Value | None]:
    """Emit `cond` over two finished branches of cotangents of values of types `likes`."""
    kept = [i for i, pair in enumerate(zip(left, right, strict=True)) if pair != (None, None)]
    for i in kept:
        ours, theirs = align(then, other, left[i], right[i], likes[i])
        then.block.results.append(ours)
        other.block.results.append(theirs)
    results = close_cond(b, predicate, then, other)
    found: list[Value | None] = [None] * len(left)
    for i, value in zip(kept, results, strict=True):
        found[i] = value
    return found


def close_cond(
    b: Builder, predicate: Value, then: Builder, other: Builder, *, given: Sequence[Value] = ()
) -> list[Value]:
    """Emit `cond` over two child builders: both blocks get the union of what either captured, in one order.

    Their first arguments are what is `given`.
    """
    outer = list(dict.fromkeys([*then.captures, *other.captures]))
    for child in (then, other):
        for value in outer:
            child.use(value)
        child.block.arguments[:] = [*child.block.arguments[: len(given)], *(child.captures[v] for v in outer)]
    return b.operation("cond", [predicate, *given, *outer], {}, [then.block, other.block]).results


def set_flag(b: Builder, ct: Value) -> Value:
    """Emit the bool that says whether an optional is set."""
    return b.scalar_eq(b.variant_tag(ct), 1)
