"""Compile blocks into `BlockPlan`s: decide which step runs an operation, where it reads and where it writes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dy2st.ir.opdef import OpDef
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ir.types import ListType, ScalarType, TensorType, Type
from dy2st.ops.control.try_ import handed_over
from dy2st.ops.core.rounded import is_low
from dy2st.ops.indexing.getitem import Index
from dy2st.runtime.interpreter.buffer_reuse import (
    OwnedValues,
    ValueLifetimes,
    hands_over,
    is_container,
    is_written,
    keeps,
    makes,
    once,
    shows,
)
from dy2st.runtime.interpreter.buffer_reuse_in_try import may_write
from dy2st.runtime.interpreter.instructions import Step, clear_step, counted_step, several_step, store_step, ufunc_step
from dy2st.runtime.interpreter.op_kernels import bare_ufunc, kernel
from dy2st.runtime.interpreter.output_ownership import read_only
from dy2st.runtime.interpreter.plan_block import BlockPlan, call_step, cond_step, for_step, try_step, while_step
from dy2st.runtime.interpreter.reference import single
from dy2st.runtime.interpreter.register_allocation import Frame, worth_clearing
from dy2st.runtime.memory_budget import SMALL

Flags = tuple[bool, ...]


class Functions:
    """The compiled functions of a Program, each compiled on its first call in the text."""

    def __init__(self, program: Program, xp: Any):
        self.program, self.xp = program, xp
        self.constants: list[Any] = []
        self._functions: dict[tuple[str, Flags], BlockPlan] = {}
        self._open: list[str] = []

    def entry(self) -> BlockPlan:
        """Return the plan of the entry function."""
        return self.function(self.program.entry)

    def function(self, name: str, owned: Flags = ()) -> BlockPlan:
        """Return the plan of a function; while it is being compiled, the plan that it will be.

        `owned` says which arguments the caller gives up; a function that calls itself is never given any.
        """
        block = self.program.functions[name]
        flags = owned if owned and name not in self._open else (False,) * len(block.arguments)
        if (name, flags) not in self._functions:
            plan = self._functions[name, flags] = BlockPlan()
            self._open.append(name)
            _BlockCompiler(self, block, flags, None).compile_into(plan)
            self._open.pop()
        return self._functions[name, flags]

    def block(self, block: Block, owned: Flags, carried: range | None = None) -> BlockPlan:
        """Compile a block. `owned` says which arguments the caller gives up; `carried` which ones a loop carries."""
        plan = BlockPlan()
        _BlockCompiler(self, block, owned, carried).compile_into(plan)
        return plan


class _BlockCompiler:
    """Compiles one block, operation by operation."""

    def __init__(self, functions: Functions, block: Block, owned: Flags, carried: range | None):
        self.functions, self.xp, self.block = functions, functions.xp, block
        self.lives = ValueLifetimes(block)
        self.owned = OwnedValues(self.lives, (v for v, own in zip(block.arguments, owned, strict=True) if own))
        pinned: list[Value] = []
        wanted: dict[Value, int] = {}
        turning: set[Value] = set()
        if carried is not None:
            turning = set(block.arguments[carried.start : carried.stop])
            pinned = block.arguments[carried.stop :]
            wanted = dict(zip(reversed(self.lives.results), reversed(carried)))  # noqa: B905  a while's test comes first
        self.held = {v for v in block.arguments if v not in self.owned and v not in turning}
        """Arguments that somebody else keeps alive anyway, so that it frees nothing to forget them."""
        self.frame = Frame(block.arguments, pinned, wanted)
        self.steps: list[Step] = []
        self.plan = BlockPlan()
        self.calls: set[Step] = set()

    def compile_into(self, plan: BlockPlan) -> None:
        """Fill `plan`."""
        self.plan = plan
        for argument in self.block.arguments:
            if argument not in self.lives.last:
                self.frame.release(argument)
        for at, operation in enumerate(self.block.operations):
            if operation in self.lives.skipped:
                continue
            if operation.op.is_constant:
                self._constant(operation)
            else:
                self._operation(at, operation)
        results = self.lives.results
        end = len(self.block.operations)
        times = Counter(results)
        plan.owned = tuple(times[v] == 1 and self.owned.is_free(v, end) for v in results)
        plan.finish(self.steps, self.frame.rest(), [self.frame.slot[v] for v in results], frozenset(self.calls))

    def _constant(self, operation: Operation) -> None:
        (made,) = operation.results
        if made not in self.lives.last:
            return
        content = kernel(operation, self.xp)()
        if isinstance(made.type, TensorType):
            content = read_only(content)
            self.functions.constants.append(content)
        self.frame.constant(made, content)

    def _operation(self, at: int, operation: Operation) -> None:
        operands = self.lives.operands(operation)
        dying = [v for v in dict.fromkeys(operands) if self.lives.last[v] == at]
        given_up = {v for v in dying if self.owned.is_free(v, at)}
        slots = [self.frame.slot[v] for v in operands]
        freed = {v: slot for v in dying if (slot := self.frame.release(v)) is not None}
        step = self._maker(operation.op)(operation, operands, slots, given_up)
        counted = [self.frame.slot[v] for v in operation.results if _may_be_large(v.type)]
        if counted and not operation.blocks and not operation.op.is_call:
            step = counted_step(step, counted)
        self.plan.where[step] = operation.location
        self.steps.append(step)
        unused = [v for v in operation.results if v not in self.lives.last]
        freed.update({v: slot for v in unused if (slot := self.frame.release(v)) is not None})
        forgotten = [v for v in freed if v not in self.held and worth_clearing(v)]
        clear = [freed[v] for v in forgotten if self.frame.is_free(freed[v])]
        if clear:
            self.steps.append(clear_step(list(dict.fromkeys(clear))))

    def _maker(self, op: OpDef) -> Callable[[Operation, list[Value], list[int], set[Value]], Step]:
        if op.is_branch:
            return self._cond
        if op.is_loop:
            return self._loop
        if op.is_try:
            return self._try
        return self._call if op.is_call else self._plain

    # ---- plain operations ------------------------------------------------------------------------------------------
    def _plain(self, operation: Operation, operands: list[Value], slots: list[int], given_up: set[Value]) -> Step:
        op, attributes = operation.op, operation.attributes
        low = is_low(operation)
        ufunc = bare_ufunc(op, self.xp, len(operands), attributes) if len(operation.results) == 1 and not low else None
        copied = isinstance(operation.op, Index) and self._outlives(operation.results[0], operands[0])
        for i, value in enumerate(operands):
            if copied or not keeps(operation, i, ufunc is not None):
                continue
            if shows(operation):
                self.owned.view(value, operation.results)
            else:
                self.owned.lose(value)
        if ufunc is not None:
            step = self._ufunc(ufunc, operation.results[0], operands, slots, given_up)
        elif hasattr(op, "eval_in_place") and not low and operands[0] in given_up and once(operands[0], operands):
            step = self._in_place(operation, slots)
        else:
            f = kernel(operation, self.xp)
            step = self._stored(operation, _copying(f) if copied else f, slots)
        handed = hands_over(operation) and operands[0] in given_up
        fresh = handed or copied
        self.owned.add(v for i, v in enumerate(operation.results) if fresh or makes(operation, i, ufunc is not None))
        return step

    def _outlives(self, part: Value, whole: Value) -> bool:
        """Return whether a part of an owned tensor is used when that is written in place: then the part is copied."""
        end = self.lives.last[whole]
        if whole not in self.owned or end >= len(self.block.operations) or self.lives.last.get(part, -1) < end:
            return False
        writer = self.block.operations[end]
        operands = self.lives.operands(writer)
        return hasattr(writer.op, "eval_in_place") and operands[0] is whole and once(whole, operands)

    def _ufunc(self, f: Any, made: Value, operands: list[Value], slots: list[int], given_up: set[Value]) -> Step:
        rank0 = self._rank0(made)  # NumPy needs longer to write into a 0-D array than to make one
        fits = [s for v, s in zip(operands, slots, strict=True) if v in given_up and v.type == made.type]
        into = fits[0] if fits and not rank0 else None
        return ufunc_step(f, slots, self.frame.place(made, into), into, rank0)

    def _in_place(self, operation: Operation, slots: list[int]) -> Step:
        grow = operation.op.eval_in_place  # type: ignore[attr-defined]
        return self._stored(operation, partial(grow, self.xp, **operation.attributes), slots)

    def _stored(self, operation: Operation, f: Any, slots: list[int]) -> Step:
        results = operation.results
        if len(results) != 1:
            outs = [self.frame.place(v, slots[0] if slots else None) for v in results]
            return several_step(f, slots, outs, [self._rank0(v) for v in results], self.xp)
        (made,) = results
        out = self.frame.place(made, slots[0] if slots else None)
        if _may_wrap(operation):
            return store_step(_unwrapping(f), slots, out, self.xp if self._rank0(made) else None)
        return store_step(f, slots, out, self.xp if self._rank0(made) else None)

    def _rank0(self, value: Value) -> bool:
        """Return whether NumPy may give a scalar where an array is due."""
        return self.xp is np and isinstance(value.type, TensorType) and value.type.rank == 0

    # ---- control flow ----------------------------------------------------------------------------------------------
    def _cond(self, operation: Operation, operands: list[Value], slots: list[int], given_up: set[Value]) -> Step:
        passed = operands[1:]
        flags = tuple(v in given_up and once(v, operands) for v in passed)
        then, other = (self.functions.block(block, flags) for block in operation.blocks)
        owned = tuple(a and b for a, b in zip(then.owned, other.owned, strict=True))
        self._passed(operation, passed, owned)
        outs = [self.frame.place(v) for v in operation.results]
        return cond_step(then, other, slots[0], slots[1:], outs)

    def _try(self, operation: Operation, operands: list[Value], slots: list[int], given_up: set[Value]) -> Step:
        flags = tuple(v in given_up and once(v, operands) and may_write(operation, i) for i, v in enumerate(operands))
        body = self.functions.block(operation.blocks[0], flags)
        handler = self.functions.block(operation.blocks[1], (False,) * len(operation.blocks[1].arguments))
        types = [v.type for v in operation.results]
        owned = tuple(a and (b or isinstance(t, (TensorType, ListType)))
                      for a, b, t in zip(body.owned, handler.owned, types, strict=True))  # fmt: skip
        copied = [i for i, own in enumerate(owned) if own and not handler.owned[i]]
        self._passed(operation, operands, owned)
        outs = [self.frame.place(v) for v in operation.results]
        count = len(operation.blocks[1].arguments) - len(operands)
        return try_step(body, handler, partial(handed_over, **operation.attributes, count=count), slots, outs, copied)

    def _loop(self, operation: Operation, operands: list[Value], slots: list[int], given_up: set[Value]) -> Step:
        count, counted = operation.attributes["carried"], operation.op.is_counted
        passed = operands[1:]
        free = [v in given_up and once(v, operands) for v in passed[:count]]
        carried = operation.blocks[0].arguments[int(counted) :]
        assumed = tuple(
            own or isinstance(v.type, ListType) or is_written(operation.blocks[0], v)
            for own, v in zip(free, carried, strict=False)
        )
        body, assumed = self._body(operation.blocks[0], assumed, len(passed), counted)
        copied = [i for i, own in enumerate(assumed) if own and not free[i]]
        self._passed(operation, passed, assumed)
        outs = [self.frame.place(v) for v in operation.results]
        cleared = [slots[i + 1] for i, v in enumerate(passed[:count]) if v in given_up and free[i] and assumed[i]]
        if counted:
            return for_step(body, slots[0], operation.attributes["reverse"], slots[1:], outs, copied, cleared)
        return while_step(body, slots[0], slots[1:], outs, copied, cleared)

    def _body(self, block: Block, assumed: Flags, passed: int, counted: bool) -> tuple[BlockPlan, Flags]:
        """Compile the body of a loop; a carried value is owned in it when it is so in every iteration."""
        count, first = len(assumed), int(counted)
        while True:
            flags = (False,) * first + assumed + (False,) * (passed - count)
            body = self.functions.block(block, flags, range(first, first + count))
            kept = tuple(a and b for a, b in zip(assumed, body.owned[1 - first :], strict=True))
            if kept == assumed:
                return body, assumed
            assumed = kept

    def _call(self, operation: Operation, operands: list[Value], slots: list[int], given_up: set[Value]) -> Step:
        name = operation.attributes["function"]
        function = self.functions.function(name, tuple(v in given_up and once(v, operands) for v in operands))
        self._passed(operation, operands, function.owned or (False,) * len(operation.results))
        outs = [self.frame.place(v) for v in operation.results]
        step = call_step(function, name, slots, outs)
        self.calls.add(step)
        return step

    def _passed(self, operation: Operation, passed: Sequence[Value], owned: Flags) -> None:
        """Note which results are owned; when one is not, it may be a view of any operand."""
        types = [v.type for v in operation.results]
        seen = [
            v for v, own in zip(operation.results, owned, strict=True) if not own and not isinstance(v.type, ScalarType)
        ]
        for value in passed:
            if any(map(is_container, types)):
                self.owned.lose(value)
            elif seen:
                self.owned.view(value, seen)
        self.owned.add(v for v, own in zip(operation.results, owned, strict=True) if own)


def _copying(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return `f` with a copy of its result, which may be a view."""

    def copy(*operands: Any) -> Any:
        return f(*operands).copy()

    return copy


def _may_be_large(t: Type) -> bool:
    """Return whether values of a type may take memory that is to be counted."""
    if isinstance(t, TensorType) and all(isinstance(e, int) for e in t.shape):
        return math.prod(e for e in t.shape if isinstance(e, int)) * t.dtype.itemsize >= SMALL
    return isinstance(t, (ListType, TensorType))


def _unwrapping(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return `f` for an op whose one result may come in a tuple."""

    def first(*operands: Any) -> Any:
        return single(f(*operands))

    return first


def _may_wrap(operation: Operation) -> bool:
    """Return whether `eval` may give its one result in a tuple: where the number of results varies."""
    inferred = operation.op.infer_operation(
        [v.type for v in operation.operands], operation.attributes, operation.blocks
    )
    return isinstance(inferred, tuple)
