"""LLVM functions that bring in memory before a run asks for it, and that tell how much runs have asked for.

a request        0 the next one                       8 bytes of blocks from the reserve
                16 how many large blocks              24 how many arrays
                32... the bytes of each large block, and from there on, one for each, their addresses, put there then
               288... of each array its address and its bytes
what was taken   0 bytes of blocks from the reserve   8 how many large blocks    16... the bytes of the latest

One thread at a time works: it takes whatever was asked for meanwhile. An array may be gone by then, and its addresses
with it: the system says so, and nothing happens.
"""

from __future__ import annotations

import sys

from dy2st.runtime.backends.cpu.allocator.arena import POPULATE
from dy2st.runtime.backends.cpu.allocator.large_pages import LATEST, SLOTS

MOST_LARGE = SLOTS
_SIZES = 4
_BLOCKS = _SIZES + MOST_LARGE
ARRAYS = _BLOCKS + MOST_LARGE
"""The word of a request at which its arrays stand."""
TAKEN_WORDS = 2 + LATEST

_TEXT = f"""
@dy2st.ahead.requests = internal global ptr null
@dy2st.ahead.count = internal global i64 0

; add a request, which is freed when it is done; say how many there are before it: where there is none, nobody works
define i64 @dy2st.export.ask(ptr %asked) {{
entry:
  br label %push
push:
  %head = load atomic ptr, ptr @dy2st.ahead.requests monotonic, align 8
  store ptr %head, ptr %asked
  %pair = cmpxchg ptr @dy2st.ahead.requests, ptr %head, ptr %asked acq_rel monotonic
  %put = extractvalue {{ptr, i1}} %pair, 1
  br i1 %put, label %done, label %push
done:
  %before = atomicrmw add ptr @dy2st.ahead.count, i64 1 acq_rel
  ret i64 %before
}}

; the start of a thread
define ptr @dy2st.export.ahead(ptr %ignored) {{
entry:
  br label %pop
pop:
  %head = load atomic ptr, ptr @dy2st.ahead.requests acquire, align 8
  %next = load ptr, ptr %head
  %pair = cmpxchg ptr @dy2st.ahead.requests, ptr %head, ptr %next acq_rel monotonic
  %mine = extractvalue {{ptr, i1}} %pair, 1
  br i1 %mine, label %work, label %pop
work:
  call void @dy2st.ahead.bring(ptr %head)
  call void @dy2st.external.free(ptr %head)
  %count = atomicrmw sub ptr @dy2st.ahead.count, i64 1 acq_rel
  %last = icmp eq i64 %count, 1
  br i1 %last, label %done, label %pop
done:
  ret ptr null
}}

; large blocks wait from the beginning, their memory comes then
define internal void @dy2st.ahead.bring(ptr %asked) {{
entry:
  %count.place = getelementptr i64, ptr %asked, i64 2
  %count = load i64, ptr %count.place
  %sizes = getelementptr i64, ptr %asked, i64 {_SIZES}
  %blocks = getelementptr i64, ptr %asked, i64 {_BLOCKS}
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
  br i1 %more, label %put, label %touch
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
touch:
  %k = phi i64 [ 0, %wait ], [ %k.next, %populate ]
  %left = icmp ult i64 %k, %count
  br i1 %left, label %populate, label %reserve
populate:
  %touch.place = getelementptr ptr, ptr %blocks, i64 %k
  %touched = load ptr, ptr %touch.place
  %length.place = getelementptr i64, ptr %sizes, i64 %k
  %length = load i64, ptr %length.place
  %ignored = call i32 @dy2st.external.madvise(ptr %touched, i64 %length, i32 {POPULATE})
  %k.next = add i64 %k, 1
  br label %touch
reserve:
  %bytes.place = getelementptr i64, ptr %asked, i64 1
  %bytes = load i64, ptr %bytes.place
  %any = icmp ne i64 %bytes, 0
  br i1 %any, label %bring, label %look
bring:
  call void @dy2st.reserve.bring(i64 %bytes)
  br label %look
look:
  %arrays.place = getelementptr i64, ptr %asked, i64 3
  %arrays = load i64, ptr %arrays.place
  br label %next
next:
  %a = phi i64 [ 0, %look ], [ %a.next, %array ]
  %rest = icmp ult i64 %a, %arrays
  br i1 %rest, label %array, label %done
array:
  %pair = shl i64 %a, 1
  %from.at = add i64 %pair, {ARRAYS}
  %from.place = getelementptr ptr, ptr %asked, i64 %from.at
  %from = load ptr, ptr %from.place
  %to.at = add i64 %from.at, 1
  %to.place = getelementptr i64, ptr %asked, i64 %to.at
  %to = load i64, ptr %to.place
  %refused = call i32 @dy2st.external.madvise(ptr %from, i64 %to, i32 {POPULATE})
  %a.next = add i64 %a, 1
  br label %next
done:
  ret void
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
