"""Calls of generated functions on arrays, arrays between forbidden pages, and errors in units in the last place."""

from __future__ import annotations

import ctypes
import functools
import mmap
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import dy2st as paddle
from dy2st.runtime.backends.cpu.compile_link.code_loader import LoadedCode, compile_text
from dy2st.runtime.backends.cpu.compile_link.target import host_target
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition, gathered
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan

TARGETS = ("avx512", "avx2", "sse", "scalar")
DTYPES = {"f32": np.float32, "f64": np.float64}
ELEMENTS = {"f32": "float", "f64": "double", "i32": "i32", "i64": "i64"}
POINTER, INTEGER, FLAG = ctypes.c_void_p, ctypes.c_int64, ctypes.c_bool


def runnable(target: str) -> bool:
    """Tell whether this machine can run code for a forced target."""
    flags = host_target().features
    return {"avx512": "+avx512f" in flags, "avx2": "+avx2" in flags}.get(target, True)


def compiled(*definitions: Definition, target: str | None = None) -> LoadedCode:
    """Compile definitions with all their functions visible."""
    return compile_text(gathered(definitions).replace("define internal", "define"), host_target(target))


def callable_of(code: LoadedCode, definition: Definition, *kinds: Any, result: Any = None) -> Callable[..., Any]:
    """Return a function of compiled code as a Python function."""
    return ctypes.CFUNCTYPE(result, *kinds)(code.address(definition.name))


def vector(kind: str, lanes: int) -> str:
    """Return the LLVM type of so many elements."""
    return ELEMENTS[kind] if lanes == 1 else f"<{lanes} x {ELEMENTS[kind]}>"


@functools.cache
def mapped(definition: Definition, kind: str, lanes: int, arity: int, target: str | None = None) -> Callable[..., Any]:
    """Return a function that applies vectors of `lanes` to arrays whose size is a multiple of it."""
    t, element = vector(kind, lanes), ELEMENTS[kind]
    size = np.dtype(DTYPES[kind]).itemsize
    pointers = ", ".join(f"ptr %p{i}" for i in range(arity))
    reads = "\n".join(
        f"  %a{i} = getelementptr {element}, ptr %p{i}, i64 %i\n  %x{i} = load {t}, ptr %a{i}, align {size}"
        for i in range(arity)
    )
    operands = ", ".join(f"{t} %x{i}" for i in range(arity))
    loop = f"""define void @run({pointers}, ptr %out, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %back ]
{reads}
  %y = call {t} @{definition.name}({operands})
  %there = getelementptr {element}, ptr %out, i64 %i
  store {t} %y, ptr %there, align {size}
  br label %back
back:
  %next = add i64 %i, {lanes}
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}"""
    code = compile_text(gathered([definition, Definition("run", loop)]), host_target(target))
    run = ctypes.CFUNCTYPE(None, *[POINTER] * (arity + 1), INTEGER)(code.address("run"))

    def apply(*arrays: Any) -> Any:
        padded = [np.concatenate([a, np.repeat(a[:1], -a.size % lanes)]) for a in arrays]
        out = np.empty_like(padded[0])
        run(*(a.ctypes.data for a in padded), out.ctypes.data, out.size)
        apply.code = code  # type: ignore[attr-defined]  keeps the code as long as the function
        return out[: arrays[0].size]

    return apply


def ulps(found: Any, exact: Any) -> Any:
    """Return errors in units in the last place of exact results (long double); infinite where only one is finite."""
    kind = found.dtype.type
    with np.errstate(all="ignore"):
        rounded = exact.astype(kind)
        finite = np.where(np.isfinite(rounded), rounded, np.finfo(kind).max)
        unit = np.spacing(np.abs(finite)).astype(np.longdouble)
        error = np.abs(found.astype(np.longdouble) - exact.astype(np.longdouble)) / unit
        same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
        special = ~np.isfinite(found) | ~np.isfinite(rounded)
    return np.where(special, np.where(same, 0.0, np.inf), error).astype(float)


class Guarded:
    """Memory that ends, or begins, at a page that may not be touched: an access outside kills the process."""

    def __init__(self, array: Any, at_start: bool = False):
        page = mmap.PAGESIZE
        room = max(-(-array.nbytes // page), 1) * page
        self._map = mmap.mmap(-1, room + 2 * page)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        libc = ctypes.CDLL(None, use_errno=True)
        for address in (self._base, self._base + page + room):
            if libc.mprotect(ctypes.c_void_p(address), page, 0):
                raise OSError(ctypes.get_errno(), "mprotect")
        start = page if at_start else page + room - array.nbytes
        self.address = self._base + start
        self.array = np.frombuffer(self._map, array.dtype, array.size, start).reshape(array.shape)
        self.array[...] = array


def thread_counts(*counts: int) -> Iterator[int]:
    """Let 1, 2 and 4 threads run what the loop over this runs, or so many; then as many as before."""
    before = paddle.get_num_threads()
    try:
        for count in counts or (1, 2, 4):
            paddle.set_num_threads(count)
            yield count
    finally:
        paddle.set_num_threads(before)


def same_natively(function: Callable[..., Any], *inputs: Any, calls: tuple[str, ...] | None = (), exact: bool = True,
                   half: bool = False) -> None:  # fmt: skip
    """Check that a function of tensors gives the same natively and step by step, with no calls back but those named."""
    static = paddle.jit.to_static(function, full_graph=True)
    static(*map(paddle.to_tensor, inputs))
    program = static.concrete_program.main_program
    native = NativePlan(program)
    if calls is not None:
        assert {call.name or "?" for call in native.host_calls if not call.rare} == set(calls)
    copies, peaks = [np.copy(x) for x in inputs], set[int]()
    for _ in range(3):
        results = native.run(copies)
        peaks.add(native.peak)
    assert len(peaks) == 1, "blocks of memory are not given back"
    for found, wanted in zip(results, compile_plan(program).run(list(inputs)), strict=True):
        assert found.dtype == wanted.dtype
        if half:
            assert ulps(found, wanted.astype(np.longdouble)).max() <= 1
        elif exact:
            np.testing.assert_array_equal(found, wanted)
        else:
            far = {"float16": 4e-3, "float32": 2e-6}.get(found.dtype.name, 1e-13)
            np.testing.assert_allclose(found, wanted, rtol=far, atol=far if found.dtype == np.float16 else 0)
    for x, y in zip(inputs, copies, strict=True):
        np.testing.assert_array_equal(x, y)
