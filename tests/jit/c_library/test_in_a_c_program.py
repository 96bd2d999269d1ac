"""Libraries in C programs: the example, sanitizers, several threads and models, allocators, files of weights."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import dy2st as paddle
from dy2st.cli import main
from dy2st.nn import Linear, ReLU, Sequential
from dy2st.static import InputSpec
from tests.jit.c_library.libraries import Failed, Instance, needs_compiler

pytestmark = needs_compiler
PART = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int64] * 3)
PARALLEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, PART, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
STRICT = ("-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror")
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def network() -> Sequential:
    paddle.seed(3)
    return Sequential(Linear(4, 64), ReLU(), Linear(64, 2))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two libraries of one model in one folder: `net` with its weights, `apart` without."""
    made = tmp_path_factory.mktemp("libraries")
    model = network()
    paddle.jit.save(model, str(made / "net"), [InputSpec([None, 4], name="x")])
    assert main(["build", str(made / "net.dy2st"), "-o", str(made), "--strict"]) == 0
    assert main(["build", str(made / "net"), "-o", str(made), "--strict", "--name", "apart", "--weights-apart"]) == 0
    return made


def wanted() -> np.ndarray:
    run = paddle.jit.to_static(network(), strict=True)
    return run(paddle.to_tensor(X)).numpy()


def compiled(folder: Path, source: str, *options: str) -> str:
    """Compile a program beside the libraries, run it, and return what it prints."""
    (folder / "program.c").write_text(source)
    order = ["cc", *STRICT, *options, "program.c", "libnet.a", "libapart.a", "-lm", "-pthread", "-o", "program"]
    done = subprocess.run(order, cwd=folder, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    ran = subprocess.run([folder / "program"], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert not ran.returncode, ran.stdout + ran.stderr
    return ran.stdout


def test_the_example_is_compiled_by_cmake(folder: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    for order in (["cmake", "-S", ".", "-B", "made"], ["cmake", "--build", "made"]):
        subprocess.run(order, cwd=folder, capture_output=True, check=True)
    shown = subprocess.run([folder / "made" / "example"], cwd=folder, capture_output=True, text=True, check=True).stdout
    assert shown.startswith("output: ")


def test_nothing_of_python_is_called(folder: Path) -> None:
    for name in ("net", "apart"):
        shown = subprocess.run(["nm", "-D", folder / f"lib{name}.so"], capture_output=True, text=True, check=True)
        named = [line.split()[-2:] for line in shown.stdout.splitlines()]
        assert {symbol for kind, symbol in named if kind == "T"} == {
            f"{name}_{what}" for what in ("create", "free", "error", "save", "forward")
        }
        assert not [symbol for kind, symbol in named if symbol.startswith(("Py", "_Py", "dy2st"))]


PRINTED = """
#include <stdio.h>
#include "net.h"
int main(void) {
  float x[12] = {%s};
  net *model;
  if (net_create(NULL, &model)) return 1;
  net_forward_inputs inputs = {.x = {x, {3, 4}, {0}}};
  net_forward_outputs outputs;
  if (net_forward(model, &inputs, &outputs)) return 2;
  for (int i = 0; i < 6; i++) printf("%%a ", (double)outputs.output.data[i]);
  net_free(model);
  return 0;
}
"""


def test_c_gets_the_bits_of_python(folder: Path) -> None:
    shown = compiled(folder, PRINTED % ", ".join(float(x).hex() + "f" for x in X.ravel()))
    assert [float.fromhex(x) for x in shown.split()] == wanted().ravel().tolist()


CPP = """
#include <cstdio>
#include <memory>
#include "net.h"
int main() {
  float x[12] = {%s};
  net *made = nullptr;
  if (net_create(nullptr, &made)) return 1;
  std::unique_ptr<net, decltype(&net_free)> model(made, net_free);
  net_forward_inputs inputs = {.x = {.data = x, .shape = {3, 4}, .strides = {}}};
  net_forward_outputs outputs;
  if (net_forward(model.get(), &inputs, &outputs)) return 2;
  for (int i = 0; i < 6; i++) std::printf("%%a ", double(outputs.output.data[i]));
}
"""
RUST = """
use std::os::raw::{c_int, c_void};
#[repr(C)]
struct Input { data: *const f32, shape: [i64; 2], strides: [i64; 2] }
#[repr(C)]
struct Output { data: *const f32, shape: [i64; 2] }
#[link(name = "net", kind = "static")]
extern "C" {
    fn net_create(options: *const c_void, made: *mut *mut c_void) -> c_int;
    fn net_forward(model: *mut c_void, inputs: *const Input, outputs: *mut Output) -> c_int;
    fn net_free(model: *mut c_void);
}
fn main() {
    let x: [u32; 12] = [%s];
    let x: Vec<f32> = x.iter().map(|bits| f32::from_bits(*bits)).collect();
    unsafe {
        let mut model = std::ptr::null_mut();
        assert_eq!(net_create(std::ptr::null(), &mut model), 0);
        let inputs = Input { data: x.as_ptr(), shape: [3, 4], strides: [0, 0] };
        let mut outputs = Output { data: std::ptr::null(), shape: [0, 0] };
        assert_eq!(net_forward(model, &inputs, &mut outputs), 0);
        for i in 0..6 { print!("{} ", (*outputs.data.add(i)).to_bits()); }
        net_free(model);
    }
}
"""


def test_cpp_gets_the_same(folder: Path) -> None:
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler is installed")
    (folder / "program.cpp").write_text(CPP % ", ".join(float(x).hex() + "f" for x in X.ravel()))
    order = ["c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "program.cpp", "libnet.a", "-lm", "-pthread"]
    subprocess.run([*order, "-o", "cpp"], cwd=folder, check=True)
    shown = subprocess.run([folder / "cpp"], cwd=folder, capture_output=True, text=True, check=True).stdout
    assert [float.fromhex(x) for x in shown.split()] == wanted().ravel().tolist()


def test_rust_gets_the_same(folder: Path) -> None:
    if shutil.which("rustc") is None:
        pytest.skip("rustc is not installed")
    (folder / "program.rs").write_text(RUST % ", ".join(str(bits) for bits in X.ravel().view(np.uint32)))
    subprocess.run(["rustc", "-O", "-L", ".", "program.rs", "-l", "m", "-o", "rust"], cwd=folder, check=True)
    shown = subprocess.run([folder / "rust"], cwd=folder, capture_output=True, text=True, check=True).stdout
    assert [int(bits) for bits in shown.split()] == wanted().ravel().view(np.uint32).tolist()


THREADS = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net.h"
#include "apart.h"
static float first[6];
static int given;
static void *allocate(void *user, size_t alignment, size_t bytes) {
  __atomic_add_fetch((int *)user, 1, __ATOMIC_SEQ_CST);
  return aligned_alloc(alignment, bytes);
}
static void deallocate(void *user, void *memory) {
  __atomic_sub_fetch((int *)user, 1, __ATOMIC_SEQ_CST);
  free(memory);
}
static void *calls(void *number) {
  float x[12];
  for (int i = 0; i < 12; i++) x[i] = (float)i / 7;
  net *model;
  net_options options = {.user = &given, .allocate = allocate, .deallocate = deallocate};
  if (net_create(&options, &model)) return number;
  net_forward_inputs inputs = {.x = {x, {3, 4}, {0}}}, wrong = {.x = {x, {3, 5}, {0}}};
  net_forward_outputs outputs;
  for (int i = 0; i < 10000; i++) {
    if (i %% 100 == 99 && net_forward(model, &wrong, &outputs) != NET_INVALID) return number;
    if (net_forward(model, &inputs, &outputs)) return number;
    if (memcmp(outputs.output.data, first, sizeof first)) return number;
  }
  net_free(model);
  return NULL;
}
int main(void) {
  float x[12];
  for (int i = 0; i < 12; i++) x[i] = (float)i / 7;
  apart *model;
  apart_options options = {.weights = "apart.safetensors"};
  if (apart_create(NULL, &model) != APART_BAD_FILE || apart_create(&options, &model)) return 1;
  apart_forward_inputs inputs = {.x = {x, {3, 4}, {0}}};
  apart_forward_outputs outputs;
  if (apart_forward(model, &inputs, &outputs)) return 2;
  memcpy(first, outputs.output.data, sizeof first);
  apart_free(model);
  pthread_t threads[8];
  void *bad;
  for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, calls, threads);
  for (int i = 0; i < 8; i++)
    if (pthread_join(threads[i], &bad) || bad) return 3;
  printf("%%d blocks are left", given);
  return 0;
}
"""


def test_eight_threads_with_an_instance_each(folder: Path) -> None:
    """They run beside each other, by an allocator of the program, under AddressSanitizer where it is installed."""
    source = THREADS.replace("%%", "%")
    probe = ["cc", "-fsanitize=address,undefined", "-x", "c", "-", "-o", str(folder / "probe")]
    lacks = subprocess.run(probe, input=b"int main(void){return 0;}", capture_output=True, check=False).returncode
    options = ["-O1", "-g", *([] if lacks else ["-fsanitize=address,undefined"])]
    assert compiled(folder, source, *options) == "0 blocks are left"


def test_any_other_file_of_weights_is_one_error(folder: Path) -> None:
    content = (folder / "net.safetensors").read_bytes()
    rng, path = np.random.default_rng(1), folder / "mutated"
    at_header = 8 + int.from_bytes(content[:8], "little")
    cases = [b"", content[:-1], content + b"\0", content[: at_header - 1], b"\xff" * 100]
    for at in rng.integers(at_header, size=200):
        cases.append(content[:at] + bytes([content[at] ^ 1 << int(rng.integers(8))]) + content[at + 1 :])
    for case in cases:
        path.write_bytes(case)
        with pytest.raises(Failed, match="no whole file of the weights of net") as error:
            Instance(folder, "net", weights=str(path).encode())
        assert error.value.code == 5
    with pytest.raises(Failed, match="cannot be read"):
        Instance(folder, "net", weights=str(folder / "none").encode())


def test_other_weights_of_the_same_model(folder: Path) -> None:
    content = bytearray((folder / "net.safetensors").read_bytes())
    start = 8 + int.from_bytes(content[:8], "little")
    content[start:] = bytes(len(content) - start)
    (folder / "zeros").write_bytes(content)
    library = Instance(folder, "net", weights=str(folder / "zeros").encode())
    np.testing.assert_array_equal(library([X], [("float32", 2)])[0], np.zeros((3, 2), np.float32))
    library.free()


def test_results_are_the_same_for_any_threads_and_an_instance_runs_once_at_a_time(tmp_path: Path) -> None:
    def large(x):
        return paddle.sum(paddle.exp(paddle.matmul(x, x) * 1e-3), axis=0)

    paddle.jit.export_library(large, tmp_path, [InputSpec([None, None])])
    x = np.random.default_rng(0).normal(size=(400, 400)).astype(np.float32)
    made, codes = list[np.ndarray](), list[int]()
    for threads in (1, 2, 3):
        library = Instance(tmp_path, "large", threads=threads)
        made += [library([x], [("float32", 1)])[0] for _ in range(3)]
        library.free()

    @PARALLEL
    def backwards(user, part, row, units, team):
        """Run the parts one after the other, the last first; nothing else runs the instance meanwhile."""
        try:
            library([x], [("float32", 1)])
        except Failed as error:
            codes.append(error.code)
        for who in reversed(range(team)):
            part(row, units * who // team, units * (who + 1) // team, who)

    library = Instance(tmp_path, "large", threads=3, parallel=ctypes.cast(backwards, ctypes.c_void_p).value)
    made.append(library([x], [("float32", 1)])[0])
    library.free()
    assert set(codes) == {4}
    assert all(np.array_equal(made[0], other) for other in made)
    np.testing.assert_allclose(made[0], large(paddle.to_tensor(x)).numpy(), rtol=1e-4)
