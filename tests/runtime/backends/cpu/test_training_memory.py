"""Memory of steps of training: it does not grow, and arrays that somebody holds stay as they were."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dy2st as paddle

_MEGABYTE = 1 << 20


@pytest.fixture(autouse=True)
def native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", "native")


def trained(width: int, static: bool = True) -> tuple[Any, Any]:
    """Return a layer and a step of Adam on it."""
    net = paddle.nn.Linear(width, width)
    optimizer = paddle.optimizer.Adam(parameters=net.parameters())

    def step(x: Any) -> Any:
        loss = (net(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
        return loss

    return net, paddle.jit.to_static(step, full_graph=True) if static else step


def resident() -> int:
    """Return how many bytes of memory this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says so")
def test_memory_does_not_grow_from_step_to_step() -> None:
    _, step = trained(1000)
    x = paddle.ones([4, 1000])
    for _ in range(5):
        step(x)
    before = resident()
    for _ in range(30):
        step(x)
    assert resident() - before < 4 * _MEGABYTE  # a parameter, and each of its moments, has that


HELD: dict[str, Callable[[Any], Any]] = {
    "array": lambda weight: weight.numpy(),
    "detached": lambda weight: weight.detach(),
    "row": lambda weight: weight.detach()[0],
    "shared": lambda weight: np.from_dlpack(weight.detach()),
}


@pytest.mark.parametrize("width", [3, 300])
@pytest.mark.parametrize("kind", HELD)
def test_arrays_of_a_parameter_stay_as_they_were_and_views_follow_it_as_in_eager_mode(kind: str, width: int) -> None:
    def found(static: bool) -> list[bool]:
        net, step = trained(width, static)
        changed: list[bool] = []
        for _ in range(4):
            view = HELD[kind](net.weight)
            before = np.array(view)
            step(paddle.ones([2, width]))
            changed.append(not np.array_equal(np.asarray(view), before))
        return changed

    assert found(static=True) == found(static=False) == [kind != "array"] * 4


def test_a_loss_that_is_held_stays_as_it_was() -> None:
    _, step = trained(300)
    losses = [step(paddle.ones([2, 300])) for _ in range(6)]
    assert len({float(loss) for loss in losses}) == 6
