"""A parameter that only an untaken branch used has no gradient in that run, and its update is left out: as in eager."""

import itertools

import numpy as np
import pytest

import dy2st as paddle


class Two(paddle.nn.Layer):
    """The second layer runs only where `both` is positive."""

    def __init__(self):
        super().__init__()
        self.first = paddle.nn.Linear(4, 1)
        self.second = paddle.nn.Linear(4, 1)

    def forward(self, x, both):
        out = self.first(x).mean()
        if both > 0:
            out = out + self.second(x).square().mean()
        return out


CLIPS = {
    "none": lambda: None,
    "global norm": lambda: paddle.nn.ClipGradByGlobalNorm(0.1),
    "norm": lambda: paddle.nn.ClipGradByNorm(0.1),
    "value": lambda: paddle.nn.ClipGradByValue(0.05),
}
X = np.random.RandomState(1).randn(6, 4).astype("float32")


def trained(static, clip, zero, order=(0.0, 1.0, 0.0, 0.0, 1.0), decay=0.1):
    """Return what the parameters are after each step, the losses, and the step function."""
    paddle.seed(9)
    model = Two()
    optimizer = paddle.optimizer.Adam(0.1, parameters=model.parameters(), weight_decay=decay, grad_clip=clip)

    def step(x, both):
        loss = model(x, both)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=zero)
        return loss

    run = paddle.jit.to_static(step, full_graph=True) if static else step
    history = []
    for both in order:
        loss = float(run(paddle.to_tensor(X), paddle.to_tensor(np.float32(both))))
        history.append([loss, *(p.numpy().copy() for p in model.parameters())])
    return history, run


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("zero", [False, True], ids=["to None", "to zero"])
def test_a_train_step_is_the_same_in_a_program(clip, zero):
    eager, _ = trained(False, CLIPS[clip](), zero)
    static, _ = trained(True, CLIPS[clip](), zero)
    for a, b in zip(eager, static):
        for x, y in zip(a, b):
            np.testing.assert_allclose(y, x, rtol=1e-4, atol=1e-5)


def test_a_layer_that_did_not_run_stays_exactly_as_it_was():
    history, run = trained(True, None, False)
    weights = [values[3] for values in history]
    moved = [bool(np.abs(b - a).max() > 0) for a, b in itertools.pairwise(weights)]
    assert moved == [True, False, False, True]
    assert len(run.program_cache) == 1


def test_the_update_stands_under_cond():
    _, run = trained(True, None, False, order=(1.0,))
    program = run.concrete_program.main_program
    conds = [o for o in program.block.operations if o.name == "cond"]
    assert sum(any(inner.name == "sqrt" for inner in o.blocks[0].operations) for o in conds) == 2


def test_grad_is_none_is_asked_when_the_program_runs():
    model = Two()

    @paddle.jit.to_static(full_graph=True)
    def used(x, both):
        model(x, both).backward()
        missing = model.second.weight.grad is None
        model.clear_gradients()
        return 0 if missing else 1

    x = paddle.to_tensor(X)
    assert [int(used(x, paddle.to_tensor(np.float32(b)))) for b in (1.0, 0.0, 1.0)] == [1, 0, 1]
    assert len(used.program_cache) == 1


def test_gradients_of_two_losses_add_up_whatever_ran():
    model = Two()

    def twice(x, one, two):
        model(x, one).backward()
        model(x, two).backward()

    static = paddle.jit.to_static(twice, full_graph=True)
    x = paddle.to_tensor(X)
    for one, two in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)):
        found = []
        for run in (twice, static):
            model.clear_gradients()
            run(x, paddle.to_tensor(np.float32(one)), paddle.to_tensor(np.float32(two)))
            found.append([None if p.grad is None else p.grad.numpy() for p in model.parameters()])
        for a, b in zip(*found):
            assert (a is None) == (b is None)
            assert a is None or np.allclose(a, b, rtol=1e-5)


def test_gradients_left_by_an_earlier_call_are_added_to():
    model = Two()
    static = paddle.jit.to_static(lambda x, both: model(x, both).backward(), full_graph=True)
    x, both = paddle.to_tensor(X), paddle.to_tensor(np.float32(1.0))
    static(x, both)
    once = [p.grad.numpy() for p in model.parameters()]
    static(x, both)
    for p, g in zip(model.parameters(), once):
        np.testing.assert_allclose(p.grad.numpy(), 2 * g, rtol=1e-5)
    model.clear_gradients()
    static(x, both)
    for p, g in zip(model.parameters(), once):
        np.testing.assert_allclose(p.grad.numpy(), g, rtol=1e-5)
    assert len(static.program_cache) == 2


def test_a_gradient_in_a_branch_of_the_step():
    model = Two()

    def step(x, both, go):
        loss = model(x, both)
        if go > 0:
            loss.backward()
        return loss

    static = paddle.jit.to_static(step, full_graph=True)
    x = paddle.to_tensor(X)
    for both, go in ((1.0, 0.0), (0.0, 1.0), (1.0, 1.0)):
        found = []
        for run in (step, static):
            model.clear_gradients()
            run(x, paddle.to_tensor(np.float32(both)), paddle.to_tensor(np.float32(go)))
            found.append([p.grad is None for p in model.parameters()])
        assert found[0] == found[1], (both, go)
