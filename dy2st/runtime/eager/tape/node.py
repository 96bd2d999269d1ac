"""The tape of eager mode: nodes that say how results came from operands, and the walk back over them.

A node is one op, or one call of a Program (what `to_static` makes). Either way its VJP is a Program that
`autodiff` derives once per kind of node and that runs as one call. With `create_graph` that call is put on the tape in
turn, so any order works, outside and inside of `to_static`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from dy2st.errors import AutodiffError
from dy2st.ir.context import current
from dy2st.ir.types import is_differentiable
from dy2st.ops.core.base import Op
from dy2st.runtime.backends.donation import DonatedInputs
from dy2st.runtime.eager.tape.op_derivative import ghost, ghosts
from dy2st.runtime.executor.executable import Compiled, CompiledPullback

_numbers = itertools.count(1)
Edge = Any
"""Where a cotangent goes: a leaf tensor, a pair (node, number of the result), or None."""


class Node:
    """What made some results: edges to the operands, and what the VJP needs."""

    __slots__ = (
        "edges",
        "freed",
        "hooks",
        "name",
        "number",
        "operands",
        "overwritten",
        "results",
        "source",
        "versions",
    )

    def __init__(
        self,
        name: str,
        edges: list[Edge],
        results: Sequence[Any],
        source: Any,
        operands: Sequence[Any] = (),
        versions: list[Any] | None = None,
    ):
        self.name, self.edges, self.source = name, edges, source
        self.results: Sequence[Any] = results
        self.hooks: dict[int, dict[int, Any]] | None = None
        self.versions = versions
        self.operands = operands
        """The operand tensors whose elements a VJP may need, to ask them for their versions."""
        self.overwritten: tuple[int, ...] | None = None
        """Results that were written in place where the node keeps their memory."""
        self.freed = False
        self.number = next(_numbers)

    @classmethod
    def of_op(cls, op: Op, operands: Any, arrays: list[Any], attributes: dict[str, Any], outs: list[Any]) -> Node:
        """Return the node of an op that made `outs` of `arrays`; a linear op keeps shapes, not elements."""
        edges, versions = edges_of(operands)
        linear = op.linear_together or (op.linear_in if len(op.linear_in) == 1 else ())
        kept = operands
        if linear:
            if op.variadic or linear[-1] + 1 == len(edges) == len(linear):
                return cls(op.name, edges, ghosts(outs), (op, attributes, ghosts(arrays)), (), versions)
            for i, edge in enumerate(edges):
                if edge is not None and i not in linear:
                    break  # linear in some operands only, as a quotient is, and another one needs a gradient
            else:
                arrays, kept, outs = arrays.copy(), list(operands), ghosts(outs)
                for i in linear:
                    if i < len(arrays):
                        arrays[i], kept[i] = ghost(arrays[i]), None
        for edge in edges:
            if edge is None:
                note_kept(kept)
                break
        return cls(op.name, edges, outs, (op, attributes, arrays), kept, versions)

    def check_versions(self, used: Sequence[int]) -> None:
        """Refuse a VJP that needs the elements of an operand that was overwritten in place since."""
        seen = {i: (version, number) for i, version, number in self.versions or ()}
        for i in used:
            version, number = seen.get(i) or (self._version_of(i), 0)
            if version is not None and version.number != number:
                raise AutodiffError(
                    f"operand {i} of '{self.name}' was changed in place after it was used (its version is "
                    f"{version.number}, the gradient needs version {number}); use the form that returns a new "
                    "tensor, or clone() it before"
                )

    def _version_of(self, i: int) -> Any:
        """Return the version of an operand that had none when it was used, if that memory was overwritten since."""
        version = getattr(self.operands[i], "storage_version", None) if self.operands else None
        return version if version is not None and version.spoiled else None

    def check_results(self, used: Sequence[int]) -> None:
        """Refuse a VJP that needs the elements of a result that was overwritten in place since."""
        for i in self.overwritten or ():
            if i in used:
                raise AutodiffError(
                    f"result {i} of '{self.name}' was changed in place, and its gradient needs what it was; use the "
                    "form that returns a new tensor, or clone() it before"
                )


def edges_of(operands: Sequence[Any]) -> tuple[list[Edge], list[Any] | None]:
    """Return the edges of a node and the versions of operands that share memory."""
    edges: list[Edge] = []
    versions: list[Any] | None = None
    for t in operands:
        if t.__class__ in _NUMBERS:
            edges.append(None)
            continue
        try:
            version = t.storage_version
        except AttributeError:  # no tensor
            edges.append(None)
            continue
        if version is not None:
            versions = versions or []
            versions.append((len(edges), version, version.number))
        if t.stop_gradient:
            edges.append(None)
        else:
            node = t.tape_node
            edges.append(t if node is None else (node, t.tape_index))
    return edges, versions


def note_kept(operands: Sequence[Any]) -> None:
    """Note of operands without a gradient that the tape keeps their memory: a write must leave it as it is."""
    for t in operands:
        if t.__class__ not in _NUMBERS and getattr(t, "stop_gradient", False):
            (t if t.storage_version is None else t.storage_version).kept = True


_NUMBERS = frozenset((bool, int, float, type(None)))


class ProgramCall:
    """What a node needs of one recorded call of a Program."""

    __slots__ = ("compiled", "packed", "pullback", "raw", "residuals", "wrt", "xp")

    def __init__(
        self,
        compiled: Compiled,
        pullback: CompiledPullback,
        wrt: tuple[int, ...],
        raw: Sequence[Any],
        residuals: Sequence[Any],
        xp: Any,
    ):
        self.compiled, self.pullback, self.wrt, self.raw, self.residuals = compiled, pullback, wrt, raw, residuals
        self.xp = xp
        self.packed = False
        """Whether hooks have packed residuals."""


def call(
    tensor: type, compiled: Compiled, inputs: Sequence[Any], xp: Any, seeded: tuple[int, ...] | None = None,
    wrapped: int | None = None, freed_results: tuple[int, ...] = (),
) -> Any:  # fmt: skip
    """Run a Program on tensors, and put the call on the tape where an input needs a gradient.

    `tensor` is the class that wraps results, only the first of them where `wrapped` says how many; payloads may be
    lists and variants. `seeded` names the results whose cotangents are expected (all that can have one when None), and
    `freed_results` those that had theirs while the Program ran.
    """
    raw = [t.payload if isinstance(t, tensor) else t for t in inputs]  # type: ignore[attr-defined]
    if compiled.program.renewed:
        raw = DonatedInputs(raw)
    if seeded == () and wrapped is not None:  # what is not wrapped takes no gradient either
        values = compiled.run(raw, xp)
        results = [*(wrap(tensor, v) for v in values[:wrapped]), *values[wrapped:]]
        for i in freed_results:
            freed(results[i])
        return results
    edges, versions = edges_of(inputs)
    wrt = tuple([i for i, edge in enumerate(edges) if edge is not None])
    if not wrt:
        values = compiled.run(raw, xp)
        return [*(wrap(tensor, v) for v in values[:wrapped]), *([] if wrapped is None else values[wrapped:])]
    types = compiled.result_types
    if seeded is None:
        seeded = tuple(i for i, t in enumerate(types) if is_differentiable(t))
    pullback = compiled.pullback(wrt, seeded)
    values = pullback.forward.run(raw, xp)
    count = len(types)
    node = Node("program", edges, values, ProgramCall(compiled, pullback, wrt, raw, values[count:], xp))
    node.versions, node.operands = versions, tuple(inputs)
    note_kept(inputs)
    if current().saved is not None:
        current().saved.keep(node)
    results = values[:count]
    for i in range(count if wrapped is None else wrapped):
        t = results[i] = wrap(tensor, results[i])
        if isinstance(t, tensor) and is_differentiable(types[i]):
            t.tape_node, t.tape_index, t.stop_gradient = node, i, False  # type: ignore[attr-defined]
    for i in freed_results:
        freed(results[i])
    return results


def freed(result: Any) -> Any:
    """Give a tensor the history of one that was differentiated already, and return it."""
    node = Node("program", [], (), None)
    node.freed = True
    result.tape_node, result.tape_index, result.stop_gradient = node, 0, False
    return result


def wrap(tensor: type, value: Any) -> Any:
    """Wrap an array, list or variant; Python numbers stay themselves."""
    if isinstance(value, (bool, int, float)) or value is None:
        return value
    made = tensor(None)
    made.payload = value  # not through the constructor, which makes an array of a list
    return made
