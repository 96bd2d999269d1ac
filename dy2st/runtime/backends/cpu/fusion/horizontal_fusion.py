"""Loop nests that do not need each other, put together: an optimizer's updates are one job for threads.

    loops over [64, 8]  -> %w.1                 together
    %w.2 = renew(%w.1, %w)                          loops over [64, 8] -> %w.1
    loops over [8]      -> %b.1                     loops over [8]     -> %b.1
    %b.2 = renew(%b.1, %b)                      %w.2 = renew(%w.1, %w)
                                                %b.2 = renew(%b.1, %b)

1. A nest that may be put together with others has as many elements as its types say, and nothing in it raises. It makes
   elements, and sums of all of them, as norms of gradients are.
2. It waits for others as long as nobody reads what it makes, but those who name it anew, or compute with its sums: they
   wait with it.
3. What stands between them runs before them: other loop nests, and what is done with numbers. Anything else ends the
   wait, so that memory that they read is not held for long.
4. A nest that reads what waits comes behind that: first all norms, then all updates that read a factor made of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.ir.program import Operation, Value
from dy2st.ir.types import ScalarType
from dy2st.ops.core.constant import Constant, Renew
from dy2st.ops.indexing.class_indices import KeepAt
from dy2st.records import field, record
from dy2st.runtime.backends.cpu.fusion.epilogues import Epilogue
from dy2st.runtime.backends.cpu.fusion.index_maps import FusedGroup, even
from dy2st.runtime.backends.cpu.fusion.observable_effects import can_raise
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import in_register, is_small

_MOST = 1024
"""How many nests are put together at most: what they take stands on the stack."""


@record(eq=False)
class HorizontalGroup:
    """Groups that run in any order, or at the same time."""

    groups: list[FusedGroup]

    @property
    def operands(self) -> list[Value]:
        """What the groups read."""
        return list(dict.fromkeys(v for group in self.groups for v in group.operands))

    @property
    def results(self) -> list[Value]:
        """What the groups make, one after the other."""
        return [v for group in self.groups for v in group.results]


Step = Operation | FusedGroup | HorizontalGroup | Epilogue


def groups_of(step: Step) -> Sequence[FusedGroup]:
    """Return the groups of a step; none where it is an operation."""
    if isinstance(step, HorizontalGroup):
        return step.groups
    return [step.group] if isinstance(step, Epilogue) else [step] if isinstance(step, FusedGroup) else ()


def read_by(step: Step) -> Sequence[Value]:
    """Return what a step reads: of what is named anew the new elements alone."""
    return step.operands[:1] if isinstance(step, Operation) and isinstance(step.op, Renew) else step.operands


def joined(steps: Sequence[Operation | FusedGroup | Epilogue]) -> list[Step]:
    """Return the steps of a block, those put together that may be."""
    gathering = _Gathering()
    for step in steps:
        gathering.take(step)
    gathering.end(last=True)
    return gathering.steps


@record
class _Level:
    """Groups that need nothing of each other, and what waits with them: names and numbers made of their results."""

    groups: list[FusedGroup] = field(default_factory=list[FusedGroup])
    waiting: list[Operation] = field(default_factory=list[Operation])


class _Gathering:
    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.levels: list[_Level] = []
        self.made: dict[Value, int] = {}
        """What is not there yet, with the level that makes it."""
        self.first = 0
        """Where the first of the groups stood."""

    def take(self, step: Operation | FusedGroup | Epilogue) -> None:
        below = max((self.made[v] for v in step.operands if v in self.made), default=-1)
        if isinstance(step, Operation) and below >= 0 and _may_wait(step):  # 2
            self._note(step, below)
            self.levels[below].waiting.append(step)
        elif isinstance(step, FusedGroup) and may_join(step):
            if sum(len(level.groups) for level in self.levels) == _MOST:
                self.end()
                below = -1
            if not self.levels:
                self.first = len(self.steps)
            if below + 1 == len(self.levels):
                self.levels.append(_Level())
            self.levels[below + 1].groups.append(step)  # 4
            self._note(step, below + 1)
        else:
            # 2, 3
            if below >= 0 or isinstance(step, Epilogue) or not (isinstance(step, FusedGroup) or _is_light(step)):
                self.end()
            self.steps.append(step)

    def _note(self, step: Operation | FusedGroup, level: int) -> None:
        self.made.update((v, level) for v in step.results)

    def end(self, last: bool = False) -> None:
        """Let the groups run that wait; a lone one where it stood, but behind all others where a block ends with it."""
        if len(self.levels) == 1 and len(self.levels[0].groups) == 1 and not (last and self.levels[0].waiting):
            self.steps.insert(self.first, self.levels[0].groups[0])
            self.steps += self.levels[0].waiting
        else:
            for level in self.levels:
                self.steps.append(HorizontalGroup(level.groups) if len(level.groups) > 1 else level.groups[0])
                self.steps += level.waiting
        self.levels, self.made = [], {}


def _may_wait(operation: Operation) -> bool:
    """Return whether an operation may wait for groups: it names what they make, or computes with it and cannot
    raise.
    """
    return operation.op.renames or (_is_light(operation) and not can_raise(operation))


def may_join(group: FusedGroup) -> bool:
    """1."""
    if not all(isinstance(e, int) for e in group.space) or not group.results or group.columns:
        return False
    if any(isinstance(o.op, KeepAt) or can_raise(o) for o in group.members):
        return False
    sums = [o for o in group.members if o.op.monoid]
    if sums and not _are_sums_of_all(sums, group):
        return False
    if not sums and group.outer is not None:
        return False
    made = [v for v in group.results if all(v is not o.results[0] for o in sums)]
    if any(in_register(v.type) or is_small(v.type) for v in made):
        return False
    every = {i for i, e in enumerate(group.space) if e != 1}
    return all(even(m, 0, group.space) for m in group.maps.values()) and all(every <= {*group.maps[v]} for v in made)


def _are_sums_of_all(sums: Sequence[Operation], group: FusedGroup) -> bool:
    """Return whether reductions of a group end with it, and add up all of its elements."""
    read = {v for o in group.members for v in o.operands}
    return group.outer == 0 and all(
        o.op.monoid == "add" and in_register(o.results[0].type) and o.results[0] not in read
        and not o.attributes.get("keepdim")
        for o in sums
    )  # fmt: skip


def _is_light(operation: Operation) -> bool:
    """Return whether an operation makes numbers alone, or nothing that takes time."""
    if operation.blocks or operation.op.effect:
        return False
    if operation.op.renames or isinstance(operation.op, Constant):
        return True
    types = [v.type for v in operation.results]
    return all(isinstance(t, ScalarType) or in_register(t) or is_small(t) for t in types)


def last_uses(steps: Sequence[Step], results: Sequence[Value]) -> dict[Value, int]:
    """Return which step of a block reads each value last; of its results, the end of the block."""
    last = {v: at for at, step in enumerate(steps) for v in read_by(step)}
    last.update((v, len(steps)) for v in results)
    return last
