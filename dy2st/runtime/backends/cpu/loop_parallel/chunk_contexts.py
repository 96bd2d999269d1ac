"""Memory for the parts of a loop: each has a context of its own (refcounted_blocks.py): counting holders is not atomic.

    ptr  @dy2st.parts.contexts(ptr %context, i64 %count)     contexts for `MOST_PARTS` parts, from this run's memory; so
                                                     many of them share what is left of its budget
    i32  @dy2st.parts.look(ptr %context)             what a long loop does now and then (safepoints.py), in a part
    void @dy2st.parts.joined(ptr %context)           count what the parts held at most as held by the run
    void @dy2st.parts.emptied(ptr %context)          nobody holds any of the parts' blocks: some gave up half-way

They stay with the context of the run, so a part finds the blocks free that it had the last time. What a part has to do
with Python, its caller does: it looks at signals while it works on a part itself, and tells the others to end.
"""

from __future__ import annotations

from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import (
    ALLOCATE,
    BLOCKS,
    BYTES,
    CALLER,
    CLASSES,
    CONSTANTS,
    CONTEXT_BYTES,
    FREE,
    HEAD,
    HOST,
    INTERRUPTED,
    LIBRARY,
    LIMIT,
    LIVE,
    MOST_PARTS,
    OK,
    PARENT,
    PARTS,
    PEAK,
    RUN,
    SHARE,
    STOP,
)
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction, LLVMModule

_HANDED_ON = (HOST, RUN, ALLOCATE, CONSTANTS, LIBRARY)
POLL = "dy2st.poll"


def contexts(module: LLVMModule) -> str:
    """Return the name of the function that gives the contexts of parts, null where there is no memory."""
    f = LLVMFunction(
        "dy2st.parts.contexts", [("ptr", "%context"), ("i64", "%count")], "ptr", linkage="internal", also="nounwind"
    )
    place = f.offset("%context", PARTS)
    with f.when(f.value(f"icmp eq ptr {f.load('ptr', place)}, null"), "first"):
        block = f.call("ptr", "@dy2st.allocate", "ptr %context", f"i64 {MOST_PARTS * CONTEXT_BYTES}")
        with f.when(f.value(f"icmp eq ptr {block}, null"), "none"):
            f.ret("ptr", "null")
        rows = f.offset(block, HEAD)
        f.call("void", "@llvm.memset.p0.i64", f"ptr {rows}", "i8 0", f"i64 {MOST_PARTS * CONTEXT_BYTES}", "i1 false")
        f.store("ptr", rows, place)
    found = f.load("ptr", place)
    most = f.load("i64", f.load("ptr", f.offset("%context", LIMIT)))
    left = f.value(f"sub i64 {most}, {f.load('i64', f.offset('%context', BYTES))}")
    share = f.offset("%context", SHARE)
    f.store("i64", f.value(f"sdiv i64 {f.call('i64', '@llvm.smax.i64', f'i64 {left}', 'i64 0')}, %count"), share)
    given = [(field, f.load("i64", f.offset("%context", field))) for field in _HANDED_ON]
    with f.loop(str(MOST_PARTS), hint="part") as i:
        part = f.offset(found, f.value(f"mul i64 {i}, {CONTEXT_BYTES}"))
        for field, value in given:
            f.store("i64", value, f.offset(part, field))
        f.store("ptr", "%context", f.offset(part, PARENT))
        f.store("ptr", share, f.offset(part, LIMIT))
        f.store("i64", f.load("i64", f.offset(part, LIVE)), f.offset(part, PEAK))
    f.store("i64", "0", f.offset("%context", STOP))
    f.ret("ptr", found)
    return module.add(f.name, f.text())


def looking(module: LLVMModule) -> str:
    """Return the name of the function that looks in at Python for a part."""
    module.add(POLL, f"declare i32 @{POLL}(ptr)")
    f = LLVMFunction("dy2st.parts.look", [("ptr", "%context")], "i32", linkage="internal", also="nounwind")
    parent = f.load("ptr", f.offset("%context", PARENT))
    with f.when(f.value(f"icmp eq ptr {parent}, null"), "whole"):
        f.ret("i32", f.call("i32", f"@{POLL}", "ptr %context"))
    stop, caller = f.offset(parent, STOP), f.load("i64", f.offset("%context", CALLER))
    stopped = f.value(f"icmp ne i64 {f.value(f'load atomic i64, ptr {stop} acquire, align 8')}, 0")
    with f.when(stopped, "stopped"):
        f.ret("i32", str(INTERRUPTED))
    with f.when(f.value(f"icmp eq i64 {caller}, 0"), "worker"):
        f.ret("i32", str(OK))
    status = f.call("i32", f"@{POLL}", f"ptr {parent}")
    with f.when(f.value(f"icmp ne i32 {status}, {OK}"), "raised"):
        f.do(f"store atomic i64 1, ptr {stop} release, align 8")
    f.ret("i32", status)
    return module.add(f.name, f.text())


def joined(module: LLVMModule) -> str:
    """Return the name of the function that counts what the parts held."""
    f = LLVMFunction("dy2st.parts.joined", [("ptr", "%context")], linkage="internal", also="nounwind")
    parts, total = f.load("ptr", f.offset("%context", PARTS)), f.slot("i64")
    f.store("i64", f.load("i64", f.offset("%context", LIVE)), total)
    with f.loop(str(MOST_PARTS), hint="part") as i:
        peak = f.load("i64", f.offset(f.offset(parts, f.value(f"mul i64 {i}, {CONTEXT_BYTES}")), PEAK))
        f.store("i64", f.value(f"add i64 {f.load('i64', total)}, {peak}"), total)
    before = f.load("i64", f.offset("%context", PEAK))
    most = f.call("i64", "@llvm.smax.i64", f"i64 {before}", f"i64 {f.load('i64', total)}")
    f.store("i64", most, f.offset("%context", PEAK))
    f.ret()
    return module.add(f.name, f.text())


def emptied(module: LLVMModule) -> str:
    """Return the name of the function that takes all blocks of the parts back."""
    f = LLVMFunction("dy2st.parts.emptied", [("ptr", "%context")], linkage="internal", also="nounwind")
    parts = f.load("ptr", f.offset("%context", PARTS))
    with f.loop(str(MOST_PARTS), hint="part") as i:
        part = f.offset(parts, f.value(f"mul i64 {i}, {CONTEXT_BYTES}"))
        lists = f.offset(part, FREE)
        f.call("void", "@llvm.memset.p0.i64", f"ptr {lists}", "i8 0", f"i64 {8 * CLASSES}", "i1 false")
        f.store("i64", "0", f.offset(part, LIVE))
        block, look, take, done = f.slot("ptr"), f.label("look"), f.label("take"), f.label("taken")
        f.store("ptr", f.load("ptr", f.offset(part, BLOCKS)), block)
        f.start(look)
        here = f.load("ptr", block)
        f.branch(f.value(f"icmp eq ptr {here}, null"), done, take)
        f.start(take)
        kind = f.load("i64", f.offset(here, 8))
        f.store("ptr", f.load("ptr", f.offset(lists, kind, "ptr")), f.offset(here, 16))
        f.store("ptr", here, f.offset(lists, kind, "ptr"))
        f.store("ptr", f.load("ptr", f.offset(here, 24)), block)
        f.jump(look)
        f.start(done)
    f.ret()
    return module.add(f.name, f.text())
