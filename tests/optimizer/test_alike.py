"""A trace repeats an optimizer's operations for parameters that are alike: the Program is the same to the letter."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.optimizer.optimizer import Optimizer

RULES = ["SGD", "Momentum", "ASGD", "Rprop", "Adadelta", "Adagrad", "RMSProp", "Adam", "AdamW", "Adamax", "Lamb",
         "NAdam", "RAdam"]  # fmt: skip
SHAPES = [3, 4], [4], [5, 2, 3], [6], [2, 1]


def _text(make, dtype="float32") -> str:
    weights = [paddle.create_parameter(shape, dtype) for shape in SHAPES]
    for number, weight in enumerate(weights):
        weight.name = f"w{number}"
    optimizer = make(weights)

    def step():
        sum(((weight * weight).sum() for weight in weights), paddle.zeros([], dtype)).backward()
        optimizer.step()

    static = paddle.jit.to_static(step, full_graph=True)
    static()
    return str(static.concrete_program.main_program)


def _agrees(monkeypatch, make, dtype="float32") -> int:
    """Compare with the Program of the rule recorded for each parameter; return how often it is called otherwise."""
    calls = []

    def counting(weights):
        optimizer = make(weights)
        rule = optimizer.rule
        optimizer.rule = lambda *args: calls.append(1) or rule(*args)
        return optimizer

    repeated = _text(counting, dtype)
    with monkeypatch.context() as patch:
        patch.setattr(Optimizer, "decides", lambda *_: None)
        assert repeated == _text(make, dtype)
    return len(calls)


@pytest.mark.parametrize("name", RULES)
def test_programs_are_the_same(monkeypatch, name):
    made = _agrees(monkeypatch, lambda weights: getattr(paddle.optimizer, name)(0.1, parameters=weights))
    assert made == (len(SHAPES) if name in ("ASGD", "Lamb") else 1)


@pytest.mark.parametrize("options", [{"amsgrad": True}, {"weight_decay": 0.1}, {"multi_precision": True}])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_options_and_dtypes(monkeypatch, options, dtype):
    assert _agrees(monkeypatch, lambda weights: paddle.optimizer.Adam(0.1, parameters=weights, **options), dtype) == 1


def test_groups_with_a_rate_of_their_own(monkeypatch):
    def make(weights):
        weights[3].optimize_attr = {"learning_rate": 0.5}
        weights[4].regularizer = paddle.regularizer.L1Decay(0.1)
        return paddle.optimizer.Adam(0.1, parameters=weights, grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0))

    assert _agrees(monkeypatch, make) == 3


def test_what_functions_of_the_user_say_is_asked_for_each_parameter(monkeypatch):
    def make(weights):
        return paddle.optimizer.AdamW(
            0.1, parameters=weights, apply_decay_param_fun=lambda name: name != "w3",
            lr_ratio=lambda p: 0.5 if p.name == "w2" else 1.0,
        )  # fmt: skip

    assert _agrees(monkeypatch, make) == 3


def test_a_rule_of_the_user_is_called_for_each_parameter(monkeypatch):
    class Odd(paddle.optimizer.SGD):
        def rule(self, m, p, g, lr, state, options):
            return (p - g if p.shape[0] == 3 else p + g), {}

    monkeypatch.setattr(Odd, "__module__", "users_module")
    assert _agrees(monkeypatch, lambda weights: Odd(0.1, parameters=weights)) == len(SHAPES)


def test_a_gradient_that_is_the_parameter(monkeypatch):
    weights = [paddle.to_tensor([1.0, 2.0]), paddle.to_tensor([3.0, 4.0])]
    optimizer = paddle.optimizer.SGD(0.5, parameters=weights)

    @paddle.jit.to_static(full_graph=True)
    def step(g):
        optimizer.apply_gradients([(weights[0], weights[0]), (weights[1], g)])

    step(paddle.to_tensor([2.0, 2.0]))
    assert [weight.tolist() for weight in weights] == [[0.5, 1.0], [2.0, 3.0]]


def test_one_tensor_as_several_gradients(monkeypatch):
    weights = [paddle.create_parameter([2], "float32") for _ in range(3)]
    optimizer = paddle.optimizer.Adam(0.1, parameters=weights)
    before = [weight.numpy() for weight in weights]

    @paddle.jit.to_static(full_graph=True)
    def step(g):
        optimizer.apply_gradients([(weight, g) for weight in weights])

    step(paddle.to_tensor([1.0, -1.0]))
    for weight, old in zip(weights, before, strict=True):
        np.testing.assert_allclose(weight.numpy() - old, [-0.1, 0.1], rtol=1e-4)


def test_a_parameter_of_no_axes_is_not_like_others():
    weights = [paddle.create_parameter([2], "float32"), paddle.create_parameter([], "float32")]
    optimizer = paddle.optimizer.SGD(0.5, parameters=weights)
    before = [weight.numpy() for weight in weights]

    @paddle.jit.to_static(full_graph=True)
    def step(g):
        optimizer.apply_gradients([(weights[0], g), (weights[1], g.sum())])

    step(paddle.to_tensor([2.0, 4.0]))
    for weight, old, moved in zip(weights, before, ([1.0, 2.0], 3.0), strict=True):
        np.testing.assert_allclose(old - weight.numpy(), moved, rtol=1e-5)
