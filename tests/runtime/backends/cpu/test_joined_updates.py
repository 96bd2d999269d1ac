"""Updates of all parameters are joined, whatever the optimizer, and give what eager mode gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.ir.program import Block, Program
from dy2st.runtime.backends.cpu.fusion.grouping import schedule
from dy2st.runtime.backends.cpu.fusion.horizontal_fusion import HorizontalGroup, groups_of
from dy2st.runtime.backends.cpu.lowering import prepared

SHAPES = ([64, 8], [40], [33, 3])
OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "SGD": ("SGD", {}), "Momentum": ("Momentum", {}), "nesterov": ("Momentum", {"use_nesterov": True}),
    "Adam": ("Adam", {}), "amsgrad": ("Adam", {"amsgrad": True}), "AdamW": ("AdamW", {"weight_decay": 0.1}),
    "Adagrad": ("Adagrad", {}), "RMSProp": ("RMSProp", {}), "centered": ("RMSProp", {"centered": True}),
    "Adadelta": ("Adadelta", {}), "Adamax": ("Adamax", {}), "NAdam": ("NAdam", {}), "RAdam": ("RAdam", {}),
    "Rprop": ("Rprop", {}), "ASGD": ("ASGD", {}), "Lamb": ("Lamb", {}),
}  # fmt: skip


@pytest.fixture(autouse=True)
def native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", "native")


class Training:
    """Three parameters, their optimizer, and steps of theirs."""

    def __init__(
        self, kind: str = "Adam", *, static: bool = True, how: str = "step", dtype: str = "float32",
        groups: Callable[[list[Any]], Any] = list, rate: Callable[[], Any] = lambda: 0.01, **options: Any,
    ):  # fmt: skip
        paddle.seed(7)
        self.parameters = [paddle.create_parameter(shape, "float32") for shape in SHAPES]
        for p in self.parameters:
            p.payload = p.payload.astype(paddle.zeros([1], dtype).payload.dtype)
        name, fixed = OPTIMIZERS[kind]
        self.rate = rate()
        made = getattr(paddle.optimizer, name)
        self.optimizer = made(learning_rate=self.rate, parameters=groups(self.parameters), **fixed, **options)
        body = getattr(self, how)
        self.run = paddle.jit.to_static(body, full_graph=True) if static else body

    def step(self, scale: Any) -> Any:
        loss = sum(((p.astype("float32") * scale) ** 2).sum() for p in self.parameters)
        loss.backward()
        self.optimizer.step()
        self.optimizer.clear_grad(set_to_zero=False)
        return loss

    def under_if(self, scale: Any) -> Any:
        loss = sum(((p.astype("float32") * scale) ** 2).sum() for p in self.parameters)
        loss.backward()
        if paddle.isfinite(loss):
            self.optimizer.step()
        self.optimizer.clear_grad(set_to_zero=False)
        return loss

    def in_loop(self, scale: Any) -> Any:
        loss = paddle.zeros([])
        for _ in range((scale * 0 + 2).astype("int64")):
            loss = self.step(scale)
        return loss

    def arrays(self) -> list[np.ndarray]:
        return [p.astype("float32").numpy() for p in self.parameters]


def most_joined(program: Program) -> int:
    """Return how many parameters the nests that are put together update at most, in whatever block."""
    ready = prepared(program)
    blocks: list[Block] = [ready.block, *(b for o in ready.block.walk() for b in o.blocks)]
    return max(
        (_updated(step) for block in blocks for step in schedule(block) if isinstance(step, HorizontalGroup)), default=0
    )  # fmt: skip


def _updated(joint: HorizontalGroup) -> int:
    sizes = {tuple(shape) for shape in SHAPES}
    return len({tuple(group.space) for group in groups_of(joint) if tuple(group.space) in sizes})


def same(make: Callable[[bool], Training], steps: int = 4, tolerance: float = 2e-4) -> Training:
    static, eager = make(True), make(False)
    for _ in range(steps):
        for one in (static, eager):
            one.run(paddle.to_tensor(1.5))
            if hasattr(one.rate, "step"):
                one.rate.step()
    for a, b in zip(static.arrays(), eager.arrays(), strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance / 50)
    return static


@pytest.mark.parametrize("how", ["step", "under_if", "in_loop"])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_every_optimizer_joins(kind: str, how: str) -> None:
    static = same(lambda static: Training(kind, static=static, how=how))
    assert most_joined(static.run.concrete_program.main_program) == len(SHAPES)


@pytest.mark.parametrize("kind", ["Momentum", "Adam", "AdamW", "Lamb"])
def test_half_parameters_with_a_float32_copy(kind: str) -> None:
    static = same(lambda static: Training(kind, static=static, dtype="float16", multi_precision=True), tolerance=2e-2)
    assert {p.dtype for p in static.parameters} == {paddle.float16}
    assert most_joined(static.run.concrete_program.main_program) == len(SHAPES)


CLIPS = {
    "global": lambda: paddle.nn.ClipGradByGlobalNorm(0.5), "norm": lambda: paddle.nn.ClipGradByNorm(0.5),
    "value": lambda: paddle.nn.ClipGradByValue(0.1),
}  # fmt: skip
DECAYS = {
    "number": lambda: 0.05, "L1": lambda: paddle.regularizer.L1Decay(0.05),
    "L2": lambda: paddle.regularizer.L2Decay(0.05),
}  # fmt: skip


@pytest.mark.parametrize("how", ["step", "under_if"])
@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("decay", DECAYS)
def test_clips_and_decays(clip: str, decay: str, how: str) -> None:
    given = {"grad_clip": CLIPS[clip](), "weight_decay": DECAYS[decay]()}
    static = same(lambda static: Training("Momentum", static=static, how=how, **given))
    assert most_joined(static.run.concrete_program.main_program) == len(SHAPES)


def test_groups_of_parameters() -> None:
    def groups(parameters: list[Any]) -> Any:
        return [
            {"params": parameters[:1], "learning_rate": 0.5},
            {"params": parameters[1:], "weight_decay": 0.1},
        ]

    static = same(lambda static: Training("AdamW", static=static, groups=groups))
    assert most_joined(static.run.concrete_program.main_program) == len(SHAPES)


RATES: dict[str, Callable[[], Any]] = {
    "noam": lambda: paddle.optimizer.lr.NoamDecay(d_model=16, warmup_steps=3),
    "piecewise": lambda: paddle.optimizer.lr.PiecewiseDecay([1, 2], [0.1, 0.05, 0.01]),
    "natural": lambda: paddle.optimizer.lr.NaturalExpDecay(0.1, 0.5),
    "inverse": lambda: paddle.optimizer.lr.InverseTimeDecay(0.1, 0.5),
    "polynomial": lambda: paddle.optimizer.lr.PolynomialDecay(0.1, 5),
    "warmup": lambda: paddle.optimizer.lr.LinearWarmup(0.1, 3, 0.0, 0.1),
    "exponential": lambda: paddle.optimizer.lr.ExponentialDecay(0.1, 0.5),
    "milestones": lambda: paddle.optimizer.lr.MultiStepDecay(0.1, [1, 2]),
    "step": lambda: paddle.optimizer.lr.StepDecay(0.1, 2),
    "lambda": lambda: paddle.optimizer.lr.LambdaDecay(0.1, lambda epoch: 0.9**epoch),
    "multiplied": lambda: paddle.optimizer.lr.MultiplicativeDecay(0.1, lambda epoch: 0.9),
    "cosine": lambda: paddle.optimizer.lr.CosineAnnealingDecay(0.1, 4),
    "restarts": lambda: paddle.optimizer.lr.CosineAnnealingWarmRestarts(0.1, 2),
    "one cycle": lambda: paddle.optimizer.lr.OneCycleLR(0.1, 6),
    "cyclic": lambda: paddle.optimizer.lr.CyclicLR(0.01, 0.1, 3),
    "linear": lambda: paddle.optimizer.lr.LinearLR(0.1, 5),
}


@pytest.mark.parametrize("rate", RATES)
def test_every_schedule_of_the_learning_rate(rate: str) -> None:
    static = same(lambda static: Training("SGD", static=static, rate=RATES[rate]))
    assert len(static.run.program_cache) == 1
    assert most_joined(static.run.concrete_program.main_program) == len(SHAPES)
