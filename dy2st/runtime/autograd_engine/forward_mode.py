"""Forward mode on the tape: tangents of inputs are pushed through the nodes that lead to the outputs, oldest first.

What is pushed is recorded in turn, so tangents can be differentiated again, in either mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dy2st.errors import AutodiffError
from dy2st.ir.context import current
from dy2st.runtime.autograd_engine import traced_forward_mode
from dy2st.runtime.autograd_engine.backward import Walk
from dy2st.runtime.eager.device import namespace_of
from dy2st.runtime.eager.tape.node import Node, ProgramCall
from dy2st.runtime.eager.tape.op_jvp import op_pushforward
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.executor.executable import Compiled

Place = Any
"""Where a tensor stands on the tape: (node, number of the result), or the id of a leaf."""


def push(outs: Sequence[Tensor], ins: Sequence[Tensor], tangents: Sequence[Tensor]) -> list[Tensor | None]:
    """Return the tangents of `outs` when `ins` have these; None for an output that does not depend on them.

    Raises AutodiffError where the tape was freed or an operand was overwritten.
    """
    trace = current().trace
    if trace is not None:
        return traced_forward_mode.push(trace, outs, ins, tangents)
    known: dict[Place, Any] = {place_of_tensor(x): t for x, t in zip(ins, tangents, strict=True)}
    walk = Walk(graph=True, keep=True)
    for node in nodes_between(outs, known):
        given = {i: known[p] for i, p in enumerate(map(place_of_edge, node.edges)) if p in known}
        if given:
            _push_node(walk, node, given, known)
    return [known.get(place_of_tensor(out)) for out in outs]


def nodes_between(outs: Sequence[Tensor], known: dict[Place, Any]) -> list[Node]:
    """Return the nodes from which `outs` were made, oldest first; what is behind known places is left out."""
    found: set[Node] = set()
    pending = [out._node for out in outs if out._node is not None and place_of_tensor(out) not in known]
    while pending:
        node = pending.pop()
        if node in found:
            continue
        found.add(node)
        pending += [e[0] for e in node.edges if isinstance(e, tuple) and e not in known]
    return sorted(found, key=lambda node: node.number)


def _push_node(walk: Walk, node: Node, given: dict[int, Any], known: dict[Place, Any]) -> None:
    """Push tangents of a node's operands to its results; a place whose tangent is known keeps it."""
    if node.source is None:
        raise AutodiffError(f"the tape behind this tensor (made by '{node.name}') was freed by an earlier backward")
    if isinstance(node.source, ProgramCall):
        found = _push_program(walk, node, node.source, given)
    elif isinstance(node.source, tuple):
        found = _push_op(walk, node, given)
    else:  # derivatives in Python (PyLayer)
        found = node.source.push(node, given)
    for i, tangent in found.items():
        known.setdefault((node, i), tangent)


def _push_op(walk: Walk, node: Node, given: dict[int, Any]) -> dict[int, Any]:
    op, attributes, arrays = node.source
    made = op_pushforward(op, attributes, arrays, tuple(given))
    return _run(walk, made.compiled, [*used(walk, node, made.uses), *given.values()], made.found)


def used(walk: Walk, node: Node, uses: Sequence[tuple[str, int, int]]) -> list[Any]:
    """Return what a push-forward takes of the operands and results of an op; AutodiffError where they were changed."""
    node.check_versions([i for kind, i, _ in uses if kind == "operand"])
    if node.overwritten:
        node.check_results([i for kind, i, _ in uses if kind == "result"])
    arrays = node.source[2]
    found: list[Any] = []
    for kind, i, axis in uses:
        if kind == "extent":
            found.append(arrays[i].shape[axis])
        elif kind == "result extent":
            found.append(node.results[i].shape[axis])
        else:
            found.append(walk.operand(node, i, arrays[i]) if kind == "operand" else walk.result(node, i))
    return found


def _push_program(walk: Walk, node: Node, made: ProgramCall, given: dict[int, Any]) -> dict[int, Any]:
    """Push through a call of a Program: its results, and the residuals that a recorded backward uses."""
    node.check_versions(range(len(made.raw)))
    derived, found = made.pullback.forward.pushforward(tuple(given))
    arguments = [walk.operand(node, i, v) for i, v in enumerate(made.raw)]
    results = walk.execute(derived, [*arguments, *given.values()], made.xp)
    return dict(zip(found, results, strict=True))


def _run(walk: Walk, compiled: Compiled, arguments: list[Any], found: Sequence[int]) -> dict[int, Any]:
    arrays = [a._payload if isinstance(a, Tensor) else a for a in arguments]
    xp = next((namespace_of(a) for a in arrays if hasattr(a, "dtype")), np)
    return dict(zip(found, walk.execute(compiled, arguments, xp), strict=True))


def place_of_tensor(t: Tensor) -> Place:
    """Return what names a tensor on the tape: its node and number, or its identity for a leaf."""
    return id(t) if t._node is None else (t._node, t._index)


def place_of_edge(edge: Any) -> Place:
    """Return what names the tensor at the end of an edge of the tape."""
    return id(edge) if isinstance(edge, Tensor) else edge
