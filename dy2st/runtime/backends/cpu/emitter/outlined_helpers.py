"""Functions that glue calls for what it would else write out at every step: room for results, calls into Python.

They are named after what they take, stand beside the loop nests, and are written once a Program.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import FREE, HEAD, size_class
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction, LLVMModule

MOST_BYTES = 2**60
"""What `dy2st.allocate` refuses; a product that is larger is as good as one."""


def room(kernels: LLVMModule, factors: int) -> str:
    """Return `ptr @dy2st.room(context, bytes, factor ...)`: a block for their product, null where there is none."""
    name = f"dy2st.room{factors}"
    if name not in kernels:
        given = [f"%f{i}" for i in range(factors)]
        f = LLVMFunction(
            name, [("ptr", "%context"), ("i64", "%bytes"), *(("i64", g) for g in given)], "ptr", also="nounwind"
        )
        total, over = "%bytes", "false"
        for factor in given:
            pair = f.call("{i64, i1}", "@llvm.smul.with.overflow.i64", f"i64 {total}", f"i64 {factor}")
            over = f.value(f"or i1 {over}, {f.value(f'extractvalue {{i64, i1}} {pair}, 1')}")
            total = f.value(f"extractvalue {{i64, i1}} {pair}, 0")
        size = f.value(f"select i1 {over}, i64 {2 * MOST_BYTES}, i64 {total}")
        f.ret("ptr", f.call("ptr", "@dy2st.allocate", "ptr %context", f"i64 {size}"))
        kernels.add(name, f.text())
    return f"@{name}"


def fixed_room(kernels: LLVMModule, size: int) -> str:
    """Return `ptr @dy2st.room(context, bytes)` for blocks as large as one of `size` bytes: the first that is free.

    Which list they stand in is known, and how much they count.
    """
    number = size_class(size)
    name = f"dy2st.room.of{number}"
    if size > MOST_BYTES:
        return "@dy2st.allocate"
    if name not in kernels:
        f = LLVMFunction(name, [("ptr", "%context"), ("i64", "%bytes")], "ptr", also="noinline nounwind")
        free = f.offset("%context", FREE + 8 * number)
        first = f.load("ptr", free)
        with f.when(f.value(f"icmp eq ptr {first}, null"), "make"):
            f.ret("ptr", f.call("ptr", "@dy2st.allocate", "ptr %context", "i64 %bytes"))
        f.store("ptr", f.load("ptr", f.offset(first, 16)), free)
        f.store("i64", "1", first)
        f.call("void", "@dy2st.count", "ptr %context", f"i64 {number}")
        f.ret("ptr", first)
        kernels.add(name, f.text())
    return f"@{name}"


def reused(kernels: LLVMModule, factors: int) -> str:
    """Return `ptr @dy2st.reused(context, block, data, row, bytes, factor ...)`: a block that may be written to.

    It is the block that is given where that is held once, else a new one. The row has then the address of its content,
    and the block that is to be released later: the one that was given and not taken, or null.
    """
    name = f"dy2st.reused{factors}"
    if name not in kernels:
        given = [("i64", "%bytes"), *(("i64", f"%f{i}") for i in range(factors))]
        parameters = [("ptr", "%context"), ("ptr", "%block"), ("ptr", "%data"), ("ptr", "%row"), *given]
        f = LLVMFunction(name, parameters, "ptr", also="nounwind")
        take, make = f.label("take"), f.label("make")
        later = f.offset("%row", 8)
        f.branch(f.call("i1", "@dy2st.unique", "ptr %block"), take, make)
        f.start(take)
        f.store("ptr", "%data", "%row")
        f.store("ptr", "null", later)
        f.ret("ptr", "%block")
        f.start(make)
        made = f.call("ptr", room(kernels, factors), "ptr %context", *(f"{kind} {value}" for kind, value in given))
        f.store("ptr", f.value(f"getelementptr i8, ptr {made}, i64 {HEAD}"), "%row")
        f.store("ptr", "%block", later)
        f.ret("ptr", made)
        kernels.add(name, f.text())
    return f"@{name}"


def into_python(kernels: LLVMModule, kinds: Sequence[str]) -> str:
    """Return `i32 @dy2st.host(context, number, results, component ...)`: a call into Python, with its operands' row."""
    name = ".".join(["dy2st.host", *kinds])
    if name not in kernels:
        given = [(kind, f"%c{i}") for i, kind in enumerate(kinds)]
        f = LLVMFunction(
            name, [("ptr", "%context"), ("i64", "%number"), ("ptr", "%results"), *given], "i32", also="cold nounwind"
        )
        row = f.slot("i64", max(1, len(kinds)))
        for i, (kind, value) in enumerate(given):
            f.store(kind, value, f.offset(row, 8 * i))
        kernels.add("dy2st.python", "declare i32 @dy2st.python(ptr, i64, ptr, ptr)")
        f.ret("i32", f.call("i32", "@dy2st.python", "ptr %context", "i64 %number", f"ptr {row}", "ptr %results"))
        kernels.add(name, f.text())
    return f"@{name}"
