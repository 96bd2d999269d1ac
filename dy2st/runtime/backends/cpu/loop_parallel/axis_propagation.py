"""What each op does with the axes of its operands: which axes of results they become, and which it mixes.

A node is a value and one of its axes; a number has one node, for the extent that it may be. An op that is not known
mixes all axes of what it takes and makes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from dy2st.ir.opdef import entering
from dy2st.ir.program import Block, Operation, Value, tensor_type
from dy2st.ir.types import ListType, ScalarType, TensorType
from dy2st.shapes import Extent

Node = tuple[Value, int]
Rule = Callable[["AxisClasses", Operation], None]
_WHOLE = ("slice", None, None, None)

_TIES: dict[str, Rule] = {}
_ties = entering(_TIES)


def axes_of(value: Value) -> Sequence[Extent | None]:
    """Return the extents of a value's axes: of a list, those of its elements; of a number, what it is itself."""
    t = value.type.element if isinstance(value.type, ListType) else value.type
    if isinstance(t, TensorType):
        return t.shape
    return (t.extent,) if isinstance(t, ScalarType) and t is value.type else ()


class AxisClasses:
    """Classes of nodes, as they are tied to each other, and which of them are mixed; `more` has rules for ops."""

    def __init__(self, more: Mapping[str, Rule] | None = None) -> None:
        self.rules = _TIES if more is None else {**_TIES, **more}
        self._above: dict[Node, Node] = {}
        self._mixed: set[Node] = set()

    def _top(self, node: Node) -> Node:
        self._above.setdefault(node, node)
        while (above := self._above[node]) != node:
            self._above[node] = self._above[above]
            node = above
        return node

    def tie(self, one: Node, other: Node) -> None:
        """Put two axes into one class."""
        a, b = self._top(one), self._top(other)
        if a != b:
            self._above[b] = a
            if b in self._mixed:
                self._mixed.add(a)

    def tie_all(self, one: Value, other: Value) -> None:
        """Tie each axis of a value to the same axis of another; where they have not as many, mix them."""
        if len(axes_of(one)) != len(axes_of(other)):
            self.mix(one)
            self.mix(other)
            return
        for i in range(len(axes_of(one))):
            self.tie((one, i), (other, i))

    def mix(self, value: Value, *axes: int) -> None:
        """Say that places of these axes, or of all, meet."""
        for axis in axes or range(len(axes_of(value))):
            self._mixed.add(self._top((value, axis)))

    def is_mixed(self, node: Node) -> bool:
        """Return whether places of an axis meet somewhere."""
        return self._top(node) in self._mixed

    def are_tied(self, one: Node, other: Node) -> bool:
        """Return whether two axes are of one class."""
        return self._top(one) == self._top(other)

    def members(self, node: Node) -> Iterator[Node]:
        """Yield the axes of a class."""
        top = self._top(node)
        return (other for other in list(self._above) if self._top(other) == top)


def tie_loop(ties: AxisClasses, loop: Operation, beside: Collection[Operation] = ()) -> None:
    """Tie what a loop carries and hands to its iterations, and all that is inside but the operations `beside`."""
    (body,), carried = loop.blocks, loop.attributes["carried"]
    counted = loop.op.is_counted
    arguments, following = body.arguments[counted:], body.results[not counted :]
    ties.mix(loop.operands[0])
    for value in (*body.arguments[:counted], *body.results[: not counted]):
        ties.mix(value)
    for operand, argument in zip(loop.operands[1:], arguments, strict=True):
        ties.tie_all(operand, argument)
    for argument, result, made in zip(arguments[:carried], following, loop.results, strict=True):
        ties.tie_all(argument, result)
        ties.tie_all(result, made)
    tie_block(ties, body, beside)


def tie_block(ties: AxisClasses, block: Block, beside: Collection[Operation] = ()) -> None:
    """Tie what the operations of a block do with axes."""
    for operation in block.operations:
        if operation in beside:
            continue
        tie = ties.rules.get(operation.op.name, _elementwise if operation.op.elementwise else mix_all)
        tie(ties, operation)


def mix_all(ties: AxisClasses, operation: Operation) -> None:
    """Mix all axes of what an operation takes and makes, and of what is inside of it."""
    values = [*operation.operands, *operation.results]
    for block in operation.blocks:
        values += [v for inner in block.walk() for v in (*inner.operands, *inner.results)] + block.arguments
    for value in values:
        ties.mix(value)


@_ties("detach", "renew", "zeros_like", "ones_like")
def _elementwise(ties: AxisClasses, operation: Operation) -> None:
    (result,) = operation.results
    for operand in operation.operands:
        ties.tie_all(operand, result) if isinstance(operand.type, TensorType) else ties.mix(operand)


@_ties("cond")
def _cond(ties: AxisClasses, operation: Operation) -> None:
    predicate, *operands = operation.operands
    ties.mix(predicate)
    for block in operation.blocks:
        for operand, argument in zip(operands, block.arguments, strict=True):
            ties.tie_all(operand, argument)
        for result, made in zip(block.results, operation.results, strict=True):
            ties.tie_all(result, made)
        tie_block(ties, block)


@_ties("dim")
def _dim(ties: AxisClasses, operation: Operation) -> None:
    ties.tie((operation.results[0], 0), (operation.operands[0], operation.attributes["axis"]))


@_ties("broadcast_extent")
def _broadcast_extent(ties: AxisClasses, operation: Operation) -> None:
    (a, b), (made,) = operation.operands, operation.results
    if axes_of(a) == axes_of(b) == axes_of(made) != (None,):
        ties.tie((a, 0), (made, 0))
        ties.tie((b, 0), (made, 0))
    else:
        mix_all(ties, operation)


def _numbers_of_extents(ties: AxisClasses, operation: Operation, dims: Sequence[Value]) -> None:
    """Tie the numbers that an op takes as extents of its result."""
    rest = iter(dims)
    for axis, known in enumerate(operation.attributes["shape"]):
        if known is None:
            ties.tie((next(rest), 0), (operation.results[0], axis))


@_ties("broadcast")
def _broadcast(ties: AxisClasses, operation: Operation) -> None:
    (x, *dims), (made,) = operation.operands, operation.results
    _numbers_of_extents(ties, operation, dims)
    tie_trailing(ties, x, made, repeats=True)


def tie_trailing(ties: AxisClasses, few: Value, many: Value, *, repeats: bool) -> None:
    """Tie the last axes of two values where they are as long; one that is summed up, or may be, is mixed."""
    lead = len(axes_of(many)) - len(axes_of(few))
    for i, (a, b) in enumerate(zip(axes_of(few), axes_of(many)[lead:], strict=True)):
        if a == b:
            ties.tie((few, i), (many, lead + i))
            continue
        ties.mix(few, i)
        if not (repeats and a == 1):
            ties.mix(many, lead + i)


@_ties("sum_to")
def _sum_to(ties: AxisClasses, operation: Operation) -> None:
    (x, *dims), (made,) = operation.operands, operation.results
    _numbers_of_extents(ties, operation, dims)
    for axis in range(len(axes_of(x)) - len(axes_of(made))):
        ties.mix(x, axis)
    tie_trailing(ties, made, x, repeats=False)


@_ties("full")
def _full(ties: AxisClasses, operation: Operation) -> None:
    ties.mix(operation.operands[0])
    _numbers_of_extents(ties, operation, operation.operands[1:])


@_ties("sum", "mean", "max", "top", "min", "prod", "all", "any")
def _reduction(ties: AxisClasses, operation: Operation) -> None:
    (x,), (made,) = operation.operands, operation.results
    axes, keepdim = operation.attributes["axis"], operation.attributes["keepdim"]
    kept = [i for i in range(len(axes_of(x))) if i not in axes]
    for axis in axes:
        ties.mix(x, axis)
    for place, axis in enumerate(kept):
        ties.tie((x, axis), (made, axis if keepdim else place))


@_ties("matmul")
def _matmul(ties: AxisClasses, operation: Operation) -> None:
    (x, y), (made,) = operation.operands, operation.results
    rank = len(axes_of(made))
    if not len(axes_of(x)) == len(axes_of(y)) == rank >= 2:
        mix_all(ties, operation)
        return
    for axis in range(rank - 2):
        ties.tie((x, axis), (made, axis))
        ties.tie((y, axis), (made, axis))
    swap_x = operation.attributes["transpose_x"]
    ties.tie((x, rank - 1 if swap_x else rank - 2), (made, rank - 2))
    ties.mix(x, rank - 2 if swap_x else rank - 1)
    ties.mix(y, rank - 2, rank - 1)  # a matrix is packed as a whole
    ties.mix(made, rank - 1)


def _indexed(ties: AxisClasses, x: Value, spec: Sequence[Any], numbers: Sequence[Value]) -> list[int | None] | None:
    """Mix the axes that a spec cuts; return which axis of `x` each axis of the part is, None for another one.

    None for all of it where index tensors or masks are in the index expression.
    """
    for number in numbers:
        ties.mix(number)
    if any(part[0] not in ("int", "slice", "new", "tensor") for part in spec):
        return None
    places = [v for v in numbers if isinstance(v.type, TensorType)]
    if any(tensor_type(v).rank for v in places):
        return None
    found: list[int | None] = []
    axis = 0
    for part in spec:
        if part[0] == "new":
            found.append(None)
            continue
        if tuple(part) == _WHOLE:
            found.append(axis)
        else:
            ties.mix(x, axis)
            found += [None] if part[0] == "slice" else []
        axis += 1
    return found + list(range(axis, len(axes_of(x))))


@_ties("index")
def _index(ties: AxisClasses, operation: Operation) -> None:
    (x, *numbers), (made,) = operation.operands, operation.results
    found = _indexed(ties, x, operation.attributes["spec"], numbers)
    if found is None or len(found) != len(axes_of(made)):
        mix_all(ties, operation)
        return
    for place, axis in enumerate(found):
        if axis is None:
            ties.mix(made, place)
        else:
            ties.tie((x, axis), (made, place))


@_ties("index_set")
def _index_set(ties: AxisClasses, operation: Operation) -> None:
    (x, value, *numbers), (made,) = operation.operands, operation.results
    ties.tie_all(x, made)
    found = _indexed(ties, x, operation.attributes["spec"], numbers)
    if found is None or len(found) < len(axes_of(value)):
        mix_all(ties, operation)
        return
    lead = len(found) - len(axes_of(value))
    for place, (extent, axis) in enumerate(zip(axes_of(value), found[lead:], strict=True)):
        if axis is not None and extent == axes_of(x)[axis]:
            ties.tie((value, place), (x, axis))
            continue
        ties.mix(value, place)
        if axis is not None and extent != 1:
            ties.mix(x, axis)


@_ties("transpose")
def _transpose(ties: AxisClasses, operation: Operation) -> None:
    for place, axis in enumerate(operation.attributes["perm"]):
        ties.tie((operation.operands[0], axis), (operation.results[0], place))


@_ties("expand_dims")
def _expand_dims(ties: AxisClasses, operation: Operation) -> None:
    (x,), (made,) = operation.operands, operation.results
    _around(ties, x, made, {a % len(axes_of(made)) for a in operation.attributes["axes"]})


@_ties("squeeze")
def _squeeze(ties: AxisClasses, operation: Operation) -> None:
    (x,), (made,) = operation.operands, operation.results
    _around(ties, made, x, {a % len(axes_of(x)) for a in operation.attributes["axes"]})


def _around(ties: AxisClasses, few: Value, many: Value, more: set[int]) -> None:
    """Tie the axes of two values, one of which has `more` of them."""
    for place, axis in enumerate(i for i in range(len(axes_of(many))) if i not in more):
        ties.tie((few, place), (many, axis))
    for axis in more:
        ties.mix(many, axis)


@_ties("reshape")
def _reshape(ties: AxisClasses, operation: Operation) -> None:
    (x, *dims), (made,) = operation.operands, operation.results
    _numbers_of_extents(ties, operation, dims)
    before, after = axes_of(x), axes_of(made)
    same = [a == b for a, b in zip(before, after, strict=False)]
    front = same.index(False) if False in same else len(same)
    same = [a == b for a, b in zip(reversed(before[front:]), reversed(after[front:]), strict=False)]
    back = same.index(False) if False in same else len(same)
    for axis in range(front):
        ties.tie((x, axis), (made, axis))
    for axis in range(1, back + 1):
        ties.tie((x, len(before) - axis), (made, len(after) - axis))
    for value, count in ((x, len(before)), (made, len(after))):
        for axis in range(front, count - back):
            ties.mix(value, axis)


@_ties("concat")
def _concat(ties: AxisClasses, operation: Operation) -> None:
    axis = operation.attributes["axis"]
    for operand in operation.operands:
        ties.tie_all(operand, operation.results[0])
    ties.mix(operation.results[0], axis)


@_ties("stack")
def _stack(ties: AxisClasses, operation: Operation) -> None:
    for operand in operation.operands:
        _around(ties, operand, operation.results[0], {operation.attributes["axis"]})


@_ties("split")
def _split(ties: AxisClasses, operation: Operation) -> None:
    x, *numbers = operation.operands
    for made in operation.results:
        ties.tie_all(x, made)
    ties.mix(x, operation.attributes["axis"])
    for number in numbers:
        ties.mix(number)


@_ties("list_stack")
def _list_stack(ties: AxisClasses, operation: Operation) -> None:
    _around(ties, operation.operands[0], operation.results[0], {0})


@_ties("list_new", "list_append", "list_get", "list_set", "list_pop", "list_len")
def _of_lists(ties: AxisClasses, operation: Operation) -> None:
    """Tie lists and what is put into them or taken out; where elements stand makes no difference to their rows."""
    values = [*operation.operands, *operation.results]
    lists = [v for v in values if isinstance(v.type, ListType)]
    for value in values:
        if isinstance(value.type, ScalarType):
            ties.mix(value)
        elif isinstance(value.type, (ListType, TensorType)):
            ties.tie_all(lists[0], value)
        else:
            mix_all(ties, operation)


_ties("while_loop", "counted_while")(tie_loop)
