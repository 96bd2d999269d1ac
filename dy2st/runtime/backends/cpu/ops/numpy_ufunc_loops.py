"""Writes calls of the inner loops of NumPy's ufuncs (ufunc_loops.py)."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.ir.program import Value, tensor_type
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter
from dy2st.runtime.backends.cpu.emitter.shared_routines import routine, split_routine
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import minus, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, in_register
from dy2st.runtime.backends.cpu.ops.tensors import allocate, extents
from dy2st.runtime.backends.cpu.python_abi.ufunc_loops import PREFIX

Number = str | int


class UfuncLoop:
    """One loop: where it stands in this process, in registers."""

    def __init__(self, w: FunctionEmitter, name: str):
        self._w = w
        self._loop, self._data = (w.library(f"{PREFIX}{name}.{part}") for part in ("loop", "data"))
        self.there = w.f.value(f"icmp ne ptr {self._loop}, null")
        """Whether this NumPy has it."""

    def call(self, places: Sequence[str], turns: Number, cores: Sequence[Number], steps: Sequence[Number],
             cost: Number) -> None:  # fmt: skip
        """Write `turns` turns, split between threads.

        Parameters
        ----------
        places
            The addresses of the arguments.
        turns
            How many there are.
        cores
            The core extents, in the order in which the ufunc's signature names them.
        steps
            The bytes from iteration to iteration of each argument, then those of each core axis of each argument.
        cost
            How many picoseconds an iteration takes, roughly.
        """
        f = self._w.f
        rows = [_row(f, "ptr", places), _row(f, "i64", (turns, *cores)), _row(f, "i64", steps)]
        name = _turns(self._w, len(places), len(cores))
        f.call("void", name, f"ptr {self._loop}", f"ptr {self._data}", *(f"ptr {row}" for row in rows),
               f"i64 {turns}", f"i64 {cost}")  # fmt: skip


def _row(f: LLVMFunction, kind: str, values: Sequence[Number]) -> str:
    row = f.slot(kind, max(2, len(values)))
    for at, value in enumerate(values):
        f.store(kind, str(value), f.offset(row, 8 * at))
    return row


def _turns(w: FunctionEmitter, arguments: int, cores: int) -> str:
    """Return the function that runs a loop with so many arguments and core extents, by ranges of its iterations."""
    parameters = [
        *(("ptr", f"%{name}") for name in ("loop", "data", "places", "extents", "steps")),
        ("i64", "%turns"), ("i64", "%cost"),
    ]  # fmt: skip

    def write(f: LLVMFunction) -> None:
        own, dims = f.slot("ptr", max(2, arguments)), f.slot("i64", max(2, 1 + cores))
        for i in range(arguments):
            place, step = f.load("ptr", f.offset("%places", 8 * i)), f.load("i64", f.offset("%steps", 8 * i))
            f.store("ptr", f.offset(place, times(f, step, "%from")), f.offset(own, 8 * i))
        f.store("i64", minus(f, "%to", "%from"), dims)
        for i in range(1, 1 + cores):
            f.store("i64", f.load("i64", f.offset("%extents", 8 * i)), f.offset(dims, 8 * i))
        f.call("void", "%loop", f"ptr {own}", f"ptr {dims}", "ptr %steps", "ptr %data")

    return split_routine(w, f"ufunc.{arguments}.{cores}", parameters, lambda f: ("%turns", "%cost"), write)


def row_major(cores: Sequence[Number], itemsize: int, f: LLVMFunction) -> list[Number]:
    """Write how many bytes each axis of arrays without gaps is apart, that of the iterations first."""
    steps: list[Number] = [itemsize]
    for extent in reversed(cores):
        steps.insert(0, times(f, steps[0], extent))
    return steps


def room(w: FunctionEmitter, value: Value, shape: Sequence[str]) -> Components:
    """Write room for a result: on the stack where it is one register."""
    t = tensor_type(value)
    return ("null", w.f.slot("i64")) if in_register(t) else allocate(w, t.dtype, shape)


def has_nan(w: FunctionEmitter, address: str, count: str, *, or_infinity: bool = False) -> str:
    """Write whether there is a NaN, or an infinity, among so many float64."""

    def write(f: LLVMFunction) -> None:
        found = f.slot("i1")
        f.store("i1", "false", found)
        with f.loop("%count") as i:
            x = f.load("double", f.offset("%x", i, "double"))
            x = f.value(f"fsub double {x}, {x}") if or_infinity else x
            f.store("i1", f.value(f"or i1 {f.load('i1', found)}, {f.value(f'fcmp uno double {x}, {x}')}"), found)
        f.store("i1", f.load("i1", found), "%made")

    made, name = w.f.slot("i1"), "has_infinity" if or_infinity else "has_nan"
    name = routine(w, name, [("ptr", "%x"), ("i64", "%count"), ("ptr", "%made")], write)
    w.f.call("void", name, f"ptr {address}", f"i64 {count}", f"ptr {made}")
    return w.f.load("i1", made)


def matrix_shape(value: Value, components: Components, rank: int) -> tuple[list[str], list[str]]:
    """Return the extents of the batch and of the last `rank` axes."""
    shape = extents(value, components)
    return shape[: len(shape) - rank], shape[len(shape) - rank :]
