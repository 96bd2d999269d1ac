"""Large blocks of memory: in large pages, and kept for a while after arrays have given them back.

Fresh memory costs more than what most loops do with it, because the system clears it page by page. Blocks that arrays
gave back wait for the next result of their size, whatever Program and thread makes it; at most so many bytes of them.
Where no more can wait, one in eight takes the place of another, so that sizes which nobody asks for any more go in the
end, and a few too many that come again and again do not drive each other out.

    head of a block, beside what refcounted_blocks.py has there     40 bytes in all
"""

from __future__ import annotations

import sys

from dy2st.runtime.backends.cpu.allocator.arena import LARGE_PAGES, LEAST, RESERVE

_LEAST = 1 << 20
"""How many bytes a block has at least for any of this; the allocator of the C library is good at smaller ones."""
_PAGES = 1 << 22
"""From how many bytes on large pages are asked for; blocks stand on a multiple of such a page then."""
_PAGE = 1 << 21
SLOTS = 16
"""How many blocks wait at most."""
LATEST = 64
"""Of how many large blocks it is known how large the latest were."""
_ONE_OF = 8
"""Of so many blocks that find no room one takes the place of another."""
_MOST = 1 << 28
"""How many bytes wait at most."""

_ADVISED = f"""\
  %many = icmp uge i64 %bytes, {_PAGES}
  br i1 %many, label %large, label %middle
large:
  %up = add i64 %bytes, {_PAGE - 1}
  %whole = and i64 %up, {-_PAGE}
  %pages = call ptr @dy2st.external.aligned_alloc(i64 {_PAGE}, i64 %whole)
  %none = icmp eq ptr %pages, null
  br i1 %none, label %small, label %advise
advise:
  %ignored = call i32 @dy2st.external.madvise(ptr %pages, i64 %whole, i32 {LARGE_PAGES})
  %number = atomicrmw add ptr @dy2st.large, i64 1 monotonic
  %at = urem i64 %number, {LATEST}
  %note = getelementptr i64, ptr @dy2st.large.sizes, i64 %at
  store i64 %bytes, ptr %note
  br label %made"""
_PLAIN = "  br i1 false, label %advise, label %middle\nadvise:\n  br label %made"

LARGE = f"""
declare void @dy2st.external.free(ptr)
declare ptr @dy2st.external.aligned_alloc(i64, i64)
declare i32 @dy2st.external.madvise(ptr, i64, i32)
declare i32 @dy2st.external.clock_gettime(i32, ptr)
{RESERVE}
@dy2st.large = internal global i64 0
@dy2st.large.sizes = internal global [{LATEST} x i64] zeroinitializer
@dy2st.waiting = internal global [{SLOTS} x ptr] zeroinitializer
@dy2st.waiting.bytes = internal global i64 0
@dy2st.waiting.turn = internal global i64 0

; memory for a block: what waits, else new
define ptr @dy2st.export.new(i64 %align, i64 %bytes) {{
entry:
  %old = icmp uge i64 %bytes, {_LEAST}
  br i1 %old, label %slot, label %new
slot:
  %i = phi i64 [ 0, %entry ], [ %next, %on ]
  %place = getelementptr ptr, ptr @dy2st.waiting, i64 %i
  %found = atomicrmw xchg ptr %place, ptr null acq_rel
  %empty = icmp eq ptr %found, null
  br i1 %empty, label %on, label %look
look:
  %field = getelementptr i8, ptr %found, i64 40
  %size = load i64, ptr %field
  %fits = icmp eq i64 %size, %bytes
  br i1 %fits, label %take, label %back
take:
  %less = atomicrmw sub ptr @dy2st.waiting.bytes, i64 %bytes monotonic
  ret ptr %found
back:
  %pair = cmpxchg ptr %place, ptr null, ptr %found acq_rel monotonic
  %kept = extractvalue {{ptr, i1}} %pair, 1
  br i1 %kept, label %on, label %lost
lost:
  %less.lost = atomicrmw sub ptr @dy2st.waiting.bytes, i64 %size monotonic
  call void @dy2st.export.free(ptr %found)
  br label %on
on:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {SLOTS}
  br i1 %more, label %slot, label %new
new:
{_ADVISED if sys.platform == "linux" else _PLAIN}
middle:
  %few = icmp ult i64 %bytes, {LEAST}
  br i1 %few, label %small, label %cut
cut:
  %reserved = call ptr @dy2st.reserve.new(i64 %bytes)
  %full = icmp eq ptr %reserved, null
  br i1 %full, label %small, label %given
given:
  ret ptr %reserved
small:
  %plain = call ptr @dy2st.external.aligned_alloc(i64 %align, i64 %bytes)
  %failed = icmp eq ptr %plain, null
  br i1 %failed, label %out, label %made
made:
  %block = phi ptr [ {"%pages" if sys.platform == "linux" else "null"}, %advise ], [ %plain, %small ]
  %head = getelementptr i8, ptr %block, i64 40
  store i64 %bytes, ptr %head
  ret ptr %block
out:
  ret ptr null
}}

; a block that nobody holds: it waits where there is room, or where another has waited, else it is freed
define void @dy2st.export.old(ptr %block) {{
entry:
  %field = getelementptr i8, ptr %block, i64 40
  %size = load i64, ptr %field
  %large = icmp uge i64 %size, {_LEAST}
  %not.all = icmp ule i64 %size, {_MOST}
  %may.wait = and i1 %large, %not.all
  br i1 %may.wait, label %wait, label %free
wait:
  %before = atomicrmw add ptr @dy2st.waiting.bytes, i64 %size monotonic
  %after = add i64 %before, %size
  %room = icmp ule i64 %after, {_MOST}
  br i1 %room, label %slot, label %full
slot:
  %i = phi i64 [ 0, %wait ], [ %next, %on ]
  %place = getelementptr ptr, ptr @dy2st.waiting, i64 %i
  %pair = cmpxchg ptr %place, ptr null, ptr %block acq_rel monotonic
  %put = extractvalue {{ptr, i1}} %pair, 1
  br i1 %put, label %done, label %on
on:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {SLOTS}
  br i1 %more, label %slot, label %full
full:
  %turn = atomicrmw add ptr @dy2st.waiting.turn, i64 1 monotonic
  %rest = urem i64 %turn, {_ONE_OF}
  %chosen = icmp eq i64 %rest, 0
  br i1 %chosen, label %exchange, label %refuse
exchange:
  %round = udiv i64 %turn, {_ONE_OF}
  %number = urem i64 %round, {SLOTS}
  %there = getelementptr ptr, ptr @dy2st.waiting, i64 %number
  %kept = select i1 %room, ptr %block, ptr null
  %other = atomicrmw xchg ptr %there, ptr %kept acq_rel
  %nothing = icmp eq ptr %other, null
  br i1 %nothing, label %exchanged, label %drop
drop:
  %other.field = getelementptr i8, ptr %other, i64 40
  %other.size = load i64, ptr %other.field
  %less.other = atomicrmw sub ptr @dy2st.waiting.bytes, i64 %other.size monotonic
  call void @dy2st.export.free(ptr %other)
  br label %exchanged
exchanged:
  br i1 %room, label %done, label %refuse
refuse:
  %less = atomicrmw sub ptr @dy2st.waiting.bytes, i64 %size monotonic
  br label %free
free:
  call void @dy2st.export.free(ptr %block)
  br label %done
done:
  ret void
}}
"""
