"""Libraries for CPUs of other families, run by qemu: the same bits as here."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dy2st as paddle
from dy2st.errors import MissingExtraError
from dy2st.jit.c_library import toolchain
from dy2st.static import InputSpec
from tests.jit.c_library.libraries import needs_compiler

HAS_ZIG = importlib.util.find_spec("ziglang") is not None
PROGRAM = """
#include <stdio.h>
#include "model.h"
int main(void) {
  float x[60];
  uint16_t h[6] = {0x3c00, 0x4100, 0xc500, 0x0001, 0x7bff, 0x3555};
  unsigned s = 1;
  for (int i = 0; i < 60; i++) x[i] = (float)((s = s * 1664525u + 1013904223u) >> 8) / (1 << 22) - 2;
  model_options options = {.seed = 9};
  model *m;
  if (model_create(&options, &m)) return 1;
  model_forward_inputs inputs = {.x = {x, {12, 5}, {0}}, .h = {h, {6}, {0}}, .turns = 3};
  model_forward_outputs outputs;
  for (int turn = 0; turn < 2; turn++) {
    int code = model_forward(m, &inputs, &outputs);
    if (code) return puts(model_error(m)), code;
    for (int i = 0; i < 25; i++) printf("%a ", (double)outputs.output_0.data[i]);
    for (int i = 0; i < 6; i++) printf("%x ", outputs.output_1.data[i]);
    printf("%lld\\n", (long long)outputs.output_2);
  }
  model_free(m);
  return 0;
}
"""


def mixed(x, h, turns):
    rows = []
    for row in x:
        rows.append(row * 2 if row.sum() > 0 else paddle.exp(row))
    y = paddle.stack(rows)
    product = paddle.matmul(y, y, transpose_x=True)
    count = turns * 0
    while product.abs().max() > 1:
        product = product / 2 + paddle.rand([5, 5]) * 0.01
        count += turns
    heads = paddle.reshape(product, [1, 5, 1, 5])
    seen = paddle.nn.functional.scaled_dot_product_attention(heads, heads, heads).reshape([5, 5])
    return paddle.nn.functional.softmax(product) + seen, paddle.sin(h) * h, count


SPEC = [InputSpec([None, 5], name="x"), InputSpec([None], "float16", name="h"), InputSpec([], "int64", name="turns")]


def printed(folder: Path, target: str | None, *compiler: str, emulator: tuple[str, ...] = ()) -> str:
    folder.mkdir()
    paddle.jit.export_library(mixed, folder, SPEC, name="model", target=target, strict=True)
    (folder / "program.c").write_text(PROGRAM)
    order = [*compiler, "-O1", "program.c", "libmodel.a", "-lm", "-pthread", "-o", "program"]
    subprocess.run(order, cwd=folder, check=True)
    ran = subprocess.run([*emulator, "./program"], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert not ran.returncode, ran.stdout
    return ran.stdout


@needs_compiler
@pytest.mark.parametrize("target", ["x86-64", "x86-64-v2"])
def test_levels_of_one_family_give_the_same_bits(target: str, tmp_path: Path) -> None:
    assert printed(tmp_path / "level", target, "cc") == printed(tmp_path / "usual", None, "cc")


@needs_compiler
@pytest.mark.skipif(not HAS_ZIG, reason="ziglang is not installed")
@pytest.mark.parametrize("family", ["aarch64", pytest.param("riscv64", marks=pytest.mark.soak)])
def test_other_families_give_the_same_bits(family: str, tmp_path: Path) -> None:
    emulator = shutil.which(f"qemu-{family}")
    if emulator is None:
        pytest.skip(f"qemu-{family} is not installed")
    zig = (sys.executable, "-m", "ziglang", "cc", "-target", f"{family}-linux-musl", "-static")
    shown = printed(tmp_path / family, family, *zig, emulator=(emulator,))
    assert shown == printed(tmp_path / "here", None, "cc")


def test_an_unknown_target_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"target is one of x86-64, .*riscv64, wasm32, not 'z80'"):
        paddle.jit.export_library(mixed, tmp_path, SPEC, target="z80")


def test_without_any_compiler_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="library"):
        toolchain.toolchain(None)
