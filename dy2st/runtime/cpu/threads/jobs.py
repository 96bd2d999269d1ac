"""How a job is shared: who has work for several threads takes the pool, opens the job, works, and waits for the others.

    void @dy2st.pool.parallel(ptr body, ptr row, i64 units, i64 cost, i64 most)

(`dy2st.parallel` for the modules that call it) runs `body(row, from, to, who)` on ranges that cover 0 .. units once, on
this thread and on workers. `who` is below `most`, and different for those that run at once. `cost` says how many
picoseconds a unit takes. One thread at a time has the pool; another one that finds it busy does its work alone.
"""

from __future__ import annotations

from dy2st.runtime.cpu.threads.state import FIELDS, HANDLES, OPEN, PLACES, RANGE_BYTES
from dy2st.runtime.cpu.threads.worker import worker_text

LEAST_COST = 6_000_000
"""Work of fewer picoseconds is not worth being shared."""
_LONG_COST = 40_000_000
"""Work of so many picoseconds is worth giving Python's lock away for; and waking those who sleep, once they have missed
so much."""
_PART_COST = 2_000_000
"""How many picoseconds a part takes at least, where there are enough units."""
_PATIENCE, _MOST_SKIPPED = 100_000, 63
"""After how many nanoseconds beyond those of four parts a worker is late, because the system runs something else in its
place. Then the next job is not shared; after it was late again, the next three, and so on up to so many."""
_MOST_PLACED = 15
"""How many workers there are at most that are kept away from one CPU: where there are more, it makes no difference."""
_SET_BYTES = 128
"""The size of libc's set of CPUs."""
_UNBLOCKED = (4, 5, 6, 7, 8, 11)
"""Signals of faults, which workers do not hold back: SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV."""
_SIGNALS = -1 - sum(1 << (number - 1) for number in _UNBLOCKED)

EXTERNALS = (
    "pthread_create", "pthread_join", "pthread_sigmask", "sched_yield", "syscall", "clock_gettime",
    "pthread_self", "pthread_getaffinity_np", "pthread_setaffinity_np", "sched_getcpu",
    "PyGILState_Check", "PyGILState_GetThisThreadState", "PyEval_SaveThread", "PyEval_RestoreThread",
)  # fmt: skip
"""Functions of libc and Python that this code calls, as `dy2st.external.<name>`."""


def pool_text() -> str:
    """Return the module of the pool for this machine."""
    return "\n".join((_DECLARED, worker_text(), _START, _PLACE, _SET, _PARALLEL, _LOCK))


_DECLARED = """\
declare i32 @dy2st.external.pthread_create(ptr, ptr, ptr, ptr)
declare i32 @dy2st.external.pthread_join(i64, ptr)
declare i32 @dy2st.external.pthread_sigmask(i32, ptr, ptr)
declare i32 @dy2st.external.sched_yield()
declare i32 @dy2st.external.clock_gettime(i32, ptr)
declare i64 @dy2st.external.pthread_self()
declare i32 @dy2st.external.pthread_getaffinity_np(i64, i64, ptr)
declare i32 @dy2st.external.pthread_setaffinity_np(i64, i64, ptr)
declare i32 @dy2st.external.sched_getcpu()
declare i64 @dy2st.external.syscall(i64, ...)
declare i32 @dy2st.external.PyGILState_Check()
declare ptr @dy2st.external.PyGILState_GetThisThreadState()
declare ptr @dy2st.external.PyEval_SaveThread()
declare void @dy2st.external.PyEval_RestoreThread(ptr)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"""

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

_SET = f"""
; end the workers when nobody has the pool, and set how many threads there are to be
define void @dy2st.pool.set(i64 %threads) nounwind {{
entry:
  br label %look
look:
  %turn = phi i64 [ 0, %entry ], [ %turn.next, %wait ]
  %pair = cmpxchg ptr {PLACES["busy"]}, i64 0, i64 1 acquire monotonic
  %mine = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %mine, label %tell, label %wait
wait:
  call void @wait(i64 %turn)
  %turn.next = add i64 %turn, 1
  br label %look
tell:
  store atomic i64 %threads, ptr {PLACES["threads"]} monotonic, align 8
  store atomic i64 1, ptr {PLACES["quit"]} release, align 8
  %number = atomicrmw add ptr {PLACES["epoch"]}, i32 1 seq_cst
  call void @wake(ptr {PLACES["epoch"]})
  %count = load i64, ptr {PLACES["workers"]}
  br label %each
each:
  %i = phi i64 [ 0, %tell ], [ %next, %join ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %join, label %done
join:
  %handles = getelementptr i8, ptr @pool, i64 {HANDLES}
  %place = getelementptr i64, ptr %handles, i64 %i
  %handle = load i64, ptr %place
  %joined = call i32 @dy2st.external.pthread_join(i64 %handle, ptr null)
  %next = add i64 %i, 1
  br label %each
done:
  store i64 0, ptr {PLACES["workers"]}
  store atomic i64 0, ptr {PLACES["quit"]} release, align 8
  store atomic i64 0, ptr {PLACES["busy"]} release, align 8
  ret void
}}"""

_PARALLEL = f"""
define void @dy2st.pool.parallel(ptr %body, ptr %row, i64 %units, i64 %cost, i64 %most) nounwind {{
entry:
  %total = mul i64 %units, %cost
  %long = icmp uge i64 %total, {_LONG_COST}
  br i1 %long, label %give, label %count
give:
  call void @let_python_run()
  br label %count
count:
  %threads = load atomic i64, ptr {PLACES["threads"]} monotonic, align 8
  %no.more = call i64 @llvm.umin.i64(i64 %most, i64 %units)
  %team = call i64 @llvm.umin.i64(i64 %no.more, i64 %threads)
  %several = icmp ugt i64 %team, 1
  br i1 %several, label %try, label %alone
try:
  %pair = cmpxchg ptr {PLACES["busy"]}, i64 0, i64 1 acquire monotonic
  %mine = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %mine, label %have, label %alone
alone:
  call void %body(ptr %row, i64 0, i64 %units, i64 0)
  ret void
have:
  %penalty = load i64, ptr {PLACES["penalty"]}
  %skips = load i64, ptr {PLACES["skipped"]}
  %skip = icmp ne i64 %skips, 0
  br i1 %skip, label %skipped, label %team.up
skipped:
  %skips.less = sub i64 %skips, 1
  store i64 %skips.less, ptr {PLACES["skipped"]}
  store atomic i64 0, ptr {PLACES["busy"]} release, align 8
  br label %alone
team.up:
  %wanted = sub i64 %team, 1
  %made = load i64, ptr {PLACES["workers"]}
  %enough = icmp sge i64 %made, %wanted
  br i1 %enough, label %set, label %start
start:
  call void @start(i64 %wanted)
  store i64 -1, ptr {PLACES["cpu"]}
  br label %set
set:
  call void @place()
  %positive = call i64 @llvm.umax.i64(i64 %cost, i64 1)
  %least = udiv i64 {_PART_COST}, %positive
  %parts = mul i64 %team, 8
  %even = udiv i64 %units, %parts
  %larger = call i64 @llvm.umax.i64(i64 %least, i64 %even)
  %share = udiv i64 %units, %team
  %no.larger = call i64 @llvm.umin.i64(i64 %larger, i64 %share)
  %part = call i64 @llvm.umax.i64(i64 %no.larger, i64 1)
  store ptr %body, ptr {PLACES["body"]}
  store ptr %row, ptr {PLACES["row"]}
  store i64 %part, ptr {PLACES["part"]}
  store i64 %team, ptr {PLACES["team"]}
  %rest = urem i64 %units, %team
  br label %range
range:
  %k = phi i64 [ 0, %set ], [ %k.next, %range ]
  %from = phi i64 [ 0, %set ], [ %to, %range ]
  %longer = icmp ult i64 %k, %rest
  %one = zext i1 %longer to i64
  %length = add i64 %share, %one
  %to = add i64 %from, %length
  %offset = mul i64 %k, {RANGE_BYTES}
  %ranges = getelementptr i8, ptr @pool, i64 {FIELDS["ranges"]}
  %place = getelementptr i8, ptr %ranges, i64 %offset
  %end.place = getelementptr i8, ptr %place, i64 8
  store i64 %from, ptr %place
  store i64 %to, ptr %end.place
  %k.next = add i64 %k, 1
  %all = icmp eq i64 %k.next, %team
  br i1 %all, label %open, label %range
open:
  store atomic i64 {OPEN}, ptr {PLACES["state"]} release, align 8
  %number = atomicrmw add ptr {PLACES["epoch"]}, i32 1 seq_cst
  %sleepers = load atomic i64, ptr {PLACES["sleepers"]} seq_cst, align 8
  %asleep = icmp ne i64 %sleepers, 0
  %missed.before = load i64, ptr {PLACES["missed"]}
  %missed.more = add i64 %missed.before, %total
  %missed = select i1 %asleep, i64 %missed.more, i64 0
  store i64 %missed, ptr {PLACES["missed"]}
  %wakes = icmp uge i64 %missed, {_LONG_COST}
  br i1 %wakes, label %wake, label %run
wake:
  store i64 0, ptr {PLACES["missed"]}
  call void @wake(ptr {PLACES["epoch"]})
  br label %run
run:
  call void @work(i64 0)
  %last = atomicrmw sub ptr {PLACES["state"]}, i64 {OPEN} acq_rel
  %work = mul i64 %part, %positive
  %nanoseconds = udiv i64 %work, 250
  %patience = add i64 %nanoseconds, {_PATIENCE}
  %late = call i1 @join(i64 %patience)
  %doubled = shl i64 %penalty, 1
  %worse = or i64 %doubled, 1
  %worst = call i64 @llvm.umin.i64(i64 %worse, i64 {_MOST_SKIPPED})
  %next.penalty = select i1 %late, i64 %worst, i64 0
  store i64 %next.penalty, ptr {PLACES["penalty"]}
  store i64 %next.penalty, ptr {PLACES["skipped"]}
  store atomic i64 0, ptr {PLACES["busy"]} release, align 8
  ret void
}}"""

_LOCK = f"""
; how many threads a job has at most
define i64 @dy2st.pool.threads() nounwind {{
  %threads = load atomic i64, ptr {PLACES["threads"]} monotonic, align 8
  ret i64 %threads
}}

; what takes long runs without Python's lock, from here to the end of the run
define internal void @let_python_run() nounwind {{
  %held = call i32 @dy2st.external.PyGILState_Check()
  %holds = icmp ne i32 %held, 0
  br i1 %holds, label %give, label %done
give:
  %state = call ptr @dy2st.external.PyEval_SaveThread()
  br label %done
done:
  ret void
}}

; take Python's lock again where the run has given it away
define void @dy2st.pool.take_lock() nounwind {{
  %held = call i32 @dy2st.external.PyGILState_Check()
  %lacks = icmp eq i32 %held, 0
  br i1 %lacks, label %take, label %done
take:
  %state = call ptr @dy2st.external.PyGILState_GetThisThreadState()
  call void @dy2st.external.PyEval_RestoreThread(ptr %state)
  br label %done
done:
  ret void
}}"""
