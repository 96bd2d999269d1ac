"""A PyLayer inside of a Program: forward is recorded in line, backward as the VJP of what it returns.

Backward is traced at once, with arguments in place of the gradients that it will get; so is the layer's own `jvp`, for
forward mode, which is otherwise the transpose of backward. They must be the operations that they record and nothing
besides: what branches on the run, prints, draws random numbers, or changes something, makes the function that calls the
PyLayer run eagerly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dy2st.autodiff.custom import transposed
from dy2st.autograd.rules import callable_here, tensors_among
from dy2st.errors import Dy2stError, NeedsPythonValue, TraceError
from dy2st.functions.shape.creation import zeros_like
from dy2st.ir.builder import Builder
from dy2st.ir.context import current, replaced
from dy2st.ir.location import error_here
from dy2st.ir.printer import to_text
from dy2st.ir.program import Block, Program, Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.ops.control.custom_vjp import is_arithmetic
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.effects.trace import Trace


def apply_in_trace(layer: Any, ctx: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Record a call of a PyLayer; raise NeedsPythonValue where its backward cannot be part of a Program."""
    trace = current().trace
    inputs = tensors_among((*args, *kwargs.values()))
    recorded = current().grad and any(not trace.stops(t) for t in inputs)
    with replaced(grad=False):
        out = callable_here(layer.forward)(ctx, *args, **kwargs)
    outs = [out] if isinstance(out, Tensor) else list(out)
    if recorded and any(isinstance(t, Tensor) for t in outs):
        outs = _attached(trace, layer, ctx, inputs, outs)
    _forget(trace, ctx)
    return outs[0] if isinstance(out, Tensor) else type(out)(outs)


def _attached(trace: Trace, layer: Any, ctx: Any, inputs: Sequence[Tensor], outs: list[Any]) -> list[Any]:
    """Return what forward returned with the VJP that backward is."""
    live = [i for i, t in enumerate(outs) if _has_gradient(t) and id(t) not in ctx._constant]
    if not live:
        return outs
    if not ctx._materialize:
        raise refused(layer, "it asks for None in place of gradients that are zero")
    b = trace.builder
    child = b.child()
    cts = {i: trace.wrap(child.argument(trace.value_of(outs[i]).type, "ct")) for i in live}
    shown = [(t, cts.get(i)) for i, t in enumerate(outs) if isinstance(t, Tensor)]
    gradients = _traced(trace, layer, ctx, child, shown)
    if len(gradients) != len(inputs):
        raise refused(layer, f"it gives {len(gradients)} gradients for {len(inputs)} tensors")
    wanted: list[tuple[Tensor, Value]] = []
    for x, g in zip(inputs, gradients, strict=True):
        if g is None or trace.stops(x):
            continue
        wanted.append((x, _fitted(layer, child, g, trace.value_of(x))))
    child.block.results = [g for _, g in wanted]
    pushed = _pushforward(trace, layer, ctx, inputs, [x for x, _ in wanted], outs, live)
    both = [one for one in (child, pushed) if one is not None]
    raw: list[Value] = []
    for i in live:
        value = trace.value_of(outs[i])
        raw.append(value if value not in raw else trace.detached(value))
    captures = [v for v in dict.fromkeys(v for one in both for v in one.captures) if v not in raw]
    for one, seeds in zip(both, (len(live), len(wanted)), strict=False):
        one.block.arguments[:] = [*one.block.arguments[:seeds], *(one.use(v) for v in (*raw, *captures))]
        for operation in one.block.operations:
            if not is_arithmetic(operation):
                raise refused(layer, f"it does more than arithmetic ('{operation.name}')")
    forward = _transposed(child.block, len(live)) if pushed is None else Program({"main": pushed.block})
    operands = [*map(trace.detached, raw), *(trace.value_of(x) for x, _ in wanted), *captures]
    programs = (Program({"main": child.block}), forward)
    texts = ["" if one is None else to_text(one, locations=False) for one in programs]
    attributes = {"inputs": len(wanted), "pullback": texts[0], "pushforward": texts[1], "values": len(live)}
    made = b.operation("with_gradient", operands, {**attributes, "whose": layer.__name__}).results
    found = list(outs)
    for i, value in zip(live, made, strict=True):
        found[i] = trace.wrap(value, not wanted)
    return found


def _transposed(pullback: Block, seeds: int) -> Program | None:
    """Return the transpose of a VJP; None where it needs extents that only its gradients tell."""
    try:
        return transposed(pullback, seeds)
    except TraceError:
        return None


def _pushforward(
    trace: Trace, layer: Any, ctx: Any, inputs: Sequence[Tensor], moving: Sequence[Tensor], outs: Sequence[Any],
    live: Sequence[int],
) -> Builder | None:  # fmt: skip
    """Trace the layer's own `jvp`, of tangents of the inputs that are `moving`; None where it has none."""
    if not has_jvp(layer):
        return None
    child = trace.builder.child()
    places = {id(x): trace.wrap(child.argument(trace.value_of(x).type, "tangent")) for x in moving}
    with trace.inside(child, {}):
        given = [places[id(x)] if id(x) in places else zeros_like(x) for x in inputs]
    tangents = _recorded(trace, layer, child, lambda: callable_here(layer.jvp)(ctx, *given))
    tensors = [i for i, t in enumerate(outs) if isinstance(t, Tensor)]
    if len(tangents) != len(tensors):
        raise refused(layer, f"its jvp gives {len(tangents)} tangents for {len(tensors)} tensors")
    for i, tangent in zip(tensors, tangents, strict=True):
        if i in live:
            child.block.results.append(_fitted(layer, child, tangent, trace.value_of(outs[i])))
    return child


def _traced(trace: Trace, layer: Any, ctx: Any, child: Any, outs: Sequence[tuple[Tensor, Tensor | None]]) -> list[Any]:
    """Trace backward into a block of its own; return what it returns, values where tensors are."""
    with trace.inside(child, {}):
        given = [zeros_like(t) if ct is None else ct for t, ct in outs]
    return _recorded(trace, layer, child, lambda: callable_here(layer.backward)(ctx, *given))


def _recorded(trace: Trace, layer: Any, child: Any, call: Callable[[], Any]) -> list[Any]:
    """Record a call into a block; return what it returns, values where tensors are."""
    writes: dict[Any, Any] = {}
    known = set(trace.made.objects)
    with trace.inside(child, writes):
        try:
            found = call()
        except Dy2stError:
            raise
        except Exception as error:  # eager raises it when derivatives are computed, if ever
            raise refused(layer, f"it raises {type(error).__name__}: {error}") from error
        listed = list(found) if isinstance(found, (list, tuple)) else [found]
        own = trace.made.objects.keys() - known  # what it made for itself, as a generator does
        if any(len(key) < 2 or key[1] not in own for key in writes):
            raise refused(layer, "it changes something besides computing gradients")
        return [trace.value_of(g) if isinstance(g, Tensor) else g for g in listed]


def _fitted(layer: Any, child: Builder, g: Any, like: Value) -> Value:
    """Return a gradient in the type of its tensor; extents that may differ are compared when it is computed."""
    want = tensor_type(like)
    found = g.type if isinstance(g, Value) else None
    fits = isinstance(found, TensorType) and found.dtype is want.dtype and found.rank == want.rank
    pairs = list(zip(found.shape, want.shape, strict=True)) if fits and isinstance(found, TensorType) else []
    if not fits or any(isinstance(p, int) and isinstance(q, int) and p != q for p, q in pairs):
        raise refused(layer, f"it gives {type(g).__name__ if found is None else found} for a {want}")
    value = child.use(g)
    if found == want:
        return value
    extents = child.shape(want)
    for here, there, (p, q) in zip(child.shape(value), extents, pairs, strict=True):
        if p != q:
            same = child.scalar_eq(here, there)
            child.emit("assert", [same], {"template": (f"{layer.__name__}.backward: a gradient has another shape",)})
    return child.shaped("reshape", [value], extents)


def _has_gradient(t: Any) -> bool:
    return isinstance(t, Tensor) and t.dtype.is_differentiable


def _forget(trace: Trace, ctx: Any) -> None:
    """Drop what was written to the context, which nobody sees from here on."""
    overlay = trace.log.overlays[-1]
    for key in [key for key in overlay if key[0] == "attr" and key[1] == id(ctx)]:
        del overlay[key]


def has_jvp(layer: Any) -> bool:
    """Return whether a PyLayer has a forward derivative of its own, a static method `jvp(ctx, *tangents)`."""
    return callable(getattr(layer, "jvp", None))


def refused(layer: Any, why: str) -> NeedsPythonValue:
    """Return the error for a backward that cannot be part of a Program."""
    return error_here(
        NeedsPythonValue, f"the PyLayer {layer.__name__} was called; its backward cannot be part of a Program: {why}"
    )
