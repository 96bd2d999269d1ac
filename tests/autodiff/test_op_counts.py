"""How many operations derivative Programs have: what the table of docs/derivative-programs.md says."""

import re
from pathlib import Path

import numpy as np
import pytest

import dy2st as paddle
from tests.autodiff.derivative_programs import CASES, count, derivative_program

TABLE = Path(__file__).parents[2] / "docs" / "derivative-programs.md"


def rows():
    """The numbers of the table: derivative -> (ours, JAX's)."""
    found = re.findall(r"^\| (.+?) \| (\d+) \| (\d+) \|$", TABLE.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: (int(ours), int(theirs)) for name, ours, theirs in found}


@pytest.mark.parametrize("name", CASES)
def test_the_table_says_how_many_operations_there_are(name):
    assert count(derivative_program(name)) == rows()[name][0]


def test_the_table_has_these_cases():
    assert set(rows()) == set(CASES)
    assert sum(ours <= theirs for ours, theirs in rows().values()) >= 9


def test_a_gradient_alone_does_not_compute_the_value():
    names = [operation.name for operation in derivative_program("cubic, gradient").walk()]
    assert "sum" not in names


@pytest.mark.parametrize("name", CASES)
def test_the_programs_are_right(name):
    f, shapes = CASES[name]
    rng = np.random.default_rng(0)
    inputs = [paddle.to_tensor(rng.uniform(0.3, 0.9, shape).astype("float32")) for shape in shapes]
    eager, static = f(*inputs), paddle.jit.to_static(lambda *xs: f(*xs), full_graph=True)(*inputs)
    for a, b in zip(*([one] if isinstance(one, paddle.Tensor) else one for one in (eager, static)), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-5, atol=1e-5)
