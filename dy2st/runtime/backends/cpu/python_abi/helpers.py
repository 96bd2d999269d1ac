"""Native helpers that are the same for all Programs: memory for Python's side, free contexts, memory given back."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

from dy2st import config
from dy2st.runtime import memory_budget as budget
from dy2st.runtime.aot_cache.artifacts import Artifact
from dy2st.runtime.backends.cpu.allocator.budget import GUARDED_MAKING, MAKING
from dy2st.runtime.backends.cpu.allocator.guard_pages import BLOCKS
from dy2st.runtime.backends.cpu.allocator.large_pages import LARGE
from dy2st.runtime.backends.cpu.allocator.prefault_functions import AHEAD
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import BLOCKS as ALL_BLOCKS
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import DECLARED, FUNCTIONS, GUARDED, HEAD, PARTS
from dy2st.runtime.backends.cpu.compile_link.code_loader import LoadedCode, load, named_product, provide

_MOST_IDLE = 2
"""How many free contexts keep their blocks for the next run."""
_TEXT = f"""
declare ptr @dy2st.external.capsule_pointer(ptr, ptr)
declare ptr @dy2st.external.capsule_name(ptr)
declare void @dy2st.external.release(ptr)

; the destructor of the capsule that holds the memory of an array
define void @dy2st.export.given_back(ptr %capsule) {{
  %block = call ptr @dy2st.external.capsule_pointer(ptr %capsule, ptr null)
  call void @dy2st.export.old(ptr %block)
  ret void
}}

; the destructor of a capsule of a kept value (kept_values.py): with the last one the context of their run is free again
define void @dy2st.export.gone(ptr %capsule) {{
entry:
  %name = call ptr @dy2st.external.capsule_name(ptr %capsule)
  %row = call ptr @dy2st.external.capsule_pointer(ptr %capsule, ptr %name)
  %run = load ptr, ptr %row
  %live.place = getelementptr i64, ptr %run, i64 3
  %live = load i64, ptr %live.place
  %left = sub i64 %live, 1
  store i64 %left, ptr %live.place
  %last = icmp eq i64 %left, 0
  br i1 %last, label %all, label %done
all:
  %context = load ptr, ptr %run
  %plate.place = getelementptr i64, ptr %run, i64 1
  %plate = load ptr, ptr %plate.place
  %owner.place = getelementptr i64, ptr %run, i64 2
  %owner = load ptr, ptr %owner.place
  call void @dy2st.emptied(ptr %context)
  call void @dy2st.export.push(ptr %plate, ptr %context)
  %free = load i64, ptr %plate
  %many = icmp sgt i64 %free, {_MOST_IDLE}
  br i1 %many, label %trim, label %let.go
trim:
  call void @dy2st.trim(ptr %context)
  br label %let.go
let.go:
  call void @dy2st.external.release(ptr %owner)
  br label %done
done:
  ret void
}}

; nobody holds any block of a context any longer, but for the one that it keeps for the parts of loops
define internal void @dy2st.emptied(ptr %context) {{
entry:
  %parts.place = getelementptr i8, ptr %context, i64 {PARTS}
  %parts = load ptr, ptr %parts.place
  %blocks = getelementptr i8, ptr %context, i64 {ALL_BLOCKS}
  %newest = load ptr, ptr %blocks
  br label %look
look:
  %block = phi ptr [ %newest, %entry ], [ %older, %block.there ], [ %older, %free ]
  %end = icmp eq ptr %block, null
  br i1 %end, label %done, label %block.there
block.there:
  %link = getelementptr i8, ptr %block, i64 24
  %older = load ptr, ptr %link
  %content = getelementptr i8, ptr %block, i64 {HEAD}
  %of.parts = icmp eq ptr %content, %parts
  %holders = load i64, ptr %block
  %is.free = icmp eq i64 %holders, 0
  %stays = or i1 %of.parts, %is.free
  br i1 %stays, label %look, label %free
free:
  store i64 0, ptr %block
  call void @dy2st.free(ptr %context, ptr %block)
  br label %look
done:
  ret void
}}

define void @dy2st.export.trim(ptr %context) {{
  call void @dy2st.trim(ptr %context)
  ret void
}}

define ptr @dy2st.export.allocate(ptr %context, i64 %bytes) {{
  %block = call ptr @dy2st.allocate(ptr %context, i64 %bytes)
  ret ptr %block
}}

; the stack of free contexts of a plate (entry.py)
define void @dy2st.export.push(ptr %plate, ptr %context) {{
  %count = load i64, ptr %plate
  %field = getelementptr i8, ptr %plate, i64 8
  %stack = load ptr, ptr %field
  %place = getelementptr ptr, ptr %stack, i64 %count
  store ptr %context, ptr %place
  %more = add i64 %count, 1
  store i64 %more, ptr %plate
  ret void
}}
"""


def _code() -> LoadedCode:
    return _made(config.are_guarded())


@functools.cache
def _made(guarded: bool) -> LoadedCode:
    libc = ctypes.CDLL(None)
    provide("dy2st.external.capsule_pointer", lambda: _address(ctypes.pythonapi.PyCapsule_GetPointer))
    provide("dy2st.external.capsule_name", lambda: _address(ctypes.pythonapi.PyCapsule_GetName))
    provide("dy2st.external.release", lambda: _address(ctypes.pythonapi.Py_DecRef))
    provide("dy2st.external.free", lambda: _address(libc.free))
    provide("dy2st.external.aligned_alloc", lambda: _address(libc.aligned_alloc))
    provide("dy2st.external.madvise", lambda: _address(libc.madvise))
    provide("dy2st.external.clock_gettime", lambda: _address(libc.clock_gettime))
    return load(_product(guarded).binary)


def _text(guarded: bool) -> str:
    functions, blocks = (GUARDED, BLOCKS + GUARDED_MAKING) if guarded else (FUNCTIONS, LARGE + AHEAD + MAKING)
    return "\n".join((DECLARED, *functions.values(), blocks, _TEXT))


def product() -> Artifact:
    """Return the code of these helpers, not yet loaded."""
    return _product(config.are_guarded())


def _product(guarded: bool) -> Artifact:
    return named_product("support guarded" if guarded else "support", lambda: _text(guarded), level=0)


provide("dy2st.guarded.old", lambda: _made(True).address("dy2st.export.old"))


def _address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


@functools.cache
def _allocate(code: int) -> ctypes._CFunctionType:  # pyright: ignore[reportPrivateUsage]
    return ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(code)


@functools.cache
def _push() -> ctypes._CFunctionType:  # pyright: ignore[reportPrivateUsage]
    return ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(_code().address("dy2st.export.push"))


def allocate(context: int, size: int) -> int:
    """Return the address of a new block of a context; MemoryError when there is no memory, or no budget."""
    block = _allocate(_code().address("dy2st.export.allocate"))(context, size)
    if not block:
        raise MemoryError(f"no memory for {size} bytes in a run that may hold {budget.limit()}: {budget.HOW}")
    return int(block)


def is_loaded() -> bool:
    """Return whether this code runs already, without bringing it into the process."""
    return _made.cache_info().currsize > 0


def address(name: str) -> int:
    """Return the address of one of the functions that are exported under their own names (prefault_functions.py)."""
    return _code().address(f"dy2st.export.{name}")


def allocator() -> int:
    """Return the address of the function that makes blocks, `void *(context, bytes, size class)`."""
    return _code().address("dy2st.export.make")


def freer() -> Callable[[ctypes.c_void_p], object]:
    """Return the function that gives the memory of a block back to the system, or to the reserve."""
    return _freer(config.are_guarded())


@functools.cache
def _freer(guarded: bool) -> Callable[[ctypes.c_void_p], object]:
    address = _made(guarded).address("dy2st.export.old" if guarded else "dy2st.export.free")
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)


def push(plate: int, context: int) -> None:
    """Put a context on a plate's stack of free ones, in one step as other threads see it."""
    _push()(plate, context)


def given_back() -> int:
    """Return the address of the destructor of capsules that hold a block."""
    return address("given_back")
