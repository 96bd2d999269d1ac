"""Workloads on the emulated device: what they give on the CPU, with as many launches as are promised."""

import numpy as np
import pytest

from tests.runtime.backends.cuda.workloads import WORKLOADS, programs_made, results


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload(name, monkeypatch):
    with programs_made(monkeypatch) as programs:
        found, wanted = results(WORKLOADS[name], "gpu"), results(WORKLOADS[name], "cpu")
    assert any(program.counts.launches for program in programs)
    assert not any(program.counts.elsewhere for program in programs)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)
