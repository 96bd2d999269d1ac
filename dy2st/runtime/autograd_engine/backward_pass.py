"""One walk back over the tape, newest node first: cotangents go from the results of nodes to their operands.

Without `create_graph` cotangents are bare arrays; with it they are Tensors and every VJP is recorded in turn.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from dy2st.errors import AutodiffError
from dy2st.ir.builder import Builder
from dy2st.ir.context import replaced
from dy2st.ir.opdef import lookup
from dy2st.ir.program import Program
from dy2st.ir.types import Type, is_optional, tangent_type
from dy2st.ops.control.optional import add_values
from dy2st.runtime.autograd_engine.compiled_tape import advance
from dy2st.runtime.autograd_engine.tape_segment import MOST
from dy2st.runtime.backends.cpu.python_abi.kept_values import opened
from dy2st.runtime.eager.device import namespace_among, namespace_of
from dy2st.runtime.eager.native_ops import are_large
from dy2st.runtime.eager.saved_tensor_hooks import is_packed, restored
from dy2st.runtime.eager.tape.node import Edge, Node, ProgramCall, call
from dy2st.runtime.eager.tape.op_derivative import Place, op_pullback
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.executor.executable import Compiled


class Walk:
    """One walk back over the tape, newest node first."""

    def __init__(self, graph: bool, keep: bool):
        self.graph, self.keep = graph, keep
        self.pending: dict[Node, list[Any]] = {}
        self.heap: list[tuple[int, Node]] = []
        self.leaves: dict[int, tuple[Tensor, Any]] = {}
        self.wanted: dict[tuple[Node, int], Any] = {}
        self.blocked: set[Any] = set()
        """Places that no gradient flows through."""
        self.ends: set[Any] = set()
        """Places that a cotangent reaches and does not leave."""
        self.sums: dict[Any, Any] = {}
        """Cotangents that this walk alone has, by where they go: cotangents of parts are added to them in place."""
        self.ones: dict[int, Any] = {}
        """The cotangents that are ones because none were given, by identity."""
        self.met: set[Any] = set()
        """The kinds of segments that were met."""
        self.most = MOST

    def gradients(
        self, outs: list[Tensor], ins: list[Tensor], seeds: list[Any], blocked: list[Tensor]
    ) -> list[Tensor | None]:
        """Return the gradients of `outs` at `ins`."""
        self.blocked = {_place(t) for t in blocked}
        for x in ins:
            if x.tape_node is not None:
                self.wanted[x.tape_node, x.tape_index] = None
        for out, seed in zip(outs, seeds, strict=True):
            if not out.stop_gradient:
                self.seed(out, self.cotangent(out, seed), are_ones=seed is None)
        self.run(
            stop=min((n.number for n, _ in self.wanted), default=None), leaves=any(x.tape_node is None for x in ins)
        )
        found: list[Tensor | None] = []
        for x in ins:
            ct = self.leaves.get(id(x), (x, None))[1] if x.tape_node is None else self.wanted[x.tape_node, x.tape_index]
            found.append(ct if ct is None or isinstance(ct, Tensor) else Tensor(ct))
        return found

    def cotangent(self, out: Tensor, seed: Any) -> Any:
        """Return the cotangent to start from at `out`, ones where none is given."""
        return seed_of(out, seed, self.graph)

    def seed(self, out: Tensor, ct: Any, are_ones: bool = False) -> None:
        """Start with the cotangent `ct` of `out`."""
        if are_ones:
            self.ones[id(ct)] = ct
        self.send(out if out.tape_node is None else (out.tape_node, out.tape_index), ct)

    def so_far(self, edge: Edge) -> Any:
        """Return the cotangent that was sent where an edge leads, None where there is none yet."""
        if isinstance(edge, Tensor):
            return self.leaves.get(id(edge), (edge, None))[1]
        return self.pending[edge[0]][edge[1]] if edge[0] in self.pending else None

    def replace(self, edge: Edge, ct: Any) -> None:
        """Put a cotangent in the place of what was sent where an edge leads."""
        if isinstance(edge, Tensor):
            self.leaves[id(edge)] = (edge, ct)
        elif edge[0] in self.pending:
            self.pending[edge[0]][edge[1]] = ct
        else:
            self.send(edge, ct)

    def send(self, edge: Edge, ct: Any) -> None:
        """Add a cotangent where an edge leads."""
        if edge is None or ct is None:
            return
        if isinstance(edge, Tensor):
            so_far = self.leaves.get(id(edge))
            self.leaves[id(edge)] = (edge, ct if so_far is None else self.add(so_far[1], ct))
            return
        node, index = edge
        slots = self.pending.get(node)
        if slots is None:
            slots = self.pending[node] = [None] * len(node.results or ())
            heapq.heappush(self.heap, (-node.number, node))
        if not slots:
            raise _freed(node)
        slots[index] = ct if slots[index] is None else self.add(slots[index], ct, node, index)

    def run(self, stop: int | None = None, leaves: bool = True) -> None:
        """Pull cotangents back until nothing is pending (or nothing that the wanted nodes need)."""
        alone: float = math.inf if self.graph else 0
        """Through how many nodes the walk goes itself."""
        while self.heap:
            if not alone:
                alone = advance(self, 0 if leaves or stop is None else stop)
                continue
            alone -= 1
            _, node = heapq.heappop(self.heap)
            cts = self.pending.pop(node)
            for index, hooks in (node.hooks or {}).items():
                cts[index] = self.hooked(cts[index], hooks)
            for i, ct in enumerate(cts):
                if (node, i) in self.wanted:
                    self.wanted[node, i] = ct
                if (node, i) in self.blocked or (node, i) in self.ends:
                    cts[i] = None
            if stop is not None and not leaves and node.number <= stop:
                continue
            if all(ct is None for ct in cts):
                continue
            if not self.graph and self.add_part(node, cts[0]):
                self.free(node)
                continue
            with replaced(grad=self.graph):
                pulled = self.pull(node, cts)
            for edge, ct in zip(node.edges, pulled, strict=True):
                if edge is not None and (not self.blocked or _place_of_edge(edge) not in self.blocked):
                    self.send(edge, ct)
            self.free(node)
        for key, (leaf, ct) in list(self.leaves.items()):
            if leaf.leaf_hooks:
                self.leaves[key] = (leaf, self.hooked(ct, leaf.leaf_hooks))

    def free(self, node: Node) -> None:
        """Let go of what a node keeps, unless the tape is walked again."""
        if not self.keep:
            node.source, node.results, node.operands, node.freed = None, (), (), True

    def add_part(self, node: Node, ct: Any) -> bool:
        """Add the cotangent of a part of a tensor to that of the whole in place; return whether it was one of a part.

        Reading a row in each of n iterations then costs n rows on the way back, not n matrices.
        """
        source, edge = node.source, node.edges[0] if node.edges else None
        if ct is None or edge is None or not isinstance(source, tuple) or not hasattr(source[0], "adds"):
            return False
        place = _place_of_edge(edge)
        if place in self.blocked:
            return False
        op, attributes, (whole, *places) = source
        node.check_versions(range(1, len(node.edges)))
        xp, so_far = namespace_of(ct), self.so_far(edge)
        if so_far is None or so_far is not self.sums.get(place):
            own = self.sums[place] = xp.zeros(whole.shape, whole.dtype) if so_far is None else so_far.copy()
            self.replace(edge, own)
        at = [self.operand(node, i, x) for i, x in enumerate(places, 1)]
        lookup(op.adds).eval_in_place(xp, self.sums[place], ct, *at, **attributes)  # type: ignore[attr-defined]
        return True

    def hooked(self, ct: Any, hooks: dict[int, Any]) -> Any:
        """Return a cotangent after its tensor's hooks."""
        if ct is None:
            return None
        value = ct if isinstance(ct, Tensor) else Tensor(ct)
        for hook in list(hooks.values()):
            changed = hook(value)
            value = value if changed is None else changed
        return value if self.graph else value.payload

    def add(self, a: Any, b: Any, node: Node | None = None, index: int = 0) -> Any:
        """Return the sum of two cotangents, of result `index` of a node (or of a leaf)."""
        if not self.graph:
            return add_values(a, b)
        if not isinstance(a.payload, (list, tuple)):
            return a + b
        assert node is not None
        assert isinstance(node.source, ProgramCall)
        kind = tangent_type(node.source.pullback.forward.result_types[index])
        return call(Tensor, _adder(kind), [a, b], node.source.xp)[0]

    # ---- one node ----------------------------------------------------------------------------------------------
    def pull(self, node: Node, cts: list[Any]) -> list[Any]:
        """Return the cotangents of a node's operands."""
        if node.source is None:
            raise _freed(node)
        if isinstance(node.source, ProgramCall):
            return self.pull_program(node, node.source, cts)
        if not isinstance(node.source, tuple):  # a backward in Python (PyLayer)
            return node.source.pull(node, cts, self.graph)
        op, attributes, arrays = node.source
        wanted = tuple(i for i, edge in enumerate(node.edges) if edge is not None)
        seeded = tuple(i for i, ct in enumerate(cts) if ct is not None)
        pullback = op_pullback(op, attributes, arrays, wanted, seeded)
        arguments = self.used(node, pullback.uses)
        arguments += [cts[i] for i in seeded]
        compiled = pullback.compiled
        if op.native_in_eager and not self.graph and are_large(arguments):
            compiled = compiled.native
        return self.collect(compiled, arguments, pullback.found, [None] * len(arrays))

    def used(self, node: Node, uses: Sequence[Place]) -> list[Any]:
        """Return what an op's derivative takes of its operands and results; AutodiffError where they were changed."""
        node.check_versions([i for kind, i, _ in uses if kind == "operand"])
        if node.overwritten:
            node.check_results([i for kind, i, _ in uses if kind == "result"])
        arrays, found = node.source[2], list[Any]()
        for kind, i, axis in uses:
            if kind == "extent":
                found.append(arrays[i].shape[axis])
            elif kind == "operand":
                found.append(self.operand(node, i, arrays[i]))
            elif kind == "result":
                found.append(self.result(node, i))
            else:
                found.append(node.results[i].shape[axis])
        return found

    def pull_program(self, node: Node, made: ProgramCall, cts: list[Any]) -> list[Any]:
        """Return the cotangents of the inputs of a recorded Program call."""
        seeded = tuple(i for i, ct in enumerate(cts) if ct is not None)
        pullback = made.pullback
        count = len(node.results) - len(made.residuals)
        kept = _memory(made.raw if seeded != pullback.seeded else made.residuals)
        node.check_versions([i for i, v in enumerate(made.raw) if not kept.isdisjoint(_memory([v]))])
        if node.overwritten:
            node.check_results([i for i in range(count) if not kept.isdisjoint(_memory([node.results[i]]))])
        if seeded == pullback.seeded:
            residuals = [self.result(node, count + j) for j in range(len(made.residuals))]
        else:
            again = pullback.forward.silent.pullback(made.wrt, seeded)
            values = self.execute(again.forward, [self.operand(node, i, v) for i, v in enumerate(made.raw)], made.xp)
            residuals, pullback = values[len(node.results) :], again
        arguments = [*residuals, *(cts[i] for i in seeded)]
        whole = [v.type for v in made.compiled.program.block.arguments]
        return self.collect(pullback.backward, arguments, pullback.found, whole, made.xp)

    def collect(
        self,
        compiled: Compiled,
        arguments: list[Any],
        found: Sequence[int],
        kinds: Sequence[Type | None],
        xp: Any = None,
    ) -> Any:
        """Run a VJP; return a cotangent for each operand (of these types), None where there is none."""
        xp = xp or next((namespace_of(_raw(a)) for a in arguments if hasattr(_raw(a), "dtype")), np)
        pulled: list[Any] = [None] * len(kinds)
        for i, ct, kind in zip(found, self.execute(compiled, arguments, xp), compiled.result_types, strict=True):
            primal = kinds[i]
            dense = is_optional(kind) and (primal is None or not is_optional(primal))
            pulled[i] = self.dense(ct, kind) if dense else ct
        return pulled

    def execute(self, compiled: Compiled, arguments: list[Any], xp: Any) -> list[Any]:
        return call(Tensor, compiled, arguments, xp) if self.graph else compiled.run(arguments, xp)

    def dense(self, ct: Any, kind: Type) -> Any:
        """Return the payload of an optional cotangent, None when it is unset."""
        pair = _raw(ct)
        if pair[0] == 0:
            return None
        return call(Tensor, _unwrap(kind), [ct], namespace_among([pair[1]]))[0] if self.graph else pair[1]

    def operand(self, node: Node, i: int, array: Any) -> Any:
        """Return operand i as the VJP takes it: a bare array, or a Tensor with its history."""
        edge = node.edges[i]
        if self.graph and isinstance(edge, Tensor) and (edge.payload is array or is_packed(array, edge.payload)):
            return edge
        array = restored(node, array)
        if not self.graph or isinstance(array, (bool, int, float)):
            return array
        t = Tensor(array)
        if edge is not None and not isinstance(edge, Tensor):
            t.tape_node, t.tape_index = edge
            t.stop_gradient = False
        return t

    def result(self, node: Node, i: int) -> Any:
        """Return result i of a node likewise."""
        value = restored(node, node.results[i])
        if self.graph and isinstance(node.source, ProgramCall):
            (value,) = opened([node.source.pullback.forward.result_types[i]], [value])
        if not self.graph or isinstance(value, (bool, int, float)):
            return value
        t = Tensor(value)
        t.tape_node, t.tape_index, t.stop_gradient = node, i, False
        return t


@lru_cache(maxsize=256)
def _unwrap(kind: Type) -> Compiled:
    b = Builder()
    b.block.results = [b.variant_get(b.argument(kind), tag=1, message="an unset cotangent was read")]
    return Compiled(Program({"main": b.block}))


@lru_cache(maxsize=256)
def _adder(kind: Type) -> Compiled:
    """Return the Program that adds two cotangents of a list or variant."""
    b = Builder()
    b.block.results = [b.emit("optional_add", [b.argument(kind), b.argument(kind)])]
    return Compiled(Program({"main": b.block}))


def _memory(values: Sequence[Any]) -> set[int]:
    """Return the identities of arrays and of those that own their memory."""
    arrays = [v for v in values if hasattr(v, "dtype")]
    return {id(a) for a in arrays} | {id(a.base) for a in arrays if a.base is not None}


def _raw(value: Any) -> Any:
    return value.payload if isinstance(value, Tensor) else value


def _place(t: Tensor) -> Any:
    return id(t) if t.tape_node is None else (t.tape_node, t.tape_index)


def _place_of_edge(edge: Edge) -> Any:
    return id(edge) if isinstance(edge, Tensor) else edge


def seed_of(out: Tensor, seed: Tensor | None, graph: bool) -> Any:
    """Return the cotangent to start from, ones where none is given: a Tensor for a walk that is recorded."""
    if seed is None:
        seed = Tensor(ones_of(out))
    elif list(seed.shape) != list(out.shape):
        raise ValueError(f"the cotangent has shape {seed.shape}, the tensor {out.shape}")
    return seed if graph else seed.array()


def ones_of(out: Tensor) -> Any:
    """Return an array of ones like a tensor."""
    array = out.array()
    return np.ones(array.shape, array.dtype) if array.__class__ is np.ndarray else namespace_of(array).ones_like(array)


def _freed(node: Node) -> AutodiffError:
    return AutodiffError(
        f"the tape behind this tensor (made by '{node.name}') was freed by an earlier backward; "
        "pass retain_graph=True to the first one"
    )
