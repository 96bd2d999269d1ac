"""A whole train step with a learning rate schedule is one Program; the schedule goes on at the end of each call."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import TraceError

T = paddle.to_tensor


def train(static: bool, turns: int = 5) -> tuple[list[float], np.ndarray, int]:
    """Return the rates and the weight of a training, and how many Programs it took."""
    paddle.seed(1)
    layer = paddle.nn.Linear(2, 1)
    schedule = paddle.optimizer.lr.StepDecay(0.5, step_size=2, gamma=0.5)
    optimizer = paddle.optimizer.SGD(schedule, parameters=layer.parameters())

    def step(x, y):
        loss = ((layer(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        schedule.step()
        return loss

    run = paddle.jit.to_static(step, full_graph=True) if static else step
    rates = []
    for turn in range(turns):
        run(T([[1.0, turn], [0.5, -1.0]]), T([[1.0], [2.0]]))
        rates.append(schedule.last_lr)
    return rates, layer.weight.numpy(), len(run.program_cache) if static else 1


def test_a_train_step_with_a_schedule_is_one_program() -> None:
    eager, weight, _ = train(False)
    rates, same, programs = train(True)
    assert rates == eager
    assert programs == 2  # the first call finds no gradients yet
    np.testing.assert_allclose(same, weight, rtol=1e-6)


def test_a_schedule_goes_on_before_the_function_raises() -> None:
    schedule = paddle.optimizer.lr.StepDecay(0.5, step_size=1)

    @paddle.jit.to_static(full_graph=True)
    def function(x):
        schedule.step()
        if x.sum() > 0:
            raise ValueError("late")
        return x

    with pytest.raises(ValueError, match="late"):
        function(T([1.0]))
    assert schedule.last_epoch == 1


def test_two_steps_of_which_only_one_stands_in_a_branch_are_refused() -> None:
    schedule = paddle.optimizer.lr.StepDecay(0.5, step_size=1)

    @paddle.jit.to_static(full_graph=True)
    def function(x):
        schedule.step()
        if x.sum() > 0:
            schedule.step()
        return x

    with pytest.raises(TraceError, match="in a branch, loop or `try`, behind one that stands in none"):
        function(T([1.0]))
    assert schedule.last_epoch == 0


def test_a_schedule_of_the_users_is_not_read_behind_its_step() -> None:
    class Own(paddle.optimizer.lr.LRScheduler):
        def get_lr(self):
            return self.base_lr * 0.5**self.last_epoch

    schedule = Own(0.5)

    @paddle.jit.to_static(full_graph=True)
    def function(x):
        schedule.step()
        return x * schedule()

    with pytest.raises(TraceError, match="a Own is read after its step"):
        function(T([1.0]))
    assert schedule.last_epoch == 0


def test_a_schedule_is_not_made_in_a_program() -> None:
    @paddle.jit.to_static(full_graph=True)
    def function(x):
        return x * paddle.optimizer.lr.StepDecay(0.5, step_size=1)()

    with pytest.raises(TraceError, match="making a learning rate schedule changes a Python object"):
        function(T([1.0]))
