"""Whatever changes between calls (attributes, globals, lists, layers, modes), a static layer acts as an eager one."""

import copy
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st import nn

T = paddle.to_tensor
FACTOR = 2.0
TABLE: dict[str, Any] = {"a": 1.0, "w": T([1.0, 2.0])}
ITEMS: list[Any] = [1, 2.0, T([0.5, 0.5])]
HERE = sys.modules[__name__]


class Settings:
    def __init__(self, scale: float = 1.5):
        self.scale, self.mode, self.items, self.shift = scale, "a", [1, 2], T([1.0, 1.0])


def scaled(x: Any) -> Any:
    return x * FACTOR


class Net(nn.Layer):
    rate = 0.5

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Linear(2, 2), nn.BatchNorm1D(2)
        self.blocks = nn.LayerList([nn.Linear(2, 2) for _ in range(2)])
        self.settings, self.count, self.flag, self.extra = Settings(), 0, True, None
        self.register_buffer("seen", T([0.1, 0.2]))

    def forward(self, x: Any, settings: Any = None, k: Any = 1, **more: Any) -> Any:
        settings = self.settings if settings is None else settings
        y = self.norm(self.first(x)) * settings.scale + self.seen
        if settings.mode == "a":
            y = y + settings.shift
        elif settings.mode == "b":
            y = y - sum(settings.items)
        for block in self.blocks:
            y = block(y)
        y = scaled(y) * self.rate * k + TABLE["a"] + TABLE["w"] + ITEMS[0] + ITEMS[2]
        if self.flag:
            y = y * 2
        if self.extra is not None:
            y = y + self.extra
        if y.sum() > 0:
            self.count += 1
            self.seen = self.seen + 0.1
        for name in more:
            y = y + more[name]
        return y


CHANGES: list[Callable[[Any, random.Random], object]] = [
    lambda net, r: setattr(net.settings, "scale", r.choice([1.5, 2.5, 3])),
    lambda net, r: setattr(net.settings, "mode", r.choice("abc")),
    lambda net, r: net.settings.items.append(r.randrange(3)),
    lambda net, r: setattr(net.settings, "shift", T([float(r.randrange(3)), 1.0])),
    lambda net, r: setattr(net, "flag", not net.flag),
    lambda net, r: setattr(net, "extra", r.choice([None, 1.0, T([1.0, 2.0])])),
    lambda net, r: net.train() if r.random() < 0.5 else net.eval(),
    lambda net, r: net.first.weight.set_value(paddle.full([2, 2], float(r.randrange(3)))),
    lambda net, r: setattr(net.first.bias, "stop_gradient", not net.first.bias.stop_gradient),
    lambda net, r: net.blocks.append(copy.deepcopy(net.blocks[0])) if len(net.blocks) < 4 else None,
    lambda net, r: setattr(net, "count", r.randrange(3)),
    lambda net, r: setattr(net, "seen", T([0.3, 0.4])),
    lambda net, r: setattr(net, "settings", Settings()),
    lambda net, r: setattr(net, "first", copy.deepcopy(net.blocks[1])),
]
CALLS: list[Callable[[Any, Any], Any]] = [
    lambda net, x: net(x),
    lambda net, x: net(x, Settings(2.0)),
    lambda net, x: net(x, k=3.5),
    lambda net, x: net(x, bias=T([1.0, 1.0])),
    lambda net, x: net(x, None, 2),
    lambda net, x: net(x, settings=None),
]


def outcome(net: Any, call: Callable[[Any, Any], Any], rows: np.ndarray, needs: bool, grad: bool) -> list[Any]:
    x = T(rows, stop_gradient=not needs)
    with paddle.set_grad_enabled(grad):
        y = call(net, x)
        if not y.stop_gradient:
            y.sum().backward()
    found = [y, x.grad, *(p.grad for p in net.parameters()), net.seen, net.norm._mean, T(float(net.count))]
    net.clear_gradients()
    return [None if t is None else t.numpy() for t in found]


def change_what_is_global(r: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    which = r.randrange(12)
    if which == 0:
        monkeypatch.setattr(HERE, "FACTOR", r.choice([2.0, 3.0, 4]))
    elif which == 1:
        monkeypatch.setitem(TABLE, "a", r.choice([1.0, 2.0]))
    elif which == 2:
        monkeypatch.setitem(TABLE, "w", T([float(r.randrange(3)), 0.0]))
    elif which == 3:
        monkeypatch.setattr(HERE, "ITEMS", [r.choice([1, 2]), *ITEMS[1:]])
    elif which == 4:
        monkeypatch.setattr(Net, "rate", r.choice([0.5, 0.25]))


def compare(seed: int, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    r = random.Random(seed)
    paddle.seed(seed)
    eager = Net()
    static = paddle.jit.to_static(copy.deepcopy(eager), full_graph=True)
    for step in range(steps):
        if r.random() < 0.6:
            change, seed_of_it = r.choice(CHANGES), r.random()
            for net in (eager, static):
                change(net, random.Random(seed_of_it))
        change_what_is_global(r, monkeypatch)
        rows = np.round(np.random.RandomState(r.randrange(99)).randn(r.choice([2, 3]), 2), 1).astype("float32")
        how = r.choice(CALLS), rows, r.random() < 0.5, r.random() < 0.7
        for got, want in zip(outcome(static, *how), outcome(eager, *how), strict=True):
            if want is None:
                assert got is None, (seed, step)
            else:
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4, err_msg=f"seed {seed}, step {step}")


def test_random_changes_between_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    compare(0, 12, monkeypatch)


@pytest.mark.filterwarnings("ignore::dy2st.jit.dispatch.retrace_warning.RetraceWarning")  # each call is unlike the last
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_more_random_changes_between_calls(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(seed, 40, monkeypatch)


def _with_ones(x):
    return x + paddle.ones([2]) + 0.5


def test_the_default_dtype_is_read_at_each_call():
    static, x = paddle.jit.to_static(_with_ones, full_graph=True), paddle.to_tensor([1, 2])
    found = []
    try:
        for name in ("float32", "float32", "float32", "float64", "float64", "float32"):
            paddle.set_default_dtype(name)
            found.append(static(x).dtype.name)
    finally:
        paddle.set_default_dtype("float32")
    assert found == ["float32", "float32", "float32", "float64", "float64", "float32"]
    assert len(static.program_cache) == 2


def _sets_the_default_dtype(x):
    before = paddle.zeros([1])
    paddle.set_default_dtype("float64")
    between = x + paddle.ones([2])
    paddle.set_default_dtype("float32")
    return before, between, paddle.ones([1])


def test_a_default_dtype_that_is_set_inside_holds_from_there_on():
    static, x = paddle.jit.to_static(_sets_the_default_dtype, full_graph=True), paddle.ones([2])
    for _ in range(3):
        assert [t.dtype.name for t in static(x)] == ["float32", "float64", "float32"]
        assert paddle.get_default_dtype() == "float32"
    assert len(static.program_cache) == 1


def test_what_only_an_object_keeps_has_a_gradient():
    class Box:
        state = None

    box = Box()

    @paddle.jit.to_static(full_graph=True)
    def keep(x):
        box.state = x * 0.5

    for _ in range(3):
        x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
        assert keep(x) is None
        box.state.sum().backward()
        assert x.grad.tolist() == [0.5, 0.5]


class Averaged(nn.Layer):
    """Copies the state of one layer, or a moving mean of it, to another one."""

    def __init__(self, mean: bool):
        super().__init__()
        self.live, self.kept, self.mean = nn.Linear(2, 2), nn.Linear(2, 2), mean

    def forward(self, x: Any) -> Any:
        state = self.live.state_dict()
        if self.mean:
            state = {k: v * 0.9 + state[k] * 0.1 for k, v in self.kept.state_dict().items()}
        self.kept.set_state_dict(state)
        return self.kept(x)


@pytest.mark.parametrize("mean", [False, True])
def test_a_state_dict_that_is_set_inside_is_set_by_each_call(mean: bool) -> None:
    eager = Averaged(mean)
    layer = copy.deepcopy(eager)
    static = paddle.jit.to_static(layer, full_graph=True)
    for i in range(4):
        x = paddle.ones([i + 1, 2])
        np.testing.assert_allclose(static(x).numpy(), eager(x).numpy(), rtol=1e-6)
        np.testing.assert_allclose(layer.kept.weight.numpy(), eager.kept.weight.numpy(), rtol=1e-6)
        for one in (eager, layer):
            one.live.weight.set_value(one.live.weight * 2.0)
