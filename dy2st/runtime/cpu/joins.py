"""Which tensors are joined from parts that loop nests make: the nests write them where they belong.

Of `concat(sin(x), cos(x))` nothing is copied: one nest writes both parts into the memory of the whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.runtime.cpu.axis_maps import Group
from dy2st.runtime.cpu.joint import Step, groups_of
from dy2st.runtime.cpu.representation import in_nests, is_small


def joins_of(steps: Sequence[Step], results: Sequence[Value]) -> dict[Value, Operation]:
    """Return the parts that loop nests may write where they belong, with what joins them.

    1. Each is made by a nest, as large as its space, whose rows lie along one axis.
    2. Nobody else reads it.
    3. Where it begins in the whole is known, and types say that the other extents are equal.
    """
    makers = {v: group for step in steps for group in groups_of(step) for v in group.results}
    uses = Counter(v for step in steps for v in step.operands) + Counter(results)
    found: dict[Value, Operation] = {}
    for step in steps:
        if not isinstance(step, Operation) or step.op.name != "concat" or not _fits(step):  # 3.
            continue
        if all(v in makers and _is_written_apart(v, makers[v]) and uses[v] == 1 for v in step.operands):
            found.update(dict.fromkeys(step.operands, step))
    return found


def _is_written_apart(value: Value, group: Group) -> bool:
    rank = len(group.space)
    whole = group.maps.get(value) == tuple(range(rank)) and value not in group.columns
    return whole and group.outer in (None, rank - 1)


def _fits(join: Operation) -> bool:
    types = [tensor_type(v) for v in join.operands]
    axis = join.attributes["axis"] % types[0].rank
    others = {(t.dtype.name, *t.shape[:axis], None, *t.shape[axis + 1 :]) for t in types}
    return len(others) == 1 and all(
        isinstance(t.shape[axis], int) and in_nests(t.dtype) and not is_small(t) for t in types
    )
