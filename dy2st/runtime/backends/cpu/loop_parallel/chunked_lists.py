"""Lists that threads share by rows: each part has one of its own rows of the elements; in the end they are joined.

    ptr @dy2st.parts.cut.<key>(ptr %context, ptr %list, i64 %rows, i64 %first, i64 %there)
        a list in the context of a part, of rows `first` and so many after it; the elements stay where they are
    ptr @dy2st.parts.whole.<key>(ptr %context, ptr %lists, i64 %count, i64 %rows, i64 %size)
        one list of whole elements, of the lists of `count` parts of `size` rows each

Both give null where there is no memory, or elements have other extents than they should. The rows are those of the
first axis of an element. A list of numbers is copied, and all parts have the same.
"""

from __future__ import annotations

import hashlib

from dy2st.ir.types import ListType, TensorType
from dy2st.runtime.backends.cpu.allocator.list_functions import CAPACITY, LENGTH, STORAGE, row_bytes
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import HEAD
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction, LLVMModule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare, least, minus, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import as_part, kinds, owners

_DATA, _EXTENTS = 8, 16
"""Where an element that is a tensor has its address and its extents."""


def cut_list(module: LLVMModule, t: ListType, by_rows: bool) -> str:
    """Return the name of the function that makes the list of a part; not `by_rows`, it has the same elements."""
    parameters = [("ptr", "%context"), ("ptr", "%list"), *(("i64", n) for n in ("%rows", "%first", "%there"))]
    f = LLVMFunction(_name("cut", t, by_rows), parameters, "ptr", linkage="internal", also="nounwind")
    length = f.load("i64", f.offset("%list", LENGTH))
    new, there = _new_list(f, t, length)
    source = f.offset(f.load("ptr", f.offset("%list", STORAGE)), HEAD)
    size = times(f, length, row_bytes(t))
    f.call("void", "@llvm.memcpy.p0.p0.i64", f"ptr {there}", f"ptr {source}", f"i64 {size}", "i1 false")
    element = as_part(t.element)
    with f.loop(length, hint="element") as i:
        row = f.offset(there, times(f, i, row_bytes(t)))
        for owner in owners(element):
            f.store("ptr", "null", f.offset(row, 8 * owner.at))
        if by_rows and isinstance(element, TensorType):
            with f.when(compare(f, "ne", f.load("i64", f.offset(row, _EXTENTS)), "%rows"), "other"):
                f.ret("ptr", "null")
            before = times(f, "%first", *_inner(f, row, element), element.dtype.itemsize)
            f.store("ptr", f.offset(f.load("ptr", f.offset(row, _DATA)), before), f.offset(row, _DATA))
            f.store("i64", "%there", f.offset(row, _EXTENTS))
    f.ret("ptr", new)
    return module.add(f.name, f.text())


def whole_list(module: LLVMModule, t: ListType, by_rows: bool) -> str:
    """Return the name of the function that puts the lists of parts together."""
    parameters = [("ptr", "%context"), ("ptr", "%lists"), *(("i64", n) for n in ("%count", "%rows", "%size"))]
    f = LLVMFunction(_name("whole", t, by_rows), parameters, "ptr", linkage="internal", also="nounwind")
    first = f.load("ptr", "%lists")
    length = f.load("i64", f.offset(first, LENGTH))
    with f.loop("%count", hint="part") as k:
        other = f.load("ptr", f.offset("%lists", k, "ptr"))
        with f.when(compare(f, "ne", f.load("i64", f.offset(other, LENGTH)), length), "longer"):
            f.ret("ptr", "null")
    new, there = _new_list(f, t, length)
    source = f.offset(f.load("ptr", f.offset(first, STORAGE)), HEAD)
    size, element = times(f, length, row_bytes(t)), as_part(t.element)
    f.call("void", "@llvm.memcpy.p0.p0.i64", f"ptr {there}", f"ptr {source}", f"i64 {size}", "i1 false")
    if by_rows and isinstance(element, TensorType):
        with f.loop(length, hint="element") as i:
            before = times(f, i, row_bytes(t))
            _join(f, element, f.offset(there, before), before)
    f.ret("ptr", new)
    return module.add(f.name, f.text())


def _join(f: LLVMFunction, t: TensorType, row: str, before: str) -> None:
    """Write an element of the rows of all parts; those of the first part stand in `row`."""
    inner = times(f, 1, *_inner(f, row, t), t.dtype.itemsize)
    block = f.call("ptr", "@dy2st.allocate", "ptr %context", f"i64 {times(f, inner, '%rows')}")
    _unless_null(f, block)
    data = f.offset(block, HEAD)
    with f.loop("%count", hint="rows") as k:
        part = f.load("ptr", f.offset("%lists", k, "ptr"))
        theirs = f.offset(f.offset(f.load("ptr", f.offset(part, STORAGE)), HEAD), before)
        first = times(f, k, "%size")
        wanted = least(f, minus(f, "%rows", first), "%size")
        size = times(f, 1, *_inner(f, theirs, t), t.dtype.itemsize)
        for found, expected in ((f.load("i64", f.offset(theirs, _EXTENTS)), wanted), (size, inner)):
            with f.when(compare(f, "ne", found, expected), "other"):
                f.ret("ptr", "null")
        target, bytes_of = f.offset(data, times(f, first, inner)), times(f, wanted, inner)
        source = f.load("ptr", f.offset(theirs, _DATA))
        f.call("void", "@llvm.memcpy.p0.p0.i64", f"ptr {target}", f"ptr {source}", f"i64 {bytes_of}", "i1 false")
    f.store("ptr", block, row)
    f.store("ptr", data, f.offset(row, _DATA))
    f.store("i64", "%rows", f.offset(row, _EXTENTS))


def _new_list(f: LLVMFunction, t: ListType, length: str) -> tuple[str, str]:
    """Write a list with room for so many elements; return it, and where they stand."""
    new = f.call("ptr", "@dy2st.allocate", "ptr %context", "i64 24")
    _unless_null(f, new)
    storage = f.call("ptr", "@dy2st.allocate", "ptr %context", f"i64 {times(f, length, row_bytes(t))}")
    _unless_null(f, storage)
    for field, kind, value in ((LENGTH, "i64", length), (CAPACITY, "i64", length), (STORAGE, "ptr", storage)):
        f.store(kind, value, f.offset(new, field))
    return new, f.offset(storage, HEAD)


def _unless_null(f: LLVMFunction, block: str) -> None:
    with f.when(f.value(f"icmp eq ptr {block}, null"), "none"):
        f.ret("ptr", "null")


def _inner(f: LLVMFunction, row: str, t: TensorType) -> list[str]:
    """Write the extents of an element beside its rows."""
    return [f.load("i64", f.offset(row, _EXTENTS + 8 * i)) for i in range(1, t.rank)]


def _name(what: str, t: ListType, by_rows: bool) -> str:
    element = as_part(t.element)
    size = element.dtype.itemsize if isinstance(element, TensorType) else 0
    key = hashlib.sha256(f"{kinds(element)} {size} {by_rows}".encode()).hexdigest()[:12]
    return f"dy2st.parts.{what}.{key}"
