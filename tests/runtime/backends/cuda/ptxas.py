"""NVIDIA's assembler as a judge of kernels: it needs no driver and no GPU."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

from dy2st.records import record
from dy2st.runtime.backends.cuda.target import Gpu

MISSING = "ptxas is not there: pip install --no-deps nvidia-cuda-nvcc, 150 MB, so it is in no group of packages"


@record(frozen=True)
class Figures:
    """What a kernel takes: registers of a thread, bytes of local memory, of spilled registers, of shared memory."""

    registers: int
    stack: int
    spilled: int
    shared: int

    def __str__(self) -> str:
        return f"{self.registers} registers, {self.stack} bytes of stack, {self.shared} bytes shared"


@functools.cache
def assembler() -> str | None:
    """Return where ptxas is: that of the wheel, else one on the path."""
    places = [Path(sysconfig.get_path("purelib"), "nvidia", cuda, "bin", "ptxas") for cuda in ("cu13", "cu12")]
    found = next((str(p) for p in places if p.exists()), None) or shutil.which("ptxas")
    return found if found and sys.platform == "linux" else None


def required() -> str:
    """Return where ptxas is; skip where it is not."""
    found = assembler()
    if found is None:
        pytest.skip(MISSING)
    return found


def version() -> str:
    """Return the version of ptxas."""
    told = subprocess.run([required(), "--version"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"release ([\d.]+)", told)[0]


def assembled(text: str, gpu: Gpu) -> Figures:
    """Assemble the kernel in LLVM IR text; AssertionError with what ptxas says where it cannot."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.ptx")
        source.write_bytes(gpu.image(text).rstrip(b"\0"))
        command = [required(), "-v", f"-arch={gpu.name}", str(source), "-o", str(Path(folder, "kernel.cubin"))]
        run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr

    def most(pattern: str) -> int:
        return max(map(int, re.findall(pattern, run.stderr)), default=0)

    spilled = most(r"(\d+) bytes spill stores") + most(r"(\d+) bytes spill loads")
    return Figures(most(r"Used (\d+) registers"), most(r"(\d+) bytes stack frame"), spilled, most(r"(\d+) bytes smem"))
