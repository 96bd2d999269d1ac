"""The module of the pool for a system: with workers on Linux, elsewhere without any."""

from __future__ import annotations

from dy2st.runtime.backends.cpu.thread_pool.gil import LOCK, LONG_COST
from dy2st.runtime.backends.cpu.thread_pool.job_scheduling import JOBS
from dy2st.runtime.backends.cpu.thread_pool.worker import worker_text
from dy2st.runtime.backends.cpu.thread_pool.worker_setup import TEAM

_PYTHON = """\
declare i32 @dy2st.external.PyGILState_Check()
declare ptr @dy2st.external.PyGILState_GetThisThreadState()
declare ptr @dy2st.external.PyEval_SaveThread()
declare void @dy2st.external.PyEval_RestoreThread(ptr)
declare void @dy2st.external.PyThread_exit_thread()"""
_LIBC = """\
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
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"""

_ALONE = f"""
define ptr @dy2st.pool() {{
  ret ptr null
}}

define void @dy2st.pool.set(i64 %threads) nounwind {{
  ret void
}}

define i64 @dy2st.pool.threads() nounwind {{
  ret i64 1
}}

define void @dy2st.pool.parallel(ptr %body, ptr %row, i64 %units, i64 %cost, i64 %most) nounwind {{
  %total = mul i64 %units, %cost
  %long = icmp uge i64 %total, {LONG_COST}
  br i1 %long, label %give, label %run
give:
  call void @let_python_run()
  br label %run
run:
  call void %body(ptr %row, i64 0, i64 %units, i64 0)
  ret void
}}

define void @dy2st.pool.share(ptr %body, ptr %row, i64 %units, i64 %cost, i64 %most) nounwind {{
  call void %body(ptr %row, i64 0, i64 %units, i64 0)
  ret void
}}"""


def pool_text(system: str, machine: str) -> str:
    """Return the module for a system and a machine, as `sys.platform` and `platform.machine()` name them.

    Workers sleep by a system call that only Linux has.
    """
    if system != "linux":
        return "\n".join((_PYTHON, LOCK, _ALONE))
    return "\n".join((_PYTHON, _LIBC, LOCK, worker_text(machine.lower() in ("aarch64", "arm64")), TEAM, JOBS))
