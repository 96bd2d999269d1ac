"""What nearly all Programs call is compiled beside, while the text of their own code is written.

LLVM works without Python's lock, so on two CPUs that takes no time. What a Program calls is told by its text only;
before there is one, its operations tell most: memory, the pool of threads, the kernels of products.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from dy2st.forks import started
from dy2st.ir.program import Program, Value
from dy2st.ir.types import TensorType
from dy2st.ops.linalg.matmul import MatMul
from dy2st.records import record
from dy2st.runtime.aot_cache.artifacts import is_first
from dy2st.runtime.backends.cpu import runtime_library_symbols
from dy2st.runtime.backends.cpu.compile_link.cpu_count import usable_cpus
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import in_registers
from dy2st.runtime.backends.cpu.opt_level import Haste, has_loops
from dy2st.runtime.backends.cpu.python_abi import helpers, interrupts
from dy2st.runtime.backends.cpu.thread_pool import pool
from dy2st.runtime.backends.gil_switch_interval import often

_FLOATS = {"float32": "f32", "float64": "f64"}
_FORMS = {False: ("nn",), True: ("nn", "packed.n", "pack_b.n")}
"""The products to begin with, by whether there are loops: most of what they are made of others need as well."""


@record
class _State:
    """Whether a thread compiles beside; one Program at a time becomes code (background_job.py)."""

    works: bool = False


_state = _State()


def begin() -> None:
    """Load LLVM and compile what all loops call; not the pool of threads, which loops over numbers do not need."""
    with often():
        _call((helpers.product, interrupts.product), lambda: False)


@contextmanager
def precompiled(program: Program, strict: bool, haste: Haste) -> Iterator[None]:
    """Compile what a Program is likely to call on a thread beside; at the end of the block nothing more is begun.

    A block inside of another one leaves that to it.
    """
    if usable_cpus() == 1 or _state.works:
        yield
        return
    _state.works = True
    ended = threading.Event()
    functions = likely(program, strict, haste)
    thread = started(threading.Thread(target=lambda: _call(functions, ended.is_set), name="dy2st compile"))
    try:
        with often():
            yield
    finally:
        _state.works = False
        ended.set()
        thread.join()


@contextmanager
def where_nothing_is_cached(program: Program, haste: Haste) -> Iterator[None]:
    """Compile beside from now on, before it is known whether code is kept for a Program, where none is for others."""
    if not is_first():
        yield
        return
    with precompiled(program, False, haste):
        yield


def _call(functions: Iterable[Callable[[], object]], ended: Callable[[], bool]) -> None:
    """Call functions one after the other, until that has ended or one fails: who needs what it makes gets the error."""
    with contextlib.suppress(Exception):
        for function in functions:
            if ended():
                return
            function()


def likely(program: Program, strict: bool, haste: Haste) -> Iterator[Callable[[], object]]:
    """Give functions that make what a Program is likely to call; who needs it later finds it."""
    loops = has_loops(program)
    if any(_is_in_memory(value) for operation in program.walk() for value in operation.results):
        yield pool.product
    products = (operation.results[0] for operation in program.walk() if isinstance(operation.op, MatMul))
    names = dict.fromkeys(v.type.dtype.name for v in products if isinstance(v.type, TensorType))
    kernels = [f"gemm.{_FLOATS[name]}.{form}" for name in names if name in _FLOATS for form in _FORMS[loops]]
    yield from runtime_library_symbols.jobs(kernels, strict, haste)
    yield helpers.product
    if loops:
        yield interrupts.product


def _is_in_memory(value: Value) -> bool:
    return isinstance(value.type, TensorType) and not in_registers(value.type)
