"""The base class of ops: one class says all there is to say of an op, and an incomplete one is refused when it is made.

An op has

- `infer`      the shape and dtype rule on types; an extent of None is one known only at run time
- `eval`       the meaning, on NumPy or CuPy arrays (`xp`), Python numbers and lists: for eager mode, the interpreter,
               constant folding and the tests. Tensors may come in shapes that NumPy would broadcast.
- a derivative, in one of four ways:
    `differentiable = False`               no tangent (comparisons, integers, random bits)
    `linear_in = (0, 1)` + `transpose`     linear in each of these operands on its own (mul, matmul, conv, reshape)
    `linear_together = (0, 1)` + `transpose`   linear in these operands together (concat, setitem)
    `jvp`                                  anything else; what it emits is differentiated in turn
- traits       what passes and backends ask of it (`ir/traits.py`)
- `samples`    operands and attributes on which the registry-driven tests check every rule

Reverse mode is derived: linearize (jvp), then transpose. An op may bring its own (`pull`) where that costs less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import CodeType
from typing import Any, ClassVar, cast

import numpy as np

from dy2st.dtypes import DType
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import OpDef, register
from dy2st.ir.program import Value
from dy2st.ir.types import ScalarType, TensorType
from dy2st.records import field, record
from dy2st.shapes import Extent


@record
class Sample:
    """Operands (arrays, Python numbers, lists) and attributes of one call, for tests."""

    operands: tuple[Any, ...]
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    differentiate: bool = True
    """False where the derivative does not exist at these operands (a tie, a kink)."""


class Op(OpDef):
    """One operation of the language: type rule, meaning, derivative, samples.

    Rules here end in `*_: Any, **attributes: Any`, so that an op's own rule may name its attributes as keywords.
    """

    linear_in: ClassVar[tuple[int, ...]] = ()
    linear_together: ClassVar[tuple[int, ...]] = ()
    variadic: ClassVar[bool] = False
    """The op takes any number of operands and is linear in all of them together."""
    abstract: ClassVar[bool] = False

    def __init_subclass__(cls, **keywords: Any):
        super().__init_subclass__(**keywords)
        if cls.__dict__.get("abstract"):
            return
        _refuse_incomplete(cls)
        register(cls())

    def linear_operands(self, count: int) -> Sequence[int]:
        """Return in which of so many operands the op is linear, in each alone or in all together."""
        return range(count) if self.variadic else (*self.linear_in, *self.linear_together)

    def eval(self, xp: Any, *operands: Any, **attributes: Any) -> Any:
        """Compute the result (a tuple where there are several) from arrays, numbers and lists."""
        raise TypeError(f"{self.name} has no meaning on arrays")

    def compile(self, xp: Any, **attributes: Any) -> Callable[..., Any]:
        """Return a function of the operands that does what `eval` does; a plan makes it once and calls it often."""
        return partial(self.eval, xp, **attributes)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Sequence[Value | None], outs: Sequence[Value],
            *_: Any, **attributes: Any) -> Any:  # fmt: skip
        """Emit the tangent(s) of the result(s). `tangents[i]` is None where it is zero; so may the answer be."""
        if self.linear_together:
            return self._together(b, primals, tangents, attributes)
        terms = [
            b.emit(self, [*primals[:i], tangents[i], *primals[i + 1 :]], attributes)  # type: ignore[list-item]
            for i in self.linear_in
            if tangents[i] is not None
        ]
        total = terms[0] if terms else None  # nothing flows through an op that has no derivative
        for term in terms[1:]:
            total = _sum(b, total, term)
        return total

    def _together(self, b: Builder, primals: Sequence[Value], tangents: Sequence[Value | None], attributes: Any) -> Any:
        operands = list(primals)
        for i in self.linear_together:
            tangent = tangents[i]
            operands[i] = tangent if tangent is not None else b.zeros_like(primals[i])
        return b.emit(self, operands, attributes)

    def transpose(self, b: Builder, cts: Sequence[Value | None], operands: Sequence[Value], linear: Sequence[bool],
                  *_: Any, **attributes: Any) -> Sequence[Value | None]:  # fmt: skip
        """Emit the cotangent of each linear operand (None for the others, or where it is zero).

        `cts` are the cotangents of the results. `operands[i]` where `linear[i]` has a type but no value: use
        `b.shape(operands[i])` for its run-time extents, never the value itself.
        """
        raise TypeError(f"{self.name} has no transpose rule")

    def pull(self, b: Builder, operands: Sequence[Value], cts: Sequence[Value | None], wanted: Sequence[bool],
             *_: Any, **attributes: Any) -> Sequence[Value | None] | None:  # fmt: skip
        """Emit the cotangents of operands from those of the results at once; None: derive them from `jvp`.

        For an op whose reverse is measured to cost less than what is derived. `wanted[i]` says whether operand i has a
        cotangent at all.
        """
        return None

    def makes_view(self, *_: Any, **attributes: Any) -> bool:
        """Return whether a call with these attributes gives a view of the first operand."""
        return self.is_view

    def unview(self, b: Builder, base: Value, new: Value, operands: Sequence[Value], *_: Any,
               **attributes: Any) -> Value:  # fmt: skip
        """Emit the version of `base` (the first operand) in which this view of it has the value `new`.

        `operands` are the operands of the view after the first.
        """
        raise TypeError(f"{self.name} gives no view")

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        """Yield operands on which the rules are tested."""
        return iter(())


class Elementwise(Op):
    """An op that works element by element on operands of one shape."""

    abstract = True
    elementwise = True
    native_in_eager = True
    result_dtype: ClassVar[DType | None] = None

    def infer(self, *types: TensorType, **attributes: Any) -> TensorType:
        first = types[0]
        for other in types[1:]:
            if other.shape != first.shape:
                raise ValueError(f"{self.name} needs operands of one shape, not {first} and {other}")
        return TensorType(self.result_dtype or first.dtype, first.shape)


def _sum(b: Builder, total: Any, term: Any) -> Any:
    if isinstance(total, list):
        return [b.add(p, q) for p, q in zip(cast("list[Value]", total), term, strict=True)]
    return b.add(total, term)


def fill(template: tuple[int | None, ...], dims: Sequence[int]) -> tuple[int, ...]:
    """Put run-time extents in the places of a shape template that are None."""
    rest = iter(dims)
    return tuple(next(rest) if e is None else e for e in template)


def fill_extents(template: tuple[int | None, ...], dims: Sequence[ScalarType]) -> tuple[Extent | None, ...]:
    """Put the extents that scalars are known to be in the places of a shape template that are None."""
    rest = iter(dims)
    return tuple(next(rest).extent if e is None else e for e in template)


def _refuse_incomplete(cls: type[Op]) -> None:
    missing: list[str] = []
    if not cls.name:
        missing.append("`name`")
    control = cls.blocks > 0 or cls.is_call
    if cls.infer is OpDef.infer and cls.infer_operation is OpDef.infer_operation:
        missing.append("`infer`, the shape and dtype rule")
    if cls.eval is Op.eval and not control:
        missing.append("`eval`, the meaning on arrays")
    linear = bool(cls.linear_in or cls.linear_together)
    if linear and cls.transpose is Op.transpose:
        missing.append("`transpose`, because it is linear")
    if cls.differentiable and not linear and cls.jvp is Op.jvp and not control:
        missing.append("a derivative: `jvp`, or `linear_in` with `transpose`, or `differentiable = False`")
    if cls.is_view and cls.unview is Op.unview:
        missing.append("`unview`, because it gives a view")
    if cls.samples is Op.samples and not control:
        missing.append("`samples` for the tests")
    for name in (*cls.attributes,):
        if not control and name not in _parameters(cls.eval):
            missing.append(f"the attribute {name!r} as a keyword of `eval`")
    if missing:
        raise TypeError(f"op class {cls.__name__} lacks {'; '.join(missing)}")


def _parameters(function: Callable[..., Any]) -> Sequence[str]:
    """Return the names of parameters, as `inspect.signature` does in thirty times the time."""
    code: CodeType = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
