"""Reading `stop_gradient` of what a branch or turn leaves gives what eager mode gives, or is refused."""

from __future__ import annotations

from typing import Any

import pytest

import dy2st as paddle
from dy2st.errors import StructureError
from dy2st.jit.static_function import FallbackWarning

T = paddle.to_tensor


def carried(x: Any, w: Any, n: Any) -> Any:
    q, count = x * 1.0, x * 0.0
    for _ in range(n):
        if not q.stop_gradient:
            count = count + 1.0
        q = q * w
    return count


def made_of_what_is_carried(x: Any, w: Any, n: Any) -> Any:
    q, count = x * 1.0, x * 0.0
    for _ in range(n):
        r = q * 2.0
        if not r.stop_gradient:
            count = count + 1.0
        q = q * w
    return count


def of_a_branch(x: Any, w: Any, n: Any) -> Any:
    y = x * 1.0
    if x.sum() > n:
        y = y * w
    return x + 1.0 if y.stop_gradient else x + 2.0


def needs_one_in_any_case(x: Any, w: Any, n: Any) -> Any:
    q, count = x * 1.0, x * 0.0
    for _ in range(n):
        q = q * w
        if not q.stop_gradient and not w.stop_gradient and x.stop_gradient:
            count = count + 1.0
    return count


@pytest.mark.parametrize(
    ("function", "refused"),
    [(carried, True), (made_of_what_is_carried, True), (of_a_branch, True), (needs_one_in_any_case, False)],
)
def test_stop_gradient_is_read_as_it_is_in_eager(function: Any, refused: bool) -> None:
    x, w = T([0.5, 0.75]), T(2.0, stop_gradient=False)
    static = paddle.jit.to_static(function, full_graph=True)
    if refused:
        with pytest.raises(StructureError, match="only on some ways through a branch or loop"):
            static(x, w, T(1))
        static = paddle.jit.to_static(function)
        with pytest.warns(FallbackWarning, match="only on some ways through a branch or loop"):
            static(x, w, T(1))
    for n in (0, 1, 3):
        assert static(x, w, T(n)).tolist() == function(x, w, T(n)).tolist()
