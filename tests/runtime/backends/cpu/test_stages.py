"""The stages of native code as text."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu import STAGES, shape_specialization
from dy2st.runtime.backends.cpu.dump_stages import stage as stage_of
from dy2st.static import InputSpec

CENTRED = """\
func main(%x: float32[4, 7])
  loops over [4, 7]: 8 lanes along [7], one thread, 3 sweeps
    reads %x: float32[4, 7]
    sweep 0
      %0 = max(%x): a number a row
    sweep 1
      %1 = broadcast(%0)
      %2 = sub(%x, %1)
      %3 = exp(%2)
      %4 = sum(%3): a number a row
      keeps %3
    sweep 2
      %5 = broadcast(%4)
      %6 = sub(%3, %5)
      writes %6: float32[4, 7]
  return %6"""


def program_of(function, *specs):
    static = paddle.jit.to_static(function, input_spec=[InputSpec(s, "float32", "x") for s in specs], full_graph=True)
    return static.concrete_program.main_program


@pytest.fixture(autouse=True)
def cpu_kind(monkeypatch):
    monkeypatch.setenv("DY2ST_CPU", "avx2")


def test_a_loop_nest_with_its_sweeps():
    def f(x):
        e = paddle.exp(x - x.max(axis=1, keepdim=True))
        return e - e.sum(axis=1, keepdim=True)

    assert stage_of(program_of(f, [4, 7]), "loops") == CENTRED


def test_loops_inside_of_loops_of_the_program():
    def f(x):
        while x.sum() < 3:
            x = x + paddle.tanh(x).mean(axis=0)
        return x

    text = stage_of(program_of(f, [None, 7]), "loops")
    assert "while_loop(" in text
    assert "    loops over [x_0, 7]: 8 lanes along [7]" in text
    assert ": of all rows" in text
    assert "split between threads by rows" in text


def test_blocks_are_told_apart():
    def f(x):
        return paddle.tanh(x) if x.sum() > 3 else -x

    program = program_of(f, [4, 7])
    found = [line.strip() for line in stage_of(program, "fused").splitlines()]
    assert found[found.index("then") + 1] == "loops over [4, 7]: tanh -> float32[4, 7]"
    assert found[found.index("else") + 1] == "loops over [4, 7]: neg -> float32[4, 7]"
    text = stage_of(program, "loops")
    assert "    then(%x: float32[4, 7])\n      loops over" in text
    assert "= constant() {value=float32[](3.0)}" in text


@pytest.mark.parametrize("stage", STAGES)
def test_a_program_without_loop_nests(stage):
    assert stage_of(program_of(lambda x: x, [4]), stage)


def test_each_stage_shows_the_program():
    program = program_of(lambda x: paddle.exp(x) * 2, [4, 7])
    said = {
        "fused": "exp broadcast mul -> float32[4, 7]",
        "loops": "= exp(%x)",
        "llvm": "define void @dy2st.k.",
        "asm": "\tret",
    }
    for stage, text in said.items():
        assert text in stage_of(program, stage)


def test_another_stage_is_refused():
    with pytest.raises(ValueError, match="a stage is one of fused, loops, llvm, asm, not 'bytes'"):
        stage_of(program_of(lambda x: x, [4]), "bytes")


def test_text_is_the_same_for_inputs_of_the_run(rng):
    program = program_of(lambda x: paddle.exp(x), [4, 7])
    before = stage_of(program, "loops")
    shape_specialization.native_code(program, [rng.normal(size=(4, 7)).astype(np.float32)])
    assert stage_of(program, "loops") == before
