"""How a job is shared: who has work for several threads takes the pool, opens the job, works, and waits for the others.

    void @dy2st.pool.parallel(ptr body, ptr row, i64 units, i64 cost, i64 most)

(`dy2st.parallel` for the modules that call it) runs `body(row, from, to, who)` on ranges that cover 0 .. units once, on
this thread and on workers. `who` is below `most`, and different for those that run at once. `cost` says how many
picoseconds a unit takes. One thread at a time has the pool; another one that finds it busy does its work alone.
"""

from __future__ import annotations

from dy2st.runtime.backends.cpu.thread_pool.gil import LONG_COST
from dy2st.runtime.backends.cpu.thread_pool.memory_layout import FIELDS, HANDLES, OPEN, PLACES, RANGE_BYTES

LEAST_COST = 6_000_000
"""Work of fewer picoseconds is not worth being shared."""
_WAKE_COST = 100_000_000
"""Those who sleep are woken once they have missed work of so many picoseconds."""
_PART_COST = 2_000_000
"""How many picoseconds a part takes at least, where there are enough units."""
_SHARE_COST = 4_000_000
"""Work of so many picoseconds is worth another thread, beyond the second one."""
_PATIENCE = 100_000
"""How many nanoseconds beyond those of four parts make a worker late: the system runs something else in its place."""
_DISTRUST, _MOST_DISTRUST = 8, 128
"""How many times as long as it was waited for, work is not shared then: from the first time on, and at most."""

_SET = f"""
; end the workers when nobody has the pool, and set how many threads there are to be; who comes until then works alone
define void @dy2st.pool.set(i64 %threads) nounwind {{
entry:
  br label %look
look:
  store atomic i64 1, ptr {PLACES["threads"]} monotonic, align 8
  %pair = cmpxchg ptr {PLACES["busy"]}, i64 0, i64 1 acquire monotonic
  %mine = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %mine, label %tell, label %wait
wait:
  %r = call i32 @dy2st.external.sched_yield()
  br label %look
tell:
  store atomic i64 %threads, ptr {PLACES["threads"]} monotonic, align 8
  store atomic i64 1, ptr {PLACES["quit"]} release, align 8
  %number = atomicrmw add ptr {PLACES["epoch"]}, i32 1 seq_cst
  call void @wake(ptr {PLACES["epoch"]}, i32 -1)
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
  %long = icmp uge i64 %total, {LONG_COST}
  br i1 %long, label %give, label %go
give:
  call void @let_python_run()
  br label %go
go:
  call void @dy2st.pool.share(ptr %body, ptr %row, i64 %units, i64 %cost, i64 %most)
  ret void
}}

; the same by who is to keep Python's lock where it has that
define void @dy2st.pool.share(ptr %body, ptr %row, i64 %units, i64 %cost, i64 %most) nounwind {{
entry:
  %total = mul i64 %units, %cost
  %threads = load atomic i64, ptr {PLACES["threads"]} monotonic, align 8
  %no.more = call i64 @llvm.umin.i64(i64 %most, i64 %units)
  %full = call i64 @llvm.umin.i64(i64 %no.more, i64 %threads)
  %shares = udiv i64 %total, {_SHARE_COST}
  %worth = call i64 @llvm.umax.i64(i64 %shares, i64 2)
  %team = call i64 @llvm.umin.i64(i64 %full, i64 %worth)
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
  %distrust = load i64, ptr {PLACES["distrust"]}
  %debt = load i64, ptr {PLACES["debt"]}
  %owes = icmp sgt i64 %debt, 0
  br i1 %owes, label %skip, label %team.up
skip:
  %debt.less = sub i64 %debt, %total
  store i64 %debt.less, ptr {PLACES["debt"]}
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
  %wakes = icmp uge i64 %missed, {_WAKE_COST}
  br i1 %wakes, label %wake, label %run
wake:
  store i64 0, ptr {PLACES["missed"]}
  %small.team = icmp ult i64 %team, 32
  %team.bit = trunc i64 %team to i32
  %beyond = shl i32 1, %team.bit
  %below = sub i32 %beyond, 2
  %bits = select i1 %small.team, i32 %below, i32 -1
  call void @wake(ptr {PLACES["epoch"]}, i32 %bits)
  br label %run
run:
  call void @work(i64 0)
  %last = atomicrmw sub ptr {PLACES["state"]}, i64 {OPEN} acq_rel
  %work = mul i64 %part, %positive
  %nanoseconds = udiv i64 %work, 250
  %patience = add i64 %nanoseconds, {_PATIENCE}
  %waited = call i64 @join(i64 %patience)
  %late = icmp ne i64 %waited, 0
  %doubled = shl i64 %distrust, 1
  %more.so = call i64 @llvm.umax.i64(i64 %doubled, i64 {_DISTRUST})
  %most.so = call i64 @llvm.umin.i64(i64 %more.so, i64 {_MOST_DISTRUST})
  %less.so = lshr i64 %distrust, 1
  %distrust.next = select i1 %late, i64 %most.so, i64 %less.so
  store i64 %distrust.next, ptr {PLACES["distrust"]}
  %picoseconds = mul i64 %waited, 1000
  %debt.next = mul i64 %picoseconds, %distrust.next
  store i64 %debt.next, ptr {PLACES["debt"]}
  store atomic i64 0, ptr {PLACES["busy"]} release, align 8
  ret void
}}

; how many threads a job has at most
define i64 @dy2st.pool.threads() nounwind {{
  %threads = load atomic i64, ptr {PLACES["threads"]} monotonic, align 8
  ret i64 %threads
}}"""

JOBS = _SET + "\n" + _PARALLEL
"""Functions of the pool: `@dy2st.pool.set(threads)`, `@dy2st.pool.threads()` and `@dy2st.pool.parallel(...)`."""
