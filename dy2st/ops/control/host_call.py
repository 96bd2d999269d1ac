"""Calls of Python functions out of a Program: `host_call`, and `host_tangent`, which stands for its derivative.

A function gets NumPy arrays and gives some back. Its derivative is a function too, which takes cotangents: so
`host_tangent` is a linear op without a meaning of its own, whose transpose is a `host_call` of that function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.errors import AutodiffError
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import lookup
from dy2st.ir.program import Value
from dy2st.ir.types import TensorType
from dy2st.ops.core.base import Op, Sample
from dy2st.ops.core.elementwise_base import Tangents
from dy2st.records import record


@record(frozen=True, eq=False)
class Host:
    """A Python function that a Program calls, and the one that gives its cotangents."""

    function: Callable[..., Any]
    backward: Callable[..., Any] | None = None
    kept: tuple[int, ...] = ()
    """Which of the operands and results `backward` gets, before the cotangents of the results."""

    def __repr__(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)


class HostCall(Op):
    """What a Python function gives for arrays, as tensors of these `types`."""

    name = "host_call"
    attributes = ("host", "types")
    effect = True
    may_raise = True
    saveable = False
    fresh = True

    def infer(self, *operands: TensorType, host: Host, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        return types

    def eval(self, xp: Any, *operands: Any, host: Host, types: tuple[TensorType, ...]) -> Any:
        found = host.function(*(x.get() if hasattr(x, "get") else x for x in operands))
        listed: list[Any] = list(found) if isinstance(found, (list, tuple)) else [] if found is None else [found]  # pyright: ignore[reportUnknownArgumentType]
        if len(listed) != len(types):
            raise ValueError(f"{host!r} returned {len(listed)} arrays, {len(types)} were declared")
        return tuple(_checked(xp, host, i, x, t) for i, (x, t) in enumerate(zip(listed, types, strict=True)))

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *, host: Host, **_: Any) -> Any:  # fmt: skip
        if isinstance(host.function, _Chosen):
            raise AutodiffError(f"{host!r} has no second derivative: its backward function is Python")
        if host.backward is None:
            return [None] * len(outs)
        moving = tuple(i for i, t in enumerate(tangents) if t is not None)
        moves = [t for t in tangents if t is not None]
        types = tuple(v.type for v in outs)
        operands = [*moves, *primals, *outs]
        return b.operation(lookup("host_tangent"), operands, {"host": host, "moving": moving, "types": types}).results

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class HostTangent(Op):
    """The derivative of a `host_call` at tangents of the operands `moving`, unknown: it is transposed only."""

    name = "host_tangent"
    attributes = ("host", "moving", "types")
    may_raise = True
    saveable = False

    def infer(self, *operands: TensorType, host: Host, moving: tuple[int, ...],
              types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:  # fmt: skip
        return types

    def eval(self, xp: Any, *operands: Any, host: Host, moving: tuple[int, ...], types: tuple[TensorType, ...]) -> Any:
        raise AutodiffError(f"{host!r} has a derivative backwards only")

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *, host: Host, **_: Any) -> Any:  # fmt: skip
        raise AutodiffError(f"{host!r} has no second derivative: its backward function is Python")

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, host: Host, moving: tuple[int, ...], types: tuple[TensorType, ...]) -> Tangents:  # fmt: skip
        assert host.backward is not None
        values = operands[len(moving) :]
        inputs = values[: len(values) - len(types)]
        results = values[len(inputs) :]
        seeds = [b.zeros_like(out) if ct is None else ct for ct, out in zip(cts, results, strict=True)]
        given = [*(values[i] for i in host.kept), *seeds]
        chosen = Host(_Chosen(host.backward, len(inputs), moving))
        wanted = tuple(inputs[i].type for i in moving)
        found = b.operation(lookup("host_call"), given, {"host": chosen, "types": wanted}).results
        return [*found, *[None] * len(values)]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


@record(frozen=True, eq=False)
class _Chosen:
    """The backward function, of whose results those for some inputs are wanted."""

    backward: Callable[..., Any]
    count: int
    wanted: tuple[int, ...]

    @property
    def __name__(self) -> str:
        return repr(Host(self.backward))

    def __call__(self, *arrays: Any) -> list[Any]:
        found = self.backward(*arrays)
        listed: list[Any] = list(found) if isinstance(found, (list, tuple)) else [found]  # pyright: ignore[reportUnknownArgumentType]
        if len(listed) != self.count:
            raise ValueError(f"the backward function returned {len(listed)} gradients for {self.count} inputs")
        return [listed[i] for i in self.wanted]


def _checked(xp: Any, host: Host, place: int, x: Any, declared: TensorType) -> Any:
    """Return what a function gave as an array of the declared dtype; ValueError where its shape is another."""
    array = xp.asarray(np.array(x, declared.dtype.numpy))
    wanted = [e if isinstance(e, int) else -1 for e in declared.shape]
    if array.ndim != len(wanted) or any(w not in (-1, e) for w, e in zip(wanted, array.shape, strict=True)):
        raise ValueError(f"{host!r} returned an array of shape {list(array.shape)} at place {place}, not {wanted}")
    return array
