"""First calls near Python's recursion limit: a RecursionError is one, and the next call is traced as if nothing was."""

import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import dy2st as paddle
from dy2st.ir.context import current


def deep(frames: int, call: Callable[[], Any]) -> Any:
    return call() if frames == 0 else deep(frames - 1, call)


def depth() -> int:
    frame, count = sys._getframe(), 0
    while frame is not None:
        frame, count = frame.f_back, count + 1  # type: ignore[assignment]
    return count


class Net(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.w = self.create_parameter([4])
        self.calls = 0

    @paddle.jit.to_static
    def forward(self, x: Any) -> Any:
        self.calls += 1
        if x.sum() > 3:
            x = x * 2
        for _ in range(2):
            x = x + self.w
        return x


@pytest.mark.parametrize("left", [*range(8, 40), 60, 90, 150, 300])
def test_a_call_with_few_frames_left_raises_or_is_right_and_so_are_later_ones(left: int) -> None:
    net, x = Net(), paddle.ones([4])
    want = (x * 2 + net.w * 2).numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it does not become eager
        try:
            found = deep(sys.getrecursionlimit() - depth() - left, lambda: net(x))
        except RecursionError:
            assert net.calls in (0, 1)  # where eager mode has come when it raises
        else:
            assert abs(found.numpy() - want).max() < 1e-6
            assert net.calls == 1
        assert current().trace is None
        net.calls = 0
        for _ in range(4):
            assert abs(net(x).numpy() - want).max() < 1e-6
    assert net.calls == 4
    assert "no fallback" in str(net.forward.explain())
