"""Machine code of one Program is given back with what holds it; what many share stays."""

import ctypes
import gc
import os
import threading
import warnings
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.jit.dispatch.retrace_warning import RetraceWarning
from dy2st.runtime.aot_cache.code_image import CodeImage
from dy2st.runtime.backends.cpu.compile_link import image_loader
from dy2st.runtime.backends.cpu.compile_link.image_loader import ImageMemory, load_image, loaded
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.backends.cpu.trampolines import call as known_calls
from dy2st.runtime.backends.cpu.trampolines import write_back
from dy2st.runtime.eager.tensor import Tensor

pytestmark = pytest.mark.one_tier("counts what is loaded")
IMAGE = CodeImage(bytes(8192), 4096, {"f": 16}, {}, [])


def is_mapped(address: int) -> bool:
    """Say whether there is memory at an address."""
    with open("/proc/self/maps", encoding="ascii") as lines:
        ranges = [line.split()[0].split("-") for line in lines]
    return any(int(first, 16) <= address < int(last, 16) for first, last in ranges)


def test_memory_goes_with_its_owner() -> None:
    gc.collect()  # what earlier tests left goes first
    before, owner = (loaded.images, loaded.bytes), ImageMemory()
    address = load_image(IMAGE, lambda _: 0, owner)["f"]
    assert (loaded.images, loaded.bytes) == (before[0] + 1, before[1] + 8192)
    assert not os.path.exists("/proc/self/maps") or is_mapped(address)
    del owner
    assert (loaded.images, loaded.bytes) == before
    assert not os.path.exists("/proc/self/maps") or not is_mapped(address)


def test_what_has_no_owner_stays() -> None:
    gc.collect()  # what earlier tests left goes first
    before = loaded.images
    address = load_image(IMAGE, lambda _: 0)["f"]
    gc.collect()
    assert loaded.images == before + 1
    image_loader._give_back(address - 16, 8192)  # nobody runs it


def plan() -> NativePlan:
    @paddle.jit.to_static
    def f(x: Any) -> Any:
        return x * 3 + 1

    f(paddle.ones([2]))
    return NativePlan(f.main_program)


def test_the_function_that_python_calls_holds_its_code() -> None:
    plan()  # loads what all Programs share
    gc.collect()
    before, made = loaded.images, plan()
    call, rows = made.call, made._run_rows
    assert loaded.images == before + 1
    assert call(np.ones(3, "float32"))[0].tolist() == [4, 4, 4]
    del made
    gc.collect()
    assert loaded.images == before + 1
    del call
    gc.collect()
    assert loaded.images == before + 1  # by `rows`
    assert ctypes.cast(rows, ctypes.c_void_p).value
    del rows
    gc.collect()
    assert loaded.images == before


def test_code_that_writes_is_loaded_once() -> None:
    assert known_calls._layout() is not None
    x = Tensor(np.zeros(1))
    assert write_back.known_writes([(x, 0)], lambda *_: None) is not None
    before = loaded.images
    for _ in range(5):
        write_back.known_writes([(x, 0)], lambda *_: None)
    assert loaded.images == before


@pytest.mark.slow
def test_threads_run_while_programs_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", "native")

    def f(x: Any, word: str) -> Any:
        return x @ x * len(word) + x

    static, wrong = paddle.jit.to_static(f, max_programs=2), list[float]()

    def run(first: int) -> None:
        x = paddle.ones([16, 16])
        for i in range(first, first + 24):
            found = float(static(x, "x" * (i % 5))[0, 0])
            if found != 16 * (i % 5) + 1:
                wrong.append(found)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetraceWarning)
        for t in threads:
            t.start()
        while any(t.is_alive() for t in threads):
            gc.collect()
        for t in threads:
            t.join()
    assert wrong == []
    assert len(static.program_cache) == 2
