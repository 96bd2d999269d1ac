"""LLVM functions that bring in memory before a run asks for it, and that tell how much runs have asked for.

what is asked for    0 bytes of blocks from the reserve  8 how many large blocks  16... the bytes of each
                     and from there on, one for each, their addresses, which are put there
what was taken       0 bytes of blocks from the reserve  8 how many large blocks  16... the bytes of the latest
"""

from __future__ import annotations

import sys

from dy2st.runtime.cpu.large_blocks import LATEST, SLOTS
from dy2st.runtime.cpu.reserve import POPULATE

MOST_LARGE = SLOTS
ASKED_WORDS = 2 + 2 * MOST_LARGE
TAKEN_WORDS = 2 + LATEST

_TEXT = f"""
; the start of a thread, which frees what it is given: large blocks wait from the beginning, their memory comes then
define ptr @dy2st.export.ahead(ptr %asked) {{
entry:
  %count.place = getelementptr i64, ptr %asked, i64 1
  %count = load i64, ptr %count.place
  %sizes = getelementptr i64, ptr %asked, i64 2
  %blocks = getelementptr i64, ptr %asked, i64 {2 + MOST_LARGE}
  br label %make
make:
  %i = phi i64 [ 0, %entry ], [ %i.next, %one ]
  %some = icmp ult i64 %i, %count
  br i1 %some, label %one, label %wait
one:
  %size.place = getelementptr i64, ptr %sizes, i64 %i
  %size = load i64, ptr %size.place
  %block = call ptr @dy2st.export.new(i64 64, i64 %size)
  %block.place = getelementptr ptr, ptr %blocks, i64 %i
  store ptr %block, ptr %block.place
  %i.next = add i64 %i, 1
  br label %make
wait:
  %j = phi i64 [ 0, %make ], [ %j.next, %waits ]
  %more = icmp ult i64 %j, %count
  br i1 %more, label %put, label %bring
put:
  %put.place = getelementptr ptr, ptr %blocks, i64 %j
  %made = load ptr, ptr %put.place
  %none = icmp eq ptr %made, null
  br i1 %none, label %waits, label %old
old:
  call void @dy2st.export.old(ptr %made)
  br label %waits
waits:
  %j.next = add i64 %j, 1
  br label %wait
bring:
  %k = phi i64 [ 0, %wait ], [ %k.next, %touch ]
  %left = icmp ult i64 %k, %count
  br i1 %left, label %touch, label %reserve
touch:
  %touch.place = getelementptr ptr, ptr %blocks, i64 %k
  %touched = load ptr, ptr %touch.place
  %length.place = getelementptr i64, ptr %sizes, i64 %k
  %length = load i64, ptr %length.place
  %ignored = call i32 @dy2st.external.madvise(ptr %touched, i64 %length, i32 {POPULATE})
  %k.next = add i64 %k, 1
  br label %bring
reserve:
  %bytes = load i64, ptr %asked
  call void @dy2st.reserve.bring(i64 %bytes)
  call void @dy2st.external.free(ptr %asked)
  ret ptr null
}}

define void @dy2st.export.taken(ptr %told) {{
  %bytes = load atomic i64, ptr @dy2st.reserve.taken monotonic, align 8
  store i64 %bytes, ptr %told
  %count = load atomic i64, ptr @dy2st.large monotonic, align 8
  %count.place = getelementptr i64, ptr %told, i64 1
  store i64 %count, ptr %count.place
  %sizes = getelementptr i64, ptr %told, i64 2
  call void @llvm.memcpy.p0.p0.i64(ptr %sizes, ptr @dy2st.large.sizes, i64 {8 * LATEST}, i1 false)
  ret void
}}
"""
AHEAD = _TEXT if sys.platform == "linux" else ""
