"""LLVM functions on lists of one element type.

The content of a list's block is its length, its capacity and the block of its elements; an element is a row of
components.

    void @dy2st.list.release.<key>(ptr context, ptr list)            one holder less
    ptr  @dy2st.list.grown.<key>(ptr context, ptr list)              the list, held once, with room for one
                                                                     element more;
                                                                     takes the list over; null when there is no memory
    ptr  @dy2st.list.writable.<key>(ptr context, ptr list)           the same without more room
"""

from __future__ import annotations

import hashlib

from dy2st.ir.types import ListType, Type
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import HEAD
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction, LLVMModule
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import as_part, kinds, owners

LENGTH, CAPACITY, STORAGE = HEAD, HEAD + 8, HEAD + 16


def row_bytes(t: ListType) -> int:
    """Return the bytes of an element."""
    return 8 * len(kinds(as_part(t.element)))


def list_function(module: LLVMModule, what: str, t: ListType) -> str:
    """Return the name of a function on lists of type `t`, and see that the module has it."""
    t = ListType(as_part(t.element))
    key = hashlib.sha256(_layout(t.element).encode()).hexdigest()[:12]
    name = f"dy2st.list.{what}.{key}"
    if name not in module:
        writers = {"release": _release, "writable": _writable, "grown": _grown}
        module.add(name, "")
        module.replace(name, writers[what](module, name, t))
    return f"@{name}"


def _layout(t: Type) -> str:
    """Return a text that is equal for types whose components are the same and counted alike."""
    held = ",".join(f"{o.at}:{'' if o.list is None else _layout(o.list.element)}" for o in owners(t))
    return f"{' '.join(kinds(t))}({held})"


def _function(name: str, result: str) -> LLVMFunction:
    return LLVMFunction(name, [("ptr", "%context"), ("ptr", "%list")], result, also="nounwind")


def _release(module: LLVMModule, name: str, t: ListType) -> str:
    f = _function(name, "void")
    there, last, done = f.label("there"), f.label("last"), f.label("end")
    f.branch(f.value("icmp eq ptr %list, null"), done, there)
    f.start(there)
    left = f.value(f"sub i64 {f.load('i64', '%list')}, 1")
    f.store("i64", left, "%list")
    f.branch(f.value(f"icmp eq i64 {left}, 0"), last, done)
    f.start(last)
    storage = f.load("ptr", f.offset("%list", STORAGE))
    if any(True for _ in owners(t.element)):
        with f.loop(f.load("i64", f.offset("%list", LENGTH))) as i:
            row = f.offset(f.offset(storage, HEAD), f.value(f"mul i64 {i}, {row_bytes(t)}"))
            for owner in owners(t.element):
                held = f.load("ptr", f.offset(row, 8 * owner.at))
                release = "@dy2st.release" if owner.list is None else list_function(module, "release", owner.list)
                f.call("void", release, "ptr %context", f"ptr {held}")
    f.call("void", "@dy2st.release", "ptr %context", f"ptr {storage}")
    f.call("void", "@dy2st.free", "ptr %context", "ptr %list")
    f.start(done)
    f.ret()
    return f.text()


def _writable(module: LLVMModule, name: str, t: ListType) -> str:
    """Write: a list that is held once is itself; another one is copied, and its elements are held once more."""
    f = _function(name, "ptr")
    own, copy, made, fits, none = f.label("own"), f.label("copy"), f.label("made"), f.label("fits"), f.label("none")
    f.branch(f.call("i1", "@dy2st.unique", "ptr %list"), own, copy)
    f.start(own)
    f.ret("ptr", "%list")
    f.start(copy)
    length = f.load("i64", f.offset("%list", LENGTH))
    new = f.call("ptr", "@dy2st.allocate", "ptr %context", "i64 24")
    size = f.value(f"mul i64 {length}, {row_bytes(t)}")
    storage = f.call("ptr", "@dy2st.allocate", "ptr %context", f"i64 {size}")
    missing = f.value(f"or i1 {f.value(f'icmp eq ptr {new}, null')}, {f.value(f'icmp eq ptr {storage}, null')}")
    f.branch(missing, none, made)
    f.start(made)
    f.store("i64", length, f.offset(new, LENGTH))
    f.store("i64", length, f.offset(new, CAPACITY))
    f.store("ptr", storage, f.offset(new, STORAGE))
    old = f.offset(f.load("ptr", f.offset("%list", STORAGE)), HEAD)
    rows = f.offset(storage, HEAD)
    f.call("void", "@llvm.memcpy.p0.p0.i64", f"ptr {rows}", f"ptr {old}", f"i64 {size}", "i1 false")
    if any(True for _ in owners(t.element)):
        with f.loop(length) as i:
            row = f.offset(rows, f.value(f"mul i64 {i}, {row_bytes(t)}"))
            for owner in owners(t.element):
                f.call("void", "@dy2st.retain", f"ptr {f.load('ptr', f.offset(row, 8 * owner.at))}")
    f.start(fits)
    f.call("void", list_function(module, "release", t), "ptr %context", "ptr %list")
    f.ret("ptr", new)
    f.start(none)
    f.ret("ptr", "null")
    return f.text()


def _grown(module: LLVMModule, name: str, t: ListType) -> str:
    """Write: a list that is held once and has room for one more element; room doubles."""
    f = _function(name, "ptr")
    made, grow, moved, roomy, none = (f.label(h) for h in ("made", "grow", "moved", "roomy", "none"))
    own = f.call("ptr", list_function(module, "writable", t), "ptr %context", "ptr %list")
    f.branch(f.value(f"icmp eq ptr {own}, null"), none, made)
    f.start(made)
    length, room = f.load("i64", f.offset(own, LENGTH)), f.load("i64", f.offset(own, CAPACITY))
    f.branch(f.value(f"icmp slt i64 {length}, {room}"), roomy, grow)
    f.start(grow)
    more = f.call("i64", "@llvm.smax.i64", f"i64 {f.value(f'shl i64 {room}, 1')}", "i64 4")
    storage = f.call("ptr", "@dy2st.allocate", "ptr %context", f"i64 {f.value(f'mul i64 {more}, {row_bytes(t)}')}")
    f.branch(f.value(f"icmp eq ptr {storage}, null"), none, moved)
    f.start(moved)
    old = f.load("ptr", f.offset(own, STORAGE))
    size = f.value(f"mul i64 {length}, {row_bytes(t)}")
    f.call("void", "@llvm.memcpy.p0.p0.i64", f"ptr {f.offset(storage, HEAD)}", f"ptr {f.offset(old, HEAD)}",
           f"i64 {size}", "i1 false")  # fmt: skip
    f.call("void", "@dy2st.release", "ptr %context", f"ptr {old}")
    f.store("ptr", storage, f.offset(own, STORAGE))
    f.store("i64", more, f.offset(own, CAPACITY))
    f.start(roomy)
    f.ret("ptr", own)
    f.start(none)
    f.ret("ptr", "null")
    return f.text()
