"""What kernels are made for, a GPU or this machine's CPU in place of one, and their code as each loads it."""

from __future__ import annotations

import functools

from dy2st.records import record
from dy2st.runtime.aot_cache import disk_cache
from dy2st.runtime.backends.cpu.compile_link.code_loader import made_object
from dy2st.runtime.backends.cpu.compile_link.compiler import TargetMachine, compiled, version
from dy2st.runtime.backends.cpu.compile_link.target import Target, current_target

TRIPLE = "nvptx64-nvidia-cuda"
_PASSES = ("AlwaysInliner", "SROA", "SimplifyCFG", "InstCombine")
_TEXTS = disk_cache.Kind("ptx", str.encode, bytes.decode)
NESTS = Target(TRIPLE, "", "", vector_bytes=0)
"""What nests know of the machine: a thread computes one element at a time."""


@record(frozen=True)
class Gpu:
    """A generation of GPUs, as LLVM and ptxas name it, and the version of PTX that it takes at least."""

    name: str = "sm_80"
    features: str = "+ptx80"

    def image(self, text: str) -> bytes:
        """Return the PTX of LLVM IR text, as a driver loads it."""
        key = _TEXTS.key(text, TRIPLE, self.name, self.features, version())
        return _TEXTS.made(key, lambda: self._ptx(text)).encode() + b"\0"

    def _ptx(self, text: str) -> str:
        machine = TargetMachine(TRIPLE, self.name, self.features, "default", "default", 1)
        return compiled(text, machine, _PASSES, readable=True).decode()


@record(frozen=True)
class Emulated:
    """The CPU of this machine, which runs threads and blocks one after the other."""

    def image(self, text: str) -> bytes:
        """Return the object file of LLVM IR text."""
        return made_object(text, _scalar_target())


@functools.cache
def _scalar_target() -> Target:
    return current_target()


AMPERE, HOPPER, BLACKWELL = Gpu(), Gpu("sm_90", "+ptx80"), Gpu("sm_120", "+ptx87")
"""What is assembled in tests. PTX of the first runs on all that came after."""
