"""One block as a flat list of steps over a frame of registers, and how it is run.

Arguments stand in the first registers, constants in the last ones; a register is used again as soon as its value is
dead. A `BlockPlan` holds nothing of a run, so threads and recursive calls share it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dy2st.ir.location import Location
from dy2st.runtime.interpreter.error_locations import located, too_deep
from dy2st.runtime.interpreter.instructions import Registers, Step, take


class BlockPlan:
    """The steps of a block. `owned[i]` says that result i is an array or list that the caller alone has."""

    __slots__ = ("calls", "owned", "read", "rest", "result_slots", "steps", "where")

    def __init__(self) -> None:
        self.steps: tuple[Step, ...] = ()
        self.rest: list[Any] = []
        """What the registers behind the arguments hold when a frame starts: constants, and None."""
        self.result_slots: tuple[int, ...] = ()
        self.read: Callable[[Registers], tuple[Any, ...]] = take(())
        self.owned: tuple[bool, ...] = ()
        self.where: dict[Step | None, Location | None] = {}
        self.calls: frozenset[Step] = frozenset()

    def finish(self, steps: Sequence[Step], rest: list[Any], results: Sequence[int], calls: frozenset[Step]) -> None:
        """Set what a run needs."""
        self.steps, self.rest, self.calls = tuple(steps), rest, calls
        self.result_slots, self.read = tuple(results), take(results)

    def run(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Run the block once in a frame of its own."""
        r = [*arguments, *self.rest]
        step = None
        try:
            for step in self.steps:
                step(r)
        except Exception as error:
            raise self.located(error, step)  # noqa: B904  the same error
        return self.read(r)

    def located(self, error: Exception, step: Step | None) -> Exception:
        """Return the error as raised at the line that the step comes from."""
        return located(error, self.where.get(step), calling=step in self.calls)


def cond_step(then: BlockPlan, other: BlockPlan, pred: int, operands: Sequence[int], outs: Sequence[int]) -> Step:
    """Return the step that runs one of two blocks."""
    read, store = take(operands), _store(outs)

    def step(r: Registers) -> None:
        store(r, (then if r[pred] else other).run(read(r)))

    return step


def try_step(
    body: BlockPlan, handler: BlockPlan, handed_over: Callable[[Exception], Sequence[Any] | None],
    operands: Sequence[int], outs: Sequence[int], copied: Sequence[int],
) -> Step:  # fmt: skip
    """Return the step that runs a block, and another one where it raises what `handed_over` gives values for.

    `copied` are the results of the handler that somebody else may have.
    """
    read, store = take(operands), _store(outs)

    def step(r: Registers) -> None:
        try:
            results = body.run(read(r))
        except Exception as error:
            given = handed_over(error)
            if given is None:
                raise
            made = list(handler.run((*given, *read(r))))
            for i in copied:
                made[i] = made[i].copy()
            results = tuple(made)
        store(r, results)

    return step


def call_step(function: BlockPlan, name: str, operands: Sequence[int], outs: Sequence[int]) -> Step:
    """Return the step that runs a function of the Program."""
    read, store = take(operands), _store(outs)

    def step(r: Registers) -> None:
        try:
            results = function.run(read(r))
        except RecursionError as error:
            raise too_deep(error, name) from None
        store(r, results)

    return step


def while_step(
    body: BlockPlan, pred: int, operands: Sequence[int], outs: Sequence[int], copied: Sequence[int],
    cleared: Sequence[int],
) -> Step:  # fmt: skip
    """Return the step of a loop whose body gives (pred, *carried).

    `copied` are the carried lists and arrays that the loop may not write into; `cleared` are registers that give up
    their value.
    """
    read, store, carried = take(operands), _store(outs), len(outs)
    again, move = body.result_slots[0], _move(body.result_slots[1:], 0)
    steps, rest = body.steps, body.rest

    def step(r: Registers) -> None:
        frame = [*read(r), *rest]
        for i in copied:
            frame[i] = frame[i].copy()
        turning, inner = r[pred], None
        for slot in cleared:
            r[slot] = None
        try:
            while turning:
                for inner in steps:
                    inner(frame)
                turning = frame[again]
                if move is not None:
                    move(frame)
                if turning is not True:
                    turning = bool(turning)
        except Exception as error:
            raise body.located(error, inner)  # noqa: B904  the same error
        store(r, frame[:carried])

    return step


def for_step(
    body: BlockPlan, count: int, reverse: bool, operands: Sequence[int], outs: Sequence[int], copied: Sequence[int],
    cleared: Sequence[int],
) -> Step:  # fmt: skip
    """Return the step of a counted loop; its body takes the iteration's number first."""
    read, store, carried = take(operands), _store(outs), len(outs)
    move = _move(body.result_slots, 1)
    steps, rest = body.steps, body.rest

    def step(r: Registers) -> None:
        frame: Registers = [0, *read(r), *rest]
        for i in copied:
            frame[i + 1] = frame[i + 1].copy()
        iterations, inner = range(r[count]), None
        for slot in cleared:
            r[slot] = None
        try:
            for i in reversed(iterations) if reverse else iterations:
                frame[0] = i
                for inner in steps:
                    inner(frame)
                if move is not None:
                    move(frame)
        except Exception as error:
            raise body.located(error, inner)  # noqa: B904  the same error
        store(r, frame[1 : carried + 1])

    return step


def _store(outs: Sequence[int]) -> Callable[[Registers, Sequence[Any]], None]:
    """Return a function that writes results into registers."""
    if len(outs) == 1:
        (a,) = outs

        def one(r: Registers, results: Sequence[Any]) -> None:
            r[a] = results[0]

        return one

    def several(r: Registers, results: Sequence[Any]) -> None:
        for out, result in zip(outs, results, strict=True):
            r[out] = result

    return several


def _move(results: Sequence[int], first: int) -> Callable[[Registers], None] | None:
    """Return a function that puts what an iteration gave where the next iteration takes it; None when all stands
    there.
    """
    pairs = [(first + i, slot) for i, slot in enumerate(results) if slot != first + i]
    if not pairs:
        return None
    if len(pairs) == 1:
        ((a, p),) = pairs

        def one(r: Registers) -> None:
            r[a] = r[p]

        return one
    if len(pairs) == 2:
        (a, p), (b, q) = pairs

        def two(r: Registers) -> None:
            r[a], r[b] = r[p], r[q]

        return two
    targets, read = [a for a, _ in pairs], take([p for _, p in pairs])

    def several(r: Registers) -> None:
        for a, value in zip(targets, read(r), strict=True):
            r[a] = value

    return several
