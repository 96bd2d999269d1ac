"""The functions of `test_derivatives.py` with checkpointed loops: the same gradients, from outside and inside."""

import numpy as np
import pytest

import dy2st as paddle
from tests.jit.test_derivatives import FUNCTIONS, Function, arguments, derivatives, same, wanted, with_gradients

LOOPS = [f for f in FUNCTIONS if f.__name__ not in ("recursion", "singular")]
LONG = ("nested_loops", "lists", "written_in_place", "integers_between", "early_exit", "none_at_first")
CASES = [pytest.param(f, marks=pytest.mark.slow if f.__name__ in LONG else ()) for f in LOOPS]


@pytest.mark.parametrize("checkpoint", ["sqrt", 2])
@pytest.mark.parametrize("function", CASES)
def test_from_outside(function: Function, checkpoint: str | int) -> None:
    static = paddle.jit.to_static(function, full_graph=True, checkpoint=checkpoint)
    same(derivatives(static, 2), wanted(function)[:5])


@pytest.mark.slow
@pytest.mark.parametrize("function", CASES)
def test_inside_of_one_trace(function: Function) -> None:
    both = with_gradients(function)
    static = paddle.jit.to_static(both, full_graph=True, checkpoint="sqrt")
    for got, want in zip(static(*arguments()), both(*arguments()), strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-9, atol=1e-11)
