"""Loop nests with many functions of the math library call most of them: the same bits, in little code."""

import re

import numpy as np
import pytest

from dy2st.ir.parser import parse
from dy2st.runtime.backends.cpu import native_executable
from dy2st.runtime.backends.cpu.compile import lowered
from dy2st.runtime.backends.cpu.compile_link import function_cache
from dy2st.runtime.backends.cpu.compile_link.code_loader import compile_object
from dy2st.runtime.backends.cpu.compile_link.function_cache import ObjectFiles
from dy2st.runtime.backends.cpu.compile_link.target import current_target
from dy2st.runtime.backends.cpu.llvm_ir import function_builder
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from tests.runtime.backends.cpu.native import TARGETS, runnable, thread_counts

SIZES = [0, 1, 2, 15, 16, 17, 255]
EVERYWHERE, NOWHERE = 10**9, 0


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(native_executable, "fingerprint_of", lambda program: None)


def chain(name, count, dtype="float32", shape="N"):
    """Return a Program that takes `name` of x, of what that gives, and so on."""
    t = f"{dtype}[{shape}]"
    more = ", %x" if name in ("pow", "atan2", "hypot") else ""
    lines = [f"  %{i + 1}: {t} = {name}(%{i if i else 'x'}{more})" for i in range(count)]
    return parse("\n".join(["program main", f"func main(%x: {t}) {{", *lines, f"  return %{count}", "}", ""]))


def numbers(dtype, size):
    special = [0.0, -0.0, 1.0, -0.5, 1e-40, 3e4, -1e30, np.inf, -np.inf, np.nan, 0.3, 2.5, -7.0]
    with np.errstate(over="ignore"):
        return np.resize(np.array(special).astype(dtype), size)


def result(monkeypatch, most, program, x, **how):
    monkeypatch.setattr(function_builder, "MOST_WRITTEN_OUT", most)
    plan = NativePlan(program, **how)
    assert not plan.was_cached
    return np.asarray(plan.run([x])[0])


def letters_written_out(texts):
    """Return for each function how many letters of others LLVM writes into it; those that are called have one."""
    inline = {name: len(text) for name, text in texts.items() if "alwaysinline" in text.partition("\n")[0]}
    called = {name: re.findall(r"call .*?@([\w.]+)\(", text) for name, text in texts.items()}
    return {n: sum(inline.get(u, 0) for u in used) for n, used in called.items() if not n.endswith(".called")}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["sin", "tan", "erf", "pow", "lgamma", "tanh"])
def test_called_functions_give_the_same_bits(monkeypatch, name, dtype):
    program, plans = chain(name, 2, dtype), list[NativePlan]()
    for most in (NOWHERE, EVERYWHERE):
        monkeypatch.setattr(function_builder, "MOST_WRITTEN_OUT", most)
        plans.append(NativePlan(program))
    for size in SIZES:
        called, written = (np.asarray(plan.run([numbers(dtype, size)])[0]) for plan in plans)
        assert called.tobytes() == written.tobytes()


@pytest.mark.parametrize("cpu", [t for t in TARGETS if runnable(t)])
def test_on_every_kind_of_cpu(monkeypatch, cpu):
    monkeypatch.setenv("DY2ST_CPU", cpu)
    program, x = chain("atan2", 3), numbers("float32", 255)
    called, written = (result(monkeypatch, most, program, x) for most in (NOWHERE, EVERYWHERE))
    assert called.tobytes() == written.tobytes()


@pytest.mark.parametrize("how", [{"strict": True}, {"quick": True}])
def test_strict_and_quick_code(monkeypatch, how):
    program, x = chain("sin", 2), numbers("float32", 37)
    called, written = (result(monkeypatch, most, program, x, **how) for most in (NOWHERE, EVERYWHERE))
    assert called.tobytes() == written.tobytes()


@pytest.mark.parametrize(("dtype", "shape", "size"), [("float16", "N", 33), ("float32", "3", 3)])
def test_halves_and_tensors_in_registers(monkeypatch, dtype, shape, size):
    program, x = chain("sin", 3, dtype, shape), numbers(dtype, size)
    called, written = (result(monkeypatch, most, program, x) for most in (NOWHERE, EVERYWHERE))
    assert called.tobytes() == written.tobytes()


def test_any_number_of_threads(monkeypatch):
    program, x, found = chain("sin", 12), numbers("float32", 200_003), list[bytes]()
    for _ in thread_counts(1, 2, 3):
        found.append(result(monkeypatch, function_builder.MOST_WRITTEN_OUT, program, x).tobytes())
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("name", ["sin", "tan", "erf", "pow", "lgamma"])
@pytest.mark.parametrize("shape", ["N", "N, 8", "3", ""])
def test_little_is_written_out(name, shape):
    unit = lowered(chain(name, 240, shape=shape))
    for module in (unit.module, unit.kernels):
        assert max(letters_written_out(module.texts).values(), default=0) <= function_builder.MOST_WRITTEN_OUT


def test_few_conversions_of_halves_are_written_out():
    texts = lowered(chain("square", 90, "float16")).kernels.texts
    assert any(re.fullmatch(r"dy2st\.rounded_to_half\.\d+\.called", name) for name in texts)
    assert max(letters_written_out(texts).values()) <= function_builder.MOST_WRITTEN_OUT


def test_a_few_functions_are_written_out():
    texts = lowered(chain("tanh", 1)).kernels.texts
    assert "dy2st.tanh.f32" in "".join(texts)
    assert not any(name.endswith(".called") for name in texts)


@pytest.mark.parametrize("shape", ["N", "N, 8"])
def test_what_runs_ranges_for_one_thread_and_for_several_is_compiled_once(shape):
    kernels = "\n".join(lowered(chain("sin", 1, shape=shape)).kernels.texts.values())
    (part,) = re.findall(r"define internal void @(dy2st\.k\.\w+\.0)\(.*\) noinline", kernels)
    assert kernels.count(f"call void @{part}(") == 2


def test_machine_code_grows_little_with_the_number_of_functions():
    short, long = (len(compile_object(lowered(chain("sin", n)).kernels.text(), current_target())) for n in (20, 90))
    assert long < 1.5 * short


def test_a_nest_that_calls_functions_is_compiled_once(monkeypatch, tmp_path):
    monkeypatch.setenv("DY2ST_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(function_cache, "_known", function_cache._Known())
    kernels = lowered(chain("sin", 60)).kernels
    first = ObjectFiles(kernels, current_target())
    assert len(first.jobs) >= 1
    for job in first.jobs:
        job()
    again = ObjectFiles(lowered(chain("sin", 60)).kernels, current_target())
    assert not again.jobs
    assert again.found
