"""Writes the blocks of a function, step by step, and calls back into Python.

Rules write one operation each; an operation without a rule is a call back into Python (host_callbacks.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from dy2st.ir.opdef import lookup
from dy2st.ir.program import Block, Operation, Program, Value, tensor_type
from dy2st.ir.types import Type
from dy2st.records import field, record
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import LIBRARY
from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.emitter.host_calls import NoFormWithoutPython, beyond, host_call
from dy2st.runtime.backends.cpu.emitter.outlined_helpers import into_python
from dy2st.runtime.backends.cpu.emitter.value_storage import ValueStorage
from dy2st.runtime.backends.cpu.fusion.concat_writes import joins_of, regions_of
from dy2st.runtime.backends.cpu.fusion.dead_fills import unfilled
from dy2st.runtime.backends.cpu.fusion.epilogues import Epilogue
from dy2st.runtime.backends.cpu.fusion.grouping import schedule
from dy2st.runtime.backends.cpu.fusion.horizontal_fusion import HorizontalGroup, Step, last_uses, read_by
from dy2st.runtime.backends.cpu.fusion.in_place_updates import FinalBlock, Next, branches, overwritten, with_cond_last
from dy2st.runtime.backends.cpu.fusion.index_maps import AxisMap, FusedGroup
from dy2st.runtime.backends.cpu.fusion.scalarized import is_in_registers
from dy2st.runtime.backends.cpu.fusion.view_copies import copied_views
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction, LLVMModule
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import (
    Components,
    StridedTensor,
    TensorInRegisters,
    as_part,
    in_registers,
    is_small,
    kinds,
    zeros,
)
from dy2st.runtime.backends.cpu.python_abi import ufunc_loops
from dy2st.runtime.backends.cpu.python_abi.host_callbacks import HostCallback

Rule = Callable[["FunctionEmitter", Operation, list[Components]], Sequence[Components]]
GroupRule = Callable[..., Sequence[Components]]
"""Writes the run of a group or of several: (writer, group, operands), and memory that is there for results."""


@record
class EmitterContext:
    """What the functions of one Program share while they are written."""

    program: Program
    target: Target
    rule_of: Callable[[str], Rule | None]
    """Gives the rule of an op; None where its `eval` is called."""
    reads_gaps: Callable[[str], bool]
    """Says whether the rule of an op reads tensors with gaps."""
    carries: Callable[[str], bool]
    """Says whether the rule of an op takes small tensors as they are; for the others they stand in memory."""
    group_rule: GroupRule
    small_rule: Rule
    """Writes what `is_in_registers`."""
    room_rule: Rule
    """Writes memory for what is filled for nobody (dead_fills.py)."""
    look_after: Callable[[FunctionEmitter, Step], None]
    """Writes a look at Python after a step that may take long (safepoints.py)."""
    module: LLVMModule = field(default_factory=LLVMModule)
    """The functions of the Program."""
    kernels: LLVMModule = field(default_factory=LLVMModule)
    """What they call: loop nests, lists, blocks of memory."""
    calls: list[HostCallback] = field(default_factory=list[HostCallback])
    library: list[str] = field(default_factory=list[str])
    """The library kernels that the code calls; the context has their addresses in this order."""
    constants: list[np.ndarray[Any, Any]] = field(default_factory=list["np.ndarray[Any, Any]"])
    standalone: bool = False
    """Whether no Python is there when the code runs (standalone.py)."""

    @property
    def takes_long(self) -> bool:
        """Whether some kernel may be split between threads: then it may have given Python's lock away."""
        shared = ("dy2st.parallel", "dy2st.share")
        return bool(self.library) or any(name in module for name in shared for module in (self.kernels, self.module))


class NeedsPython(Exception):
    """What is to run beside other threads would always call Python."""


class PackedOperand(NamedTuple):
    """A matrix that a loop keeps packed: slots for its block, and for which way the next product goes through it."""

    block: str
    orientation: str


class FunctionEmitter(ValueStorage):
    """Writes the blocks of one function of a Program."""

    def __init__(self, unit: EmitterContext, f: LLVMFunction):
        super().__init__(f, unit.kernels)
        self.unit, self.module = unit, unit.module
        self.loops = 0
        """How many loops are around what is being written."""
        self.alone = False
        """Whether what is written runs without Python: the interpreter takes over where it is to be called."""
        self.overwrites = False  # whether some argument has been written into
        self.unlooked = 0
        """How many steps were written that no look at Python has followed yet."""
        self._unlikely, self._only_raises = 0, False
        self.env: dict[Value, Components] = {}
        """The components of the values of the block that is being written."""
        self.packed: dict[tuple[Value, bool], PackedOperand] = {}
        """Matrices that loops keep packed, by `transpose_y` (prepacked_weights.py)."""
        self.ahead: dict[Operation, Any] = {}
        """The windows of products made for several iterations of a loop together (input_projection_batching.py)."""
        self.later: dict[Operation, Any] = {}
        """What is put by of products that are added after several iterations of a loop (deferred_accumulation.py)."""
        self.joins: dict[Value, Operation] = {}
        """What loop nests write where it belongs, with what it is joined by, or set into (concat.py)."""
        end = FinalBlock.of_program(unit.program)
        self.ends = {} if end is None else {end.block: end}
        """The blocks that end a run (in_place_updates.py)."""
        self.copies: set[Value] = set()
        """Parts of tensors that are copied at once (view_copies.py)."""
        self.overwritten: Next = {}
        """What loop nests may write into the memory of arguments (buffer_donation.py)."""
        self.joined: dict[Operation, Components] = {}
        """The memory of tensors whose parts are being written."""
        self.held: set[Value] = set()
        """The values that the block that is being written holds."""
        self.unfilled: frozenset[Value] = frozenset()
        """What is filled for nobody in the block that is being written."""
        self.at: Step | None = None
        """The step that is being written."""

    # ---- blocks ------------------------------------------------------------------------------------------------------
    def block(self, block: Block, arguments: Sequence[tuple[Components, bool]]) -> list[Components]:
        """Write a block. Arguments come with whether the block is to hold them; the caller holds the results."""
        outer = self._dying, self._used, self.env, self.held, self.unfilled
        steps, self.unfilled = self._steps_of(block), unfilled(block)
        self.joins.update({**joins_of(steps, block.results), **regions_of(steps, block.results)})
        self.copies |= copied_views(steps, block.results)
        env, held = self._entering(block.arguments, arguments)
        self.env, self.held = env, held
        self._used = last = last_uses(steps, block.results)
        for value in [v for v in block.arguments if v in held and v not in last]:
            self.release(value.type, env[value])
            held.discard(value)
        for at, step in enumerate(steps):
            self.f.cut()
            operation = step.product if isinstance(step, Epilogue) else step
            if self._may_overwrite(step):  # nothing behind it is to ask for memory, or to end the run
                self.overwrites = True
                self._copy_views([v for v in env if last.get(v, at) > at], env)
            if isinstance(operation, Operation) and not self._reads_gaps(operation):
                self._copy_views(operation.operands, env)
            used = list(dict.fromkeys(read_by(step)))
            self._dying = {v for v in used if last[v] == at and v in held}
            dying = set(self._dying)
            made = self._step(step, [env[v] for v in step.operands])
            for value, components in zip(step.results, made, strict=True):
                env[value] = components
                held.add(value)
                if value not in last:
                    self.release(value.type, components)
                    held.discard(value)
            held -= dying
            self.unit.look_after(self, step)
        self._copy_views(block.results, env)
        self._dying, self._used, self.env, self.held, self.unfilled = outer
        return self._results(block.results, env, held)

    def _steps_of(self, block: Block) -> list[Step]:
        """Return the steps of a block; note what its last nests may overwrite, and which branches end a run too."""
        end = self.ends.get(block)
        if end is None:
            return schedule(block, self.ahead)
        steps = with_cond_last(end, schedule(block, self.ahead, end.renewed))
        self.overwritten.update(overwritten(end, steps))
        self.ends.update((inner.block, inner) for inner in branches(end, steps))
        return steps

    def _reads_gaps(self, operation: Operation) -> bool:
        """Return whether an operation takes tensors with gaps; a join of parts that stand in place reads none."""
        return self.unit.reads_gaps(operation.op.name) or operation in self.joined

    def _may_overwrite(self, step: Step) -> bool:
        """Return whether a step may write into the memory of arguments."""
        blocks = step.blocks if isinstance(step, Operation) else ()
        return not self.overwritten.keys().isdisjoint(step.results) or any(b in self.ends for b in blocks)

    def _entering(
        self, values: Sequence[Value], arguments: Sequence[tuple[Components, bool]]
    ) -> tuple[dict[Value, Components], set[Value]]:
        """Return a block's arguments as their types have them, and those that the block holds."""
        env: dict[Value, Components] = {}
        held: set[Value] = set()
        for value, (components, own) in zip(values, arguments, strict=True):
            env[value] = self.fitted(value.type, components, own)
            if own or env[value] is not components:
                held.add(value)
        return env, held

    def _step(self, step: Step, operands: list[Components]) -> Sequence[Components]:
        dying, outer, self._twice = set(self._dying), self._twice, _more_than_once(step.operands)
        around, self.at = self.at, step
        if isinstance(step, (FusedGroup, HorizontalGroup, Epilogue)):
            made = self.unit.group_rule(self, step, operands)
        elif is_in_registers(step):
            made = self.unit.small_rule(self, step, operands)
        elif not self.unfilled.isdisjoint(step.results):
            made = self.unit.room_rule(self, step, operands)
        else:
            rule = self.unit.rule_of(step.op.name)
            if rule is None or self.unit.carries(step.op.name):
                made = (rule or host_rule)(self, step, operands)
            else:
                made = self._step_in_memory(rule, step, operands)
        self._twice, self.at = outer, around
        made = [self._result(v, c) for v, c in zip(step.results, made, strict=True)]
        for value, components in zip(step.results, made, strict=True):
            if len(components) != len(kinds(value.type)):
                raise AssertionError(f"{step} gave {components} for {value.type}")
        for value, components in dict(zip(step.operands, operands, strict=True)).items():
            if value in dying and self.takes(value):
                self.release(value.type, components)
        return made

    def _result(self, value: Value, components: Components) -> Components:
        """Return a result as its type has it; one that nobody reads may have no memory, and is not read here either."""
        if self.is_used(value) or isinstance(components, TensorInRegisters) or not is_small(value.type):
            return self.fitted(value.type, components)
        self.release(as_part(value.type), components)
        return zeros(value.type)

    def _step_in_memory(self, rule: Rule, step: Operation, operands: list[Components]) -> Sequence[Components]:
        """Write an operation by a rule that knows tensors in memory, on copies of small tensors there."""
        small = {v: c for v, c in zip(step.operands, operands, strict=True) if isinstance(c, TensorInRegisters)}
        if not small:
            return rule(self, step, operands)
        apart = {v: Value(as_part(v.type), v.block) for v in small}
        at_once = all(in_registers(v.type) for v in step.results)  # nothing of the copies is left then
        memory = {apart[v]: self.on_stack(c) if at_once else self.fitted(apart[v].type, c) for v, c in small.items()}
        dying = self._dying
        self._dying = {*(dying - set(small)), *(() if at_once else memory)}
        values = [apart.get(v, v) for v in step.operands]
        self._twice = _more_than_once(values)
        copy = Operation(step.op, values, step.attributes, step.blocks, step.location)
        copy.results = step.results
        for notes in (self.ahead, self.later):
            if step in notes:
                notes[copy] = notes[step]
        self.packed.update({(apart[v], swap): kept for (v, swap), kept in self.packed.items() if v in apart})
        made = rule(self, copy, [memory.get(v, c) for v, c in zip(values, operands, strict=True)])
        for value in [v for v in memory if self.takes(v)]:
            self.release(value.type, memory[value])
        dying &= {*self._dying, *small}
        self._dying = dying
        return made

    def _copy_views(self, values: Sequence[Value], env: dict[Value, Components]) -> None:
        """Write copies of tensors that have gaps, for those who cannot read them."""
        for value in values:
            components = env[value]
            if isinstance(components, StridedTensor):
                env[value] = self.copied(value, components)
                if value in self.held:
                    self.release(value.type, components)
                self.held.add(value)  # the copy, where somebody else holds what it is of

    def copied(self, value: Value, components: Components) -> Components:
        """Write a copy of a tensor, without gaps."""
        copy = Operation(lookup("detach"), [value], {}, [], None)
        made = Value(value.type, value.block, copy)
        copy.results.append(made)
        every: AxisMap = tuple(range(tensor_type(value).rank))
        maps: dict[Value, AxisMap] = {value: every, made: every}
        group = FusedGroup(tensor_type(value).shape, len(every) - 1, [copy], maps, operands=[value], results=[made])
        dying, self._dying = self._dying, set()
        (result,) = self.unit.group_rule(self, group, [components])
        self._dying = dying
        return result

    def _results(self, results: Sequence[Value], env: dict[Value, Components], held: set[Value]) -> list[Components]:
        given: list[Components] = []
        for value in results:
            if value in held:
                held.discard(value)
            else:
                self.retain(value.type, env[value])
            given.append(env[value])
        return given

    # ---- calls -------------------------------------------------------------------------------------------------------
    def library(self, name: str) -> str:
        """Write a read of the address of a library kernel."""
        if self.unit.standalone and name.startswith(ufunc_loops.PREFIX) and self.at is not None:
            raise NoFormWithoutPython(beyond(self.at))
        if name not in self.unit.library:
            self.unit.library.append(name)
        table = self.f.load("ptr", self.f.offset("%context", LIBRARY))
        return self.f.load("ptr", self.f.offset(table, 8 * self.unit.library.index(name)))

    @contextmanager
    def unlikely(self, condition: str, hint: str) -> Iterator[None]:
        """Write what runs only where something is wrong; what calls into Python give is not there behind it."""
        self._unlikely += 1
        outer, self._only_raises = self._only_raises, True
        with self.f.when(condition, hint):
            yield
        self._only_raises = outer
        self._unlikely -= 1

    def host(self, call: HostCallback, operands: Sequence[Components]) -> list[Components]:
        """Write a call into Python; the results are held by who called."""
        if self.alone:
            return self._elsewhere_instead(call)
        if self.unit.standalone and not self._unlikely and not (call.operation and call.operation.op.is_raise):
            raise NoFormWithoutPython(call)
        number = len(self.unit.calls)
        call.rare |= self._unlikely > 0
        call.in_loop = self.loops > 0
        self.unit.calls.append(call)
        f, width = self.f, sum(len(kinds(t)) for t in call.results)
        row = f.slot("i64", width) if width else "null"
        given = [part for t, value in zip(call.operands, operands, strict=True) for part in self._parts(t, value)]
        name = into_python(self.unit.kernels, [kind for kind, _ in given])
        parts = [f"{kind} {value}" for kind, value in given]
        self.check(f.call("i32", name, "ptr %context", f"i64 {number}", f"ptr {row}", *parts))
        results: list[Components] = []
        at = 0
        for t in call.results:
            results.append(zeros(t) if self._only_raises else self.read(row, t, at))
            at += len(kinds(t))
        return results

    def demand(self, condition: str) -> None:
        """Write that the interpreter takes over where a condition does not hold; without Python that ends the run."""
        if self.alone or self.at is None or not self.unit.standalone:
            super().demand(condition)
            return
        with self.unlikely(self.f.value(f"xor i1 {condition}, true"), "beyond"):
            self.host(beyond(self.at), [])

    def _elsewhere_instead(self, call: HostCallback) -> list[Components]:
        """Write that the interpreter runs the Program; nothing here needs to write what follows."""
        if not self._unlikely:
            raise NeedsPython(call.name)
        self.demand("false")
        return [zeros(t) for t in call.results]

    def _parts(self, t: Type, components: Components) -> Iterable[tuple[str, str]]:
        """Return the components of a value with their LLVM types."""
        return zip(kinds(t), self.fitted(t, components), strict=True)

    def guarded(
        self, operation: Operation, operands: Sequence[Components], condition: str,
        fast: Callable[[], Sequence[Components]],
    ) -> list[Components]:  # fmt: skip
        """Write `fast` for where a condition holds, and a call of the op's `eval` for where it does not.

        `eval` raises the error that the user is to see; where it does not raise, its results are taken.
        """
        f, types = self.f, [v.type for v in operation.results]
        kept = [self.slots(t) for t in types]
        quick, slow, join = f.label("quick"), f.label("slow"), f.label("join")
        dying = set(self._dying)
        f.branch(condition, quick, slow)
        f.start(quick)
        for slots, value, made in zip(kept, operation.results, fast(), strict=True):
            self.put(slots, value.type, self._result(value, made))
        f.jump(join)
        f.start(slow)
        self._unlikely += 1
        outer, self._only_raises = self._only_raises, False
        for slots, t, made in zip(kept, types, self.host(host_call(operation), operands), strict=True):
            self.put(slots, t, made)
        self._only_raises = outer
        self._unlikely -= 1
        for value, components in dict(zip(operation.operands, operands, strict=True)).items():
            if value in dying and value not in self._dying:
                self.release(value.type, components)
        f.start(join)
        return [self.get(slots, t) for slots, t in zip(kept, types, strict=True)]


def host_rule(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Sequence[Components]:
    """Write an operation as a call of its `eval`."""
    return w.host(host_call(operation), operands)


def _more_than_once(values: Sequence[Value]) -> set[Value]:
    return {v for v, count in Counter(values).items() if count > 1}
