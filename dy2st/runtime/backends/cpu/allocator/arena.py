"""Blocks of middle size from one reserve of memory that is brought in ahead, for a process that takes many of them.

The tape of a loop is thousands of blocks of some KiB to some MiB. From the C library they come as addresses without
memory: the system brings in each page of 4 KiB when it is touched, which takes 2.5 us, more than most kernels take to
fill it. So from a few MiB on such blocks are cut from one range of addresses, for which the system brings in some 100
pages at a call, 1.5 us each. A block that is given back waits in the list of its size for the next one that asks; the
range itself stays until the process ends.

Large pages take a tenth of that, but only where the system has some at hand. Machines that give free memory back to
their host have none: there 48 MiB took 110 ms in large pages, 32 in small ones, 20 in small ones brought in ahead. So
small ones are brought in, unless a thread beside has time to look (`dy2st.reserve.bring`): it begins with a large one,
and goes on with these for as long as each is there at once.

While a call of the system brings pages in, no other thread of the process gets addresses, or gives some back: Python
waited 11 to 20 ms of a trace for them. Who touches a page keeps nobody waiting, so the thread beside does that.

Nothing here holds a lock, so a fork in the middle of anything at most loses some blocks: who takes one takes a whole
list, and puts the rest back.
"""

from __future__ import annotations

import mmap
import sys
import time

from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import CLASSES

LEAST = 1 << 12
"""How many bytes a block has at least to come from the reserve."""
_AFTER = 1 << 21
"""After how many bytes in such blocks the reserve is opened: a process that takes fewer takes no more than them."""
_BYTES = 1 << 28
"""How many bytes the reserve has; further blocks come from the C library."""
_AHEAD = 1 << 19
"""How many bytes are brought in at once."""
POPULATE, _NO_RESERVE = 23, 0x4000
"""MADV_POPULATE_WRITE (since Linux 5.14) and MAP_NORESERVE."""
LARGE_PAGES, _SMALL_PAGES = 14, 15
"""MADV_HUGEPAGE and MADV_NOHUGEPAGE."""
_PAGE = 1 << 21
_LONG = 1_200_000
"""A large page that takes more nanoseconds than this was not at hand: as many small ones take about as long."""

_OPENED = f"""
@dy2st.reserve = internal global ptr null
@dy2st.reserve.asked = internal global i64 0
@dy2st.reserve.used = internal global i64 0
@dy2st.reserve.ahead = internal global i64 0
@dy2st.reserve.taken = internal global i64 0
@dy2st.reserve.lists = internal global [{CLASSES} x ptr] zeroinitializer

declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)

; where the reserve begins, opened where that is due; null where there is none
define internal ptr @dy2st.reserve.open(i64 %bytes) {{
entry:
  %there = load atomic ptr, ptr @dy2st.reserve acquire, align 8
  %none = icmp eq ptr %there, null
  br i1 %none, label %ask, label %done
ask:
  %asked = atomicrmw add ptr @dy2st.reserve.asked, i64 %bytes monotonic
  %early = icmp ult i64 %asked, {_AFTER}
  br i1 %early, label %done, label %map
map:
  %whole = call ptr @mmap(ptr null, i64 {_BYTES + _PAGE}, i32 {mmap.PROT_READ | mmap.PROT_WRITE},
    i32 {mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE}, i32 -1, i64 0)
  %failed = icmp eq ptr %whole, inttoptr (i64 -1 to ptr)
  br i1 %failed, label %refused, label %mapped
mapped:
  %number = ptrtoint ptr %whole to i64
  %above = add i64 %number, {_PAGE - 1}
  %aligned = and i64 %above, {-_PAGE}
  %begin = inttoptr i64 %aligned to ptr
  %pair = cmpxchg ptr @dy2st.reserve, ptr null, ptr %begin acq_rel acquire
  %first = extractvalue {{ptr, i1}} %pair, 1
  br i1 %first, label %done, label %late
late:
  %other = extractvalue {{ptr, i1}} %pair, 0
  %gone = call i32 @munmap(ptr %whole, i64 {_BYTES + _PAGE})
  br label %done
refused:
  br label %done
done:
  %found = phi ptr [ %there, %entry ], [ null, %ask ], [ %begin, %mapped ], [ %other, %late ], [ null, %refused ]
  ret ptr %found
}}

; put a chain of blocks into a list from which somebody else may take and to which somebody else may add
define internal void @dy2st.reserve.back(ptr %list, ptr %chain) {{
entry:
  br label %try
try:
  %rest = phi ptr [ %chain, %entry ], [ %rest, %taken ], [ %others, %join ]
  %empty = icmp eq ptr %rest, null
  br i1 %empty, label %done, label %put
put:
  %pair = cmpxchg ptr %list, ptr null, ptr %rest acq_rel monotonic
  %was.empty = extractvalue {{ptr, i1}} %pair, 1
  br i1 %was.empty, label %done, label %taken
taken:
  %others = atomicrmw xchg ptr %list, ptr null acq_rel
  %nobody = icmp eq ptr %others, null
  br i1 %nobody, label %try, label %walk
walk:
  %at = phi ptr [ %others, %taken ], [ %next, %walk ]
  %link = getelementptr i8, ptr %at, i64 16
  %next = load ptr, ptr %link
  %last = icmp eq ptr %next, null
  br i1 %last, label %join, label %walk
join:
  store ptr %rest, ptr %link
  br label %try
done:
  ret void
}}

; a block of the reserve; null where the C library is to give one
define internal ptr @dy2st.reserve.new(i64 %bytes) {{
entry:
  %class = call i64 @dy2st.class(i64 %bytes)
  %list = getelementptr ptr, ptr @dy2st.reserve.lists, i64 %class
  %all = atomicrmw xchg ptr %list, ptr null acq_rel
  %empty = icmp eq ptr %all, null
  br i1 %empty, label %fresh, label %look
look:
  %size.place = getelementptr i8, ptr %all, i64 40
  %size = load i64, ptr %size.place
  %fits = icmp uge i64 %size, %bytes
  br i1 %fits, label %take, label %leave
take:
  %link = getelementptr i8, ptr %all, i64 16
  %rest = load ptr, ptr %link
  call void @dy2st.reserve.back(ptr %list, ptr %rest)
  ret ptr %all
leave:
  call void @dy2st.reserve.back(ptr %list, ptr %all)
  br label %fresh
fresh:
  %others = atomicrmw add ptr @dy2st.reserve.taken, i64 %bytes monotonic
  %base = call ptr @dy2st.reserve.open(i64 %bytes)
  %none = icmp eq ptr %base, null
  br i1 %none, label %out, label %cut
cut:
  %more = add i64 %bytes, 63
  %whole = and i64 %more, -64
  %at = atomicrmw add ptr @dy2st.reserve.used, i64 %whole monotonic
  %end = add i64 %at, %whole
  %room = icmp ule i64 %end, {_BYTES}
  br i1 %room, label %made, label %full
made:
  %block = getelementptr i8, ptr %base, i64 %at
  %so.far = load atomic i64, ptr @dy2st.reserve.ahead monotonic, align 8
  %new = icmp ugt i64 %end, %so.far
  br i1 %new, label %ahead, label %head
ahead:
  %up = add i64 %end, {_AHEAD - 1}
  %to = and i64 %up, {-_AHEAD}
  %swap = cmpxchg ptr @dy2st.reserve.ahead, i64 %so.far, i64 %to monotonic monotonic
  %mine = extractvalue {{i64, i1}} %swap, 1
  br i1 %mine, label %bring, label %head
bring:
  %from = getelementptr i8, ptr %base, i64 %so.far
  %length = sub i64 %to, %so.far
  %ignored = call i32 @dy2st.external.madvise(ptr %from, i64 %length, i32 {POPULATE})
  br label %head
head:
  %kept.place = getelementptr i8, ptr %block, i64 40
  store i64 %whole, ptr %kept.place
  ret ptr %block
full:
  %undone = atomicrmw sub ptr @dy2st.reserve.used, i64 %whole monotonic
  br label %out
out:
  ret ptr null
}}

define internal i64 @dy2st.reserve.now() {{
entry:
  %time = alloca [2 x i64]
  %ignored = call i32 @dy2st.external.clock_gettime(i32 {time.CLOCK_MONOTONIC}, ptr %time)
  %seconds = load i64, ptr %time
  %place = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %place
  %scaled = mul i64 %seconds, 1000000000
  %sum = add i64 %scaled, %rest
  ret i64 %sum
}}

; bring memory in page by page: a byte that is compared and put back is touched, and stays what it is
define internal void @dy2st.reserve.touch(ptr %from, i64 %bytes) {{
entry:
  br label %look
look:
  %at = phi i64 [ 0, %entry ], [ %next, %page ]
  %more = icmp ult i64 %at, %bytes
  br i1 %more, label %page, label %done
page:
  %place = getelementptr i8, ptr %from, i64 %at
  %touched = cmpxchg ptr %place, i8 0, i8 0 monotonic monotonic
  %next = add i64 %at, {mmap.PAGESIZE}
  br label %look
done:
  ret void
}}

; bring in memory for that many bytes more than are in use, piece by piece: others may do so at the same time
define internal void @dy2st.reserve.bring(i64 %bytes) {{
entry:
  %due = atomicrmw add ptr @dy2st.reserve.asked, i64 {_AFTER} monotonic
  %base = call ptr @dy2st.reserve.open(i64 0)
  %none = icmp eq ptr %base, null
  br i1 %none, label %done, label %goal
goal:
  %used = load atomic i64, ptr @dy2st.reserve.used monotonic, align 8
  %wish = add i64 %used, %bytes
  %too.far = icmp ugt i64 %wish, {_BYTES}
  %end = select i1 %too.far, i64 {_BYTES}, i64 %wish
  %begun = load atomic i64, ptr @dy2st.reserve.ahead monotonic, align 8
  %up = add i64 %begun, {_PAGE - 1}
  %next.page = and i64 %up, {-_PAGE}
  %far = icmp ult i64 %next.page, %end
  br i1 %far, label %advise, label %look
advise:
  %first = getelementptr i8, ptr %base, i64 %next.page
  %end.up = add i64 %end, {_PAGE - 1}
  %last.page = and i64 %end.up, {-_PAGE}
  %more = sub i64 %last.page, %next.page
  %advised = call i32 @dy2st.external.madvise(ptr %first, i64 %more, i32 {LARGE_PAGES})
  br label %look
look:
  %large = phi i1 [ true, %goal ], [ true, %advise ], [ %large, %ask ], [ %large, %bring ], [ false, %small ]
  %so.far = load atomic i64, ptr @dy2st.reserve.ahead monotonic, align 8
  %less = icmp ult i64 %so.far, %end
  br i1 %less, label %ask, label %done
ask:
  %within = and i64 %so.far, {_PAGE - 1}
  %at.page = icmp eq i64 %within, 0
  %whole = and i1 %at.page, %large
  %step = select i1 %whole, i64 {_PAGE}, i64 {_AHEAD}
  %to = add i64 %so.far, %step
  %swap = cmpxchg ptr @dy2st.reserve.ahead, i64 %so.far, i64 %to monotonic monotonic
  %mine = extractvalue {{i64, i1}} %swap, 1
  br i1 %mine, label %bring, label %look
bring:
  %from = getelementptr i8, ptr %base, i64 %so.far
  %before = call i64 @dy2st.reserve.now()
  call void @dy2st.reserve.touch(ptr %from, i64 %step)
  %after = call i64 @dy2st.reserve.now()
  %took = sub i64 %after, %before
  %long = icmp ugt i64 %took, {_LONG}
  %slow = and i1 %whole, %long
  br i1 %slow, label %small, label %look
small:
  %next = getelementptr i8, ptr %base, i64 %to
  %rest = sub i64 {_BYTES}, %to
  %refused = call i32 @dy2st.external.madvise(ptr %next, i64 %rest, i32 {_SMALL_PAGES})
  br label %look
done:
  ret void
}}

; give back the memory of a block that nobody holds
define void @dy2st.export.free(ptr %block) {{
entry:
  %base = load atomic ptr, ptr @dy2st.reserve acquire, align 8
  %number = ptrtoint ptr %block to i64
  %first = ptrtoint ptr %base to i64
  %at = sub i64 %number, %first
  %inside = icmp ult i64 %at, {_BYTES}
  %open = icmp ne ptr %base, null
  %here = and i1 %inside, %open
  br i1 %here, label %wait, label %elsewhere
wait:
  %size.place = getelementptr i8, ptr %block, i64 40
  %size = load i64, ptr %size.place
  %class = call i64 @dy2st.class(i64 %size)
  %list = getelementptr ptr, ptr @dy2st.reserve.lists, i64 %class
  %link = getelementptr i8, ptr %block, i64 16
  br label %push
push:
  %head = load atomic ptr, ptr %list monotonic, align 8
  store ptr %head, ptr %link
  %pair = cmpxchg ptr %list, ptr %head, ptr %block acq_rel monotonic
  %put = extractvalue {{ptr, i1}} %pair, 1
  br i1 %put, label %done, label %push
elsewhere:
  call void @dy2st.external.free(ptr %block)
  br label %done
done:
  ret void
}}
"""
_NONE = """
define internal ptr @dy2st.reserve.new(i64 %bytes) {
  ret ptr null
}

define void @dy2st.export.free(ptr %block) {
  call void @dy2st.external.free(ptr %block)
  ret void
}
"""
RESERVE = _OPENED if sys.platform == "linux" else _NONE
"""LLVM functions: `dy2st.reserve.new`, and `dy2st.export.free`, which gives any block back but guarded ones."""
