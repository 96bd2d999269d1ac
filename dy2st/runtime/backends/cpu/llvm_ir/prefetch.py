"""Asking for memory before it is read."""

from __future__ import annotations

from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction

PREFETCH = Definition("llvm.prefetch.p0", "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
"""What `prefetch` calls."""


def prefetch(f: LLVMFunction, address: str) -> None:
    """Write that the second cache is asked for a line of memory; nothing happens where there is no such memory."""
    f.call("void", f"@{PREFETCH.name}", f"ptr {address}", "i32 0", "i32 2", "i32 1")
