"""Random functions with control flow, containers, objects and early exits: `vmap` is the loop over the items."""

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings

import dy2st as paddle
from dy2st.incubate.autograd.vectorize import LanesWarning
from dy2st.utils import flatten
from tests.generator.outcomes import function_of
from tests.generator.statements import programs
from tests.generator.world import Box

XS = np.array([[0.3, -0.7, 1.2], [1.0, 0.5, -0.25], [-0.2, -0.9, 0.4]], "float32")
TS = np.array([0.5, -0.4, 1.5], "float32")
ROWS = np.arange(6, dtype="float32").reshape(2, 3) / 3


def one_item(text: str) -> Any:
    """The function of an item: what a program returns, and the gradients of what it returns."""
    program = function_of(text)

    def function(x: Any, t: Any) -> Any:
        return program(x, t, paddle.to_tensor(2), paddle.to_tensor(ROWS), Box())

    return function


def results(function: Any, x: Any, t: Any) -> list[np.ndarray] | None:
    """What a function returns and the gradients of its sum of squares; None where that is no tensors and numbers."""
    x, t = (paddle.to_tensor(v, stop_gradient=False) for v in (x, t))
    leaves = flatten(function(x, t))
    if not all(isinstance(v, (paddle.Tensor, bool, int, float)) for v in leaves):
        return None
    parts = [(v.astype("float32") ** 2).sum() for v in leaves if isinstance(v, paddle.Tensor) and not v.stop_gradient]
    found = paddle.grad(sum(parts), [x, t], allow_unused=True) if parts else [None, None]
    gradients = [np.zeros_like(v.numpy()) if g is None else g.numpy() for g, v in zip(found, (x, t), strict=True)]
    return [*(np.asarray(v.numpy() if isinstance(v, paddle.Tensor) else v) for v in leaves), *gradients]


def check(text: str) -> bool:
    """Compare a program over items with the program of each; say whether there was anything to compare."""
    try:
        wanted = [results(one_item(text), x, t) for x, t in zip(XS, TS, strict=True)]
    except Exception:  # an item that raises, or that has no gradient
        return False
    if any(one is None for one in wanted) or len({tuple(v.shape for v in one or ()) for one in wanted}) > 1:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("error", LanesWarning)
        try:
            found = results(paddle.vmap(one_item(text)), XS, TS)
        except LanesWarning:
            return False
    for ours, items in zip(found or (), zip(*wanted, strict=True), strict=True):
        np.testing.assert_allclose(ours, np.stack(items), rtol=1e-3, atol=1e-4, err_msg=text)
    return True


def compare(number: int, examples: int) -> None:
    compared: list[bool] = []

    @seed(number)
    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(programs())
    def agree(text: str) -> None:
        compared.append(check(text))

    agree()
    assert sum(compared) >= examples // 5


def test_programs_over_items_are_those_of_each_item() -> None:
    compare(0, 7)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(1, 4))
def test_1000_programs_over_items(number: int) -> None:
    compare(number, 330)
