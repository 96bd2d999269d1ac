"""What ptxas says of kernels: those of every op's samples and of the workloads assemble, and spill no register."""

import numpy as np
import pytest

from dy2st.ir.opdef import REGISTRY
from dy2st.ir.program import Program
from dy2st.runtime.backends.cpu.compile_link.compiler import version as llvm_version
from dy2st.runtime.backends.cuda.grid import DeviceGrid
from dy2st.runtime.backends.cuda.target import AMPERE, BLACKWELL, HOPPER
from tests.ops.test_registry import built, cases
from tests.runtime.backends.cpu.op_inputs import chosen
from tests.runtime.backends.cuda.emulated import same
from tests.runtime.backends.cuda.ptxas import assembled, required, version
from tests.runtime.backends.cuda.workloads import WORKLOADS, programs_made, results

SHARE = 12
MEASURED_WITH = "13.5", 22
"""The versions of ptxas and LLVM that the golden figures are of."""


def texts(*programs):
    """Return the kernels of Programs as a GPU has them, each once, with the names of their nests."""
    found = {}
    for program in programs:
        for launcher in program.launchers:
            members = "+".join(dict.fromkeys(o.op.name for o in launcher.group.members))
            for name, kernel in launcher.kernels():
                found.setdefault(kernel.write(DeviceGrid).text, f"{name}: {members}")
    return {name: text for text, name in found.items()}


def of_op(op, sample):
    return texts(same(Program({"main": built(op, sample, symbolic=True)}), sample.operands))


@pytest.mark.parametrize(("op", "sample"), cases(lambda op, sample: not chosen(op.name, SHARE)))
def test_kernels_of_some_ops(op, sample):
    required()
    for text in of_op(op, sample).values():
        assert not assembled(text, AMPERE).spilled


@pytest.mark.parametrize("name", ["random_normal", "random_uniform", "random_bernoulli"])
def test_random_numbers_stay_in_registers(name):
    required()
    op = REGISTRY[name]
    kernels = [text for sample in op.samples(np.random.default_rng(0)) for text in of_op(op, sample).values()]
    assert kernels
    assert {assembled(text, AMPERE).stack for text in kernels} == {0}


@pytest.mark.soak
@pytest.mark.parametrize("gpu", [AMPERE, HOPPER, BLACKWELL], ids=lambda gpu: gpu.name)
@pytest.mark.parametrize(("op", "sample"), cases())
def test_kernels_of_every_op(op, sample, gpu):
    required()
    for text in of_op(op, sample).values():
        assert not assembled(text, gpu).spilled


@pytest.mark.parametrize("name", WORKLOADS)
def test_kernels_of_workloads(name, monkeypatch, golden):
    with programs_made(monkeypatch) as programs:
        results(WORKLOADS[name], "gpu")
    found = {kernel: assembled(text, HOPPER) for kernel, text in texts(*programs).items()}
    assert found
    assert not any(figures.spilled for figures in found.values())
    if (version(), llvm_version() >> 16) == MEASURED_WITH:
        lines = [f"{figures}: {kernel}" for kernel, figures in found.items()]
        golden(f"cuda/{name}", "\n".join(sorted(lines)))


@pytest.mark.soak
@pytest.mark.parametrize("gpu", [AMPERE, BLACKWELL], ids=lambda gpu: gpu.name)
@pytest.mark.parametrize("name", WORKLOADS)
def test_kernels_of_workloads_elsewhere(name, gpu, monkeypatch):
    required()
    with programs_made(monkeypatch) as programs:
        results(WORKLOADS[name], "gpu")
    assert not any(assembled(text, gpu).spilled for text in texts(*programs).values())
