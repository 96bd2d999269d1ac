"""Forward mode on the tape and in traces: tangents, or more Taylor coefficients, of inputs are pushed to the outputs.

On the tape they are pushed through the nodes that lead to the outputs, oldest first; in a trace they are appended to
the Program (autodiff/forward.py). What is pushed is recorded, so it can be differentiated again, in either mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dy2st.autodiff.cotangents import conform
from dy2st.autodiff.forward import Given, JetBuilder
from dy2st.autodiff.try_to_cond import unwind_here
from dy2st.errors import AutodiffError
from dy2st.ir.builder import Builder
from dy2st.ir.context import current
from dy2st.ir.program import Block, Value
from dy2st.runtime.autograd_engine.backward import Walk
from dy2st.runtime.eager.device import namespace_of
from dy2st.runtime.eager.tape.node import Node, ProgramCall
from dy2st.runtime.eager.tape.op_derivative import Ghost, op_jet
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.trace import Values

Place = Any
"""Where a tensor stands on the tape: (node, number of the result), or the id of a leaf."""
Coefficients = list[Tensor | None]
"""Those from order 1 on; None is zero."""


def push(outs: Sequence[Tensor], ins: Sequence[Tensor], tangents: Sequence[Tensor]) -> list[Tensor | None]:
    """Return the tangents of `outs` when `ins` have these; None for an output that does not depend on them.

    Raises AutodiffError where the tape was freed or an operand was overwritten.
    """
    return [tangent for (tangent,) in push_series(outs, ins, [[t] for t in tangents], 1)]


def push_series(
    outs: Sequence[Tensor], ins: Sequence[Tensor], given: Sequence[Coefficients], order: int
) -> list[Coefficients]:
    """Return the coefficients 1 to `order` of each of `outs` when `ins` have those `given`.

    Raises AutodiffError where the tape was freed, an operand was overwritten, or an operation has no Taylor rule.
    """
    trace = current().trace
    if trace is not None:
        return _push_in_trace(trace, outs, ins, given, order)
    known: dict[Any, Coefficients] = {_place_of_tensor(x): c for x, c in zip(ins, given, strict=True)}
    walk = Walk(graph=True, keep=True)
    for node in _nodes_between(outs, known):
        series = {i: known[p] for i, p in enumerate(map(_place_of_edge, node.edges)) if p in known}
        if series:
            _push_node(walk, node, series, known, order)
    return [known.get(_place_of_tensor(out)) or [None] * order for out in outs]


def _nodes_between(outs: Sequence[Tensor], known: dict[Place, Any]) -> list[Node]:
    """Return the nodes from which `outs` were made, oldest first; what is behind known places is left out."""
    found: set[Node] = set()
    pending = [out.tape_node for out in outs if out.tape_node is not None and _place_of_tensor(out) not in known]
    while pending:
        node = pending.pop()
        if node in found:
            continue
        found.add(node)
        pending += [e[0] for e in node.edges if isinstance(e, tuple) and e not in known]
    return sorted(found, key=lambda node: node.number)


def _push_node(
    walk: Walk, node: Node, series: dict[int, Coefficients], known: dict[Any, Coefficients], order: int
) -> None:
    """Push coefficients of a node's operands to its results; a place whose series is known keeps it."""
    if node.source is None:
        raise AutodiffError(f"the tape behind this tensor (made by '{node.name}') was freed by an earlier backward")
    masks = [(i, tuple(k for k, c in enumerate(one, 1) if c is not None)) for i, one in series.items()]
    given: Given = tuple((i, mask) for i, mask in masks if mask)
    if not given:
        return
    entering = [c for i, _ in given for c in series[i] if c is not None]
    if isinstance(node.source, ProgramCall):
        node.check_versions(range(len(node.source.raw)))
        derived, found = node.source.pullback.forward.jet(given, order)
        arguments = [walk.operand(node, i, v) for i, v in enumerate(node.source.raw)]
        results = walk.execute(derived, [*arguments, *entering], node.source.xp)
    elif isinstance(node.source, tuple):
        results, found = _push_op(walk, node, given, entering, order)
    else:
        _push_own(walk, node, series, known, order)
        return
    rest = iter(results)
    for i, orders in found:
        here = {k: next(rest) for k in orders}
        known.setdefault((node, i), [here.get(k) for k in range(1, order + 1)])


def _push_own(
    walk: Walk, node: Node, series: dict[int, Coefficients], known: dict[Any, Coefficients], order: int
) -> None:
    """Push coefficients through derivatives in Python (PyLayer): those of y' are pushed through its forward derivative.

    The tangents of a node are functions of the tangents x' of its operands and of what the node kept, all on the tape;
    x' is x1 + 2 x2 t + 3 x3 t**2 and so on.
    """
    if order == 1:
        found = node.source.push(node, {i: tangent for i, (tangent,) in series.items() if tangent is not None})
        known.update({(node, i): [tangent] for i, tangent in found.items() if (node, i) not in known})
        return
    slopes: dict[int, Tensor] = {}
    inner = {place: coefficients[: order - 1] for place, coefficients in known.items()}
    for i, one in series.items():
        slopes[i] = node.source.place(i, one[0])
        inner[_place_of_tensor(slopes[i])] = [c if c is None else c * float(k) for k, c in enumerate(one[1:], 2)]
    tangents = node.source.push(node, slopes)
    for one in _nodes_between(list(tangents.values()), inner):
        moving = {i: inner[p] for i, p in enumerate(map(_place_of_edge, one.edges)) if p in inner}
        if moving:
            _push_node(walk, one, moving, inner, order - 1)
    for i, tangent in tangents.items():
        higher = inner.get(_place_of_tensor(tangent)) or [None] * (order - 1)
        rest = [c if c is None else c / float(k) for k, c in enumerate(higher, 2)]
        known.setdefault((node, i), [tangent, *rest])


def _push_op(walk: Walk, node: Node, given: Given, entering: list[Any], order: int) -> tuple[Any, Given]:
    op, attributes, arrays = node.source
    made = op_jet(op, attributes, arrays, given, order)
    arguments = [*walk.used(node, made.uses), *entering]
    payloads = [a.payload if isinstance(a, Tensor) else a for a in arguments]
    xp = next((namespace_of(a) for a in payloads if hasattr(a, "dtype") and not isinstance(a, Ghost)), np)
    return walk.execute(made.compiled, arguments, xp), made.found


def _push_in_trace(
    recorder: Values, outs: Sequence[Tensor], ins: Sequence[Tensor], given: Sequence[Coefficients], order: int
) -> list[Coefficients]:
    """Append the coefficients where the recorder stands, also those of values of the blocks around."""
    b: Builder = recorder.builder
    seeds: dict[Any, Any] = {}
    for x, coefficients in zip(ins, given, strict=True):
        like = recorder.value_of(x)
        seeds[like] = [c if c is None else conform(b, b.use(recorder.value_of(c)), b.use(like)) for c in coefficients]
    ends = [b.use(recorder.value_of(out)) for out in outs]
    pusher = JetBuilder(b, order, None)
    for level, entering in _levels_of(b):
        unwind_here(b, level.block)
        pusher.series.update({a: pusher.series[v] for v, a in entering.items() if v in pusher.series})
        pusher.series.update({v: s for v, s in seeds.items() if v.block is level.block})
        wanted = ends if level is b else [v for v in _captured_inside(b, level) if v.block is level.block]
        pusher.run(_leading_to(level.block, wanted, set(pusher.series)))
    return [[c if c is None else recorder.wrap(c, False) for c in pusher.coefficients(v)] for v in ends]


def _levels_of(b: Builder) -> list[tuple[Builder, dict[Value, Value]]]:
    """Return the builders from the outermost block to this one, with what each has captured so far."""
    found: list[tuple[Builder, dict[Value, Value]]] = []
    level: Builder | None = b
    while level is not None:
        found.append((level, dict(level.captures)))
        level = level.parent
    return found[::-1]


def _captured_inside(b: Builder, outer: Builder) -> list[Value]:
    """Return what the blocks inside of `outer`, down to that of `b`, have captured."""
    found: list[Value] = []
    level: Builder | None = b
    while level is not None and level is not outer:
        found += list(level.captures)
        level = level.parent
    return found


def _leading_to(block: Block, ends: Sequence[Value], known: set[Value]) -> Block:
    """Return the operations from which `ends` are computed, but not those behind known values."""
    part, needed = Block(), set(ends) - known
    for operation in reversed(block.operations):
        if not needed.isdisjoint(operation.results):
            part.operations.append(operation)
            needed.update(v for v in operation.operands if v not in known)
    part.operations.reverse()
    return part


def _place_of_tensor(t: Tensor) -> Place:
    """Return what names a tensor on the tape: its node and number, or its identity for a leaf."""
    return id(t) if t.tape_node is None else (t.tape_node, t.tape_index)


def _place_of_edge(edge: Any) -> Place:
    """Return what names the tensor at the end of an edge of the tape."""
    return id(edge) if isinstance(edge, Tensor) else edge
