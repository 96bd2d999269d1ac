"""Gradients of tensors: `backward`, which sums into leaves, and `grad`, which returns them. Both walk the tape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np

from dy2st.ir.context import current
from dy2st.ir.opdef import lookup
from dy2st.ops.core.base import Op
from dy2st.runtime.autograd_engine.backward_pass import Walk, ones_of, seed_of
from dy2st.runtime.eager.device import namespace_of
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.inplace import own_gradient
from dy2st.runtime.eager.tape.node import Node
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.recording.inner_gradients import RecordedGradients
from dy2st.runtime.tracer.values.union import Variant

Place = tuple[Node, int]


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Any = None,
    retain_graph: bool = False,
    *,
    dump_backward_graph_path: None = None,
) -> None:
    """Sum the gradients of `tensors` into the `grad` of every leaf that needs one.

    `grad_tensors` are the cotangents to start from, of the tensors' shapes and dtypes; None stands for ones. The tape
    is freed unless `retain_graph`. Raises RuntimeError where a freed tape is walked again.
    """
    _refuse_dump(dump_backward_graph_path)
    outputs = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    trace = current().trace
    for out in outputs:
        if out.stop_gradient if trace is None else trace.stops(out):
            raise RuntimeError("backward() of a tensor that needs no gradient (its stop_gradient is True)")
    if trace is not None:
        average(trace.backward(outputs, _listed(grad_tensors, len(outputs))))
        if not retain_graph:
            trace.free(outputs)
        return
    sum_into_leaves(outputs, _listed(grad_tensors, len(outputs)), retain_graph)


def sum_into_leaves(
    outputs: Sequence[Tensor], seeds: Sequence[Tensor | None], keep: bool = False, until: Sequence[Place] = ()
) -> list[Any]:
    """Sum gradients into the `grad` of leaves; return the cotangents at the places `until`, behind which nothing goes.

    A place is a node and the number of its result. Nodes that were walked are freed unless `keep`.
    """
    walk = Walk(graph=False, keep=keep)
    walk.ends.update(until)
    walk.wanted.update(dict.fromkeys(until))
    for out, seed in zip(outputs, seeds, strict=True):
        if seed is None:
            walk.seed(out, ones_of(out), are_ones=True)
        else:
            walk.seed(out, _conjugate(seed_of(out, seed, graph=False)))
    walk.run()
    given: set[int] = set()
    for leaf, ct in walk.leaves.values():
        accumulate_leaf(leaf, _conjugate(ct), given)
    average(leaf for leaf, _ in walk.leaves.values())
    return [walk.wanted[place] for place in until]


def average(leaves: Iterable[Tensor]) -> None:
    """Average gradients over processes, where that is asked for: sums of such gradients too are averages."""
    for owner in dict.fromkeys(leaf.averaged_by for leaf in leaves if leaf.averaged_by is not None):
        owner.average_gradients()


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool = False,
    no_grad_vars: Any = None,
    *,
    dump_backward_graph_path: None = None,
) -> list[Tensor | None]:
    """Return the gradients of the sum of `outputs` with respect to `inputs`, a list.

    `grad_outputs` are the cotangents to start from (ones where None). With `create_graph` the gradients can be
    differentiated again. An input that the outputs do not depend on is an error, or None with `allow_unused`.
    Through tensors in `no_grad_vars` no gradient flows.

    >>> import dy2st as paddle
    >>> x = paddle.to_tensor(3.0, stop_gradient=False)
    >>> float(paddle.grad(x * x, x)[0])
    6.0
    """
    if not only_inputs:
        raise ValueError("only_inputs=False is not supported: gradients are returned for the inputs only")
    _refuse_dump(dump_backward_graph_path)
    outs, ins = _tensors(outputs, "outputs"), _tensors(inputs, "inputs")
    if grad_outputs is not None:
        _tensors(grad_outputs, "grad_outputs", or_none=True)
    seeds = [_conjugate(seed) for seed in _listed(grad_outputs, len(outs))]
    blocked = [] if no_grad_vars is None else _tensors(no_grad_vars, "no_grad_vars")
    keep = create_graph if retain_graph is None else retain_graph
    trace = current().trace
    if trace is not None:
        found = trace.grad(outs, ins, seeds, blocked, allow_unused and not create_graph)
        found = [None if trace.stops(x) else g for x, g in zip(ins, found, strict=True)]
        if not create_graph:
            found = [trace.wrap(trace.detached(trace.value_of(g))) if isinstance(g, Tensor) else g for g in found]
        if not keep and not blocked and any(trace.value_of(x).operation is None for x in ins):
            trace.free(outs)  # a walk that ends at leaves comes by all operations
    else:
        walk = Walk(graph=create_graph, keep=keep)
        found = walk.gradients(outs, ins, seeds, blocked)
    found = [_conjugate(g) if x.dtype.kind == "c" else g for x, g in zip(ins, found, strict=True)]
    for i, (x, g) in enumerate(zip(ins, found, strict=True)):
        if g is None and not allow_unused:
            why = _why_none(trace, outs, x)
            raise ValueError(f"input {i} ({x.name}) has no gradient: {why}; allow_unused=True gives None for it")
    return found


def _tensors(given: Any, what: str, *, or_none: bool = False) -> list[Tensor]:
    """Return tensors given as one or several; TypeError, naming the argument, for anything else."""
    single = isinstance(given, (Tensor, str)) or not hasattr(given, "__iter__")
    listed: list[Any] = [given] if single else list(given)
    for one in listed:
        if not isinstance(one, Tensor) and not (or_none and one is None):
            raise TypeError(f"grad: {what} must be a Tensor or a list of Tensors, but has a {type(one).__name__}")
    return listed


def _why_none(trace: RecordedGradients | None, outs: list[Tensor], x: Tensor) -> str:
    if x.stop_gradient if trace is None else trace.stops(x):
        return "its stop_gradient is True"
    return "no output depends on it" if trace is None else trace.why_none(outs, x)


def _listed(seeds: Any, count: int) -> list[Any]:
    if seeds is None:
        return [None] * count
    listed = [seeds] if isinstance(seeds, Tensor) else list(seeds)
    if len(listed) != count:
        raise ValueError(f"{len(listed)} cotangents were given for {count} tensors")
    return listed


def _refuse_dump(path: Any) -> None:
    if path is not None:
        raise ValueError("dump_backward_graph_path: there is no graph of nodes to write; print a Program instead")


def _conjugate(ct: Any) -> Any:
    """Turn a cotangent of complex numbers, which says how a real loss changes, into Paddle's gradient, and back."""
    if isinstance(ct, Variant):  # None, where a branch that the run does not take used the tensor
        return current().trace.each(ct, _conjugate)
    if getattr(getattr(ct, "dtype", None), "kind", "") != "c":
        return ct
    return apply(cast("Op", lookup("conj")), ct) if isinstance(ct, Tensor) else namespace_of(ct).asarray(ct.conj())


def accumulate_leaf(leaf: Tensor, ct: Any, given: set[int]) -> None:
    """Add an array to a leaf's gradient, in its memory where nobody else holds that; no two leaves get the same."""
    mine = own_gradient(leaf)
    if mine is not None and type(ct) is np.ndarray and ct.dtype == mine.dtype and ct.shape == mine.shape:
        np.add(mine, ct, out=mine)
        return
    if leaf._grad is None:
        own = isinstance(ct, np.ndarray) and ct.base is None and ct.flags.writeable and id(ct) not in given
        given.add(id(ct))
        leaf._grad = Tensor(ct if own else ct.copy())
    else:
        leaf._grad = Tensor(namespace_of(ct).asarray(leaf._grad.payload + ct))  # NumPy adds 0-D arrays to a scalar
