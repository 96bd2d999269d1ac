"""Remove what nobody uses.

Before                                          After
    %a = exp(%x)                                    %r = cond(%p, %x) {(%x1) -> neg(%x1)} ...
    %r, %s = cond(%p, %x, %y) { ... }               return %r
    return %r

1. An operation whose results are unused goes, unless it has an effect or may raise.
2. An unused result of `cond` goes, with what both branches compute for it.
3. A carried value of a loop whose last value is unused goes when nothing but itself needs it.
4. An argument of a branch or loop body that the block does not use goes, with the operand. Branches share operands: it
   stays where either uses it.
5. A function that the entry does not call, directly or not, goes.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.passes.core.base import Pass
from dy2st.passes.core.effects import Effects


class RemoveDeadCode(Pass):
    """Remove operations, results, carried values, arguments and functions that nobody uses."""

    name = "dce"

    def __init__(self, judge: type[Effects] = Effects):
        self.judge = judge

    def apply(self, program: Program) -> bool:
        sweep = _Sweep(self.judge(program))
        for block in program.functions.values():
            sweep.block(block)
        return sweep.changed | _drop_functions(program)


class _Sweep:
    def __init__(self, effects: Effects):
        self.effects = effects
        self.changed = False

    def block(self, block: Block) -> None:
        """Clean a block from its end to its start, so that a chain of dead operations goes at once."""
        live = set(block.results)
        kept: list[Operation] = []
        for operation in reversed(block.operations):
            if live.isdisjoint(operation.results) and self.effects.is_pure(operation):  # 1.
                self.changed = True
                continue
            if operation.op.is_branch:
                self.cond(operation, live)
            elif operation.op.is_loop:
                self.loop(operation, live)
            elif operation.op.is_try:
                self.attempt(operation)
            live.update(operation.operands)
            kept.append(operation)
        block.operations[:] = reversed(kept)

    def cond(self, operation: Operation, live: set[Value]) -> None:
        used = [i for i, v in enumerate(operation.results) if v in live]
        if len(used) < len(operation.results):  # 2.
            self.changed = True
            operation.results = [operation.results[i] for i in used]
            for block in operation.blocks:
                block.results = [block.results[i] for i in used]
        for block in operation.blocks:
            self.block(block)
        needed = set[int]().union(*(_used_arguments(block) for block in operation.blocks))
        self.keep_arguments(operation, sorted(needed), 1, 0)  # 4.

    def attempt(self, operation: Operation) -> None:
        """Clean the blocks of a `try`; its results stay."""
        for block in operation.blocks:
            self.block(block)

    def loop(self, operation: Operation, live: set[Value]) -> None:
        body, count = operation.blocks[0], operation.attributes["carried"]
        iteration = int(operation.op.is_counted)
        test = 1 - iteration
        kept = self.needed(operation, live, iteration, test)
        if len(kept) < count:  # 3.
            self.changed = True
            operation.results = [operation.results[i] for i in kept]
            operation.attributes["carried"] = len(kept)
            body.results = body.results[:test] + [body.results[test + i] for i in kept]
            invariants = range(count, len(operation.operands) - 1)
            self.reorder(operation, [*kept, *invariants], iteration)
        self.block(body)
        count = operation.attributes["carried"]
        used = _used_arguments(body)
        rest = [i for i in range(count, len(operation.operands) - 1) if i + iteration in used]
        self.keep_arguments(operation, [*range(count), *rest], 1, iteration)  # 4.

    def needed(self, operation: Operation, live: set[Value], iteration: int, test: int) -> list[int]:
        """Return which carried values are used: behind the loop, or in an iteration for anything but themselves."""
        body, count = operation.blocks[0], operation.attributes["carried"]
        places = {v: i for i, v in enumerate(body.arguments[iteration : iteration + count])}
        kept = {i for i in range(count) if operation.results[i] in live}
        while True:
            results = body.results[:test] + [body.results[test + i] for i in sorted(kept)]
            found = kept | {places[v] for v in self.reaches(body, results) if v in places}
            if found == kept:
                return sorted(kept)
            kept = found

    def reaches(self, block: Block, results: Sequence[Value]) -> set[Value]:
        """Return the values of a block that these results, and what must run, are computed from."""
        live = set(results)
        for operation in reversed(block.operations):
            if not (live.isdisjoint(operation.results) and self.effects.is_pure(operation)):
                live.update(operation.operands)
        return live

    def keep_arguments(self, operation: Operation, kept: Sequence[int], first: int, iteration: int) -> None:
        if len(kept) < len(operation.operands) - first:
            self.changed = True
            self.reorder(operation, kept, iteration)

    def reorder(self, operation: Operation, kept: Sequence[int], iteration: int) -> None:
        """Keep these operands behind the first one, and the arguments that take them."""
        operation.operands = operation.operands[:1] + [operation.operands[1 + i] for i in kept]
        for block in operation.blocks:
            block.arguments = block.arguments[:iteration] + [block.arguments[iteration + i] for i in kept]


def _used_arguments(block: Block) -> set[int]:
    used = set(block.results).union(*(operation.operands for operation in block.operations))
    return {i for i, v in enumerate(block.arguments) if v in used}


def _drop_functions(program: Program) -> bool:
    """5."""
    reached: list[str] = [program.entry]
    for name in reached:
        calls = [o.attributes["function"] for o in program.functions[name].walk() if o.op.is_call]
        reached += dict.fromkeys(c for c in calls if c not in reached)
    dead = [name for name in program.functions if name not in reached]
    for name in dead:
        del program.functions[name]
    return bool(dead)
