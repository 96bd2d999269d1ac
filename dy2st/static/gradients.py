"""`append_backward` and `gradients`: derivatives as operations of the hand-built Program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dy2st.autodiff.reverse import Cotangents, accumulate
from dy2st.ir.context import current
from dy2st.ir.program import Value
from dy2st.ir.types import is_optional
from dy2st.runtime.eager.parameter import Parameter
from dy2st.runtime.eager.tensor import Tensor

if TYPE_CHECKING:
    from dy2st.static.recorder import ProgramRecorder

Pairs = list[tuple[Tensor, Tensor]]


def recorder_now(what: str) -> ProgramRecorder:
    """Return the recorder of the Program that is being built; RuntimeError outside of static mode."""
    trace = current().trace
    if trace is None or not hasattr(trace, "feeds"):
        raise RuntimeError(f"{what} builds a Program by hand: call paddle.enable_static() first")
    return trace


def append_backward(recorder: ProgramRecorder, loss: Tensor, parameters: Any = None, no_grad_set: Any = None) -> Pairs:
    """Append the gradients of a loss at parameters, named `<parameter>@GRAD`; return the pairs.

    A parameter that the loss does not depend on has no pair. The gradient of one that only an untaken branch used is
    zero when the Program runs; `recorder.optional_grads` says then that it was not there.
    """
    if not isinstance(loss, Tensor):
        raise TypeError(f"append_backward needs the loss, a variable, not {type(loss).__name__}")
    value = recorder.value_of(loss)
    known = [e for e in value.type.shape if isinstance(e, int)]  # type: ignore[union-attr]
    if any(e != 1 for e in known):
        raise ValueError(f"the loss must have one element, not the shape {list(value.type.shape)}")  # type: ignore[union-attr]
    chosen = _chosen(recorder, parameters)
    stop = {recorder.value_of(t) for t in named(recorder, no_grad_set, "no_grad_set")}
    chosen = [p for p in chosen if recorder.value_of(p) not in stop]
    b = recorder.builder
    cts: Cotangents = {b.use(value): b.emit("ones_like", [value])}
    entering = [_entry(recorder, p) for p in chosen]
    latest = [recorder.value_of(p) for p in chosen]
    pulled = recorder.pull(cts, [*entering, *latest], stop)
    pairs: Pairs = []
    for i, p in enumerate(chosen):
        ct = _both(recorder, pulled[i], pulled[len(chosen) + i] if latest[i] is not entering[i] else None)
        if ct is None:
            continue
        recorder.optional_grads[id(p)] = ct if is_optional(ct.type) else None
        grad = recorder.wrap(recorder._dense(ct, latest[i]))
        grad.name = f"{p.name}@GRAD"
        pairs.append((p, grad))
    return pairs


def _both(recorder: ProgramRecorder, first: Value | None, second: Value | None) -> Value | None:
    if first is None or second is None:
        return second if first is None else first
    return accumulate(recorder.builder, first, second)


def _entry(recorder: ProgramRecorder, p: Tensor) -> Value:
    state = recorder.state_of(p)
    return recorder.value_of(p) if state is None else state.value


def _chosen(recorder: ProgramRecorder, parameters: Any) -> list[Tensor]:
    if parameters is None:
        found = [s.tensor for s in recorder.states.values()]
        return [t for t in found if not t.stop_gradient and (isinstance(t, Parameter) or t.is_leaf)]
    return [t for t in named(recorder, parameters, "parameter_list") if not t.stop_gradient]


def named(recorder: ProgramRecorder, given: Any, what: str) -> list[Tensor]:
    """Return variables given as themselves or by name."""
    if given is None:
        return []
    if isinstance(given, (str, Tensor)):
        given = [given]
    if not isinstance(given, Iterable):
        raise TypeError(f"{what} is a list of variables or names, not {type(given).__name__}")
    found: list[Tensor] = []
    for t in given:
        if isinstance(t, str):
            if t not in recorder.named:
                raise ValueError(f"{what}: the Program has no variable named {t!r}")
            t = recorder.named[t]
        if not isinstance(t, Tensor):
            raise TypeError(f"{what} is a list of variables or names, but has a {type(t).__name__}")
        found.append(t)
    return found


def gradients(
    recorder: ProgramRecorder, targets: Any, inputs: Any, target_gradients: Any = None, no_grad_set: Any = None
) -> list[Tensor | None]:
    """Append the gradients of the sum of `targets` at `inputs`; None for an input that they do not depend on."""
    outs, ins = _variables(targets, "targets"), _variables(inputs, "inputs")
    seeds: list[Any] = [None] * len(outs)
    if target_gradients is not None:
        seeds = list(target_gradients) if isinstance(target_gradients, (list, tuple)) else [target_gradients]
        if len(seeds) != len(outs):
            raise ValueError(f"{len(seeds)} target_gradients were given for {len(outs)} targets")
    for out, seed in zip(outs, seeds, strict=True):
        if seed is not None and seed.ndim != out.ndim:
            raise ValueError(f"the target gradient of {out.name} has {seed.ndim} axes, the target has {out.ndim}")
    found = recorder.grad(outs, ins, seeds, named(recorder, no_grad_set, "no_grad_set"))
    for x, g in zip(ins, found, strict=True):
        if g is not None:
            g.name = f"{x.name}@GRAD"
    return found


def _variables(given: Any, what: str) -> list[Tensor]:
    listed: Sequence[Any] = given if isinstance(given, (list, tuple)) else [given]
    for t in listed:
        if not isinstance(t, Tensor):
            raise TypeError(f"gradients: {what} are variables, not {type(t).__name__}")
    return list(listed)
