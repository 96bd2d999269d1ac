"""The walk back over the tape: `backward`, which sums into leaves, and `grad`, which returns gradients.

Without `create_graph` cotangents are bare arrays; with it they are Tensors and every pull-back is recorded in turn.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np

from dy2st.errors import AutodiffError
from dy2st.ir.builder import Builder
from dy2st.ir.context import current, replaced
from dy2st.ir.opdef import lookup
from dy2st.ir.program import Program
from dy2st.ir.types import Type, is_optional, tangent_type
from dy2st.ops.base import Op
from dy2st.ops.optional import add_values
from dy2st.runtime.compiled import Compiled
from dy2st.runtime.dispatch import apply
from dy2st.runtime.op_pullback import op_pullback
from dy2st.runtime.places import namespace_of
from dy2st.runtime.saved_tensors import is_packed, restored
from dy2st.runtime.tape import Edge, Node, ProgramCall, call
from dy2st.runtime.tensor import Tensor


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Any = None,
    retain_graph: bool = False,
) -> None:
    """Sum the gradients of `tensors` into the `grad` of every leaf that needs one.

    `grad_tensors` are the cotangents to start from, of the tensors' shapes and dtypes; None stands for ones. The tape
    is freed unless `retain_graph`. Raises RuntimeError where a freed tape is walked again.
    """
    outputs = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    trace = current().trace
    if trace is not None:
        trace.backward(outputs, _listed(grad_tensors, len(outputs)))
        return
    walk = Walk(graph=False, keep=retain_graph)
    for out, seed in zip(outputs, _listed(grad_tensors, len(outputs)), strict=True):
        if out.stop_gradient:
            raise RuntimeError("backward() of a tensor that needs no gradient (its stop_gradient is True)")
        walk.seed(out, _conjugate(_seed(out, seed, graph=False)))
    walk.run()
    given: set[int] = set()
    for leaf, ct in walk.leaves.values():
        accumulate_leaf(leaf, _conjugate(ct), given)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool = False,
    no_grad_vars: Any = None,
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
    outs = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    ins = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    seeds = [_conjugate(seed) for seed in _listed(grad_outputs, len(outs))]
    blocked: list[Tensor] = [no_grad_vars] if isinstance(no_grad_vars, Tensor) else list(no_grad_vars or ())
    trace = current().trace
    if trace is not None:
        found = trace.grad(outs, ins, seeds, blocked, allow_unused and not create_graph)
        if not create_graph:
            found = [trace.wrap(trace.detached(trace.value_of(g))) if isinstance(g, Tensor) else g for g in found]
    else:
        walk = Walk(graph=create_graph, keep=create_graph if retain_graph is None else retain_graph)
        found = walk.gradients(outs, ins, seeds, blocked)
    found = [_conjugate(g) for g in found]
    for i, (x, g) in enumerate(zip(ins, found, strict=True)):
        if g is None and not allow_unused:
            why = "its stop_gradient is True" if x.stop_gradient else "no output depends on it"
            raise ValueError(f"input {i} ({x.name}) has no gradient: {why}; allow_unused=True gives None for it")
    return found


class Walk:
    """One walk back over the tape, newest node first."""

    def __init__(self, graph: bool, keep: bool):
        self.graph, self.keep = graph, keep
        self.pending: dict[Node, list[Any]] = {}
        self.heap: list[tuple[int, Node]] = []
        self.leaves: dict[int, tuple[Tensor, Any]] = {}
        self.wanted: dict[tuple[Node, int], Any] = {}
        self.blocked: set[Any] = set()

    def gradients(
        self, outs: list[Tensor], ins: list[Tensor], seeds: list[Any], blocked: list[Tensor]
    ) -> list[Tensor | None]:
        """Return the gradients of `outs` at `ins`."""
        self.blocked = {_place(t) for t in blocked}
        for x in ins:
            if x._node is not None:
                self.wanted[x._node, x._index] = None
        for out, seed in zip(outs, seeds, strict=True):
            if not out.stop_gradient:
                self.seed(out, self.cotangent(out, seed))
        self.run(stop=min((n.number for n, _ in self.wanted), default=None), leaves=any(x._node is None for x in ins))
        found: list[Tensor | None] = []
        for x in ins:
            ct = self.leaves.get(id(x), (x, None))[1] if x._node is None else self.wanted[x._node, x._index]
            found.append(ct if ct is None or isinstance(ct, Tensor) else Tensor(ct))
        return found

    def cotangent(self, out: Tensor, seed: Any) -> Any:
        """Return the cotangent to start from at `out`, ones where none is given."""
        return _seed(out, seed, self.graph)

    def seed(self, out: Tensor, ct: Any) -> None:
        """Start with the cotangent `ct` of `out`."""
        self.send(out if out._node is None else (out._node, out._index), ct)

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
        while self.heap:
            _, node = heapq.heappop(self.heap)
            cts = self.pending.pop(node)
            for index, hooks in (node.hooks or {}).items():
                cts[index] = self.hooked(cts[index], hooks)
            for i, ct in enumerate(cts):
                if (node, i) in self.wanted:
                    self.wanted[node, i] = ct
                if (node, i) in self.blocked:
                    cts[i] = None
            if stop is not None and not leaves and node.number <= stop:
                continue
            if all(ct is None for ct in cts):
                continue
            with replaced(grad=self.graph):
                pulled = self.pull(node, cts)
            for edge, ct in zip(node.edges, pulled, strict=True):
                if edge is not None and (not self.blocked or _place_of_edge(edge) not in self.blocked):
                    self.send(edge, ct)
            if not self.keep:
                node.source, node.results, node.operands, node.freed = None, (), (), True
        for key, (leaf, ct) in list(self.leaves.items()):
            if leaf._hooks:
                self.leaves[key] = (leaf, self.hooked(ct, leaf._hooks))

    def hooked(self, ct: Any, hooks: dict[int, Any]) -> Any:
        """Return a cotangent after its tensor's hooks."""
        if ct is None:
            return None
        value = ct if isinstance(ct, Tensor) else Tensor(ct)
        for hook in list(hooks.values()):
            changed = hook(value)
            value = value if changed is None else changed
        return value if self.graph else value._payload

    def add(self, a: Any, b: Any, node: Node | None = None, index: int = 0) -> Any:
        """Return the sum of two cotangents, of result `index` of a node (or of a leaf)."""
        if not self.graph:
            return add_values(a, b)
        if not isinstance(a._payload, (list, tuple)):
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
            return node.source.pull(node.results, cts, self.graph)
        op, attributes, arrays = node.source
        wanted = tuple(i for i, edge in enumerate(node.edges) if edge is not None)
        seeded = tuple(i for i, ct in enumerate(cts) if ct is not None)
        pullback = op_pullback(op, attributes, arrays, node.results, wanted, seeded)
        node.check_versions([i for kind, i, _ in pullback.uses if kind == "operand"])
        if node.overwritten:
            node.check_results([i for kind, i, _ in pullback.uses if kind == "result"])
        arguments: list[Any] = []
        for kind, i, axis in pullback.uses:
            if kind == "extent":
                arguments.append(arrays[i].shape[axis])
            elif kind == "operand":
                arguments.append(self.operand(node, i, arrays[i]))
            else:
                arguments.append(self.result(node, i))
        arguments += [cts[i] for i in seeded]
        return self.collect(pullback.compiled, arguments, pullback.found, [None] * len(arrays))

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
        """Run a pull-back; return a cotangent for each operand (of these types), None where there is none."""
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
        return call(Tensor, _unwrap(kind), [ct], np)[0] if self.graph else pair[1]

    def operand(self, node: Node, i: int, array: Any) -> Any:
        """Return operand i as the pull-back takes it: a bare array, or a Tensor with its history."""
        edge = node.edges[i]
        if self.graph and isinstance(edge, Tensor) and (edge._payload is array or is_packed(array, edge._payload)):
            return edge
        array = restored(node, array)
        if not self.graph or isinstance(array, (bool, int, float)):
            return array
        t = Tensor(array)
        if edge is not None and not isinstance(edge, Tensor):
            t._node, t._index = edge
            t.stop_gradient = False
        return t

    def result(self, node: Node, i: int) -> Any:
        """Return result i of a node likewise."""
        value = restored(node, node.results[i])
        if not self.graph or isinstance(value, (bool, int, float)):
            return value
        t = Tensor(value)
        t._node, t._index, t.stop_gradient = node, i, False
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
    return value._payload if isinstance(value, Tensor) else value


def _place(t: Tensor) -> Any:
    return id(t) if t._node is None else (t._node, t._index)


def _place_of_edge(edge: Edge) -> Any:
    return id(edge) if isinstance(edge, Tensor) else edge


def _listed(seeds: Any, count: int) -> list[Any]:
    if seeds is None:
        return [None] * count
    listed = [seeds] if isinstance(seeds, Tensor) else list(seeds)
    if len(listed) != count:
        raise ValueError(f"{len(listed)} cotangents were given for {count} tensors")
    return listed


def _seed(out: Tensor, seed: Tensor | None, graph: bool) -> Any:
    if seed is None:
        array = out.array()
        seed = Tensor(namespace_of(array).ones_like(array))
    elif list(seed.shape) != list(out.shape):
        raise ValueError(f"the cotangent has shape {seed.shape}, the tensor {out.shape}")
    return seed if graph else seed.array()


def _conjugate(ct: Any) -> Any:
    """Turn a cotangent of complex numbers, which says how a real loss changes, into Paddle's gradient, and back."""
    if getattr(getattr(ct, "dtype", None), "kind", "") != "c":
        return ct
    return apply(cast("Op", lookup("conj")), ct) if isinstance(ct, Tensor) else namespace_of(ct).asarray(ct.conj())


def _freed(node: Node) -> AutodiffError:
    return AutodiffError(
        f"the tape behind this tensor (made by '{node.name}') was freed by an earlier backward; "
        "pass retain_graph=True to the first one"
    )


def accumulate_leaf(leaf: Tensor, ct: Any, given: set[int]) -> None:
    """Add an array to a leaf's gradient; no two leaves get the same memory."""
    if leaf._grad is None:
        own = isinstance(ct, np.ndarray) and ct.base is None and ct.flags.writeable and id(ct) not in given
        given.add(id(ct))
        leaf._grad = Tensor(ct if own else ct.copy())
    else:
        leaf._grad = Tensor(leaf._grad._payload + ct)
