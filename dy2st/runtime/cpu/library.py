"""Kernels that do not depend on a Program: compiled on first use, one object each, called by address.

    gemm.f32.nt            c = a @ b, a as it stands, b transposed (see gemm/)
    gemm.f32.nt.scratch    how many bytes it needs beside
"""

from __future__ import annotations

import functools

from dy2st.runtime.cpu.definition import Definition, gathered
from dy2st.runtime.cpu.engine import Code, compile_text
from dy2st.runtime.cpu.gemm import matmul_kernel, scratch_kernel
from dy2st.runtime.cpu.target import Target


def address(name: str, target: Target) -> int:
    """Return where a kernel stands in this process; KeyError for a name that is none."""
    family, dtype, form = name.split(".")[:3]
    if family != "gemm":
        raise KeyError(name)
    return _product(dtype, form, target).address(f"dy2st.{name}")


@functools.cache
def _product(dtype: str, form: str, target: Target) -> Code:
    """Compile a product of matrices; `form` has n or t for each operand."""
    swap = form[0] == "t", form[1] == "t"
    shown = [_exported(make(dtype, *swap, target)) for make in (matmul_kernel, scratch_kernel)]
    return compile_text(gathered(shown), target)


def _exported(definition: Definition) -> Definition:
    """Return a definition that can be called from outside of its module."""
    return Definition(definition.name, definition.text.replace("define internal", "define", 1), definition.needs)
