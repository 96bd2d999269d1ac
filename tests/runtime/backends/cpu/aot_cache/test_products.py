"""What is made once and kept: files that may be anything, folders that may be anybody's, code that is found again."""

import os
import threading
import time

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.aot_cache import artifacts, disk_cache, environment_key, trust
from dy2st.runtime.aot_cache.artifacts import Artifact, from_bytes, made
from dy2st.runtime.aot_cache.code_image import CodeImage
from dy2st.runtime.backends.cpu import compile, runtime_library_symbols
from dy2st.runtime.backends.cpu.compile import lowered
from dy2st.runtime.backends.cpu.compile_link.parallel_map import together
from dy2st.runtime.backends.cpu.native_executable import NativePlan

IMAGE = CodeImage(b"\x00" * 40, 0, {"f": 0, "g": 16}, {"memcpy": 24}, [(32, 16)])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    at = tmp_path / "kept"
    monkeypatch.setenv("DY2ST_CACHE_DIR", str(at))
    return at


def program_of(function, *inputs):
    static = paddle.jit.to_static(function, full_graph=True)
    with paddle.no_grad():
        static(*map(paddle.to_tensor, inputs))
    return static.concrete_program.main_program


# ---- products ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("binary", [IMAGE, [b"one", b"", b"three"]], ids=["image", "objects"])
def test_a_product_comes_back_from_its_bytes(binary):
    arrays = [np.arange(6.0).reshape(2, 3), np.zeros((0, 2), "int8"), np.array(True)]
    product = Artifact(binary, {"library": ["gemm.f32.nn"], "direct": True}, arrays)
    back = from_bytes(product.to_bytes())
    assert (back.binary, back.notes) == (product.binary, product.notes)
    for a, b in zip(back.arrays, arrays, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_array_equal(a, b)


def test_bytes_that_are_no_product_are_refused():
    data = Artifact(IMAGE, {}, [np.ones(3)]).to_bytes()
    for cut in range(0, len(data), 7):
        with pytest.raises((ValueError, KeyError, TypeError)):
            from_bytes(data[:cut])


def test_a_file_that_ends_early_is_refused():
    data = Artifact(IMAGE, {}, [np.ones(3)]).to_bytes()
    with pytest.raises(ValueError, match="ends before what it says"):
        from_bytes(data[:-1])


@pytest.mark.parametrize("content", [b"", b"\xff" * 100, b"\2\0\0\0\0\0\0\0{}", b"\4\0\0\0\0\0\0\0null"])
def test_what_somebody_else_wrote_under_a_key_is_made_again(folder, monkeypatch, content):
    disk_cache.write(artifacts._ARTIFACTS.key("recipe"), content)
    product, was_kept = made("recipe", lambda: Artifact(IMAGE))
    assert (product.binary, was_kept) == (IMAGE, False)
    assert made("recipe", lambda: pytest.fail("it is kept"))[1]


def test_recipes_are_told_apart_and_found_again(folder):
    assert made("a", lambda: Artifact(IMAGE, {"n": 1}))[1] is False
    assert made("b", lambda: Artifact(IMAGE, {"n": 2}))[1] is False
    product, was_kept = made("a", lambda: pytest.fail("it is kept"))
    assert (product.notes, was_kept) == ({"n": 1}, True)


def test_what_has_no_recipe_is_not_kept(folder):
    assert made(None, lambda: Artifact(IMAGE))[1] is False
    assert not folder.exists()


def test_another_version_of_anything_has_another_key(folder, monkeypatch):
    made("a", lambda: Artifact(IMAGE))
    monkeypatch.setattr(artifacts, "identity", lambda: "another")
    assert made("a", lambda: Artifact(IMAGE))[1] is False


def test_large_products_are_not_kept(folder, monkeypatch):
    monkeypatch.setattr(trust, "MOST_BYTES", 100)
    made("a", lambda: Artifact(IMAGE))
    assert not folder.exists()


# ---- Programs ------------------------------------------------------------------------------------------------------
def softmax(x):
    return paddle.exp(x) / paddle.exp(x).sum(axis=1, keepdim=True) + paddle.ones([7])


def test_a_kept_program_needs_no_text_and_no_llvm(folder, monkeypatch, rng):
    x = rng.normal(size=(5, 7)).astype("float32")
    program = program_of(softmax, x)
    first = NativePlan(program)
    monkeypatch.setattr(compile, "lowered", lambda program: pytest.fail("it is kept"))
    second = NativePlan(program_of(softmax, x))
    assert (first.was_cached, second.was_cached) == (False, True)
    np.testing.assert_array_equal(first.run([x])[0], second.run([x])[0])


def test_host_calls_of_a_kept_program(folder, capsys):
    def f(x, i):
        print("before", i)
        return paddle.cumsum(x.astype("float16"), axis=0)[i].astype("float32")

    x = np.diag([1.0, 2.0, 4.0]).astype("float32")
    static = paddle.jit.to_static(f, full_graph=True)
    with paddle.no_grad():
        static(paddle.to_tensor(x), paddle.to_tensor(1))
    program = static.concrete_program.main_program
    plans = [NativePlan(program), NativePlan(program)]
    capsys.readouterr()
    for plan in plans:
        assert [call.name for call in plan.host_calls][:2] == ["print", "cumsum"]
        np.testing.assert_array_equal(plan.run([x, np.array(2)])[0], [1, 2, 4])
        assert "before" in capsys.readouterr().out
        with pytest.raises(IndexError) as caught:
            plan.run([x, np.array(3)])
        assert any("test_products.py" in str(entry.path) for entry in caught.traceback)
    assert plans[1].was_cached


def test_a_kept_program_that_is_another_one_is_found_out(folder, monkeypatch):
    def f(x):
        return paddle.linalg.inv(x)

    x = np.eye(2, dtype="float32")
    NativePlan(program_of(f, x))
    plan = NativePlan(program_of(f, x))
    other = lowered(program_of(lambda x: x + 1, x))
    monkeypatch.setattr(compile, "lowered", lambda program, strict: other)
    with pytest.raises(RuntimeError, match="native code was kept of another Program"):
        _ = plan.unit


def test_families_of_the_library():
    assert runtime_library_symbols.family("conv.f32") == "conv.f32"
    with pytest.raises(KeyError, match="nothing"):
        runtime_library_symbols.address("nothing.f32")


# ---- several processes ---------------------------------------------------------------------------------------------
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("count", [6, pytest.param(100, marks=pytest.mark.slow)])
def test_processes_share_a_folder(folder, monkeypatch, rng, count):
    x = rng.normal(size=(5, 7)).astype("float32")
    program, want = program_of(softmax, x), softmax(paddle.to_tensor(x)).numpy()
    monkeypatch.setenv("DY2ST_CACHE_SIZE", "40000")  # too little: files go while others read them

    def work(number):
        for turn in range(3):
            made(f"{number % 4} {turn}", lambda: Artifact(IMAGE, {"n": number % 4}, [np.zeros(1000)]))
            disk_cache.shrink(str(folder), 40_000)
        return np.allclose(NativePlan(program).run([x])[0], want, rtol=1e-5)

    children = []
    for number in range(count):
        child = os.fork()
        if not child:
            fine = False
            try:
                fine = work(number)
            finally:
                os._exit(0 if fine else 1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * count
    assert not list(folder.glob("*.part"))


# ---- what code depends on ------------------------------------------------------------------------------------------
def test_a_forced_cpu_is_another_identity(monkeypatch):
    monkeypatch.delenv("DY2ST_CPU", raising=False)
    mine = environment_key.identity()
    monkeypatch.setenv("DY2ST_CPU", "sse")
    assert environment_key.identity() != mine


def test_a_changed_source_is_another_identity(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "a.py").write_text("1")
    (tmp_path / "notes.txt").write_text("1")
    before = environment_key._files(str(tmp_path))
    assert len(before) == 1
    (tmp_path / "below" / "a.py").write_text("12")
    assert environment_key._files(str(tmp_path)) != before


@pytest.mark.parametrize(("moment", "is_shared"), [(1.0, False), (-10.0, True), (1e9, True)])
def test_source_that_changed_after_its_import_makes_code_of_this_process_alone(monkeypatch, moment, is_shared):
    names, started = [], time.time() - 100
    monkeypatch.setattr(environment_key, "STARTED", started)
    monkeypatch.setattr(environment_key, "_files", lambda folder: [("a.py", 1, int((started + moment) * 1e9))])
    for process in (1, 2):
        monkeypatch.setattr(os, "getpid", lambda process=process: process)
        names.append(environment_key._fixed.__wrapped__())
    assert (names[0] == names[1]) == is_shared


# ---- at the same time ----------------------------------------------------------------------------------------------
def test_functions_run_at_the_same_time(monkeypatch):
    monkeypatch.setattr("dy2st.runtime.backends.cpu.compile_link.parallel_map.usable_cpus", lambda: 2)
    both = threading.Barrier(2)
    assert len(together([lambda: both.wait(30), lambda: both.wait(30), lambda: 1])) == 3


def test_one_cpu_runs_them_in_order(monkeypatch):
    monkeypatch.setattr("dy2st.runtime.backends.cpu.compile_link.parallel_map.usable_cpus", lambda: 1)
    order = []
    together([lambda i=i: order.append((i, threading.get_ident())) for i in range(5)])
    assert order == [(i, threading.get_ident()) for i in range(5)]


def test_as_many_threads_as_are_asked_for_run_them(monkeypatch):
    monkeypatch.setattr("dy2st.runtime.backends.cpu.compile_link.parallel_map.usable_cpus", lambda: 4)
    assert set(together([threading.get_ident] * 5, 1)) == {threading.get_ident()}


def test_the_first_error_is_raised():
    def fail():
        raise ValueError("the first")

    with pytest.raises(ValueError, match="the first"):
        together([fail, lambda: 1])
