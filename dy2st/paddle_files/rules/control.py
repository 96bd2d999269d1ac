"""Branches, loops, tensor arrays.

A ProgramDesc has a branch as two operations `conditional_block`, of a test and of its opposite, whose results are
chosen by `select_input`; they become one `cond`. Its loops, and a `conditional_block` by itself, assign to names around
them.
"""

from __future__ import annotations

from typing import Any

from dy2st import tensor as T
from dy2st.functions.shape.tensor_arrays import array_length, array_read, array_write
from dy2st.ir.context import current
from dy2st.paddle_files.graph import Block, Operation
from dy2st.paddle_files.runner import Node, names, operator, tensor
from dy2st.records import record
from dy2st.runtime.eager.tensor import Tensor
from dy2st.static.nn import cond, while_loop


@record(frozen=True)
class _Branch:
    """The result of a `conditional_block` that is still to be chosen."""

    block: Block
    test: Any
    name: str
    known: dict[Any, Any]
    """What was known when the block stood to run."""


def _test(x: Any) -> Any:
    return T.reshape(x, []) if isinstance(x, Tensor) and x.ndim else x


def _as_list(made: Any) -> list[Any]:
    return list(made) if isinstance(made, (list, tuple)) else [made]


# ---- PIR -------------------------------------------------------------------------------------------------------------
@operator("if")
def _if(node: Node, test: Any) -> Any:
    blocks = node.operation.blocks
    if len(blocks) != 2:
        raise node.fail(f"{len(blocks)} blocks, not two")
    count = len(node.operation.results)
    if any(len(block.results) != count for block in blocks):
        raise node.fail("its blocks give another number of values")
    wanted = [i for i, name in enumerate(node.operation.results) if name in node.run.read] or list(range(count))
    known = node.known
    arrays = sorted({*_written(blocks[0], known), *_written(blocks[1], known)})

    def branch(block: Block) -> Any:
        return lambda: node.run.inner(block, known, (), [*(block.results[i] for i in wanted), *arrays])

    made = _as_list(cond(_test(test), branch(blocks[0]), branch(blocks[1])))
    known.update(zip(arrays, made[len(wanted) :], strict=True))
    found = dict(zip(wanted, made, strict=False))
    return tuple(found.get(i) for i in range(count))


@operator("while")
def _while(node: Node, test: Any, *state: Any) -> Any:
    block = node.operation.blocks[0] if len(node.operation.blocks) == 1 else None
    if block is None:
        raise node.fail(f"{len(node.operation.blocks)} blocks, not one")
    if not block.arguments and not block.results:
        return _legacy_while(node, block)
    if len(block.arguments) != len(state) or len(block.results) != len(state) + 1:
        raise node.fail("its block takes or gives another number of values")
    read = node.run.read
    kept = [
        i for i, (inside, out) in enumerate(zip(block.arguments, node.operation.results, strict=True))
        if inside in read or out in read
    ]  # fmt: skip
    arrays = _written(block, node.known)
    known, wanted = node.known, [block.results[0], *(block.results[i + 1] for i in kept), *arrays]
    argument = {i: at for at, i in enumerate(kept)}

    def turn(going: Any, *now: Any) -> list[Any]:
        given = [now[argument[i]] if i in argument else None for i in range(len(state))]
        around = {**known, **dict(zip(arrays, now[len(kept) :], strict=True))}
        after = node.run.inner(block, around, given, wanted)
        return [_test(after[0]), *after[1:]]

    start = [_test(test), *(state[i] for i in kept), *(known[name] for name in arrays)]
    made = while_loop(lambda going, *now: going, turn, start)
    known.update(zip(arrays, made[1 + len(kept) :], strict=True))
    return tuple(made[argument[i] + 1] if i in argument else None for i in range(len(state)))


def _written(block: Block, known: dict[Any, Any]) -> list[Any]:
    """Return the tensor arrays of around that operations of a block write to."""
    found: dict[Any, None] = {}
    waiting = list(block.operations)
    while waiting:
        operation = waiting.pop()
        if operation.name == "array_write" and operation.operands[0] in known:
            found[operation.operands[0]] = None
        for inner in operation.blocks:
            waiting += inner.operations
    return sorted(found)


# ---- ProgramDesc -----------------------------------------------------------------------------------------------------
@operator("conditional_block")
def _conditional_block(node: Node, test: Any) -> Any:
    (block,) = node.operation.blocks
    (results,) = node.operation.results
    results = [name for name in results if name in node.run.read]
    before = [name for name in results if name in node.known and not isinstance(node.known[name], _Branch)]
    around = dict(node.known)
    if before:
        old = [tensor(node.known[name]) for name in before]
        node.known.update(zip(before, _chosen(node, test, block, before, old), strict=True))
    made = node.operation.results[0]
    return ([node.known[name] if name in before else _Branch(block, test, name, around) for name in made],)


def _chosen(node: Node, test: Any, block: Block, results: list[Any], old: list[Any]) -> list[Any]:
    known = node.known
    return _as_list(cond(_test(test), lambda: node.run.inner(block, known, (), results), lambda: old))


@operator("select_input")
def _select_input(node: Node, mask: Any, choices: Any) -> Any:
    """Choose by number; all that is chosen between the same two blocks is chosen at once."""
    if len(choices) != 2:
        raise node.fail(f"{len(choices)} values to choose from, not two")
    other, then = choices
    if not (isinstance(other, _Branch) and isinstance(then, _Branch)):
        if isinstance(other, _Branch) or isinstance(then, _Branch):
            raise node.fail("it chooses between a block's value and one that is there already")
        return cond(_test(mask) != 0, lambda: then, lambda: other)
    key = ("chosen", id(then.block), id(other.block))
    if key not in node.known:
        node.known[key] = _choose(node, then, other)
    return node.known[key][then.name, other.name]


def _choose(node: Node, then: _Branch, other: _Branch) -> dict[tuple[str, str], Any]:
    pairs: list[tuple[str, str]] = []
    for value_then in list(node.known.values()):
        if isinstance(value_then, _Branch) and value_then.block is then.block:
            pairs += [(value_then.name, pair) for pair in _partners(node, value_then.name)]
    made = cond(
        _test(then.test),
        lambda: node.run.inner(then.block, then.known, (), [a for a, _ in pairs]),
        lambda: node.run.inner(other.block, other.known, (), [b for _, b in pairs]),
    )
    return dict(zip(pairs, _as_list(made), strict=True))


def _partners(node: Node, name: str) -> list[str]:
    """Return the names that `select_input` chooses beside this one."""
    return list(dict.fromkeys(
        operation.operands[1][0] for operation in node.run.selections
        if len(operation.operands[1]) == 2 and operation.operands[1][1] == name
    ))  # fmt: skip


def _legacy_while(node: Node, block: Block) -> tuple[()]:
    """Run a loop that assigns to names around it: they are what it carries, and its test is one of them."""
    test = node.operation.operands[0]
    carried = [test, *(n for n in _assigned(block) if n != test and n in node.known and n in node.run.read)]
    known = node.known

    def turn(*now: Any) -> list[Any]:
        given = dict(zip(carried, now, strict=True))
        after = node.run.inner(block, {**known, **given}, (), carried)
        return [_test(after[0]), *after[1:]]

    start = [tensor(known[name]) for name in carried]
    made = while_loop(lambda going, *now: going, turn, [_test(start[0]), *start[1:]])
    known.update(zip(carried, made, strict=True))
    return ()


def _assigned(block: Block) -> list[Any]:
    """Return the names that operations of a block set, those of inner blocks too."""
    found: dict[Any, None] = {}
    waiting: list[Operation] = list(block.operations)
    while waiting:
        operation = waiting.pop()
        found.update(dict.fromkeys(names(operation.results)))
        for inner in operation.blocks:
            waiting += inner.operations
    return sorted(found)


# ---- tensor arrays: Python's lists -----------------------------------------------------------------------------------
@operator("create_array")
def _create_array(node: Node) -> Any:
    return ([],)


@operator("array_write")
def _array_write(node: Node, *operands: Any) -> Any:
    """PIR gives the array, the tensor and the place; a ProgramDesc the tensor and the place, and names the array."""
    if len(operands) == 3:
        array, x, i = operands
    else:
        x, i = operands
        array = node.known.get(node.operation.results[0], [])
    made = array_write(x, _place(i), list(array) if type(array) is list else array)
    if len(operands) == 3:
        node.known[node.operation.operands[0]] = made
    return made


def _place(i: Any) -> Any:
    return T.reshape(i, []).item() if isinstance(i, Tensor) else i


@operator("array_read", "slice_array_dense")
def _array_read(node: Node, array: Any, i: Any) -> Any:
    return array_read(array, _place(i))


@operator("array_length")
def _array_length(node: Node, array: Any) -> Any:
    found = array_length(array)
    return T.full([1], found, "int64") if not isinstance(found, Tensor) else T.reshape(found, [1])


@operator("array_to_tensor")
def _array_to_tensor(node: Node, array: Any) -> Any:
    """Join the tensors of an array."""
    trace, join = current().trace, _stacked if node.get("use_stack") else _joined
    return (join if trace is None else trace.convert(join))(array, node.get("axis", default=0))


def _stacked(array: Any, axis: int) -> Any:
    return T.stack(array, axis)


def _joined(array: Any, axis: int) -> Any:
    return T.concat(array, axis)


for _function in (_stacked, _joined):
    _function.__dy2st_convert__ = True  # type: ignore[attr-defined] (a list of the trace is no list of Python's)
