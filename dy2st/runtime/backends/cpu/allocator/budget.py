"""New blocks, as many as the budget of a run allows (memory_budget.py).

    ptr @dy2st.export.make(ptr %context, i64 %bytes, i64 %class)     a block of the context, held once; null where the
                                                                     budget or the system does not give it

It counts all blocks of the context, those that wait in its free lists too. These go back to the system before a run is
refused another one. Only here is anything compared, where a block is new: no run that finds its blocks free does it.
"""

from __future__ import annotations

from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import BLOCKS, BYTES, CLASSES, FREE, HEAD, LIMIT

_ROUNDED = f"""\
  %padded = add i64 %content, {HEAD + 63}
  %total = and i64 %padded, -64"""
_EXACT = f"  %total = add i64 %bytes, {HEAD}"

_TEXT = f"""
; give the blocks in the free lists of a context back
define void @dy2st.trim(ptr %context) {{
entry:
  br label %list
list:
  %class = phi i64 [ 0, %entry ], [ %next.class, %through ]
  %lists = getelementptr i8, ptr %context, i64 {FREE}
  %list.place = getelementptr ptr, ptr %lists, i64 %class
  br label %look
look:
  %block = load ptr, ptr %list.place
  %empty = icmp eq ptr %block, null
  br i1 %empty, label %through, label %take
take:
  %next.place = getelementptr i8, ptr %block, i64 16
  %next = load ptr, ptr %next.place
  store ptr %next, ptr %list.place
  call void @dy2st.unlink(ptr %context, ptr %block, i64 %class)
  call void @dy2st.export.old(ptr %block)
  br label %look
through:
  %next.class = add i64 %class, 1
  %more = icmp ult i64 %next.class, {CLASSES}
  br i1 %more, label %list, label %done
done:
  ret void
}}

define ptr @dy2st.export.make(ptr %context, i64 %bytes, i64 %class) {{
entry:
  %content = call i64 @dy2st.content(i64 %class)
  %limit.place = getelementptr i8, ptr %context, i64 {LIMIT}
  %limit.word = load ptr, ptr %limit.place
  %limit = load i64, ptr %limit.word
  %bytes.place = getelementptr i8, ptr %context, i64 {BYTES}
  %before = load i64, ptr %bytes.place
  %after = add i64 %before, %content
  %over = icmp ugt i64 %after, %limit
  br i1 %over, label %trim, label %make
trim:
  call void @dy2st.trim(ptr %context)
  %left = load i64, ptr %bytes.place
  %again = add i64 %left, %content
  %still = icmp ugt i64 %again, %limit
  br i1 %still, label %none, label %make
make:
SIZE
  %block = call ptr @dy2st.export.new(i64 64, i64 %total)
  %failed = icmp eq ptr %block, null
  br i1 %failed, label %none, label %made
made:
  %old = load i64, ptr %bytes.place
  %now = add i64 %old, %content
  store i64 %now, ptr %bytes.place
  store i64 1, ptr %block
  %place = getelementptr i8, ptr %block, i64 8
  store i64 %class, ptr %place
  %blocks = getelementptr i8, ptr %context, i64 {BLOCKS}
  %older = load ptr, ptr %blocks
  %link = getelementptr i8, ptr %block, i64 24
  store ptr %older, ptr %link
  %back = getelementptr i8, ptr %block, i64 32
  store ptr null, ptr %back
  store ptr %block, ptr %blocks
  %alone = icmp eq ptr %older, null
  br i1 %alone, label %linked, label %link.back
link.back:
  %back.older = getelementptr i8, ptr %older, i64 32
  store ptr %block, ptr %back.older
  br label %linked
linked:
  call void @dy2st.count(ptr %context, i64 %class)
  ret ptr %block
none:
  ret ptr null
}}
"""

MAKING = _TEXT.replace("SIZE", _ROUNDED)
"""How blocks are made."""
GUARDED_MAKING = _TEXT.replace("SIZE", _EXACT)
"""The same where every block has exactly its bytes (guard_pages.py)."""
