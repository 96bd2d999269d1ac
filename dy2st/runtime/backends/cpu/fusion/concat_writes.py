"""Which results of loop nests belong into another tensor: the nests write them there.

Of `concat(sin(x), cos(x))` nothing is copied: one nest writes both parts into the memory of the whole. Nor is anything
of `y[1:-1] = sin(x)`: the nest writes between the ends of y.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dy2st.ir.opdef import OpDef
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ops.indexing.getitem import IndexSet
from dy2st.ops.shape.concat_split import Concat, Split
from dy2st.ops.shape.flip_roll_pad import Diagonal, Flip
from dy2st.runtime.backends.cpu.fusion.horizontal_fusion import Step, groups_of
from dy2st.runtime.backends.cpu.fusion.index_maps import FusedGroup
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import in_nests, in_register, is_native, is_small


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
        if not isinstance(step, Operation) or not isinstance(step.op, Concat) or not _fits(step):  # 3.
            continue
        if all(v in makers and _is_written_apart(v, makers[v]) and uses[v] == 1 for v in step.operands):
            found.update(dict.fromkeys(step.operands, step))
    return found


def regions_of(steps: Sequence[Step], results: Sequence[Value]) -> dict[Value, Operation]:
    """Return the values that loop nests may write into regions of tensors, with what sets the regions.

    1. Each is made by a nest, as large as its space, whose rows lie along one axis, and has all axes of the region.
    2. Nobody else reads it.
    3. The tensor, and the numbers in the index expression, are there before the nest runs; from there on nobody else
       reads it, nor a view of it: as long as there is one, the tensor would have to be copied.
    """
    writes = [(at, o) for at, o in enumerate(steps) if isinstance(o, Operation) and isinstance(o.op, IndexSet)]
    if not writes:
        return {}
    makers = {v: (at, group) for at, step in enumerate(steps) for group in groups_of(step) for v in group.results}
    there = {v: at for at, step in enumerate(steps) for v in step.results}
    uses = Counter(v for step in steps for v in step.operands) + Counter(results)
    last = {v: at for at, step in enumerate(steps) for v in step.operands} | dict.fromkeys(results, len(steps))
    shown = _shown(steps)
    found: dict[Value, Operation] = {}
    for end, write in writes:
        base, value, *numbers = write.operands
        if value not in makers or uses[value] != 1 or not _is_region(write):  # 1, 2
            continue
        at, group = makers[value]
        known = all(there.get(v, -1) < at for v in (base, *numbers))
        seen = {shown.get(v, v) for other in steps[at:end] for v in other.operands}
        if known and last[base] == end and shown.get(base, base) not in seen and _is_written_apart(value, group):  # 3
            found[value] = write
    return found


def _is_region(write: Operation) -> bool:
    """Return whether index expressions of numbers name a region of the value's rank and dtype."""
    base, value, *numbers = write.operands
    t, u = tensor_type(base), tensor_type(value)
    if is_small(t) or is_small(u) or t.dtype is not u.dtype or not is_native(t.dtype):
        return False
    spec = write.attributes["spec"]
    taken, new = (sum(part[0] in names for part in spec) for names in (("int", "tensor"), ("new",)))
    return all(in_register(v.type) for v in numbers) and u.rank == t.rank - taken + new > 0


def _shown(steps: Sequence[Step]) -> dict[Value, Value]:
    """Return of values that may show the memory of others, whose that is."""
    found: dict[Value, Value] = {}
    for step in steps:
        if isinstance(step, Operation) and _may_share(step.op):
            found.update(dict.fromkeys(step.results, found.get(step.operands[0], step.operands[0])))
    return found


def _may_share(op: OpDef) -> bool:
    """Return whether an op may give a result in the memory of its first operand."""
    return op.is_view or op.is_identity or isinstance(op, (Split, Flip, Diagonal, IndexSet))


def _is_written_apart(value: Value, group: FusedGroup) -> bool:
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
