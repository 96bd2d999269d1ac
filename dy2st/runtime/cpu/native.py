"""A Program as native code that is ready to run, in the place of a `Plan`."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from dy2st.ir.program import Program
from dy2st.ir.types import ListType, ScalarType, TensorType, TupleType, Type, VariantType
from dy2st.ops.bundle import Bundle
from dy2st.runtime.cpu.contexts import Contexts
from dy2st.runtime.cpu.engine import compile_text
from dy2st.runtime.cpu.host import ELSEWHERE, OK, HEAD, Row, Run, Running, decode, encode, write_row
from dy2st.runtime.cpu.lowering import lower, prepared
from dy2st.runtime.cpu.memory import CONSTANTS, RUN
from dy2st.runtime.cpu.representation import kinds
from dy2st.runtime.cpu.target import current_target
from dy2st.runtime.plan import compile_plan


class NativePlan:
    """Native code of a Program. Any number of threads may run it at once."""

    def __init__(self, program: Program):
        self.program, self.target = program, current_target()
        self.unit = lower(prepared(program), self.target)
        self.text = self.unit.module.text()
        self._code = compile_text(self.text, self.target)
        kind = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        self._entry = kind(self._code.address(f"dy2st.f.{program.entry}"))
        self._arguments = [v.type for v in program.block.arguments]
        self._results = [v.type for v in program.block.results]
        self._width = sum(len(kinds(t)) for t in self._results)
        self._table = (ctypes.c_uint64 * max(1, len(self.unit.constants)))(*(c.ctypes.data for c in self.unit.constants))
        self._contexts = Contexts()
        self._interpreted: Any = None

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Run on arrays, numbers, lists and variants; return the results of the entry function."""
        names = [v.name for v in self.program.block.arguments]
        if len(inputs) != len(names):
            raise ValueError(f"the Program takes {len(names)} inputs {names}, not {len(inputs)}")
        with self._contexts.one() as context:
            run = Run(self.unit.calls, context.allocate)
            keep: list[Any] = []
            try:
                row = self._row(inputs, context, keep)
            except _Unfit:
                return self._elsewhere(inputs)
            given = (ctypes.c_uint64 * max(1, len(row)))()
            made = (ctypes.c_uint64 * max(1, self._width))()
            write_row(row, ctypes.addressof(given))
            context[CONSTANTS] = ctypes.addressof(self._table)
            with Running(run) as number:
                context[RUN] = number
                status = self._entry(context.address, ctypes.addressof(given), ctypes.addressof(made))
            if status == OK:
                return self._read(ctypes.addressof(made), context)
            if run.error is not None:
                raise run.error
        if status == ELSEWHERE and not run.effects:
            return self._elsewhere(inputs)
        raise RuntimeError("a native run ended in the middle, after it had printed")

    def _elsewhere(self, inputs: Sequence[Any]) -> list[Any]:
        if self._interpreted is None:
            self._interpreted = compile_plan(self.program)
        return self._interpreted.run(inputs)

    def _row(self, inputs: Sequence[Any], context: Any, keep: list[Any]) -> Row:
        def copied(content: Any, size: int) -> tuple[int, int]:
            block = context.allocate(size)
            if size:
                ctypes.memmove(block + HEAD, content if isinstance(content, bytes) else content.ctypes.data, size)
            return block, block + HEAD

        row: Row = []
        bound: dict[Any, int] = {}
        for t, value in zip(self._arguments, inputs, strict=True):
            if isinstance(t, TensorType) and len(kinds(t)) > 1:
                array = np.ascontiguousarray(value, dtype=t.dtype.numpy).reshape(np.shape(value))
                if array.ndim != t.rank or not _fits(t, array.shape, bound):
                    raise _Unfit
                keep.append(array)
                row += [("ptr", 0), ("ptr", array.ctypes.data), *(("i64", e) for e in array.shape)]
            else:
                row += encode(t, value, copied)
        return row

    def _read(self, address: int, context: Any) -> list[Any]:
        results: list[Any] = []
        for t in self._results:
            value, following = decode(t, address)
            results.append(_free(t, value))
            address = following
        return results


class _Unfit(Exception):
    """The inputs are not what the Program's types say."""


def _fits(t: TensorType, shape: Sequence[int], bound: dict[Any, int]) -> bool:
    """Say whether extents are those of the type, and equal symbols mean equal numbers."""
    for declared, found in zip(t.shape, shape, strict=True):
        if isinstance(declared, int):
            if declared != found:
                return False
        elif bound.setdefault(declared, found) != found:
            return False
    return True


def _free(t: Type, value: Any) -> Any:
    """Return a result that shares no memory with the run."""
    if isinstance(t, ScalarType):
        return value
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(t, ListType):
        return [_free(t.element, item) for item in value]
    if isinstance(t, TupleType):
        return Bundle([_free(u, item) for u, item in zip(t.items, value.items, strict=True)])
    if isinstance(t, VariantType):
        return (value[0], None if value[1] is None else _free(t.alternatives[value[0]], value[1]))
    return value


