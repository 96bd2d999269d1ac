"""Blocks of memory in front of pages that nobody may touch: with `DY2ST_GUARD=1`, for tests.

Each block has a mapping of its own, which ends with the block (at most seven bytes later), and goes back to the system
when nobody holds it any more. So an access behind a block, or to a block that is gone, ends the process at the place
where it happens; a write in front of a block ends it when the block is given back.

    head of a block, beside what refcounted_blocks.py has there     40 where the mapping begins  48 its bytes
"""

from __future__ import annotations

import mmap

_PAGE = mmap.PAGESIZE
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


OLD = {"dy2st.guarded.old": "declare void @dy2st.guarded.old(ptr)"}
"""What Programs give blocks back by."""

BLOCKS = f"""
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @mprotect(ptr, i64, i32)
declare i32 @munmap(ptr, i64)
declare void @abort()

; memory for a block, its head included
define ptr @dy2st.export.new(i64 %align, i64 %bytes) {{
entry:
  %up = add i64 %bytes, 7
  %used = and i64 %up, -8
  %up.pages = add i64 %used, {_PAGE - 1}
  %pages = and i64 %up.pages, {-_PAGE}
  %whole = add i64 %pages, {2 * _PAGE}
  %base = call ptr @mmap(ptr null, i64 %whole, i32 0, i32 {_PRIVATE}, i32 -1, i64 0)
  %failed = icmp eq ptr %base, inttoptr (i64 -1 to ptr)
  br i1 %failed, label %none, label %made
made:
  %inside = getelementptr i8, ptr %base, i64 {_PAGE}
  %access = call i32 @mprotect(ptr %inside, i64 %pages, i32 {mmap.PROT_READ | mmap.PROT_WRITE})
  %refused = icmp ne i32 %access, 0
  br i1 %refused, label %none, label %open
open:
  %end = getelementptr i8, ptr %inside, i64 %pages
  %less = sub i64 0, %used
  %block = getelementptr i8, ptr %end, i64 %less
  %base.place = getelementptr i8, ptr %block, i64 40
  store ptr %base, ptr %base.place
  %whole.place = getelementptr i8, ptr %block, i64 48
  store i64 %whole, ptr %whole.place
  ret ptr %block
none:
  ret ptr null
}}

; a block that nobody holds; nothing was written in front of it
define void @dy2st.export.old(ptr %block) {{
entry:
  %base.place = getelementptr i8, ptr %block, i64 40
  %base = load ptr, ptr %base.place
  %whole.place = getelementptr i8, ptr %block, i64 48
  %whole = load i64, ptr %whole.place
  %inside = getelementptr i8, ptr %base, i64 {_PAGE}
  br label %look
look:
  %at = phi ptr [ %inside, %entry ], [ %next, %on ]
  %there = icmp ult ptr %at, %block
  br i1 %there, label %on, label %done
on:
  %byte = load i8, ptr %at
  %next = getelementptr i8, ptr %at, i64 1
  %clean = icmp eq i8 %byte, 0
  br i1 %clean, label %look, label %written
written:
  call void @abort()
  unreachable
done:
  %gone = call i32 @munmap(ptr %base, i64 %whole)
  ret void
}}

define void @dy2st.guarded.old(ptr %block) {{
  call void @dy2st.export.old(ptr %block)
  ret void
}}
"""
