"""The pool's module for systems and machines that this one is not."""

import ctypes
import re

import pytest

from dy2st.runtime.backends.cpu.compile_link.code_loader import compile_object, compile_text, provide
from dy2st.runtime.backends.cpu.compile_link.llvm_loader import binding
from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.thread_pool.module import pool_text
from dy2st.runtime.backends.cpu.thread_pool.pool import CALLED
from dy2st.runtime.backends.cpu.thread_pool.worker import worker_text


def test_arm_has_its_own_system_calls():
    binding().initialize_all_targets()
    binding().initialize_all_asmprinters()
    target = Target("aarch64-unknown-linux-gnu", "generic", "", 16)
    text = pool_text("linux", "aarch64")
    assert "i64 98" in text
    assert compile_object(text, target)[:4] == b"\x7fELF"


def test_the_pool_provides_what_modules_call():
    texts = [pool_text(*of) for of in (("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64"))]
    assert sorted(set(re.findall(r"declare .*@dy2st\.external\.(\w+)", "".join(texts)))) == sorted(CALLED)


def test_who_waits_for_a_job_keeps_the_cpu_or_sleeps():
    """Beside other processes, who gives the CPU away turn by turn loses a time slice at every job."""
    assert "sched_yield" not in worker_text(arm=False)


@pytest.mark.parametrize("cost", [1, 10**9])
def test_a_system_without_futex_has_one_thread(cost):
    body_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    seen = []
    body = body_type(lambda row, first, last, who: seen.append((row, first, last, who)))
    for name in (name for name in CALLED if name.startswith("Py")):
        function = getattr(ctypes.pythonapi, name)
        provide(f"dy2st.external.{name}", lambda function=function: ctypes.cast(function, ctypes.c_void_p).value or 0)
    code = compile_text(pool_text("darwin", "x86_64"))
    kinds = (body_type, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    ctypes.CFUNCTYPE(None, *kinds)(code.address("dy2st.pool.parallel"))(body, 7, 100, cost, 256)
    assert seen == [(7, 0, 100, 0)]
    ctypes.CFUNCTYPE(None, ctypes.c_int64)(code.address("dy2st.pool.set"))(4)
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(code.address("dy2st.pool.threads"))() == 1
