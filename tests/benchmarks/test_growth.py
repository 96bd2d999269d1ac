"""What the benchmarks measure of growth and of the machine's ceilings."""

import math

import pytest

from benchmarks.suite import ceilings, growth


@pytest.mark.parametrize(
    "line", [line for line in growth.LINES if line.name != "gradient-turns"], ids=lambda line: line.name
)
def test_a_line_has_a_job_of_each_size(line: growth.Line):
    assert growth._seconds(line, 16) > 0
    assert list(line.sizes) == sorted(set(line.sizes))


def test_the_loop_of_multiply_adds_runs():
    function, lanes = ceilings._multiply_adds()
    assert lanes in (4, 8, 16)
    assert math.isclose(function(1000), ceilings.CHAINS, rel_tol=1e-6)  # x = x / 2 + 1 / 2 comes to 1 in each chain


def test_copies_have_a_rate(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ceilings, "SECONDS", 0.0)
    assert 1e6 < ceilings._copied(1 << 15, 2) < 1e13
