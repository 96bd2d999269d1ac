"""`cond` becomes `If`, the loops become `Loop`, calls are written where they stand.

Blocks are closed, and graphs inside of nodes see what is around them: what a block takes and does not carry is bound to
what stands for the operand. A branch has an output for each leaf of its results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dy2st.dtypes import bool_, int64
from dy2st.ir.program import Block, Operation
from dy2st.onnx.writing.leaves import Leaf, Refused, leaves
from dy2st.onnx.writing.writer import Graph, Names, Writer, rule


def graph_of(
    g: Writer, name: str, inputs: Sequence[tuple[str, Leaf]], body: Callable[[], list[tuple[str, Leaf]]]
) -> Any:
    """Write a graph inside of a node; return it with what it reads from around."""
    graph = g.graph = Graph(g.graph)
    try:
        results = body()
        names = g.outputs([n for n, _ in results])
    finally:
        assert graph.parent is not None
        g.graph = graph.parent
    outputs = [g.value_info(n, leaf) for n, (_, leaf) in zip(names, results, strict=True)]
    return g.finished(graph, [g.value_info(n, leaf) for n, leaf in inputs], outputs, g.fresh(name))


def _results(g: Writer, block: Block) -> list[tuple[str, Leaf]]:
    return [pair for v in block.results for pair in zip(g.names(v), leaves(v.type), strict=True)]


def _captured(g: Writer, block: Block, operation: Operation, first: int, operands: int) -> None:
    """Bind the arguments of a block from number `first` on to the operands from number `operands` on."""
    for argument, value in zip(block.arguments[first:], operation.operands[operands:], strict=True):
        g.share(argument, value)


def _branch(g: Writer, operation: Operation, block: Block, name: str) -> tuple[Any, set[str]]:
    def body() -> list[tuple[str, Leaf]]:
        _captured(g, block, operation, 0, 1)
        g.block(block)
        return _results(g, block)

    return graph_of(g, name, [], body)


@rule("cond")
def _cond(g: Writer, operation: Operation) -> Names:
    then, reads = _branch(g, operation, operation.blocks[0], "then")
    other, more = _branch(g, operation, operation.blocks[1], "else")
    outputs = sum(len(leaves(v.type)) for v in operation.results)
    if not outputs:
        return ()
    pred = g.one(operation.operands[0])
    return g.node("If", [pred], outputs, reads | more, then_branch=then, else_branch=other)


def _loop(g: Writer, operation: Operation, count: str, pred: str, own: int, reverse: bool = False) -> Names:
    """Write a loop whose block takes `own` arguments before what it carries and gives a predicate where `pred` is."""
    (block,), carried = operation.blocks, operation.attributes["carried"]
    kept = [leaf for v in operation.results for leaf in leaves(v.type)]
    start = [name for v in operation.operands[1 : 1 + carried] for name in g.names(v)]
    iteration, going = g.fresh("iteration"), g.fresh("going")
    inputs = [(iteration, Leaf(int64, ())), (going, Leaf(bool_, ())), *((g.fresh("carried"), leaf) for leaf in kept)]

    def body() -> list[tuple[str, Leaf]]:
        if own:
            last = g.emit("Sub", count, g.constant(1, int64)) if reverse else ""
            g.bind(block.arguments[0], [g.emit("Sub", last, iteration) if reverse else iteration])
        names = iter(name for name, _ in inputs[2:])
        for argument in block.arguments[own : own + carried]:
            g.bind(argument, [next(names) for _ in leaves(argument.type)])
        _captured(g, block, operation, own + carried, 1 + carried)
        g.block(block)
        found = _results(g, block)
        return found if pred else [(going, Leaf(bool_, ())), *found]

    graph, reads = graph_of(g, "body", inputs, body)
    if not kept:
        return ()
    return g.node("Loop", [count, pred, *start], len(kept), reads, body=graph)


@rule("while_loop")
def _while(g: Writer, operation: Operation) -> Names:
    return _loop(g, operation, "", g.one(operation.operands[0]), 0)


@rule("counted_while")
def _counted(g: Writer, operation: Operation) -> Names:
    return _loop(g, operation, g.one(operation.operands[0]), "", 1, operation.attributes["reverse"])


@rule("call")
def _call(g: Writer, operation: Operation) -> Names:
    name = operation.attributes["function"]
    if name in g.calls:
        raise Refused(f"the function {name} calls itself, and ONNX has no recursion")
    block = g.program.functions[name]
    g.calls.append(name)
    _captured(g, block, operation, 0, 0)
    g.block(block)
    g.calls.pop()
    return tuple(name for v in block.results for name in g.names(v))
