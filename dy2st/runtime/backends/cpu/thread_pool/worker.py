"""What workers run: they wait for a job, looking first, then asleep, and take the parts of it that are left.

A worker enters a job by counting itself in while the job stands open; who opened it closes it when no part is left, and
waits for those inside (job_scheduling.py). Each thread begins with a range of its own, then helps with those of the
others, so that a worker that the system does not let run costs nothing.
"""

from __future__ import annotations

from dy2st.runtime.backends.cpu.thread_pool.memory_layout import BYTES, FIELDS, OPEN, PLACES, RANGE_BYTES

_LOOKING, _QUIET_LOOKS = 100_000, 40
"""For how many nanoseconds a worker looks for a job before it sleeps; and how often one looks before the clock."""
_TAKEN_AWAY = 20_000
"""Looks that are so many nanoseconds apart were not made in a row: the system ran something else on this CPU."""

_WAIT, _WAKE = 128 | 9, 128 | 10
"""Commands of Linux's system call `futex`, within one process: only those are woken who share a bit with the caller."""


def worker_text(arm: bool) -> str:
    """Return the memory of the pool and the functions of its workers, for AArch64 or x86."""
    pause = ("void @llvm.aarch64.hint(i32", "i32 1") if arm else ("void @llvm.x86.sse2.pause(", "")
    return "\n".join((f"declare {pause[0]})", _sleep(futex=98 if arm else 202), _pause(*pause), _JOIN, _WORK, _WORKER))


def _sleep(futex: int) -> str:
    return f"""
@pool = internal global [{BYTES} x i8] zeroinitializer, align 128

define ptr @dy2st.pool() {{
  ret ptr @pool
}}

; sleep while the word at a place is `seen`, as one of those that `bits` are for
define internal void @sleep(ptr %place, i32 %seen, i32 %bits) nounwind {{
  %r = call i64 (i64, ...) @dy2st.external.syscall(i64 {futex}, ptr %place, i32 {_WAIT}, i32 %seen, ptr null,
    ptr null, i32 %bits)
  ret void
}}

define internal void @wake(ptr %place, i32 %bits) nounwind {{
  %r = call i64 (i64, ...) @dy2st.external.syscall(i64 {futex}, ptr %place, i32 {_WAKE}, i32 2147483647, ptr null,
    ptr null, i32 %bits)
  ret void
}}"""


def _pause(pause: str, argument: str) -> str:
    """Return how one turn of looking goes. It keeps the CPU: beside others, who gives it away may wait for
    milliseconds until it is there again, at every job.
    """
    name = pause.partition("@")[2].partition("(")[0]
    return f"""
define internal void @pause() nounwind {{
  call void @{name}({argument})
  ret void
}}"""


_JOIN = f"""
; let those who are inside a job that was closed come out; how many nanoseconds that took, or 0 if no more than patience
define internal i64 @join(i64 %patience) nounwind {{
entry:
  br label %look
look:
  %turn = phi i64 [ 0, %entry ], [ %next, %turned ]
  %begun = phi i64 [ 0, %entry ], [ %since, %turned ]
  %inside = load atomic i64, ptr {PLACES["state"]} acquire, align 8
  %empty = icmp eq i64 %inside, 0
  br i1 %empty, label %done, label %more
more:
  call void @pause()
  %next = add i64 %turn, 1
  %long = icmp ugt i64 %turn, {_QUIET_LOOKS}
  br i1 %long, label %clock, label %turned
clock:
  %now = call i64 @now()
  %first = icmp eq i64 %begun, 0
  %start = select i1 %first, i64 %now, i64 %begun
  %time = sub i64 %now, %start
  %late = icmp ugt i64 %time, %patience
  br i1 %late, label %rest, label %turned
turned:
  %since = phi i64 [ %begun, %more ], [ %start, %clock ]
  br label %look
rest:
  store atomic i64 1, ptr {PLACES["waiting"]} seq_cst, align 8
  br label %still
still:
  %left = load atomic i32, ptr {PLACES["state"]} seq_cst, align 8
  %some = icmp ne i32 %left, 0
  br i1 %some, label %block, label %woken
block:
  call void @sleep(ptr {PLACES["state"]}, i32 %left, i32 -1)
  br label %still
woken:
  store atomic i64 0, ptr {PLACES["waiting"]} release, align 8
  %end = call i64 @now()
  %whole = sub i64 %end, %start
  ret i64 %whole
done:
  ret i64 0
}}

; a clock that only goes forward, in nanoseconds
define internal i64 @now() nounwind {{
  %time = alloca [2 x i64]
  %r = call i32 @dy2st.external.clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time
  %place = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %place
  %most = mul i64 %seconds, 1000000000
  %all = add i64 %most, %rest
  ret i64 %all
}}"""

_WORK = f"""
; run parts of the job while there are any: first those of one's own range
define internal void @work(i64 %who) nounwind {{
entry:
  %body = load ptr, ptr {PLACES["body"]}
  %row = load ptr, ptr {PLACES["row"]}
  %part = load i64, ptr {PLACES["part"]}
  %team = load i64, ptr {PLACES["team"]}
  br label %ranges
ranges:
  %far = phi i64 [ 0, %entry ], [ %farther, %next.range ]
  %some = icmp ult i64 %far, %team
  br i1 %some, label %range, label %done
range:
  %beyond = add i64 %who, %far
  %number = urem i64 %beyond, %team
  %offset = mul i64 %number, {RANGE_BYTES}
  %ranges.start = getelementptr i8, ptr @pool, i64 {FIELDS["ranges"]}
  %place = getelementptr i8, ptr %ranges.start, i64 %offset
  %end.place = getelementptr i8, ptr %place, i64 8
  %end = load i64, ptr %end.place
  br label %take
take:
  %from = atomicrmw add ptr %place, i64 %part monotonic
  %there = icmp slt i64 %from, %end
  br i1 %there, label %run, label %next.range
run:
  %upto = add i64 %from, %part
  %to = call i64 @llvm.umin.i64(i64 %upto, i64 %end)
  call void %body(ptr %row, i64 %from, i64 %to, i64 %who)
  br label %take
next.range:
  %farther = add i64 %far, 1
  br label %ranges
done:
  ret void
}}"""

_WORKER = f"""
define internal ptr @worker(ptr %argument) nounwind {{
entry:
  %begun = alloca i64
  %looked = alloca i64
  %who = ptrtoint ptr %argument to i64
  %number = trunc i64 %who to i32
  %bit = and i32 %number, 31
  %own = shl i32 1, %bit
  br label %look
look:
  %seen = phi i32 [ 0, %entry ], [ %seen, %more ], [ %seen, %clock ], [ %seen, %slept ], [ %epoch, %out ],
    [ %epoch, %alone ], [ %epoch, %tell ], [ %epoch, %try ]
  %turn = phi i64 [ 0, %entry ], [ %next, %more ], [ %next, %clock ], [ 0, %slept ], [ 0, %out ], [ 0, %alone ],
    [ 0, %tell ], [ 0, %try ]
  %epoch = load atomic i32, ptr {PLACES["epoch"]} acquire, align 4
  %new = icmp ne i32 %epoch, %seen
  br i1 %new, label %job, label %more
more:
  call void @pause()
  %next = add i64 %turn, 1
  %long = icmp ugt i64 %turn, {_QUIET_LOOKS}
  br i1 %long, label %clock, label %look
clock:
  %now = call i64 @now()
  %first = icmp eq i64 %turn, {_QUIET_LOOKS + 1}
  %last.look = load i64, ptr %looked
  %begun.before = load i64, ptr %begun
  %begin = select i1 %first, i64 %now, i64 %begun.before
  %previous = select i1 %first, i64 %now, i64 %last.look
  store i64 %begin, ptr %begun
  store i64 %now, ptr %looked
  %spent = sub i64 %now, %begin
  %gap = sub i64 %now, %previous
  %tired = icmp ugt i64 %spent, {_LOOKING}
  %away = icmp ugt i64 %gap, {_TAKEN_AWAY}
  %rests = or i1 %tired, %away
  br i1 %rests, label %rest, label %look
rest:
  %before = atomicrmw add ptr {PLACES["sleepers"]}, i64 1 seq_cst
  call void @sleep(ptr {PLACES["epoch"]}, i32 %seen, i32 %own)
  %after = atomicrmw sub ptr {PLACES["sleepers"]}, i64 1 seq_cst
  br label %slept
slept:
  br label %look
job:
  %quit = load atomic i64, ptr {PLACES["quit"]} acquire, align 8
  %ends = icmp ne i64 %quit, 0
  br i1 %ends, label %end, label %try
try:
  %state = load atomic i64, ptr {PLACES["state"]} monotonic, align 8
  %open = icmp uge i64 %state, {OPEN}
  br i1 %open, label %enter, label %look
enter:
  %one.more = add i64 %state, 1
  %pair = cmpxchg ptr {PLACES["state"]}, i64 %state, i64 %one.more acquire monotonic
  %entered = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %entered, label %in, label %job
in:
  %team = load i64, ptr {PLACES["team"]}
  %part.of = icmp ult i64 %who, %team
  br i1 %part.of, label %do, label %out
do:
  call void @work(i64 %who)
  br label %out
out:
  %inside = atomicrmw sub ptr {PLACES["state"]}, i64 1 seq_cst
  %last = icmp eq i64 %inside, 1
  br i1 %last, label %alone, label %look
alone:
  %waiting = load atomic i64, ptr {PLACES["waiting"]} seq_cst, align 8
  %awaited = icmp ne i64 %waiting, 0
  br i1 %awaited, label %tell, label %look
tell:
  call void @wake(ptr {PLACES["state"]}, i32 -1)
  br label %look
end:
  ret ptr null
}}"""
