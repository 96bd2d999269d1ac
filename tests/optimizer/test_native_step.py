"""Eager steps as native code beside those of NumPy: the same values, whatever changes between two steps."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.optimizer import recorded_updates
from dy2st.runtime.executor.tiering import TieredProgram

SHAPES = ((5, 7), (33,), (), (1, 1), (0, 3), (4, 3, 2))
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {},
    "Momentum": {"use_nesterov": True, "rescale_grad": 0.5},
    "ASGD": {"batch_num": 3},
    "Rprop": {"learning_rate_range": (1e-4, 1.0)},
    "Adagrad": {},
    "Adadelta": {},
    "RMSProp": {"centered": True, "momentum": 0.9},
    "Adam": {"amsgrad": True},
    "AdamW": {"apply_decay_param_fun": lambda name: not name.endswith("1"), "lr_ratio": lambda p: 0.5 + len(p.shape)},
    "Adamax": {},
    "Lamb": {"exclude_from_weight_decay_fn": lambda p: p.ndim == 1},
    "NAdam": {},
    "RAdam": {},
}
MULTI_PRECISION = ("SGD", "Momentum", "ASGD", "Rprop", "Adam", "AdamW", "Lamb")
CLIPS: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: paddle.nn.ClipGradByValue(0.3),
    lambda: paddle.nn.ClipGradByNorm(0.7),
    lambda: paddle.nn.ClipGradByGlobalNorm(0.9),
)


class Training:
    """Parameters with an optimizer; gradients come from a generator."""

    def __init__(self, name: str, dtype: str = "float32", shapes: Any = SHAPES, **options: Any):
        self.random = np.random.default_rng(3)
        self.parameters = [paddle.create_parameter(list(shape), dtype) for shape in shapes]
        for i, p in enumerate(self.parameters):
            p.set_value(np.asarray(self.random.normal(size=shapes[i]), dtype))
            p.name = f"p_{i}"
        given = {"learning_rate": 0.05, "parameters": self.parameters, **OPTIMIZERS.get(name, {}), **options}
        self.optimizer = getattr(paddle.optimizer, name)(**given)

    def step(self, *missing: int) -> None:
        for i, p in enumerate(self.parameters):
            g = np.asarray(self.random.normal(size=tuple(p.shape)), p.dtype.numpy)
            p.grad = None if i in missing else paddle.to_tensor(g)
        self.optimizer.step()

    def elements(self) -> dict[str, np.ndarray]:
        state = self.optimizer.state_dict()
        masters = state.pop("master_weights", {})
        state = {**state, **{f"{name} master": t for name, t in masters.items()}}
        return {
            **{p.name: p.numpy() for p in self.parameters},
            **{name: t.numpy() for name, t in state.items() if isinstance(t, paddle.Tensor)},
        }


def both(
    monkeypatch: pytest.MonkeyPatch, train: Callable[[Training], object], name: str = "Adam", **options: Any
) -> tuple[Training, Training]:
    """Train natively and by NumPy; compare all that is left. Return both trainings."""
    made = []
    for backend in ("auto", "interpreter"):
        monkeypatch.setenv("DY2ST_BACKEND", backend)
        training = Training(name, **{k: v() if callable(v) else v for k, v in options.items()})
        train(training)
        made.append(training)
    found, expected = (training.elements() for training in made)
    assert found.keys() == expected.keys()
    for key, x in expected.items():
        tolerance = {"float16": 4e-3, "float32": 4e-6, "float64": 1e-12}[str(x.dtype)]
        np.testing.assert_allclose(found[key], x, rtol=tolerance, atol=tolerance, err_msg=key)
        assert found[key].dtype == x.dtype
    return made[0], made[1]


def parts(training: Training) -> int:
    """Return how many native Programs update the parameters that were updated last."""
    kept = list(training.optimizer._native._kept.values())[-1]
    return 0 if kept is None else len(kept.parts)


def five(training: Training) -> None:
    for _ in range(5):
        training.step()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_those_of_numpy(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    native, numpy = both(monkeypatch, five, name, dtype=dtype)
    assert (parts(native), parts(numpy)) == (1, 0)


@pytest.mark.parametrize("name", MULTI_PRECISION)
@pytest.mark.parametrize("multi_precision", [True, False])
def test_half_precision(name: str, multi_precision: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    native, _ = both(monkeypatch, five, name, dtype="float16", multi_precision=multi_precision)
    assert parts(native) == 1


@pytest.mark.parametrize("clip", range(len(CLIPS)))
@pytest.mark.parametrize("name", ["SGD", "Momentum", "Adam", "Lamb"])
def test_clipping_and_decay(name: str, clip: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def train(training: Training) -> None:
        training.parameters[1].need_clip = False
        training.parameters[0].regularizer = paddle.regularizer.L1Decay(0.02)
        training.step()
        training.step()
        if training.optimizer._grad_clip is not None:  # its numbers are read in each step
            for bound in ("clip_norm", "max"):
                if hasattr(training.optimizer._grad_clip, bound):
                    setattr(training.optimizer._grad_clip, bound, 0.2)
        training.step()
        training.step()

    decay = {} if name == "Lamb" else {"weight_decay": 0.1}
    native, _ = both(monkeypatch, train, name, grad_clip=CLIPS[clip], **decay)
    assert parts(native) == 1


@pytest.mark.parametrize("clip", [0, 3])
def test_many_parameters_are_several_programs(clip: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []

    def train(training: Training) -> None:
        five(training)
        counts.append(parts(training))
        for turn in range(2):  # some Programs refuse their arrays
            for i, p in enumerate(training.parameters):
                g = np.asarray(training.random.normal(size=tuple(p.shape)), "float32")
                p.grad = paddle.to_tensor(g)
                if i % 50 == 0:
                    (p.grad if turn else p).payload = (g if turn else p.numpy()).astype("float64")
            training.optimizer.step()
        for p in training.parameters:
            p.payload = p.payload.astype("float32")
        five(training)

    both(monkeypatch, train, "Adam", shapes=((3, 2), (4,)) * 70, grad_clip=CLIPS[clip])
    assert counts == [5, 0]


def test_what_changes_between_two_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    def train(training: Training) -> None:
        opt, ps = training.optimizer, training.parameters
        for change in (
            lambda: opt.set_lr(0.5),
            lambda: opt._options.update(beta1=0.5),
            lambda: setattr(opt, "regularization", paddle.regularizer.L2Decay(0.1)),
            lambda: setattr(opt.regularization, "coeff", 0.3),
            lambda: setattr(opt, "_grad_clip", paddle.nn.ClipGradByGlobalNorm(0.5)),
            lambda: setattr(ps[1], "need_clip", False),
            lambda: setattr(ps[0], "optimize_attr", {"learning_rate": 2.0}),
            lambda: ps[0].optimize_attr.update(learning_rate=0.25),
            lambda: setattr(ps[1], "stop_gradient", True),
            lambda: setattr(ps[1], "stop_gradient", False),
            lambda: ps[0].set_value(np.full(SHAPES[0], 2.0, "float32")),
            lambda: opt.set_state_dict({k: t * 0.5 for k, t in opt.state_dict().items()}),
            lambda: opt.set_lr_scheduler(paddle.optimizer.lr.ExponentialDecay(0.1, 0.5)),
            lambda: opt._learning_rate.step(),
            lambda: opt._groups[0].update(learning_rate=0.1),
        ):
            for _ in range(3):
                training.step()
            change()
        five(training)

    native, _ = both(monkeypatch, train)
    assert parts(native) == 1


def test_a_gradient_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def train(training: Training) -> None:
        for missing in ((), (0,), (), (0,), (0,), (), (1, 2, 3), range(6), ()):
            training.step(*missing)

    native, _ = both(monkeypatch, train)
    assert len(native.optimizer._native._kept) == 3


def test_groups_with_options_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def train(training: Training) -> None:
        a, b, c, *_ = training.parameters
        training.optimizer = paddle.optimizer.AdamW(
            0.1,
            parameters=[
                {"params": [a], "learning_rate": 0.5, "beta1": 0.5},
                {"params": [b, c], "weight_decay": 0.2, "grad_clip": paddle.nn.ClipGradByNorm(0.1)},
            ],
        )
        five(training)

    native, _ = both(monkeypatch, train)
    assert len(native.optimizer._native._kept) == 2


def test_given_gradients_and_those_of_unknown_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    def train(training: Training) -> None:
        training.optimizer = paddle.optimizer.Momentum(0.1, parameters=training.parameters[:2])
        for _ in range(4):
            grads = [paddle.to_tensor(training.random.normal(size=s).astype("float32")) for s in SHAPES]
            training.optimizer.apply_gradients(list(zip(training.parameters, grads, strict=True)))

    both(monkeypatch, train)


def test_memory_stays_and_aliases_see_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", "auto")
    training = Training("Adam")
    arrays = [p.payload for p in training.parameters]
    alias, view, twin = np.asarray(training.parameters[0]), training.parameters[0][1], training.parameters[1].detach()
    versions = [p.inplace_version for p in training.parameters]
    five(training)
    assert all(p.payload is array for p, array in zip(training.parameters, arrays, strict=True))
    assert [p.inplace_version for p in training.parameters] == [v + 5 for v in versions]
    np.testing.assert_array_equal(alias, training.parameters[0].numpy())
    np.testing.assert_array_equal(view.numpy(), training.parameters[0].numpy()[1])
    np.testing.assert_array_equal(twin.numpy(), training.parameters[1].numpy())
    assert parts(training) == 1


def test_a_tape_that_needs_a_parameter_finds_it_overwritten() -> None:
    p = paddle.create_parameter([40], "float32")
    opt = paddle.optimizer.SGD(0.1, parameters=[p])
    for _ in range(3):
        p.grad = paddle.ones([40])
        opt.step()
    loss = (p * p).sum()
    opt.step()
    with pytest.raises(RuntimeError, match="in place"):
        loss.backward()


def test_arrays_that_are_not_plain_are_numpys(monkeypatch: pytest.MonkeyPatch) -> None:
    def train(training: Training) -> None:
        five(training)
        p = training.parameters[0]
        p.grad = paddle.to_tensor(np.ones((7, 5), "float32").T)
        p.grad.payload = np.ones((7, 5), "float32").T
        training.optimizer.step()
        p.grad.payload = np.ones((5, 7), "float64")
        training.optimizer.step()
        p.grad.payload = np.float32(0.5) * np.ones((1, 7), "float32")
        training.optimizer.step()
        p.payload = p.payload.astype("float64")
        training.step()
        training.step()

    both(monkeypatch, train, "SGD")


@pytest.mark.parametrize("kind", ["twice", "detached", "views"])
def test_parameters_that_share_memory_are_updated_one_after_another(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def train(training: Training) -> None:
        p = training.parameters[0]
        made = {"twice": [p, p], "detached": [p, p.detach()], "views": [p.detach()[1:3], p.detach()[2:]]}[kind]
        training.optimizer = paddle.optimizer.Adam(0.05, parameters=made)
        for _ in range(5):
            for k, t in enumerate(made):
                t.name, t.stop_gradient, t.grad = f"q_{k}", False, t.detach() * (k + 1.0)
            training.optimizer.step()
        if kind == "views":
            (made[0] * made[1][:2]).sum().backward()

    both(monkeypatch, train)


def test_one_of_many_parameters_has_states_of_another_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    """The norm of all gradients is the clipping's, also where a Program does not take some of them."""

    def train(training: Training) -> None:
        five(training)
        state = training.optimizer.state_dict()
        name = next(name for name in state if name.startswith("p_3_moment1"))
        state[name].payload = state[name].payload.astype("float64")
        five(training)

    both(monkeypatch, train, shapes=[(k % 5 + 1, 2) for k in range(80)], grad_clip=CLIPS[3])


def test_a_rule_of_the_users_stays_python() -> None:
    class Mine(paddle.optimizer.SGD):
        calls = 0

        def rule(self, m: Any, p: Any, g: Any, lr: Any, state: Any, options: Any) -> Any:
            Mine.calls += 1
            return p - g, {}

    p = paddle.create_parameter([3], "float32")
    p.grad = paddle.ones([3])
    opt = Mine(0.1, parameters=[p])
    for _ in range(4):
        opt.step()
    assert Mine.calls == 4


def test_functions_of_the_users_are_asked_in_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def train(training: Training) -> None:
        decays = {"p_0"}
        training.optimizer = paddle.optimizer.AdamW(
            0.1, parameters=training.parameters, weight_decay=0.5, apply_decay_param_fun=lambda name: name in decays
        )
        five(training)
        decays.add("p_1")
        five(training)

    both(monkeypatch, train)


def test_state_goes_to_another_optimizer(monkeypatch: pytest.MonkeyPatch) -> None:
    def train(training: Training) -> None:
        five(training)
        state = training.optimizer.state_dict()
        training.optimizer = paddle.optimizer.Adam(0.05, parameters=training.parameters)
        training.optimizer.set_state_dict(state)
        five(training)

    both(monkeypatch, train)


def test_a_copy_has_programs_of_its_own() -> None:
    training = Training("SGD")
    five(training)
    before = training.elements()
    five(copy.deepcopy(training))
    for name, x in training.elements().items():
        np.testing.assert_array_equal(x, before[name])


def test_optimizers_share_programs() -> None:
    five(Training("Adam"))
    before = len(recorded_updates._programs)
    five(Training("Adam", learning_rate=0.3))
    assert len(recorded_updates._programs) == before


def test_the_second_step_is_native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", "auto")
    recorded_updates._programs.clear()
    training = Training("Adam", shapes=((9, 9),))
    training.step()
    training.step()
    (kept,) = training.optimizer._native._kept.values()
    assert kept is not None
    runner = kept.parts[0].updates.runner
    assert isinstance(runner, TieredProgram)
    assert runner.native is not None
