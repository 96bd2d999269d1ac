"""Writes the place where a kernel is split between threads.

A kernel that can be split is a function of its arguments and of a range of units (rows, tiles, blocks of elements),
whose results do not depend on where ranges begin and end:

    void @body(<arguments>, i64 %from, i64 %to, i64 %who)

`forked` writes a call of it for all units: at once where the work is small, else through `dy2st.parallel`
(job_scheduling.py), which calls it for ranges on several threads at a time. `who` tells apart those that run at once:
scratch memory has to have room for as many as `threads` says, each with its own part.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.thread_pool import pool as pool  # it is to be known where the code is loaded
from dy2st.runtime.backends.cpu.thread_pool.job_scheduling import LEAST_COST
from dy2st.runtime.backends.cpu.thread_pool.memory_layout import MOST

Argument = tuple[str, str]
"""An LLVM type and a register or literal."""
RANGE = (("i64", "%from"), ("i64", "%to"), ("i64", "%who"))
"""The last parameters of a body."""
PARALLEL = Definition("dy2st.parallel", "declare void @dy2st.parallel(ptr, ptr, i64, i64, i64)")

SHARE = Definition("dy2st.share", "declare void @dy2st.share(ptr, ptr, i64, i64, i64)")
"""The same for what is to keep Python's lock."""


def forked(
    f: LLVMFunction, body: str, arguments: Sequence[Argument], units: str, cost: str | int, most: str | int = MOST
) -> Definition:
    """Write a run of a body over `units`; return the definition that `f` needs for it.

    Parameters
    ----------
    f
        The function that is being written.
    body
        The name of the body, which stands in the same module.
    arguments
        What the body takes before the range, eight bytes each at most.
    units
        How many units there are; a body is called for none of them too.
    cost
        How many picoseconds a unit takes, roughly.
    most
        How many threads there may be at a time: how many parts scratch memory has.
    """
    part = by_row(f"{body}.part", body, [kind for kind, _ in arguments])
    row = f.slot("i64", max(1, len(arguments)))
    total = f.value(f"mul i64 {units}, {cost}")
    small, large, done = f.label("small"), f.label("large"), f.label("forked")
    f.branch(f.value(f"icmp ult i64 {total}, {LEAST_COST}"), small, large)
    f.start(small)
    f.call("void", f"@{body}", *(f"{kind} {value}" for kind, value in arguments), "i64 0", f"i64 {units}", "i64 0")
    f.jump(done)
    f.start(large)
    for i, (kind, value) in enumerate(arguments):
        f.store(kind, value, f.offset(row, 8 * i))
    operands = (f"ptr @{part.name}", f"ptr {row}", f"i64 {units}", f"i64 {cost}", f"i64 {most}")
    f.call("void", f"@{PARALLEL.name}", *operands)
    f.start(done)
    return part


def by_row(name: str, body: str, kinds: Sequence[str], linkage: str = "internal") -> Definition:
    """Return the function `void @name(row, from, to, who)` that calls a body with arguments from memory."""
    f = LLVMFunction(name, [("ptr", "%row"), *RANGE], linkage=linkage, also="nounwind")
    arguments = [f"{kind} {f.load(kind, f.offset('%row', 8 * i))}" for i, kind in enumerate(kinds)]
    f.call("void", f"@{body}", *arguments, *(f"{kind} {register}" for kind, register in RANGE))
    f.ret()
    return Definition(f.name, f.text(), (PARALLEL,))
