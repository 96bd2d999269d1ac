"""Python's lock: kernels that take long give it away, and the run takes it again when it is done.

Not after each kernel: where another thread computes in Python, taking the lock may take 5 ms.

Daemon threads may still compute when Python is at its end. It has taken their states away then, and says that each
holds the lock: who asks for it ends, as in Python's own code.
"""

from __future__ import annotations

LONG_COST = 40_000_000
"""Work of so many picoseconds is worth giving the lock away for."""

LOCK = """
; what takes long runs without Python's lock, from here to the end of the run
define internal void @let_python_run() nounwind {
  %held = call i32 @dy2st.external.PyGILState_Check()
  %holds = icmp ne i32 %held, 0
  br i1 %holds, label %look, label %done
look:
  %own = call ptr @dy2st.external.PyGILState_GetThisThreadState()
  %there = icmp ne ptr %own, null
  br i1 %there, label %give, label %done
give:
  %state = call ptr @dy2st.external.PyEval_SaveThread()
  br label %done
done:
  ret void
}

; take Python's lock again where the run has given it away
define void @dy2st.pool.take_lock() nounwind {
  %held = call i32 @dy2st.external.PyGILState_Check()
  %state = call ptr @dy2st.external.PyGILState_GetThisThreadState()
  %there = icmp ne ptr %state, null
  br i1 %there, label %look, label %end
end:
  call void @dy2st.external.PyThread_exit_thread()
  unreachable
look:
  %lacks = icmp eq i32 %held, 0
  br i1 %lacks, label %take, label %done
take:
  call void @dy2st.external.PyEval_RestoreThread(ptr %state)
  br label %done
done:
  ret void
}"""
"""Functions of the pool: `@let_python_run()` and `@dy2st.pool.take_lock()`."""
