"""How far the calls of a recursion may go on the stack of the thread that they run on.

i64 @dy2st.lowest(i64 %here)        the lowest address that calls may reach which begin at another one

A run asks once, when its first function calls another. Threads have as much stack as `threading.stack_size` said when
they began, 8 MiB or 200 KiB; what is left is for kernels, and for Python where it is called back. No code of Python
runs here: the error of a signal's handler would have no place to go.
"""

from __future__ import annotations

import functools

from dy2st.runtime.aot_cache.artifacts import Artifact
from dy2st.runtime.backends.cpu.compile_link.code_loader import load, named_product, provide
from dy2st.runtime.backends.cpu.compile_link.image_loader import libc_address

MOST_STACK = 256 * 1024
"""How many bytes of stack calls may use."""
_LEFT = 80 * 1024
"""How many bytes they leave."""
_ASKED = ("gettid", "getpid", "pthread_self", "pthread_getattr_np", "pthread_attr_getstack", "pthread_attr_destroy")
"""What a C library has that knows where the stack of a thread ends; that of the main thread ends far away."""

_ANYWHERE = f"""
define i64 @dy2st.export.lowest(i64 %here) {{
  %far = sub i64 %here, {MOST_STACK}
  ret i64 %far
}}
"""
_KNOWN = f"""
declare i64 @llvm.smax.i64(i64, i64)
declare i32 @gettid()
declare i32 @getpid()
declare i64 @pthread_self()
declare i32 @pthread_getattr_np(i64, ptr)
declare i32 @pthread_attr_getstack(ptr, ptr, ptr)
declare i32 @pthread_attr_destroy(ptr)

define i64 @dy2st.export.lowest(i64 %here) {{
  %attributes = alloca [16 x i64], align 16
  %place = alloca i64
  %size = alloca i64
  %far = sub i64 %here, {MOST_STACK}
  %thread = call i32 @gettid()
  %process = call i32 @getpid()
  %main = icmp eq i32 %thread, %process
  br i1 %main, label %far_away, label %of_thread
of_thread:
  %me = call i64 @pthread_self()
  %failed = call i32 @pthread_getattr_np(i64 %me, ptr %attributes)
  %unknown = icmp ne i32 %failed, 0
  br i1 %unknown, label %far_away, label %known
known:
  call i32 @pthread_attr_getstack(ptr %attributes, ptr %place, ptr %size)
  call i32 @pthread_attr_destroy(ptr %attributes)
  %end = load i64, ptr %place
  %left = add i64 %end, {_LEFT}
  %lowest = call i64 @llvm.smax.i64(i64 %far, i64 %left)
  ret i64 %lowest
far_away:
  ret i64 %far
}}
"""


@functools.cache
def _is_known() -> bool:
    try:
        return all(map(libc_address, _ASKED))
    except KeyError:
        return False


def product() -> Artifact:
    """Return the code that tells, not yet loaded."""
    name, text = ("stacks of threads", _KNOWN) if _is_known() else ("stacks", _ANYWHERE)
    return named_product(name, lambda: text, level=0)


@functools.cache
def _address() -> int:
    return load(product().binary).address("dy2st.export.lowest")


provide("dy2st.lowest", _address)
