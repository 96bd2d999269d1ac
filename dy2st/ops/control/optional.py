"""Variants and optionals: values that are there or not, or that are one of several things.

At run time a variant is the pair (tag, payload); alternative 0 of every variant is `unset`. An optional is the variant
`unset | T`; cotangents of what did not run are optionals, so that it gets no gradient rather than zeros.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import (
    INT,
    UNSET,
    ConstType,
    TensorType,
    Type,
    UnsetType,
    VariantType,
    is_optional,
    matches,
    payload,
    tangent_type,
)
from dy2st.ops.control.control_flow import join
from dy2st.ops.core.base import Op, Sample
from dy2st.ops.core.bundle import Bundle


class VariantNew(Op):
    """A variant of `type` whose alternative number `tag` is the operand (no operand for unset and constants)."""

    name = "variant_new"
    rewraps = True
    attributes = ("type", "tag")
    linear_in = (0,)

    def infer(self, *value: Type, type: VariantType, tag: int) -> Type:
        if not 0 <= tag < len(type.alternatives):
            raise ValueError(f"variant_new: there is no alternative {tag} of {type}")
        wanted = type.alternatives[tag]
        given = () if isinstance(wanted, (UnsetType, ConstType)) else (wanted,)
        if len(value) != len(given) or not all(map(matches, given, value)):
            shown = ", ".join(map(str, value)) or "nothing"
            raise TypeError(f"variant_new: alternative {tag} of {type} is not made of {shown}")
        return type

    def eval(self, xp: Any, *value: Any, type: VariantType, tag: int) -> Any:
        return (tag, value[0] if value else None)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Sequence[Value | None], outs: Sequence[Value],
            *, type: VariantType, tag: int) -> Any:  # fmt: skip
        return b.emit("variant_new", [tangents[0]], {"type": tangent_type(type), "tag": tag})  # type: ignore[list-item]

    def transpose(self, b: Builder, cts: Sequence[Value | None], operands: Sequence[Value], linear: Sequence[bool],
                  *, type: VariantType, tag: int) -> Sequence[Value | None]:  # fmt: skip
        return [cts[0]] if is_optional(type) else [b.variant_ct(cts[0], tag=tag)]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class VariantTag(Op):
    """The run-time tag of a variant: the index of its alternative."""

    name = "variant_tag"
    tells_structure = True
    differentiable = False

    def infer(self, variant: VariantType) -> Type:
        return INT

    def eval(self, xp: Any, variant: Any) -> int:
        return variant[0]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class VariantGet(Op):
    """The payload of a variant whose tag must be `tag`; `message` is what UnboundLocalError says when it is not."""

    name = "variant_get"
    raises = (UnboundLocalError,)
    rewraps = True
    attributes = ("tag", "message")
    may_raise = True
    linear_in = (0,)

    def infer(self, variant: VariantType, *, tag: int, message: str) -> Type:
        found = variant.alternatives[tag]
        if isinstance(found, (UnsetType, ConstType)):
            raise TypeError(f"alternative {tag} of {variant} has no payload")
        return found

    def eval(self, xp: Any, variant: Any, *, tag: int, message: str) -> Any:
        if variant[0] != tag:
            raise UnboundLocalError(message)
        return variant[1]

    def unview(self, b: Builder, base: Value, new: Value, operands: Sequence[Value],
               *, tag: int, message: str) -> Value:  # fmt: skip
        """Return the variant with another payload."""
        return b.emit("variant_new", [new], {"type": base.type, "tag": tag})

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Sequence[Value | None], outs: Sequence[Value],
            *, tag: int, message: str) -> Any:  # fmt: skip
        return b.variant_or_zeros(tangents[0], outs[0], tag=tag)

    def transpose(self, b: Builder, cts: Sequence[Value | None], operands: Sequence[Value], linear: Sequence[bool],
                  *, tag: int, message: str) -> Sequence[Value | None]:  # fmt: skip
        return [b.emit("variant_new", [cts[0]], {"type": operands[0].type, "tag": tag})]  # type: ignore[list-item]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class VariantOrZeros(Op):
    """The payload under `tag` of a variant tangent, zeros shaped as `like` when it is another or not there."""

    name = "variant_or_zeros"
    attributes = ("tag",)
    linear_in = (0,)

    def infer(self, variant: VariantType, like: Type, *, tag: int) -> Type:
        made = tangent_type(like)
        return made if isinstance(made, TensorType) else join(made, variant.alternatives[tag])

    def eval(self, xp: Any, variant: Any, like: Any, *, tag: int) -> Any:
        if variant[0] == tag:
            if isinstance(like, xp.ndarray) and variant[1].shape != like.shape:
                raise ValueError(f"a derivative of shape {variant[1].shape} for a tensor of shape {like.shape}")
            return variant[1]
        if isinstance(like, Bundle):
            return Bundle([(0, None)] * len(like.items))
        return ([(0, None)] * len(cast("list[Any]", like))) if isinstance(like, list) else xp.zeros_like(like)

    def transpose(self, b: Builder, cts: Sequence[Value | None], operands: Sequence[Value], linear: Sequence[bool],
                  *, tag: int) -> Sequence[Value | None]:  # fmt: skip
        return [b.emit("variant_new", [cts[0]], {"type": operands[0].type, "tag": tag}), None]  # type: ignore[list-item]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class VariantCotangent(Op):
    """The optional payload of a variant cotangent: there when its tag is `tag`, else unset."""

    name = "variant_ct"
    rewraps = True
    attributes = ("tag",)
    linear_in = (0,)

    def infer(self, variant: VariantType, *, tag: int) -> Type:
        found = variant.alternatives[tag]
        return VariantType((UNSET, found))

    def eval(self, xp: Any, variant: Any, *, tag: int) -> Any:
        return (1, variant[1]) if variant[0] == tag else (0, None)

    def transpose(self, b: Builder, cts: Sequence[Value | None], operands: Sequence[Value], linear: Sequence[bool],
                  *, tag: int) -> Sequence[Value | None]:  # fmt: skip
        return [b.variant_wrap(cts[0], type=operands[0].type, tag=tag)]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class VariantWrap(Op):
    """An optional as a wider variant of `type`: its payload becomes alternative `tag`, unset stays unset (0)."""

    name = "variant_wrap"
    rewraps = True
    attributes = ("type", "tag")
    linear_in = (0,)

    def infer(self, value: VariantType, *, type: VariantType, tag: int) -> Type:
        return type

    def eval(self, xp: Any, value: Any, *, type: VariantType, tag: int) -> Any:
        return (tag, value[1]) if value[0] == 1 else (0, None)

    def transpose(self, b: Builder, cts: Sequence[Value | None], operands: Sequence[Value], linear: Sequence[bool],
                  *, type: VariantType, tag: int) -> Sequence[Value | None]:  # fmt: skip
        return [b.variant_ct(cts[0], tag=tag)]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class VariantCast(Op):
    """A variant as a variant of `type`; alternative k becomes number `tags[k]`."""

    name = "variant_cast"
    rewraps = True
    attributes = ("type", "tags")
    linear_in = (0,)

    def infer(self, variant: VariantType, *, type: VariantType, tags: tuple[int, ...]) -> Type:
        return type

    def eval(self, xp: Any, variant: Any, *, type: VariantType, tags: tuple[int, ...]) -> Any:
        return (tags[variant[0]], variant[1])

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Sequence[Value | None], outs: Sequence[Value],
            *, type: VariantType, tags: tuple[int, ...]) -> Any:  # fmt: skip
        return b.variant_cast(tangents[0], type=tangent_type(type), tags=tags)

    def transpose(self, b: Builder, cts: Sequence[Value | None], operands: Sequence[Value], linear: Sequence[bool],
                  *, type: VariantType, tags: tuple[int, ...]) -> Sequence[Value | None]:  # fmt: skip
        back = [0] * len(type.alternatives)
        for old, new in enumerate(tags):
            if new:  # what the variant cannot be became unset
                back[new] = old
        return [b.emit("variant_cast", [cts[0]], {"type": operands[0].type, "tags": tuple(back)})]  # type: ignore[list-item]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class Unreachable(Op):
    """A value of `type` that no run reaches: the result of a branch that raises."""

    name = "unreachable"
    raises = ()
    attributes = ("type",)
    differentiable = False

    def infer(self, *, type: Type) -> Type:
        return type

    def eval(self, xp: Any, *, type: Type) -> Any:
        raise AssertionError("a value that no run reaches was computed")

    may_raise = True

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class OptionalAdd(Op):
    """The sum of two cotangents of which one or both may be unset; dense as soon as one operand is."""

    name = "optional_add"
    linear_together = (0, 1)

    def infer(self, a: Type, b: Type) -> Type:
        dense = b if is_optional(a) else a
        if is_optional(a) == is_optional(b):
            return join(a, b)
        return dense if isinstance(dense, TensorType) else join(dense, payload(a if dense is b else b))

    def eval(self, xp: Any, a: Any, b: Any) -> Any:
        return add_values(a, b)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Sequence[Value | None], outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        p, q = tangents
        if p is not None and q is not None:
            return b.optional_add(p, q)
        one = p if p is not None else q
        if is_optional(one.type) and not is_optional(outs[0].type):  # type: ignore[union-attr]
            return b.variant_or_zeros(one, outs[0], tag=1)
        return one

    def transpose(self, b: Builder, cts: Sequence[Value | None], operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Sequence[Value | None]:  # fmt: skip
        return [cts[0] if one else None for one in linear]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


def add_values(a: Any, b: Any) -> Any:
    """Add two run-time cotangents: arrays, optionals (pairs), lists and bundles of optionals."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        a, b = cast("tuple[Any, Any]", a), cast("tuple[Any, Any]", b)
        if a[0] == 0 or b[0] == 0:
            return b if a[0] == 0 else a
        if a[0] != b[0]:
            raise ValueError(f"derivatives of alternatives {a[0]} and {b[0]} cannot be added")
        return (a[0], add_values(a[1], b[1]))
    if isinstance(a, tuple):
        return b if a[0] == 0 else add_values(a[1], b)
    if isinstance(b, tuple):
        return a if b[0] == 0 else add_values(a, b[1])
    if isinstance(a, Bundle):
        return Bundle([add_values(p, q) for p, q in zip(a.items, b.items, strict=True)])
    if isinstance(a, list):
        longer, shorter = sorted((cast("list[Any]", a), cast("list[Any]", b)), key=len, reverse=True)
        return [add_values(p, q) for p, q in zip(longer, shorter, strict=False)] + longer[len(shorter) :]
    if a is None or isinstance(a, (int, float)):
        return a  # what has no derivative
    if a.shape != b.shape:
        raise ValueError(f"derivatives of shapes {a.shape} and {b.shape} cannot be added")
    return (a + b)[...]  # the index keeps a 0-D sum an array
