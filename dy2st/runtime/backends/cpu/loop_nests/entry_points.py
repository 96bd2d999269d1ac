"""Loop nests as functions of a module, in the forms that Programs call: whole, by ranges, by blocks, by parts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMModule
from dy2st.runtime.backends.cpu.loop_nests.parallel_nest import ParallelNest
from dy2st.runtime.backends.cpu.loop_nests.schedule import NestLayout
from dy2st.runtime.backends.cpu.loop_nests.structural_hash import structural_hash


def kernel(module: LLVMModule, target: Target, made: NestLayout) -> str:
    """Return the name of the function that runs a group; groups that do the same share one."""
    return _known(module, "whole", made, lambda: ParallelNest(module, target, made).text())


def kernel_of_ranges(module: LLVMModule, target: Target, made: NestLayout) -> str:
    """Return the name of the function that runs ranges of a row's units, from what a row of memory holds.

    The nest is one sweep without sums, and nothing stands outside of it.
    """
    return _known(module, "ranges", made, lambda: ParallelNest(module, target, made).ranges())


def kernel_of_blocks(module: LLVMModule, target: Target, made: NestLayout) -> str:
    """Return the name of the function that adds up blocks of a row, from what a row of memory holds.

    The nest is one sweep, and nothing stands outside of it. Behind its arguments come rooms for what each sum is by
    blocks, and how many elements a block has.
    """
    return _known(module, "blocks", made, lambda: ParallelNest(module, target, made).sums())


def kernel_of_totals(module: LLVMModule, target: Target, made: NestLayout) -> str:
    """Return the name of the function that adds up what blocks have: it takes these rooms, and how many blocks."""
    return _known(module, "totals", made, lambda: ParallelNest(module, target, made).totals())


def kernel_of_parts(module: LLVMModule, target: Target, made: NestLayout) -> str:
    """Return the name of the function that runs parts of a nest: some rows, some columns (gemm/epilogue.py).

    The nest is one sweep without sums.
    """
    return _named(module, ParallelNest(module, target, made).parts())


def _known(module: LLVMModule, form: str, made: NestLayout, write: Callable[[], str]) -> str:
    """Return the name of a function, which is not written again where one of a group that looks alike was."""
    look = structural_hash(made)
    if look is None:
        return _named(module, write())
    key = (form, look)
    if key not in module.names:
        module.names[key] = _named(module, write())
    return module.names[key]


def _named(module: LLVMModule, text: str) -> str:
    """Add a function under a name that its text decides."""
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    name = f"dy2st.k.{key}"
    module.add(name, text.replace("@dy2st.kernel", f"@{name}"))
    return name
