"""What the derivatives of functions share: checked arguments, inputs of their own, pulls and pushes in either mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dy2st.functions.core.assigning import assign
from dy2st.functions.shape.creation import ones_like, zeros_like
from dy2st.ir.context import current, replaced
from dy2st.runtime.autograd_engine import forward_mode
from dy2st.runtime.autograd_engine.backward import grad
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.builtins.calls import callable_for


def tensors_among(given: Sequence[Any]) -> list[Tensor]:
    """Return the tensors among arguments, those in lists and tuples too, in their order."""
    found: list[Tensor] = []
    for one in given:
        if isinstance(one, Tensor):
            found.append(one)
        elif isinstance(one, (list, tuple)):
            found += tensors_among(one)
    return found


def as_tensors(given: Any, what: str) -> list[Tensor]:
    """Return tensors given as one or as a sequence; TypeError for anything else."""
    if isinstance(given, Tensor):
        return [given]
    if not isinstance(given, (list, tuple)):
        raise TypeError(f"{what} must be a Tensor or a sequence of Tensors, not {type(given).__name__}")
    for t in given:
        if not isinstance(t, Tensor):
            raise TypeError(f"{what} must have Tensors only, but has a {type(t).__name__}")
    if not given:
        raise ValueError(f"{what} must not be empty")
    return list(given)


def outputs_of(out: Any, what: str) -> list[Tensor]:
    """Return what a function gave as a list of tensors."""
    return as_tensors(out, f"{what}: what the function returns")


def check_like(seed: Any, like: Tensor, what: str) -> None:
    """Refuse a seed whose shape or dtype is not that of its tensor."""
    if not isinstance(seed, Tensor):
        raise TypeError(f"{what} must have Tensors only, but has a {type(seed).__name__}")
    ours, theirs = list(seed.shape), list(like.shape)
    fits = len(ours) == len(theirs) and all(
        a == b for a, b in zip(ours, theirs, strict=True) if isinstance(a, int) and isinstance(b, int)
    )
    if not fits:
        raise ValueError(f"{what} has shape {_shown(ours)}, but the tensor that it belongs to {_shown(theirs)}")
    if seed.dtype is not like.dtype:
        raise ValueError(f"{what} is {seed.dtype.name}, but the tensor that it belongs to {like.dtype.name}")


def callable_here(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return what to call in place of a user's function: in a trace, the function with its control flow converted."""
    trace = current().trace
    return func if trace is None or not trace.of_function else callable_for(trace, func)


def fresh(xs: Sequence[Tensor]) -> list[Tensor]:
    """Return tensors of the same elements that need gradients; what `xs` depend on can still be differentiated."""
    made: list[Tensor] = []
    for x in xs:
        if not x.dtype.is_differentiable:
            raise TypeError(f"there are no derivatives with respect to a tensor of dtype {x.dtype.name}")
        with replaced(grad=True):
            copy = assign(x)
        copy.stop_gradient = False
        made.append(copy)
    return made


def pull(outs: Sequence[Tensor], ins: Sequence[Tensor], seeds: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Return the gradients of `outs` at `ins`, to be differentiated again; None where there is none."""
    trace = current().trace
    if trace is not None:
        return trace.grad(outs, ins, seeds, ())
    return grad(list(outs), list(ins), list(seeds), retain_graph=True, create_graph=True, allow_unused=True)


def dense(ct: Tensor | None, like: Tensor) -> Tensor:
    """Return a derivative, zeros where there is none."""
    return zeros_like(like) if ct is None else ct


def tangents_or_zeros(outs: Sequence[Tensor], ins: Sequence[Tensor], given: Sequence[Tensor | None]) -> list[Tensor]:
    """Return the tangents of `outs` when `ins` have those `given` (ones where None)."""
    seeds = [ones_like(x) if t is None else t for x, t in zip(ins, given, strict=True)]
    return [dense(t, out) for t, out in zip(forward_mode.push(outs, ins, seeds), outs, strict=True)]


def _shown(shape: list[Any]) -> list[int]:
    return [e if isinstance(e, int) else -1 for e in shape]
