"""The modules of the library: what a family takes of what families have in common, and how well each is made."""

import subprocess
import sys

import pytest

from dy2st.runtime.backends.cpu.compile_link.target import current_target
from dy2st.runtime.backends.cpu.runtime_library import LibraryModule, parts

FAMILIES = [
    *(f"gemm.f32.{form}" for form in ("nn", "nt", "tn", "tt", "packed.n", "packed.t", "pack_b.n", "pack_b.t")),
    *("attention.f32", "attention_grad.f32", "conv.f32", "conv_input_grad.f32", "conv_weight_grad.f32"),
    *("max_pool.f32", "avg_pool.f32", "avg_pool_grad.f32", "random.uniform.f32"),
]


def defined(text: str) -> list[str]:
    heads = (
        line for line in text.splitlines() if line.startswith("define ") and not line.startswith("define internal")
    )
    return [head.partition("@")[2].partition("(")[0] for head in heads]


@pytest.mark.parametrize("family", FAMILIES)
def test_no_function_is_in_two_modules_of_a_family(family):
    names = [name for part in parts(family, current_target()) for name in defined(part.text)]
    assert len(set(names)) == len(names) > 0


def test_a_product_takes_only_what_it_calls():
    names = [name for part in parts("gemm.f32.pack_b.n", current_target()) for name in defined(part.text)]
    assert names == ["dy2st.gemm.f32.pack.n", "dy2st.gemm.f32.pack_b.n"]
    names = [name for part in parts("gemm.f32.nn", current_target()) for name in defined(part.text)]
    assert "dy2st.gemm.f32.pack.n" in names
    assert "dy2st.gemm.f32.pack.t" not in names


def test_kernels_of_whole_tiles_are_the_inner_loops_of_products():
    inner = [part.is_inner for part in parts("gemm.f32.packed.n", current_target())]
    assert inner == [True] + [False] * (len(inner) - 1)


def test_levels():
    outer, inner = LibraryModule("", is_inner=False), LibraryModule("", is_inner=True)
    assert [outer.level("none"), outer.level("outer"), outer.level("all")] == [1, 0, 0]
    assert [inner.level("none"), inner.level("outer"), inner.level("all")] == [1, 1, 0]


@pytest.mark.parametrize("name", ["nothing.f32", "gemm.f32", "gemm", "gemm.f32.nx"])
def test_a_family_that_is_none(name):
    with pytest.raises(KeyError, match=name):
        parts(name, current_target())


@pytest.mark.slow
def test_writers_of_windows_and_attention_load_with_the_first_family_that_takes_them():
    text = (
        "import sys; from dy2st.runtime.backends.cpu.runtime_library import parts\n"
        "from dy2st.runtime.backends.cpu.compile_link.target import current_target\n"
        "names = 'conv.select_algorithm', 'attention.forward'\n"
        "late = lambda: [name for name in names if f'dy2st.runtime.backends.cpu.{name}' in sys.modules]\n"
        "parts('gemm.f32.nn', current_target()); print(late())\n"
        "parts('conv.f32', current_target()); print(late())\n"
        "parts('attention.f32', current_target()); print(late())\n"
    )
    made = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=60)
    assert made.stdout.splitlines() == [
        "[]",
        "['conv.select_algorithm']",
        "['conv.select_algorithm', 'attention.forward']",
    ]
