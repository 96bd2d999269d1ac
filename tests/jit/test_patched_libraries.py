"""What is patched in a library's modules or in the class of tensors between calls: each call sees what is there."""

import math
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st import nn


def through_modules(x: Any) -> Any:
    return paddle.nn.functional.relu(x) + paddle.exp(x)


def through_a_module_of_the_functions(x: Any) -> Any:
    return F.relu(x) * math.sqrt(4.0)


def a_method_of_tensors(x: Any) -> Any:
    return F.relu(x).exp()


def in_a_branch_and_a_function_inside(x: Any) -> Any:
    def inner(v: Any) -> Any:
        return paddle.exp(v)

    return F.relu(x) if x.sum() > 100 else inner(x)


def a_class(x: Any) -> Any:
    return nn.ReLU()(x)


PATCHES = (
    ("dy2st.nn.functional.relu", lambda x: x * 50),
    ("dy2st.exp", lambda x: x * 60),
    ("dy2st.Tensor.exp", lambda x: x * 70),
    ("math.sqrt", lambda k: 80.0),
    ("dy2st.nn.ReLU", lambda: lambda x: x * 90),
)


@pytest.mark.parametrize("backend", ["interpreter", "native"])
@pytest.mark.parametrize("function", [
    through_modules, through_a_module_of_the_functions, a_method_of_tensors, in_a_branch_and_a_function_inside, a_class,
])  # fmt: skip
def test_a_patch_is_seen_and_so_is_its_end(function: Callable[[Any], Any], backend: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", backend)
    static, x = paddle.jit.to_static(function, full_graph=True), paddle.to_tensor([-1.0, 2.0])

    def compare() -> None:
        for _ in range(3):
            np.testing.assert_allclose(static(x).numpy(), function(x).numpy(), rtol=1e-6)

    compare()
    for place, other in PATCHES:
        with mock.patch(place, other):
            compare()
        compare()
    assert len(static.program_cache) <= 3
