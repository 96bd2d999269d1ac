"""Native code on the CPU: a Program becomes one function of machine code, made with LLVM.

Where only a call tells how extents of inputs meet, there is code for each way (versions.py). The stages, each with a
text that `dy2st code MODEL --stage` prints (stages.py):

    fused    which operations share a loop nest (grouping.py)
    loops    the loop nests: extents, operands, what each sweep through a row does (loops.py)
    llvm     textual LLVM IR with explicit vectors (lowering.py and the rules beside it)
    asm      what the CPU runs (engine.py)
"""

from __future__ import annotations

import time
from typing import Any

STARTED = time.time()
"""When this package was imported: source that was written later is not what runs here (identity.py)."""
STAGES = ("fused", "loops", "llvm", "asm")


def __getattr__(name: str) -> Any:
    if name == "NativePlan":
        from dy2st.runtime.cpu.native import NativePlan

        return NativePlan
    if name in ("native_code", "kept_code"):
        from dy2st.runtime.cpu import versions

        return getattr(versions, name)
    if name == "link":
        from dy2st.runtime.cpu.elf import link

        return link
    if name == "llvm_folder":
        from dy2st.runtime.cpu.identity import llvm_folder

        return llvm_folder
    if name in ("lowered", "product"):
        from dy2st.runtime.cpu import making

        return getattr(making, name)
    if name == "library_binary":
        from dy2st.runtime.cpu.library import binary

        return binary
    if name == "stage":
        from dy2st.runtime.cpu.stages import stage

        return stage
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
