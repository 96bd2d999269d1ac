"""Native code on the CPU: a Program becomes one function of machine code, made with LLVM.

Where only a call tells how extents of inputs meet, there is code for each way (versions.py). The stages, each with a
text that `dy2st code MODEL --stage` prints (stages.py):

    fused    which operations share a loop nest (fusing/)
    loops    the loop nests: extents, operands, what each sweep through a row does (nests/)
    llvm     textual LLVM IR with explicit vectors (glue/, rules/ and runs/, and the kernels that they call)
    asm      what the CPU runs (machine_code/)

A folder imports those in front of it in this list alone (tests/test_layering.py): text, memory, kept, machine_code,
threads and math, gemm and registers, fusing, nests, conv and attention, calls and spmd, fast_calls, glue, rules, runs.
"""

from __future__ import annotations

import importlib
import time
from typing import Any

STARTED = time.time()
"""When this package was imported: source that was written later is not what runs here (identity.py)."""
STAGES = ("fused", "loops", "llvm", "asm")


_LATE = {
    "NativePlan": "native", "begin": "beforehand", "compiled_beforehand": "beforehand", "kept_code": "versions",
    "link": "machine_code.elf", "llvm_folder": "kept.identity", "load_by_llvm": "machine_code.llvm_loader",
    "lowered": "making", "known_text": "fast_calls.call_code", "native_code": "versions", "native_code_for": "versions",
    "pool_text": "threads.module", "product": "making", "stage": "stages", "static_text": "fast_calls.method_code",
    "switch_text": "fast_calls.method_code", "where_nothing_is_kept": "beforehand",
    "written_text": "fast_calls.call_code",
}  # fmt: skip
"""The modules that hold these names; they are loaded at the first use."""


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"dy2st.runtime.cpu.{_LATE[name]}"), name)


def library_function(name: str) -> Any:
    """Return a function of library.py, which is loaded at the first use."""
    return getattr(importlib.import_module("dy2st.runtime.cpu.library"), name)
