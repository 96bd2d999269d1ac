"""Loop nests that do not need each other, put together: an optimizer's updates are one job for threads.

    loops over [64, 8]  -> %w.1                 together
    %w.2 = renew(%w.1, %w)                          loops over [64, 8] -> %w.1
    loops over [8]      -> %b.1                     loops over [8]     -> %b.1
    %b.2 = renew(%b.1, %b)                      %w.2 = renew(%w.1, %w)
                                                %b.2 = renew(%b.1, %b)

1. A nest that may be put together with others has elements alone, as many as its types say, and nothing in it raises.
2. It waits for others as long as nobody reads what it makes, but those who only name it anew: they wait with it.
3. What stands between them runs before them: other loop nests, and what is done with numbers. Anything else ends the
   wait, so that memory that they read is not held for long.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.ir.program import Operation, Value
from dy2st.ir.types import ScalarType
from dy2st.records import record
from dy2st.runtime.cpu.axis_maps import Group, even
from dy2st.runtime.cpu.epilogues import Epilogue
from dy2st.runtime.cpu.observed import can_raise
from dy2st.runtime.cpu.reductions import REDUCTIONS
from dy2st.runtime.cpu.representation import in_register, is_small

_MOST = 1024
"""How many nests are put together at most: what they take stands on the stack."""
NAMES = ("detach", "renew", "expand_dims", "squeeze")
"""What gives another name to the same memory."""


@record(eq=False)
class Joint:
    """Groups that run in any order, or at the same time."""

    groups: list[Group]

    @property
    def operands(self) -> list[Value]:
        """What the groups read."""
        return list(dict.fromkeys(v for group in self.groups for v in group.operands))

    @property
    def results(self) -> list[Value]:
        """What the groups make, one after the other."""
        return [v for group in self.groups for v in group.results]


Step = Operation | Group | Joint | Epilogue


def groups_of(step: Step) -> Sequence[Group]:
    """Return the groups of a step; none where it is an operation."""
    if isinstance(step, Joint):
        return step.groups
    return [step.group] if isinstance(step, Epilogue) else [step] if isinstance(step, Group) else ()


def joined(steps: Sequence[Operation | Group | Epilogue]) -> list[Step]:
    """Return the steps of a block, those put together that may be."""
    gathering = _Gathering()
    for step in steps:
        gathering.take(step)
    gathering.end(last=True)
    return gathering.steps


class _Gathering:
    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.groups: list[Group] = []
        self.named: list[Operation] = []
        """What waits with the groups, because it names their results."""
        self.made: set[Value] = set()
        """What is not there yet."""
        self.first = 0
        """Where the first of the groups stood."""

    def take(self, step: Operation | Group | Epilogue) -> None:
        waits = not self.made.isdisjoint(step.operands)
        if isinstance(step, Operation) and step.op.name in NAMES and waits:  # 2
            self.named.append(step)
            self.made.update(step.results)
            return
        if waits or isinstance(step, Epilogue) or not (isinstance(step, Group) or _is_light(step)):  # 2, 3
            self.end()
        if isinstance(step, Group) and may_join(step):
            if len(self.groups) == _MOST:
                self.end()
            if not self.groups:
                self.first = len(self.steps)
            self.groups.append(step)
            self.made.update(step.results)
        else:
            self.steps.append(step)

    def end(self, last: bool = False) -> None:
        """Let the groups run that wait; a lone one where it stood, but behind all others where a block ends with it."""
        if len(self.groups) == 1 and not (last and self.named):
            self.steps[self.first : self.first] = [*self.groups, *self.named]
        elif self.groups:
            self.steps += [Joint(self.groups) if len(self.groups) > 1 else self.groups[0], *self.named]
        self.groups, self.named, self.made = [], [], set()


def may_join(group: Group) -> bool:
    """1."""
    if not all(isinstance(e, int) for e in group.space) or group.outer is not None or not group.results:
        return False
    if any(o.op.name in (*REDUCTIONS, "keep_at") or can_raise(o) for o in group.members):
        return False
    if any(in_register(v.type) or is_small(v.type) for v in group.results):
        return False
    every = {i for i, e in enumerate(group.space) if e != 1}
    return all(even(m, 0, group.space) for m in group.maps.values()) and all(
        every <= {*group.maps[v]} for v in group.results
    )


def _is_light(operation: Operation) -> bool:
    """Say whether an operation makes numbers alone, or nothing that takes time."""
    if operation.blocks or operation.op.effect:
        return False
    if operation.op.name in ("constant", *NAMES):
        return True
    types = [v.type for v in operation.results]
    return all(isinstance(t, ScalarType) or in_register(t) or is_small(t) for t in types)
