"""Functions that Programs have in common are compiled once, in this process and by those before."""

import ctypes

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.aot_cache import disk_cache
from dy2st.runtime.aot_cache.code_image import NotLinkable
from dy2st.runtime.backends.cpu import compile
from dy2st.runtime.backends.cpu.compile_link import function_cache
from dy2st.runtime.backends.cpu.compile_link.code_loader import load
from dy2st.runtime.backends.cpu.compile_link.elf_linker import link
from dy2st.runtime.backends.cpu.compile_link.function_cache import ObjectFiles
from dy2st.runtime.backends.cpu.compile_link.target import Target, current_target
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMModule
from dy2st.runtime.backends.cpu.native_executable import NativePlan


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DY2ST_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(function_cache, "_known", function_cache._Known())
    return tmp_path


def forget(monkeypatch):
    """Be another process, which has the same folder."""
    monkeypatch.setattr(function_cache, "_known", function_cache._Known())


def returning(name, number, calls=()):
    """Return a function that gives a number and what others give."""
    lines, total = [f"define i64 @{name}() {{"], str(number)
    for i, other in enumerate(calls):
        lines += [f"  %c{i} = call i64 @{other}()", f"  %s{i} = add i64 {total}, %c{i}"]
        total = f"%s{i}"
    return "\n".join([*lines, f"  ret i64 {total}", "}"])


def module_of(*functions):
    module = LLVMModule()
    for name, number, *calls in functions:
        module.add(name, returning(name, number, calls))
    return module


def objects(batches):
    return [*(job() for job in batches.jobs), *batches.found]


def results(batches, *names):
    code = load(link(objects(batches), repeated=True))
    return [ctypes.CFUNCTYPE(ctypes.c_int64)(code.address(name))() for name in names]


def in_jobs(batches):
    """Return the functions that have to be compiled."""
    return sum(len(part) for part in batches._parts(batches._find()))


def compiled(*functions):
    return ObjectFiles(module_of(*functions), current_target())


@pytest.mark.parametrize("process", ["this", "another"])
def test_only_new_functions_are_compiled(monkeypatch, process):
    assert results(compiled(("f", 1), ("g", 10, "f")), "f", "g") == [1, 11]
    if process == "another":
        forget(monkeypatch)
    second = compiled(("g", 10, "f"), ("f", 1), ("h", 100, "g", "f"))
    assert in_jobs(compiled(("g", 10, "f"), ("f", 1), ("h", 100, "g", "f"))) == 1
    assert results(second, "f", "g", "h") == [1, 11, 112]


def test_what_calls_a_changed_function_is_compiled_again():
    results(compiled(("f", 1), ("g", 10, "f"), ("k", 7)), "g")
    changed = compiled(("f", 2), ("g", 10, "f"), ("k", 7))
    assert results(changed, "f", "g", "k") == [2, 12, 7]


def test_batches_that_do_not_agree_are_not_mixed():
    results(compiled(("f", 1), ("g", 10)), "f")
    results(compiled(("f", 2), ("h", 20)), "f")
    assert results(compiled(("f", 1), ("g", 10), ("h", 20)), "f", "g", "h") == [1, 10, 20]
    assert results(compiled(("h", 20), ("g", 10), ("f", 2)), "f", "g", "h") == [2, 10, 20]


def test_a_batch_has_what_its_functions_call():
    results(compiled(("f", 1)), "f")
    results(compiled(("f", 1), ("g", 10, "f"), ("k", 5)), "g")  # the second batch needs what the first one has
    assert results(compiled(("k", 5)), "k") == [5]


def test_memory_holds_the_last_batches_only(monkeypatch):
    monkeypatch.setattr(function_cache, "_MOST", 3)
    for i in range(5):
        results(compiled((f"f{i}", i)), f"f{i}")
    assert len(function_cache._known.batches) == len(function_cache._known.by_function) == 3
    assert in_jobs(compiled(("f0", 0))) == 0  # the cache has it
    assert results(compiled(("f0", 0), ("f4", 4)), "f0", "f4") == [0, 4]


def test_functions_that_call_each_other():
    even = """define i64 @even(i64 %n) {
  %z = icmp eq i64 %n, 0
  br i1 %z, label %y, label %m
y:
  ret i64 1
m:
  %k = sub i64 %n, 1
  %r = call i64 @odd(i64 %k)
  ret i64 %r
}"""
    odd = even.replace("@even", "@x").replace("@odd", "@even").replace("@x", "@odd").replace("ret i64 1", "ret i64 0")
    module = LLVMModule()
    module.add("even", even)
    module.add("odd", odd)
    code = load(link(objects(ObjectFiles(module, current_target())), repeated=True))
    is_even = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address("even"))
    assert [is_even(n) for n in range(4)] == [1, 0, 1, 0]


def test_large_texts_are_compiled_in_parts(monkeypatch):
    monkeypatch.setattr(function_cache, "usable_cpus", lambda: 3)
    monkeypatch.setattr(function_cache, "_LARGE", {True: 10, False: 10})
    batches = compiled(*((f"f{i}", i, *([f"f{i - 1}"] if i else [])) for i in range(7)))
    assert len(batches.jobs) == 3
    assert results(batches, "f6", "f3") == [21, 6]


@pytest.mark.parametrize("damage", ["gone", "nonsense", "another"])
def test_damaged_files_are_made_again(folder, monkeypatch, damage):
    results(compiled(("f", 1), ("g", 2)), "f")
    forget(monkeypatch)
    real = disk_cache.read
    if damage == "gone":
        for file in sorted(folder.iterdir(), key=lambda f: f.stat().st_size)[-1:]:
            file.unlink()
    elif damage == "nonsense":
        monkeypatch.setattr(function_cache.disk_cache, "read", lambda key: b"\xff nonsense")
    else:
        results(compiled(("other", 5)), "other")
        number = next(iter(function_cache._known.batches))
        forget(monkeypatch)
        monkeypatch.setattr(
            function_cache.disk_cache, "read", lambda key: number.encode() if len(real(key) or b"") < 100 else real(key)
        )
    assert results(compiled(("f", 1), ("g", 2)), "f", "g") == [1, 2]


def test_programs_share_their_loop_nests(monkeypatch, rng):
    def f(x):
        return paddle.exp(paddle.tanh(x)).sum()

    def g(x):
        return f(x) + 1, x.sum(axis=0)

    x = rng.normal(size=(30, 40)).astype("float32")
    for function in (f, g):
        static = paddle.jit.to_static(function, full_graph=True)
        with paddle.no_grad():
            static(paddle.to_tensor(x))
        plan = NativePlan(static.concrete_program.main_program)
        np.testing.assert_allclose(plan.run([x])[0], np.exp(np.tanh(x)).sum() + (function is g), rtol=1e-4)
    nests = [name for batch in function_cache._known.batches.values() for name in batch.keys if ".k." in name]
    assert len(nests) == len(set(nests)) >= 2


@pytest.mark.parametrize("when", ["known before", "found out"])
def test_without_images_each_function_is_there_once(monkeypatch, rng, when):
    def refuse(objects, repeated):
        raise NotLinkable

    monkeypatch.setattr(compile, "link", refuse)
    if when == "known before":
        monkeypatch.setattr(Target, "is_relative", False)
    static = paddle.jit.to_static(lambda x: paddle.exp(x).sum(), full_graph=True)
    x = rng.normal(size=(30, 41)).astype("float32")
    with paddle.no_grad():
        static(paddle.to_tensor(x))
    plan = NativePlan(static.concrete_program.main_program)
    np.testing.assert_allclose(plan.run([x])[0], np.exp(x).sum(), rtol=1e-4)
