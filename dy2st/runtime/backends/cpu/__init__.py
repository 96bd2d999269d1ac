"""Native code on the CPU: a Program becomes one function of machine code, made with LLVM.

Where only a call tells how extents of inputs meet, there is code for each way (shape_specialization.py). The stages,
each with a text that `dy2st code MODEL --stage` prints (dump_stages.py):

    fused    which operations share a loop nest (fusion/)
    loops    the loop nests: extents, operands, what each sweep through a row does (loop_nests/)
    llvm     textual LLVM IR with explicit vectors (emitter/, ops/ and kernel_calls/, and the kernels that they call)
    asm      what the CPU runs (compile_link/)

A folder imports those in front of it in this list alone (tests/test_layering.py): llvm_ir, allocator, compile_link,
thread_pool and libm, gemm and vector_ops, fusion, loop_nests, conv and attention, python_abi and loop_parallel,
trampolines, emitter, ops, kernel_calls.
"""

from __future__ import annotations

import importlib
import time
from typing import Any

STARTED = time.time()
"""When this package was imported: source that was written later is not what runs here (environment_key.py)."""
STAGES = ("fused", "loops", "llvm", "asm")


_LATE = {
    "NativePlan": "backends.cpu.native_executable",
    "begin": "backends.cpu.precompile",
    "compiled_beforehand": "backends.cpu.precompile",
    "kept_code": "backends.cpu.shape_specialization",
    "link": "backends.cpu.compile_link.elf_linker",
    "llvm_folder": "aot_cache.environment_key",
    "load_by_llvm": "backends.cpu.compile_link.llvm_loader",
    "lowered": "backends.cpu.compile",
    "known_text": "backends.cpu.trampolines.call_ir",
    "native_code": "backends.cpu.shape_specialization",
    "native_code_for": "backends.cpu.shape_specialization",
    "pool_text": "backends.cpu.thread_pool.module",
    "product": "backends.cpu.compile",
    "stage": "backends.cpu.dump_stages",
    "static_text": "backends.cpu.trampolines.method_ir",
    "switch_text": "backends.cpu.trampolines.method_ir",
    "where_nothing_is_kept": "backends.cpu.precompile",
    "written_text": "backends.cpu.trampolines.call_ir",
}
"""The modules that hold these names; they are loaded at the first use."""


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"dy2st.runtime.{_LATE[name]}"), name)


def library_function(name: str) -> Any:
    """Return a function of runtime_library.py, which is loaded at the first use."""
    return getattr(importlib.import_module("dy2st.runtime.backends.cpu.runtime_library"), name)
