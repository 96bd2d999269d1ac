"""What is done with the channels of a convolution's result (gemm/epilogue.py): a row there is a channel of an image.

Where images are computed some at a time, their channels are finished before the next ones begin.
"""

from __future__ import annotations

import functools

from dy2st.runtime.backends.cpu.conv.common.shape_descriptor import FIELDS
from dy2st.runtime.backends.cpu.gemm.epilogue import COST, finished, is_wanted
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import times
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import RANGE, forked

_CHANNELS = (("ptr", "%after"), ("i64", "%top"), ("i64", "%places"))


def what_follows(f: LLVMFunction, row: str = "%shape") -> str:
    """Write a read of what is done with the result; null for nothing."""
    return f.load("ptr", f.offset(row, 8 * FIELDS.index("after")))


@functools.cache
def finish() -> Definition:
    """Return `void @dy2st.conv.finish(after, top, places, count)`: so many channels are there, from `top` on."""
    body = _some_channels()
    f = LLVMFunction("dy2st.conv.finish", [*_CHANNELS, ("i64", "%count")], linkage="internal", also="noinline nounwind")
    needs = [body]
    with f.when(is_wanted(f), "channels"):
        cost = times(f, "%places", f.load("i64", f.offset("%after", COST)))
        needs.append(forked(f, body.name, _CHANNELS, "%count", cost))
    f.ret()
    return Definition(f.name, f.text(), tuple(needs))


def call_finish(f: LLVMFunction, top: str, count: str, places: str) -> None:
    """Write that so many channels are there, from `top` on, where `finish` is defined."""
    f.call("void", f"@{finish().name}", f"ptr {what_follows(f)}", f"i64 {top}", f"i64 {places}", f"i64 {count}")


def _some_channels() -> Definition:
    f = LLVMFunction("dy2st.conv.finish.some", [*_CHANNELS, *RANGE], linkage="internal", also="nounwind")
    finished(f, ("%from", "%to"), ("0", "%places"))
    f.ret()
    return Definition(f.name, f.text())
