"""The workers themselves: how they are made, and kept away from the CPU that the work begins on."""

from __future__ import annotations

from dy2st.runtime.backends.cpu.thread_pool.memory_layout import HANDLES, PLACES

_MOST_PLACED = 15
"""How many workers there are at most that are kept away from one CPU: where there are more, it makes no difference."""
_SET_BYTES = 128
"""The size of libc's set of CPUs."""
_UNBLOCKED = (4, 5, 6, 7, 8, 11)
"""Signals of faults, which workers do not hold back: SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV."""
_SIGNALS = -1 - sum(1 << (number - 1) for number in _UNBLOCKED)

_START = f"""
; make workers until there are so many; signals stay with the threads of Python
define internal void @start(i64 %wanted) noinline cold nounwind {{
entry:
  %all = alloca [16 x i64], align 16
  %old = alloca [16 x i64], align 16
  br label %fill
fill:
  %word = phi i64 [ 0, %entry ], [ %word.next, %fill ]
  %word.place = getelementptr i64, ptr %all, i64 %word
  %first = icmp eq i64 %word, 0
  %bits = select i1 %first, i64 {_SIGNALS}, i64 -1
  store i64 %bits, ptr %word.place
  %word.next = add i64 %word, 1
  %filled = icmp eq i64 %word.next, 16
  br i1 %filled, label %mask, label %fill
mask:
  %masked = call i32 @dy2st.external.pthread_sigmask(i32 0, ptr %all, ptr %old)
  br label %look
look:
  %made = load i64, ptr {PLACES["workers"]}
  %more = icmp slt i64 %made, %wanted
  br i1 %more, label %make, label %done
make:
  %handles = getelementptr i8, ptr @pool, i64 {HANDLES}
  %handle = getelementptr i64, ptr %handles, i64 %made
  %who = add i64 %made, 1
  %argument = inttoptr i64 %who to ptr
  %failed = call i32 @dy2st.external.pthread_create(ptr %handle, ptr null, ptr @worker, ptr %argument)
  %good = icmp eq i32 %failed, 0
  br i1 %good, label %count, label %done
count:
  store i64 %who, ptr {PLACES["workers"]}
  br label %look
done:
  %restored = call i32 @dy2st.external.pthread_sigmask(i32 2, ptr %old, ptr null)
  ret void
}}"""

_PLACE = f"""
; keep the workers away from the CPU on which the work is begun: the system likes to wake them there
define internal void @place() nounwind {{
entry:
  %set = alloca [{_SET_BYTES} x i8], align 16
  %now = call i32 @dy2st.external.sched_getcpu()
  %cpu = sext i32 %now to i64
  %before = load i64, ptr {PLACES["cpu"]}
  %same = icmp eq i64 %cpu, %before
  %count = load i64, ptr {PLACES["workers"]}
  %many = icmp sgt i64 %count, {_MOST_PLACED}
  %unknown = icmp uge i64 %cpu, {8 * _SET_BYTES}
  %settled = or i1 %same, %many
  %leave = or i1 %settled, %unknown
  br i1 %leave, label %done, label %read
read:
  store i64 %cpu, ptr {PLACES["cpu"]}
  call void @llvm.memset.p0.i64(ptr %set, i8 0, i64 {_SET_BYTES}, i1 false)
  %self = call i64 @dy2st.external.pthread_self()
  %failed = call i32 @dy2st.external.pthread_getaffinity_np(i64 %self, i64 {_SET_BYTES}, ptr %set)
  %good = icmp eq i32 %failed, 0
  br i1 %good, label %clear, label %done
clear:
  %index = lshr i64 %cpu, 3
  %byte = getelementptr i8, ptr %set, i64 %index
  %bit = and i64 %cpu, 7
  %bit.byte = trunc i64 %bit to i8
  %one = shl i8 1, %bit.byte
  %others = xor i8 %one, -1
  %old = load i8, ptr %byte
  %new = and i8 %old, %others
  store i8 %new, ptr %byte
  br label %each
each:
  %i = phi i64 [ 0, %clear ], [ %next, %put ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %put, label %done
put:
  %handles = getelementptr i8, ptr @pool, i64 {HANDLES}
  %place = getelementptr i64, ptr %handles, i64 %i
  %handle = load i64, ptr %place
  %result = call i32 @dy2st.external.pthread_setaffinity_np(i64 %handle, i64 {_SET_BYTES}, ptr %set)
  %next = add i64 %i, 1
  br label %each
done:
  ret void
}}"""

TEAM = _START + "\n" + _PLACE
"""Functions of the pool: `@start(wanted)` and `@place()`."""
