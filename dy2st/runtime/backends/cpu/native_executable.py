"""A Program as native code that is ready to run, in the place of a `Plan`."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from dy2st.forks import Locked
from dy2st.ir.program import Program
from dy2st.ir.types import ScalarType, TensorType
from dy2st.runtime.aot_cache.artifacts import Artifact, cached, made, note_program
from dy2st.runtime.aot_cache.program_artifacts import fingerprint_of
from dy2st.runtime.backends.cpu import runtime_library_symbols
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import INTERRUPTED, OK
from dy2st.runtime.backends.cpu.compile_link.code_loader import load
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import function_name, in_registers, kinds
from dy2st.runtime.backends.cpu.opt_level import Haste
from dy2st.runtime.backends.cpu.precompile import precompiled
from dy2st.runtime.backends.cpu.python_abi import cpython_symbols, helpers, interrupts, kept_values
from dy2st.runtime.backends.cpu.python_abi.deoptimize import deoptimize
from dy2st.runtime.backends.cpu.python_abi.host_callbacks import (
    HostCallback,
    NoNativeForm,
    Row,
    decode,
    encode,
    unshared,
    write_row,
)
from dy2st.runtime.backends.cpu.python_abi.kept_values import is_kept, opened
from dy2st.runtime.backends.cpu.python_abi.run_contexts import RunContext
from dy2st.runtime.backends.cpu.thread_pool import pool as pool  # code that was cached finds what it provides
from dy2st.runtime.backends.donation import DonatedInputs
from dy2st.runtime.interpreter.planned import Plan, compile_plan
from dy2st.shapes import Shape

if TYPE_CHECKING:
    from dy2st.runtime.backends.cpu.emitter.function_emitter import EmitterContext

_MOST_FREE, _MOST_HELD = 64, 1 << 16
"""How many contexts wait for the next call; more threads than that at once make contexts of their own. Where values are
kept for a derivative, how many calls' may be at a time."""


class NotCached(Exception):
    """No earlier process, nor this one, has cached the code that is asked for."""


class CallbackNote:
    """What there is to say of a host callback without making it."""

    __slots__ = ("effect", "in_loop", "name", "rare")

    def __init__(self, name: str, rare: bool, in_loop: bool, effect: bool):
        self.name, self.rare, self.in_loop, self.effect = name, rare, in_loop, effect


class _HostCallbacks:
    """The host callbacks of a plan, which are made when the first one is needed: most runs need none."""

    def __init__(self, plan: NativePlan):
        self._plan = plan

    def __getitem__(self, number: int) -> HostCallback:
        return self._plan.unit.calls[number]


class NativePlan(Locked):
    """Native code of a Program. Any number of threads may run it at once."""

    def __init__(
        self,
        program: Program,
        *,
        strict: bool = False,
        quick: bool = False,
        haste: Haste | Callable[[], Haste] = "none",
        only_cached: bool = False,
    ):
        began = time.perf_counter()
        self.program, self._strict = program, strict
        known = fingerprint_of(program)
        self._unit: EmitterContext | None = None
        self._recipe = None if known is None else f"program {known}{' strict' * strict}"
        found = cached(self._recipe)
        self.is_quick = quick and found is None
        """Whether this is baseline code, which `improve` replaces."""
        self._haste: Haste | Callable[[], Haste] = haste if self.is_quick else "none"
        product, self.was_cached = self._product(only_cached) if found is None else (found, True)
        notes, self._arrays = product.notes, product.arrays
        self._notes = [CallbackNote(*note) for note in notes["calls"]]
        self._direct: bool = notes["direct"]
        self._code = load(product.binary, of_one=True)
        self._run_rows = self._row_function()
        self._renews = bool(program.renewed)
        self._arguments, self._results = program.argument_types, program.result_types
        self._width = sum(len(kinds(t)) for t in self._results)
        self._constants = _words([array.ctypes.data for array in self._arrays])
        self._library = _words(self._kernels(notes))
        super().__init__()
        self._contexts: dict[int, RunContext] = {}
        self._keeps = any(is_kept(program, i, t) for i, t in enumerate(program.result_types))
        self._most = _MOST_HELD if self._keeps else _MOST_FREE
        self._stack = np.zeros(self._most + 1, np.uint64)
        low = any("bfloat16" in str(t) for t in (*self._arguments, *self._results))
        self._plate = np.array(
            [0, self._stack.ctypes.data, *cpython_symbols.addresses(low), helpers.given_back(), *self._kept_words()]
            if self._direct
            else [0, 0],
            np.uint64,
        )
        for _ in range(2 * self._direct):
            self._free(self._context())
        self.call: Callable[..., Any] = self._function() if self._direct else _takes_nothing
        """Runs on inputs one by one. It gives the list of results; False, before anything is done, where it does not
        take an input as it is; or what `ended` makes results of."""
        self._interpreted: Plan | None = None
        self.elsewhere = 0
        """How many runs the interpreter took over."""
        self._peak = 0
        self.seconds = time.perf_counter() - began

    def _product(self, only_cached: bool = False, *, beside: bool = False) -> tuple[Artifact, bool]:
        """Return the code and what belongs to it, and whether it was cached; NotCached where it has to be.

        What is made `beside` runs of the same Program leaves them CPUs.
        """

        def make() -> Artifact:
            if only_cached:
                raise NotCached
            note_program()
            haste = self._haste() if callable(self._haste) else self._haste
            with nullcontext() if beside else precompiled(self.program, self._strict, haste):
                from dy2st.runtime.backends.cpu.compile import product

                return product(self.program, self._lowered(), quick=self.is_quick, haste=haste, beside=beside)

        return made(f"{self._recipe} quick" if self.is_quick and self._recipe is not None else self._recipe, make)

    def _lowered(self) -> EmitterContext:
        from dy2st.runtime.backends.cpu.compile import lowered

        if self._unit is None:
            self._unit = lowered(self.program, self._strict)
        return self._unit

    def _kernels(self, notes: dict[str, Any]) -> list[int]:
        """Return where the kernels of the library stand that the code calls."""
        return [runtime_library_symbols.address(name, self._strict, haste=notes["haste"]) for name in notes["library"]]

    def improve(self) -> None:
        """Make the code of `quick` anew, as good as it gets; it gives the same bits. Runs take it when it is there."""
        if not self.is_quick:
            return
        self.is_quick, self._haste = False, "none"
        product, _ = self._product(beside=True)
        self._code = load(product.binary, of_one=True)
        self._library[: len(product.notes["library"])] = self._kernels(product.notes)
        self._run_rows = self._row_function()
        if self._direct:
            self.call = self._function()

    @property
    def unit(self) -> EmitterContext:
        """What the code was made from; written again where the code was cached by an earlier process."""
        unit = self._unit
        if unit is None:
            unit = self._lowered()
            if [call.name for call in unit.calls] != [note.name for note in self._notes]:
                raise RuntimeError("native code was kept of another Program; remove the folder of DY2ST_CACHE_DIR")
        return unit

    @property
    def host_calls(self) -> list[CallbackNote]:
        """The operations that every run leaves to their `eval`, in Python."""
        return [note for note in self._notes if note.name and not note.rare]

    @property
    def plans(self) -> tuple[NativePlan, ...]:
        """Only this plan: native code in one version."""
        return (self,)

    @property
    def peak(self) -> int:
        """The most bytes that a run held at a time, beside its inputs: the last one, or one that ran beside it."""
        return max([self._peak, *(context.peak for context in list(self._contexts.values()))])

    @property
    def is_worth_it(self) -> bool:
        """Whether native code is likely to be faster than a plan: calls back into Python take longer than its steps."""
        return not any(note.in_loop and not note.effect for note in self.host_calls)

    def _function(self) -> Any:
        """Return the builtin function; it finds a context that is free on the plate."""
        return cpython_symbols.builtin_function(
            self._code.address("dy2st.call"), "dy2st", self._plate, self._code.owner
        )

    def _row_function(self) -> Any:
        """Return the Program's function, from rows of components to a row of components."""
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        made: Any = kind(self._code.address(function_name(self.program.entry)))
        made.owner = self._code.owner  # who calls it holds the code then
        return made

    def _kept_words(self) -> list[int]:
        return [
            helpers.address("gone"),
            ctypes.addressof(kept_values.NAME),
            id(self._contexts),
            helpers.address("trim"),
        ]

    def _context(self) -> RunContext:
        context = RunContext(_HostCallbacks(self), self._constants.ctypes.data, self._library.ctypes.data)
        self._contexts[context.run.number] = context
        return context

    def _free(self, context: RunContext) -> None:
        with self._lock:
            if self._direct and self._plate[0] < self._most:
                helpers.push(self._plate.ctypes.data, context.address)
            else:
                del self._contexts[context.run.number]

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Run on arrays, numbers, lists and variants; return the results of the entry function."""
        made = (
            self.call(*inputs, inputs.alone) if self._renews and type(inputs) is DonatedInputs else self.call(*inputs)
        )
        if type(made) is list:
            return made
        return self._by_rows(inputs) if made is False else self.ended(made, inputs)

    def attempt(self, inputs: Sequence[Any]) -> list[Any] | None:
        """Run on inputs that the builtin function takes as they are; None, before anything is done, for others."""
        made = (
            self.call(*inputs, inputs.alone) if self._renews and type(inputs) is DonatedInputs else self.call(*inputs)
        )
        if type(made) is list:
            return made
        return None if made is False else self.ended(made, inputs)

    @property
    def latest(self) -> NativePlan:
        """The version that ran last: this one."""
        return self

    def ended(self, made: int, inputs: Sequence[Any]) -> list[Any]:
        """Do what follows a run for which `call` gave a number: raise its error, or run on the interpreter."""
        return self._ended(made & 3, self._contexts[made >> 2], inputs)

    def _ended(self, status: int, context: RunContext, inputs: Sequence[Any]) -> list[Any]:
        """Do what follows a run that did not end well: raise its error, or run it on the interpreter."""
        run = context.run
        error, done, interruption = run.error, run.done(), context.interruption()
        context.clear()
        self._free(context)
        if status >= INTERRUPTED:
            interrupts.raise_kept(interruption)
        if error is not None:
            handled = error.__context__
            try:
                raise error
            finally:
                error.__context__ = handled  # `raise` has put there what the caller is handling
        if done:
            self.elsewhere += 1
            return deoptimize(self.program, opened(self._arguments, inputs), done)
        return self._elsewhere(inputs)

    def _elsewhere(self, inputs: Sequence[Any]) -> list[Any]:
        self.elsewhere += 1
        inputs = opened(self._arguments, inputs)
        if self._interpreted is None:
            self._interpreted = compile_plan(self.program)
        return self._interpreted.run(inputs)

    # ---- arguments and results that the builtin function does not take ---------------------------------------------
    def _by_rows(self, inputs: Sequence[Any]) -> list[Any]:
        refuse_another_count(self.program, inputs)
        if self._direct and self._keeps and not self._plate[0] and len(self._contexts) < self._most:
            self._free(self._context())  # the others are with what is kept
            return self.run(inputs)
        inputs = opened(self._arguments, inputs)
        context, keep = self._context(), list[Any]()
        row = self._row(inputs, context, keep)
        if row is None:
            del self._contexts[context.run.number]
            return self._elsewhere(inputs)
        given, made = _words([0] * len(row)), _words([0] * self._width)
        write_row(row, given.ctypes.data)
        status = self._run_rows(context.address, given.ctypes.data, made.ctypes.data)
        if status != OK:
            return self._ended(status, context, inputs)
        results: list[Any] = []
        address = made.ctypes.data
        for t in self._results:
            value, address = decode(t, address)
            results.append(unshared(t, value))
        self._peak = context.peak
        del self._contexts[context.run.number]
        return results

    def _row(self, inputs: Sequence[Any], context: RunContext, keep: list[Any]) -> Row | None:
        """Return the components of the inputs; None where they are not what the types say."""
        row: Row = []
        bound: dict[Any, int] = {}
        for t, value in zip(self._arguments, inputs, strict=True):
            if isinstance(t, TensorType) and not in_registers(t):
                array = np.ascontiguousarray(value, dtype=t.dtype.numpy).reshape(np.shape(value))
                if array.ndim != t.rank or not _fit(t.shape, array.shape, bound):
                    return None
                keep.append(array)
                row += [("ptr", 0), ("ptr", array.ctypes.data), *(("i64", e) for e in array.shape)]
                continue
            if isinstance(t, ScalarType) and t.extent is not None and not _fit((t.extent,), (value,), bound):
                return None
            try:
                row += encode(t, value, context.run.copied)
            except NoNativeForm:
                return None
        return row


def _takes_nothing(*_: Any) -> bool:
    """Stand in for the builtin function of code that has none."""
    return False


def refuse_another_count(program: Program, inputs: Sequence[Any]) -> None:
    """Raise ValueError for more or fewer inputs than a Program takes."""
    if len(inputs) != len(program.argument_types):
        names = [v.name for v in program.block.arguments]
        raise ValueError(f"the Program takes {len(names)} inputs {names}, not {len(inputs)}")


def _words(values: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return eight-byte words, at least one."""
    return np.array([*values] or [0], np.uint64)


def _fit(shape: Shape, given: Sequence[int], bound: dict[Any, int]) -> bool:
    """Return whether extents are those of a type, and equal symbols mean equal numbers."""
    for declared, found in zip(shape, given, strict=True):
        if isinstance(declared, int):
            if declared != found:
                return False
        elif bound.setdefault(declared, found) != found:
            return False
    return True
